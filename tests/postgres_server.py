"""A PostgreSQL server of the tests' own, on a socket in a temporary folder."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from itertools import count
from pathlib import Path

import pytest

DEBIAN = Path("/usr/lib/postgresql")
USUAL_PORT = 5432  # which names the socket, too
NOT_DURABLE = "-c fsync=off -c full_page_writes=off -c synchronous_commit=off"


def binaries() -> Path | None:
    """The folder with ``initdb`` and ``pg_ctl``; Debian keeps them out of PATH."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    return max((one.parent for one in DEBIAN.glob("*/bin/initdb")), default=None)


def why_not() -> str | None:
    """Why no server can be started here."""
    if binaries() is None:
        return "no PostgreSQL server is installed (apt-get install postgresql)"
    if find_spec("psycopg") is None:
        return "psycopg is not installed"
    return None


class Server:
    """A running server. Each vault is one of its one database, by name."""

    def __init__(
        self, folder: Path, programs: Path, options: Sequence[str] = (), port: int = USUAL_PORT
    ) -> None:
        self.folder = folder
        self._port = str(port)
        self._options = " ".join(options or ("-c", "listen_addresses="))
        self._programs = programs
        self._numbers = count(1)

    def address(self, vault: str = "", user: str = "owner", database: str = "vaults") -> str:
        """The address of a vault that no other test has, or of the one of that name."""
        name = vault or f"vault{next(self._numbers)}"
        return f"postgresql://{user}@/{database}?host={self.folder}&vault={name}"

    def sql(self, *statements: str, database: str = "vaults", user: str = "owner") -> list[str]:
        """Run statements as the server's owner; the lines of the answer."""
        words = [str(self._programs / "psql"), "-qAtX", "-v", "ON_ERROR_STOP=1"]
        words += ["-h", str(self.folder), "-p", self._port, "-U", user, database]
        for statement in statements:
            words += ["-c", statement]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    def start(self) -> None:
        """Start it, once what a killed one left has ended."""
        options = f"-k {self.folder} -p {self._port} {self._options} {NOT_DURABLE}"
        for last in (False,) * 20 + (True,):
            try:
                self._run("pg_ctl", "-w", "-l", str(self.folder / "log"), "-o", options, "start")
            except subprocess.CalledProcessError:
                if last:
                    raise
                time.sleep(0.3)
            else:
                return

    @contextmanager
    def standby(self) -> Iterator[Server]:
        """A running standby that follows it."""
        folder = _folder()
        often = ("-c", "listen_addresses=", "-c", "wal_retrieve_retry_interval=100ms")
        standby = Server(folder, self._programs, often)
        standby._run("pg_basebackup", "-R", "-h", str(self.folder), "-U", "owner", "-c", "fast")
        with standby.lasting():
            yield standby

    @contextmanager
    def lasting(self) -> Iterator[Server]:
        """It runs until the end, and is taken away."""
        try:
            self.start()
            yield self
        finally:
            with suppress(subprocess.CalledProcessError):  # it was killed
                self.stop("immediate")
            shutil.rmtree(self.folder, ignore_errors=True)

    def answers(self) -> bool:
        """Whether it can be asked something."""
        try:
            return self.sql("select 1") == ["1"]
        except subprocess.CalledProcessError:
            return False

    def stop(self, how: str = "fast") -> None:
        self._run("pg_ctl", "-w", "-m", how, "stop")

    def kill(self) -> None:
        """kill -9 of the whole server."""
        pid = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        os.kill(pid, signal.SIGKILL)

    def _run(self, program: str, *words: str) -> None:
        """Run a program as a user who is not root: the server takes no other."""
        command = [str(self._programs / program), "-D", str(self.folder / "data"), *words]
        if os.geteuid() == 0:
            command = ["runuser", "-u", "postgres", "--", *command]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/")


@contextmanager
def running(*options: str, port: int = USUAL_PORT, sign_in: str = "trust") -> Iterator[Server]:
    """A server until the end. A socket's path is short: the folder lies where all do.

    With other ``options`` than to listen on its socket alone; ``sign_in`` is asked of those who
    come by another way.
    """
    programs = binaries()
    assert programs is not None
    server = Server(_folder(), programs, options, port)
    ways = ("--auth-local", "trust", "--auth-host", sign_in)
    server._run("initdb", *ways, "-U", "owner", "-E", "UTF8", "--no-sync")
    with server.lasting():
        server.sql("create database vaults", database="postgres")
        yield server


def _folder() -> Path:
    """Of a server: where its user may write."""
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres")
    return folder


def server_or_skip() -> Iterator[Server]:
    """The body of a fixture."""
    reason = why_not()
    if reason is not None:
        if os.environ.get("REQUIRE_POSTGRES"):
            pytest.fail(reason)
        pytest.skip(reason)
    with running() as server:
        yield server
