"""What becomes of each file of an import: known and unchanged, or read into the batch.

Boundary: plain text of the files passes through. File names and contents are recognised by keyed
tags alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from io import BytesIO
from pathlib import Path

from msgspec.structs import replace

from memory_store.errors import MemoryStoreError
from memory_store.importing.batch import Batch, Pending
from memory_store.importing.blame import Blame
from memory_store.importing.counterparts import Counterpart, Counterparts
from memory_store.importing.git import blob_id
from memory_store.importing.job import ADD, REPLACE, Counts
from memory_store.importing.ledger import FileMark, KnownRecord, Ledger
from memory_store.importing.readers import label_of, read_file, reader_named, reader_of
from memory_store.importing.source_file import LIMITS, STDIN, Remark, Skip, SourceFile
from memory_store.importing.walker import TEXTS
from memory_store.records import MemoryDraft
from memory_store.vault.rows import Origin
from memory_store.vault.sources import UPLOADED

DIFFERS = (
    "a note of the same path was imported from a folder before and says something else: nothing "
    "was changed. Import it once more, saying whether to replace that note or to add this one"
)

MANY_RECORDS = (
    "originals: none is kept of a file with many records, as a mailbox, a table, a database or an "
    "export of conversations"
)

_DRAFT_FIELDS = MemoryDraft.__struct_fields__


class FileImporter:
    """Takes the files of one import, and keeps which files and records it has seen.

    ``differing`` is one of :data:`memory_store.importing.job.DIFFERING`: that of the request, or
    ``add`` where no note is to be compared. With ``prune``, files that may have lost a record are
    read again for ``seen_records``.
    """

    def __init__(self, ledger: Ledger, counts: Counts, batch: Batch, differing: str) -> None:
        self.seen_files: set[bytes] = set()
        self.seen_records: dict[bytes, set[bytes]] = {}
        self._ledger = ledger
        self._request = ledger.request
        self._counts = counts
        self._batch = batch
        self._differing = differing
        self._tagger = ledger.keys.source
        self._shaping = ledger.request.shaping()
        self._keeping = replace(ledger.request, keep_originals=True).shaping()
        self._counterparts: Counterparts | None = None
        self._blame = Blame(counts)
        self._kept: dict[bytes, int] = {}  # tags of files as before → their memories

    def take(self, source: str, file: SourceFile) -> None:
        """Import one file: skip it when unchanged, else read its records into the batch."""
        if file.as_before:
            self._counts.unchanged += self._kept[file.as_before]
            self.seen_files.add(file.as_before)
            return
        with self._ledger.vault.gate.entered():  # between files a lock may come
            self._take(source, file)

    def as_before(self, root: Path, blobs: Mapping[str, bytes]) -> dict[str, bytes]:
        """Of the files below a source, given by refs and Git's ids of their contents, the tags of
        those that were imported, with all their memories, when their content had that id."""
        found = dict[str, bytes]()
        if self._request.keep_originals:  # to which the ends of lines belong
            return found
        with self._ledger.vault.gate.entered():
            for ref, blob in blobs.items():
                tag = self._ledger.file_tag(root, ref)
                known = self._ledger.known_file(tag)
                if (
                    known is not None
                    and known.blob == self._blob_tag(blob)
                    and self._ledger.is_of(known, str(root))
                    and self._is_complete(known.memories, True)
                ):
                    found[ref] = tag
                    self._kept[tag] = known.memories
        return found

    def pass_over(self, file: SourceFile) -> None:
        """Count a file as still there, without opening it."""
        self.seen_files.add(file.as_before or self._ledger.file_tag(file.root, file.ref))

    def _take(self, source: str, file: SourceFile) -> None:
        tag = self._ledger.file_tag(file.root, file.ref)
        self.seen_files.add(tag)
        known = self._ledger.known_file(tag)
        if file.kind in TEXTS and _is_nothing(file):
            self._counts.leave_out(Skip(file.name, "empty"))
            return
        there = known.memories if known is not None else 0
        before = _large(file) if not there else None  # refused at its first line, for all we know
        content, blob = self._content_tags(file) if before is None else (None, b"")
        one_memory = file.kind in TEXTS
        if (
            (known is not None and source == UPLOADED)
            and (content is not None and not self._request.keep_originals)
            and known.content == self._content_tags(file, self._keeping)[0]
        ):
            content = known.content  # as before, with its original: a box left empty erases none
        if known is not None and known.content == content and self._is_complete(there, one_memory):
            self._counts.unchanged += there
            if content is not None and (
                not self._ledger.is_of(known, source) or known.blob != blob
            ):
                self._batch.marks.append(FileMark(source, tag, content, blob))
            return
        moved = None
        # a file that was here before may have been renamed since, and be back
        if not there and content is not None and not reader_of(file).rows:
            moved = self._ledger.renamed(source, content)
        records: set[bytes] = set()
        brought: list[KnownRecord] = []
        whole = readable = True
        asked = self._request
        file_asked = replace(
            file, table=asked.table, text_column=asked.text_column, type=asked.type
        )
        original = self._original(file)
        if original is not None:  # what is read is what is kept
            file_asked = replace(file_asked, content=lambda: original)
        for item in read_file(file_asked):
            if isinstance(item, MemoryDraft):
                known_record = self._take_record(file, tag, item, records, moved, original)
                if known_record is not None and source != UPLOADED and self._left(known_record):
                    brought.append(known_record)
                original = None  # it is kept once, at the first of its memories
            elif isinstance(item, Remark):
                self._counts.leave_out(item)
            else:
                readable = False
                whole = whole and isinstance(item, Skip)
                self._counts.leave_out(item)
        if readable:  # what cannot be read today may be mended tomorrow: it is not forgotten
            self.seen_records[tag] = records
        if whole and before is not None:
            content, blob = self._content_tags(file) if before == _large(file) else (None, b"")
            content = content if before == _large(file) else None
        if whole and content is not None:
            self._batch.marks.append(FileMark(source, tag, content, blob, brought))
        elif records and file.kind != STDIN:  # its memories are of this source; it is read again
            unread = self._tagger.tag(b"content", self._shaping, tag)
            self._batch.marks.append(FileMark(source, tag, unread, moved=brought))

    def _left(self, record: KnownRecord) -> bool:
        """Whether a record is not, for all that was seen, in the file where it was before."""
        file, origin = record.said.file or b"", record.said.origin
        return file not in self.seen_files or origin not in self.seen_records.get(file, {origin})

    def _original(self, file: SourceFile) -> bytes | None:
        """The bytes of a file whose original is to be kept; None for what cannot be read, which
        its reader names."""
        if not self._request.keep_originals or self._request.dry_run or file.kind == STDIN:
            return None
        reader = reader_of(file)
        if reader.rows or reader.streamed or reader.on_disk:
            self._counts.hints.append(MANY_RECORDS)
            return None
        try:
            return file.data(LIMITS)
        except (OSError, MemoryStoreError):
            return None

    def _is_complete(self, memories: int, one_memory: bool) -> bool:
        """Whether an unchanged file has all its memories: so many are in the ledger.

        An import that did not prune has left those of rows that were gone.
        """
        return memories > 0 and (not self._request.prune or (memories == 1 and one_memory))

    def _content_tags(
        self, file: SourceFile, shaping: bytes | None = None
    ) -> tuple[bytes | None, bytes]:
        """The keyed tag of the file's bytes, none for what cannot be recognised by them; and that
        of Git's id of them, in a work tree. ``shaping``: another than that of this import."""
        if file.kind == STDIN or reader_named(file.kind).on_disk:
            return None, b""
        parts = (b"content", shaping or self._shaping)
        try:
            with file.open() as stream:
                if not file.id_bytes:
                    return self._tagger.tag_stream(stream, *parts), b""
                data = stream.read()
        except (OSError, MemoryStoreError):
            return None, b""  # reading it again for its records reports the error
        blob = self._blob_tag(blob_id(data, file.id_bytes))
        return self._tagger.tag_stream(BytesIO(data), *parts), blob

    def _blob_tag(self, blob: bytes) -> bytes:
        return self._tagger.tag(b"blob", self._shaping, blob)

    def _take_record(
        self,
        file: SourceFile,
        file_tag: bytes,
        draft: MemoryDraft,
        records: set[bytes],
        moved: tuple[str, str] | None,
        original: bytes | None,
    ) -> KnownRecord | None:
        """Put a record into the batch, unless it is known and unchanged: then return it.

        ``moved``: the memory that the same note was under another path, and that path. ``original``
        are the bytes to be kept with it.
        """
        kind = label_of(file, draft)
        draft = self._shaped(draft, file)
        name = f"{file.name}: {draft.ref or draft.id}"
        identity = draft.id if draft.ref is None else draft.ref
        origin_tag, known = self._ledger.known_record(
            (_encoded(draft.source), _encoded(identity)), draft
        )
        if origin_tag in records or origin_tag in self._batch.origins:
            self._counts.fail(name, "the same ref occurs twice; the first is kept")
            return None
        records.add(origin_tag)
        parts = [] if original is None else [sha256(original).digest()]
        draft_tag = self._tagger.tag(b"draft", _canonical(draft), self._shaping, *parts)
        if known is not None and known.said.draft == draft_tag:
            self._counts.unchanged += 1
            return known
        if known is not None and draft.id and known.memory != draft.id.lower():
            self._counts.fail(name, "its ref is that of a memory with another id")
            return None
        counterpart = self._counterpart(file, draft) if known is None else None
        if counterpart is not None:
            self._take_counterpart(counterpart, draft, name, kind, original)
            return None
        foreign = known is not None and known.said.origin not in (None, origin_tag)
        if foreign or (draft.id and draft.id.lower() in self._batch.ids):
            self._counts.fail(name, "its id is that of a memory from another source")
            return None
        origin = Origin(origin_tag, draft_tag, file_tag)
        if known is None and moved is not None and draft.id is None:
            self._batch.put(Pending(draft, origin, moved[0], name, kind, original))
            self._counts.moved.append((moved[1], file.ref))
            return None
        replaced = known.memory if known else None
        edited = known is not None and known.said.draft is None and known.said.origin is not None
        self._batch.put(Pending(draft, origin, replaced, name, kind, original, edited))
        return None

    def _shaped(self, draft: MemoryDraft, file: SourceFile) -> MemoryDraft:
        """The draft with the caller's type and topics, its origin spelled out, and its authors.

        Readers leave ``ref`` out only for an exported memory that never had a source.
        """
        asked = self._request.blame and file.content is None and "language" in draft.metadata
        return replace(
            draft,
            metadata=self._blame.on(draft, file) if asked else draft.metadata,
            type=draft.type or self._request.type,
            topics=tuple(dict.fromkeys((*draft.topics, *self._request.topics))),
            source=draft.source if draft.ref is None else draft.source or str(file.root),
        )

    def _counterpart(self, file: SourceFile, draft: MemoryDraft) -> Counterpart | None:
        """The memory that the same file became by another way, where that is asked about."""
        if self._differing == ADD or draft.id or draft.collection is not None:
            return None
        if self._counterparts is None:
            self._counterparts = Counterparts(self._ledger.vault, self._ledger.collection)
        return self._counterparts.find(file, draft)

    def _take_counterpart(
        self,
        found: Counterpart,
        draft: MemoryDraft,
        name: str,
        kind: str,
        original: bytes | None,
    ) -> None:
        if found.same:
            self._counts.unchanged += 1
        elif self._differing == REPLACE:  # it goes on being a memory of its own source
            draft = replace(draft, source=found.source, ref=found.ref)
            self._batch.put(Pending(draft, found.origin, found.memory, name, kind, original))
        else:
            self._counts.fail(name, DIFFERS)


def _is_nothing(file: SourceFile) -> bool:
    """Whether a file on disk has no bytes, by its entry: it is not opened for that."""
    try:
        return file.content is None and file.path.stat().st_size == 0
    except OSError:
        return False  # reading it says why


def _large(file: SourceFile) -> tuple[int, int] | None:
    """Size and time stamp of a large file on disk, by which a change shows; else ``None``."""
    try:
        status = file.path.stat() if file.content is None else None
    except OSError:
        return None
    large = status is not None and status.st_size > LIMITS.bytes
    return (status.st_size, status.st_mtime_ns) if status is not None and large else None


def _canonical(draft: MemoryDraft) -> bytes:
    values = {name: getattr(draft, name) for name in _DRAFT_FIELDS}  # asdict copies every text
    values["metadata"] = dict(draft.metadata)
    return json.dumps(values, sort_keys=True, default=str).encode("utf-8", "surrogatepass")


def _encoded(name: str | None) -> bytes:
    return (name or "").encode("utf-8", "surrogateescape")
