"""Every kind of filter that a search knows, drawn by lot, and which memories each lets through.

That is worked out from what a vault was filled with, and generously where stems decide: a memory
that might be let through is never taken for one that is left out.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from operator import eq
from typing import Any

from asking import Corpus

from memory_store.records import MemoryDraft
from memory_store.text.language import STEMMED_LANGUAGES
from memory_store.text.tokens import term

FILTERS = frozenset(
    {
        *("collection", "type", "topic", "status", "since", "until"),
        *("as_of", "superseded", "by"),
        *("meta", "min_score", "narrow", "like", "mode"),
    }
)
"""The fields of ``SearchRequest`` that decide which memories are an answer."""

NO_FILTERS = frozenset(
    {
        *(
            "language",
            "all_",
            "query",
            "deep",
            "limit",
            "recipe",
            "reranker",
            "rerank",
            "expander",
            "expand",
            "sealed",
        ),
        *("budget", "budget_ms", "continue_", "explain", "why"),
    }
)
"""Those that say how the others are ranked and shown."""

Allowed = Callable[[MemoryDraft], bool]


def _anything(draft: MemoryDraft) -> bool:
    return True


@dataclass(frozen=True)
class Narrowed:
    """Something that lets some memories through: as it is asked for, and which those are.

    ``answers`` are the rows that may come of them, if opening decides. ``complete``: the query is
    the whole question, no words are to be added. ``by_text``: opened text decides.
    """

    options: dict[str, Any]
    lets_through: Allowed
    query: str = ""
    answers: Allowed = _anything
    complete: bool = False
    by_text: bool = False


def kinds(corpus: Corpus, chance: random.Random) -> dict[str, Narrowed]:
    """One of every kind of filter there is."""
    return {
        **_by_name(corpus, chance),
        **_by_several(corpus, chance),
        **_by_time(chance),
        **_by_words(corpus, chance),
        **_with_another(corpus, chance),
    }


def _by_name(corpus: Corpus, chance: random.Random) -> dict[str, Narrowed]:
    topic, home = chance.choice(corpus.topics), chance.choice(corpus.collections)
    kind, other = chance.sample(("note", "task", "decision"), 2)
    status = chance.choice(("open", "done"))
    by_topic: Allowed = lambda d: carries(d, topic)  # noqa: E731
    by_type: Allowed = lambda d: is_of_type(d, kind)  # noqa: E731
    return {
        "topic": Narrowed({"topic": topic}, by_topic),
        "topic:": Narrowed({}, by_topic, f"topic:{topic}"),
        "type": Narrowed({"type": kind}, by_type),
        "type:": Narrowed({}, by_type, f"type:{kind}"),
        "type: before type": Narrowed({"type": other}, by_type, f"type:{kind}"),
        "collection": Narrowed({"collection": home}, lambda d: d.collection == home),
        "in:": Narrowed({}, lambda d: d.collection == home, f"in:{home}"),
        "status": Narrowed({"status": status}, lambda d: is_done(d) == (status == "done")),
    }


def _by_several(corpus: Corpus, chance: random.Random) -> dict[str, Narrowed]:
    """Of topics all must be carried; of types and collections any will do."""
    one, two = chance.choice([d.topics for d in corpus.drafts if len(d.topics) > 1])[:2]
    types = ["task", chance.choice(("note", "decision", "fact"))]  # of these tasks alone are done
    homes = chance.sample(list(corpus.collections), 2)
    status, year = chance.choice(("open", "done")), chance.randrange(2012, 2020)
    topics: Allowed = lambda d: carries(d, one) and carries(d, two)  # noqa: E731
    any_type: Allowed = lambda d: any(is_of_type(d, kind) for kind in types)  # noqa: E731
    at_home: Allowed = lambda d: d.collection in homes  # noqa: E731
    return {
        "topics": Narrowed({"topic": (one, two)}, topics),
        "topic: twice": Narrowed({}, topics, f"topic:{one} topic:{two}"),
        "types": Narrowed({"type": tuple(types)}, any_type),
        "type: twice": Narrowed({}, any_type, " ".join(f"type:{kind}" for kind in types)),
        "collections": Narrowed({"collection": tuple(homes)}, at_home),
        "in: twice": Narrowed({}, at_home, " ".join(f"in:{home}" for home in homes)),
        "type and topic": Narrowed(
            {"type": tuple(types), "topic": one}, lambda d: any_type(d) and carries(d, one)
        ),
        "five at once": Narrowed(
            {"collection": tuple(homes), "status": status, "since": f"{year}"},
            lambda d: (
                at_home(d)
                and any_type(d)
                and is_done(d) == (status == "done")
                and f"{year}" <= year_of(d) <= f"{year + 4}"
            ),
            f"until:{year + 4} " + " ".join(f"type:{kind}" for kind in types),
        ),
    }


def _by_time(chance: random.Random) -> dict[str, Narrowed]:
    year, month = chance.randrange(2011, 2024), f"{chance.randrange(1, 13):02}"
    from_month: Allowed = lambda d: str(d.created) >= f"{year}-{month}"  # noqa: E731
    to_month: Allowed = lambda d: str(d.created)[:7] <= f"{year}-{month}"  # noqa: E731
    return {
        "since": Narrowed({"since": f"{year}"}, lambda d: year_of(d) >= f"{year}"),
        "since:": Narrowed({}, from_month, f"since:{year}-{month}"),
        "until": Narrowed({"until": f"{year}-12-31"}, lambda d: year_of(d) <= f"{year}"),
        "until:": Narrowed({}, to_month, f"until:{year}-{month}"),
        "as_of": Narrowed({"as_of": f"{year}"}, lambda d: known_in(d, year)),
        "superseded": Narrowed(
            {"superseded": True, "as_of": f"{year}"}, lambda d: year_of(d) <= f"{year}"
        ),
    }


def _by_words(corpus: Corpus, chance: random.Random) -> dict[str, Narrowed]:
    said = chance.choice(corpus.drafts).text.split()
    place = chance.randrange(len(said) - 1)
    one, two = said[place], said[place + 1]
    wanted: Allowed = lambda d: beside(d, one, two, alike)  # noqa: E731
    whole: Allowed = lambda d: beside(d, one, two, eq)  # noqa: E731
    return {
        "phrase": Narrowed({}, wanted, f'"{one} {two}"', answers=whole, by_text=True),
        "without": Narrowed({}, lambda d: one not in words_of(d), f"-{one}"),
        "without phrase": Narrowed({}, lambda d: not whole(d), f'-"{one} {two}"'),
        "pattern": Narrowed(
            {"mode": "literal"},
            lambda d: may_hold(d, one),
            f"{one} \\w+",
            answers=lambda d: one in f"{d.title} {d.text}",
            complete=True,
            by_text=True,
        ),
        "pattern, auto": Narrowed(
            {"mode": "auto"},
            lambda d: may_hold(d, two),
            f"/{two} \\w+/",
            answers=lambda d: two in f"{d.title} {d.text}",
            complete=True,
            by_text=True,
        ),
    }


def _with_another(corpus: Corpus, chance: random.Random) -> dict[str, Narrowed]:
    """What opens something to decide, or only chooses among what is found, beside a filter.

    Then as much may be opened as the filter beside it leaves.
    """
    box, score = chance.randrange(7), chance.choice((0.0, 0.02, 0.1, 0.3))
    kept = chance.choice(("note", "task", "decision"))
    named, said = chance.choice(corpus.ids), chance.choice(corpus.drafts).text.split()
    beside_it = [_another(corpus, chance) for _ in range(7)]
    pattern = f"{said[0]} \\w+"
    return {
        "meta": _both(
            beside_it[0],
            {"meta": {"box": box}},
            answers=lambda d: d.metadata["box"] == box,
            by_text=True,
        ),
        "by": _both(
            beside_it[6],
            {"by": "assistant"},
            answers=lambda d: d.metadata.get("by") == "assistant",
            by_text=True,
        ),
        "min_score": _both(beside_it[1], {"min_score": score}),
        "narrow": _both(
            beside_it[2], {"narrow": f"type:{kept}"}, answers=lambda d: is_of_type(d, kept)
        ),
        "like": _both(beside_it[3], {"like": named}),
        "like alone": _both(beside_it[4], {"like": named}, complete=True),
        "pattern and filter": Narrowed(
            {"mode": "literal", "type": ("task", "note")},
            lambda d: (is_of_type(d, "task") or is_of_type(d, "note")) and may_hold(d, said[0]),
            pattern,
            answers=lambda d: said[0] in f"{d.title} {d.text}",
            complete=True,
            by_text=True,
        ),
        "nothing but filters": _both(beside_it[5], {}, complete=True),
    }


def _another(corpus: Corpus, chance: random.Random) -> Narrowed:
    """A filter to stand beside something else, wide enough for that to find something, too."""
    home = corpus.collections[chance.randrange(2)]
    kind, year = chance.choice(("note", "task", "decision")), chance.randrange(2011, 2020)
    return chance.choice(
        (
            Narrowed({"collection": home}, lambda d: d.collection == home),
            Narrowed({}, lambda d: d.collection == home, f"in:{home}"),
            Narrowed({"type": kind}, lambda d: is_of_type(d, kind)),
            Narrowed({}, lambda d: is_of_type(d, kind), f"type:{kind}"),
            Narrowed({"since": f"{year}"}, lambda d: year_of(d) >= f"{year}"),
            Narrowed({}, lambda d: year_of(d) >= f"{year}", f"since:{year}"),
        )
    )


def _both(filter_: Narrowed, options: dict[str, Any], **more: Any) -> Narrowed:
    return Narrowed({**filter_.options, **options}, filter_.lets_through, filter_.query, **more)


def carries(draft: MemoryDraft, topic: str) -> bool:
    """Whether it has that topic or one below it."""
    return any(f"{one}/".startswith(f"{topic}/") for one in draft.topics)


def is_done(draft: MemoryDraft) -> bool:
    return str(draft.type).endswith("_done")


def is_of_type(draft: MemoryDraft, kind: str) -> bool:
    """Whether it is of that type, completed or not."""
    return draft.type in (kind, f"{kind}_done")


def year_of(draft: MemoryDraft) -> str:
    return str(draft.created)[:4]


def known_in(draft: MemoryDraft, year: int) -> bool:
    """Whether it was written by the end of a year, and had not ended by then."""
    ends = str(draft.valid_to or "9999")[:4]
    return year_of(draft) <= f"{year}" < ends


def words_of(draft: MemoryDraft) -> list[str]:
    return f"{draft.title} . {draft.text}".split()


def may_hold(draft: MemoryDraft, word: str) -> bool:
    """Whether all three letters in a row of a word stand somewhere in it: the index knows no more
    of a pattern."""
    text, word = f"{draft.title} {draft.text}".lower(), word.lower()
    return all(word[at : at + 3] in text for at in range(max(1, len(word) - 2)))


def beside(draft: MemoryDraft, one: str, two: str, same: Callable[[str, str], bool]) -> bool:
    """Whether two words stand side by side in it that are the same as these."""
    return any(same(a, one) and same(b, two) for a, b in pairwise(words_of(draft)))


def alike(one: str, two: str) -> bool:
    """Whether two words have one stem in any language: made-up words are taken for any of them."""
    return one == two or not stems(one).isdisjoint(stems(two))


@cache
def stems(word: str) -> frozenset[tuple[str, str]]:
    return frozenset((language, term(word, language)) for language in STEMMED_LANGUAGES)
