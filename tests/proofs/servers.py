"""A real server whose memory can be watched, with an actor who may do everything."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from plugin.browsing import running
from plugin.conftest import Filled
from plugin.test_schemathesis import BEARER

ROOT = {"Authorization": "Bearer root"}


@dataclass(frozen=True)
class Server:
    """A running ``datasette serve``."""

    address: str
    process: subprocess.Popen[bytes]

    @property
    def peak(self) -> int:
        """The most memory its process held since :meth:`at_rest`, in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024

    def at_rest(self) -> int:
        """The memory its process holds now, in bytes; peaks are counted from here on."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")  # man 5 proc
        return self.peak

    @property
    def spent(self) -> float:
        """Processor time of its process so far, in seconds."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")  # man 5 proc

    @property
    def place(self) -> tuple[str, int]:
        """Host and port."""
        parts = urlsplit(self.address)
        return parts.hostname or "", parts.port or 80


@contextmanager
def served_process(filled: Filled, folder: Path, *more: str) -> Iterator[Server]:
    """A server over the open vault; ``Authorization: Bearer root`` is root."""
    plugins = folder / "plugins"
    plugins.mkdir(exist_ok=True)
    (plugins / "bearer.py").write_text(BEARER)
    environment = {**os.environ, "MEMORY_STORE_KEY_FILE": str(filled.key_file)}
    arguments = (filled.path, "--plugins-dir", plugins, *more)
    with running(*arguments, environment=environment) as server:
        yield Server(server.address, server.process)
        assert "Traceback" not in server.said()
