"""Removes the memories whose file or record has left its source (``--prune``).

Boundary: opens heads, to learn where a memory was read, of collections that the vault's keys open.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from memory_store.importing.ledger import Ledger
from memory_store.importing.source_file import shown
from memory_store.importing.walker import names_below
from memory_store.session.writer import delete_memories
from memory_store.vault.rows import Origin, open_head
from memory_store.vault.storage import Storage


def remove_gone(
    ledger: Ledger, source: str, files: set[bytes], records: Mapping[bytes, set[bytes]]
) -> list[str]:
    """Delete memories of a source whose file or record is gone. Returns where they were.

    ``files`` are the tags of all files that are still there, ``records`` the origins found in
    those that were read again. A file left out by other globs, but still there, is kept, and so
    is what these keys do not open. A dry run deletes nothing. Raises OSError, and deletes nothing,
    where a folder of the source cannot be listed.
    """
    gone = _gone_memories(ledger, source, files, records)
    names = _names_in_sources(ledger, gone)
    if gone and not ledger.request.dry_run:
        delete_memories(ledger.vault, [*gone], also=_delete_empty_files)
    return names


def _names_in_sources(ledger: Ledger, memories: Mapping[str, bytes]) -> list[str]:
    """What the sources called these memories, by the tag of the file each came from."""
    with ledger.vault.moment() as (storage, known):
        return sorted(
            _name_in_source(
                ledger, row.id, open_head(ledger.vault.keyring, row, known), memories[row.id]
            )
            for row in storage.memories.rows([*memories]).values()
        )


def _name_in_source(ledger: Ledger, memory: str, head: Mapping[str, Any], file: bytes) -> str:
    path = _path_of_note(ledger, head, file)
    if path is not None:
        return shown(path)
    return shown(f"{head['source']}: {head['ref'] or memory}") if head["source"] else memory


def _gone_memories(
    ledger: Ledger, source: str, files: set[bytes], records: Mapping[bytes, set[bytes]]
) -> dict[str, bytes]:
    """The memories whose file or record is gone, each with the tag of its file."""
    storage, known = ledger.vault.reader(), ledger.source_of(source)
    if known is None:
        return {}
    found = storage.origins.of_source(known.id, ledger.vault.keyring.openable())
    rows = [row for row in found if _is_proven(ledger, *row)]
    there = files
    if any(file not in files for *_, file in rows):
        there = files | {ledger.file_tag(*name) for name in names_below(Path(source))}
    gone: dict[str, bytes] = {}
    for memory, _, origin, _, file in rows:
        if file in records:
            left = origin not in records[file]
        else:
            left = file not in there and not _is_there(ledger, memory, file)
        if left:
            gone[memory] = file
    return gone


def _is_proven(ledger: Ledger, memory: str, collection: str, *stored: object) -> bool:
    """Whether the key of the memory's own collection proves that it was imported into this one."""
    keys = ledger.vault.keyring.of(collection)
    return Origin.proven(keys, memory, ledger.collection, stored) is not None


def _is_there(ledger: Ledger, memory: str, file: bytes) -> bool:
    """Whether a note's path exists. Raises OSError in a folder that may not be entered."""
    with ledger.vault.moment() as (storage, known):
        row = storage.memories.rows([memory])[memory]
        path = _path_of_note(ledger, open_head(ledger.vault.keyring, row, known), file)
    return path is not None and path.exists()


def _path_of_note(ledger: Ledger, head: Mapping[str, Any], file: bytes) -> Path | None:
    """Where a note was read; None where its ref is a row's, or one that the note gave itself.

    ``file`` is the tag of the file it came from, which shows the difference.
    """
    source, ref = head["source"], head["ref"]
    is_path = source and ref and ledger.file_tag(source, ref) == file
    return Path(source, ref) if is_path else None


def _delete_empty_files(storage: Storage) -> None:
    storage.files.forget_empty()
