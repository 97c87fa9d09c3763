"""Large imports of source code are read by a second process: the same, and nothing is left."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from memory_store.session import indexer
from memory_store.store import MemoryStore

TREE = {
    "a/box.py": "from a import keys\n\nclass Box:\n    def open(self):\n        keys.turn(self)\n",
    "a/keys.py": "def turn(one):\n    return one\n",
    "web/open.js": "import { turn } from './turn.js';\nexport function openHTTPBox() { turn(); }\n",
    "web/turn.js": "export function turn() {}\n",
    "main.go": 'package main\n\nimport "fmt"\n\nfunc main() { fmt.Println("grün 箱子") }\n',
    "broken.py": "def half(:\n  class\n",
    "many.py": "def one():\n    return 1\n\n\n" * 200,
    "Makefile": "all:\n\techo 1\n",
    "README.md": "# Boxes\n\nA note among them.\n",
}
NAMES = ("turn", "Box.open", "openHTTPBox", "main", "one")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repo")
    for name, text in TREE.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / ".git").mkdir()
    return folder


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[MemoryStore]:
    with MemoryStore.create(tmp_path / "a.db", key_file=tmp_path / "keys" / "a.key")[0] as store:
        yield store


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second process is worth it for any file, on any machine."""
    monkeypatch.setattr(indexer, "WORTH_A_PROCESS", 1)
    monkeypatch.setattr("memory_store.models.embedder.default_threads", lambda: 2)


def reading() -> list[Path]:
    """Processes that read source code and were started by this one, in ``/proc``."""
    if sys.platform != "linux":
        pytest.skip("children are listed in /proc")
    tasks = Path("/proc/self/task").glob("*/children")
    started = [Path("/proc", number) for file in tasks for number in file.read_text().split()]
    return [one for one in started if b"source_process" in (one / "cmdline").read_bytes()]


def answers(store: MemoryStore) -> list[Any]:
    """What is known of the files, without the ids, which are those of this vault."""
    files = [name for name in TREE if not name.endswith(".md")]
    asked = [store.code.outline(name) for name in files] + [store.code.symbols(n) for n in NAMES]
    return [_without_ids(msgspec.to_builtins(one)) for one in asked]


def _without_ids(said: Any) -> Any:
    if isinstance(said, dict):
        keys = [key for key in said if key != "id" and not key.endswith("_ids")]
        return {key: _without_ids(said[key]) for key in keys}
    return [_without_ids(one) for one in said] if isinstance(said, list | tuple) else said


@pytest.mark.usefixtures("beside")
def test_what_a_second_process_read_is_what_one_would_read(
    vault: MemoryStore, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = list[Path]()
    vault.import_paths([tree], embed=False, progress=lambda *_: there.extend(reading()))
    assert there
    assert reading() == []
    assert vault.verify(full=True)["failures"] == []  # words and trigrams, made here once more
    monkeypatch.setattr(indexer, "WORTH_A_PROCESS", 1_000_000)
    alone = MemoryStore.create(tmp_path / "b.db", key_file=tmp_path / "keys" / "b.key")[0]
    with alone:
        alone.import_paths([tree], embed=False)
        assert answers(alone) == answers(vault)


@pytest.mark.usefixtures("beside")
def test_a_second_process_that_fails_is_done_without(
    vault: MemoryStore, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    vault.import_paths([tree], embed=False)
    assert vault.code.symbols("turn").definitions
    assert vault.verify(full=True)["failures"] == []


@pytest.mark.usefixtures("beside")
def test_a_second_process_has_no_secret_and_ends_with_an_import_that_is_stopped(
    vault: MemoryStore, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_STORE_PASSPHRASE", "zanzibar")
    known = list[bytes]()

    def stop(*_: object) -> None:
        if there := reading():
            known.extend((one / "environ").read_bytes() for one in there)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        vault.import_paths([tree], embed=False, progress=stop)
    assert known
    assert b"zanzibar" not in b"".join(known)
    assert reading() == []


def test_a_small_import_starts_no_process(vault: MemoryStore, tree: Path) -> None:
    there = list[Path]()
    vault.import_paths([tree], embed=False, progress=lambda *_: there.extend(reading()))
    assert there == []
