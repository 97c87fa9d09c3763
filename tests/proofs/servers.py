"""A real server whose memory can be watched, with somebody who may do everything."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from plugin.browsing import _awaited
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
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "datasette", "serve", str(filled.path), "-p", str(port)]
    command += ["--plugins-dir", str(plugins), *more]
    environment = {**os.environ, "MEMORY_STORE_KEY_FILE": str(filled.key_file)}
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, env=environment)
        try:
            yield Server(_awaited(f"http://127.0.0.1:{port}", process, said), process)
            said.seek(0)
            assert "Traceback" not in said.read()
        finally:
            process.terminate()
            process.wait(30)
