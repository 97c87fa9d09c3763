"""Gnosis, "How Search Works": what it says, the figure, and how that is seen here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from bench import (
    Bench,
    Statement,
    as_said,
    candidate,
    each_of,
    found,
    fused,
    long_text,
    refused,
    reranked,
)

from datasette_hybrid.search.api import compact
from memory_store.records import Memory, MemoryDraft
from memory_store.search.adjustments import adjust, band
from memory_store.search.candidates import LegList, Scored
from memory_store.search.query.word_matcher import WordMatcher
from memory_store.search.recipes import GNOSIS
from memory_store.search.reranking.cross_encoder import sigmoid, synthetic_score

OURS_TOO = {"title"}  # what our table has besides
FIELDS = {
    "id",
    "preview",
    "score",
    "vector_score",
    "rerank_score",
    "type",
    "created",
    "topics",
    "complete",
}
WORDS = "winter garden"


# -- how things are seen --------------------------------------------------------------------


def most_results(bench: Bench, *, deep: bool) -> int:
    """The highest limit that is not refused, and that many rows come."""
    store = bench.gardens(110)
    limit = next(n for n in (101, 100, 33, 32) if not refused(lambda n=n: search(store, n, deep)))  # type: ignore[misc]
    assert len(search(store, limit, deep).rows) == limit
    return limit


def search(store: Any, limit: int = 10, deep: bool = False, **options: Any) -> Any:
    return store.search(
        options.pop("query", WORDS),
        recipe="gnosis",
        limit=limit,
        deep=deep,
        explain=True,
        **options,
    )


def leg(bench: Bench, name: str, *, deep: bool) -> int:
    """How many candidates a leg fetches where there are more."""
    return found(search(bench.gardens(300, topics=("garden",)), deep=deep), name)


def fewest_keywords(bench: Bench) -> int:
    store = bench.gardens(6)
    queries = {1: "garden", 2: "winter garden"}
    return min(
        n
        for n, q in queries.items()
        if not refused(lambda q=q: search(store, deep=True, query=q))  # type: ignore[misc]
    )


def tagged(bench: Bench, query: str) -> list[str | None]:
    """What the topic leg finds."""
    drafts = [MemoryDraft("The port is 5432.", topics=("postgres",), ref="tagged")]
    drafts += [MemoryDraft(f"Of the postgres theory, {n}") for n in range(6)]
    rows = search(bench.vault(drafts), query=query).rows
    return [row.ref for row in rows if row.topic_rank is not None]


def unique_in_pool(bench: Bench) -> int:
    """How many different contents are reranked when every one is in two collections."""
    drafts = [
        MemoryDraft(f"winter garden {n}", collection=name)
        for n in range(80)
        for name in ("personal", "shared")
    ]
    return reranked(search(bench.vault(drafts)))


def copies_returned(bench: Bench) -> int:
    drafts = [MemoryDraft("winter garden", collection=f"team {n}") for n in range(5)]
    return len(search(bench.vault(drafts)).rows)


def smallest_reranked(bench: Bench) -> int:
    """The smallest number of candidates that a standard search has reranked."""
    return next(n for n in range(1, 9) if reranked(search(bench.gardens(n))))


def factor(bench: Bench, type_: str) -> float:
    """The score of a memory of a type over what the reranker gave it."""
    kinds = ("fact", "preference", "summary", "result", "task_done", "preference_done", "note")
    drafts = [MemoryDraft(f"winter garden {n}", type=kind) for n, kind in enumerate(kinds)]
    rows = search(bench.vault(drafts), query="winter garden quagmire").rows
    row = next(row for row in rows if row.type == type_)
    return round(row.score / row.rerank_score, 4)


def after_rerank(type_: str, score: float, text: str = "", query: tuple[str, ...] = ()) -> float:
    """What one memory's score becomes after the reranker."""
    memory = Memory("id", "personal", type_, "", text, (), "2024-01-01", "2024-01-01")
    matcher = WordMatcher(query, (), "en")
    start = Scored(candidate(type_=type_), score, memory, rerank_score=score)
    results = adjust(
        [start],
        GNOSIS,
        literal_share=lambda one: matcher.literal_share(one.opened.text),
        calibrated=True,
        verified=True,
    )
    return results[0].score if results else 0.0


def boosted(type_: str) -> float:
    """The factor of a type in fusion: its score over a fact's at the same place."""
    fact = fused(GNOSIS, LegList("vector", (1,)))[1]
    return float(fused(GNOSIS, LegList("vector", (1,)), types={1: type_})[1] / fact)


def few(bench: Bench, *, embed: bool = True) -> Any:
    """A search with too few candidates to be reranked."""
    drafts = [MemoryDraft(f"winter garden {n}", topics=("garden",)) for n in range(3)]
    return search(bench.vault(drafts, embed=embed))


def bands(*scores: float) -> list[str | None]:
    """The band of each calibrated score under Gnosis's recipe."""
    return [band(score, True, GNOSIS) for score in scores]


def first_everywhere(bench: Bench) -> float:
    """The fusion score, 0–1, of what both legs put first."""
    store = bench.vault([MemoryDraft("winter garden", topics=("garden",)), "quagmire"])
    return float(search(store).rows[0].fusion_score)


def expanded(bench: Bench, *, deep: bool) -> int:
    """How many long results are shown whole."""
    drafts = [MemoryDraft(f"Winter garden {n}. " + "So it goes. " * 60) for n in range(9)]
    rows = search(bench.vault(drafts), deep=deep).rows
    assert all(len(row.preview) > 320 for row in rows if row.complete)
    return sum(row.complete for row in rows)


def shown_whole(bench: Bench, characters: int) -> bool:
    text = ("Winter garden. " + "So it goes. " * 200)[:characters]
    drafts = [MemoryDraft(text), *(f"quagmire {n}" for n in range(6))]
    top = search(bench.vault(drafts)).rows[0]
    assert top.score > 0.80
    return bool(top.complete)


def table(bench: Bench) -> list[Any]:
    response = search(bench.gardens(6, topics=("garden",)))
    return compact(response, [row.as_dict() for row in response.rows])


# -- the document ---------------------------------------------------------------------------

STATEMENTS: list[Statement] = [
    # Two search modes
    ("standard search returns up to", 32, lambda b: most_results(b, deep=False)),
    ("deep search returns up to", 100, lambda b: most_results(b, deep=True)),
    ("standard search scores a pool of", 64, lambda b: reranked(search(b.gardens(300)))),
    ("deep search scores a pool of", 256, lambda b: reranked(search(b.gardens(300), deep=True))),
    ("deep search needs this many keywords", 2, fewest_keywords),
    # Parallel candidate fetch
    ("vectors fetch", 64, lambda b: leg(b, "vector", deep=False)),
    ("vectors fetch, deep", 256, lambda b: leg(b, "vector", deep=True)),
    ("topics fetch 75 % of it", 48, lambda b: leg(b, "topic", deep=False)),
    ("topics fetch 75 % of it, deep", 192, lambda b: leg(b, "topic", deep=True)),
    ("a topic is matched exactly", ["tagged"], lambda b: tagged(b, "postgres")),
    ("a topic has no concept of meaning", [], lambda b: tagged(b, "postgresql")),
    # Collection fan-out
    ("published copies do not shrink the pool", 64, unique_in_pool),
    ("a content is returned once however often it was published", 1, copies_returned),
    ("over-fetch with several collections is up to", 2.0, lambda b: GNOSIS.over_fetch),
    # Reciprocal rank fusion
    ("a first place adds 1 ÷ (0 + 60 + 1)", 1 / 61, lambda b: fused(GNOSIS, lists([7]))[7]),
    ("a third place adds 1 ÷ (2 + 60 + 1)", 1 / 63, lambda b: fused(GNOSIS, lists([7, 8, 9]))[9]),
    ("both lists add up", 2 / 61, lambda b: fused(GNOSIS, lists([7]), lists([7], "topic"))[7]),
    ("a preference in fusion", 1.3, lambda b: boosted("preference")),
    ("a summary in fusion", 1.4, lambda b: boosted("summary")),
    ("a fact in fusion", 1.0, lambda b: boosted("fact")),
    # Cross-encoder reranking
    ("the reranker reads the full text", True, lambda b: end_was_read(b)),
    # Post-rerank adjustments
    ("a preference after the reranker", 1.25, lambda b: factor(b, "preference")),
    ("a summary after the reranker", 1.3, lambda b: factor(b, "summary")),
    ("a result after the reranker", 0.6, lambda b: factor(b, "result")),
    ("something completed after the reranker", 0.7, lambda b: factor(b, "task_done")),
    ("a completed preference, net", 0.875, lambda b: factor(b, "preference_done")),
    ("a boosted preference ends at", 1.0, lambda b: after_rerank("preference", 0.9)),
    ("a boosted summary ends at", 1.0, lambda b: after_rerank("summary", 0.9)),
    # The keyword floor
    ("a name scored .008 is raised to", 0.30, lambda b: named(0.008, "harper")),
    ("one of two words is raised to", 0.15, lambda b: named(0.008, "harper", "zeppelin")),
    ("a floor is no boost: .45 stays", 0.45, lambda b: named(0.45, "harper")),
    ("nor does .20 move for half the words", 0.20, lambda b: named(0.20, "harper", "zeppelin")),
    ("'how' is not in 'show'", 0.0, lambda b: WordMatcher(("how",), (), "").literal_share("show")),
    # Smart skip
    ("the fewest candidates that are reranked", 5, smallest_reranked),
    ("deep search never skips", 3, lambda b: reranked(search(b.gardens(3), deep=True))),
    ("synthetic scores begin at", 0.40, lambda b: round(synthetic_score(0.0, -1.0), 2)),
    ("synthetic scores end at", 0.70, lambda b: round(synthetic_score(1.0, None), 2)),
    ("and stay within in a search", True, lambda b: in_range(few(b))),
    ("the sigmoid is centred at", 0.5, lambda b: sigmoid(0.4)),
    ("first in every list is the theoretical maximum", 1.0, first_everywhere),
    ("topic-only results are pure sigmoid", True, lambda b: pure(few(b, embed=False))),
    ("cosine modulates the others", True, lambda b: modulated(few(b))),
    # Preview generation
    ("the top results shown whole", 3, lambda b: expanded(b, deep=False)),
    ("the top results shown whole, deep", 5, lambda b: expanded(b, deep=True)),
    ("2,047 characters are shown whole", True, lambda b: shown_whole(b, 2_047)),
    ("2,048 characters are not", False, lambda b: shown_whole(b, 2_048)),
    ("the table is results, counts, topics", ["list", "str", "list"], lambda b: kinds(table(b))),
    ("what each result of it holds", FIELDS, lambda b: set(table(b)[0][0]) - OURS_TOO),
    ("the counts sum up the pipeline", "Reranked 6 of 6, returned 6", lambda b: table(b)[1]),
    ("topics have their numbers", [["garden", 6]], lambda b: table(b)[2]),
    ("scores are shown as 0–100", True, lambda b: 1 < table(b)[0][0]["score"] <= 100),
    # Score interpretation
    (
        "excellent from .30",
        ["excellent", "good"],
        lambda b: bands(0.30, 0.299),
    ),
    (
        "good from .20",
        ["good", "weak"],
        lambda b: bands(0.20, 0.199),
    ),
    ("the score floor keeps", 0.03, lambda b: after_rerank("fact", 0.03)),
    ("and drops what is below", 0.0, lambda b: after_rerank("fact", 0.0299)),
    ("what is not stored is not found", "Reranked 6 of 6, returned 0", lambda b: nothing(b).counts),
]


def lists(ordinals: list[int], leg: str = "vector") -> LegList:
    return LegList(leg, tuple(ordinals))


def end_was_read(bench: Bench) -> bool:
    """Whether a memory is found excellent for what only its last sentence says."""
    drafts = [MemoryDraft(long_text("Harper plays the bassoon."), ref="long")]
    drafts += [MemoryDraft(f"quagmire {n}") for n in range(6)]
    top = search(bench.vault(drafts), query="Harper bassoon").rows[0]
    return (top.ref, top.band) == ("long", "excellent")


def named(score: float, *query: str) -> float:
    return round(after_rerank("fact", score, "Harper called about the report", query), 6)


def in_range(response: Any) -> bool:
    return all(0.40 <= row.score <= 0.70 for row in response.rows) and len(response.rows) == 3


def pure(response: Any) -> bool:
    return all(
        row.vector_rank is None
        and row.score == pytest.approx(0.40 + 0.30 * sigmoid(row.fusion_score), abs=1e-6)
        for row in response.rows
    )


def modulated(response: Any) -> bool:
    return all(
        row.score == pytest.approx(synthetic_score(row.fusion_score, row.vector_score), abs=1e-5)
        and row.score < 0.40 + 0.30 * sigmoid(row.fusion_score)
        for row in response.rows
        if row.vector_score < 0.999
    )


def nothing(bench: Bench) -> Any:
    return search(bench.gardens(6), query="zqzq jxjx")


def kinds(values: list[Any]) -> list[str]:
    return [type(value).__name__ for value in values]


@each_of(STATEMENTS)
def test_gnosis_says(
    figure: Any, observe: Callable[[Bench], Any], bench: Bench, reranker: str
) -> None:
    assert observe(bench) == as_said(figure)


def test_results_are_sorted_again_after_each_group() -> None:
    """A summary overtakes by its boost, and is overtaken when it is done."""
    pool = [
        Scored(candidate(0, type_="summary_done"), 0.50),
        Scored(candidate(1), 0.60),
        Scored(candidate(2, type_="result"), 0.90),
        Scored(candidate(3, type_="preference"), 0.50),
    ]
    results = adjust(pool, GNOSIS, literal_share=lambda m: 0.0, calibrated=True, verified=True)
    assert [result.candidate.ordinal for result in results] == [3, 1, 2, 0]
    assert [result.score for result in results] == pytest.approx([0.625, 0.6, 0.54, 0.455])


def test_every_collection_is_searched_without_being_named(bench: Bench, reranker: str) -> None:
    names = [f"team {n}" for n in range(5)]
    store = bench.vault(MemoryDraft(f"winter garden {n}", collection=n) for n in names)
    assert {row.collection for row in search(store).rows} == set(names)


def test_what_is_too_long_to_be_read_whole_is_counted(bench: Bench, reranker: str) -> None:
    """Up to 25,600 characters a text is read to its end; beyond, ``degraded`` says so."""
    drafts = [MemoryDraft(f"quagmire {n}") for n in range(6)]
    for characters, said in ((24_000, ()), (26_000, ("1 memory is longer",))):
        fact = long_text("Harper plays the bassoon.", characters)
        response = search(bench.vault([MemoryDraft(fact), *drafts]), query="Harper bassoon")
        assert [line for line in response.degraded if "the reranker read the first" in line] == [
            f"the reranker read the first 25,600 characters: {one}" for one in said
        ]
