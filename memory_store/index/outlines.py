"""Outlines: what each file of source code defines, uses and imports, as an extra part of a segment.

Boundary: an outline holds names and paths in plain text until it is sealed with its segment.
"""

from __future__ import annotations

from msgspec import Struct

from memory_store.code.symbols import FileSymbols
from memory_store.index.extras import Records


class Outline(Struct, frozen=True, array_like=True, gc=False):
    """The outline of a memory: empty (no ``symbols``) of what is no source code.

    ``path`` is its name in its source, ``source`` the root that it was imported from.
    ``authors`` are those of the last change of each part, ``changed`` the day of the newest: empty
    where Git was not asked.
    """

    path: str = ""
    source: str = ""
    language: str = ""
    symbols: FileSymbols | None = None
    authors: tuple[str, ...] = ()
    changed: str = ""


OUTLINES = Records("outline", Outline)
