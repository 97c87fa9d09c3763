"""The source files of an opened vault: their paths, symbols and imports, until it is locked.

Boundary: made of the sealed outlines of the memories that the vault's view may open, and of no
other. What is made is kept with a snapshot, which a lock forgets.

A memory is opened only where its outline is missing (it was indexed before there were any: see
``reindex``), or was made without the grammar that is there now.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from memory_store.code.facts import is_noise
from memory_store.code.import_graph import ImportGraph, SourceFile, import_graph
from memory_store.code.symbols import FileSymbols, Symbol, is_current
from memory_store.index.outlines import OUTLINES, Outline
from memory_store.index.snapshot import Snapshot
from memory_store.records import Memory, base_type
from memory_store.session.extras import record_at, rows
from memory_store.session.opened_vault import OpenVault
from memory_store.session.outlines import outline_of
from memory_store.text.identifiers import CODE
from memory_store.vault.rows import open_memories

_AT_ONCE = 256  # memories that are open at a time


class CodeFile(Struct, frozen=True, gc=False):
    """A file of source code. ``source`` is the folder that it was imported from."""

    id: str
    collection: str
    source: str
    path: str
    language: str
    symbols: FileSymbols
    authors: tuple[str, ...] = ()
    changed: str = ""


class Use(Struct, frozen=True, gc=False):
    """Where a name is used: the place of the file, and the lines."""

    place: int
    lines: tuple[int, ...]


class CodeFiles:
    """Source files, and what is asked of all of them."""

    def __init__(self, files: Iterable[CodeFile]) -> None:
        self.files = tuple(sorted(files, key=lambda one: (one.collection, one.source, one.path)))

    @cached_property
    def defined(self) -> dict[str, list[tuple[int, Symbol]]]:
        """A name → its definitions, each with the place of its file."""
        found: dict[str, list[tuple[int, Symbol]]] = defaultdict(list)
        for place, file in enumerate(self.files):
            for symbol in file.symbols.definitions:
                found[symbol.name].append((place, symbol))
        return dict(found)

    @cached_property
    def used(self) -> dict[str, list[Use]]:
        """A name that is defined here → where it is used."""
        found: dict[str, list[Use]] = defaultdict(list)
        defined = self.defined.keys()
        for place, file in enumerate(self.files):
            for name, lines in file.symbols.references.items():
                if name in defined:
                    found[name].append(Use(place, lines))
        return dict(found)

    @cached_property
    def lines_used(self) -> dict[str, int]:
        """A name that is defined here → how many lines use it."""
        return {name: sum(len(use.lines) for use in uses) for name, uses in self.used.items()}

    @cached_property
    def noise(self) -> tuple[bool, ...]:
        """Whether each file is a test or an example, by its path."""
        return tuple(is_noise(file.path) for file in self.files)

    @cached_property
    def by_id(self) -> dict[str, int]:
        """A memory's id → the place of its file."""
        return {file.id: place for place, file in enumerate(self.files)}

    @cached_property
    def by_path(self) -> dict[str, list[int]]:
        """A path → the files that have it: one in each source at most."""
        found: dict[str, list[int]] = defaultdict(list)
        for place, file in enumerate(self.files):
            found[file.path].append(place)
        return dict(found)

    @cached_property
    def graph(self) -> ImportGraph:
        """Who imports whom, within each source."""
        count = len(self.files)
        imports: list[tuple[int, ...]] = [()] * count
        imported_by: list[tuple[int, ...]] = [()] * count
        unresolved = [0] * count
        trees: dict[tuple[str, str], list[int]] = defaultdict(list)
        for place, file in enumerate(self.files):
            trees[file.collection, file.source].append(place)
        for places in trees.values():
            tree = [self.files[place] for place in places]
            made = import_graph([SourceFile(one.path, one.language, one.symbols) for one in tree])
            for own, place in enumerate(places):
                imports[place] = tuple(places[one] for one in made.imports[own])
                imported_by[place] = tuple(places[one] for one in made.imported_by[own])
                unresolved[place] = made.unresolved[own]
        return ImportGraph(tuple(imports), tuple(imported_by), tuple(unresolved))


def code_files(vault: OpenVault) -> tuple[CodeFiles, int]:
    """The source files that this view of the vault may read, as last committed, and how many
    memories were opened to know them: none where their outlines are in the index."""
    opened = 0
    with vault.moment() as (storage, known):
        snapshot = known.snapshot.limited_to(vault.keyring.readable())
        openable = frozenset(vault.keyring.openable())

        def read() -> CodeFiles:
            nonlocal opened
            files = {
                n: one
                for n, one in _outlined(vault, snapshot)
                if is_current(one.symbols, one.language)
            }
            missing = [n for n in _ordinals(snapshot, openable).tolist() if n not in files]
            opened = len(missing)
            for start in range(0, len(missing), _AT_ONCE):
                some = missing[start : start + _AT_ONCE]
                memories = open_memories(storage, vault.keyring, snapshot.ids(some), known)
                files |= dict(zip(some, map(_file_of, memories), strict=True))
            return CodeFiles(files.values())

        made: CodeFiles = snapshot.worked_out(f"code files {sorted(openable)}", read)
        return made, opened


def outlined_files(vault: OpenVault, snapshot: Snapshot) -> CodeFiles:
    """The source files of a snapshot whose outlines are in the index; opens no memory."""

    def read() -> CodeFiles:
        return CodeFiles(file for _, file in _outlined(vault, snapshot))

    openable = sorted(vault.keyring.openable())
    made: CodeFiles = snapshot.worked_out(f"outlined files {openable}", read)
    return made


def symbols_at(vault: OpenVault, snapshot: Snapshot, ordinal: int) -> FileSymbols | None:
    """The symbols of one document of a snapshot, where its outline is in the index and the view
    may open it."""
    outline = record_at(vault, snapshot, OUTLINES, ordinal)
    return None if outline is None else outline.symbols


def has_code(vault: OpenVault) -> bool:
    """Whether this view of the vault may read any source code; opens nothing."""
    openable = frozenset(vault.keyring.openable())
    return len(_ordinals(vault.snapshot(), openable)) > 0


def _ordinals(snapshot: Snapshot, openable: frozenset[str]) -> npt.NDArray[np.intp]:
    """The living documents of source code in those collections."""
    is_code = [base_type(name) == CODE for name in snapshot.types]
    wanted = np.array(is_code or [False], dtype=bool)
    found: npt.NDArray[np.intp] = np.flatnonzero(
        wanted[snapshot.type_codes] & snapshot.visible(openable)
    )
    return found


def _outlined(vault: OpenVault, snapshot: Snapshot) -> Iterator[tuple[int, CodeFile]]:
    for ordinal, one in rows(vault, snapshot, OUTLINES):
        if one.symbols is not None:
            memory, collection = snapshot.id(ordinal), snapshot.collection(ordinal)
            yield ordinal, _file(memory, collection, one, one.symbols)


def _file_of(memory: Memory) -> CodeFile:
    outline = outline_of(memory)
    assert outline.symbols is not None  # only source code is opened for it
    return _file(memory.id, memory.collection, outline, outline.symbols)


def _file(memory: str, collection: str, outline: Outline, symbols: FileSymbols) -> CodeFile:
    path, source, language = outline.path, outline.source, outline.language
    return CodeFile(
        memory, collection, source, path, language, symbols, outline.authors, outline.changed
    )
