"""Makes, fills, opens, searches and serves a vault, telling every address that it turns to.

    python isolated.py work  JSON     in this process; prints what was found and what was heard
    python isolated.py models JSON    the same without the server, and nothing listens from within
    python isolated.py serve HEARD ARGUMENTS…     ``datasette serve``, what was heard into a file

Anything but the machine itself (loopback, a socket in a file) is refused as a network that is down
would refuse it. Where there is no network at all, ``JSON`` says so, and loopback is switched on.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import socket
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

ASKING = {
    "socket.connect",
    "socket.sendto",
    "socket.sendmsg",
    "socket.getaddrinfo",
    "socket.gethostbyname",
    "socket.gethostbyaddr",
}
HERE = {"127.0.0.1", "::1", "localhost", None}
SIOCSIFFLAGS, UP_AND_RUNNING = 0x8914, 0x41  # man 7 netdevice
QUERY = "heron"
heard: list[str] = []
note: Callable[[str], Any] = heard.append


def hear(event: str, arguments: tuple[Any, ...]) -> None:
    """Note and refuse whatever leaves the machine."""
    if event not in ASKING:
        return
    place = arguments[1] if event.startswith("socket.s") or event == "socket.connect" else arguments
    host = place[0] if isinstance(place, tuple) else None
    host = host.decode() if isinstance(host, bytes) else host
    if host not in HERE:
        note(f"{event} {host}")
        raise OSError(101, "Network is unreachable")


def switch_on_loopback() -> None:
    """In a network namespace of its own, loopback is down at first."""
    with socket.socket() as any_socket:
        flags = struct.pack("16sh14x", b"lo", UP_AND_RUNNING)
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, flags)


def work(folder: str, notes: str, alone: bool) -> None:
    if alone:
        switch_on_loopback()
    path, key_file = Path(folder) / "notes.db", Path(folder) / "keys" / "notes.key"
    found = searched(path, key_file, notes)
    found["served"] = served(path, key_file)
    print(json.dumps({"found": found, "heard": heard}))


def searched(path: Path, key_file: Path, notes: str) -> dict[str, Any]:
    """What a new vault of those notes finds, and whether a model reranked it."""
    from memory_store.store import MemoryStore

    store, _ = MemoryStore.create(path, key_file=key_file)
    with store:
        report = store.import_paths([notes])
        store.verify()
    found: dict[str, Any] = {"imported": report.imported, "degraded": list(report.degraded)}
    with MemoryStore.open(path, key_file=key_file) as store:
        for mode in ("hybrid", "keyword", "vector", "literal"):
            answer = store.search(QUERY, mode=mode)
            found[mode] = sorted(row.title for row in answer.rows)
            found["degraded"] += answer.degraded
        rows = store.search(QUERY).rows
        found["reranked"] = sum(row.rerank_score is not None for row in rows)
        store.reindex()
    return found


def served(path: Path, key_file: Path) -> Any:
    """What a served search finds."""
    settings, noted = path.with_suffix(".json"), path.with_suffix(".heard")
    allowed = {"key-file": str(key_file), "allow": {"hybrid-search": True, "hybrid-decrypt": True}}
    databases = {"databases": {path.stem: allowed}}
    settings.write_text(json.dumps({"plugins": {"datasette-hybrid": databases}}))
    from datasette.app import Datasette

    option = "--config" if hasattr(Datasette, "get_internal_database") else "--metadata"
    command = [sys.executable, __file__, "serve", str(noted), str(path), option, str(settings)]
    log = path.with_suffix(".log")
    with log.open("wb") as said:
        server = subprocess.Popen([*command, "-p", "0"], stderr=said)
    try:
        address = address_of(server, log)
        rows = json.loads(answered(f"{address}/notes/-/hybrid.json?q={QUERY}"))
        answered(f"{address}/notes/-/hybrid?q={QUERY}")
    finally:
        server.terminate()
        server.wait(120)
    heard.extend(noted.read_text().splitlines())
    return sorted(row["title"] for row in rows["rows"])


def address_of(server: subprocess.Popen[bytes], log: Path) -> str:
    """Where the server answers, as it says itself once it does."""
    until = time.monotonic() + 180
    while not (found := re.search(r"Uvicorn running on (http://[\w.:]+)", log.read_text())):
        assert server.poll() is None, log.read_text()
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.1)
    return found[1]


def answered(address: str) -> bytes:
    """What stands there."""
    try:
        with urllib.request.urlopen(address, timeout=120) as response:
            return bytes(response.read())
    except urllib.error.HTTPError as error:
        raise AssertionError(f"{address}: {error.code} {error.read()[:300]!r}") from None


def serve(noted: str, *arguments: str) -> None:
    global note  # a server ends by the signal that stops it: what is heard is written at once
    sys.argv = ["datasette", "serve", *arguments]
    from datasette.cli import cli

    with open(noted, "w", buffering=1) as file:
        note = lambda line: file.write(f"{line}\n")  # noqa: E731
        cli()


def models(path: str, key_file: str, notes: str) -> None:
    print(json.dumps(searched(Path(path), Path(key_file), notes)))


if __name__ == "__main__":
    os.environ.pop("MEMORY_STORE_OFFLINE", None)  # no one has to forbid what is not tried
    if sys.argv[1] == "models":
        models(**json.loads(sys.argv[2]))
        sys.exit()
    sys.addaudithook(hear)
    if sys.argv[1] == "work":
        work(**json.loads(sys.argv[2]))
    else:
        serve(*sys.argv[2:])
