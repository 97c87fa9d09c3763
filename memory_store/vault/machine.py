"""What this machine keeps of vaults besides their counters: its own id, and the newest it saw.

Boundary: random ids and numbers alone, in the state folder. A row of a vault's file can be put back
to what it was before; what is kept here cannot, by those who have no more than the file.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from memory_store.errors import MemoryStoreError
from memory_store.paths import replace_file, state_folder

MACHINE = "machine-id"
FOLDER = "vaults"
SHARES, SOURCES, DEVICES = "shares", "sources", "devices"


def machine_id() -> str:
    """This machine's random id, made when it is first asked for.

    Empty where the state folder cannot be written: then it is no machine that a vault knows.
    """
    try:
        file = state_folder() / MACHINE
        if not file.exists():
            fresh = file.with_suffix(f".{os.getpid()}")
            fresh.write_text(str(uuid.uuid4()))
            try:
                os.link(fresh, file)  # the process that was first has named it
            except FileExistsError:
                return file.read_text().strip()
            finally:
                fresh.unlink(missing_ok=True)
        return file.read_text().strip()
    except (MemoryStoreError, OSError, ValueError):
        return ""


def kept(vault: bytes, kind: str, principal: int) -> dict[str, int]:
    """The numbers that were kept for a principal of a vault, by id; none where none can be read."""
    return read_numbers(f"{FOLDER}/{vault.hex()}-{principal}-{kind}.json")


def keep(vault: bytes, kind: str, principal: int, numbers: Mapping[str, int]) -> None:
    """Keep them for the next time. A state folder that cannot be written keeps none."""
    write_numbers(f"{FOLDER}/{vault.hex()}-{principal}-{kind}.json", numbers)


def read_numbers(name: str) -> dict[str, int]:
    """What a file of the state folder holds. Nothing where there is none that can be read."""
    try:
        file = state_folder() / name
        found = json.loads(file.read_bytes()) if file.exists() else {}
    except (MemoryStoreError, OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def write_numbers(name: str, numbers: Mapping[str, int]) -> None:
    """Replace such a file. A state folder that cannot be written keeps none: doctor says so."""
    with suppress(MemoryStoreError, OSError):
        file = state_folder() / name
        file.parent.mkdir(mode=0o700, exist_ok=True)
        replace_file(file, json.dumps(dict(numbers)).encode())


@contextmanager
def without(vault: bytes, kind: str) -> Iterator[None]:
    """As if nothing of a kind had been kept of a vault; for good, unless what is inside fails."""
    try:
        files = list((state_folder() / FOLDER).glob(f"{vault.hex()}-*-{kind}.json"))
        before = {file: file.read_bytes() for file in files}
        for file in files:
            file.unlink()
    except (MemoryStoreError, OSError):
        before = {}
    try:
        yield
    except BaseException:
        for file, numbers in before.items():
            file.write_bytes(numbers)
        raise
