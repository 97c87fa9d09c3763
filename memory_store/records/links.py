"""How memories hang together: what one links to, what links to it, and what is near it.

Boundary: opened titles and sentences of collections that the caller may read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from memory_store.records.json_record import JsonRecord
from memory_store.records.memories import Memory, base_type
from memory_store.text.identifiers import CODE

PARENT, SUPERSEDES = "parent", "supersedes"
MENTION = "mention"


class Linked(Struct, frozen=True):
    """The memory at the other end of a link.

    ``kind`` is ``wiki``, ``markdown``, ``parent`` or ``supersedes``; ``reply`` to a message, or
    ``attachment`` of a message or note; or ``mention`` without a link.
    ``target`` is the link as it is written, where this memory has written it; ``around`` the
    sentence that the other one has written it in.
    """

    id: str
    title: str
    type: str
    collection: str
    kind: str
    target: str = ""
    around: str = ""


class Unresolved(Struct, frozen=True):
    """A link to a memory that is not there: none that the caller may read has that name."""

    target: str
    kind: str


class MemoryLinks(JsonRecord, frozen=True):
    """The links of one memory, both ways. ``back_total`` counts all memories that link to it.

    ``unlinked`` are memories that name it by its title or an alias, without a link;
    ``unlinked_opened`` were opened to see that, and ``unlinked_left`` were not, and may do so, too.
    """

    id: str
    out: Sequence[Linked] = ()
    back: Sequence[Linked] = ()
    unresolved: Sequence[Unresolved] = ()
    back_total: int = 0
    unlinked: Sequence[Linked] = ()
    unlinked_opened: int = 0
    unlinked_left: int = 0


class Unfolded(Struct, frozen=True):
    """A memory for reading: with its links, what each of them leads to, and what it embeds.

    ``targets`` is (kind, target as written) → id. ``embedded`` is id → the memory, and its targets.
    """

    memory: Memory
    links: MemoryLinks
    targets: Mapping[tuple[str, str], str]
    embedded: Mapping[str, tuple[Memory, Mapping[tuple[str, str], str]]]

    @property
    def opened(self) -> int:
        """How many memories were opened for it."""
        links = self.links
        return 1 + len(links.back) + links.unlinked_opened + len(self.embedded)


class Related(JsonRecord, frozen=True):
    """A memory near another one. ``why`` says by what, the strongest reason first; ``score`` is
    between 0 and 1. ``ref`` is the path of source code, and tells others of one title apart;
    else it is null."""

    id: str
    title: str
    type: str
    collection: str
    score: float
    why: tuple[str, ...]
    ref: str | None = None

    @property
    def shown(self) -> str:
        """What a list calls it: source code by its path, for many files have one name."""
        title = self.title or "Untitled"
        if self.ref and base_type(self.type) != CODE:
            return f"{title} ({self.ref})"
        return self.ref or title
