"""GNO, "How Search Works": what it says, the figure, and how that is seen here."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from bench import (
    Bench,
    Statement,
    as_said,
    each_of,
    found,
    fused,
    fusion_ranks,
    refused,
    reranked,
    told_weights,
)
from msgspec.structs import replace

from memory_store.errors import ModelUnavailableError
from memory_store.models.expander import MOST_LINES, instructions
from memory_store.records import MemoryDraft, SearchRequest
from memory_store.search import pipeline
from memory_store.search.candidates import LegList
from memory_store.search.fusion.rank_fusion import rrf
from memory_store.search.recipes import GNO
from memory_store.search.reranking.cross_encoder import blended
from memory_store.sqlite import sqlite3
from memory_store.text.language import LANGUAGE_NAMES

TYPED = "winter garden\nlex: winter house\nvec: winter plants\nhyde: a garden in the winter months"
PEARS = [("pear " * (n % 4) + "plum " * (n % 3) + "filler " * n).strip() for n in range(1, 30)]


# -- how things are seen --------------------------------------------------------------------


def search(store: Any, query: str = "winter garden", **options: Any) -> Any:
    return store.search(query, **{"recipe": "gno", "explain": True, **options})


def pears(bench: Bench, mode: str) -> Any:
    """All notes with one of two words, by one mode."""
    store = bench.vault(MemoryDraft(text, title="", ref=str(n)) for n, text in enumerate(PEARS))
    return search(store, "pear plum", mode=mode, limit=32)


def raw_bm25() -> dict[str, float]:
    """SQLite's own raw score of each note: smaller is better."""
    connection = sqlite3.connect(":memory:")
    connection.execute("create virtual table t using fts5(text, tokenize='porter')")
    connection.executemany(
        "insert into t(rowid, text) values (?, ?)", [(n, text) for n, text in enumerate(PEARS)]
    )
    rows = connection.execute("select rowid, bm25(t) from t where t match 'pear OR plum'")
    return {str(rowid): score for rowid, score in rows}


def normalised_as_said(bench: Bench) -> bool:
    """Whether keyword scores are (worst − raw) ÷ (worst − best) of SQLite's raw scores."""
    raw = raw_bm25()
    worst, best = max(raw.values()), min(raw.values())
    rows = pears(bench, "keyword").rows
    assert len(rows) == len(raw) > 20
    return all(
        row.score == pytest.approx((worst - raw[row.ref]) / (worst - best), abs=1e-5)
        for row in rows
    )


def similarity_as_said(bench: Bench) -> bool:
    """Whether vector scores are 1 − distance ÷ 2, the distance being 1 − cosine."""
    rows = search(bench.gardens(9), mode="vector").rows
    return all(row.score == pytest.approx(1 - (1 - row.vector_score) / 2, abs=1e-5) for row in rows)


def ends(response: Any) -> tuple[float, float]:
    """The best and the worst score."""
    scores = [row.score for row in response.rows]
    assert scores == sorted(scores, reverse=True)
    return scores[0], scores[-1]


def blended_as_said(bench: Bench) -> bool:
    """Whether a search's scores are fusion and reranker by position, then normalised."""
    store = bench.vault(f"{'winter ' * (n % 2)}garden and {'x' * n}" for n in range(1, 16))
    response = search(store, limit=32)
    ranks = fusion_ranks(response)
    mixed = {
        row.id: blended(row.fusion_score, row.rerank_score, ranks[row.id]) for row in response.rows
    }
    low, high = min(mixed.values()), max(mixed.values())
    return all(
        row.score == pytest.approx((mixed[row.id] - low) / (high - low), abs=1e-4)
        for row in response.rows
    )


def weight(leg: str, kind: str) -> float:
    """What a list's first place counts, as a multiple of the original's (1.0)."""
    recipe = replace(GNO, first_bonus=0.0, podium_bonus=0.0)
    factor = {"original": 1.0, "variant": GNO.variant_weight, "hyde": GNO.hyde_weight}[kind]
    return fused(recipe, LegList(leg, (1,), weight=factor))[1] * 61


def fetched(bench: Bench, leg: str, kind: str = "original") -> int:
    """How many candidates a leg fetches for a limit of 10 where there are more."""
    return found(
        search(bench.gardens(80), TYPED if kind != "original" else "winter garden"), leg, kind
    )


def unique_docs(bench: Bench) -> bool:
    """Whether everything that the legs found is a candidate, though only 20 are reranked."""
    names = ["alpha", "beta"]
    drafts = [f"winter {n} {'quite ' * (n % 7)}so {names[n % 2]}" for n in range(60)]
    response = search(bench.vault(drafts))
    at_most = found(response, "keyword") + found(response, "vector")
    (fuse,) = (report for report in response.explain if report.stage == "fuse")
    match = re.match(r"Reranked 20 of (\d+), returned 10", response.counts)
    assert match
    assert response.opened == 20
    return int(match[1]) == fuse.details["pool"] <= at_most


def second_in_both() -> bool:
    """Whether the bare formula puts what is second in both lists above what is first in one."""
    scores = rrf([["first by word", "both"], ["first by meaning", "both"]])
    return max(scores, key=lambda item: scores[item]) == "both"


def in_both_lists_wins(bench: Bench, recipe: str) -> bool:
    """The same in a search: what stands first in one list is not in the other at all."""
    store = bench.vault(["automobile", "the car in the winter, so it goes", "salt", "flour"])
    store.add_many([MemoryDraft("car")], embed=False)
    rows = store.search("car", recipe=recipe, rerank=False, explain=True).rows
    places = {row.preview: (row.keyword_rank, row.vector_rank) for row in rows}
    assert places["car"] == (1, None)
    assert places["automobile"] == (None, 1)
    assert places["the car in the winter, so it goes"] == (2, 2)
    return rows[0].preview == "the car in the winter, so it goes"


def without(bench: Bench, missing: str) -> Any:
    """A search where something is not there."""
    if missing == "vectors":
        return search(bench.vault(["winter garden", "garden"], embed=False))
    store = bench.gardens(8)

    def absent(*_: object) -> Any:
        raise ModelUnavailableError("No model here.", "pip install a-model")

    context = replace(store.search_context(), **{missing: absent})
    return pipeline.run(context, SearchRequest("winter garden", recipe="gno", explain=True))


def ranks(response: Any) -> set[str]:
    """Which legs found anything."""
    return {
        leg
        for leg in ("keyword", "vector")
        if any(getattr(row, f"{leg}_rank") for row in response.rows)
    }


# -- the document ---------------------------------------------------------------------------

STATEMENTS: list[Statement] = [
    # Score normalisation
    ("keyword scores are (worst − raw) ÷ (worst − best)", True, normalised_as_said),
    ("the best and the worst keyword score", (1.0, 0.0), lambda b: ends(pears(b, "keyword"))),
    ("vector scores are 1 − distance ÷ 2", True, similarity_as_said),
    ("fusion scores, normalised", (1.0, 0.0), lambda b: ends(search(pear_vault(b), rerank=False))),
    ("blended scores, normalised", (1.0, 0.0), lambda b: ends(search(pear_vault(b)))),
    ("the scores of one result alone", (1.0, 1.0), lambda b: ends(search(b.gardens(1)))),
    ("no score says how good an answer is for any query", {None}, lambda b: bands(b)),
    # Reciprocal rank fusion
    ("first in one list and third in another", 0.0323, lambda b: example()["both"]),
    ("first in one list only", 0.0164, lambda b: example()["alone"]),
    ("second in both lists beats first in one", True, lambda b: second_in_both()),
    ("it does in a search", True, lambda b: in_both_lists_wins(b, "gno")),
    # Variant weighting
    ("original keyword list", 1.0, lambda b: weight("keyword", "original")),
    ("original vector list", 1.0, lambda b: weight("vector", "original")),
    ("keyword variants", 0.5, lambda b: weight("keyword", "variant")),
    ("vector variants", 0.5, lambda b: weight("vector", "variant")),
    ("HyDE passage", 0.7, lambda b: weight("vector", "hyde")),
    (
        "the lists of one query, the original counted twice",
        {
            "keyword original": 2.0,
            "keyword lex": 0.5,
            "vector original": 2.0,
            "vector vec": 0.5,
            "vector hyde": 0.7,
        },
        lambda b: told_weights(search(b.gardens(30), TYPED, rerank=False)),
    ),
    # Position-aware blending: what a fusion score of 1 and a reranker's 0 come to
    ("fusion's weight at rank 1", 0.75, lambda b: blended(1, 0, 1)),
    ("fusion's weight at rank 3", 0.75, lambda b: blended(1, 0, 3)),
    ("fusion's weight at rank 4", 0.60, lambda b: blended(1, 0, 4)),
    ("fusion's weight at rank 10", 0.60, lambda b: blended(1, 0, 10)),
    ("fusion's weight at rank 11", 0.40, lambda b: blended(1, 0, 11)),
    ("the reranker's weight at rank 1", 0.25, lambda b: blended(0, 1, 1)),
    ("the reranker's weight at rank 4", 0.40, lambda b: blended(0, 1, 4)),
    ("the reranker's weight at rank 11", 0.60, lambda b: blended(0, 1, 11)),
    ("a search blends by position, then normalises", True, blended_as_said),
    # Retrieval limits, for a limit of 10
    ("keywords, original query: limit × 2", 20, lambda b: fetched(b, "keyword")),
    ("vectors, original query: limit × 2", 20, lambda b: fetched(b, "vector")),
    ("keywords, each variant: limit", 10, lambda b: fetched(b, "keyword", "lex")),
    ("vectors, each variant: limit", 10, lambda b: fetched(b, "vector", "vec")),
    ("vectors, HyDE: limit", 10, lambda b: fetched(b, "vector", "hyde")),
    ("after fusion: all unique documents", True, unique_docs),
    ("reranking: top", 20, lambda b: reranked(search(b.gardens(80)))),
    ("final output: the requested limit", 7, lambda b: len(search(b.gardens(80), limit=7).rows)),
    # Controlling search behaviour
    ("--no-rerank keeps fusion's order", 0, lambda b: reranked(search(b.gardens(9), rerank=False))),
    ("--no-expand is taken", None, lambda b: refused(lambda: search(b.gardens(9), expand=False))),
    ("--min-score .5 leaves out what scores less", True, lambda b: from_half(b)),
    # Graceful degradation
    ("no vectors: keywords only", {"keyword"}, lambda b: ranks(without(b, "vectors"))),
    ("no embedding model: keywords only", {"keyword"}, lambda b: ranks(without(b, "embedder"))),
    ("no rerank model: fusion's scores", True, lambda b: by_fusion(without(b, "reranker"))),
    ("no generation model: no expansion, no error", 10, lambda b: len(search(b.gardens(20)).rows)),
    # Language support
    ("English has a prompt of its own", True, lambda b: prompts("en", "Write in English.")),
    ("so has German, in German", True, lambda b: prompts("de", "Schreibe deutsch.")),
    ("other languages share one that names them", True, lambda b: prompts("it", "in Italian.")),
    # Query expansion with HyDE
    ("what is asked for", {"lex": 3, "vec": 2, "hyde": 1}, lambda b: dict(MOST_LINES)),
]


def bands(bench: Bench) -> set[str | None]:
    return {row.band for row in search(bench.gardens(9)).rows}


def prompts(code: str, words: str) -> bool:
    return words in instructions(code, LANGUAGE_NAMES[code])


def example() -> dict[str, float]:
    """The worked example: weight 1 and no bonus, so it is the bare function's."""
    both = rrf([["both", "other"], ["x", "y", "both"]])["both"]
    return {"both": round(both, 4), "alone": round(rrf([["alone"], ["x", "y", "z"]])["alone"], 4)}


def pear_vault(bench: Bench) -> Any:
    return bench.vault(f"{'winter ' * (n % 3)}garden {'or so ' * n}" for n in range(1, 10))


def from_half(bench: Bench) -> bool:
    store = pear_vault(bench)
    every = {row.id for row in search(store).rows if row.score >= 0.5}
    return {row.id for row in search(store, min_score=0.5).rows} == every != set()


def by_fusion(response: Any) -> bool:
    return bool(response.rows) and all(row.score == row.fusion_score for row in response.rows)


@each_of(STATEMENTS)
def test_gno_says(
    figure: Any, observe: Callable[[Bench], Any], bench: Bench, reranker: str
) -> None:
    assert observe(bench) == as_said(figure)


def test_what_is_missing_is_said_with_its_remedy(bench: Bench, reranker: str) -> None:
    for missing in ("vectors", "embedder", "reranker"):
        assert any("Try: " in line for line in without(bench, missing).degraded)


def test_pages_beyond_what_is_reranked_follow_in_fusion_s_order(
    bench: Bench, reranker: str
) -> None:
    store = bench.gardens(80)
    seen: list[str] = []
    token = None
    for _ in range(3):
        page = search(store, continue_=token)
        seen += [row.id for row in page.rows]
        token = page.next
    assert len(seen) == len(set(seen)) >= 20
