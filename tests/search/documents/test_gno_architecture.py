"""GNO, "Architecture": what it says of search and index, the figure, and how that is seen here."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from bench import Bench, Statement, as_said, each_of, found, fused, long_text, reranked

from memory_store.records import MemoryDraft
from memory_store.search.candidates import LegList
from memory_store.search.recipes import GNO
from memory_store.text.chunks import CHARACTERS_PER_TOKEN, passages

if TYPE_CHECKING:
    from language_models import LanguageModels

LONG = long_text("")
PROSE = "".join(f"Sentence number {n} says what it has to say. " for n in range(600))


# -- how things are seen --------------------------------------------------------------------


def search(store: Any, query: str = "winter garden", **options: Any) -> Any:
    return store.search(query, **{"recipe": "gno", "explain": True, "limit": 20, **options})


def longest_chunk() -> bool:
    """Whether chunks are about 800 tokens: no longer, and all but the last at least half."""
    lengths = [(end - start) / CHARACTERS_PER_TOKEN for start, end in passages(PROSE)]
    return len(lengths) > 5 and max(lengths) <= 800 and min(lengths[:-1]) > 400


def greatest_overlap() -> bool:
    """Whether each chunk repeats of the one before up to 15 % of 800 tokens, and something."""
    spans = passages(PROSE)
    shared = [before.end - after.start for before, after in pairwise(spans)]
    return all(0 < one <= 0.15 * 800 * CHARACTERS_PER_TOKEN for one in shared)


def imported_twice(bench: Bench, folder: Path) -> tuple[int, int]:
    """How many files are imported anew and how many recognised, the second time."""
    for n in range(3):
        (folder / f"{n}.md").write_text(f"# Note {n}\n\nwinter garden {n}\n", "utf-8")
    store = bench.vault()
    store.import_paths(folder)
    again = store.import_paths(folder)
    return again.imported, again.unchanged


def times_embedded(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many windows are embedded for a content that is there already."""
    store = bench.vault([MemoryDraft("winter garden", title="Plan")])
    embedder = store.embedder()
    asked: list[str] = []
    embed = type(embedder).embed

    def counted(self: Any, texts: Any, *rest: Any, **options: Any) -> Any:
        asked.extend(texts)
        return embed(self, texts, *rest, **options)

    monkeypatch.setattr(type(embedder), "embed", counted)
    store.add("winter garden", title="Plan", collection="elsewhere")
    return len(asked)


def apart(bench: Bench, mode: str) -> list[str | None]:
    """What is found for two words that stand in different chunks of one memory, best first."""
    text = f"The barometer fell. {long_text('The sextant was sold.', 4_000)}"
    drafts = [MemoryDraft(text, title="", ref="both")]
    drafts += [MemoryDraft(f"barometer {LONG[:4_000]}", title="", ref=f"one {n}") for n in range(2)]
    drafts += [MemoryDraft(f"nothing of the kind, {n}", ref="none") for n in range(8)]
    return [row.ref for row in search(bench.vault(drafts), "barometer sextant", mode=mode).rows]


def word_of_the_title(bench: Bench) -> str | None:
    """What is nearest to a word that only a title says."""
    drafts = [MemoryDraft("It was settled on Friday.", title="Physician", ref="titled")]
    drafts += [MemoryDraft(f"It was settled on day {n}.", title=f"Day {n}") for n in range(5)]
    return search(bench.vault(drafts), "physician", mode="vector").rows[0].ref


def last_sentence(bench: Bench, mode: str) -> str | None:
    """What is nearest to a fact that only the last sentence of a long memory says."""
    drafts = [MemoryDraft(long_text("The physician moved it to Friday."), ref="long")]
    drafts += [MemoryDraft(f"Nothing of note on day {n}") for n in range(6)]
    return search(bench.vault(drafts), "physician friday", mode=mode).rows[0].ref


def read_whole(bench: Bench) -> bool:
    """Whether the reranker has read the last of five pages."""
    drafts = [MemoryDraft(long_text("Harper plays the bassoon.", 9_000), ref="long")]
    drafts += [MemoryDraft(f"garden {n}") for n in range(6)]
    rows = search(bench.vault(drafts), "Harper bassoon").rows
    return next(row for row in rows if row.ref == "long").rerank_score > 0.9


def german(bench: Bench) -> str:
    """The language a German question is taken for, where both are at home."""
    texts = [f"Der Garten im Winter ist nun schon zum {n}. Mal verschneit." for n in range(4)]
    texts += [f"The garden in winter has been full of snow {n} times." for n in range(6)]
    response = search(bench.vault(texts), "Wie sieht der verschneite Garten im Winter aus?")
    (report,) = (report for report in response.explain if report.stage == "analyse")
    return str(report.details["language"])


def first(place: int) -> float:
    """What the original query's list gives to a place (from 1), bonus included."""
    ordinals = tuple(range(1, 6))
    return fused(GNO, LegList("keyword", ordinals, weight=GNO.original_weight))[place]


def sorted_by_score(bench: Bench) -> bool:
    scores = [row.score for row in search(bench.gardens(20)).rows]
    return scores == sorted(scores, reverse=True)


# -- the document ---------------------------------------------------------------------------

STATEMENTS: list[Statement] = [
    # Ingestion
    ("chunks are about 800 tokens", True, lambda b: longest_chunk()),
    ("and overlap by up to 15 %", True, lambda b: greatest_overlap()),
    ("what is decomposed is stored composed (NFC)", True, lambda b: composed(b)),
    ("a title is context of its chunks' vectors", "titled", word_of_the_title),
    # Search pipeline
    ("the query's language is detected", "de", german),
    ("keyword-only mode runs that leg alone", {"keyword"}, lambda b: legs(b, "keyword")),
    ("vector mode runs that leg alone", {"vector"}, lambda b: legs(b, "vector")),
    ("hybrid is keyword and vector", {"keyword", "vector"}, lambda b: legs(b, "hybrid")),
    ("keywords count per document, not chunk", "both", lambda b: apart(b, "keyword")[0]),
    ("vectors of chunks give each document once", 1, lambda b: apart(b, "vector").count("both")),
    ("a chunk's vector finds its document", "long", lambda b: last_sentence(b, "vector")),
    ("RRF: k = 60, the original counted twice", 2 / 64, lambda b: first(4)),
    ("tiered bonus: first place", 2 / 61 + 0.05, lambda b: first(1)),
    ("tiered bonus: second place", 2 / 62 + 0.02, lambda b: first(2)),
    ("tiered bonus: third place", 2 / 63 + 0.02, lambda b: first(3)),
    ("tiered bonus: none from the fourth on", 2 / 65, lambda b: first(5)),
    ("the reranker reads whole documents", True, read_whole),
    ("results are sorted by blended score", True, sorted_by_score),
    # Graceful degradation
    ("without vectors keywords go on", 2, lambda b: len(search(bare(b)).rows)),
    ("without a reranking model the search goes on", 0, lambda b: reranked(search(b.gardens(3)))),
]


def composed(bench: Bench) -> bool:
    store = bench.vault([MemoryDraft(unicodedata.normalize("NFD", "ein Café im Grünen"))])
    (row,) = search(store, "Café", mode="keyword").rows
    return unicodedata.is_normalized("NFC", row.preview)


def legs(bench: Bench, mode: str) -> set[str]:
    response = search(bench.gardens(5), mode=mode)
    (report,) = (report for report in response.explain if report.stage == "fetch")
    assert all(found(response, one["leg"]) == 5 for one in report.details["lists"])
    return {one["leg"] for one in report.details["lists"]}


def bare(bench: Bench) -> Any:
    return bench.vault(["winter garden", "garden"], embed=False)


@each_of(STATEMENTS)
def test_gno_says(
    figure: Any, observe: Callable[[Bench], Any], bench: Bench, request: pytest.FixtureRequest
) -> None:
    if observe is read_whole:
        request.getfixturevalue("reranker")
    assert observe(bench) == as_said(figure)


def test_an_unchanged_file_is_not_imported_again(bench: Bench, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    assert imported_twice(bench, folder) == (0, 3)


def test_equal_contents_share_their_vectors(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    assert times_embedded(bench, monkeypatch) == 0


def test_a_confident_keyword_match_skips_expansion(
    bench: Bench, language_models: LanguageModels
) -> None:
    store = bench.vault([f"winter garden {n}" for n in range(300)], embed=False)
    store.add_many([MemoryDraft("zeppelin zeppelin")], embed=False)
    search(store, "zeppelin", expander="good")
    assert language_models.given("good") == []
    search(store, "zeppelin garden", expander="good", expand=False)
    assert language_models.given("good") == []
    search(store, "garden", expander="good")
    assert len(language_models.given("good")) == 1
