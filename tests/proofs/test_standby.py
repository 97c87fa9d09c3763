"""A standby that lags behind its primary is waited for, and never taken for an older copy.

Each test takes seconds: it starts two servers of its own, and stops one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from postgres_server import Server, server_or_skip

from memory_store.errors import AwayError, ReadOnlyError, TamperedError
from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore
from memory_store.vault.storage import postgres
from memory_store.vault.storage.postgres_link import let_go

pytestmark = pytest.mark.once

CAUGHT_UP = 10.0  # seconds that a standby may take


@pytest.fixture
def primary() -> Iterator[Server]:
    """A server of its own, which the test ends."""
    yield from server_or_skip()
    let_go()


def either(primary: Server, standby: Server, vault: str) -> str:
    """The address of a vault on whichever of the two answers."""
    return f"postgresql://owner@/vaults?host={primary.folder},{standby.folder}&vault={vault}"


def caught_up(primary: Server, standby: Server) -> None:
    """Wait until a standby has what was committed."""
    (at,) = primary.sql("select pg_current_wal_lsn()")
    until = time.monotonic() + CAUGHT_UP
    while standby.sql(f"select pg_last_wal_replay_lsn() >= '{at}'") != ["t"]:
        assert time.monotonic() < until
        time.sleep(0.05)


def elsewhere() -> None:
    """What follows is as by a program that was just started."""
    postgres._newest.clear()


@contextmanager
def made(place: str, key_file: Path) -> Iterator[MemoryStore]:
    """A new vault there, opened again as a program would."""
    MemoryStore.create(place, key_file=key_file)[0].lock()
    with MemoryStore.open(place, key_file=key_file) as store:
        yield store


def texts(store: MemoryStore) -> list[str]:
    return sorted(one.text for one in store.every())


def test_a_node_goes_on_reading_from_the_standby_and_writes_once_that_is_promoted(
    primary: Server, key_file: Path, private_folders: Path
) -> None:
    with primary.standby() as standby:
        place = either(primary, standby, "carried")
        with made(place, key_file) as store:
            store.add("before")
            assert texts(store) == ["before"]
            caught_up(primary, standby)
            primary.stop("immediate")
            assert texts(store) == ["before"]
            assert len(store.search("before", mode="keyword").rows) == 1
            with pytest.raises((ReadOnlyError, AwayError)):
                store.add("refused")
            standby.sql("select pg_promote()")
            store.add("after")
            assert texts(store) == ["after", "before"]
            assert store.verify()["failures"] == []
            assert store.older() is None
        with MemoryStore.open(place, key_file=key_file) as store:
            assert (store.older(), len(store.list())) == (None, 2)


def test_a_standby_that_lags_is_waited_for_and_not_answered_from(
    primary: Server, key_file: Path, private_folders: Path
) -> None:
    with primary.standby() as standby:
        place = either(primary, standby, "lagging")
        with made(place, key_file) as store:
            store.add("first")
            caught_up(primary, standby)
            standby.sql("select pg_wal_replay_pause()")
            store.add("second")
            assert texts(store) == ["first", "second"]
            primary.stop("immediate")
            for ask in (lambda: texts(store), lambda: store.search("second", mode="keyword")):
                with pytest.raises(AwayError, match=r"standby.* behind"):
                    ask()
            later = threading.Timer(0.5, lambda: standby.sql("select pg_wal_replay_resume()"))
            later.start()
            assert texts(store) == ["first", "second"]
            later.join()
            assert store.older() is None


def test_a_vault_opened_at_a_standby_that_lags_is_not_taken_for_an_older_copy(
    primary: Server, key_file: Path, private_folders: Path
) -> None:
    with primary.standby() as standby:
        place = primary.address("opened")
        with made(place, key_file) as store:
            store.add("first")
            caught_up(primary, standby)
            standby.sql("select pg_wal_replay_pause()")
            store.add("second")
        elsewhere()
        with MemoryStore.open(standby.address("opened"), key_file=key_file) as store:
            assert texts(store) == ["first"]
            assert "standby" in (store.older() or "")
            assert "older than" not in (store.older() or "")
            standby.sql("select pg_wal_replay_resume()")
            caught_up(primary, standby)
            assert (store.older(), texts(store)) == (None, ["first", "second"])
            standby.sql("select pg_wal_replay_pause()")
        with MemoryStore.open(place, key_file=key_file) as store:
            store.add("third")
        elsewhere()
        MemoryStore.open(standby.address("opened"), key_file=key_file).lock()
        for address in (place, standby.address("opened")):  # nothing was noted of the standby
            standby.sql("select pg_wal_replay_resume()")
            caught_up(primary, standby)
            with MemoryStore.open(address, key_file=key_file) as store:
                assert (store.older(), len(texts(store))) == (None, 3)


def test_a_standby_that_was_promoted_without_the_latest_changes_is_an_older_copy(
    primary: Server, key_file: Path, private_folders: Path
) -> None:
    with primary.standby() as standby:
        place = either(primary, standby, "lost")
        with made(place, key_file) as store:
            store.add("first")
            caught_up(primary, standby)
            standby.stop()
            with MemoryStore.open(place, key_file=key_file) as other:
                other.add("second")
            assert texts(store) == ["first", "second"]
            primary.stop("immediate")
            standby.start()
            standby.sql("select pg_promote()")
            with pytest.raises(TamperedError, match="older"):
                texts(store)
            with MemoryStore.open(place, key_file=key_file) as other:
                assert "older" in (other.older() or "")
                other.accept_older()
                assert (other.older(), texts(other)) == (None, ["first"])


def test_who_wrote_to_a_standby_goes_on_with_the_primary_once_it_is_there_again(
    primary: Server, key_file: Path, private_folders: Path
) -> None:
    with primary.standby() as standby:
        place = either(primary, standby, "returned")
        store, _ = MemoryStore.create(place, key_file=key_file)
        with store:
            store.add_many([MemoryDraft("before")], embed=False)
            caught_up(primary, standby)
            primary.stop("immediate")
            assert texts(store) == ["before"]
            with pytest.raises((ReadOnlyError, AwayError)):
                store.add("refused")
            primary.start()
            caught_up(primary, standby)
            for text in ("after", "later"):
                store.add(text)
            assert texts(store) == ["after", "before", "later"]


@pytest.mark.parametrize("how", ["promoted", "back"])
def test_a_vault_opened_at_the_standby_is_written_once_there_is_a_primary(
    primary: Server, key_file: Path, private_folders: Path, how: str
) -> None:
    with primary.standby() as standby:
        place = either(primary, standby, how)
        with made(place, key_file) as store:
            store.add("before")
            store.trash.list()
            store.delete(store.add("deleted").id)
            caught_up(primary, standby)
        primary.stop("immediate")
        with MemoryStore.open(place, key_file=key_file) as store:
            assert texts(store) == ["before"]
            with pytest.raises(ReadOnlyError, match="the server is a standby"):
                store.add("refused")
            with pytest.raises(ReadOnlyError, match="the server is a standby"):
                store.delete(store.list()[0].id)
            assert texts(store) == ["before"]
            if how == "promoted":
                standby.sql("select pg_promote()")
            else:
                primary.start()
                caught_up(primary, standby)
            store.add("after")
            assert texts(store) == ["after", "before"]
            assert store.verify()["failures"] == []
            assert store.older() is None
