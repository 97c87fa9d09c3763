"""What the tests of keepers share: a vault that is kept open, and commands done both ways."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from memory_store.cli import main
from memory_store.cli.editor import editing
from memory_store.cli.pager import show
from memory_store.keeper import client, launch
from memory_store.store import MemoryStore

Printed = tuple[int | None, bytes, bytes]
"""Exit code, standard output, standard error."""


class KeptOpen(NamedTuple):
    """A vault that a keeper has open."""

    path: Path
    key_file: Path
    socket: str

    def connect(self) -> socket.socket:
        connection = client.connected_to(self.socket)
        assert connection is not None
        return connection

    def status(self) -> dict[str, object] | None:
        connection = client.connected_to(self.socket)
        if connection is None:
            return None
        with connection:
            return client.ask(connection, "status")

    def process(self) -> int:
        status = self.status()
        assert status is not None
        process = status["process"]
        assert isinstance(process, int)
        return process

    def lock(self) -> None:
        connection = client.connected_to(self.socket)
        if connection is not None:
            with connection:
                client.ask(connection, "lock")
                connection.settimeout(20)
                connection.recv(1)


def start(
    path: Path, key_file: Path, *, idle: float = 600, longest: float = 600, follow: bool = False
) -> KeptOpen:
    with MemoryStore.open(path, key_file=key_file) as store:
        launch.start(store, key_file, idle=idle, longest=longest, follow=follow)
    return KeptOpen(path, key_file, launch.socket_for(path))


def by_keeper(capture: pytest.CaptureFixture[bytes], *words: str) -> Printed:
    """What a command prints that a keeper does; the code is ``None`` where none did it."""
    code = client.answered(list(words), lambda lines: show(lines, lambda: None), editing)
    return code, *capture.readouterr()


def by_itself(capture: pytest.CaptureFixture[bytes], *words: str) -> Printed:
    """What the same command prints that opens the vault itself."""
    with pytest.raises(SystemExit) as ended:
        main.main(list(words), "memory-store")
    code = ended.value.code
    assert isinstance(code, int)
    return code, *capture.readouterr()


CHANCE = re.compile(
    rb'[\d,]+ ms|"(?:cpu_)?milliseconds": [\d.]+|"(?:keyword|topic|vector)": [\d.]+'
    rb'|"next": "[^"]*"'
)


def untimed(printed: Printed) -> Printed:
    """Without the times that a search took, and the sealed place where it goes on."""
    code, out, err = printed
    return code, CHANCE.sub(b"", out), err


@contextmanager
def short_folder() -> Iterator[Path]:
    """A private folder whose name leaves room for a socket's."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="k", dir="/tmp") as folder:
        yield Path(folder)


def until(what: object, seconds: float = 20) -> None:
    """Wait until a condition holds."""
    assert callable(what)
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{process}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"
