"""What an import knows of one vault and collection, and how its batches are written.

Boundary: holds the vault's keys through :class:`OpenVault`. Known files and records are recognised
by keyed tags; a head is opened only to decide whether what left its source may be forgotten.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from memory_store.dates import epoch
from memory_store.errors import BadInputError
from memory_store.importing.drafts import memory_from_draft
from memory_store.importing.job import ImportRequest
from memory_store.importing.source_file import shown
from memory_store.importing.walker import names_below
from memory_store.records import Memory, MemoryDraft
from memory_store.session.opened_vault import OpenVault
from memory_store.session.preparation import Preparer
from memory_store.session.writer import delete_memories, write_batch
from memory_store.sqlite import sqlite3
from memory_store.vault.machine import machine_id
from memory_store.vault.rows import Origin, open_head, read_origins, read_rows
from memory_store.vault.sources import (
    UPLOADED,
    Source,
    find_source,
    is_newest,
    note,
    read_sources,
    write_source,
)
from memory_store.vault.transactions import transaction


class Pending(Struct, frozen=True):
    """A draft to be written: new, or replacing the memory that has the same origin.

    ``name`` is what messages call it.
    """

    draft: MemoryDraft
    origin: Origin
    replaces: str | None
    name: str


class FileMark(Struct, frozen=True):
    """What is remembered of a file that was read to its end: keyed tags of its name and bytes."""

    source: str
    tag: bytes
    content: bytes


class KnownFile(Struct, frozen=True):
    """A file that was imported before, by which source, and how many memories it stands for."""

    content: bytes
    source: str
    memories: int


class KnownRecord(Struct, frozen=True):
    """A memory that came from the same record before, and the tag of what it was then."""

    memory: str
    draft: bytes | None
    origin: bytes | None


class Written(Struct, frozen=True):
    """What came of a batch: the ids of its memories, and which drafts are none, and why."""

    ids: Sequence[str] = ()
    refused: Mapping[int, str] = field(default_factory=dict)


class ImportSession:
    """One import's view of the vault: lookups by keyed tag, and writes."""

    def __init__(
        self, vault: OpenVault, collection: str, preparer: Preparer, request: ImportRequest
    ) -> None:
        self.vault = vault
        self.collection = collection
        self.keys = vault.keyring.of(collection)
        self._preparer = preparer
        self._request = request
        self._sources: dict[str, Source] = {}

    @property
    def embeds(self) -> bool:
        """Whether a model makes vectors of what is written, which takes most of the time."""
        return self._preparer.embeds(self.collection)

    def on_embedded(self, embedded: Callable[[int, int], None]) -> None:
        """Call ``embedded`` with how many windows of a batch have vectors, while it is written."""
        self._preparer.embedded = embedded

    def file_tag(self, root: str | Path, ref: str) -> bytes:
        """What a file is known by: the keyed tag of its source and of its path from there."""
        names = (name.encode("utf-8", "surrogateescape") for name in (str(root), ref))
        return self.keys.source.tag(b"file", *names)

    def known_file(self, tag: bytes) -> KnownFile | None:
        """What is remembered of a file of that tag, whoever imported it into this collection."""
        row = (
            self.vault.reader()
            .execute(
                """
            select content, source, (
                select count(*) from memory_sources join memories on memories.id = memory
                where file = :tag and collection in (select value from json_each(:readable))
            ) from vault_source_files where tag = :tag
            """,
                {"tag": tag, "readable": json.dumps(self.vault.keyring.readable())},
            )
            .fetchone()
        )
        return KnownFile(*row) if row is not None else None

    def is_of(self, known: KnownFile, path: str) -> bool:
        """Whether a known file was last imported by that source of this principal and machine."""
        if path == UPLOADED:
            return known.source == UPLOADED
        source = self._source_of(path)
        return source is not None and source.id == known.source

    def known_record(
        self, identity: Sequence[bytes], draft: MemoryDraft
    ) -> tuple[bytes, KnownRecord | None]:
        """The record's origin, and the memory that it became: by origin, else by the id it carries.

        Where a memory of that origin is in a collection that is hidden here, or where the row that
        says so is not proven by the key of the memory's own collection, the record is taken for
        another one: its origin gets a number, the same one the next time.
        """
        readable = set(self.vault.keyring.readable())
        for turn in count():
            number = (str(turn).encode(),) if turn else ()
            origin = self.keys.source.tag(b"record", *identity, *number)
            row = self.vault.reader().execute(_BY_ORIGIN, (origin,)).fetchone()
            if row is None:
                break
            memory, collection, *stored = row
            if collection in readable:
                keys = self.vault.keyring.of(collection)
                told = Origin.proven(keys, memory, self.collection, stored)
                if told is not None:
                    return origin, KnownRecord(memory, told.draft, told.origin)
        return origin, self._known_by_id(draft) if draft.id else None

    def _known_by_id(self, draft: MemoryDraft) -> KnownRecord | None:
        """The memory of the id that a record carries, in a collection that can be read."""
        connection, memory = self.vault.reader(), str(draft.id).lower()
        row = read_rows(connection, [memory]).get(memory)
        if row is None or row.collection not in self.vault.keyring.readable():
            return None
        found = read_origins(connection, self.vault.keyring, [(memory, row.collection)])
        told = found.get(memory, Origin())
        return KnownRecord(memory, told.draft, told.origin)

    def write(self, pending: Sequence[Pending], marks: Sequence[FileMark]) -> Written:
        """Write a batch in one transaction.

        Raises ConflictError, nothing written, where an id is taken or a memory was changed.
        """
        refused: dict[int, str] = {}
        refused_files: set[bytes | None] = set()
        accepted = []
        for number, item in enumerate(pending):
            try:
                through = item.origin.through or self.collection
                accepted.append((self._memory(item), replace(item.origin, through=through)))
            except BadInputError as error:
                refused[number] = str(error)
                refused_files.add(item.origin.file)
        prepared = self._preparer.prepare(accepted)

        def mark_files(connection: sqlite3.Connection) -> None:
            for mark in marks:
                if mark.tag not in refused_files:
                    self._mark(connection, mark)

        write_batch(self.vault, prepared, self._preparer.model, mark_files)
        note(self.vault.keyring, *self._sources.values())
        return Written([memory.id for memory, _ in accepted], refused)

    def _memory(self, item: Pending) -> Memory:
        collection = self.collection
        if item.draft.collection is not None:
            collection = self.vault.collections.find_or_create(item.draft.collection)
        memory = memory_from_draft(item.draft, collection)
        if item.replaces is None:
            return memory
        with self.vault.moment() as (connection, known):
            row = read_rows(connection, [item.replaces]).get(item.replaces)
            if row is None:  # deleted meanwhile
                return memory
            created = memory.created
            if item.draft.created is None:  # an older copy put back is no younger than itself
                kept = open_head(self.vault.keyring, row, known)["created"]
                created = min(kept, memory.updated, key=epoch)
        return replace(memory, id=row.id, version=row.version + 1, created=created)

    def _mark(self, connection: sqlite3.Connection, mark: FileMark) -> None:
        connection.execute(
            """
            insert into vault_source_files (tag, source, content) values (?, ?, ?)
            on conflict (tag) do update set content = excluded.content, source = excluded.source
            """,
            (mark.tag, self._source(connection, mark.source), mark.content),
        )

    def _source(self, connection: sqlite3.Connection, path: str) -> str:
        """The id of the source of an imported path, made or renewed on first use."""
        if path == UPLOADED:
            return UPLOADED
        if path not in self._sources:
            self._sources[path] = write_source(
                connection, self.vault.keyring, self.collection, path, self._request.kept()
            )
        return self._sources[path].id

    def _source_of(self, path: str) -> Source | None:
        """The source of a path on this machine, as this principal named it; None before."""
        known = self._sources.get(path)
        return known or find_source(self.vault.reader(), self.vault.keyring, self.collection, path)

    def remember(self, sources: Sequence[str]) -> None:
        """Seal each imported path with its options, for the next ``import`` without a path."""
        with (
            self.vault.writing() as connection,
            transaction(connection, self.vault.keyring),
        ):
            for path in sources:
                self._source(connection, path)
        note(self.vault.keyring, *self._sources.values())

    def prune(
        self,
        source: str,
        files: set[bytes],
        records: Mapping[bytes, set[bytes]],
    ) -> list[str]:
        """Forget memories of a source whose file or record is gone. Returns where they were.

        ``files`` are the tags of all files that are still there, ``records`` the origins found in
        those that were read again. A file left out by other globs, but still there, is kept, and so
        is what these keys do not open. Raises OSError, and forgets nothing, where a folder of the
        source cannot be listed.
        """
        gone = self._gone_memories(source, files, records)
        names = self._names_in_sources(gone)
        if gone and not self._request.dry_run:
            delete_memories(self.vault, [*gone], also=_forget_empty_files)
        return names

    def _names_in_sources(self, memories: Mapping[str, bytes]) -> list[str]:
        """What the sources called these memories, by the tag of the file each came from."""
        with self.vault.moment() as (connection, known):
            return sorted(
                self._name_in_source(
                    row.id, open_head(self.vault.keyring, row, known), memories[row.id]
                )
                for row in read_rows(connection, [*memories]).values()
            )

    def _name_in_source(self, memory: str, head: Mapping[str, Any], file: bytes) -> str:
        path = self._path_of_note(head, file)
        if path is not None:
            return shown(path)
        return shown(f"{head['source']}: {head['ref'] or memory}") if head["source"] else memory

    def _gone_memories(
        self, source: str, files: set[bytes], records: Mapping[bytes, set[bytes]]
    ) -> dict[str, bytes]:
        """The memories whose file or record is gone, each with the tag of its file."""
        connection, known = self.vault.reader(), self._source_of(source)
        if known is None:
            return {}
        found = connection.execute(
            """
            select m.memory, h.collection, m.origin, m.draft, m.file from memory_sources m
            join vault_source_files f on f.tag = m.file
            join memories h on h.id = m.memory
            where f.source = ? and h.collection in (select value from json_each(?))
            """,
            (known.id, json.dumps(self.vault.keyring.openable())),
        ).fetchall()
        rows = [row for row in found if self._is_proven(*row)]
        there = files
        if any(file not in files for *_, file in rows):
            there = files | {self.file_tag(*name) for name in names_below(Path(source))}
        gone: dict[str, bytes] = {}
        for memory, _, origin, _, file in rows:
            if file in records:
                left = origin not in records[file]
            else:
                left = file not in there and not self._is_there(memory, file)
            if left:
                gone[memory] = file
        return gone

    def _is_proven(self, memory: str, collection: str, *stored: object) -> bool:
        """Whether who may write the memory says that it came from an import into here."""
        keys = self.vault.keyring.of(collection)
        return Origin.proven(keys, memory, self.collection, stored) is not None

    def _is_there(self, memory: str, file: bytes) -> bool:
        """Whether a note's path exists. Raises OSError in a folder that may not be entered."""
        with self.vault.moment() as (connection, known):
            row = read_rows(connection, [memory])[memory]
            path = self._path_of_note(open_head(self.vault.keyring, row, known), file)
        return path is not None and path.exists()

    def _path_of_note(self, head: Mapping[str, Any], file: bytes) -> Path | None:
        """Where a note was read; None where its ref is a row's, or one that the note gave itself.

        ``file`` is the tag of the file it came from, which tells the one from the other.
        """
        source, ref = head["source"], head["ref"]
        is_path = source and ref and self.file_tag(source, ref) == file
        return Path(source, ref) if is_path else None


def _forget_empty_files(connection: sqlite3.Connection) -> None:
    connection.execute(
        """
        delete from vault_source_files where not exists
            (select 1 from memory_sources where file = vault_source_files.tag)
        """
    )


_BY_ORIGIN = """
    select s.memory, m.collection, s.origin, s.draft, s.file
    from memory_sources s join memories m on m.id = s.memory where s.origin = ?
"""


def known_sources(vault: OpenVault) -> tuple[list[tuple[str, dict[str, Any]]], list[str]]:
    """Every path that this principal imported on this machine, with the options of that import.

    And a sentence for each path of theirs that is not read again until they name it.
    """
    machine = machine_id()
    found, left = [], []
    for source in read_sources(vault.reader(), vault.keyring):
        if not machine or source.machine != machine:
            left.append(
                f"{source.path} was imported on another machine, and is not read here until you "
                "name it"
            )
        elif not is_newest(vault.keyring, source):
            left.append(
                f"{source.path} is not read again until you name it: this machine does not know "
                "the import that the file tells of"
            )
        else:
            found.append((source.path, {**source.options, "collection": source.collection}))
    return found, left
