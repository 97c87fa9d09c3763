"""Finding source files and symbols by what they are called.

Boundary: works on the files that a view of the vault may open. Messages name paths and symbols of
those alone.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import NamedTuple

from memory_store.actions.action import Opened
from memory_store.actions.collections import collection_ids
from memory_store.code.symbols import BY_LINES, Symbol
from memory_store.errors import BadInputError, NotFoundError
from memory_store.records import several
from memory_store.records.code import CodeSymbol
from memory_store.session.code_files import CodeFiles, code_files, code_files_using

_LISTED = 5  # names in a message
_LEAST_OF_AN_ID = 8
PROSE = (".md", ".markdown", ".txt", ".rst", ".org")
_ALIKE = 0.7  # of 1: what a name may be a slip for


class Repository(NamedTuple):
    """The source files that an action is about, their collections' names, how many memories were
    opened to know them, and how many files there are."""

    known: CodeFiles
    names: dict[str, str]
    opened: int
    files: int

    def symbol(self, place: int, one: Symbol, references: int | None = None) -> CodeSymbol:
        """A definition as a record; how many lines use its name is looked up unless given."""
        file = self.known.files[place]
        return CodeSymbol(
            one.name,
            one.kind,
            one.container,
            file.path,
            one.line,
            one.end_line,
            one.signature,
            file.language,
            self.known.lines_used(one.name) if references is None else references,
            self.names[file.collection],
            file.id,
        )


def repository_of(opened: Opened, collection: str | Sequence[str]) -> Repository:
    """The files of some collections, or of all. Raises NotFoundError where there are none."""
    vault = opened.vault
    known, count = code_files(vault)
    wanted = collection_ids(vault, several(collection))
    if wanted is not None and any(one.collection not in wanted for one in known.files):
        known = CodeFiles([one for one in known.files if one.collection in wanted])
    if not known.files:
        raise NotFoundError(
            "there is no source code in here. To bring a Git work tree: memory-store import "
            "FOLDER; another folder with --all-files"
        )
    return Repository(known, vault.collections.names(), count, len(known.files))


def repository_naming(
    opened: Opened, collection: str | Sequence[str], given: str
) -> tuple[Repository, str, list[tuple[int, Symbol]]]:
    """The files that define or use what is :func:`named`, its name and what defines it.

    All files are read only where nothing has that very name. Raises NotFoundError.
    """
    vault, name = opened.vault, _parts(given)[-1]
    wanted = collection_ids(vault, several(collection))
    known, files, count = code_files_using(vault, name, wanted)
    if wanted is not None and any(one.collection not in wanted for one in known.files):
        known = CodeFiles([one for one in known.files if one.collection in wanted])
    repository = Repository(known, vault.collections.names(), count, files)
    if name not in known.defined:
        repository = repository_of(opened, collection)
    return repository, *named(repository.known, given)


def places(known: CodeFiles, given: str) -> list[int]:
    """The files of a path, of the end of one, of a path behind its source's name, or of an id."""
    path = given.strip().replace("\\", "/").removeprefix("./")
    if path in known.by_path:
        return known.by_path[path]
    found = [n for n, one in enumerate(known.files) if path and one.path.endswith(f"/{path}")]
    found = found or [n for n, name in enumerate(known.names) if name == path]
    if not found and len(path) >= _LEAST_OF_AN_ID:
        found = [n for n, one in enumerate(known.files) if one.id.startswith(path.lower())]
    return found


def place_of(known: CodeFiles, given: str) -> int:
    """The one file that is named. Raises NotFoundError, BadInputError for several."""
    return only(known, given, places(known, given))


def only(known: CodeFiles, given: str, found: Sequence[int]) -> int:
    if len(found) == 1:
        return found[0]
    if found:
        some = ", ".join(f"{known.names[n]} ({known.files[n].id[:8]})" for n in found[:_LISTED])
        raise BadInputError(
            f"{len(found)} files are called {given!r}: {some}; give more of the path, the id, or "
            "the collection",
            "file",
        )
    path, _, lines = given.rpartition(":")
    if path and places(known, path):
        raise BadInputError(f"{lines!r} names no lines of {path}: {path}:40-80 would", "file")
    alike = _files_alike(known, given)
    paths = alike or sorted(known.by_path, key=lambda path: path.count("/"))
    some = f"there is: {', '.join(paths[:_LISTED])}"
    outside = "" if alike else " (a path counts from the folder that was imported)"
    outside += ". Notes are read with memory-store get" if given.lower().endswith(PROSE) else ""
    raise NotFoundError(
        f"no file {given!r} among {len(known.files):,} of source code; {some}{outside}"
    )


def _files_alike(known: CodeFiles, given: str) -> list[str]:
    names = {one.path.rpartition("/")[2]: one.path for one in known.files}
    return [
        names[one] for one in difflib.get_close_matches(given.rpartition("/")[2], names, _LISTED)
    ]


def neither(known: CodeFiles, given: str) -> NotFoundError:
    """That nothing is called so, neither a file nor a symbol, and what is called alike."""
    symbols = difflib.get_close_matches(given, known.defined, _LISTED, _ALIKE)
    alike = [*_files_alike(known, given), *symbols][:_LISTED]
    hint = f"; there is: {', '.join(alike)}" if alike else ""
    return NotFoundError(f"no file and no symbol {given!r} in the source code here{hint}")


def named(known: CodeFiles, given: str) -> tuple[str, list[tuple[int, Symbol]]]:
    """The name itself, and what defines it: exactly, else in other letters.

    Raises NotFoundError where nothing defines or uses it.
    """
    *within, name = _parts(given)
    if name not in known.defined:
        if name.lower() not in known.spelled:
            raise _unknown(known, given, name)
        name = known.spelled[name.lower()]
    found = known.defined[name]
    if within:
        end = ".".join(within)
        inside = [(place, one) for place, one in found if f".{one.container}".endswith(f".{end}")]
        if not inside:
            others = ", ".join(sorted({one.path for _, one in found})[:_LISTED])
            raise NotFoundError(f"no symbol {given!r}; of that name there is: {others}")
        found = inside
    return name, found


def _parts(given: str) -> list[str]:
    """A name, and before it what it stands in."""
    parts = [part for part in re.split(r"::|->|[.#\\]", given.strip().removesuffix("()")) if part]
    if not parts:
        raise BadInputError("the name of a symbol is needed", "name")
    return parts


def _unknown(known: CodeFiles, given: str, name: str) -> NotFoundError:
    alike = difflib.get_close_matches(name, known.defined, _LISTED, _ALIKE)
    hint = f"; there is: {', '.join(alike)}" if alike else "; a literal search finds other words"
    if all(one.symbols.made_by == BY_LINES for one in known.files):
        hint += ". Grammars know more: pip install 'datasette-hybrid[code]'"
    return NotFoundError(f"no symbol {given!r} is defined in {len(known.files):,} files{hint}")


def rank(known: CodeFiles, place: int, one: Symbol) -> tuple[object, ...]:
    path = known.files[place].path
    return (one.kind == "declaration", known.noise[place], path.count("/"), path, one.line)
