"""QMD, "Hybrid search": what it says, the figure, and how that is seen here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from bench import (
    LONG_AGO,
    Bench,
    Statement,
    as_said,
    each_of,
    found,
    fused,
    fusion_ranks,
    reranked,
    told_weights,
)

from memory_store.records import MemoryDraft
from memory_store.search.candidates import LegList
from memory_store.search.fusion.rank_fusion import rrf
from memory_store.search.recipes import QMD
from memory_store.search.reranking.cross_encoder import (
    PASSAGE_CHARACTERS,
    best_chunk,
    blended,
    chunk_by_terms,
    chunk_terms,
)
from memory_store.text.chunks import CHARACTERS_PER_TOKEN

if TYPE_CHECKING:
    from language_models import LanguageModels

TYPED = "winter garden\nlex: winter house\nvec: winter plants\nhyde: a garden in the winter months"
AB = ["aaa", "bbb"]
BONUS = {"first_bonus": QMD.first_bonus, "podium_bonus": QMD.podium_bonus}


# -- how things are seen --------------------------------------------------------------------


def search(store: Any, query: str = "winter garden", **options: Any) -> Any:
    return store.search(query, **{"recipe": "qmd", "explain": True, **options})


def routes(bench: Bench) -> dict[str, str]:
    """Which leg each typed line went to."""
    (fetch,) = (r for r in search(bench.gardens(5), TYPED).explain if r.stage == "fetch")
    return {one["kind"]: one["leg"] for one in fetch.details["lists"] if one["kind"] != "original"}


def per_list(bench: Bench, leg: str, kind: str = "original") -> int:
    """How many candidates a list has where there are more, whatever the limit."""
    store = bench.gardens(60)
    numbers = {found(search(store, TYPED, limit=limit), leg, kind) for limit in (1, 10, 32)}
    (number,) = numbers
    return number


def read_most(bench: Bench) -> int:
    """How many candidates are reranked of more."""
    drafts = [f"winter {n} {'garden ' * (n % 5)}" for n in range(25)]
    drafts += [f"garden {n} {'window ' * (n % 7)}" for n in range(60)]
    return reranked(search(bench.vault(drafts), TYPED))


def blended_as_said(bench: Bench) -> bool:
    """Whether every score is weight × 1/rank + (1 − weight) × the reranker's, as published."""
    store = bench.vault(f"{'winter ' * (n % 2)}garden and {'x' * n}" for n in range(1, 31))
    response = search(store, limit=32)
    ranks = fusion_ranks(response)
    assert len(ranks) > 11
    return all(
        row.score
        == pytest.approx(blended(1 / ranks[row.id], row.rerank_score, ranks[row.id]), abs=1e-5)
        for row in response.rows
    )


def chunked(bench: Bench) -> tuple[bool, bool]:
    """Whether the reranker read the chunk of a long memory that holds the query's words.

    The second has them on two far places, so that no chunk holds both.
    """
    filler = LONG_AGO * 40
    drafts = [
        MemoryDraft(f"{filler}\n\nThe zeppelin and the quagmire.\n\n{filler}", ref="together"),
        MemoryDraft(f"The zeppelin.\n\n{filler}\n\nA quagmire.\n\n{filler}", ref="apart"),
    ]
    drafts += [MemoryDraft(f"garden {n}") for n in range(5)]
    rows = {row.ref: row for row in search(bench.vault(drafts), "zeppelin quagmire").rows}
    return rows["together"].rerank_score > 0.9, rows["apart"].rerank_score > 0.9


def longest_chunk_read() -> bool:
    """Whether what the reranker gets fits its window of 512 tokens with a query of 100."""
    text = "antidisestablishmentarianism " * 2_000
    start, end = chunk_by_terms(text, "establishment", PASSAGE_CHARACTERS)
    return (end - start) / CHARACTERS_PER_TOKEN <= 512 - 100


def rows_of_one_file(bench: Bench, **options: Any) -> list[str]:
    """The files of what is returned when a file has several memories."""
    drafts = [
        MemoryDraft(f"winter garden part {n} of {name}", source="/notes", ref=f"{name}.md#{n}")
        for name in ("a", "b")
        for n in range(5)
    ]
    rows = search(bench.vault(drafts), limit=20, **options).rows
    return sorted(str(row.ref).partition("#")[0] for row in rows)


def at_least(bench: Bench, score: float) -> bool:
    store = bench.vault(f"{'winter ' * (n % 3)}garden {n}" for n in range(20))
    every = {row.id for row in search(store, limit=32).rows if row.score >= score}
    assert 0 < len(every) < 20
    return {row.id for row in search(store, limit=32, min_score=score).rows} == every


def keyword_scale(bench: Bench) -> bool:
    """Whether a keyword search's scores are b ÷ (1 + b): 0–1, and never 1."""
    rows = search(bench.gardens(9), mode="keyword").rows
    return all(0 < row.score < 1 for row in rows)


# -- the document ---------------------------------------------------------------------------

STATEMENTS: list[Statement] = [
    # Query expansion, search execution
    (
        "lex goes to keywords, vec and hyde to vectors",
        {"lex": "keyword", "vec": "vector", "hyde": "vector"},
        routes,
    ),
    ("the original query by keyword fetches", 20, lambda b: per_list(b, "keyword")),
    ("the original query by vector fetches", 20, lambda b: per_list(b, "vector")),
    ("a lex variant fetches", 20, lambda b: per_list(b, "keyword", "lex")),
    ("a vec variant fetches", 20, lambda b: per_list(b, "vector", "vec")),
    ("a hyde variant fetches", 20, lambda b: per_list(b, "vector", "hyde")),
    ("a strong signal begins at", 0.85, lambda b: QMD.strong_score),
    ("with a gap to the second of", 0.15, lambda b: QMD.strong_gap),
    ("keyword scores are below 1, as b ÷ (1 + b)", True, keyword_scale),
    # Reciprocal rank fusion
    ("first in one list: 1 ÷ (60 + 0 + 1)", 1 / 61, lambda b: rrf([["a", "b"]])["a"]),
    ("second in one list: 1 ÷ (60 + 1 + 1)", 1 / 62, lambda b: rrf([["a", "b"]])["b"]),
    ("a first place anywhere", 1 / 61 + 0.05, lambda b: rrf([["a"]], **BONUS)["a"]),
    ("a second place at best", 1 / 62 + 0.02, lambda b: rrf([["a", "b"]], **BONUS)["b"]),
    ("a third place at best", 1 / 63 + 0.02, lambda b: rrf([["a", "b", "c"]], **BONUS)["c"]),
    ("a fourth place at best", 1 / 64, lambda b: rrf([["a", "b", "c", "d"]], **BONUS)["d"]),
    ("the best place of several counts", 0.05, lambda b: best_of_two() - 1 / 62 - 1 / 61),
    (
        "the first two lists weigh 2, the others 1",
        {
            "keyword original": 2.0,
            "vector original": 2.0,
            "keyword lex": 1.0,
            "vector vec": 1.0,
            "vector hyde": 1.0,
        },
        lambda b: told_weights(search(b.gardens(30), TYPED, rerank=False)),
    ),
    ("a list of weight 2", 2 / 61 + 0.05, lambda b: fused(QMD, LegList("k", (1,), weight=2.0))[1]),
    ("candidates for reranking", 30, read_most),
    # Reranking
    ("terms of two characters do not count", ("how", "the"), lambda b: chunk_terms("How is The")),
    ("a term is found within words", 1, lambda b: best_chunk(["nothing", "reframed"], ["frame"])),
    ("the chunk with most different terms", 1, lambda b: best_chunk(["aaa aaa", "aaa bbb"], AB)),
    ("the first of equal chunks", 0, lambda b: best_chunk(["aaa", "bbb"], AB)),
    ("the first where none holds any", 0, lambda b: best_chunk(["x", "y"], AB)),
    ("the reranker reads the best chunk, and one only", (True, False), chunked),
    ("what is read fits the reranker's context", True, lambda b: longest_chunk_read()),
    # Position-aware blending
    ("rank 1: weight of fusion", 0.75, lambda b: blended(1, 0, 1)),
    ("rank 3: weight of fusion", 0.75, lambda b: blended(1, 0, 3)),
    ("rank 4: weight of fusion", 0.60, lambda b: blended(1, 0, 4)),
    ("rank 10: weight of fusion", 0.60, lambda b: blended(1, 0, 10)),
    ("rank 11: weight of fusion", 0.40, lambda b: blended(1, 0, 11)),
    ("its first example, rank 2", 0.45, lambda b: round(blended(1 / 2, 0.30, 2), 3)),
    ("its second example, rank 15", 0.537, lambda b: round(blended(1 / 15, 0.85, 15), 3)),
    ("a search scores with 1 ÷ rank as fusion's score", True, blended_as_said),
    # Pipeline summary
    ("one result per file", ["a.md", "b.md"], rows_of_one_file),
    ("and without a reranker", ["a.md", "b.md"], lambda b: rows_of_one_file(b, rerank=False)),
    ("minScore leaves out what scores less", True, lambda b: at_least(b, 0.5)),
    ("top K: the requested limit", 4, lambda b: len(search(b.gardens(40), limit=4).rows)),
]


def best_of_two() -> float:
    """The score of what stands second in one list and first in another."""
    return rrf([["x", "a"], ["a"]], **BONUS)["a"]


@each_of(STATEMENTS)
def test_qmd_says(
    figure: Any, observe: Callable[[Bench], Any], bench: Bench, reranker: str
) -> None:
    assert observe(bench) == as_said(figure)


def test_why_says_what_stands_for_a_file(bench: Bench, reranker: str) -> None:
    drafts = [
        MemoryDraft(f"winter garden {'or so ' * n}", source="/notes", ref=f"a.md#{n}")
        for n in range(6)
    ]
    store = bench.vault(drafts)
    (shown,) = search(store).rows
    other = next(memory for memory in store.list() if memory.id != shown.id)
    for rerank in (True, False):
        reported = search(store, why=other.id, rerank=rerank).why
        assert "same file" in reported["reason"]


class TestStrongSignal:
    """A keyword match of .85 that leads by .15 makes expansion superfluous."""

    def expanded(self, bench: Bench, models: LanguageModels, *marked: str, **options: Any) -> bool:
        """Whether a search for ``zeppelin`` is expanded, among 300 other notes."""
        store = bench.vault([f"winter garden {n}" for n in range(300)], embed=False)
        store.add_many((MemoryDraft(text) for text in marked), embed=False)
        response = search(store, "zeppelin", expander="good", **options)
        (fetch,) = (report for report in response.explain if report.stage == "fetch")
        return any(one["kind"] == "lex" for one in fetch.details["lists"])

    def test_it_skips_expansion(self, bench: Bench, language_models: LanguageModels) -> None:
        assert not self.expanded(bench, language_models, "zeppelin zeppelin")
        assert language_models.given("good") == []

    def test_else_the_model_gets_the_prompt_of_the_document(
        self, bench: Bench, language_models: LanguageModels
    ) -> None:
        search(bench.gardens(5), "winter garden", expander="sampling")
        prompt = "/no_think Expand this search query: winter garden"
        assert language_models.given("sampling") == [("", prompt)]

    def test_a_second_match_as_good_is_no_signal(
        self, bench: Bench, language_models: LanguageModels
    ) -> None:
        assert self.expanded(bench, language_models, "zeppelin zeppelin", "a zeppelin zeppelin")

    def test_a_weak_match_is_no_signal(self, bench: Bench, language_models: LanguageModels) -> None:
        long = "zeppelin " + "or so it was said on the day before " * 40
        assert self.expanded(bench, language_models, long)

    def test_without_expansion_nothing_is_asked(
        self, bench: Bench, language_models: LanguageModels
    ) -> None:
        long = "zeppelin " + "or so it was said on the day before " * 40
        assert not self.expanded(bench, language_models, long, expand=False)
