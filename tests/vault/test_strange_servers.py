"""Who owns the database may have it answer with values of other kinds than a vault holds: that is
an error of ours, or the right answer."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from postgres_server import Server, server_or_skip

from memory_store import MemoryStore, MemoryStoreError
from memory_store.addresses import Address
from memory_store.paths import cache_folder
from memory_store.records import MemoryDraft
from memory_store.vault.storage.postgres_link import let_go
from memory_store.vault.storage.postgres_schema import BASE, COLUMNS

GARBAGE = ("null", "'x'::text", "'\\x00ff'::bytea", "-1::bigint", "1.5::float8", "'[1]'::jsonb")
COLUMN_CASES = [
    *((table, name) for table in COLUMNS for name in COLUMNS[table]),
    ("vault_head", "revision"),
    ("vault_head", "format"),
]
HEAD = {"vault": "uuid", "name": "text", "revision": "bigint", "format": "bigint"}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One that this module may take everything away from."""
    yield from server_or_skip()


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("table", "column"), COLUMN_CASES, ids=map(".".join, COLUMN_CASES))
def test_a_column_of_another_kind_is_an_error_or_changes_nothing(
    server: Server, key_file: Path, private_folders: Path, table: str, column: str
) -> None:
    place = Address(server.address())
    store, _ = MemoryStore.create(place, key_file=key_file)
    with store:
        made = store.add_many([MemoryDraft(f"heron {n}", topics=["birds"]) for n in range(4)])
        store.edit(made[0].id, text="another heron")
        store.delete(made[1].id)
    texts = {"another heron", "heron 2", "heron 3"}

    def use() -> None:
        with MemoryStore.open(place, key_file=key_file) as opened:
            works: list[Callable[[], set[str]]] = [
                lambda: {one.text for one in opened.list(limit=9)},
                lambda: {row.preview for row in opened.search("heron", mode="keyword").rows},
                lambda: {opened.get(made[0].id).text},
                lambda: {*opened.verify(full=True)} and set(),
                lambda: {str(one) for one in opened.trash.list()} and set(),
            ]
            for work in works:
                with suppress(MemoryStoreError):
                    assert work() <= texts

    base = "vaults" if table == "vault_head" else table
    columns = HEAD if table == "vault_head" else {"rowid": "bigint", **COLUMNS[table]}
    with psycopg.connect(place.database, autocommit=True) as owner:
        for garbage in GARBAGE:
            shown = (f"{garbage} as {one}" if one == column else one for one in columns)
            owner.execute(f"drop view memory_store_vault.{table}")
            owner.execute(
                f"create view memory_store_vault.{table} as select {', '.join(shown)} "
                f"from memory_store.{base} where vault = memory_store.this_vault()"
            )
            let_go()
            with suppress(MemoryStoreError):
                use()
        owner.execute("drop schema memory_store, memory_store_vault cascade")
    let_go()  # others' connections have prepared what is there no more


def test_an_id_that_is_a_path_has_no_file_of_this_machine_written(
    server: Server,
    key_file: Path,
    private_folders: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is kept of a vault lies in a file that its id in the database names."""
    monkeypatch.setenv("MEMORY_STORE_MIRROR", "all")
    place, other = Address(server.address()), tmp_path / "other.db"
    store, _ = MemoryStore.create(place, key_file=key_file)
    with store:
        store.add("heron")
        assert len(store.list()) == 1
        (vault,) = (cache_folder() / "memories").glob("*-*.db")
    let_go()
    other.write_bytes(b"of another program")
    path = os.path.relpath(other.with_suffix(""), cache_folder() / "memories")
    server.sql(
        f"create or replace function {BASE}.this_vault() returns uuid language sql stable as "
        f"$$ select '{vault.stem}'::uuid $$",
        f"alter table {BASE}.vaults rename to true_vaults",
        f"create view {BASE}.vaults as select '{path}'::text as vault, name, revision, format "
        f"from {BASE}.true_vaults",
    )
    for _ in range(2):
        with pytest.raises(MemoryStoreError, match="an id that is none"):
            MemoryStore.open(place, key_file=key_file)
    assert other.read_bytes() == b"of another program"
    server.sql(f"drop schema {BASE}, memory_store_vault cascade")
    let_go()
