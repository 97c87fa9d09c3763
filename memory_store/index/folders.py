"""Folders that are worth telling apart: what lies where, cut where there is something to tell.

Boundary: paths in plain text come in for one call; ordinals come out, and how deep a folder lies.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from memory_store.index.meanings import FEWEST, step_of
from memory_store.index.places import Place

LARGE = 60  # documents: a folder of fewer is shown whole
SHARE = 4  # … or of fewer than one in so many of all that lie in folders

Path = tuple[str, ...]
"""A source, and folder within folder in it."""


class Folder(Struct, frozen=True):
    """What lies in a folder or below it, as ordinals. ``large`` ones want to be told apart by
    something else."""

    path: Path
    documents: Sequence[int]
    large: bool


def path_of(place: Place) -> Path:
    """A place as folder within folder; empty for none."""
    return (place.source, *filter(None, place.folder.split("/"))) if place.source else ()


def folders(places: Mapping[int, Place]) -> list[Folder]:
    """The folders that hold the documents of ``places``, by their paths.

    A folder with much in it is shown by those in it. What lies at the top of a source, or in a
    folder of hardly any, is in none.
    """
    inside: dict[Path, list[int]] = defaultdict(list)
    for ordinal, place in places.items():
        inside[path_of(place)].append(ordinal)
    inside.pop((), None)
    below: Counter[Path] = Counter()
    for path, documents in inside.items():
        for depth in range(1, len(path) + 1):
            below[path[:depth]] += len(documents)
    children: dict[Path, list[Path]] = defaultdict(list)
    for path in sorted(below):
        children[path[:-1]].append(path)
    large = max(LARGE, 2 ** (step_of(sum(map(len, inside.values()))) / 2) / SHARE)

    def held(path: Path) -> Iterator[int]:
        yield from inside.get(path, ())
        for child in children[path]:
            yield from held(child)

    def cut(path: Path) -> Iterator[Folder]:
        within = [child for child in children[path] if below[child] >= FEWEST]
        top = len(path) == 1
        if not top and (below[path] <= large or not within):
            yield Folder(path, sorted(held(path)), below[path] > large)
            return
        for child in within:
            yield from cut(child)
        own = [*inside.get(path, ())]
        for child in children[path]:
            own += [] if child in within else held(child)
        if not top and len(own) >= FEWEST:
            yield Folder(path, sorted(own), len(own) > large)

    return [folder for source in children[()] for folder in cut(source)]
