"""Searches in other processes: the same answers and refusals, and an end with the lock."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from own_process import ended, python
from threads import no_thread_to_be_had

from memory_store.errors import BadInputError, LockedError, MemoryStoreError, ModelUnavailableError
from memory_store.records import SearchResponse, search_request
from memory_store.scopes import EVERYTHING, NOTHING, Limits, Scope
from memory_store.searchers import pool
from memory_store.searchers.pool import DEPTH, WORTH, Searchers
from memory_store.store import MemoryStore

TEXTS = (
    ("The pump in the garden drips", "work", ("garden",)),
    ("Invoices go into the ledger on Friday", "work", ("money",)),
    ("A boiler needs water, and so do tomatoes", "home", ("garden", "water")),
    ("The diary of a pump attendant", "diary", ("water",)),
)
OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"explain": True},
    {"mode": "keyword", "limit": 2},
    {"mode": "vector", "sealed": True},
    {"topic": "garden"},
    {"limit": 1, "narrow": "collection:work"},
)
HANGS = 120.0  # seconds, after which a process is not going to come any more


@dataclass
class Scene:
    """An opened vault whose searches may run elsewhere, and what was told of that."""

    store: MemoryStore
    key_file: Path
    searchers: Searchers
    reported: list[str] = field(default_factory=list)

    def processes(self) -> list[int]:
        """The ids of the search processes that are alive."""
        listed = ended(
            "ps", "-ww", "-o", "pid=,stat=,args=", "--ppid", str(os.getpid())
        ).stdout.splitlines()
        found = [line.split(None, 2) for line in listed]
        return [
            int(pid)
            for pid, state, command in found
            if pool.COMMAND[-1] in command and "Z" not in state
        ]

    def until(self, holds: Callable[[], bool]) -> None:
        """Wait for something that another process does."""
        end = time.monotonic() + HANGS
        while not holds():
            assert time.monotonic() < end, f"still not so; reported: {self.reported}"
            time.sleep(0.02)

    def begin(self, count: int = 1) -> None:
        """Have searches start the processes, as many at once as it takes, until they are ready."""
        with ThreadPoolExecutor(DEPTH * count) as crowd:
            while self.searchers.ready < count:
                list(crowd.map(self.ask, ["pump"] * (DEPTH * count)))

    def ask(self, query: str, *scopes: Scope, **options: Any) -> SearchResponse | None:
        """What a process answers; ``None`` if none did."""
        views = tuple(map(Limits, scopes))
        return self.searchers.ask(views, "search", search_request(query, **options))


@pytest.fixture
def scene(
    tiny_model: Path,
    private_folders: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    request: Any,
) -> Iterator[Scene]:
    monkeypatch.setenv("MEMORY_STORE_MODEL", str(tiny_model))
    key_file = tmp_path / "keys" / "a.key"
    key_file.parent.mkdir()
    store, _ = MemoryStore.create(tmp_path / "notes.db", key_file=key_file)
    for text, collection, topics in TEXTS:
        store.add(text, collection=collection, topics=topics)
    reported: list[str] = []
    searchers = Searchers(store, getattr(request, "param", 1), reported.append)
    yield Scene(store, key_file, searchers, reported)
    searchers.stop()
    store.close()


@contextmanager
def stuck(scene: Scene) -> Iterator[None]:
    """Inside, the processes that are there do nothing, and do not end."""
    stopped = scene.processes()
    for process in stopped:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in set(stopped) & set(scene.processes()):
            os.kill(process, signal.SIGCONT)


def timeless(response: SearchResponse) -> dict[str, Any]:
    """An answer without what its clock says, and without the tag that each ``next`` has."""
    shown = replace(response, next=response.next and "more").as_dict()

    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: without(v) for k, v in value.items() if "milliseconds" not in k}
        return [without(one) for one in value] if isinstance(value, list) else value

    return dict(without(shown))


def test_a_process_answers_what_the_store_itself_answers(scene: Scene) -> None:
    scene.begin()
    work = Scope.of([one.id for one in scene.store.collections.list() if one.name == "work"])
    for query in ("pump water", '"pump in"', "ledger -friday", "topic:garden"):
        for options in OPTIONS:
            for scopes in ((), (work,)):
                store = scene.store
                for scope in scopes:
                    store = store.limited_to(scope)
                elsewhere = scene.ask(query, *scopes, **options)
                assert elsewhere is not None
                assert timeless(elsewhere) == timeless(store.search(query, **options))
    assert scene.searchers.ready == 1


def test_a_process_opens_what_the_asker_may_read_and_no_more(scene: Scene) -> None:
    scene.begin()
    work = Scope.of([one.id for one in scene.store.collections.list() if one.name == "work"])
    for readable, opened in ((NOTHING, 0), (work, 1), (EVERYTHING, 3)):
        question = (
            "search_by_places",
            search_request("pump water", sealed=True, mode="keyword"),
        )
        elsewhere = scene.searchers.ask((Limits(EVERYTHING, readable),), *question)
        assert elsewhere is not None
        assert (len(elsewhere.rows), elsewhere.opened) == (3, opened)
        assert sum(bool(row.preview) for row in elsewhere.rows) == opened


def test_the_store_asks_a_process_and_reports_it_as_its_own_searches(scene: Scene) -> None:
    scene.begin()
    answered: list[tuple[str, bool]] = []
    heard: list[str] = []

    def elsewhere(*question: Any) -> SearchResponse | None:
        found = scene.searchers.ask(*question)
        answered.append((question[1], found is not None))
        return found

    home = Scope.of([one.id for one in scene.store.collections.list() if one.name == "home"])
    scene.store.search_through(elsewhere)
    scene.store.report_to(lambda event, *_: heard.append(event))
    limited = scene.store.limited_to(home)
    assert [row.collection for row in limited.search("pump water").rows] == ["home"]
    assert limited.search_by_places(search_request("pump water")).rows
    assert answered == [("search", True), ("search_by_places", True)]
    assert heard == ["search", "search"]


@pytest.mark.sampled(0)
def test_a_refusal_is_the_same_from_a_process(scene: Scene) -> None:
    scene.begin()
    with pytest.raises(BadInputError) as refused:
        scene.ask("pump", narrow="nothing")
    assert refused.value.parameter == "narrow"
    assert scene.searchers.ready == 1


@pytest.mark.parametrize(
    "error",
    [
        ModelUnavailableError("there is none", "make one"),
        BadInputError("wrong", "limit"),
        LockedError("locked"),
    ],
)
def test_every_refusal_travels_with_all_it_says(error: MemoryStoreError) -> None:
    import pickle

    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.args, vars(again)) == (type(error), error.args, vars(error))


def test_a_process_finds_what_was_written_before_it_was_asked(scene: Scene) -> None:
    scene.begin()
    added = scene.store.add("A marmot sleeps in the attic", collection="a new one")
    found = scene.ask("marmot")
    assert found is not None
    assert [row.id for row in found.rows][:1] == [added.id]
    scene.store.delete(added.id)
    gone = scene.ask("marmot", mode="keyword")
    assert gone is not None
    assert not gone.rows


def test_the_store_searches_by_itself_until_a_process_is_ready(scene: Scene) -> None:
    scene.store.search_through(scene.searchers.ask)
    for _ in range(WORTH):
        assert scene.processes() == []
        assert scene.store.search("pump").rows
    scene.until(lambda: scene.searchers.ready == 1)


@pytest.mark.sampled(0)
@pytest.mark.parametrize("scene", [2], indirect=True)
def test_a_process_that_dies_is_missed_by_no_one(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "SHORT_LIFE", 0.0)
    scene.begin(2)
    scene.store.search_through(scene.searchers.ask)
    for process in scene.processes():
        os.kill(process, signal.SIGKILL)
    assert [scene.store.search("pump").rows[0].rank for _ in range(3)] == [1, 1, 1]
    scene.begin(2)
    assert len(scene.reported) == 2
    assert "died" in scene.reported[0]


@pytest.mark.sampled(0)
@pytest.mark.parametrize("scene", [2], indirect=True)
def test_a_process_that_is_stuck_is_given_up_and_replaced(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "SHORT_LIFE", 0.0)
    scene.begin(2)
    scene.store.search_through(scene.searchers.ask)
    with monkeypatch.context() as hasty, ThreadPoolExecutor() as crowd, stuck(scene):
        hasty.setattr(pool, "LONGEST", 0.5)
        found = list(crowd.map(scene.store.search, ["pump"] * 5, timeout=HANGS / 4))
    assert all(response.rows for response in found)
    scene.begin(2)
    assert ["stuck" in line for line in scene.reported] == [True, True]


@pytest.mark.sampled(0)
def test_a_process_that_is_stuck_at_once_is_not_started_again(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.begin()
    (process,) = scene.searchers._all
    monkeypatch.setattr(pool, "LONGEST", 2.0)
    with stuck(scene):
        monkeypatch.setattr(pool, "SHORT_LIFE", time.monotonic() - process.begun + 1.5)
        assert [scene.ask("pump") for _ in range(WORTH)] == [None] * WORTH
    assert scene.processes() == []


@pytest.mark.sampled(0)
def test_a_process_that_dies_young_is_not_started_again(scene: Scene) -> None:
    scene.begin()
    (process,) = scene.processes()
    os.kill(process, signal.SIGKILL)
    assert scene.ask("pump") is None
    assert scene.ask("pump") is None
    assert scene.processes() == []


@pytest.mark.sampled(0)
def test_a_process_is_started_later_where_no_thread_is_to_be_had_at_first(scene: Scene) -> None:
    with no_thread_to_be_had():
        assert [scene.ask("pump") for _ in range(WORTH)] == [None] * WORTH
    scene.begin()
    assert scene.ask("pump")


@pytest.mark.parametrize("scene", [2], indirect=True)
def test_who_searches_alone_needs_one_process(scene: Scene) -> None:
    scene.begin()
    assert all(scene.ask("pump") for _ in range(3))
    assert len(scene.processes()) == 1


@pytest.mark.sampled(0)
@pytest.mark.parametrize("scene", [2], indirect=True)
def test_no_process_outlives_the_end_of_the_searches(scene: Scene) -> None:
    scene.begin(2)
    assert len(scene.processes()) == 2
    scene.searchers.stop()
    assert scene.processes() == []
    assert scene.ask("pump") is None
    assert scene.reported == []


def test_processes_that_are_still_starting_end_as_well(scene: Scene) -> None:
    assert [scene.ask("pump") for _ in range(WORTH)] == [None] * WORTH
    scene.until(lambda: len(scene.processes()) == 1)
    scene.searchers.stop()
    assert scene.processes() == []
    assert scene.reported == []


def test_a_locked_vault_is_handed_to_no_process(scene: Scene) -> None:
    scene.store.close()
    with pytest.raises(LockedError):
        scene.store.lend(lambda *_: pytest.fail("a key was handed out"))
    assert [scene.ask("pump") for _ in range(WORTH)] == [None] * WORTH
    scene.until(lambda: bool(scene.reported))
    assert "did not start" in scene.reported[0]


@pytest.mark.sampled(0)
def test_no_key_is_in_what_others_may_see_of_a_process(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_STORE_PASSPHRASE", "hardly a secret")
    monkeypatch.setenv("MEMORY_STORE_KEY_FILE", str(scene.key_file))
    scene.begin()
    (process,) = scene.processes()
    seen = b"".join(Path(f"/proc/{process}/{name}").read_bytes() for name in ("cmdline", "environ"))
    assert b"MEMORY_STORE_MODEL" in seen
    for secret in ("hardly a secret", str(scene.key_file), scene.key_file.read_text("utf-8")):
        assert secret.strip().encode() not in seen


ANSWERS_NONSENSE = """
import sys
from memory_store.processes import send_bytes
from memory_store.searchers.wire import READY, receive, receive_root, send

asked, answered = open(0, "rb", buffering=0), open(1, "wb", buffering=0)
receive(asked), receive_root(asked), send(answered, READY)
receive(asked), send_bytes(answered, b"no pickle"), receive(asked)
"""


def test_no_one_waits_for_a_process_that_answers_nonsense(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "COMMAND", (sys.executable, "-c", ANSWERS_NONSENSE))
    scene.until(lambda: scene.ask("pump") is None and bool(scene.reported))
    assert ["died" in line for line in scene.reported] == [True]


ENDS_SUDDENLY = """
import os, sys, time
from memory_store.searchers.pool import Searchers
from memory_store.records import SearchRequest
from memory_store.store import MemoryStore

store = MemoryStore.open(sys.argv[1], key_file=sys.argv[2])
searchers = Searchers(store, 1, print)
while not searchers.ready:
    searchers.ask((), "search", SearchRequest("pump"))
    time.sleep(0.02)
(process,) = searchers._all
print(process._child.process.pid, flush=True)
os.kill(os.getpid(), 9)
"""


def test_a_process_ends_when_its_server_is_killed(scene: Scene) -> None:
    dead = python("-c", ENDS_SUDDENLY, str(scene.store.path), str(scene.key_file))
    process = Path("/proc", dead.stdout.strip())
    scene.until(
        lambda: not process.exists() or " Z " in process.joinpath("stat").read_text("utf-8")
    )
