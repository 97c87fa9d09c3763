"""A keeper is killed while it works: what it answered is done, once, and the vault is sound."""

from __future__ import annotations

import os
import random
import shutil
import signal
import threading
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import GeneratorType

import pytest
from keeping_open import KeptOpen, by_keeper, is_running, start, until

from memory_store.errors import MemoryStoreError
from memory_store.keeper import client
from memory_store.keeper.assistant import kept_assistant
from memory_store.keeper.frames import BrokenError
from memory_store.store import MemoryStore

KILLS = int(os.environ.get("SOAK_KILLS", "100"))  # for each kind of work
FILES = 4  # of an import

Texts = dict[str, str]
"""The text of each memory, and its id (empty: it was not said)."""


class DiedError(Exception):
    """The keeper was killed before it answered."""


class Work:
    """What one caller asks of a keeper until it dies, and what must be there then.

    ``done`` is what was answered. ``new`` and ``gone`` are the texts that the question that was
    not answered may have added and taken away: all of them or none, but ``some`` of an import.
    """

    def __init__(self, path: Path, folder: Path, capture: pytest.CaptureFixture[bytes]) -> None:
        self.path, self.folder, self.capture = path, folder, capture
        self.numbers = count()
        self.done: Texts = {}
        self.new: list[str] = []
        self.gone: list[str] = []
        self.some = False
        self.answered = 0

    def text(self) -> str:
        return f"Note {next(self.numbers)} says that the weir is mended."

    def command(self, *words: str, new: str = "", gone: str = "") -> str:
        """What a command printed, which adds one text and takes another away."""
        self.new, self.gone = [new] * bool(new), [gone] * bool(gone)
        name, *rest = words
        code, out, _ = by_keeper(self.capture, name, str(self.path), *rest)
        if code != 0:
            raise DiedError
        self.acknowledge()
        return out.decode()

    def acknowledge(self) -> None:
        for text in self.gone:
            del self.done[text]
        self.done |= dict.fromkeys(self.new, "")
        self.new, self.gone, self.some = [], [], False
        self.answered += 1

    def add(self) -> str:
        text = self.text()
        self.done[text] = self.command("add", text, new=text).strip()
        return text

    def edit(self) -> str:
        old, new = self.add(), self.text()
        id_ = self.done[old]
        self.command("edit", id_, "--text", new, new=new, gone=old)
        self.done[new] = id_
        return old

    def delete(self) -> None:
        old = self.add()
        self.command("delete", self.done[old], "--yes", gone=old)

    def undo(self) -> None:
        old = self.edit()
        (new, *_) = reversed(self.done)
        id_ = self.done[new]
        self.command("undo", new=old, gone=new)
        self.done[old] = id_

    def supersede(self) -> None:
        old, new = self.add(), self.text()
        words = ("add", new, "--supersedes", self.done[old])
        self.done[new] = self.command(*words, new=new).strip()

    def search(self) -> None:
        text = self.add()
        assert text in self.command("search", text, "--nl")

    def import_(self) -> None:
        self.new = [self.text() for _ in range(FILES)]
        self.some = True
        folder = self.folder / self.new[0]
        folder.mkdir(parents=True)
        for number, text in enumerate(self.new):
            (folder / f"{number}.md").write_text(text)
        steps = client.followed(["import", str(self.path), str(folder)])
        if not isinstance(steps, GeneratorType):
            raise DiedError
        try:
            names = [name for name, _ in steps]
        except BrokenError:
            raise DiedError from None
        if "report" not in names:
            raise DiedError
        self.acknowledge()

    def assistant(self) -> None:
        helper = kept_assistant([str(self.path), "--write", "--name", "helper"])
        if helper is None:
            raise DiedError
        for _ in range(5):
            old, edited, newest = self.text(), self.text(), self.text()
            self.new = [old]
            (one,) = helper.call("memory_add", {"memories": [{"text": old}]})["memories"]
            self.acknowledge()
            self.done[old] = id_ = one["id"]
            self.new, self.gone = [edited], [old]
            changed = helper.call("memory_update", {"id": id_, "text": edited})
            self.acknowledge()
            self.done[edited] = id_
            helper.call("memory_search", {"query": edited})
            self.new = [newest]
            new = helper.call("memory_update", {"id": id_, "supersede": newest})
            self.acknowledge()
            self.done[newest] = new["id"]
            self.gone = [newest]
            version = {"version": new["version"]}
            helper.call("memory_update", {"id": new["id"], "delete": True, **version})
            self.acknowledge()
            assert changed["version"] == 2

    def check(self, store: MemoryStore) -> None:
        """What was answered is there once; of what was not, all or nothing."""
        assert store.verify()["failures"] == []
        there = [*store.every()]
        counted = Counter(one.text for one in there)
        assert max(counted.values(), default=1) == 1, "something was done twice"
        before, after = {*self.done}, {*self.done} - {*self.gone} | {*self.new}
        if self.some:
            assert before <= {*counted} <= after
        else:
            assert {*counted} in (before, after)
        for one in there:
            assert self.done.get(one.text, "") in ("", one.id)
            if one.superseded_by:
                assert store.get(one.superseded_by).supersedes == one.id
        self.done = {one.text: one.id for one in there}
        self.new, self.gone, self.some = [], [], False


def import_again(work: Work, store: MemoryStore) -> None:
    """What was stopped is run again: each file is there then, and once."""
    for folder in work.folder.iterdir() if work.folder.exists() else ():
        store.import_paths([folder])
        said = Counter(one.text for one in store.every())
        assert {said[file.read_text()] for file in folder.iterdir()} == {1}
        shutil.rmtree(folder)
    work.done = {one.text: one.id for one in store.every()}


ASKED: dict[str, Callable[[Work], object]] = {
    "add": Work.add,
    "edit": Work.edit,
    "delete": Work.delete,
    "undo": Work.undo,
    "supersede": Work.supersede,
    "search": Work.search,
    "import": Work.import_,
    "assistant": Work.assistant,
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("asked", ASKED)
def test_killed_while_it_works(
    vault: KeptOpen, tmp_path: Path, asked: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Takes over a second: keepers are started, killed somewhere, and the vault is verified."""
    kill(asked, 2, vault, tmp_path, capfdbinary)


@pytest.mark.soak
@pytest.mark.parametrize("asked", ASKED)
def test_killed_at_many_points(
    vault: KeptOpen, tmp_path: Path, asked: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    midway = kill(asked, KILLS, vault, tmp_path, capfdbinary)
    with capfdbinary.disabled():
        print(f"\n{asked}: {KILLS} kills, {midway} in the middle of a change", flush=True)


def kill(
    asked: str,
    kills: int,
    vault: KeptOpen,
    tmp_path: Path,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> int:
    """Kill so many keepers. How many were about to change something."""
    path, chance, midway = tmp_path / "copy.db", random.Random(f"7 {asked}"), 0
    shutil.copy(vault.path, path)
    work = Work(path, tmp_path / "notes", capfdbinary)
    with MemoryStore.open(path, key_file=vault.key_file) as store:
        work.done = {one.text: one.id for one in store.every()}
    for _ in range(kills):
        kept = start(path, vault.key_file)
        process = kept.process()
        work.add()  # the first one loads the model
        killing = threading.Timer(chance.uniform(0, 1), os.kill, (process, signal.SIGKILL))
        killing.start()
        try:
            while True:
                ASKED[asked](work)
        except (DiedError, MemoryStoreError):
            pass
        killing.join()
        until(lambda process=process: not is_running(process))
        midway += bool(work.new or work.gone)
        with MemoryStore.open(path, key_file=vault.key_file) as store:
            work.check(store)
            import_again(work, store)
    assert work.answered >= kills
    return midway
