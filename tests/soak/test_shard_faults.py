"""Shards and nodes are killed at any moment while others search and write: a search is answered as
by one process, or says which shard is away. And over vaults that are drawn, filters and all.

``SOAK_KILLS`` kills (100) befall three shards, each a process of its own, and the commands that
search them.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("grpc", reason="the extra shards is not installed")
sys.path.insert(0, str(Path(__file__).parents[1] / "vault"))  # test_shards

from test_shards import COLLECTIONS, SHARDS, WORDS, Nodes, fill, told

from memory_store.errors import AwayError, SupersededError
from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore

pytestmark = pytest.mark.soak

KILLS = int(os.environ.get("SOAK_KILLS", "100"))
VAULTS, QUESTIONS = 12, 25
BACK = 60.0  # seconds that a shard may take until it answers again
QUERIES = ("pump garden", "water -boiler", '"garden gate"', "ledger invoice diary", "tomatoes")


class Shards:
    """Processes that serve one vault, each at a port of its own."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self.ports = {number: server.port for number, server in enumerate(nodes.servers, 1)}
        nodes.close()
        self._running = {number: self._started(number) for number in self.ports}

    def kill(self, number: int) -> None:
        """kill -9, and start it again."""
        self._running[number].kill()
        self._running[number].wait()
        self._running[number] = self._started(number)

    def pause(self, number: int, seconds: float) -> None:
        """A machine that stands still."""
        pid = self._running[number].pid
        os.kill(pid, 19)
        time.sleep(seconds)
        os.kill(pid, 18)

    def end(self) -> None:
        for process in self._running.values():
            process.kill()
            process.wait()

    def _started(self, number: int) -> subprocess.Popen[bytes]:
        nodes = self._nodes
        pem, private = nodes.certificates[number - 1]
        words = [str(nodes.whole.path), f"{number}/{SHARDS}", "--key-file", str(nodes.key_file)]
        words += ["--listen", f"localhost:{self.ports[number]}", "--certificate", str(pem)]
        words += ["--private-key", str(private), "--peer", str(nodes.own[0])]
        return subprocess.Popen(
            [sys.executable, "-m", "memory_store", "shard", *words],
            stderr=subprocess.DEVNULL,
            env={**os.environ, "MEMORY_STORE_MODEL": nodes.model},
        )


@pytest.fixture
def make_nodes(tmp_path: Path, tiny_model: Path, private_folders: Path) -> Iterator[Callable]:
    made: list[Nodes] = []

    def make(name: str, write: Callable[[MemoryStore], None]) -> Nodes:
        folder = tmp_path / name
        folder.mkdir()
        key = folder / "keys" / "notes.key"
        whole, _ = MemoryStore.create(
            folder / "notes.db", key_file=key, embedder=str(tiny_model), profile="strict"
        )
        write(whole)
        made.append(Nodes(whole, key, folder))
        return made[-1]

    yield make
    for one in made:
        one.close()
        one.whole.lock()


def until_answered(node: MemoryStore, query: str) -> list[tuple[object, ...]]:
    until = time.monotonic() + BACK
    while True:
        try:
            return told(node.search(query))
        except (AwayError, SupersededError):
            assert time.monotonic() < until
            time.sleep(0.1)


def test_a_search_beside_kills_is_whole_or_an_error(
    make_nodes: Callable[..., Nodes], private_folders: Path
) -> None:
    chance, nodes = random.Random(7), make_nodes("killed", fill)
    shards = Shards(nodes)
    node = nodes.node()
    counted: Counter[str] = Counter()
    wrong: list[object] = []
    expected: dict[str, object] = {}
    held, ended = threading.Lock(), threading.Event()

    def ask_for_ever() -> None:
        draw = random.Random()
        while not ended.is_set():
            query = draw.choice(QUERIES)
            try:
                with held:
                    found = told(node.search(query))
                    if found != expected[query]:
                        wrong.append((query, found))
                counted["answered"] += 1
            except (AwayError, SupersededError) as error:
                counted[str(error).partition(" (")[0].partition(":")[0]] += 1
                time.sleep(0.05)
            except BaseException as error:
                wrong.append(error)
                raise

    asking = threading.Thread(target=ask_for_ever)
    try:
        for query in QUERIES:
            expected[query] = told(nodes.whole.search(query))
            assert until_answered(node, query) == expected[query]
        asking.start()
        for kill in range(KILLS):
            time.sleep(chance.uniform(0, 0.4))
            if kill % 10 == 9:
                words = ["search", str(nodes.whole.path), "--key-file", str(nodes.key_file), "pump"]
                command = subprocess.Popen(
                    [sys.executable, "-m", "memory_store", *words],
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env={**os.environ, "MEMORY_STORE_SHARDS": str(nodes.folder / "shards.yaml")},
                )
                time.sleep(chance.uniform(0.2, 1.5))
                command.kill()
                command.wait()
            elif kill % 10 == 4:
                shards.pause(chance.randint(1, SHARDS), 1.0)
            else:
                shards.kill(chance.randint(1, SHARDS))
            with held:  # what is written is followed
                if kill % 5 == 0:
                    nodes.whole.add(f"The {chance.choice(WORDS)} number {kill} drips")
                if kill % 25 == 24:
                    nodes.whole.keys.rotate()
                for query in QUERIES:
                    expected[query] = told(nodes.whole.search(query))
            assert until_answered(node, QUERIES[0]) == expected[QUERIES[0]]
            counted["answered again"] += 1
        for query in QUERIES:
            assert until_answered(node, query) == told(nodes.whole.search(query))
    finally:
        ended.set()
        if asking.ident:
            asking.join()
        node.lock()
        shards.end()
    print(f"{KILLS} kills: {dict(counted)}")
    assert wrong == []
    assert counted["answered again"] == KILLS
    assert counted["answered"] > len(QUERIES)
    assert counted.total() > counted["answered"] + KILLS  # some were asked while a shard was away


def drawn(draw: random.Random) -> Callable[[MemoryStore], None]:
    """Fills a vault at random: lengths, collections, topics, edits and deletions."""

    def write(store: MemoryStore) -> None:
        for name in COLLECTIONS:
            store.collections.create(name)
        for _ in range(draw.randint(1, 3)):  # each batch a segment
            drafts = [
                MemoryDraft(
                    " ".join(draw.choices(WORDS, k=draw.choice((1, 4, 30, 400)))),
                    title=" ".join(draw.choices(WORDS, k=draw.randint(0, 3))),
                    collection=draw.choice(COLLECTIONS),
                    type=draw.choice(("note", "task", "fact")),
                    topics=tuple(draw.sample(WORDS, draw.randint(0, 3))),
                    created=f"2026-01-{draw.randint(1, 28):02}T00:00:{draw.randint(0, 59):02}Z",
                )
                for _ in range(draw.choice((1, 3, 40)))
            ]
            ids = [one.id for one in store.add_many(drafts)]
            for one in draw.sample(ids, len(ids) // 5):
                store.delete(one)
            left = [one.id for one in store.list(limit=5)]
            for one in left[:2]:
                store.edit(one, text=" ".join(draw.choices(WORDS, k=6)))

    return write


def options(draw: random.Random) -> dict[str, object]:
    possible: dict[str, object] = {
        "mode": draw.choice(("hybrid", "keyword", "vector")),
        "recipe": draw.choice(("default", "gnosis", "qmd", "prx", "gno", "code")),
        "limit": draw.randint(1, 32),
        "collection": draw.choice(COLLECTIONS),
        "topic": draw.choice(WORDS),
        "type": draw.choice(("note", "task")),
        "since": f"2026-01-{draw.randint(1, 28):02}",
        "explain": True,
    }
    return {name: possible[name] for name in draw.sample([*possible], draw.randint(0, 4))}


def test_vaults_that_are_drawn_are_searched_alike(make_nodes: Callable[..., Nodes]) -> None:
    found = 0
    for seed in range(VAULTS):
        draw = random.Random(seed)
        nodes = make_nodes(f"vault {seed}", drawn(draw))
        node = nodes.node()
        for _ in range(QUESTIONS):
            others = [*WORDS[:-1], f"-{WORDS[-1]}", '"garden gate"', "unheard"]
            words = [draw.choice(WORDS[:-1]), *draw.choices(others, k=draw.randint(0, 4))]
            query, asked = " ".join(words), options(draw)
            here, there = (
                told(nodes.whole.search(query, **asked)),
                told(node.search(query, **asked)),
            )
            assert here == there, (seed, query, asked)
            found += len(here) > 5
        node.lock()
    assert found > VAULTS
