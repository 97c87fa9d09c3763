"""Which memory links to which: worked out in memory from their names, when it is first asked.

Boundary: reads the names of memories that are new or changed since it was last asked, of those
collections alone that the caller may open. What it keeps until the lock are ids and numbers that
stand for names, no title, path or text.

A link is resolved among the collections of the caller. So a note that appears later is found by
links that were written before it, and what a caller may not read is for them not there.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from memory_store.index.names import Named
from memory_store.records.links import PARENT, SUPERSEDES
from memory_store.session.names import KINDS, names_among
from memory_store.text.link_names import (
    ATTACHMENT,
    REPLY,
    WIKI,
    Names,
    key_of_message,
    keys_of_attached,
    keys_of_link,
    keys_of_reply,
    names_of,
)

if TYPE_CHECKING:
    from memory_store.session.opened_vault import OpenVault

MOST_GRAPHS = 16  # of different collections, such as those of the members of a server
SPARE = 256  # memories that may be gone before any of them is forgotten

Asked = tuple[str, tuple[int, ...]]
"""The kind of a link, and the names that it asks for."""


class _Noted(Struct, frozen=True):
    """What is known of a memory's links: ``of`` the row with this version and tag."""

    of: tuple[int, bytes | None]
    collection: str
    names: Names
    asked: tuple[Asked, ...]
    others: tuple[tuple[str, str], ...]  # kind and id: parent, supersedes


class LinkGraph:
    """The links among some collections. ``outgoing`` and ``incoming`` are id → (kind, id), each
    pair once, in the order in which they are written."""

    def __init__(self, noted: Mapping[str, _Noted]) -> None:
        self._noted = noted
        self._called: dict[int, list[str]] = defaultdict(list)
        self._namesakes: dict[int, _Namesakes] = {}
        for memory, one in noted.items():
            for key in one.names.keys:
                self._called[key].append(memory)
        self.outgoing: dict[str, tuple[tuple[str, str], ...]] = {}
        incoming: dict[str, list[tuple[str, str]]] = defaultdict(list)
        for memory, one in noted.items():
            found = dict.fromkeys(self._links_of(memory, one))
            if found:
                self.outgoing[memory] = tuple(found)
            for kind, target in found:
                incoming[target].append((kind, memory))
        self.incoming = {memory: tuple(links) for memory, links in incoming.items()}

    def _links_of(self, memory: str, one: _Noted) -> Iterator[tuple[str, str]]:
        for kind, asked in one.asked:
            target = self._found(one, asked)
            if target is not None and target != memory:
                yield kind, target
        for kind, target in one.others:
            if target in self._noted and target != memory:
                yield kind, target

    def resolve(self, memory: str, target: str, kind: str, source: str, path: str) -> str | None:
        """The id of the memory that a link in a memory of that source and path leads to; ``None``:
        it is not there."""
        if target.lower() in self._noted:
            return target.lower()
        one = self._noted.get(memory)
        keys = keys_of_link(target, kind, source, path)
        return self._found(one, keys) if one is not None else None

    def _found(self, one: _Noted, asked: Sequence[int]) -> str | None:
        key = next((key for key in asked if key in self._called), None)
        if key is None:
            return None
        called = self._called[key]
        if len(called) == 1:
            return called[0]
        if key not in self._namesakes:
            self._namesakes[key] = _Namesakes((each, self._noted[each]) for each in called)
        return self._namesakes[key].nearest(one)


_Where = tuple[int | None, str | None, int | None]
"""A source, a collection and a folder; ``None``: any."""


class _Namesakes:
    """The notes of one name, which may be all of a vault, each linking to that name many times.

    The nearest is of the same source, then of the same collection, then below the folder of the
    link, then of the shortest path. It is looked up, however many there are.
    """

    def __init__(self, called: Iterable[tuple[str, _Noted]]) -> None:
        self._best: dict[_Where, tuple[int, str]] = {}
        for memory, one in called:
            source, collection, place = one.names.source, one.collection, (one.names.depth, memory)
            for folder in (None, *one.names.folders):  # whose names begin with the source
                for within in (collection, None):
                    self._take((source, within, folder), place)
            for within in (collection, None):
                self._take((None, within, None), place)

    def _take(self, where: _Where, place: tuple[int, str]) -> None:
        self._best[where] = min(place, self._best.get(where, place))

    def nearest(self, one: _Noted) -> str:
        for source in (one.names.source, None):
            for within in (one.collection, None):
                for folder in (*one.names.folders[:1], None):
                    if found := self._best.get((source, within, folder)):
                        return found[1]
        raise AssertionError("a name without a note")


class LinkGraphs:
    """The link graphs of an opened vault, brought up to date when they are asked for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._noted: dict[str, _Noted] = {}
        self._graphs: OrderedDict[frozenset[str], tuple[Any, LinkGraph]] = OrderedDict()

    def of(self, vault: OpenVault) -> LinkGraph:
        """The graph of the collections that this view of the vault opens."""
        with self._lock, vault.moment() as (_, known):
            openable = frozenset(vault.keyring.openable())
            held = self._graphs.get(openable)
            if held is not None and held[0] is known.snapshot:
                self._graphs.move_to_end(openable)
                return held[1]
            snapshot = known.snapshot
            wanted = snapshot.visible(openable).copy()
            ordinals = wanted.nonzero()[0]
            ids = snapshot.ids(ordinals)
            versions, tags = snapshot.versions[ordinals].tolist(), snapshot.row_tags()
            # an id may be of another memory by now, of the same version
            rows_of = [(n, tags.get(one)) for one, n in zip(ids, versions, strict=True)]
            places = dict(zip(ordinals.tolist(), zip(ids, rows_of, strict=True), strict=True))
            for ordinal, (memory, row) in places.items():
                kept = self._noted.get(memory)
                wanted[ordinal] = kept is None or kept.of != row
            for ordinal, names in names_among(vault, wanted):
                memory, row = places[ordinal]
                self._noted[memory] = _noted(row, snapshot.collection(ordinal), names)
            graph = LinkGraph({one: self._noted[one] for one in ids if one in self._noted})
            self._graphs[openable] = snapshot, graph
            while len(self._graphs) > MOST_GRAPHS:
                self._graphs.popitem(last=False)
            self._forget_deleted(snapshot)
            return graph

    def _forget_deleted(self, snapshot: Any) -> None:
        if len(self._noted) > 2 * snapshot.total + SPARE:
            there = set(snapshot.ids(snapshot.alive.nonzero()[0]))
            self._noted = {one: kept for one, kept in self._noted.items() if one in there}

    def wipe(self) -> None:
        """Forget all of it, when the vault is locked."""
        self._noted.clear()
        self._graphs.clear()


def _noted(of: tuple[int, bytes | None], collection: str, named: Named) -> _Noted:
    source, path = named.source, named.ref
    asked = [
        (kind, keys_of_link(target, kind, source, path))
        for kind in KINDS
        for target in named.links.get(kind, ())
    ]
    if named.answers:
        asked.append((REPLY, keys_of_reply(named.answers)))
    if named.attached:
        asked.append((ATTACHMENT, keys_of_attached(named.attached, source, path)))
    given = ((PARENT, named.parent), (SUPERSEDES, named.supersedes))
    others = [(kind, one.lower()) for kind, one in given if one]
    others += [(WIKI, one.lower()) for one in named.links.get(WIKI, ()) if _is_id(one)]
    names = names_of(source, path, [named.title, *named.aliases])
    if named.message:
        names = replace(names, keys=(*names.keys, key_of_message(named.message)))
    return _Noted(of, collection, names, tuple(asked), tuple(others))


def _is_id(text: str) -> bool:
    return len(text) == 36 and text.count("-") == 4
