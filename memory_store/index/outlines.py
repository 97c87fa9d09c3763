"""Outlines: what each file of source code defines, uses and imports, as an extra part of a segment.

Boundary: an outline holds names and paths in plain text until it is sealed with its segment.
"""

from __future__ import annotations

from msgspec import Raw, Struct

from memory_store.code.symbols import FileSymbols
from memory_store.index.extras import Records


class Outline(Struct, frozen=True, array_like=True, gc=False):
    """The outline of a memory: empty (no ``symbols``) of what is no source code.

    ``path`` is its name in its source, ``source`` the root that it was imported from.
    ``authors`` are those of the last change of each part, ``changed`` the day of the newest: empty
    where Git was not asked. ``descriptions`` are those of its definitions; ``None`` of what was
    indexed before they were kept.
    """

    path: str = ""
    source: str = ""
    language: str = ""
    symbols: FileSymbols | None = None
    authors: tuple[str, ...] = ()
    changed: str = ""
    descriptions: tuple[str, ...] | None = None


class _Described(Struct, frozen=True, array_like=True, gc=False):
    """The same record, of which no more is decoded than its descriptions."""

    path: Raw = Raw()
    source: Raw = Raw()
    language: Raw = Raw()
    symbols: Raw = Raw()
    authors: Raw = Raw()
    changed: Raw = Raw()
    descriptions: tuple[str, ...] | None = None


OUTLINES = Records("outline", Outline)
DESCRIPTIONS = Records(OUTLINES.name, _Described)
