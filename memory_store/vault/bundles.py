"""Sealed files in a folder that devices share: what one changed, and with which keys to open it.

Boundary: what leaves this machine passes here. A *bundle* is sealed under the key of the vault's
own scope, each part bound to the vault, the device, the number of the file, and the place and count
of its parts. In clear are the vault's public id, the device's random name, both numbers, and the
sizes. *Keys* are what stands in clear in a vault's file, too: slots and wrapped keys.

Others who can write to the folder can change, cut, copy, rename, hide and put back files. A name
counts for nothing. A file is believed when all of its parts open, and read once.

    file    = magic (16) ‖ kind (1) ‖ vault (16) ‖ epoch (4) ‖ device (8) ‖ number (8) ‖ parts (4)
              ‖ (length (4) ‖ part) …
"""

from __future__ import annotations

import hashlib
import os
import secrets
import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from memory_store.crypto.sealing import Place
from memory_store.errors import FormatError, StorageError, TamperedError
from memory_store.vault.collection_keys import CollectionKeys

MAGIC = b"memory-store/s 1"
CHANGES, KEYS = 1, 2
HEADER = struct.Struct(">16sB16sI8sQI")
LENGTH = struct.Struct(">I")
SUFFIX = ".sealed"
UNFINISHED = ".unfinished"
STEP = 4_096  # bytes that the length of a part is rounded up to, before it is padded
MOST_PARTS = 65_536
MOST_PART = 2**29  # bytes
FIRST_PART = 2**25  # bytes: it says how long the others are
MOST_KEYS = 2**22  # bytes of a file of keys: ours have a few thousand
PURPOSE = "sync"


class Found(Struct, frozen=True):
    """A file of ours in the folder, by what stands in clear at its beginning."""

    path: Path
    kind: int
    vault: bytes
    epoch: int
    device: str
    number: int
    parts: int

    @property
    def named(self) -> str:
        """How it is called in what is said of it."""
        return self.path.name


def name_of(device: str, number: int) -> str:
    """The name that a device gives a file."""
    return f"{device}-{number:08d}{SUFFIX}"


def found_in(folder: Path) -> tuple[list[Found], list[str]]:
    """The files of devices in a folder, by device and number, and what looks like one and is none.

    Raises StorageError where the folder cannot be read.
    """
    try:
        files = sorted(one for one in folder.iterdir() if SUFFIX in one.name and one.is_file())
    except OSError as error:
        raise StorageError(f"{folder}: cannot be read ({error.strerror})") from None
    found, odd = [], []
    for file in files:
        if file.name.startswith(".") or file.name.endswith(UNFINISHED):
            continue
        one = _looked_at(file)
        if one is None:
            odd.append(f"{file.name}: not a sealed file, or one that is still arriving")
        else:
            found.append(one)
    return sorted(found, key=lambda one: (one.device, one.number, one.named)), odd


def _looked_at(path: Path) -> Found | None:
    try:
        with path.open("rb") as file:
            start = file.read(HEADER.size)
    except OSError:
        return None
    if len(start) < HEADER.size or not start.startswith(MAGIC):
        return None
    _, kind, vault, epoch, device, number, parts = HEADER.unpack(start)
    if kind not in (CHANGES, KEYS) or not 1 <= parts <= MOST_PARTS or number >= 2**62:
        return None
    return Found(path, kind, vault, epoch, device.hex(), number, parts)


def _place(keys: CollectionKeys, kind: int, device: str, number: int, which: str) -> Place:
    return keys.place("bundle", str(kind), f"{device}|{which}", number)


def _filled_up(part: bytes) -> bytes:
    """A part in a whole number of steps: a short note is as long as a shorter one."""
    length = LENGTH.size + len(part)
    return LENGTH.pack(len(part)) + part + bytes(-length % STEP)


def _content(opened: memoryview) -> bytes:
    (length,) = LENGTH.unpack_from(opened)
    return bytes(opened[LENGTH.size : LENGTH.size + length])


def sealed_parts(
    keys: CollectionKeys, kind: int, device: str, number: int, parts: Sequence[bytes]
) -> Iterator[bytes]:
    """Every part, sealed for its place in a file."""
    for at, part in enumerate(parts):
        place = _place(keys, kind, device, number, f"{at}|{len(parts)}")
        yield keys.seal(PURPOSE, place, _filled_up(part))


def write_file(
    folder: Path, keys: CollectionKeys, kind: int, device: str, number: int, parts: Sequence[bytes]
) -> Path:
    """Write a file under its device's name and number, whole or not at all.

    ``parts`` go as they are: see :func:`sealed_parts`. Raises StorageError.
    """
    head = HEADER.pack(
        MAGIC, kind, keys.vault, keys.epoch, bytes.fromhex(device), number, len(parts)
    )
    target = folder / name_of(device, number)
    fresh = folder / f".{target.name}-{secrets.token_hex(8)}{UNFINISHED}"
    try:
        with fresh.open("xb") as file:  # never through a link that another user of the folder made
            file.write(head)
            for part in parts:
                file.write(LENGTH.pack(len(part)))
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(target)
    except OSError as error:
        with suppress(OSError):
            fresh.unlink()
        raise StorageError(f"{target}: cannot be written ({error.strerror})") from None
    return target


def read_parts(found: Found, largest: int, most: int = MOST_PARTS) -> Iterator[bytes]:
    """The parts of a file as they stand in it, or the first of them: so many at ``most``.

    One at a time, so that a large file of someone else's is never in memory before it is refused.
    Raises TamperedError for a file that is cut, or is longer than it says.
    """
    left = 0
    try:
        with found.path.open("rb") as file:
            left = os.fstat(file.fileno()).st_size - HEADER.size
            file.seek(HEADER.size)
            for _ in range(min(found.parts, most)):
                length = file.read(LENGTH.size)
                left -= LENGTH.size
                size = LENGTH.unpack(length)[0] if len(length) == LENGTH.size else left + 1
                if size > min(left, largest):
                    raise TamperedError(f"{found.named}: cut, or still arriving")
                left -= size
                part = file.read(size)
                if not part:
                    raise TamperedError(f"{found.named}: changed since it was written")
                yield part
    except OSError as error:
        raise TamperedError(f"{found.named}: cannot be read ({error.strerror})") from None
    if left and found.parts <= most:
        raise TamperedError(f"{found.named}: changed since it was written")


def opened_parts(
    found: Found, keys: CollectionKeys, largest: int, most: int = MOST_PARTS
) -> list[bytes]:
    """What is sealed in a bundle, all of it or its first parts. Raises TamperedError."""
    opened = []
    for at, part in enumerate(read_parts(found, largest, most)):
        which = f"{at}|{found.parts}"
        place = _place(keys, found.kind, found.device, found.number, which)
        try:
            opened.append(_content(keys.unseal(PURPOSE, place, part)))
        except (TamperedError, FormatError):
            raise TamperedError(f"{found.named}: changed since it was written") from None
    return opened


def key_parts(keys: CollectionKeys, device: str, number: int, content: bytes) -> list[bytes]:
    """The parts of a file of keys: its content in clear, and a sealed digest of it."""
    place = _place(keys, KEYS, device, number, "digest")
    return [content, keys.seal(PURPOSE, place, hashlib.sha256(content).digest())]


def check_keys(found: Found, keys: CollectionKeys, parts: Iterable[bytes]) -> None:
    """Raise TamperedError unless a holder of those very keys wrote a file of keys."""
    content, sealed = parts
    place = _place(keys, KEYS, found.device, found.number, "digest")
    if bytes(keys.unseal(PURPOSE, place, sealed)) != hashlib.sha256(content).digest():
        raise TamperedError(f"{found.named}: changed since it was written")


def content_of_keys(found: Found) -> list[bytes]:
    """The two parts of a file of keys, as they stand in it. Raises TamperedError."""
    if found.parts != 2:
        raise TamperedError(f"{found.named}: changed since it was written")
    return [*read_parts(found, MOST_KEYS)]
