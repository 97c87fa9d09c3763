"""Reading the extra parts of an opened vault: each living document's record of a kind.

Boundary: records say words of the texts. They are given for the collections whose memories the
view may open, and for no other; a search permission alone opens none. What is read stays in memory
with the index, until the lock overwrites it.

:mod:`memory_store.index.extras` says how a kind is added.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from memory_store.errors import TamperedError
from memory_store.index.extras import Extra, RecordRows, Records
from memory_store.index.kinds import KINDS
from memory_store.index.layout import Segment
from memory_store.index.lexicon import LEXICON, Lexicon
from memory_store.index.places import PLACES, numbered_places, numbered_sources
from memory_store.index.snapshot import Part, Snapshot
from memory_store.index.trigrams import TRIGRAMS, Trigrams
from memory_store.session.opened_vault import OpenVault

T = TypeVar("T", bound=Struct)


def rows(
    vault: OpenVault,
    snapshot: Snapshot,
    kind: Records[T],
    collections: Collection[str] | None = None,
    among: npt.NDArray[np.bool_] | None = None,
) -> Iterator[tuple[int, T]]:
    """``(document, record)`` of every living memory that the view may open and that has one.

    Documents are those of a snapshot of the vault, ``among`` those (bool [size]). ``collections``
    are ids (``None``: all). Raises TamperedError.
    """
    for part, extra in parts(vault, snapshot, kind.name, collections):
        wanted = part.alive if among is None else part.alive & among[part.span]
        for row in np.flatnonzero(wanted).tolist():
            try:
                record = kind.record(extra, row)
            except ValueError as error:
                raise TamperedError(str(error)) from None
            if record is not None:
                yield part.base + row, record


def record_of(vault: OpenVault, kind: Records[T], memory: str) -> T | None:
    """The record of one memory; ``None`` where there is none, or the view may not open it."""
    snapshot = vault.snapshot()
    ordinal = snapshot.ordinal_of(memory)
    return None if ordinal is None else record_at(vault, snapshot, kind, ordinal)


def record_at(vault: OpenVault, snapshot: Snapshot, kind: Records[T], ordinal: int) -> T | None:
    """The same, by the document of a snapshot of the vault."""
    if snapshot.collection(ordinal) not in vault.keyring.openable():
        return None
    part = snapshot.part_of(ordinal)
    extra = _extra(part.segment, kind.name)
    return None if extra is None else kind.record(extra, ordinal - part.base)


def parts(
    vault: OpenVault, snapshot: Snapshot, kind: str, collections: Collection[str] | None = None
) -> Iterator[tuple[Part, Extra]]:
    """The segments of a snapshot that have an extra part of a kind, as far as the view may open
    their memories."""
    openable = set(vault.keyring.openable())
    for part in snapshot.parts:
        asked = collections is None or part.collection in collections
        if asked and part.collection in openable:
            extra = _extra(part.segment, kind)
            if extra is not None:
                yield part, extra


def lexicons(
    vault: OpenVault, snapshot: Snapshot, collections: Collection[str] | None = None
) -> Iterator[tuple[Part, Lexicon]]:
    """The same of the lexicon: the words of the memories that the view may open."""
    for part, extra in parts(vault, snapshot, LEXICON.name, collections):
        if isinstance(extra, Lexicon):
            yield part, extra


def trigrams(vault: OpenVault, snapshot: Snapshot) -> Iterator[tuple[Part, Trigrams]]:
    """The same of the trigrams."""
    for part, extra in parts(vault, snapshot, TRIGRAMS.name):
        if isinstance(extra, Trigrams):
            yield part, extra


def sources(
    vault: OpenVault, snapshot: Snapshot, collections: Collection[str]
) -> npt.NDArray[np.int32]:
    """int32 [size]: a number for the source (an imported folder or file) of each document of some
    collections; 0 where it has none, or the view may not open it. Raises TamperedError."""
    numbers: dict[str, int] = {}
    found = np.zeros(snapshot.size, np.int32)
    for part, extra in parts(vault, snapshot, PLACES.name, collections):
        if isinstance(extra, RecordRows):
            try:
                found[part.span] = numbered_sources(extra, numbers)
            except ValueError as error:
                raise TamperedError(str(error)) from None
    return found


def folders(
    vault: OpenVault, snapshot: Snapshot
) -> Iterator[tuple[Part, npt.NDArray[np.int32], Callable[[int], str]]]:
    """Of each segment whose memories the view may open: the number of each document's folder
    (int32 [n]), and what gives the folder of a number. That raises TamperedError."""
    for part, extra in parts(vault, snapshot, PLACES.name):
        if isinstance(extra, RecordRows):
            numbers, first = numbered_places(extra)
            yield part, numbers, partial(_folder, extra, first)


def _folder(extra: RecordRows, first: Sequence[int], number: int) -> str:
    try:
        place = PLACES.record(extra, first[number])
    except ValueError as error:
        raise TamperedError(str(error)) from None
    return place.folder if place else ""


def _extra(segment: Segment, kind: str) -> Extra | None:
    try:
        return segment.extra(kind)
    except ValueError as error:
        raise TamperedError(str(error)) from None


def without_records(
    snapshot: Snapshot, collections: Collection[str], kinds: Collection[str] | None = None
) -> npt.NDArray[np.bool_]:
    """bool [size]: the living documents of collections that some kind, one of ``kinds`` (``None``:
    of all), has no record of yet."""
    lacking = np.zeros(snapshot.size, np.bool_)
    for part in snapshot.parts:
        if part.collection in collections:
            for kind in KINDS if kinds is None else kinds:
                lacking[part.span] |= part.segment.lacks(kind) & part.alive
    return lacking
