"""What was understood of a query, in words: shown where more than plain words was typed.

Boundary: repeats what the caller typed, to the caller alone; the templates escape it.
"""

from __future__ import annotations

from collections.abc import Sequence

from memory_store.errors import BadInputError
from memory_store.host import parse
from memory_store.records import TYPES, SearchRequest

from .addresses import address
from .forms import BEST_FOR, Choice

LITERAL, STRUCTURAL = "literal", "structural"
MOST_CHARACTERS = 60  # of one part; a pasted page is not repeated


def examples(path: str, collections: Sequence[str]) -> list[tuple[str, str, str]]:
    """Queries that show the language: each with its address, and what it means."""
    collection = min(collections, default="work", key=len)
    shown = [
        ("spare key", "either word; both are better"),
        ('"spare key"', "these words, side by side"),
        ("garden -roses", "without this word"),
        ("topic:garden", "carries this topic or one below it; several: all of them"),
        ("type:decision", f"or {', '.join(one for one in TYPES if one != 'decision')}"),
        ("since:7d", "from the last seven days; until: too, and dates"),
        ("since:2024 until:2024", "written in that year"),
        (f"in:{quoted(collection)}", "from one collection"),
    ]
    return [(query, address(path, [("q", query)]), meaning) for query, meaning in shown]


def mode_examples(path: str, modes: Sequence[Choice]) -> list[tuple[str, str, str, str]]:
    """The modes that a form offers: each with a query to try, its address, what it is best for."""
    shown = []
    for value, label, _ in modes:
        best_for, query = BEST_FOR[value or "hybrid"]
        pairs = [("q", query), *([("mode", value)] if value else ())]
        shown.append((label, query, address(path, pairs), best_for))
    return shown


def quoted(name: str) -> str:
    """A name as it stands behind a prefix."""
    return f'"{name}"' if any(character.isspace() for character in name) else name


def understood(query: str, mode: str, asked: str) -> list[str]:
    """The parts of a query, or nothing where it is words alone.

    ``mode`` is how it was searched for, ``asked`` the mode that was chosen.
    """
    if mode == LITERAL:
        return ["taken for exact text or a pattern"] if asked == "auto" else []
    try:
        parsed = parse(SearchRequest(query))
    except BadInputError:
        return []
    of = {"type": parsed.types, "in": parsed.collections}
    parts = [
        *(f"must hold “{_short(phrase.text)}”" for phrase in parsed.required),
        *(f"must not hold “{_short(phrase.text)}”" for phrase in parsed.excluded),
        *(f"topic {_short(topic)}" for topic in parsed.topics),
        *(f"{kind} {' or '.join(map(_short, names))}" for kind, names in of.items() if names),
        *([f"since {_short(parsed.since)}"] if parsed.since else ()),
        *([f"until {_short(parsed.until)}"] if parsed.until else ()),
        *([_counted(len(parsed.variants), "further wording")] if parsed.variants else ()),
    ]
    words = len(parsed.words) - sum(len(phrase.words) for phrase in parsed.required)
    return [_counted(words, "word"), *parts] if parts and words > 0 else parts


def asks_words(query: str, mode: str) -> bool:
    """Whether a search is for words: no pattern, and more than filters."""
    try:
        return mode not in (LITERAL, STRUCTURAL) and bool(parse(SearchRequest(query)).words)
    except BadInputError:  # no query: a search for what is like a memory
        return False


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _short(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"
