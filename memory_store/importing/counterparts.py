"""Finds the memories that an upload would copy: the same files, imported from a folder before.

Boundary: reads the names of every memory of one collection, and opens the heads of those that may
be the same, for a caller who may read them; no body. Texts are compared by their keyed tags. To a
caller who may not read, a counterpart would confirm a guess.

A server does not know where an uploaded folder lies on a disk, so an upload is a source of its own,
and its records have other origins. What is the same is recognised by the end of its path.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import PurePosixPath

from msgspec import Struct

from memory_store.errors import BadInputError
from memory_store.importing.drafts import memory_from_draft
from memory_store.importing.readers import reader_of
from memory_store.importing.source_file import SourceFile
from memory_store.records import Memory, MemoryDraft, base_type
from memory_store.session.names import names_in
from memory_store.session.opened_vault import OpenVault
from memory_store.text.canonical import normalise_topic
from memory_store.vault.rows import Origin, content_tag, open_head, read_origins
from memory_store.vault.sources import UPLOADED

COMPARED = ("title", "valid_from", "valid_to", "metadata")

Parts = tuple[str, ...]


class Counterpart(Struct, frozen=True):
    """A memory that came from the same file by another way; ``same``: and says the same.

    ``origin``: by which its own source knows it again.
    """

    memory: str
    source: str
    ref: str
    origin: Origin
    same: bool


class _Place(Struct, frozen=True):
    memory: str
    source: str
    ref: str
    parts: Parts


class Counterparts:
    """The memories of a collection that were imported from this machine's folders, by file name."""

    def __init__(self, vault: OpenVault, collection: str) -> None:
        self._vault = vault
        self._collection = collection
        self._taken: set[str] = set()
        self._places: dict[str, list[_Place]] = defaultdict(list)
        for memory, named in names_in(vault, [collection]):
            if named.source and named.ref and not named.source.startswith(UPLOADED):
                parts = (*_parts(named.source), *_parts(named.ref))
                self._places[parts[-1]].append(_Place(memory, named.source, named.ref, parts))

    def find(self, file: SourceFile, draft: MemoryDraft) -> Counterpart | None:
        """The memory of the same file, each at most once.

        That of the same text where the paths below the uploaded folder are the same. That of
        another text only where more than a bare file name is.
        """
        row = _parts(draft.ref or "") if reader_of(file).rows else ()
        below = _parts(file.ref)
        named = below if len(below) > 1 else _parts(str(file.path))
        try:
            wanted = memory_from_draft(draft, self._collection)
        except BadInputError:
            return None  # as writing it will say
        different = None
        for place in self._places.get(((*below, *row) or ("",))[-1], ()):
            if place.memory in self._taken:
                continue
            if _ends(place.parts, (*below, *row)) and self._says(place.memory, wanted):
                return self._take(place, same=True)
            if len(named) > 1 and _ends(place.parts, (*named, *row)):
                different = different or place
        return self._take(different, same=False) if different is not None else None

    def _take(self, place: _Place, *, same: bool) -> Counterpart:
        self._taken.add(place.memory)
        here = (place.memory, self._collection)
        found = read_origins(self._vault.reader(), self._vault.keyring, [here])
        origin = found.get(place.memory, Origin())
        return Counterpart(place.memory, place.source, place.ref, origin, same)

    def _says(self, memory: str, wanted: Memory) -> bool:
        """Whether a memory says all of an upload; it may be completed, and have more topics."""
        with self._vault.moment() as (storage, known):
            row = storage.memories.rows([memory]).get(memory)
            if row is None:
                return False
            head = open_head(self._vault.keyring, row, known)
        if any(head[name] != getattr(wanted, name) for name in COMPARED):
            return False
        if base_type(head["type"]) != base_type(wanted.type):
            return False
        topics = {normalise_topic(topic) for topic in head["topics"]}
        if not topics >= {normalise_topic(topic) for topic in wanted.topics}:
            return False
        keys = self._vault.keyring.of(self._collection)
        tag = content_tag(keys, wanted.title, wanted.text)
        bodies = self._vault.reader().memories.bodies_tagged(
            self._collection, [*keys.stored_forms(tag)]
        )
        return head["content"] in bodies.values()


def _parts(path: str) -> Parts:
    return PurePosixPath(path.replace("\\", "/")).parts


def _ends(whole: Parts, end: Parts) -> bool:
    return len(whole) >= len(end) and whole[len(whole) - len(end) :] == end
