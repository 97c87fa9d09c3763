"""What a search must not open may be garbage: the answer stays the same, and nothing is raised.

Before a question is asked again, the sealed parts of every memory outside of the allowed set are
overwritten in the file. Which memories are allowed is worked out from what was put in, not by the
search that is on trial. Whatever opens one of the others meets bytes that do not authenticate.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from asking import Corpus, fill
from counts import counted
from tiny_reranker import build as build_tiny_reranker

from memory_store.errors import FormatError, TamperedError
from memory_store.records import MemoryDraft
from memory_store.scopes import Scope
from memory_store.sqlite import connect
from memory_store.store import MemoryStore

MEMORIES = 600
ROUNDS = counted(75)  # of every kind of filter
MODES = ("hybrid", "keyword", "vector")
STEM = 4  # letters by which two made-up words may have one stem

Allowed = Callable[[MemoryDraft], bool]


@dataclass(frozen=True)
class Narrowed:
    """Something that lets some memories through: as it is asked for, and which those are."""

    options: dict[str, Any]
    lets_through: Allowed
    query: str = ""


class Wire:
    """The vault's file in the hands of somebody who overwrites what nobody may look at."""

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
    """An opened vault, what is in it, and the hand on its file."""

    store: MemoryStore
    corpus: Corpus
    wire: Wire


@pytest.fixture(scope="module")
def filled(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    """One vault for all of these tests: the wire takes back what it did."""
    folder = tmp_path_factory.mktemp("tripwire")
    with pytest.MonkeyPatch.context() as environment:
        for name in ("STATE", "CACHE", "CONFIG"):
            environment.setenv(f"MEMORY_STORE_{name}", str(folder / name))
        environment.setenv("MEMORY_STORE_OFFLINE", "1")
        (folder / "vaults").mkdir()
        store, _ = MemoryStore.create(
            folder / "vaults" / "notes.db",
            key_file=folder / "keys" / "notes.key",
            embedder=str(tiny_model),
        )
        corpus = fill(store, MEMORIES)
        wire = Wire(store.path)
        yield Filled(store, corpus, wire)
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
def reranker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cross-encoder, so that a search opens what the filters leave."""
    folder = tmp_path / "ms-marco-TinyBERT-L-2-v2"
    build_tiny_reranker(folder)
    monkeypatch.setenv("MEMORY_STORE_RERANKER", str(folder))


def kinds(corpus: Corpus, chance: random.Random) -> dict[str, Narrowed]:
    """One of every kind of filter there is, drawn by lot."""
    topic, kind = chance.choice(corpus.topics), chance.choice(("note", "task", "decision"))
    home, year = chance.choice(corpus.collections), chance.randrange(2011, 2024)
    status = chance.choice(("open", "done"))
    said = chance.choice(corpus.drafts).text.split()
    place = chance.randrange(len(said) - 1)
    one, two = said[place], said[place + 1]

    def done(draft: MemoryDraft) -> bool:
        return str(draft.type).endswith("_done")

    by_topic: Allowed = lambda d: topic in d.topics  # noqa: E731
    by_type: Allowed = lambda d: d.type in (kind, f"{kind}_done")  # noqa: E731
    return {
        "topic": Narrowed({"topic": topic}, by_topic),
        "topic:": Narrowed({}, by_topic, f"topic:{topic}"),
        "type": Narrowed({"type": kind}, by_type),
        "type:": Narrowed({}, by_type, f"type:{kind}"),
        "type and topic": Narrowed(
            {"type": kind, "topic": topic}, lambda d: by_type(d) and by_topic(d)
        ),
        "collection": Narrowed({"collection": home}, lambda d: d.collection == home),
        "in:": Narrowed({}, lambda d: d.collection == home, f"in:{home}"),
        "status": Narrowed({"status": status}, lambda d: done(d) == (status == "done")),
        "since": Narrowed({"since": f"{year}"}, lambda d: str(d.created) >= f"{year}"),
        "until": Narrowed({"until": f"{year}-12-31"}, lambda d: str(d.created)[:4] <= f"{year}"),
        "phrase": Narrowed({}, lambda d: beside(d, one, two), f'"{one} {two}"'),
        "without": Narrowed({}, lambda d: one not in words_of(d), f"-{one}"),
        "regex": Narrowed({"mode": "literal"}, lambda d: holds(d, one), f"{one} \\w+"),
    }


def words_of(draft: MemoryDraft) -> list[str]:
    return f"{draft.title} . {draft.text}".split()


def holds(draft: MemoryDraft, word: str) -> bool:
    """Whether one of its words has the same first letters."""
    return any(other[:STEM] == word[:STEM] for other in words_of(draft))


def beside(draft: MemoryDraft, one: str, two: str) -> bool:
    """Whether two words of such stems stand side by side."""
    words = words_of(draft)
    pairs = pairwise(words)
    return any(a[:STEM] == one[:STEM] and b[:STEM] == two[:STEM] for a, b in pairs)


def told(store: MemoryStore, query: str, **options: Any) -> list[dict[str, Any]]:
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


def words_for(corpus: Corpus, chance: random.Random) -> str:
    return " ".join(chance.choices(corpus.words[:300], k=chance.randint(1, 4)))


def check(
    store: MemoryStore, wire: Wire, allowed: Collection[str], query: str, options: dict[str, Any]
) -> int:
    """Ask, put the wire up, ask again. Returns how many rows there were."""
    before = told(store, query, **options)
    with wire.around(allowed):
        assert told(store, query, **options) == before, (query, options)
    rows = {row["id"] for page in before for row in page["rows"]}
    assert rows <= set(allowed), (query, options)
    return len(rows)


def test_no_filter_opens_what_it_leaves_out(
    store: MemoryStore, corpus: Corpus, wire: Wire, reranker: None
) -> None:
    chance, found = random.Random(3), dict.fromkeys(kinds(corpus, random.Random(0)), 0)
    for number in range(ROUNDS):
        for name, narrowed in kinds(corpus, chance).items():
            options = {"mode": MODES[number % 3], "limit": 32, **narrowed.options}
            query = narrowed.query
            if name != "regex":
                options["deep"] = number % 4 == 3
                asked = chance.sample(corpus.words[:300], k=4) if options["deep"] else ()
                query = f"{' '.join(asked) or words_for(corpus, chance)} {query}"
            allowed = [
                id_
                for id_, draft in zip(corpus.ids, corpus.drafts, strict=True)
                if narrowed.lets_through(draft)
            ]
            found[name] += check(store, wire, allowed, query, options)
    assert all(found.values()), found


def test_who_may_use_some_collections_opens_none_of_the_others(
    store: MemoryStore, corpus: Corpus, wire: Wire, reranker: None
) -> None:
    chance, ids = random.Random(4), {one.name: one.id for one in store.collections()}
    found = 0
    for number in range(2 * ROUNDS):
        names = chance.sample(list(corpus.collections), chance.randint(1, 2))
        limited = store.limited_to(Scope.of(ids[name] for name in names))
        allowed = [
            id_
            for id_, draft in zip(corpus.ids, corpus.drafts, strict=True)
            if draft.collection in names
        ]
        options: dict[str, Any] = {"mode": MODES[number % 3], "limit": 20}
        if number % 4 == 0:
            options["like"] = chance.choice(allowed)
        if number % 5 == 0:
            options["meta"] = {"box": chance.randrange(7)}
        found += check(limited, wire, allowed, words_for(corpus, chance), options)
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
    for number in range(4 * ROUNDS):
        narrowed = list(kinds(corpus, chance).values())[number % 12]
        query = f"{words_for(corpus, chance)} {narrowed.query}"
        options = {"sealed": True, "mode": MODES[number % 3], **narrowed.options}
        if number % 3 == 0:
            options["like"] = chance.choice(corpus.ids)
        if number % 5 == 0:
            options["why"] = chance.choice(corpus.ids)
        if number % 7 == 0:
            options["narrow"] = chance.choice(
                ("type:task", f"topic:{chance.choice(corpus.topics)}")
            )
        rows = [row["id"] for page in told(store, query, **options) for row in page["rows"]]
        found += check(store, wire, rows, query, options)
    assert found


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
