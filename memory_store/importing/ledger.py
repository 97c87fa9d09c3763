"""The ledger of a collection: which files and records were imported before, and from where.

Boundary: holds the vault's keys through :class:`OpenVault`. Known files and records are recognised
by keyed tags. Heads are opened, of collections that the vault's keys open, only to learn where a
memory was read whose file or record seems to have left its source (``--prune``).
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from memory_store.crypto.blinding import TAG_BYTES
from memory_store.dates import format_time
from memory_store.importing.job import ImportRequest
from memory_store.importing.source_file import shown
from memory_store.importing.walker import names_below
from memory_store.records import MemoryDraft
from memory_store.session.opened_vault import OpenVault
from memory_store.session.writer import delete_memories
from memory_store.vault.machine import machine_id
from memory_store.vault.rows import Origin, open_head, read_origins
from memory_store.vault.sources import (
    UPLOADED,
    Source,
    find_source,
    is_newest,
    note,
    read_sources,
    write_source,
)
from memory_store.vault.storage import Storage
from memory_store.vault.trash import BY_IMPORT, Change

LISTED_FAILURES = 20  # of one source: it is sealed with each import


class KnownRecord(Struct, frozen=True):
    """A memory that came from the same record before, and what is known of the record then."""

    memory: str
    collection: str
    said: Origin


class FileMark(Struct, frozen=True):
    """What is remembered of a file that was read: keyed tags of its name and bytes; and in a Git
    work tree of the id that Git gives to these bytes. Of one that is to be read again, a tag that
    no bytes have. ``moved`` are unchanged records in it that were in another file before."""

    source: str
    tag: bytes
    content: bytes
    blob: bytes = b""
    moved: Sequence[KnownRecord] = ()


class KnownFile(Struct, frozen=True):
    """A file that was imported before, by which source, and how many memories came of it."""

    content: bytes
    blob: bytes
    source: str
    memories: int


class Gone(Struct, frozen=True):
    """A memory that is gone from its source, how it is called, and the path of its file below the
    source: empty of a row's, and of one that was edited here since."""

    memory: str
    name: str
    file: str


class Ledger:
    """What earlier imports left in the ledger of a collection, and what this one adds to it."""

    def __init__(self, vault: OpenVault, collection: str, request: ImportRequest) -> None:
        self.vault = vault
        self.collection = collection
        self.request = request
        self.keys = vault.keyring.of(collection)
        self._sources: dict[str, Source] = {}
        self._known: dict[str, Source | None] = {}
        self._contents: dict[str, dict[bytes, list[bytes]]] = {}
        self._renamed: set[bytes] = set()
        self._expected: dict[bytes, tuple[bytes, str, int]] = {}

    def file_tag(self, root: str | Path, ref: str) -> bytes:
        """The keyed tag of a file: of its source and of its path from there."""
        names = (name.encode("utf-8", "surrogateescape") for name in (str(root), ref))
        return self.keys.source.tag(b"file", *names)

    def known_file(self, tag: bytes) -> KnownFile | None:
        """The file of that tag, if any member has imported it into this collection."""
        row = self._expected.get(tag)
        if row is None:
            row = self.vault.reader().files.known(tag, self.vault.keyring.readable())
        if row is None:
            return None
        tags, source, memories = row
        return KnownFile(tags[:TAG_BYTES], tags[TAG_BYTES:], source, memories)

    def expect(self, path: str) -> None:
        """Look up all files of a source at once, for an import of many of them."""
        source = self.source_of(path)
        if source is not None:
            readable = self.vault.keyring.readable()
            self._expected |= self.vault.reader().files.known_of(source.id, readable)

    def is_of(self, known: KnownFile, path: str) -> bool:
        """Whether a known file was last imported by that source of this principal and machine."""
        if path == UPLOADED:
            return known.source == UPLOADED
        source = self.source_of(path)
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
            row = self.vault.reader().origins.memory_of(origin)
            if row is None:
                break
            memory, collection, stored = row
            if collection in readable:
                keys = self.vault.keyring.of(collection)
                proven = Origin.proven(keys, memory, self.collection, stored)
                if proven is not None:
                    return origin, KnownRecord(memory, collection, proven)
        return origin, self._known_by_id(draft) if draft.id else None

    def _known_by_id(self, draft: MemoryDraft) -> KnownRecord | None:
        """The memory of the id that a record carries, in a collection that can be read."""
        storage, memory = self.vault.reader(), str(draft.id).lower()
        row = storage.memories.rows([memory]).get(memory)
        if row is None or row.collection not in self.vault.keyring.readable():
            return None
        found = read_origins(storage, self.vault.keyring, [(memory, row.collection)])
        return KnownRecord(memory, row.collection, found.get(memory, Origin()))

    def mark(self, storage: Storage, marks: Sequence[FileMark]) -> None:
        """Remember files that were read (in the caller's transaction)."""
        storage.files.write(
            [(one.tag, self._source(storage, one.source), one.content + one.blob) for one in marks]
        )
        for one in marks:
            storage.origins.move(self._moved(record, one.tag) for record in one.moved)

    def _moved(self, record: KnownRecord, file: bytes) -> tuple[Any, ...]:
        """The file and the draft of its row from now on, and what it is now."""
        keys, memory = self.vault.keyring.of(record.collection), record.memory
        _, draft, _ = record.said.stored(keys, memory)
        return file, replace(record.said, file=file).stored(keys, memory)[1], memory, draft

    def _source(self, storage: Storage, path: str, last: dict[str, Any] | None = None) -> str:
        """The id of the source of an imported path, made or renewed on first use.

        ``last``: how the import of it ended.
        """
        if path == UPLOADED:
            return UPLOADED
        if path not in self._sources or last is not None:
            self._sources[path] = write_source(
                storage, self.vault.keyring, self.collection, path, self.request.kept(), last
            )
        return self._sources[path].id

    def source_of(self, path: str) -> Source | None:
        """The source of a path on this machine, as this principal named it; None before."""
        if path not in self._known:
            reader, keyring = self.vault.reader(), self.vault.keyring
            self._known[path] = find_source(reader, keyring, self.collection, path)
        return self._sources.get(path) or self._known[path]

    def note_sources(self) -> None:
        """Keep on this machine that the sources written here are the newest there are."""
        if self._sources:
            note(self.vault.keyring, *self._sources.values())

    def remember(
        self,
        sources: Mapping[str, str],
        failures: Sequence[tuple[str, str]],
        commits: Mapping[str, str | None] = MappingProxyType({}),
    ) -> None:
        """Seal each imported path with its options, for the next ``import`` without a path.

        And when that was, which of ``failures`` are of that path, and the commit of a work tree.
        ``sources`` maps each path to how it was given, which the names of ``failures`` begin with.
        """
        now = format_time(datetime.now(UTC))
        failed = [(_source_of(one[0], sources), one) for one in failures]
        with self.vault.writing() as storage, storage.transaction(self.vault.keyring):
            for path in sources:
                own = [one for source, one in failed if len(sources) == 1 or source == path]
                last: dict[str, Any] = {"time": now, "failed": len(own)}
                last["failures"] = own[:LISTED_FAILURES]
                if commit := commits.get(path):
                    last["commit"] = commit
                self._source(storage, path, last)
        self.note_sources()

    def renamed(self, path: str, content: bytes) -> tuple[str, str] | None:
        """The memory and the former path of a note with these bytes that is not there any more.

        Each at most once; none that was edited here since, for the edit would be lost.
        """
        source = None if path == UPLOADED else self.source_of(path)
        if source is None:
            return None
        if path not in self._contents:
            contents: dict[bytes, list[bytes]] = defaultdict(list)
            self._contents[path] = contents
            for known, tag in self.vault.reader().files.contents(source.id):
                contents[known[:TAG_BYTES]].append(tag)
        keyring = self.vault.keyring
        for tag in self._contents[path].get(content, ()):
            rows = self.vault.reader().origins.of_file(tag, keyring.openable())
            if len(rows) != 1 or tag in self._renamed:
                continue
            memory, collection, *stored = rows[0]
            proven = Origin.proven(keyring.of(collection), memory, self.collection, stored)
            if proven is None or proven.draft is None:
                continue
            with self.vault.moment() as (storage, opened):
                row = storage.memories.rows([memory]).get(memory)
                head: dict[str, Any] = open_head(keyring, row, opened) if row is not None else {}
            at, ref = str(head.get("source") or ""), str(head.get("ref") or "")
            if self.file_tag(at, ref) == tag and not os.path.lexists(Path(at, ref)):
                self._renamed.add(tag)
                return memory, ref
        return None

    def commit(self, path: str) -> str | None:
        """The commit of a work tree when it was last imported from here."""
        source = self.source_of(path)
        return source.last.get("commit") if source is not None else None

    def gone(
        self, source: str, files: set[bytes], records: Mapping[bytes, set[bytes]]
    ) -> list[Gone]:
        """Memories of a source whose file or record is gone, by where they were.

        ``files`` are the tags of all files that are still there, ``records`` the origins found in
        those that were read again. A file left out by other globs, but still there, is not
        gone, and what these keys do not open is not named. Raises OSError where a folder of the
        source cannot be listed.
        """
        missing = self._missing(source, files, records)
        found = list[Gone]()
        with self.vault.moment() as (storage, known):
            for row in storage.memories.rows([*missing]).values():
                head, (file, edited) = open_head(self.vault.keyring, row, known), missing[row.id]
                at, ref = head["source"], head["ref"]
                if file in records and self._is_of_another_table(at):
                    continue
                # None where the ref is a row's, or one that the note gave itself
                path = Path(at, ref) if at and ref and self.file_tag(at, ref) == file else None
                there = self._stands(at, file) if path is None else path.exists()
                if file in records or not there:
                    name = f"{at}: {ref or row.id}" if at else row.id
                    below = path is not None and at == source and not edited
                    found.append(Gone(row.id, shown(path or name), ref if below else ""))
        return sorted(found, key=lambda one: one.name)

    def _is_of_another_table(self, at: str | None) -> bool:
        """Whether a row of a database, whose file was read, is of a table that was not."""
        table = self.request.table
        return bool(table and at and not os.path.lexists(at) and not at.endswith(f"#{table}"))

    def _stands(self, at: str, file: bytes) -> bool:
        """Whether a file of that tag, of rows, is still where a memory of it says."""
        folders = Path(at).parents if at and os.path.lexists(at) else ()
        refs = (Path(at).relative_to(folder).as_posix() for folder in folders)
        return any(self.file_tag(at, ref) == file for ref in refs)

    def forget(self, memories: Sequence[str]) -> None:
        """Delete memories that are gone from their source; a dry run deletes nothing."""
        if memories and not self.request.dry_run:
            delete_memories(
                self.vault,
                memories,
                Change(BY_IMPORT),
                also=lambda now: now.files.forget_empty(),
            )

    def _missing(
        self, source: str, files: set[bytes], records: Mapping[bytes, set[bytes]]
    ) -> dict[str, tuple[bytes, bool]]:
        """The memories whose record is gone or whose file was not seen, with the tag of the file,
        and whether they were edited here since.

        Only those count that the key of their own collection proves to have come from here.
        """
        known = self.source_of(source)
        if known is None:
            return {}
        keyring = self.vault.keyring
        rows = [
            (memory, stored[0], stored[2], proven.draft is None)
            for memory, collection, *stored in self.vault.reader().origins.of_source(
                known.id, keyring.openable()
            )
            if (stored[2] in records or stored[2] not in files)  # else it is there, proven or not
            and stored[2] not in self._renamed  # in a dry run it is still called as before
            and (proven := Origin.proven(keyring.of(collection), memory, self.collection, stored))
        ]
        there = files
        if any(file not in files for *_, file, _ in rows):
            there = files | {self.file_tag(*name) for name in names_below(Path(source))}
        found = set[bytes]().union(*records.values())  # in another file, some of them
        return {
            memory: (file, edited)
            for memory, origin, file, edited in rows
            if origin not in found and (file in records or file not in there)
        }


def _source_of(name: str, sources: Mapping[str, str]) -> str | None:
    """The source that a failed file, line or row lies in, the innermost of several."""
    full = shown(os.path.abspath(name))
    given = {source: shown(os.path.abspath(path)) for source, path in sources.items()}
    found = [one for one in given if full == given[one] or full.startswith(_within(given[one]))]
    return max(found, key=lambda one: len(given[one]), default=None)


def _within(path: str) -> tuple[str, ...]:
    return tuple(f"{path.rstrip(os.sep)}{mark}" for mark in (os.sep, ":"))


def collections_of(vault: OpenVault, path: str) -> list[str]:
    """The collections into which this principal imported a path on this machine."""
    reader, keyring = vault.reader(), vault.keyring
    return [one for one in keyring.readable() if find_source(reader, keyring, one, path)]


def keeps_originals(vault: OpenVault, path: str) -> bool:
    """Whether this principal imported a path on this machine, and the originals are to be kept."""
    reader, keyring = vault.reader(), vault.keyring
    found = (find_source(reader, keyring, one, path) for one in keyring.readable())
    return any(one is not None and one.options.get("keep_originals") for one in found)


def known_sources(vault: OpenVault) -> tuple[list[tuple[str, dict[str, Any]]], list[str]]:
    """Every path that this principal imported on this machine, with the options of that import.

    And a sentence for each path of theirs that is not read again until they name it.
    """
    found, left = [], []
    for source in read_sources(vault.reader(), vault.keyring):
        if reason := left_out(vault, source):
            left.append(f"{source.path} {reason}")
        else:
            found.append((source.path, {**source.options, "collection": source.collection}))
    return found, left


def left_out(vault: OpenVault, source: Source) -> str | None:
    """Why a source is not read again until its path is named; None where it is."""
    machine = machine_id()
    if not machine or source.machine != machine:
        return "was imported on another machine, and is not read here until you name it"
    if not is_newest(vault.keyring, source):
        return (
            "is not read again until you name it: this machine does not know the import that its "
            "row stands for"
        )
    return None
