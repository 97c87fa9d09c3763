"""Large imports of source code are read by a second process: the same, and nothing is left."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from memory_store.records import Memory
from memory_store.session import indexer
from memory_store.session.source_parts import SourceParts, source_parts
from memory_store.session.source_process import SourceProcess
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


def test_what_either_process_makes_of_a_file_is_the_same_whichever_is_faster() -> None:
    here = list[str]()

    def parts(memory: Memory) -> SourceParts:
        here.append(memory.id)
        return source_parts(memory)

    with closing(SourceProcess(parts)) as process:
        for turn in range(10_000):
            files = [source_file(f"{turn} {name}", name, text) for name, text in TREE.items()]
            process.begin(files)
            process.begin(files)  # as an import does that comes to them at last
            made = [process.parts(one) for one in files]
            assert [plain(one) for one in made] == [plain(source_parts(one)) for one in files]
            if len(here) < (turn + 1) * len(files):
                break  # the process has started, and made some of them
    assert len(set(here)) == len(here)
    assert len(here) < (turn + 1) * len(files)


def source_file(number: str, name: str, text: str) -> Memory:
    moment = "2026-01-01T00:00:00+00:00"
    return Memory(number, "c", "code", name, text, (), moment, moment, ref=name)


def plain(made: SourceParts) -> Any:
    """What it says, whatever the order of the terms."""
    terms = made.names.terms
    counts = (
        np.frombuffer(one, np.uint32).tolist() for one in (made.names.titles, made.names.bodies)
    )
    words = [terms[place] for place in np.frombuffer(made.names.parts, np.uint32).tolist()]
    said = sorted(zip(terms, *counts, strict=True))
    return bytes(made.outline), said, words, made.grams, {k: [*v] for k, v in made.facts.items()}


def test_a_small_import_starts_no_process(vault: MemoryStore, tree: Path) -> None:
    there = list[Path]()
    vault.import_paths([tree], embed=False, progress=lambda *_: there.extend(reading()))
    assert there == []
