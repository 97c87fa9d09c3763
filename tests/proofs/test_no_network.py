"""Making, importing, unlocking, searching and serving need no network and ask for none.

Once with Python's own account of every address that is turned to, once in a network namespace that
holds nothing but loopback, where compiled code finds nothing either. Both find the same. Once more
with the system's account, in which compiled code and children are heard too: there the embedding
model is the one that everybody uses, where it is installed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import isolated
import pytest
from own_process import ended, python
from tiny_reranker import build as build_tiny_reranker
from tracing import traced

from memory_store.models import offline

NOTES = ("A heron by the pond", "The heron's nest", "Ducks and a heron", "Six heron eggs", "Herons")
TURNING = ("connect", "sendto", "sendmsg", "sendmmsg", "bind")  # calls that name an address
ADDRESS = re.compile(r'(?:inet_addr\(|inet_pton\(AF_INET6, )"([^"]+)"')
ALONE = (["unshare", "-n"], ["unshare", "-rn"])  # as root; in a user namespace


@pytest.fixture
def notes(tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of notes, and small models that lie in folders."""
    folder = tmp_path / "source"
    folder.mkdir()
    for number, text in enumerate(NOTES):
        (folder / f"{number}.md").write_text(f"# {text}\n\nSeen on day {number}, a grey heron.\n")
    reranker = tmp_path / "ms-marco-TinyBERT-L-2-v2"
    build_tiny_reranker(reranker)
    monkeypatch.setenv("MEMORY_STORE_MODEL", str(tiny_model))
    monkeypatch.setenv("MEMORY_STORE_RERANKER", str(reranker))
    return folder


def reported(folder: Path, notes: Path, *before: str) -> dict[str, Any]:
    """What the work found and which addresses it turned to, run ``before``'s way."""
    folder.mkdir()
    given = json.dumps({"folder": str(folder), "notes": str(notes), "alone": bool(before)})
    done = ended(*before, sys.executable, isolated.__file__, "work", given)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def alone() -> list[str]:
    """The command that takes the network away here. Skips where no one may."""
    for command in ALONE:
        if (
            shutil.which("unshare")
            and not subprocess.run([*command, "true"], check=False).returncode
        ):
            return command
    pytest.skip("this system makes no network namespace for us")


@pytest.mark.once
def test_nothing_asks_for_a_network_and_nothing_needs_one(
    tmp_path: Path, notes: Path, private_folders: Path
) -> None:
    usual = reported(tmp_path / "usual", notes)
    assert usual["heard"] == []
    assert usual["found"]["imported"] == len(NOTES)
    assert all(
        usual["found"][mode] for mode in ("hybrid", "keyword", "vector", "literal", "served")
    )
    assert usual["found"]["reranked"]
    without = reported(tmp_path / "without", notes, *alone())
    assert without == usual


def outside(calls: list[str]) -> list[str]:
    """The addresses in those system calls that are not this machine's own."""
    named = [address for line in calls for address in ADDRESS.findall(line)]
    return [address for address in named if not ip_address(address).is_loopback]


@pytest.mark.sampled(0)
@pytest.mark.once
def test_the_system_is_asked_for_no_network_by_the_real_model_and_a_reranker(
    tmp_path: Path, notes: Path, private_folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if offline.can_build():  # else the tiny one
        monkeypatch.delenv("MEMORY_STORE_MODEL")
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    given = {"path": tmp_path / "a.db", "key_file": tmp_path / "keys" / "a.key", "notes": notes}
    script = [isolated.__file__, "models", json.dumps(given, default=str)]
    run = traced(tmp_path / "calls", script, TURNING)
    found = json.loads(run.stdout)
    assert found["imported"] == found["reranked"] == len(NOTES)
    assert found["hybrid"]
    assert found["vector"]
    assert found["degraded"] == []
    assert outside(run.calls) == []
    assert [*home.rglob("*")] == []  # no id of this machine, nothing to be sent later


@pytest.mark.once
def test_the_system_says_who_turns_to_the_network_in_compiled_code(tmp_path: Path) -> None:
    """The account would show it, of a child too."""
    run = traced(tmp_path / "calls", ["-c", COMPILED, CHILD], TURNING)
    assert outside(run.calls) == ["192.0.2.1", "2001:db8::1"]


CHILD = """
import socket
with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as one:
    try: one.sendto(b"", ("2001:db8::1", 80))
    except OSError: pass
"""
COMPILED = """
import ctypes, socket, subprocess, sys
libc = ctypes.CDLL(None)
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
    here = (ctypes.c_ubyte * 16)(2, 0, 0, 80, 192, 0, 2, 1)
    libc.connect(one.fileno(), here, 16)
    subprocess.run([sys.executable, "-c", sys.argv[1]])
    there = (ctypes.c_ubyte * 16)(2, 0, 0, 80, 127, 0, 0, 1)
    libc.connect(one.fileno(), there, 16)
"""


def test_who_turns_to_the_network_is_heard() -> None:
    """The account would show it."""
    asking = (
        "import isolated, socket, sys\n"
        "sys.addaudithook(isolated.hear)\n"
        "for ask in (lambda: socket.create_connection(('192.0.2.1', 80), 1),\n"
        "            lambda: socket.getaddrinfo('example.org', 80)):\n"
        "    try: ask()\n"
        "    except OSError: pass\n"
        "print(isolated.heard)"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(isolated.__file__).parent)}
    done = python("-c", asking, env=environment, check=True)
    assert "192.0.2.1" in done.stdout
    assert "example.org" in done.stdout
