"""Assistants and a page at work at once, under any grants: nothing is lost, and none sees or
changes what it was not given."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from memory_store.access import Grants
from memory_store.assistants.assistant import Assistant, access_of
from memory_store.assistants.reads import as_markdown, landscape_markdown
from memory_store.assistants.tools import TOOLS, call
from memory_store.errors import MemoryStoreError
from memory_store.records import MemoryDraft
from memory_store.scopes import EVERYTHING, Scope
from memory_store.store import MemoryStore

FULL = os.environ.get("PROOFS") == "full"
NAMES = ("amber", "birch", "cedar")  # collections; each text has the name of its own
COLLECTIONS = st.sets(st.sampled_from(NAMES))
GRANTED = st.tuples(COLLECTIONS, COLLECTIONS, COLLECTIONS)  # search, decrypt, write
WRITES = {
    "add": "memory_add",
    "edit": "memory_update",
    "supersede": "memory_update",
    "delete": "memory_update",
}
READS: dict[str, Callable[[str, str], tuple[str, dict[str, Any]]]] = {
    "search": lambda name, _: ("memory_search", {"query": f"{name} note", "format": "json"}),
    "named": lambda name, _: ("memory_search", {"query": "note", "collection": [name]}),
    "like": lambda _, target: ("memory_search", {"like": target}),
    "pattern": lambda name, _: ("memory_search", {"query": f"/A {name}/", "mode": "literal"}),
    "read": lambda _, target: ("memory_read", {"ids": [target]}),
    "start": lambda *_: ("memory_start", {"query": "note"}),
    "tasks": lambda *_: ("tasks", {"status": "all"}),
    "map": lambda *_: ("memory_landscape", {}),
    "repository": lambda *_: ("code_context", {}),
    "outline": lambda name, _: ("code_outline", {"file": f"{name}.py"}),
    "symbol": lambda name, _: ("code_symbols", {"name": name}),
    "impact": lambda name, _: ("code_impact", {"of": f"{name}.py"}),
    "lines": lambda name, _: ("code_read", {"file": f"{name}.py"}),
}
RESOURCES = ("memory", "landscape")
ACTIONS = (*WRITES, *READS, *RESOURCES)
PLAN = st.lists(st.tuples(st.sampled_from(ACTIONS), st.sampled_from(NAMES)), min_size=4, max_size=9)


class Done(Struct):
    """What one caller was told that it did: texts by id and version, and what it deleted."""

    texts: dict[tuple[str, int], str]
    deleted: set[str]
    collections: set[str]
    said: list[Any]


def test_every_tool_is_among_the_actions() -> None:
    """A tool that is added without an action of its own fails here."""
    read = {tool for tool, _ in (made("", "") for made in READS.values())}
    assert {*WRITES.values(), *read} == {one.name for one in TOOLS}


@settings(max_examples=60 if FULL else 4)
@given(st.tuples(GRANTED, GRANTED), st.tuples(PLAN, PLAN, PLAN))
def test_two_assistants_and_a_page_under_any_grants(
    tiny_model: Path, granted: Any, plans: Any
) -> None:
    with made(tiny_model) as store:
        scopes = {name: store.collections.create(name).id for name in NAMES}
        seeds = {
            name: store.add(
                f"A {name} note, the first", type="task", collection=name, topics=[name]
            )
            for name in NAMES
        }
        targets = {name: one.id for name, one in seeds.items()}
        code = store.add_many(
            [
                MemoryDraft(
                    f"# A {name} note, in code\ndef {name}():\n    return 1\n",
                    type="code",
                    ref=f"{name}.py",
                    metadata={"language": "python"},
                    collection=name,
                )
                for name in NAMES
            ]
        )

        def assistant(number: int) -> Done:
            search, decrypt, write = (
                Scope.of(scopes[name] for name in given) for given in granted[number]
            )
            grants = Grants(search=search, decrypt=decrypt, write=write)
            limited = store.limited_to(search | decrypt | write, readable=decrypt)
            helper = Assistant(limited, access_of(grants), f"helper {number}", grants)
            done = at_work(helper, plans[number], targets)
            asking = [(action, name) for action in (*READS, *RESOURCES) for name in NAMES]
            done.said += at_work(helper, asking, targets).said
            return done

        def page() -> Done:
            whole = Assistant(store.limited_to(EVERYTHING), "write", "page")
            return at_work(whole, plans[2], targets)

        with ThreadPoolExecutor(3) as pool:
            jobs = [pool.submit(assistant, 0), pool.submit(assistant, 1), pool.submit(page)]
            done = [job.result() for job in jobs]

        texts = {(one.id, 1): one.text for one in (*seeds.values(), *code)}
        for one in done:
            assert not texts.keys() & one.texts.keys(), "one version was given twice"
            texts |= one.texts
        newest = {id_: max(v for other, v in texts if other == id_) for id_, _ in texts}
        gone = set.union(*(one.deleted for one in done))
        there = {one.id: one for one in store.every()}
        assert {*there} == {*newest} - gone
        for id_, memory in there.items():
            assert memory.text == texts[id_, newest[id_]]
            assert memory.collection in memory.text
        for (search, decrypt, write), one in zip(granted, done, strict=False):
            assert one.collections <= write
            for name in decrypt & search:  # what may be read is there
                assert f"A {name} note, in code" in json.dumps(one.said)
            said = json.dumps(one.said)
            assert not [name for name in {*NAMES} - decrypt if f"A {name} note" in said]


@contextmanager
def made(model: Path) -> Iterator[MemoryStore]:
    with TemporaryDirectory() as folder:
        key_file, path = Path(folder, "keys", "key"), Path(folder, "vault", "notes.db")
        path.parent.mkdir()
        store, _ = MemoryStore.create(path, key_file=key_file, embedder=str(model))
        with store:
            yield store


def at_work(helper: Assistant, plan: Any, targets: dict[str, str]) -> Done:
    done = Done({}, set(), set(), [])
    for number, (action, name) in enumerate(plan):
        try:
            act(helper, action, name, targets[name], number, done)
        except MemoryStoreError as error:
            done.said.append(str(error))
    return done


def act(helper: Assistant, action: str, name: str, target: str, number: int, done: Done) -> None:
    text = f"A {name} note, by {helper.name}, number {number}"
    match action:
        case "add":
            new = {"text": text, "collection": name, "topics": [name], "type": "task"}
            answer = call(helper, "memory_add", {"memories": [new]})
            done.texts[answer["memories"][0]["id"], 1] = text
        case "edit":
            answer = call(helper, "memory_update", {"id": target, "text": text})
            done.texts[target, answer["version"]] = text
        case "supersede":
            answer = call(helper, "memory_update", {"id": target, "supersede": text})
            done.texts[answer["id"], 1] = text
        case "delete":
            (read,) = call(helper, "memory_read", {"ids": [target]})["memories"]
            given = {"id": target, "delete": True, "version": read["version"]}
            call(helper, "memory_update", given)
            done.deleted.add(target)
        case "memory":
            done.said.append(as_markdown(helper, target))
            return
        case "landscape":
            done.said.append(landscape_markdown(helper))
            return
        case _:
            done.said.append(call(helper, *READS[action](name, target)))
            return
    done.collections.add(name)
    done.said.append(answer if action != "delete" else "deleted")
