"""A search decrypts as many memories as its answer says, and never more than the documents allow.

What is counted is counted by the one function that decrypts (``MemoryStore.decrypted``), not by the
search that is on trial.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tiny_reranker
from asking import Asker, Question, fill
from counts import FULL, counted

from memory_store.errors import BadInputError
from memory_store.records import SearchResponse
from memory_store.scopes import Scope
from memory_store.store import MemoryStore

HEADS, BODIES = "memories.head", "memory_bodies.body"
POOL, DEEP_POOL = 64, 256  # docs/how-it-works/search.md, "How many were opened"
LITERAL = 256
TRIES, DEEP_TRIES = 256, 1_000
FOUND = {"prx": 5, "gno": 2}  # so many times the limit: all that a leg found, or a typed line
TYPED = ("lex:", "vec:", "hyde:")
PAGES = 3

SIZES = (1_000, 10_000, 100_000) if FULL else (1_000,)
QUESTIONS = {size: counted(10_000) for size in SIZES} | {100_000: counted(1_000)}
"""That are answered, in a vault of each size: in the largest, a question that names a ref opens
100,000 heads to look for it."""
LEAFED = 4  # of so many questions one is asked for its later pages, too


@pytest.fixture
def reranker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cross-encoder, so that searches read their pools."""
    tiny_reranker.chosen(tmp_path, monkeypatch)


def bound(query: str, options: dict[str, Any]) -> int:
    """The most that the documents allow this search to open."""
    deep = options.get("deep", False)
    if options.get("mode") == "literal":
        return LITERAL
    most = DEEP_POOL if deep else POOL
    if options.get("rerank", True):
        lists = 2 + sum(line.startswith(TYPED) for line in query.split("\n"))
        found = lists * FOUND.get(options.get("recipe", ""), 0) * options.get("limit", 10)
        if options.get("recipe") == "prx" and "like" in options:
            found = DEEP_TRIES  # and what its words, topics and vectors found: each is a list
        most = max(most, min(found, DEEP_TRIES if deep else TRIES))
    tries = DEEP_TRIES if deep else TRIES
    if any(sign in query for sign in ('"', " -")) or query.startswith("-") or "meta" in options:
        most = max(most, tries)
    if '"' in query:  # if nothing holds what a sentence quotes, also the search by its words
        most += tries if "meta" in options else options.get("limit", 10)
        most += tries if "continue_" in options else 0  # and the first page, which says whether
    return most


def names_a_ref(store: MemoryStore, given: str | None) -> bool:
    """Whether it is no id: every head is opened for one where the index has no names yet."""
    return given is not None and not store.present([given])


def asked(
    store: MemoryStore, question: Question, memories: int
) -> tuple[SearchResponse | None, int]:
    """The answer (``None``: refused) and how many memories were decrypted for it."""
    query, options = question
    before = Counter(store.decrypted)
    try:
        answer = store.search(query, **options)
    except BadInputError:
        answer = None
    spent = Counter(store.decrypted) - before
    looked_for = len([name for name in ("like", "why") if names_a_ref(store, options.get(name))])
    for_refs = spent[HEADS] - spent[BODIES]
    assert 0 <= for_refs <= looked_for * memories, question
    assert set(spent) <= {HEADS, BODIES}
    return answer, spent[BODIES]


def check(answer: SearchResponse, decrypted: int, question: Question) -> None:
    query, options = question
    assert answer.opened == decrypted, repr(question)
    assert decrypted <= bound(query, options), question
    if options.get("sealed") and "budget" not in options:
        assert decrypted == len(answer.rows), question


@pytest.mark.parametrize("size", SIZES)
def test_no_search_decrypts_more_than_it_says_and_may(
    make_store: Callable[..., MemoryStore], reranker: None, size: int
) -> None:
    store = make_store()
    corpus = fill(store, size)
    collections = {one.name: one.id for one in store.collections.list()}
    limited = store.limited_to(Scope.of([collections["work"], collections["archive"]]))
    answered = refused = 0
    for number, question in enumerate(Asker(corpus, seed=size).questions()):
        if answered == QUESTIONS[size]:
            break
        asking = limited if number % 5 == 0 else store
        pages = checked_pages(asking, question, size, most=1 if number % LEAFED else PAGES)
        answered += pages > 0
        refused += pages == 0
    assert refused < QUESTIONS[size] / 4, "most questions make sense"


def checked_pages(store: MemoryStore, question: Question, memories: int, *, most: int) -> int:
    """Ask, and leaf through the first pages. Returns how many were right; a refusal is none."""
    query, options = question
    for page in range(most):
        answer, decrypted = asked(store, question, memories)
        if answer is None:
            assert decrypted == 0, question
            return page
        check(answer, decrypted, question)
        if answer.next is None:
            return page + 1
        question = (query, {**options, "continue_": answer.next})
    return most


def test_the_count_is_of_what_is_decrypted(make_store: Callable[..., MemoryStore]) -> None:
    """A count that stood still would agree with anything."""
    store = make_store()
    first = store.add("One herring in the barrel")
    before = Counter(store.decrypted)
    store.get(first.id)
    store.texts([store.heads([first.id])[first.id].content])
    # a body is shown as that of a memory whose head names it, which is opened to be sure
    assert Counter(store.decrypted) - before == {HEADS: 3, BODIES: 2}
