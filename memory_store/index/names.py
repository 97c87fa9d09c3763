"""Names: what each memory is called, and which others it names, as an extra part.

Boundary: titles, paths and the targets of links in plain text until they are sealed with their
segment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from memory_store.index.extras import Records


class Named(Struct, frozen=True, array_like=True, gc=False):
    """A memory is found by its ``title``, its ``ref`` in its ``source``, its ``aliases`` and its
    ``message`` id.

    It names others: by the targets of ``links``, under how they are written; by message ids that it
    ``answers``, what it was ``attached`` to, its ``parent`` and what it ``supersedes``.
    """

    title: str = ""
    source: str = ""
    ref: str = ""
    aliases: Sequence[str] = ()
    links: Mapping[str, Sequence[str]] = {}
    message: str = ""
    answers: str = ""
    attached: str = ""
    parent: str = ""
    supersedes: str = ""


NAMES = Records("names", Named)
