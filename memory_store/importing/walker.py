"""Finds the files to import, and names for each other one the reason why it is left out.

Boundary: nothing outside the folders and files the user named is ever read. Symbolic links met on
the way are not followed (one that leads out of its folder is reported), only regular files are
taken, and a file's ``ref`` is built from the names met on the way down, so it holds no ``..``.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

from msgspec.structs import replace

from memory_store.importing import archive
from memory_store.importing.folder_names import MAX_FOLDER_DEPTH, is_passed_over
from memory_store.importing.globs import Glob
from memory_store.importing.readers import apple_notes, reader_of, reader_of_suffix
from memory_store.importing.readers.code import READER as CODE
from memory_store.importing.readers.markdown import READER as MARKDOWN
from memory_store.importing.readers.markdown import TEXT, no_reader
from memory_store.importing.source_file import (
    LIMITS,
    STDIN,
    Failure,
    Found,
    Skip,
    SourceFile,
    refusal,
    shown,
    too_large,
)
from memory_store.importing.work_tree import (
    IGNORED,
    OUTPUT,
    WorkTree,
    is_code,
    is_output,
    is_work_tree,
    unwanted,
)

STDIN_NAME = "standard input"
TEMPLATES = (".html", ".htm")
TEXTS = frozenset({CODE.name, MARKDOWN.name, TEXT.name})
"""Kinds whose files are one memory each, in which an end of line is one, however it is spelled."""

AsBefore = Callable[[Path, Mapping[str, bytes]], Mapping[str, bytes]]
"""Of a source's files, by their refs, Git's ids → the keyed tags of those that were imported so."""


def walk(
    path: str | Path,
    globs: Sequence[str] = (),
    excludes: Sequence[str] = (),
    *,
    seen: set[Path] | None = None,
    stdin: IO[str] | None = None,
    all_files: bool = False,
    as_before: AsBefore | None = None,
) -> Iterator[Found]:
    """Every file to import under ``path``, in a stable order, but those ``seen`` before.

    Folders give their Markdown and text files, and a :class:`Skip` for each file of another kind;
    with ``globs``, the files that match one, and no word of the others. A named file is taken
    whatever its kind; of an archive, what is in it. A pattern without ``/`` is matched against
    names, one with ``/`` against the path from the folder; ``**`` spans folders. ``-`` is standard
    input, read from ``stdin``. A Git work tree gives its source code, too, less what Git ignores
    and what a build or a generator made; with ``all_files`` every folder gives all of it.
    ``as_before`` is asked about texts in a work tree that Git knows by an id of their content: a
    file that it gives a tag of is not looked at.
    Raises :class:`BadInputError` for a malformed pattern.
    """
    wanted, unwanted = [Glob(g) for g in globs], [Glob(e) for e in excludes]
    passed = set() if seen is None else seen
    if str(path) == "-":
        here = Path("-")
        yield SourceFile(here, here, "-", STDIN, STDIN_NAME, stream=stdin or sys.stdin)
        return
    for found in _walk_one(Path(path), wanted, unwanted, all_files, as_before):
        if isinstance(found, SourceFile):
            if found.path in passed:
                continue
            passed.add(found.path)
        yield found


def names_below(folder: Path) -> Iterator[tuple[Path, str]]:
    """Root and ref of every file in a folder, also of those that no glob takes or no reader reads.

    Raises OSError where a folder cannot be listed: what is in it is unknown.
    """
    if archive.is_archive(folder):
        for found in archive.in_archive_file(folder, shown(folder)):
            if isinstance(found, SourceFile):
                yield found.root, found.ref
        return
    deepest = str(folder).count(os.sep) + MAX_FOLDER_DEPTH
    for here, folders, names in os.walk(folder, onerror=_raise):
        deeper = folders if here.count(os.sep) < deepest else []
        folders[:] = [name for name in deeper if not is_passed_over(name)]
        for path in (Path(here, name) for name in names):
            reader = reader_of_suffix(path)
            yield path if reader and reader.rows else folder, path.relative_to(folder).as_posix()


def _raise(error: OSError) -> None:
    raise error


def _walk_one(
    path: Path,
    wanted: list[Glob],
    unwanted: list[Glob],
    all_files: bool,
    as_before: AsBefore | None,
) -> Iterator[Found]:
    name = shown(path)
    try:
        resolved = path.expanduser().resolve(strict=True)
        status = resolved.stat()
    except (OSError, RuntimeError, ValueError) as error:
        yield Failure(name, refusal(error))
        return
    if stat.S_ISDIR(status.st_mode):
        folder = _Folder(resolved, path, wanted, unwanted, all_files, as_before)
        yield from apple_notes.told(folder.files())
    elif any(pattern.matches(resolved.name) for pattern in unwanted):
        yield Skip(name, "excluded")
    elif not stat.S_ISREG(status.st_mode):
        yield Failure(name, "not a regular file; pipe it in and write - for standard input")
    elif archive.is_archive(resolved):
        yield from _in_archive(resolved, name, wanted, unwanted)
    else:
        yield _file(resolved, resolved.parent, resolved.name, name, status)


def _in_archive(path: Path, name: str, wanted: list[Glob], unwanted: list[Glob]) -> Iterator[Found]:
    """The files in an archive that was named: of them all, or those that match."""
    for found in archive.in_archive_file(path, name):
        if not isinstance(found, SourceFile):
            yield found
        elif any(pattern.matches(found.ref) for pattern in unwanted):
            yield Skip(found.name, "excluded")
        elif not wanted or any(pattern.matches(found.ref) for pattern in wanted):
            yield found


def _file(
    path: Path, root: Path, ref: str, name: str, status: os.stat_result, kind: str = ""
) -> SourceFile | Failure:
    try:
        ref.encode("utf-8")
    except UnicodeEncodeError:
        return Failure(name, "the file's name is not valid UTF-8")
    reader = reader_of_suffix(ref)
    usual, own = (reader.name, reader.rows) if reader else ("text", False)
    file = SourceFile(path, path if own else root, ref, kind or usual, name, status.st_mtime)
    if status.st_size > LIMITS.bytes and not reader_of(file).streamed:
        return Failure(name, too_large(LIMITS))
    return file


class _Folder:
    """One named folder: a walk without recursion, so depth costs no stack."""

    def __init__(
        self,
        root: Path,
        given: Path,
        wanted: list[Glob],
        unwanted: list[Glob],
        all_files: bool,
        as_before: AsBefore | None,
    ) -> None:
        self.as_before = as_before
        self.root, self.wanted, self.unwanted = root, wanted, unwanted
        self.prefix = str(given / "_")[:-1]  # of names in messages
        self.tree = None if all_files or not is_work_tree(root) else WorkTree(root)
        self.with_code = all_files or self.tree is not None
        self.entered: set[tuple[int, int]] = set()

    def files(self) -> Iterator[Found]:
        waiting = [""]
        while waiting:
            relative = waiting.pop()
            here = self.root / relative
            try:
                status = here.stat(follow_symlinks=False)
                with os.scandir(here) as scan:
                    entries = sorted(scan, key=lambda entry: entry.name)
            except OSError as error:
                yield Failure(self._shown(relative), refusal(error))
                continue
            if (status.st_dev, status.st_ino) in self.entered:  # a folder mounted inside itself
                continue
            self.entered.add((status.st_dev, status.st_ino))
            folders: list[str] = []
            before = f"{relative}/" if relative else ""
            id_bytes, known = self._known(before, entries)
            for entry in entries:
                found = self._judge(entry, before + entry.name, known)
                if isinstance(found, str):
                    folders.append(found)
                elif found is not None:
                    if id_bytes and isinstance(found, SourceFile) and found.kind in TEXTS:
                        found = replace(found, id_bytes=id_bytes)
                    yield found
            waiting.extend(reversed(folders))

    def _known(
        self, before: str, entries: Sequence[os.DirEntry[str]]
    ) -> tuple[int, Mapping[str, bytes]]:
        """How long Git's ids are in the work tree that a folder lies in, and the tags of the files
        in it that hold, by their ids, what was imported."""
        if self.tree is None or self.as_before is None:
            return 0, {}
        blobs = self.tree.blobs(before[:-1])
        there = {
            before + one.name: blob
            for one in entries
            if (blob := blobs.ids.get((before + one.name)[blobs.skipped :])) is not None
        }
        return blobs.length, self.as_before(self.root, there) if there else {}

    def _judge(
        self, entry: os.DirEntry[str], relative: str, known: Mapping[str, bytes]
    ) -> Found | str | None:
        """What an entry is: a plain string is a folder to enter."""
        if is_passed_over(entry.name):
            return None
        name = self._shown(relative)
        excluded = any(pattern.matches(relative) for pattern in self.unwanted)
        try:
            if entry.is_symlink():
                return self._judge_link(entry, relative, name)
            if entry.is_dir(follow_symlinks=False):
                if excluded:
                    return Skip(f"{name}/", "excluded")
                if relative.count("/") >= MAX_FOLDER_DEPTH:
                    return Failure(f"{name}/", f"deeper than {MAX_FOLDER_DEPTH} folders")
                left = self._left_out(relative, folder=True)
                return Skip(f"{name}/", left) if left else relative
            if left := self._left_out(relative, folder=False):
                return Skip(name, left)
            code = self._is_code(relative)
            if not code and not self._is_wanted(relative):
                return None if self.wanted else Skip(name, _unread(entry.name))
            if excluded:
                return Skip(name, "excluded")
            kind = CODE.name if code else ""
            if tag := known.get(relative):
                reader = reader_of_suffix(relative)
                kind = kind or (reader.name if reader else "")
                if kind in TEXTS:
                    path = Path(entry.path)
                    return SourceFile(path, self.root, relative, kind, name, as_before=tag)
            status = entry.stat(follow_symlinks=False)
            if self.tree and code and (reason := unwanted(entry.path, status.st_size)):
                return Skip(name, reason)
        except OSError as error:
            return Failure(name, refusal(error))
        if not stat.S_ISREG(status.st_mode):
            return Skip(name, "not a regular file")
        return _file(Path(entry.path), self.root, relative, name, status, kind)

    def _left_out(self, relative: str, *, folder: bool) -> str | None:
        """Why the rules of the work tree leave a file or folder out."""
        if self.tree is None:
            return None
        if self.tree.ignores(relative, folder=folder):
            return IGNORED
        return OUTPUT if folder and is_output(relative.rpartition("/")[2]) else None

    def _is_code(self, relative: str) -> bool:
        """Whether a file is taken as source code; prose and rows have readers of their own."""
        if not self.with_code or (self.wanted and not self._is_wanted(relative)):
            return False
        reader = reader_of_suffix(relative)
        if relative.lower().endswith(TEMPLATES):  # elsewhere they are documents
            return True
        return reader is CODE or (reader is None and is_code(os.path.join(self.root, relative)))

    def _judge_link(self, entry: os.DirEntry[str], relative: str, name: str) -> Skip | None:
        """A link within the folder is passed over: its target is met under its own name."""
        try:
            target = Path(entry.path).resolve(strict=True)
        except (OSError, RuntimeError):
            return Skip(name, "a link to nothing") if self._is_wanted(relative) else None
        if target.is_relative_to(self.root):
            return None
        if target.is_dir() or self._is_wanted(relative):
            return Skip(name, "a link out of the folder; name it to import it")
        return None

    def _is_wanted(self, relative: str) -> bool:
        if self.wanted:
            return any(pattern.matches(relative) for pattern in self.wanted)
        reader = reader_of_suffix(relative)
        return reader is not None and not reader.rows and not reader.in_work_trees

    def _shown(self, relative: str) -> str:
        return shown(self.prefix + relative.replace("/", os.sep))


def _unread(name: str) -> str:
    """Why a file in a folder is passed over: it has many records, or no reader knows its kind."""
    suffix = Path(name).suffix.lower()
    if reader_of_suffix(name) is CODE:
        return f"{suffix} is source code: taken from a Git work tree, or with --all-files"
    if reader_of_suffix(name) is not None:
        return f"{suffix} holds many records: name it, or match it by a pattern, to import it"
    return no_reader(shown(suffix))
