"""What can be asked of source code: symbols, outlines, dependants, parts of files.

Boundary: names, paths and lines are plain text of memories: for those who may read them. Each
answer says in ``opened`` how many memories were opened for it.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class CodeSymbol(Struct, frozen=True):
    """One definition, where it stands, and how many lines use its name (``references``)."""

    name: str
    kind: str
    container: str
    file: str
    line: int
    end_line: int
    signature: str
    language: str
    references: int
    collection: str
    id: str

    @property
    def path(self) -> str:
        """Its name with that of what it stands in: ``Session.open``."""
        return f"{self.container}.{self.name}" if self.container else self.name


class CodeUses(Struct, frozen=True):
    """The lines of one file that use a name, and the definitions they stand in (``callers``: of
    many the first ones)."""

    file: str
    lines: tuple[int, ...]
    callers: tuple[str, ...]
    collection: str
    id: str


class CodeReference(Struct, frozen=True):
    """One line that uses a name which is defined somewhere here."""

    name: str
    file: str
    line: int
    collection: str
    id: str


class CodeReferences(Struct, frozen=True):
    """The first lines that use a name, by file, and how many do (``references``)."""

    name: str
    rows: tuple[CodeReference, ...]
    references: int
    opened: int


class SymbolAnswer(Struct, frozen=True):
    """Where a name is defined and used. ``references`` counts the lines of all ``uses``."""

    name: str
    definitions: tuple[CodeSymbol, ...]
    uses: tuple[CodeUses, ...]
    references: int
    files: int
    opened: int


class OutlineEntry(Struct, frozen=True):
    """One definition of a file, ``depth`` levels within others."""

    name: str
    kind: str
    container: str
    line: int
    end_line: int
    signature: str
    depth: int


class CodeOutline(Struct, frozen=True):
    """The definitions of a file in order, what it imports, and what imports it. ``unresolved``
    counts its imports of what is in no file here, ``import_ids`` name ``imports``."""

    file: str
    id: str
    collection: str
    language: str
    lines: int
    symbols: tuple[OutlineEntry, ...]
    imports: tuple[str, ...]
    import_ids: tuple[str, ...]
    imported_by: tuple[str, ...]
    unresolved: int
    opened: int


class Dependant(Struct, frozen=True):
    """A file that depends on what was asked, ``hops`` steps away (0: it defines the symbol and uses
    it, too); ``lines`` use its name."""

    file: str
    hops: int
    lines: tuple[int, ...]
    collection: str
    id: str


class CodeImpact(Struct, frozen=True):
    """Who depends on a file or a symbol (``of``), the nearest first. ``unresolved`` counts imports
    whose files are unknown: behind them there may be more."""

    of: str
    kind: str
    starts: tuple[str, ...]
    files: tuple[Dependant, ...]
    unresolved: int
    opened: int


class FileInBrief(Struct, frozen=True):
    """A file by its path, its lines, and how many files import it."""

    file: str
    lines: int
    imported_by: int
    symbols: tuple[str, ...]


class CodeContext(Struct, frozen=True):
    """What a repository is: languages and folders (→ files), where it begins, what is used most.

    ``spent`` of ``budget`` tokens, as ``counted_with`` counts them. ``left_out`` says how many
    lines of each list did not fit. Where it was imported with ``--blame``, ``authors`` counts the
    files that each changed last in part, and ``last_changed`` has the newest files with their day.
    """

    files: int
    lines: int
    languages: Mapping[str, int]
    folders: Mapping[str, int]
    entry_points: tuple[str, ...]
    most_imported: tuple[FileInBrief, ...]
    most_used: tuple[CodeSymbol, ...]
    left_out: Mapping[str, int]
    budget: int
    spent: int
    counted_with: str
    opened: int
    authors: Mapping[str, int] = {}
    last_changed: Mapping[str, str] = {}


class CodeText(Struct, frozen=True):
    """Lines of a file, from ``line`` to ``end_line``, of ``lines``.

    ``hash`` is that of the whole file: given back as ``if_changed`` it spares the text as long as
    the file is the same (``unchanged``). ``next`` names what comes behind it.
    """

    file: str
    id: str
    collection: str
    language: str
    line: int
    end_line: int
    lines: int
    text: str
    hash: str
    unchanged: bool
    skeleton: bool
    next: str | None
    spent: int
    counted_with: str
    opened: int
