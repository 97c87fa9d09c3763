"""Places: the source and the folder that each memory was imported from, as an extra part.

Boundary: paths in plain text until they are sealed with their segment.
"""

from __future__ import annotations

import posixpath

from msgspec import Struct

from memory_store.index.extras import Records

MOST_DEPTH = 16  # folders within folders that are told apart


class Place(Struct, frozen=True, array_like=True):
    """Where a memory lies: ``folder`` in its ``source``, with slashes, empty at its top. Both are
    empty for what was not imported from files."""

    source: str = ""
    folder: str = ""


PLACES = Records("place", Place)


def place_in(source: str | None, ref: str | None) -> Place:
    """The place of a memory of that source and name in it; an address is no path."""
    path = (ref or "").replace("\\", "/")
    if not source or not path or "://" in path or path.startswith("/"):
        return Place()
    folder = posixpath.dirname(posixpath.normpath(path))
    return Place(source, "/".join(folder.split("/")[:MOST_DEPTH]))
