"""What was understood of a query, in words: shown where more than plain words was typed.

Boundary: repeats what the caller typed, to the caller alone; the templates escape it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memory_store.errors import BadInputError
from memory_store.host import ParsedQuery, parse
from memory_store.records import TYPES, SearchRequest

from .addresses import address

LITERAL = "literal"
MOST_CHARACTERS = 60  # of one part; a pasted page is not repeated


def examples(path: str, collections: Sequence[str]) -> list[tuple[str, str, str]]:
    """Queries that show the language: each with its address, and what it means."""
    collection = min(collections, default="work", key=len)
    shown = [
        ("spare key", "either word; both are better"),
        ('"spare key"', "these words, side by side"),
        ("garden -roses", "without this word"),
        ("topic:garden", "carries this topic; several: all of them"),
        ("type:decision", f"or {', '.join(one for one in TYPES if one != 'decision')}"),
        ("since:7d", "from the last seven days; until: too, and dates"),
        ("since:2024 until:2024", "written in that year"),
        (f"in:{quoted(collection)}", "from one collection"),
    ]
    return [(query, address(path, [("q", query)]), meaning) for query, meaning in shown]


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
    parts = list(_parts(parsed))
    if not parts:
        return []
    words = len(parsed.words) - sum(len(phrase.words) for phrase in parsed.required)
    return [_counted(words, "word"), *parts] if words > 0 else parts


def _parts(parsed: ParsedQuery) -> Iterator[str]:
    yield from (f"must hold “{_short(phrase.text)}”" for phrase in parsed.required)
    yield from (f"must not hold “{_short(phrase.text)}”" for phrase in parsed.excluded)
    yield from (f"topic {_short(topic)}" for topic in parsed.topics)
    yield from _any_of("type", parsed.types)
    yield from _any_of("in", parsed.collections)
    if parsed.since:
        yield f"since {_short(parsed.since)}"
    if parsed.until:
        yield f"until {_short(parsed.until)}"
    if parsed.variants:
        yield f"{_counted(len(parsed.variants), 'further wording')}"


def _any_of(kind: str, names: tuple[str, ...]) -> Iterator[str]:
    if names:
        yield f"{kind} {' or '.join(map(_short, names))}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _short(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…"
