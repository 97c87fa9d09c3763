"""Making, importing, unlocking, searching and serving need no network and ask for none.

Once with Python's own account of every address that is turned to, once in a network namespace that
holds nothing but loopback, where compiled code finds nothing either. Both find the same.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import isolated
import pytest
from tiny_reranker import build as build_tiny_reranker

NOTES = ("A heron by the pond", "The heron's nest", "Ducks and a heron", "Six heron eggs", "Herons")
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


def told(folder: Path, notes: Path, *before: str) -> dict[str, Any]:
    """What the work found and which addresses it turned to, run ``before``'s way."""
    folder.mkdir()
    given = json.dumps({"folder": str(folder), "notes": str(notes), "alone": bool(before)})
    done = subprocess.run(
        [*before, sys.executable, isolated.__file__, "work", given],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def alone() -> list[str]:
    """The command that takes the network away here. Skips where nobody may."""
    for command in ALONE:
        if (
            shutil.which("unshare")
            and not subprocess.run([*command, "true"], check=False).returncode
        ):
            return command
    pytest.skip("this system makes no network namespace for us")


def test_nothing_asks_for_a_network_and_nothing_needs_one(
    tmp_path: Path, notes: Path, private_folders: Path
) -> None:
    usual = told(tmp_path / "usual", notes)
    assert usual["heard"] == []
    assert usual["found"]["imported"] == len(NOTES)
    assert all(
        usual["found"][mode] for mode in ("hybrid", "keyword", "vector", "literal", "served")
    )
    without = told(tmp_path / "without", notes, *alone())
    assert without == usual


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
    done = subprocess.run(
        [sys.executable, "-c", asking], capture_output=True, text=True, env=environment, check=True
    )
    assert "192.0.2.1" in done.stdout
    assert "example.org" in done.stdout
