"""Pages of one search: no row twice, none lost; and it is said where the vault changed."""

from __future__ import annotations

import base64
import random
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from private import private_below

from memory_store.errors import BadInputError
from memory_store.records import MemoryDraft, SearchResponse, SearchResult
from memory_store.scopes import Scope
from memory_store.store import MemoryStore

QUERY = "winter garden"

SEARCHES: dict[str, tuple[str, dict[str, Any]]] = {
    "hybrid": (QUERY, {"rerank": False}),
    "reranked": (QUERY, {}),
    "deep": (QUERY, {"deep": True}),
    "sealed": (QUERY, {"sealed": True}),
    "keyword": (QUERY, {"mode": "keyword"}),
    "vector": (QUERY, {"mode": "vector"}),
    "literal": (r"garden \d+", {"mode": "literal"}),
    "a phrase": ('"winter garden"', {"rerank": False}),
    "a phrase, reranked": ('"winter garden"', {}),
    "a phrase that nothing holds": ('notes on the "garden winter" work', {}),
    "metadata": (QUERY, {"meta": (("bed", "long"),), "rerank": False}),
    "filters alone": ("topic:log", {}),
    "filters and metadata": ("topic:log", {"meta": (("bed", "long"),)}),
    "gnosis": (QUERY, {"recipe": "gnosis"}),
    "gno": (QUERY, {"recipe": "gno"}),
    "qmd": (QUERY, {"recipe": "qmd"}),
    "prx": (QUERY, {"recipe": "prx"}),
}
LISTS = ("filters alone", "filters and metadata")
POOL_BY_LIMIT = ("gno", "prx")


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> tuple[Path, Path]:
    """A vault of forty notes that all fit, one less than the other, and its key file."""
    folder = tmp_path_factory.mktemp("garden")
    (folder / "vaults").mkdir()
    with private_below(folder):
        store, _ = MemoryStore.create(
            folder / "vaults" / "notes.db",
            key_file=folder / "keys" / "notes.key",
            embedder=str(tiny_model),
        )
        store.add_many(draft(n) for n in range(40))
        store.close()
    return store.path, folder / "keys" / "notes.key"


@pytest.fixture
def garden(
    planted: tuple[Path, Path], tmp_path: Path, tiny_model: Path, reranker: str
) -> Iterator[MemoryStore]:
    """This test's own copy of it."""
    path, key_file = planted
    copy = shutil.copy(path, tmp_path / "notes.db")
    with MemoryStore.open(copy, key_file=key_file, embedder=str(tiny_model)) as store:
        yield store


def draft(n: int, **changes: Any) -> MemoryDraft:
    fields = {
        "text": f"winter garden {n} " + "and more of other things " * (n % 7),
        "topics": ("log",),
        "metadata": {"bed": "long"},
        "created": f"2024-01-{1 + n % 28:02}",
    }
    return MemoryDraft(**{**fields, **changes})


def pages(
    store: MemoryStore,
    name: str,
    limit: int = 7,
    between: Callable[[int], None] = lambda page: None,
    **more: Any,
) -> Iterator[SearchResponse]:
    """All pages of a search, with something done ``between`` two of them."""
    query, options = SEARCHES[name]
    token: str | None = None
    for number in range(200):
        page = store.search(query, limit=limit, continue_=token, **{**options, **more})
        yield page
        token = page.next
        assert page.truncated is (token is not None) or page.budget
        if token is None:
            return
        between(number)
    raise AssertionError("paging does not end")


def changed(page: SearchResponse) -> bool:
    """Whether it says that it goes on in another order than the page before."""
    return any(line.startswith("continue: the vault, or what ranks it,") for line in page.degraded)


def rows(answers: Iterator[SearchResponse]) -> list[SearchResult]:
    return [row for page in answers for row in page.rows]


def ids(answers: Iterator[SearchResponse]) -> list[str]:
    return [row.id for row in rows(answers)]


@pytest.mark.parametrize("name", SEARCHES)
def test_pages_join_to_the_whole_result(garden: MemoryStore, name: str) -> None:
    limit = 32 if name not in POOL_BY_LIMIT else 7
    whole = rows(pages(garden, name, limit=limit))
    paged = rows(pages(garden, name))
    assert [row.id for row in paged] == [row.id for row in whole]
    assert [row.rank for row in paged] == list(range(1, len(paged) + 1))
    assert [row.score for row in paged] == [row.score for row in whole]
    assert len(paged) >= (20 if name not in POOL_BY_LIMIT else 14)


@pytest.mark.parametrize("name", ["reranked", "literal", "metadata", "gno", "filters alone"])
def test_what_is_added_between_pages_is_said_and_nothing_is_lost(
    garden: MemoryStore, name: str
) -> None:
    before = ids(pages(garden, name))

    def add(page: int) -> None:
        garden.add(f"winter garden {page} at length {'and more ' * 20}", created="2030-01-01")

    first, *later = pages(garden, name, limit=13, between=add)
    assert not changed(first)
    assert len(later) >= 1
    assert all(map(changed, later))
    assert {row.id for page in (first, *later) for row in page.rows} >= set(before)


def test_a_list_goes_on_behind_what_it_has_shown_of_one_day(garden: MemoryStore) -> None:
    same_day = garden.add_many(draft(n, created="2030-01-01") for n in range(100, 106))
    shown, waiting, *others = sorted(one.id for one in same_day)
    first = garden.search("topic:log", limit=1)
    garden.delete(waiting)
    later = garden.search("topic:log", limit=32, continue_=first.next)
    assert [row.id for row in (*first.rows, *later.rows)][:5] == [shown, *others]


@pytest.mark.parametrize("name", ["deep", "sealed", "keyword", "literal", "a phrase", *LISTS])
def test_whatever_is_written_pages_end_say_so_and_show_nothing_deleted(
    garden: MemoryStore, name: str
) -> None:
    before = ids(pages(garden, name))
    chance = random.Random(name)
    deleted: set[str] = set()

    def write(page: int) -> None:
        for memory in chance.sample(sorted(set(before) - deleted), 3):
            if chance.random() < 0.5:
                deleted.add(memory)
                garden.delete(memory)
            else:
                garden.edit(memory, text=f"{garden.get(memory).text} and garden {page}")

    after: list[str] = []
    for page in pages(garden, name, limit=13, between=write):
        found = [row.id for row in page.rows]
        assert not deleted & set(found)
        assert changed(page) is bool(after)
        after += found
    if name in LISTS:  # ordered by time, which nothing moves
        assert len(after) == len(set(after))
        assert set(before) - deleted <= set(after)


def test_a_place_is_found_again_by_what_still_stands_there(garden: MemoryStore) -> None:
    """Whether the memory that the page should begin with is there, better placed, or gone."""
    first = garden.search(QUERY, mode="keyword", limit=7)
    after = garden.search(QUERY, mode="keyword", limit=32, continue_=first.next)
    best, nextbest = after.rows[0].id, after.rows[1].id
    garden.edit(garden.search(QUERY, mode="keyword", limit=1).rows[0].id, title="renamed")
    page = garden.search(QUERY, mode="keyword", limit=32, continue_=first.next)
    assert {row.id for row in page.rows} >= {row.id for row in after.rows}
    garden.delete(best)
    page = garden.search(QUERY, mode="keyword", limit=32, continue_=first.next)
    assert changed(page)
    assert nextbest in {row.id for row in page.rows}


@pytest.mark.parametrize("name", ["hybrid", "filters alone"])
def test_a_memory_that_a_filter_stops_is_not_shown(garden: MemoryStore, name: str) -> None:
    before = ids(pages(garden, name, topic="log"))
    moved = before[-1]
    after = ids(
        pages(
            garden,
            name,
            topic="log",
            between=lambda page: bool(garden.edit(moved, topics=("attic",))),
        )
    )
    assert sorted(after) == sorted(before[:-1])


def test_another_thread_may_write_all_the_time(garden: MemoryStore) -> None:
    over = threading.Event()

    def write() -> None:
        while not over.is_set():
            added = garden.add("winter garden, freshly planted", created="2030-01-01")
            garden.delete(added.id)

    writer = threading.Thread(target=write)
    before = ids(pages(garden, "filters alone"))
    writer.start()
    try:
        after = ids(pages(garden, "filters alone", limit=3))
        assert ids(pages(garden, "keyword", limit=13))
    finally:
        over.set()
        writer.join()
    assert len(after) == len(set(after))
    assert set(before) <= set(after)


@pytest.mark.parametrize("rerank", [True, False])
def test_a_file_stands_on_one_page_alone(store: MemoryStore, reranker: str, rerank: bool) -> None:
    store.add_many(
        MemoryDraft(f"winter garden {n} of {n % 4}", source="/notes", ref=f"{n % 4}.md#{n}")
        for n in range(16)
    )
    shown = rows(pages(store, "qmd", limit=1, rerank=rerank))
    assert sorted(str(row.ref)[0] for row in shown) == ["0", "1", "2", "3"]


def test_a_later_page_opens_nothing_that_narrowing_hides(store: MemoryStore) -> None:
    """Nor does it stand for its file there: it was on no page before."""
    store.add_many(
        MemoryDraft(
            f"winter garden {'garden ' * (kind == 'note')}{n}",
            type=kind,
            source="/notes",
            ref=f"{n}.md#{kind}",
        )
        for n in range(6)
        for kind in ("note", "task")
    )
    options: dict[str, Any] = {"recipe": "qmd", "rerank": False, "narrow": "type:task"}
    whole = store.search(QUERY, **options)
    seen, token = [], None
    for number in range(1, 4):
        page = store.search(QUERY, limit=2, continue_=token, **options)
        assert page.opened == 2 * number  # its own rows, and which files earlier pages have shown
        seen += [row.id for row in page.rows]
        token = page.next
    assert seen == [row.id for row in whole.rows]
    assert len(seen) == 6


def test_pages_may_differ_in_length(garden: MemoryStore) -> None:
    whole = ids(pages(garden, "reranked"))
    seen, token = [], None
    for limit in (3, 10, 1, 20, 32):
        page = garden.search(QUERY, limit=limit, continue_=token)
        seen += [row.id for row in page.rows]
        token = page.next
    assert seen == whole


def test_a_page_without_a_reranker_opens_its_own_rows_alone(garden: MemoryStore) -> None:
    for name in ("hybrid", "keyword", "vector", "sealed", "filters alone"):
        for page in pages(garden, name):
            assert page.opened == len(page.rows), name


@pytest.mark.parametrize("name", ["reranked", "keyword", "literal", "filters alone"])
def test_why_knows_the_places_of_all_pages(garden: MemoryStore, name: str) -> None:
    query, options = SEARCHES[name]
    whole = ids(pages(garden, name))
    token = garden.search(query, limit=7, **options).next
    for place, memory in ((2, whole[1]), (9, whole[8]), (20, whole[19])):
        reported = garden.search(query, limit=7, continue_=token, why=memory, **options).why
        assert reported is not None
        assert reported["returned"] is (place == 9)
        if name in ("filters alone", "literal") and place == 2:
            assert reported["reason"].startswith("an earlier page has")
        else:
            assert reported["rank"] == place, reported


def test_a_list_is_leafed_through_beyond_a_thousand(store: MemoryStore) -> None:
    store.add_many(
        (MemoryDraft(f"remark {n}", topics=("log",), created="2024-01-01") for n in range(1_100)),
        embed=False,
    )
    found, token = set(), None
    for _ in range(40):
        page = store.search("topic:log", limit=32, continue_=token)
        found |= {row.id for row in page.rows}
        token = page.next
        if token is None:
            break
    assert (len(found), token) == (1_100, None)


class TestTokens:
    @pytest.mark.parametrize("name", SEARCHES)
    def test_a_token_is_short(self, garden: MemoryStore, name: str) -> None:
        query, options = SEARCHES[name]
        for more in ({}, {"budget": 20}):
            token = garden.search(query, limit=3, **options, **more).next
            assert token is not None
            assert len(token) < 100

    def test_a_token_names_no_memory(self, garden: MemoryStore) -> None:
        page = garden.search(QUERY)
        assert page.next is not None
        raw = base64.urlsafe_b64decode(page.next + "==")
        for row in page.rows:
            assert bytes.fromhex(row.id.replace("-", ""))[:5] not in raw
        assert garden.search(QUERY).next != page.next

    def test_a_token_belongs_to_the_collections_that_were_searched(
        self, garden: MemoryStore
    ) -> None:
        garden.add("winter garden, and nobody else's", collection="diary")
        (diary,) = [one.id for one in garden.collections.list() if one.name == "diary"]
        others = [one.id for one in garden.collections.list() if one.id != diary]
        of_a_part = garden.limited_to(Scope.of(others)).search(QUERY).next
        assert of_a_part is not None
        self.refused(garden, QUERY, {"continue_": of_a_part})

    @pytest.mark.parametrize("name", ["hybrid", "literal", "filters alone"])
    def test_every_changed_character_is_refused(self, garden: MemoryStore, name: str) -> None:
        query, options = SEARCHES[name]
        token = garden.search(query, limit=5, **options).next
        assert token is not None
        for place in range(0, len(token) - 1, 7):
            other = "A" if token[place] != "A" else "B"
            changed = token[:place] + other + token[place + 1 :]
            self.refused(garden, query, {**options, "continue_": changed})

    @pytest.mark.parametrize(
        "token",
        ["AQAAAAFNBZvi", "not a token", "ä", "=", "A" * 100_000, "%00", "AAAA" * 40, "ä" * 99],
        ids=["old", "words", "umlaut", "padding", "long", "escape", "zeros", "as long"],
    )
    def test_what_is_no_token_is_refused(self, garden: MemoryStore, token: str) -> None:
        self.refused(garden, QUERY, {"continue_": token})

    @pytest.mark.parametrize(
        ("query", "options"),
        [
            ("garden winter", {}),
            (QUERY, {"mode": "keyword"}),
            (QUERY, {"type": ("note",)}),
            (QUERY, {"recipe": "gnosis"}),
            (QUERY, {"sealed": True}),
            (QUERY, {"min_score": 0.1}),
        ],
    )
    def test_a_token_belongs_to_its_search(
        self, garden: MemoryStore, query: str, options: dict[str, Any]
    ) -> None:
        token = garden.search(QUERY).next
        self.refused(garden, query, {**options, "continue_": token})

    def test_a_token_belongs_to_its_vault(
        self, garden: MemoryStore, make_store: Callable[..., MemoryStore]
    ) -> None:
        other = make_store("other.db")
        other.add("winter garden")
        self.refused(other, QUERY, {"continue_": garden.search(QUERY).next})

    def test_a_token_outlives_the_process(
        self, garden: MemoryStore, planted: tuple[Path, Path]
    ) -> None:
        whole = ids(pages(garden, "keyword"))
        first = garden.search(QUERY, mode="keyword", limit=7)
        with MemoryStore.open(garden.path, key_file=planted[1]) as again:
            second = again.search(QUERY, mode="keyword", limit=7, continue_=first.next)
        assert [row.id for row in (*first.rows, *second.rows)] == whole[:14]

    def refused(self, store: MemoryStore, query: str, options: dict[str, Any]) -> None:
        with pytest.raises(BadInputError, match="damaged or belongs to another search") as refusal:
            store.search(query, **options)
        assert refusal.value.parameter == "continue"
