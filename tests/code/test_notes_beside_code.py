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
WITHOUT = {None: "the recipe code", "prx": "the recipe prx", "keyword": "a keyword search"}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository, which has prose of its own."""
    tree = tmp_path / "tree"
    for name, text in FILES.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text, "utf-8")
    (tree / ".git").mkdir()
    return tree


@pytest.fixture
def store(make_store: Callable[..., MemoryStore], tree: Path) -> MemoryStore:
    """A collection of notes and one of a repository."""
    store = make_store()
    store.add_many(MemoryDraft(text, ref=text) for text in NOTES)
    store.import_paths([tree], collection="shop", embed=False)
    return store


@pytest.fixture(params=[12, 40], ids=["mostly code", "mostly notes"])
def together(
    make_store: Callable[..., MemoryStore], tree: Path, request: pytest.FixtureRequest
) -> MemoryStore:
    """The same in one collection."""
    store = make_store("together.db")
    more = [f"Price {n} of oats" for n in range(request.param)]
    store.add_many(MemoryDraft(text, ref=text) for text in (*NOTES, *more))
    store.import_paths([tree], embed=False)
    return store


def test_code_stands_in_the_order_of_its_own_recipe(store: MemoryStore) -> None:
    both = [row.ref for row in store.search(QUESTION, rerank=False).rows]
    alone = [row.ref for row in store.search(QUESTION, collection="shop").rows]
    assert alone[0] == "shop/sessions.py"
    assert [ref for ref in both if ref in FILES] == alone
    assert {NOTES[0], *alone} <= set(both)


def test_so_it_does_in_one_collection_with_notes(together: MemoryStore, store: MemoryStore) -> None:
    rows = together.search(QUESTION, rerank=False).rows
    refs = [row.ref for row in rows]
    alone = [row.ref for row in store.search(QUESTION, collection="shop").rows]
    assert [ref for ref in refs if ref in FILES][: len(alone)] == alone
    assert refs.index("README.md") > refs.index("shop/sessions.py")
    assert NOTES[0] in refs[:3], "no prose of a repository, so nothing lowers it"
    assert together.search("water for the garden party", rerank=False).rows[0].ref == NOTES[1]


def test_a_folder_of_notes_with_a_script_is_no_repository(
    make_store: Callable[..., MemoryStore], tmp_path: Path
) -> None:
    store = make_store()
    (tmp_path / "notes" / ".git").mkdir(parents=True)
    for number, text in enumerate(NOTES):
        (tmp_path / "notes" / f"note-{number}.md").write_text(text, "utf-8")
    (tmp_path / "notes" / "cookies.py").write_text("def sign_cookies():\n    pass\n", "utf-8")
    store.import_paths([tmp_path / "notes"], embed=False)
    rows = store.search(QUESTION, rerank=False).rows
    assert rows[0].ref == "note-0.md"
    assert "cookies.py" in {row.ref for row in rows}


def test_a_repository_by_itself_is_searched_as_code_until_notes_join_it(
    make_store: Callable[..., MemoryStore], tree: Path
) -> None:
    store = make_store()
    store.import_paths([tree], embed=False)
    assert not any("vectors" in line for line in store.search(QUESTION).degraded)
    note = store.add(NOTES[0])
    assert note.id in {row.id for row in store.search(QUESTION, rerank=False).rows[:3]}


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


def test_so_does_late_interaction(store: MemoryStore) -> None:
    store.embed_missing()
    read = store.search(QUESTION, reranker="maxsim")
    assert read.counts.startswith("Reranked 16 of")
    alone = [row.ref for row in store.search(QUESTION, collection="shop").rows]
    of_code = [row.ref for row in read.rows if row.ref in FILES]
    assert of_code == alone[: len(of_code)]
    assert {"README.md", "shop/sessions.py"} <= set(of_code)


@pytest.mark.parametrize("more", [{}, {"recipe": "prx"}, {"mode": "keyword"}])
def test_where_no_reranker_reads_the_answer_says_so(
    store: MemoryStore, more: dict[str, str]
) -> None:
    found = store.search(QUESTION, collection="shop", reranker="maxsim", **more)
    (line,) = [one for one in found.degraded if one.startswith("reranker: ")]
    assert line == f"reranker: {WITHOUT[more.get('recipe', more.get('mode'))]} ranks without one"
    usual = store.search(QUESTION, collection="shop", **more)
    assert [row.id for row in found.rows] == [row.id for row in usual.rows]
    assert not any(one.startswith("reranker: ") for one in usual.degraded)
