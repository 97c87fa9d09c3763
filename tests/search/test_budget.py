"""A token budget is a hard ceiling: what does not fit is skipped, and comes on the next page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_store.records import MemoryDraft, SearchResponse
from memory_store.search.answer.response import spend
from memory_store.store import MemoryStore
from memory_store.text import token_count
from memory_store.text.token_count import ESTIMATE, VOCABULARY, tokens

WORDS = "winter garden"


@pytest.fixture(autouse=True)
def no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """None that counts is installed, for all that is known."""
    for name in ("FASTER", "OTHER"):
        monkeypatch.setattr(token_count, name, "no_such_library")


@pytest.fixture
def mixed(store: MemoryStore) -> MemoryStore:
    """Thirty notes of very different lengths."""
    store.add_many(
        MemoryDraft(
            f"winter garden {n} " + "long words follow here " * (n * 5 % 17),
            title=f"Note {n}",
            topics=("log",),
            ref=str(n),
        )
        for n in range(30)
    )
    return store


def cost(store: MemoryStore, response: SearchResponse) -> int:
    """What the rows cost by the way of counting that the response names."""
    assert response.budget is not None
    counted_with = response.budget["counted_with"]
    count = tokens
    if counted_with not in (ESTIMATE, VOCABULARY):
        embedder = store.embedder()
        assert counted_with == embedder.name
        count = embedder.count_tokens
    return sum(count(f"{row.title}\n{row.preview}") for row in response.rows)


@given(costs=st.lists(st.integers(0, 50), max_size=40), budget=st.integers(1, 60))
def test_a_budget_takes_in_order_what_fits(costs: list[int], budget: int) -> None:
    spending = spend(costs, budget)
    assert spending.spent == sum(costs[n] for n in spending.taken) <= budget
    assert sorted(spending.taken + spending.skipped + spending.too_large) == [*range(len(costs))]
    assert all(costs[n] > budget for n in spending.too_large)
    for n in spending.skipped:
        before = sum(costs[m] for m in spending.taken if m < n)
        assert before + costs[n] > budget


@given(costs=st.lists(st.integers(0, 50), max_size=40), budget=st.integers(1, 60))
def test_page_after_page_every_row_is_taken_once_or_too_large(
    costs: list[int], budget: int
) -> None:
    waiting, taken, pages = list(range(len(costs))), [], 0
    while waiting:
        spending = spend([costs[n] for n in waiting], budget)
        taken += [waiting[n] for n in spending.taken]
        waiting = [waiting[n] for n in spending.skipped]
        pages += 1
        assert pages <= len(costs)
    assert sorted(taken) == [n for n, tokens in enumerate(costs) if tokens <= budget]


@pytest.mark.parametrize(
    ("query", "options"),
    [
        (WORDS, {"rerank": False}),
        (WORDS, {"mode": "keyword"}),
        (WORDS, {"sealed": True}),
        (r"garden \d+", {"mode": "literal"}),
        ('"winter garden"', {"rerank": False}),
        ("topic:log", {}),
    ],
    ids=["hybrid", "keyword", "sealed", "literal", "a phrase", "filters alone"],
)
def test_following_next_shows_every_row_once_or_says_it_is_too_large(
    mixed: MemoryStore, query: str, options: dict[str, Any]
) -> None:
    everything: set[str] = set()
    token = None
    while True:
        page = mixed.search(query, limit=32, continue_=token, **options)
        everything |= {row.id for row in page.rows}
        token = page.next
        if token is None:
            break
    for budget in (1, 12, 20, 33, 64, 150, 5_000):
        shown, large, token = [], [], None
        for _ in range(100):
            page = mixed.search(query, limit=7, budget=budget, continue_=token, **options)
            assert page.budget is not None
            assert cost(mixed, page) == page.budget["spent"] <= budget
            shown += [row.id for row in page.rows]
            large += [one["id"] for one in page.budget["too_large"]]
            assert [row.rank for row in page.rows] == list(
                range(len(shown) - len(page.rows) + 1, len(shown) + 1)
            )
            token = page.next
            if token is None:
                break
        assert token is None, budget
        assert sorted(shown + large) == sorted(everything), budget
        assert not large or budget < 150


def test_what_was_skipped_comes_first_on_the_next_page(mixed: MemoryStore) -> None:
    whole = [row.id for row in mixed.search(WORDS, limit=10, mode="keyword").rows]
    first = mixed.search(WORDS, limit=10, mode="keyword", budget=60)
    assert first.budget is not None
    left = [memory for memory in whole if memory not in {row.id for row in first.rows}]
    assert first.budget["skipped"] == len(left) > 0
    second = mixed.search(WORDS, limit=10, mode="keyword", budget=5_000, continue_=first.next)
    assert [row.id for row in second.rows][: len(left)] == left


def test_a_row_larger_than_the_whole_budget_is_named_with_its_size(store: MemoryStore) -> None:
    large = store.add("winter " * 40, title="large")
    small = store.add("winter", title="small")
    page = store.search("winter", mode="keyword", budget=10)
    assert page.budget is not None
    assert [row.id for row in page.rows] == [small.id]
    assert [one["id"] for one in page.budget["too_large"]] == [large.id]
    assert page.budget["too_large"][0]["tokens"] > 10
    assert (page.next, page.truncated) == (None, True)


def test_a_whole_text_too_large_for_the_budget_is_shown_in_part(
    store: MemoryStore, reranker: str
) -> None:
    filler = "more words follow here to make it longer than a preview. " * 10
    store.add_many(MemoryDraft(f"spare key {n} {filler}") for n in range(6))
    free = store.search("spare key").rows
    assert free[0].complete
    whole = store.embedder().count_tokens(f"{free[0].title}\n{free[0].preview}")
    tight = store.search("spare key", budget=whole - 1)
    assert tight.rows[0].id == free[0].id
    assert not tight.rows[0].complete
    assert tight.budget is not None
    assert tight.budget["spent"] < whole


def test_the_tokenizer_counts_where_one_is_loaded(mixed: MemoryStore) -> None:
    by_model = mixed.search(WORDS, budget=100, rerank=False).budget
    by_length = mixed.search(WORDS, budget=100, mode="keyword").budget
    assert by_model is not None
    assert by_model["counted_with"] == mixed.embedder().name
    assert by_length is not None
    assert by_length["counted_with"] == "length / 4"
    assert mixed.search(WORDS).budget is None


def test_a_sealed_search_says_what_it_opened_only_to_measure(mixed: MemoryStore) -> None:
    page = mixed.search(WORDS, sealed=True, budget=60)
    assert page.budget is not None
    unseen = page.opened - len(page.rows)
    assert unseen == page.budget["skipped"] + len(page.budget["too_large"]) > 0
    assert any(f"{unseen} more were opened" in line for line in page.degraded)


@pytest.mark.parametrize(
    ("library", "module", "names"),
    [
        ("FASTER", "rs_bpe/bpe.py", "class openai:\n    cl100k_base = Words"),
        ("OTHER", "bpe_openai/__init__.py", ""),
    ],
)
def test_tokens_are_exact_where_a_library_counts_them_and_it_is_said(
    mixed: MemoryStore,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    library: str,
    module: str,
    names: str,
) -> None:
    """The library of this test counts words."""
    package = tmp_path / module
    monkeypatch.setattr(token_count, library, package.parent.name)
    package.parent.mkdir()
    (package.parent / "__init__.py").write_text("")
    package.write_text(
        "class Words:\n    def count(self, text):\n        return len(text.split())\n\n"
        "    def encode_ordinary(self, text):\n        return text.split()\n\n\n"
        f"def get_encoding(name):\n    return Words()\n\n\n{names}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    forget(package.parent.name)
    token_count._counter.cache_clear()
    try:
        page = mixed.search(WORDS, budget=30)
        assert page.budget is not None
        assert page.budget["counted_with"] == "cl100k_base"
        words = [len(f"{row.title}\n{row.preview}".split()) for row in page.rows]
        assert sum(words) == page.budget["spent"] <= 30
    finally:
        token_count._counter.cache_clear()
        forget(package.parent.name)


def forget(package: str) -> None:
    """Have a package, and what is in it, imported anew."""
    for name in [one for one in sys.modules if one.split(".")[0] == package]:
        del sys.modules[name]


def test_the_library_counts_as_the_vocabulary_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    if not token_count.is_exact():
        pytest.skip("no library that counts is installed")
    assert token_count.exact("def open_lid(self):\n    return 1\n") == 11
    assert token_count.exact("\ud800 <|endoftext|>") > 3
