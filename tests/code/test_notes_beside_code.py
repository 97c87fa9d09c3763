"""A search over notes and code: each ranked by its own recipe, merged by probability."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny_reranker import build as build_tiny_reranker

from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore

QUESTION = "where are session cookies signed"
FILES = {
    "shop/sessions.py": "class Session:\n    def sign_cookie(self):\n        return signed(1)\n",
    "shop/views.py": "def show(session):\n    return session.cookies\n",
    "shop/sums.py": "def total(prices):\n    return sum(prices)\n",
    "README.md": "# Shop\n\nSession cookies are signed. This page says where cookies are signed.\n",
    "tests/test_sessions.py": "def test_session_cookies_are_signed():\n    assert 1\n",
    **{f"shop/part_{n}.py": f"def part_{n}():\n    return {n}\n" for n in range(12)},
}
NOTES = (
    "Session cookies are signed where the till is, said Ada",
    "The garden needs water before the party",
    "Ask the baker where the oat cookies are",
    *(f"Weather of day {n} of the year" for n in range(12)),
)


@pytest.fixture
def store(make_store: Callable[..., MemoryStore], tmp_path: Path) -> MemoryStore:
    """A collection of notes and one of a repository, which has prose of its own."""
    store = make_store()
    store.add_many(MemoryDraft(text, ref=text) for text in NOTES)
    tree = tmp_path / "tree"
    for name, text in FILES.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text, "utf-8")
    (tree / ".git").mkdir()
    store.import_paths([tree], collection="shop", embed=False)
    return store


def test_code_stands_in_the_order_of_its_own_recipe(store: MemoryStore) -> None:
    both = [row.ref for row in store.search(QUESTION, rerank=False).rows]
    alone = [row.ref for row in store.search(QUESTION, collection="shop").rows]
    assert alone[0] == "shop/sessions.py"
    assert [ref for ref in both if ref in FILES] == alone
    assert {NOTES[0], *alone} <= set(both)


def test_notes_keep_the_place_that_their_own_recipe_gives_them(store: MemoryStore) -> None:
    rows = store.search(QUESTION, rerank=False).rows
    scores = [row.score for row in rows]
    assert scores == sorted(scores, reverse=True)
    assert NOTES[0] in {row.ref for row in rows[:3]}
    assert store.search("water for the garden party", rerank=False).rows[0].ref == NOTES[1]


def test_an_explanation_says_what_the_place_among_code_added(store: MemoryStore) -> None:
    found = store.search(QUESTION, rerank=False, explain=True)
    (results,) = [report.details["results"] for report in found.explain if report.stage == "adjust"]
    told = {row.ref: one for row, one in zip(found.rows, results, strict=True)}
    account = told["shop/sessions.py"]
    (part,) = [one for one in account["contributions"] if one["kind"] == "code"]
    assert part["rank"] == 1
    assert part["term"] > 0
    whole = math.fsum(one["term"] for one in account["contributions"])
    assert 1 / (1 + math.exp(-whole)) == pytest.approx(account["fusion_score"], abs=1e-4)
    assert "code" not in {one["kind"] for one in told[NOTES[0]]["contributions"]}


def test_a_reranker_says_how_code_stands_among_notes_and_not_which_code_is_first(
    store: MemoryStore, tmp_path: Path
) -> None:
    model = str(build_tiny_reranker(tmp_path / "reranker"))
    read = store.search(QUESTION, reranker=model)
    assert read.counts.startswith("Reranked")
    alone = [row.ref for row in store.search(QUESTION, collection="shop").rows]
    assert [row.ref for row in read.rows if row.ref in FILES] == alone
    scores = [row.score for row in read.rows]
    assert scores == sorted(scores, reverse=True)
