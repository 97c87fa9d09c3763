"""Who changed each part of a source file last, and when, as ``git blame`` says.

Boundary: names of people and dates of a file that is imported anyhow. They become metadata of its
memory, which is sealed; nothing else keeps them.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from memory_store.code.blame import BLAME, Change, as_metadata
from memory_store.code.chunks import code_chunks, line_of
from memory_store.importing import git
from memory_store.importing.job import Counts
from memory_store.importing.source_file import Remark, SourceFile
from memory_store.records import MemoryDraft
from memory_store.text.canonical import canonical_text, whole_characters

PATIENCE = 600.0  # seconds of one import in which git is asked
LONGEST_NAME = 60  # characters of an author
NO_GIT = "no authors were read: there is no git here. Try: install git, then import with --blame"
TOO_LONG = "no author: git was asked for ten minutes, and is not asked about further files"
UNKNOWN = "no author: git knows no commit of it, or took too long"

_UNCOMMITTED = b"0" * 40
_LATEST = 253_402_300_799  # the last second of the year 9999


class Blame:
    """Asks ``git`` about the files of one import, one by one."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._there = shutil.which("git") is not None
        self._left = PATIENCE
        self._off: dict[Path, list[str] | None] = {}

    def on(self, draft: MemoryDraft, file: SourceFile) -> dict[str, object]:
        """The metadata of a source file, with who changed each of its chunks last.

        A line that is not committed has no author. Where no line has one, a warning says so.
        """
        metadata = dict(draft.metadata)
        if not self._there:
            self._counts.hints.append(NO_GIT)
        elif self._left <= 0:
            self._counts.leave_out(Remark(file.name, TOO_LONG))
        else:
            begun = time.monotonic()
            lines = self._lines(file.path)
            self._left -= time.monotonic() - begun
            if lines:
                text = canonical_text(draft.text)
                metadata[BLAME] = as_metadata(_by_chunk(text, str(metadata["language"]), lines))
            else:
                self._counts.leave_out(Remark(file.name, UNKNOWN))
        return metadata

    def _lines(self, path: Path) -> dict[int, tuple[int, str]]:
        """Empty where git knows no commit of the file, or has no answer in time."""
        folder = path.parent
        if folder not in self._off:
            self._off[folder] = git.without_filters(folder)
        off = self._off[folder]
        if off is None:
            return {}
        words = ("blame", "--no-textconv", "--incremental", "--", path.name)
        return committed(git.answer(folder, *off, *words) or b"")


def committed(said: bytes) -> dict[int, tuple[int, str]]:
    """Of ``git blame --incremental`` the lines, from 1, that are committed: when, in seconds since
    1970, and by whom."""
    known: dict[bytes, tuple[int, str]] = {}
    found: dict[int, tuple[int, str]] = {}
    author, when = "", 0
    first = count = 0
    commit = b""
    for line in said.split(b"\n"):
        word, _, rest = line.partition(b" ")
        if not commit:
            numbers = rest.split()
            if len(numbers) == 3 and all(map(bytes.isdigit, numbers)):
                commit, first, count = word, int(numbers[1]), int(numbers[2])
        elif word == b"author":
            author = " ".join(whole_characters(rest.decode("utf-8", "replace")).split())
        elif word == b"author-time" and rest.isdigit():
            when = int(rest)
            known[commit] = (when, author[:LONGEST_NAME])
        elif word == b"filename":
            if commit in known and not commit.startswith(_UNCOMMITTED):
                found |= dict.fromkeys(range(first, first + count), known[commit])
            commit = b""
    return found


def _by_chunk(text: str, language: str, lines: dict[int, tuple[int, str]]) -> Iterator[Change]:
    """The newest change of each chunk; of neighbours with the same one, one for all."""
    before: Change | None = None
    for chunk in code_chunks(text, language):
        first, last = line_of(text, chunk.start), line_of(text, max(chunk.start, chunk.end - 1))
        when, author = max(
            (lines[line] for line in range(first, last + 1) if line in lines), default=(0, "")
        )
        if not author:
            continue
        date = datetime.fromtimestamp(min(when, _LATEST), UTC).date().isoformat()
        if before is not None and (before.author, before.date) == (author, date):
            before = Change(before.line, last, author, date)
            continue
        if before is not None:
            yield before
        before = Change(first, last, author, date)
    if before is not None:
        yield before
