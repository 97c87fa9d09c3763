"""What a search must not open may be garbage: the answer stays the same, and nothing is raised.

Before a question is asked again, the sealed parts of every memory outside of the allowed set are
overwritten in the file. Which memories are allowed is worked out from what was put in, not by the
search that is on trial. Whatever opens one of the others meets bytes that do not authenticate.

Narrowing alone is no filter: it may open what the same search opens without it, which the ciphers
tell.
"""

from __future__ import annotations

import inspect
import random
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import tiny_reranker
from asking import Corpus, fill
from ciphers import Heard, listen
from counts import counted
from filtered import FILTERS, NO_FILTERS, Allowed, Narrowed, kinds
from private import private_below

from memory_store.errors import BadInputError, FormatError, TamperedError
from memory_store.records import SearchRequest
from memory_store.scopes import Scope
from memory_store.search.query import language as query_language
from memory_store.search.recipes import RECIPES
from memory_store.sqlite import connect
from memory_store.store import MemoryStore

MEMORIES = 600
ROUNDS = counted(75)  # of every kind of filter: each recipe in each mode with each of LINES
QUESTIONS = counted(450)  # of a proof that takes the kinds in turn
MODES = ("hybrid", "keyword", "vector")
LISTS_BY = set(inspect.signature(MemoryStore.list).parameters) - {
    "opened",
    "limit",
    "offset",
    "after",
    "changed",  # which no search takes: it is tried by itself
}
ANYTHING = Narrowed({}, lambda draft: True)
LINES = ("", "lex: {}", "vec: {}", "hyde: {}", "lex: {}\nvec: {}")


class Wire:
    """The vault's file in the hands of an actor who overwrites what no one may look at."""

    def __init__(self, path: Path) -> None:
        self.connection = connect(path)
        self.connection.execute("create temp table heads as select id, head from memories")
        self.connection.execute("create temp table bodies as select id, body from memory_bodies")

    @contextmanager
    def around(self, allowed: Collection[str]) -> Iterator[None]:
        """Garbage for every memory but the allowed ones, and for every body that is only theirs."""
        self.connection.execute("create temp table allowed (id text primary key)")
        self.connection.executemany("insert into allowed values (?)", [(one,) for one in allowed])
        with self.connection:
            self.connection.execute("begin")
            self.connection.execute(
                """
                update memories set head = randomblob(length(head))
                where id not in (select id from allowed)
                """
            )
            self.connection.execute(
                """
                update memory_bodies set body = randomblob(length(body)) where id not in (
                    select content from memories where id in (select id from allowed)
                )
                """
            )
        try:
            yield
        finally:
            self._mend()

    def _mend(self) -> None:
        with self.connection:
            self.connection.execute("begin")
            for table, kept, column in (
                ("memories", "heads", "head"),
                ("memory_bodies", "bodies", "body"),
            ):
                self.connection.execute(
                    f"update {table} set {column} = "
                    f"(select {column} from temp.{kept} where {kept}.id = {table}.id)"
                )
        self.connection.execute("drop table temp.allowed")


@dataclass(frozen=True)
class Filled:
    """An opened vault, what is in it, the hand on its file and the ear at its ciphers."""

    store: MemoryStore
    corpus: Corpus
    wire: Wire
    heard: Heard


@pytest.fixture(scope="module")
def filled(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    """One vault for all of these tests: the wire takes back what it did."""
    folder = tmp_path_factory.mktemp("tripwire")
    with private_below(folder) as environment:
        heard = listen(environment)
        (folder / "vaults").mkdir()
        store, _ = MemoryStore.create(
            folder / "vaults" / "notes.db",
            key_file=folder / "keys" / "notes.key",
            embedder=str(tiny_model),
        )
        corpus = fill(store, MEMORIES)
        wire = Wire(store.path)
        yield Filled(store, corpus, wire, heard)
        wire.connection.close()
        store.lock()


@pytest.fixture
def store(filled: Filled, private_folders: Path) -> MemoryStore:
    return filled.store


@pytest.fixture
def corpus(filled: Filled) -> Corpus:
    return filled.corpus


@pytest.fixture
def wire(filled: Filled) -> Wire:
    return filled.wire


@pytest.fixture
def heard(filled: Filled) -> Heard:
    return filled.heard


@pytest.fixture
def reranker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cross-encoder, so that a search opens what the filters leave."""
    tiny_reranker.chosen(tmp_path, monkeypatch)


def those(corpus: Corpus, allowed: Allowed) -> list[str]:
    """The ids of the memories that are allowed."""
    pairs = zip(corpus.ids, corpus.drafts, strict=True)
    return [id_ for id_, draft in pairs if allowed(draft)]


def reported(store: MemoryStore, query: str, **options: Any) -> list[dict[str, Any]]:
    """The first two pages of an answer, without what a clock says."""
    pages = []
    for _ in range(2):
        answer = store.search(query, **options)
        page = answer.as_dict()
        page.pop("milliseconds")
        page["next"] = bool(page["next"])  # sealed anew each time
        pages.append(page)
        if answer.next is None:
            break
        options["continue_"] = answer.next
    return pages


def rows_of(pages: Collection[dict[str, Any]]) -> set[str]:
    return {row["id"] for page in pages for row in page["rows"]}


def words_for(corpus: Corpus, chance: random.Random) -> str:
    """Different words, the first so frequent that few memories are without it."""
    words = [chance.choice(corpus.words[:8])]
    words += chance.sample(corpus.words[8:300], k=chance.randint(1, 3))
    return " ".join(words)


def question(
    corpus: Corpus, narrowed: Narrowed, number: int, chance: random.Random
) -> tuple[str, dict[str, Any]]:
    """A query for a kind of filter, and its options.

    Recipe, mode and typed lines are those of the ``number``: of 75 on end each combination is one.
    """
    ways: dict[str, Any] = {
        "mode": MODES[number // 5 % 3],
        "recipe": list(RECIPES)[number % 5],
        "limit": 32,
    }
    if narrowed.complete:
        return narrowed.query, {**ways, **narrowed.options}
    if chance.random() < 0.25:
        ways |= {"deep": True, "limit": 64}
    query = f"{words_for(corpus, chance)} {narrowed.query}"
    lines = LINES[number // 15 % 5].replace("{}", words_for(corpus, chance))
    return f"{query}\n{lines}".strip(), {**ways, **narrowed.options}


def read_by_lot(chance: random.Random) -> dict[str, Any]:
    """Mostly the cross-encoder; else late interaction, or nothing that reads."""
    ways: tuple[dict[str, Any], ...] = ({"reranker": "maxsim"}, {"rerank": False}, {}, {}, {})
    return chance.choice(ways)


def check(
    store: MemoryStore, wire: Wire, allowed: Collection[str], query: str, options: dict[str, Any]
) -> set[str]:
    """Ask, put the wire up, ask again. Returns the rows there were."""
    before = reported(store, query, **options)
    with wire.around(allowed):
        try:
            after = reported(store, query, **options)
        except (TamperedError, FormatError) as error:
            pytest.fail(f"{error}; asked was {query!r} with {options}")
    assert after == before, (query, options)
    rows = rows_of(before)
    assert rows <= set(allowed), (query, options)
    return rows


def test_every_option_that_filters_is_tried(corpus: Corpus) -> None:
    """A new option fails here until it is said whether it filters, and tried if it does."""
    tried = kinds(corpus, random.Random(0)).values()
    options = {name for narrowed in tried for name in narrowed.options}
    assert set(SearchRequest.__struct_fields__) == FILTERS | NO_FILTERS
    assert FILTERS.isdisjoint(NO_FILTERS)
    assert options == FILTERS
    queries = " ".join(narrowed.query for narrowed in tried)
    (prefixes,) = re.findall(r"prefix +:= \((.*)\)", query_language.__doc__ or "")
    assert all(prefix in queries for prefix in re.findall(r"\w+:", prefixes))
    assert LISTS_BY <= FILTERS


def test_no_filter_opens_what_it_leaves_out(
    store: MemoryStore, corpus: Corpus, wire: Wire, reranker: None
) -> None:
    chance, found = random.Random(3), dict.fromkeys(kinds(corpus, random.Random(0)), 0)
    for number in range(ROUNDS):
        for place, (name, narrowed) in enumerate(kinds(corpus, chance).items()):
            query, options = question(corpus, narrowed, number + place, chance)
            options |= read_by_lot(chance)
            if chance.random() < 0.2:
                options["why"] = chance.choice(corpus.ids)
            rows = check(store, wire, those(corpus, narrowed.lets_through), query, options)
            assert rows <= set(those(corpus, narrowed.answers)), (query, options)
            found[name] += len(rows)
    assert all(found.values()), found


def test_narrowing_opens_what_the_same_search_opens(
    store: MemoryStore, corpus: Corpus, wire: Wire, heard: Heard, reranker: None
) -> None:
    chance, found = random.Random(7), 0
    for number in range(counted(225)):
        narrow = (
            f"type:{chance.choice(('note', 'task', 'fact'))}",
            f"status:{chance.choice(('open', 'done'))}",
            f"collection:{chance.choice(corpus.collections)}",
            f"topic:{chance.choice(corpus.topics)}",
            f"created:{chance.randrange(2010, 2025)}",
        )[(number + number // 75) % 5]
        query, options = question(corpus, ANYTHING, number, chance)
        options |= read_by_lot(chance)
        heard.clear()
        reported(store, query, **options)
        opened = heard.heads
        narrowed = {**options, "narrow": narrow}
        rows = rows_of(reported(store, query, **narrowed))
        found += len(check(store, wire, opened | rows, query, narrowed))
    assert found


def test_where_nothing_reads_only_the_rows_are_opened(
    store: MemoryStore, corpus: Corpus, wire: Wire, reranker: None
) -> None:
    """Not even what a filter leaves, nor what scores too little, nor what narrowing hides."""
    chance, found = random.Random(8), 0
    for number in range(QUESTIONS):
        narrowed = kind_of(corpus, number, chance)
        if narrowed.by_text:
            continue
        query, options = question(corpus, narrowed, number, chance)
        options["rerank"] = False
        hiding = ("narrow", f"type:{chance.choice(('note', 'task'))}"), ("min_score", 0.2)
        options.setdefault(*hiding[number % 2])
        if number % 7 == 0:
            options["why"] = chance.choice(corpus.ids)
        rows = rows_of(reported(store, query, **options))
        found += len(check(store, wire, rows, query, options))
    assert found


def kind_of(corpus: Corpus, number: int, chance: random.Random) -> Narrowed:
    """The kinds in turn, so that each comes with each recipe, mode and line."""
    drawn = list(kinds(corpus, chance).values())
    return drawn[(number * 7 + number // 75) % len(drawn)]


def test_who_may_use_some_collections_opens_none_of_the_others(
    store: MemoryStore, corpus: Corpus, wire: Wire, reranker: None
) -> None:
    chance, ids = random.Random(4), {one.name: one.id for one in store.collections.list()}
    found = 0
    for number in range(counted(225)):
        names = chance.sample(list(corpus.collections), chance.randint(1, 2))
        limited = store.limited_to(Scope.of(ids[name] for name in names))
        allowed = those(corpus, lambda draft: draft.collection in names)  # noqa: B023
        query, options = question(corpus, ANYTHING, number, chance)
        if number % 4 == 0:
            options["like"] = chance.choice(allowed)
        if number % 7 == 0:
            options["meta"] = {"box": chance.randrange(7)}
        if number % 11 == 0:
            options["narrow"] = f"type:{chance.choice(('note', 'task'))}"
        found += len(check(limited, wire, allowed, query, options | read_by_lot(chance)))
        with wire.around(allowed):
            listed = limited.list(limit=50)
            limited.heads(corpus.ids)
            limited.topics()
        assert {one.id for one in listed} <= set(allowed)
    assert found


def test_a_sealed_search_opens_what_it_returns_and_nothing_else(
    store: MemoryStore, corpus: Corpus, wire: Wire, reranker: None
) -> None:
    chance, found = random.Random(5), 0
    for number in range(QUESTIONS):
        query, options = question(corpus, kind_of(corpus, number, chance), number, chance)
        options["sealed"] = True
        if number % 5 == 0:
            options["why"] = chance.choice(corpus.ids)
        if not is_for_readers(options):
            rows = rows_of(reported(store, query, **options))
            found += len(check(store, wire, rows, query, options))
    assert found


def is_for_readers(options: dict[str, Any]) -> bool:
    """Whether only opened text can answer it, not even keyed hashes."""
    return not options.keys().isdisjoint(("meta", "by")) or options["mode"] in ("literal", "auto")


def test_a_sealed_search_refuses_what_only_texts_can_tell(
    store: MemoryStore, corpus: Corpus, wire: Wire
) -> None:
    chance, refused = random.Random(10), 0
    for narrowed in kinds(corpus, chance).values():
        query, options = question(corpus, narrowed, 0, chance)
        if is_for_readers(options):
            with wire.around(()), pytest.raises(BadInputError, match="sealed"):
                reported(store, query, sealed=True, **options)
            refused += 1
    assert refused


def test_a_list_by_filters_opens_what_it_lists(
    store: MemoryStore, corpus: Corpus, wire: Wire
) -> None:
    chance, listed = random.Random(9), 0
    for _ in range(counted(75)):
        for narrowed in kinds(corpus, chance).values():
            if narrowed.query or not narrowed.options.keys() <= LISTS_BY:
                continue
            before = store.list(limit=30, **narrowed.options)
            rows, allowed = [memory.id for memory in before], those(corpus, narrowed.lets_through)
            with wire.around(allowed if narrowed.by_text else rows):
                assert store.list(limit=30, **narrowed.options) == before
            assert set(rows) <= set(allowed)
            listed += len(rows)
    assert listed


def test_a_list_of_what_was_changed_opens_what_it_lists(
    store: MemoryStore, corpus: Corpus, wire: Wire
) -> None:
    made = sorted(one.created for one in store.list(limit=MEMORIES))
    late = made[-20]
    before = store.list(changed=late, until=late, limit=MEMORIES)
    rows = [memory.id for memory in before]
    assert 0 < len(rows) < MEMORIES
    with wire.around(rows):
        assert store.list(changed=late, until=late, limit=MEMORIES) == before


def test_reading_one_memory_opens_no_other(store: MemoryStore, corpus: Corpus, wire: Wire) -> None:
    for one in random.Random(6).sample(list(corpus.ids), 2 * ROUNDS):
        before = store.get(one)
        with wire.around([one]):
            assert store.get(one) == before
            assert store.get(one[:13]) == before
            assert list(store.heads([one])) == [one]


def test_the_wire_trips(store: MemoryStore, corpus: Corpus, wire: Wire, reranker: None) -> None:
    """What is allowed and garbage is met: the proofs above would notice."""
    rows = store.search(corpus.drafts[0].text[:60], limit=5).rows
    others = [one for one in corpus.ids if one != rows[0].id]
    with wire.around(others), pytest.raises((TamperedError, FormatError)):
        store.search(corpus.drafts[0].text[:60], limit=5)
    with wire.around(others), pytest.raises((TamperedError, FormatError)):
        store.get(rows[0].id)
    assert store.search(corpus.drafts[0].text[:60], limit=5).rows == rows
