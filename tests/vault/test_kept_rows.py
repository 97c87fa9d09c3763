"""What was read of a vault on a server is kept sealed on this machine, or all of it: the server is
not asked for it again, so it sees less of what a search opens."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from postgres_server import Server, server_or_skip

from memory_store import BadInputError, MemoryStore, NotFoundError
from memory_store.errors import TamperedError
from memory_store.paths import cache_folder
from memory_store.records import MemoryDraft
from memory_store.scopes import Scope
from memory_store.sqlite import connect, sqlite3
from memory_store.vault.storage.postgres_link import let_go
from memory_store.vault.storage.row_cache import MOST_DAYS, RowCache

WORD, NOTES = "kestrelcanary", 20
OF_ALL = ("select id, version from memories where collection", "select count(*) from memories")
ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
Reads = Callable[[], list[str]]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One that notes every statement."""
    for one in server_or_skip():
        one.sql("alter system set log_statement = 'all'", "select pg_reload_conf()")
        yield one


@pytest.fixture
def reads(server: Server) -> Reads:
    """The statements that read rows of memories since it was asked last."""
    log = server.folder / "log"
    begun = log.stat().st_size

    def said() -> list[str]:
        nonlocal begun
        until = time.monotonic() + 10
        server.sql("select 'noted until here'")
        while b"noted until here" not in (found := log.read_bytes()[begun:]):
            assert time.monotonic() < until
        begun += len(found)
        read = [one for one in found.decode().split("LOG:") if "from memories" in one]
        return [one for one in read if not any(all_ in one for all_ in OF_ALL)]

    return said


@pytest.fixture
def make(
    server: Server, key_file: Path, tiny_model: Path, private_folders: Path
) -> Callable[[], MemoryStore]:
    def made() -> MemoryStore:
        store, _ = MemoryStore.create(server.address(), key_file=key_file, embedder=str(tiny_model))
        notes = [MemoryDraft(f"{WORD} number {n} stands by the weir") for n in range(NOTES)]
        store.add_many(notes, embed=False)
        return store

    return made


def previews(store: MemoryStore, query: str = "weir") -> list[str]:
    return [row.preview for row in store.search(query, mode="keyword", limit=32).rows]


def all_kept(store: MemoryStore) -> list[str]:
    """The previews, once what was read is written: who reads it waits for that."""
    previews(store)
    return previews(store)


def kept_file() -> Path:
    (file,) = (cache_folder() / "memories").glob("*.db")
    return file


def test_what_was_read_is_not_asked_for_again_and_what_changed_is(
    make: Callable[[], MemoryStore], reads: Reads, key_file: Path
) -> None:
    with make() as store:
        first = previews(store)
        assert len(first) == NOTES
        assert reads()
        assert previews(store) == first
        assert {store.get(one.id).text for one in store.list(limit=NOTES)} == {*first}
        assert reads() == []
        one = store.list(limit=1)[0].id
        with MemoryStore.open(store.path, key_file=key_file) as other:
            other.edit(one, text="Another text by the weir")
        reads()
        assert "Another text by the weir" in previews(store)
        (asked,) = reads()
        assert ID.findall(asked) == [one]
        gone = store.list(limit=2)[1].id
        with MemoryStore.open(store.path, key_file=key_file) as other:
            other.delete(gone)
        assert len(previews(store)) == NOTES - 1
        with pytest.raises(NotFoundError):
            store.get(gone)
        assert store.verify(full=True)["failures"] == []


def test_it_lies_there_sealed_for_its_owner_alone_and_goes_with_what_is_deleted(
    make: Callable[[], MemoryStore],
) -> None:
    with make() as store:
        all_kept(store)
        file = kept_file()
        assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        everything = b"".join(one.read_bytes() for one in file.parent.iterdir())
        assert WORD.encode() not in everything
        with closing(connect(file, read_only=True)) as kept:
            count = "select count(*) from kept"
            assert kept.execute(count).fetchone() == (NOTES,)
            store.delete_many([one.id for one in store.list(limit=3)])
            assert kept.execute(count).fetchone() == (NOTES - 3,)


@pytest.mark.parametrize("how", ["a bit", "another row", "all rows", "no file of ours"])
def test_what_was_changed_there_is_asked_of_the_server(
    make: Callable[[], MemoryStore], reads: Reads, how: str
) -> None:
    with make() as store:
        found = all_kept(store)
        file = kept_file()
        if how == "no file of ours":
            for end in ("", "-wal", "-shm"):
                place = file.with_name(file.name + end)
                if place.exists():
                    place.write_bytes(b"nothing that was kept" * 500)
        else:
            with closing(connect(file)) as kept:
                one, other = kept.execute("select memory, held from kept limit 2").fetchall()
                damaged = {
                    "a bit": one[1][:-1] + bytes([one[1][-1] ^ 1]),
                    "another row": other[1],
                    "all rows": b"",
                }[how]
                where = "" if how == "all rows" else " where memory = ?"
                kept.execute(
                    f"update kept set held = ?{where}", (damaged, one[0])[: 1 + bool(where)]
                )
        reads()
        assert previews(store) == found
        assert len(reads()) == 1
        assert previews(store) == found
        assert reads() == []


def test_what_the_server_put_back_is_refused_beside_it(
    make: Callable[[], MemoryStore], server: Server, key_file: Path
) -> None:
    """A row of before, in the place of one that was written since, is no better kept."""
    with make() as store:
        one = store.list(limit=1)[0].id
        table = "memory_store.memories"
        server.sql(f"create table earlier as select * from {table} where id = '{one}'")
        store.edit(one, text="Another text by the weir")
        server.sql(
            f"update {table} m set (version, content, head) = (e.version, e.content, e.head) "
            "from earlier e where m.id = e.id and m.vault = e.vault",
            "drop table earlier",
        )
        with pytest.raises(TamperedError, match="not the row that was written last"):
            store.get(one)


def test_replaced_keys_open_nothing_of_it_and_all_of_the_server(
    make: Callable[[], MemoryStore], key_file: Path
) -> None:
    with make() as store:
        found = sorted(previews(store))
        store.keys.rotate()
        store.keys.rotate_root()
        assert sorted(previews(store)) == found
        place = store.path
    with MemoryStore.open(place, key_file=key_file) as store:
        assert sorted(previews(store)) == found


def test_it_shows_no_one_what_another_may_read(make: Callable[[], MemoryStore]) -> None:
    with make() as store:
        work = store.collections.create("work")
        hidden = store.add("Of the ledger", collection="work")
        assert store.get(hidden.id).text == "Of the ledger"
        personal = next(one for one in store.collections.names() if one != work.id)
        view = store.limited_to(Scope((personal,)))
        with pytest.raises(NotFoundError):
            view.get(hidden.id)
        assert previews(view, "ledger") == []


def test_a_mirror_holds_all_before_anything_is_opened_and_follows(
    make: Callable[[], MemoryStore],
    reads: Reads,
    key_file: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with make() as store:
        place, one = store.path, store.list(limit=1)[0].id
    let_go()
    monkeypatch.setenv("MEMORY_STORE_MIRROR", "all")
    with MemoryStore.open(place, key_file=key_file) as mirrored:
        reads()
        assert len(previews(mirrored, f"{WORD} 7")) == NOTES
        fetched = reads()
        assert sum(len(ID.findall(text)) for text in fetched if " b.body" in text) == NOTES
        for query in ("weir", "number 3", "stands"):
            previews(mirrored, query)
            mirrored.list(limit=7)
        assert not any(" b.body" in text for text in reads())
        with MemoryStore.open(place, key_file=key_file) as other:
            new = [other.add(f"More {n} by the weir").id for n in range(3)]
            other.delete(one)
        reads()
        previews(mirrored, "more 2")
        asked = [text for text in reads() if " b.body" in text]
        assert len(asked) == 1
        assert all(asked[0].count(id_) == 1 for id_ in new)
        with closing(
            connect(*(cache_folder() / "memories").glob("*-*.db"), read_only=True)
        ) as kept:
            held = {memory for (memory,) in kept.execute("select memory from kept")}
        assert held == {memory.id for memory in mirrored.every()}
    monkeypatch.setenv("MEMORY_STORE_MIRROR", "some")
    with pytest.raises(BadInputError, match="mirror"):
        MemoryStore.open(place, key_file=key_file)


def test_a_mirror_is_fetched_anew_after_keys_were_replaced(
    make: Callable[[], MemoryStore],
    reads: Reads,
    key_file: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Or the server would be asked for what a search finds, row by row, and see it."""
    monkeypatch.setenv("MEMORY_STORE_MIRROR", "all")
    with make() as store:
        previews(store)
        store.keys.rotate()
        place = store.path
    let_go()
    with MemoryStore.open(place, key_file=key_file) as mirrored:
        reads()
        assert len(mirrored.search("number 3", mode="keyword", limit=2).rows) == 2
        fetched = [len(ID.findall(text)) for text in reads() if " b.body" in text]
        assert fetched == [NOTES]
        assert len(previews(mirrored)) == NOTES
        assert not any(" b.body" in text for text in reads())


def test_what_changed_while_a_search_ran_is_not_asked_for_beside_a_mirror(
    make: Callable[[], MemoryStore],
    reads: Reads,
    key_file: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MEMORY_STORE_MIRROR", "all")
    with make() as store:
        previews(store)
        one, running = store.list(limit=1)[0].id, store.search_context()
        store.edit(one, text="Another text by the weir")
        previews(store)
        reads()
        ordinal = running.snapshot.ordinal_of(one)
        assert ordinal is not None
        assert [memory.text for memory in running.open_memories([ordinal])] == [
            "Another text by the weir"
        ]
        assert not any(" b.body" in text for text in reads())


def test_it_has_bounds(private_folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = RowCache("a vault", most=300_000)
    days = time.time()
    for day in range(6):
        monkeypatch.setattr(time, "time", lambda day=day: days + day * 86_400)
        cache.write([(f"{day} {n}", b"tag", bytes(2_000)) for n in range(40)])
        cache.read({"0 0": b"tag"})  # which is used each day
    assert cache.read({"0 0": b"tag"})
    assert not cache.read({"0 1": b"tag"})
    assert cache.read({"5 39": b"tag"})
    assert cache.read({"5 39": b"another"}) == []
    assert cache.file.stat().st_size < 600_000
    monkeypatch.setattr(time, "time", lambda: days + (MOST_DAYS + 7) * 86_400)
    cache.close()
    assert not cache.read({"5 39": b"tag"})
    cache.close()


@pytest.mark.skipif(os.name != "posix", reason="modes of files")
def test_a_folder_that_cannot_be_written_or_trusted_keeps_nothing(
    make: Callable[[], MemoryStore], private_folders: Path
) -> None:
    folder = private_folders / "cache"
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o777)
    with make() as store:
        assert len(previews(store)) == len(previews(store)) == NOTES
    assert not (folder / "memories").exists()


def test_a_busy_file_is_passed_over(make: Callable[[], MemoryStore], reads: Reads) -> None:
    with make() as store:
        all_kept(store)
        with closing(sqlite3.connect(kept_file())) as other:
            other.execute("begin exclusive")
            one = store.add("Written meanwhile by the weir")
            assert store.get(one.id).text == "Written meanwhile by the weir"
            assert store.get(one.id).text == "Written meanwhile by the weir"
        assert len(previews(store)) == NOTES + 1
