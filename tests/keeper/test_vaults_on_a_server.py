"""A vault in a PostgreSQL database is kept open as one in a file is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from keeping_open import KeptOpen, by_itself, by_keeper, start, untimed
from postgres_server import Server
from typing_commands import run

from memory_store.addresses import Address
from memory_store.keeper.client import connected, facts
from memory_store.store import MemoryStore

PASSWORD = "kestrel-and-weir"


@pytest.fixture
def kept(
    environment: Path, postgres: Server, tiny_model: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> Iterator[KeptOpen]:
    key_file = environment / "key" / "server.key"
    address = Address(postgres.address("kept"))
    with MemoryStore.create(address, key_file=key_file, embedder=str(tiny_model))[0] as store:
        store.add("The lease of the flat in Lisbon ends on 31 May.", title="Lease of the flat")
    kept = start(address, key_file)
    yield kept
    kept.lock()
    postgres.sql("delete from memory_store.vaults where name = 'kept'")


def test_commands_ask_the_process_by_any_form_of_the_address(
    kept: KeptOpen, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    address = str(kept.path)
    key = ("--key-file", str(kept.key_file))
    kept_search = by_keeper(capfdbinary, "search", address, "lease", "--json")
    assert kept_search[0] == 0
    assert b"31 May" in kept_search[1]
    own = by_itself(capfdbinary, "search", address, "lease", "--json", *key)
    assert untimed(kept_search) == untimed(own)
    other_form = address.replace("postgresql://", "postgres://")
    assert by_keeper(capfdbinary, "search", other_form, "lease")[0] == 0
    monkeypatch.setenv("MEMORY_STORE_DB", address.replace("owner@", f"owner:{PASSWORD}@"))
    added = by_keeper(capfdbinary, "add", "The deposit is 900.")
    assert (added[0], added[2]) == (0, b"")
    found = by_keeper(capfdbinary, "search", "deposit")
    assert b"The deposit is 900." in found[1]
    assert PASSWORD not in str(facts([]))
    assert by_keeper(capfdbinary, "search", address.replace("kept", "another"), "x")[0] is None


def test_unlock_says_that_it_is_open_and_lock_ends_it(kept: KeptOpen) -> None:
    address = str(kept.path)
    again = run("unlock", address, "--key-file", str(kept.key_file))
    assert again.output.startswith(f"{address} is open already")
    refused = run("lock", address.replace("owner@", f"owner:{PASSWORD}@"))
    assert refused.exit_code == 2
    assert PASSWORD not in refused.output
    assert run("lock", address).output == f"{address} is locked.\n"
    assert connected([address]) is None


def test_while_the_database_is_away_commands_say_so_and_go_on_afterwards(
    kept: KeptOpen, postgres: Server, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    postgres.stop("immediate")
    try:
        code, out, err = by_keeper(capfdbinary, "search", str(kept.path), "lease")
    finally:
        postgres.start()
    assert (code, out) == (1, b"")
    assert b"the database is away" in err
    assert b"31 May" in by_keeper(capfdbinary, "search", str(kept.path), "lease")[1]
