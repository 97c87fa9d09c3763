"""What Git knows of a work tree: its commit, how far it has gone on since, and which of its files
are as Git has them.

Boundary: reads files of ``.git``, and starts ``git`` for what takes its history: without hooks,
drivers of file kinds, remotes or questions, and for a limited time. The names that it gives are
those of other people, untrusted and private.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msgspec import Struct

PATIENCE = 20.0  # seconds for one answer of git
SMALL = 4_096  # bytes of HEAD and the like
LARGEST_INDEX = 1 << 28  # bytes: two million files

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_QUIET = (
    *("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}"),
    *("-c", "protocol.allow=never", "--no-pager"),
)


# Files whose bytes on disk are what Git hashes, but for the ends of lines, which no text keeps.
_AS_THEY_ARE = ":(attr:!filter !ident !working-tree-encoding)"
_TRACKED = re.compile(r"H 100(?:644|755) ([0-9a-f]{40}|[0-9a-f]{64}) 0\t(.+)", re.S)
_STATUS = (
    *("-c", "core.checkStat=default", "-c", "core.trustctime=true"),
    *("-c", "core.untrackedCache=false", "-c", "core.ignoreStat=false"),
)


class Folders(Struct, frozen=True):
    """Where a work tree has its own HEAD, and what it shares with other trees of its repository."""

    own: Path
    shared: Path


def folders(top: Path) -> Folders | None:
    """Git's folders of a work tree; ``None`` where ``top`` is not the top of one.

    A submodule and a linked work tree have a file ``.git`` that says where they are.
    """
    own = top / ".git"
    if os.path.isfile(own):  # unlike Path.is_file, no in a folder that may not be looked into
        said = _head(own)
        if not said.startswith("gitdir: "):
            return None
        own = top / said.removeprefix("gitdir: ")
    if not os.path.isdir(own):
        return None
    shared = _head(own / "commondir")
    return Folders(own, own / shared if shared else own)


def commit_of(top: Path) -> str | None:
    """The commit that is checked out; ``None`` without one, and outside of a work tree."""
    found = folders(top)
    if found is None:
        return None
    head = _head(found.own / "HEAD")
    if not head.startswith("ref: "):
        return _commit(head)
    name = head.removeprefix("ref: ")
    if not name.startswith("refs/") or ".." in name:
        return None
    loose = _commit(_head(found.own / name)) or _commit(_head(found.shared / name))
    return loose or next((one for one, ref in _packed(found.shared) if ref == name), None)


def apart(top: Path, commit: str) -> tuple[int, int] | None:
    """How many commits a work tree has that ``commit`` has not, and the other way round; ``None``
    where Git is not there or knows no such commit."""
    if not _COMMIT.fullmatch(commit):
        return None
    said = answer(top, "rev-list", "--count", "--left-right", f"{commit}...HEAD", "--")
    counts = (said or b"").split()
    return (int(counts[1]), int(counts[0])) if len(counts) == 2 else None


def behind(top: Path, commit: str) -> str | None:
    """How a work tree has left ``commit``, in words; ``None`` while it is there, or has none."""
    now = commit_of(top)
    if now is None or now == commit:
        return None
    counts = apart(top, commit)
    if counts is None:
        return f"at commit {commit[:10]}, and its work tree at {now[:10]}"
    new, left = counts
    said = [f"{new:,} {'commit' if new == 1 else 'commits'} behind"] if new else []
    if left:
        said.append(f"{left:,} {'commit' if left == 1 else 'commits'} off its work tree")
    return ", ".join(said) or None


def blobs(top: Path) -> Mapping[str, bytes]:
    """The files of a work tree, by their paths, that hold what Git says: the ids of their blobs.

    Git compares what it keeps of each file with the disk, and reads those that may differ. Left out
    are files that it was told not to compare, and those that a program or an encoding changes on
    the way to the disk. Empty where Git has no answer.
    """
    found = folders(top)
    try:
        size = (found.own / "index").stat().st_size if found is not None else 0
    except OSError:
        return {}
    off = without_filters(top) if 0 < size <= LARGEST_INDEX else None
    if off is None:
        return {}
    asked = (
        ("rev-parse", "--show-toplevel"),
        ("diff-files", "--name-only", "-z", "--ignore-submodules"),
        ("ls-files", "--stage", "-v", "-z", "--", _AS_THEY_ARE),
    )
    with ThreadPoolExecutor(len(asked)) as threads:
        said = list(threads.map(lambda words: answer(top, *off, *_STATUS, *words), asked))
    here, differing, listed = (None if one is None else os.fsdecode(one) for one in said)
    if here is None or differing is None or listed is None:
        return {}
    if os.path.realpath(here.removesuffix("\n")) != os.path.realpath(top):
        return {}  # a setting of the repository says that its files are elsewhere
    there = filter(None, map(_TRACKED.fullmatch, listed.split("\0")))
    files = {match[2]: bytes.fromhex(match[1]) for match in there}
    for path in differing.split("\0"):
        files.pop(path, None)
    return files


def left(top: Path, commit: str) -> frozenset[str]:
    """The files, by their paths, that a commit has and that Git tracks no more in a work tree: by
    another commit that is checked out, or as staged. None where Git has no answer."""
    if not _COMMIT.fullmatch(commit):
        return frozenset()
    words = ("diff-index", "--cached", "--no-renames", "--diff-filter=D", "--name-only", "-z")
    said = answer(top, *words, commit, "--") or b""
    return frozenset(os.fsdecode(said).split("\0")) - {""}


def blob_id(data: bytes, length: int) -> bytes:
    """The id that Git gives to a file of these bytes, where its ids have so many bytes."""
    name = "sha256" if length == hashlib.sha256().digest_size else "sha1"
    made = hashlib.new(name, b"blob %d\0" % len(data), usedforsecurity=False)
    made.update(data)
    return made.digest()


def without_filters(top: Path) -> list[str] | None:
    """The words for :func:`answer` that switch off the programs which a repository names for the
    contents of its files; ``None`` where Git does not say which there are."""
    said = answer(top, "config", "--null", "--list", "--name-only")
    names = [name for name in (said or b"").split(b"\0") if name.startswith(b"filter.")]
    if said is None or any(b"=" in name for name in names):
        return None
    drivers = {os.fsdecode(name.rpartition(b".")[0]) for name in names}
    off = ("clean=", "smudge=", "process=", "required=false")
    return [word for one in sorted(drivers) for how in off for word in ("-c", f"{one}.{how}")]


def answer(top: Path, *words: str) -> bytes | None:
    """What ``git`` answers in a folder; ``None`` where it cannot."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    quiet = {
        **own,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "LC_ALL": "C",
    }
    try:
        done = subprocess.run(
            ["git", "-C", str(top), *_QUIET, *words],
            env=quiet,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _head(path: Path) -> str:
    """The first line of a small file; nothing of one that is not there."""
    try:
        with path.open("rb") as stream:
            return stream.read(SMALL).partition(b"\n")[0].decode("utf-8", "replace").strip()
    except OSError:
        return ""


def _packed(shared: Path) -> Iterator[tuple[str, str]]:
    try:
        with (shared / "packed-refs").open("r", encoding="utf-8", errors="replace") as stream:
            for line in stream:
                commit, _, name = line.strip().partition(" ")
                if _COMMIT.fullmatch(commit):
                    yield commit, name
    except OSError:
        return


def _commit(text: str) -> str | None:
    return text if _COMMIT.fullmatch(text) else None
