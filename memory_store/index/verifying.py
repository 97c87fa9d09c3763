"""Verification: every record authenticated, every account held against its rows.

Boundary: opens everything, keeps nothing. The report names rows, never contents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from memory_store.errors import MemoryStoreError, TamperedError
from memory_store.index.live import load_segment
from memory_store.index.opened import OpenVault
from memory_store.sqlite import sqlite3
from memory_store.vault import audit, sources
from memory_store.vault.collections import check_named
from memory_store.vault.damage import UNFORESEEN, damage
from memory_store.vault.expansions import stored
from memory_store.vault.manifest import read_manifest, recount
from memory_store.vault.rows import content_tag, open_memories, read_origins, topic_tags
from memory_store.vault.schema import FORMAT_VERSION
from memory_store.vault.segments import list_segments
from memory_store.vault.share_check import share_checks
from memory_store.vault.transactions import reading

Check = Callable[[], object]
DATABASE = "database"


def verify(
    vault: OpenVault, progress: Callable[[str, int, int | None], None] | None = None
) -> dict[str, Any]:
    """``{"records": how many were authenticated, "failures": ["what is wrong", …]}``."""
    failures = []
    # what others write meanwhile is left out
    with reading(vault.reader()) as connection, vault.keyring.lasting():
        checks = list(_checks(vault, connection))
        for done, (name, check) in enumerate(checks):
            if progress is not None:
                progress(name, done, len(checks))
            try:
                check()
            except (MemoryStoreError, ValueError, sqlite3.DatabaseError) as error:
                failures.append(f"{name}: {error}")
            except UNFORESEEN:
                if not failures or not failures[0].startswith(DATABASE):
                    raise  # the file is whole: the fault is ours
                failures.append(f"{name}: holds what no vault holds")
    if progress is not None:
        progress("", len(checks), len(checks))
    return {"records": len(checks), "failures": failures}


def _checks(vault: OpenVault, connection: sqlite3.Connection) -> Iterator[tuple[str, Check]]:
    problem = damage(connection, thorough=True)
    yield DATABASE, lambda: _refuse_unless(problem is None, str(problem))
    yield "settings", vault.refresh_settings
    yield "collections", lambda: _check_collections(vault, connection)
    for collection in vault.keyring.readable():
        yield f"account of collection {collection}", _account_check(vault, connection, collection)
    readable = set(vault.keyring.readable())
    for row in list_segments(connection):
        if row.collection in readable:
            keys = vault.keyring.of(row.collection)
            yield f"segment {row.id}", partial(_whole, connection, keys, row)
    if vault.settings.format >= FORMAT_VERSION:
        for source, collection, sealed in sources.check_source(connection, vault.keyring):
            yield (
                f"source {source}",
                partial(sources.open_source, vault.keyring, source, collection, sealed),
            )
        yield "origins", lambda: _check_origins(vault, connection)
        if vault.keyring.is_owner:
            yield from share_checks(connection, vault.keyring, vault.settings)
    if vault.keyring.is_owner:
        for sequence, tag, sealed in stored(connection):
            yield f"expansion {sequence}", partial(_expansion, vault, tag, sealed)
        yield "audit trail", partial(_audit_check, vault, connection)
    yield "index", lambda: _refuse_unless(_index_holds(vault), "unreadable")
    for memory, collection in connection.execute(
        "select id, collection from memories order by id"
    ).fetchall():
        if collection in readable:
            yield f"memory {memory}", _memory_check(vault, connection, memory)


def _check_collections(vault: OpenVault, connection: sqlite3.Connection) -> None:
    _refuse_unless(bool(vault.collections.names()), "none is readable")
    check_named(connection, vault.keyring.principal)


def _index_holds(vault: OpenVault) -> bool:
    return vault.snapshot(whole=True).total >= 0


def _whole(connection: sqlite3.Connection, keys: Any, row: Any) -> None:
    segment = load_segment(connection, keys, row)
    try:
        _refuse_unless(len(segment.vectors) == segment.windows, "vectors are missing")
        segment.pairs.rows(0)
    finally:
        segment.wipe()


def _check_origins(vault: OpenVault, connection: sqlite3.Connection) -> None:
    """Raise TamperedError where a row that is not proven says where a memory came from."""
    rows = connection.execute(
        "select id, collection from memories where id in (select memory from memory_sources)"
    ).fetchall()
    readable = set(vault.keyring.readable())
    mine = [(memory, collection) for memory, collection in rows if collection in readable]
    proven = read_origins(connection, vault.keyring, mine)
    wrong = [memory for memory, _ in mine if memory not in proven]
    _refuse_unless(not wrong, f"memory_sources of {', '.join(wrong[:3])}: not written by a reader")


def _expansion(vault: OpenVault, tag: bytes, sealed: bytes) -> None:
    vault.expansions.open(tag, sealed)


def _audit_check(vault: OpenVault, connection: sqlite3.Connection) -> None:
    audit.check(connection, vault.keyring)


def _account_check(vault: OpenVault, connection: sqlite3.Connection, collection: str) -> Check:
    def check() -> None:
        keys = vault.keyring.of(collection)
        account = read_manifest(connection, keys)
        count, total = recount(connection, keys, account.epoch)
        _refuse_unless(
            (account.count, account.total) == (count, total),
            f"says {account.count} memories; {count} are there, or not the same ones",
        )

    return check


def _memory_check(vault: OpenVault, connection: sqlite3.Connection, memory: str) -> Check:
    def check() -> None:
        opened = list(open_memories(connection, vault.keyring, [memory]))
        _refuse_unless(bool(opened), "is gone")
        keys = vault.keyring.of(opened[0].collection)
        tag = content_tag(keys, opened[0].title, opened[0].text)
        (stored,) = connection.execute(
            """
            select b.tag from memory_bodies b join memories m on m.content = b.id
            where m.id = ?
            """,
            (memory,),
        ).fetchone()
        _refuse_unless(stored in keys.stored_forms(tag), "its content tag is another's")
        if not vault.strict:
            topics = {
                bytes(row[0])
                for row in connection.execute(
                    "select topic from memory_topics where memory = ?", (memory,)
                )
            }
            tags = topic_tags(keys, opened[0].topics)
            wanted = [{keys.stored(tag, epoch) for tag in tags} for epoch in keys.bundles()]
            # while the key is being replaced, they may stand there in both of its epochs
            whole = any(one <= topics for one in wanted) and topics <= set().union(*wanted)
            _refuse_unless(whole, "its topic hashes are others")

    return check


def _refuse_unless(holds: bool, complaint: str) -> None:
    if not holds:
        raise TamperedError(complaint)
