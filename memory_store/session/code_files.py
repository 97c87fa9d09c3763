"""The source files of an opened vault: their paths, symbols and imports, until it is locked.

Boundary: made of the sealed outlines of the memories that the vault's view may open, and of no
other. What is made is kept with a snapshot, which a lock forgets.

A memory is opened only where its outline is missing (it was indexed before there were any: see
``reindex``), or was made without the grammar that is there now.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from memory_store.code.facts import is_noise
from memory_store.code.import_graph import ImportGraph, SourceFile, import_graph
from memory_store.code.symbols import FileSymbols, Symbol, is_current
from memory_store.index.outlines import DESCRIPTIONS, OUTLINES, Outline
from memory_store.index.snapshot import Snapshot
from memory_store.index.terms import has_term
from memory_store.records import Memory, base_type
from memory_store.session.extras import record_at, rows
from memory_store.session.opened_vault import OpenVault
from memory_store.session.outlines import outline_of
from memory_store.text.canonical import folded
from memory_store.text.identifiers import CODE
from memory_store.vault.rows import open_memories

_AT_ONCE = 256  # memories that are open at a time
_WHOLE_TERM = re.compile(r"_*[A-Za-z0-9]\w*", re.ASCII)  # a name that the word index has whole


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
        self._lines_used: dict[str, int] = {}

    @cached_property
    def defined(self) -> dict[str, list[tuple[int, Symbol]]]:
        """A name → its definitions, each with the place of its file."""
        found: dict[str, list[tuple[int, Symbol]]] = defaultdict(list)
        for place, file in enumerate(self.files):
            for symbol in file.symbols.definitions:
                found[symbol.name].append((place, symbol))
        return dict(found)

    @cached_property
    def spelled(self) -> dict[str, str]:
        """A name in lower case → as the first that defines it spells it."""
        return {name.lower(): name for name in reversed(self.defined)}

    @cached_property
    def used(self) -> dict[str, list[Use]]:
        """A name that is defined here → where it is used."""
        found: dict[str, list[Use]] = {name: [] for name in self.defined}
        for place, file in enumerate(self.files):
            references = file.symbols.references
            for name in references.keys() & found.keys():
                found[name].append(Use(place, references[name]))
        return {name: uses for name, uses in found.items() if uses}

    def lines_used(self, name: str) -> int:
        """How many lines use a name that is defined here."""
        if name not in self._lines_used:
            self._lines_used[name] = sum(len(use.lines) for use in self.used.get(name, ()))
        return self._lines_used[name]

    @cached_property
    def line_counts(self) -> dict[str, int]:
        """A name that is defined here → how many lines use it."""
        counts = dict.fromkeys(self.defined, 0)
        for file in self.files:
            for name, lines in file.symbols.references.items():
                if name in counts:
                    counts[name] += len(lines)
        return counts

    @cached_property
    def noise(self) -> tuple[bool, ...]:
        """Whether each file is a test or an example, by its path."""
        return tuple(is_noise(file.path) for file in self.files)

    @cached_property
    def by_id(self) -> dict[str, int]:
        """A memory's id → the place of its file."""
        return {file.id: place for place, file in enumerate(self.files)}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What each file is called: its path; where there are several sources, behind the name of
        its own: ``flask/pyproject.toml``."""
        several = len({(one.collection, one.source) for one in self.files}) > 1
        return tuple(
            f"{one.source.rpartition('/')[2]}/{one.path}" if several and one.source else one.path
            for one in self.files
        )

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
    with vault.moment() as (_, known):
        snapshot = known.snapshot.limited_to(vault.keyring.readable())
        openable = frozenset(vault.keyring.openable())

        def read() -> CodeFiles:
            nonlocal opened
            files, opened = _read(vault, snapshot, _ordinals(snapshot, openable))
            return files

        made: CodeFiles = snapshot.worked_out(_every(openable), read)
        return made, opened


def code_files_using(
    vault: OpenVault, name: str, collections: Collection[str] | None
) -> tuple[CodeFiles, int, int]:
    """Those of some collections (``None``: of all) that may define or use a name, how many source
    files there are in these, and how many memories were opened. Until all files are known, those
    are read that hold the name by the word index.
    """
    with vault.moment() as (_, known):
        snapshot = known.snapshot.limited_to(vault.keyring.readable())
        openable = frozenset(vault.keyring.openable())
        asked = openable if collections is None else openable.intersection(collections)
        every = _ordinals(snapshot, asked)
        if _WHOLE_TERM.fullmatch(name) and not snapshot.has_worked_out(_every(openable)):
            blinders = {c: vault.keyring.of(c).blinder for c in snapshot.collections}
            hashes = {c: [one.term(CODE, folded(name))] for c, one in blinders.items()}
            files, opened = _read(vault, snapshot, every[has_term(snapshot, hashes, every)])
            return files, len(every), opened
    files, opened = code_files(vault)
    return files, len(every), opened


def _every(openable: Collection[str]) -> str:
    return f"code files {sorted(openable)}"


def _read(
    vault: OpenVault, snapshot: Snapshot, wanted: npt.NDArray[np.intp]
) -> tuple[CodeFiles, int]:
    """Some source files, and how many memories were opened to know them."""
    outlined = _outlined(vault, snapshot, wanted)
    files = {n: one for n, one in outlined if is_current(one.symbols, one.language)}
    missing = [n for n in wanted.tolist() if n not in files]
    with vault.moment() as (storage, known):
        for start in range(0, len(missing), _AT_ONCE):
            some = missing[start : start + _AT_ONCE]
            memories = open_memories(storage, vault.keyring, snapshot.ids(some), known)
            files |= dict(zip(some, map(_file_of, memories), strict=True))
    return CodeFiles(files.values()), len(missing)


def outlined_files(vault: OpenVault, snapshot: Snapshot) -> CodeFiles:
    """The source files of a snapshot whose outlines are in the index; opens no memory."""

    def read() -> CodeFiles:
        openable = frozenset(vault.keyring.openable())
        found = _outlined(vault, snapshot, _ordinals(snapshot, openable))
        return CodeFiles(file for _, file in found)

    openable = sorted(vault.keyring.openable())
    made: CodeFiles = snapshot.worked_out(f"outlined files {openable}", read)
    return made


def symbols_at(vault: OpenVault, snapshot: Snapshot, ordinal: int) -> FileSymbols | None:
    """The symbols of one document of a snapshot, where its outline is in the index and the view
    may open it."""
    outline = record_at(vault, snapshot, OUTLINES, ordinal)
    return None if outline is None else outline.symbols


def descriptions_at(vault: OpenVault, snapshot: Snapshot, ordinal: int) -> tuple[str, ...]:
    """What the definitions of one document are about, where its outline says it and the view may
    open it."""
    outline = record_at(vault, snapshot, DESCRIPTIONS, ordinal)
    return () if outline is None else outline.descriptions or ()


def without_descriptions(vault: OpenVault, snapshot: Snapshot) -> set[int]:
    """The documents of source code whose outlines were made before there were descriptions."""
    wanted = np.zeros(snapshot.size, np.bool_)
    wanted[_ordinals(snapshot, frozenset(vault.keyring.openable()))] = True
    found = rows(vault, snapshot, DESCRIPTIONS, among=wanted)
    return {ordinal for ordinal, outline in found if outline.descriptions is None}


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


def _outlined(
    vault: OpenVault, snapshot: Snapshot, wanted: npt.NDArray[np.intp]
) -> Iterator[tuple[int, CodeFile]]:
    """Those of some documents that have an outline."""
    chosen = np.zeros(snapshot.size, np.bool_)
    chosen[wanted] = True
    found = [
        (ordinal, one, one.symbols)
        for ordinal, one in rows(vault, snapshot, OUTLINES, among=chosen)
        if one.symbols is not None
    ]
    ids = snapshot.ids([ordinal for ordinal, _, _ in found])
    for (ordinal, one, symbols), memory in zip(found, ids, strict=True):
        yield ordinal, _file(memory, snapshot.collection(ordinal), one, symbols)


def _file_of(memory: Memory) -> CodeFile:
    outline = outline_of(memory)
    assert outline.symbols is not None  # only source code is opened for it
    return _file(memory.id, memory.collection, outline, outline.symbols)


def _file(memory: str, collection: str, outline: Outline, symbols: FileSymbols) -> CodeFile:
    path, source, language = outline.path, outline.source, outline.language
    return CodeFile(
        memory, collection, source, path, language, symbols, outline.authors, outline.changed
    )
