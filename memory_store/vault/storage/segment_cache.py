"""Sealed parts of the index of vaults on servers, kept on this machine: an unlock need not fetch
them again.

Boundary: no keys; sealed bytes alone, as they stand in the database, in files that their owner
alone reads. What a file says is not believed: its hash, its beginning and its length are compared,
and who opens it finds it sealed for its place, as what comes from the server is. One that is
damaged is fetched anew. Where the disk takes no file there is none.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from memory_store.errors import BadInputError
from memory_store.paths import cache_folder

MARK_BYTES = 32
"""So much of a sealed value's beginning holds its nonce: another value has another one."""
MOST_BYTES = 1 << 30
MOST_DAYS = 30  # that a file is kept which nothing reads
_HASH_BYTES = 32
_DAY = 86_400


def segment_cache() -> SegmentCache | None:
    """The cache of all vaults that this user opens; None where the folder cannot be trusted."""
    try:
        return SegmentCache(cache_folder() / "segments")
    except BadInputError:
        return None


class SegmentCache:
    """Files in one folder, by the place and the beginning of what they hold."""

    def __init__(self, folder: Path, most: int = MOST_BYTES) -> None:
        """``most``: bytes of all files together."""
        self._folder = folder
        self._most = most

    def read(self, place: str, mark: bytes, length: int) -> bytes | None:
        """The sealed value of a place that begins so and is so long, if it is here."""
        file = self._folder / (_prefix(place) + _name(mark))
        try:
            held = file.read_bytes()
            os.utime(file)
        except OSError:
            return None
        content = held[_HASH_BYTES:]
        same = content.startswith(mark) and len(content) == length
        if same and sha256(content).digest() == held[:_HASH_BYTES]:
            return content
        file.unlink(missing_ok=True)
        return None

    def write(self, place: str, content: bytes) -> None:
        """Keep the sealed value of a place, and no other of that place."""
        with suppress(OSError):  # full, or not ours: it is fetched again
            self._folder.mkdir(mode=0o700, exist_ok=True)
            self.drop([place])
            file = self._folder / (_prefix(place) + _name(content[:MARK_BYTES]))
            begun = file.with_name(f"{file.name}.{os.getpid()}")
            descriptor = os.open(begun, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            try:
                with open(descriptor, "wb") as written:
                    written.write(sha256(content).digest())
                    written.write(content)
                begun.replace(file)
            except BaseException:
                begun.unlink(missing_ok=True)
                raise
            self._make_room()

    def drop(self, places: Iterable[str]) -> None:
        """Let go of what is kept of some places."""
        for place in places:
            for file in self._folder.glob(f"{_prefix(place)}*"):
                file.unlink(missing_ok=True)

    def _make_room(self) -> None:
        """Delete what was not read for long, and the oldest until the others fit."""
        found = [(one.stat(), one) for one in self._folder.iterdir()]
        found.sort(key=lambda one: one[0].st_mtime, reverse=True)
        left, oldest = self._most, time.time() - MOST_DAYS * _DAY
        for stat, file in found:
            left -= stat.st_size
            if left < 0 or stat.st_mtime < oldest:
                file.unlink(missing_ok=True)


def _prefix(place: str) -> str:
    return _name(place.encode()) + "-"


def _name(content: bytes) -> str:
    return sha256(content).hexdigest()[:32]
