"""``make bench`` measures what it says: every part of it runs, at a size that takes seconds."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # benchmarks are no part of the package

from benchmarks import (
    cold,
    cross_encoder,
    legs,
    operations,
    processes,
    sealing,
    searches,
    speed,
    two_clients,
)
from benchmarks.generated import IntoFts5, draw_vault
from benchmarks.large import large_lines
from benchmarks.measuring import Spent
from benchmarks.operations import Bench
from benchmarks.peers import Fts5, NumpyPostings
from benchmarks.report import Amount, Held, Line, Proportion, as_data, tables
from benchmarks.vaults import random_units
from benchmarks.vector_leg import recall, vector_lines
from memory_store.models.embedder import Embedder, load_embedder
from memory_store.store import MemoryStore


@pytest.fixture
def model(tiny_model: Path, private_folders: Path, monkeypatch: pytest.MonkeyPatch) -> Embedder:
    """A model that is small enough."""
    monkeypatch.setenv("MEMORY_STORE_MODEL", str(tiny_model))
    return load_embedder()


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    (tmp_path / "keys").mkdir()
    return tmp_path / "keys" / "bench.key"


@pytest.mark.sampled(0)
def test_a_drawn_vault_is_a_vault_like_any_other(
    model: Embedder, tmp_path: Path, key_file: Path
) -> None:
    with IntoFts5(tmp_path / "fts5.db") as filling:
        drawn = draw_vault(tmp_path / "drawn.db", key_file, 300, model, also=[filling])
    fts5 = Fts5(tmp_path / "fts5.db")
    with MemoryStore.open(drawn.path, key_file=key_file) as store:
        amiss = store.verify()["failures"]  # the vectors are drawn: those of no text
        assert [one for one in amiss if "in: vectors;" not in one] == []
        assert store.stats()["memories"] == 300
        postings = NumpyPostings(store.search_context(), drawn.queries)
        for query in drawn.queries[:3]:
            rows = store.search(query, mode="keyword", limit=10).rows
            assert {row.title for row in rows} & {
                one[1].split("\n")[0] for one in _top(fts5, query)
            }
            best = store.search_context().snapshot.ids(np.asarray(postings.rank(query))[:10])
            assert {row.id for row in rows} & set(best), "the limit ranks the same notes first"
        assert store.search(f'"{rows[0].title}"', mode="keyword").rows[0].id == rows[0].id
        words = MemoryStore.open(drawn.path, key_file=key_file).search_context().snapshot
        assert words.vectors == 300


def test_without_texts_legs_run_all_the_same(tmp_path: Path, key_file: Path) -> None:
    drawn = draw_vault(tmp_path / "drawn.db", key_file, 50, None, texts=False)
    with MemoryStore.open(drawn.path, key_file=key_file) as store:
        assert store.rank(drawn.queries[0], mode="keyword").results
        assert store.stats()["contents"] == 0


def _top(fts5: Fts5, query: str) -> list[tuple[str, str]]:
    found = fts5.rank(query)[:20]
    marks = ", ".join("?" * len(found))
    rows = fts5._connection.execute(f"select path, body from notes where rowid in ({marks})", found)
    return [(path, body) for path, body in rows]


@pytest.mark.soak  # a minute
def test_every_part_is_measured_beside_its_peer(
    model: Embedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, repeated in (
        *((operations, "REPEATS"), (processes, "STARTS")),
        *((searches, "UNLOCKS"), (two_clients, "TURNS")),
        *((cold, "COLD_STARTS"), (legs, "TURNS"), (sealing, "TURNS")),
    ):
        monkeypatch.setattr(module, repeated, 1)
    bench = Bench(tmp_path / "imported", 40, model)
    lines = [*bench.vault_lines(), *bench.sealing(), *vector_lines(500)]
    lines += large_lines(tmp_path / "drawn", 60, model)
    peers = {line.peer for line in lines if isinstance(line, Line)}
    assert {"FTS5 bm25", "NumPy postings", "NumPy float32 matmul", "AES-GCM of the bytes"} <= peers
    assert {line.process for line in lines if isinstance(line, Held)} == {"keyword", "hybrid"}
    assert all(line.ours.wall > 0 for line in lines if isinstance(line, Line))
    assert any("two clients" in line.operation for line in lines if isinstance(line, Proportion))
    shown = tables(lines)
    assert shown.count("leg alone") == 2, "two vaults, each with the slowest of its legs"
    assert shown.count("null cipher") == 2, "by words, and by meaning too"
    for started in ("memory-store --help", "keyword search", "hybrid search"):
        assert f"{started}, cold" in shown
    weighed = [line for line in lines if isinstance(line, Amount)]
    assert {line.operation for line in weighed} >= {
        "vector index in memory",
        "memory of a vector query, half filtered out",
        "database size, words and vectors",
        "sealed index, words and vectors",
    }
    assert all(line.ours > 0 and line.theirs > 0 for line in weighed)
    for ranked in ("keyword ranking, 8 words", "keyword ranking, in a row"):
        assert shown.count(ranked) == 4, "two vaults, two peers"
    assert "more like this, ranked by words" in shown
    assert json.loads(json.dumps([as_data(line) for line in lines]))[0]["kind"] == "Line"


def test_the_scan_is_held_against_an_exact_search() -> None:
    vectors, queries = random_units(900), random_units(3, seed=8)
    assert recall(vectors, queries, 64) == 1.0, "it fetches 24 times as many, which is all"
    assert 0.2 < recall(random_units(4_000), queries, 4) <= 1.0


@pytest.mark.sampled(0)
def test_a_cross_encoder_of_random_weights_reads_every_pair(
    model: Embedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cross_encoder, "QUERIES", 2)
    monkeypatch.setattr(cross_encoder, "PIECES", 3_000)
    lines = list(cross_encoder.reranking_lines(tmp_path / "reread", 90))
    reported = [line.operation.split() for line in lines]
    assert [words[:2] for words in reported] == [["standard", "search,"], ["deep", "search,"]]
    assert all(
        int(words[2]) > 0 and line.theirs for words, line in zip(reported, lines, strict=True)
    )


def test_a_target_is_met_or_missed_by_what_is_said() -> None:
    fast, slow = Spent(0.004, 0.005), Spent(0.008, 0.010)
    line = Line("leg", 10, fast, "peer", slow, "≤ 5 ms", 0.005)
    assert line.cells()[-3:] == ("0.50", "≤ 5 ms", "yes")
    assert Line("leg", 10, slow, "peer", fast, "≤ 5 ms", 0.005).cells()[-1] == "1.6 × over"
    copied = Amount("a query", 10, 2.4e6, "the index", 93e6, "< 0.1 ×", 0.1)
    assert copied.cells()[2:] == ("2.4 MB", "the index", "93 MB", "0.03", "< 0.1 ×", "yes")
    assert Amount("scan", 10, 4.7e9, "memcpy", 11e9, unit="B/s").cells()[2] == "4.7 GB/s"
    assert Proportion("recall", 10, 0.989, "≥ .99", 0.99, at_least=True).cells()[-1] == "no"
    assert Proportion("recall", 10, 0.99, "≥ .99", 0.99, at_least=True).cells()[-1] == "yes"


def test_the_quick_run_leaves_the_million_out() -> None:
    assert max(speed.QUICK.vectors) == max(speed.QUICK.drawn) == 100_000
    assert max(speed.FULL.vectors) == max(speed.FULL.drawn) == 1_000_000
