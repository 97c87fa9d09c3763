"""Who may write and not read learns nothing of what is there, whatever they write.

Two vaults differ in what others keep in them: texts, titles, topics, refs, names of files, the name
of a collection. Eve, who holds ``hybrid-write`` alone, guesses all of the first one, by every way
to write. What she is answered, and how her rows are related to others' in the file, must be the
same in both.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from plugin.conftest import Filled, Serve, Served
from plugin.uploads import BEARER, ended, post

from memory_store.scopes import EVERYTHING, NOTHING
from memory_store.sqlite import connect
from memory_store.store import MemoryStore

TARGET, DONE, TITLED = (f"00000000-0000-4000-8000-00000000010{number}" for number in range(3))
LONG = "The vault stands behind the third shelf. " * 400
GUESSED = "The PIN is 4821"
TITLE, TOPIC, FILE, COLLECTION = "Bank", "divorce", "letters/lawyer.md", "diary"
MOMENT = "2026-01-01T00:00:00Z"
UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[\d.]*(?:Z|\+00:00)")
JOB = re.compile(r'(?<=import/)[\w-]{22}|(?<="job": ")[\w-]{22}|(?<="job":")[\w-]{22}')


@dataclass
class World:
    """What others keep."""

    text: str = GUESSED
    title: str = TITLE
    topic: str = TOPIC
    file: str = FILE
    content: bytes = GUESSED.encode()
    collection: str = COLLECTION
    done: bool = True
    bodiless: bool = True
    long: str = LONG


AS_GUESSED = World()
OTHERWISE = World(
    text="Another text",
    title="Shop",
    topic="garden",
    file="letters/gas.md",
    content=b"Another text",
    collection="journal",
    done=False,
    bodiless=False,
    long=LONG[::-1],
)


def fill(store: MemoryStore, world: World) -> None:
    """The others' memories, with ids and times that are in clear anyhow."""
    common: dict[str, Any] = {"created": MOMENT, "updated": MOMENT}
    store.add(
        world.text, id=TARGET, title=world.title, topics=[world.topic], ref=world.title, **common
    )
    store.add(world.long, title=world.title, **common)
    kind = "task_done" if world.done else "task"
    store.add("A task", id=DONE, type=kind, topics=[world.topic], **common)
    store.add("" if world.bodiless else "x", id=TITLED, title=world.title, **common)
    store.add("In the other one", collection=world.collection, **common)


@dataclass
class Eve:
    """What she sends, and all that she is answered, less what is random."""

    who: Served
    path: Path
    seen: list[Any] = field(default_factory=list)
    _names: dict[str, str] = field(default_factory=dict)

    def note(self, what: str, status: int, headers: Iterable[tuple[str, str]], body: str) -> None:
        kept = {"etag", "location", "retry-after", "content-type", "cache-control"}
        known = sorted((name, self._plain(one)) for name, one in headers if name.lower() in kept)
        self.seen.append((self._plain(what), status, known, self._plain(body)))

    def _plain(self, text: str) -> str:
        """Without times; ids by the order in which she saw them."""
        text = JOB.sub("JOB", TIME.sub("TIME", text))
        text = re.sub(r'(name="csrftoken" value=)"[^"]*"', r"\1", text)
        text = re.sub(r'(nonce=)"[^"]*"', r"\1", text)
        text = re.sub(r"Queries took\s[\d.]+ms", "", text)
        text = re.sub(r'"milliseconds":\s*[\d.]+', "", text)
        return UUID.sub(lambda m: self._names.setdefault(m[0], f"id {len(self._names)}"), text)

    async def send(self, method: str, path: str, value: Any, **headers: str) -> Any:
        answer = await self.who.send(method, path, value, headers={**BEARER, **headers})
        self.note(f"{method} {path}", answer.status_code, answer.headers.items(), answer.text)
        return answer

    async def fill_in(self, path: str, **fields: str) -> None:
        answer = await self.who.submit(path, fields, page="/new")
        self.note(f"form {path}", answer.status_code, answer.headers.items(), answer.text)

    async def upload(self, files: dict[str, bytes], **fields: str) -> None:
        begun = await post(self.who, files, **fields)
        at_work = begun.status_code == 202  # how far it is by now is a matter of luck
        body = "" if at_work else begun.text
        self.note("upload", begun.status_code, begun.headers.items(), body)
        if at_work:
            reported = await ended(self.who, begun.json()["job"])
            self.note("job", 200, (), json.dumps(reported))


async def add(eve: Eve) -> None:
    for draft in (
        {"text": GUESSED},
        {"text": GUESSED, "title": TITLE, "topics": [TOPIC], "ref": TITLE, "created": MOMENT},
        {"text": LONG, "title": TITLE},
        {"text": GUESSED, "id": TARGET},
        {"text": GUESSED, "title": TITLE, "topics": [TOPIC], "id": TARGET, "created": MOMENT},
        {"text": "x", "supersedes": TARGET, "parent": TARGET},
        {"text": "x", "parent": TITLE},
    ):
        await eve.send("POST", "/memories.json", draft)
        await eve.send("POST", "/memories.json", {"memories": [draft, {"text": GUESSED}]})


async def name_collections(eve: Eve) -> None:
    for name in (COLLECTION, "personal", "neither"):
        await eve.send("POST", "/memories.json", {"text": "x", "collection": name})
        await eve.fill_in("/new", text="x", collection=name, type="note")
        await eve.upload({"a.md": b"x"}, collection=name)
        await eve.upload({"a.md": b"x"}, new_collection=name)
        await eve.upload({"a.ndjson": json.dumps({"text": "x", "collection": name}).encode()})
        await eve.send("POST", "/collections.json", {"name": name})
    await eve.send("GET", "/collections.json", None)


async def rename(eve: Eve) -> None:
    made = await eve.send("POST", "/collections.json", {"name": "hers"})
    hers = made.json()["rows"][0]["id"]
    for name in (COLLECTION, "neither"):
        await eve.send("PATCH", f"/notes/-/hybrid/collections/{hers}.json", {"name": name})
        await eve.fill_in("/collections", do="rename", collection=hers, name=name)


async def edit(eve: Eve) -> None:
    one = f"/notes/-/hybrid/memories/{TARGET}"
    for change in (
        {"title": ""},
        {"text": ""},
        {"text": GUESSED},
        {"text": GUESSED, "title": TITLE, "topics": [TOPIC]},
        {"add_topics": [TOPIC]},
        {"collection": COLLECTION},
    ):
        for version in (1, 2, 3, 9):
            await eve.send("PATCH", f"{one}.json", {**change, "version": version})
            await eve.send("PATCH", f"{one}.json", change, **{"If-Match": f'"{version}"'})
        await eve.send("PATCH", f"{one}.json", change)
    for version in (1, 2):
        titled = f"/notes/-/hybrid/memories/{TITLED}.json"
        await eve.send("PATCH", titled, {"title": None, "version": version})
    await eve.fill_in(f"{one}/edit", text=GUESSED, type="note", version="1", id=TARGET)
    await eve.fill_in(f"{one}/topics", add=TOPIC)


async def complete(eve: Eve) -> None:
    for action in ("done", "done", "reopen", "reopen"):
        await eve.send("POST", f"/notes/-/hybrid/memories/{DONE}/{action}.json", None)
        await eve.fill_in(f"/notes/-/hybrid/memories/{DONE}/{action}")


async def publish(eve: Eve) -> None:
    made = await eve.send("POST", "/collections.json", {"name": "hers", "private": True})
    draft = {"text": GUESSED, "title": TITLE, "topics": [TOPIC], "collection": "hers"}
    added = await eve.send("POST", "/memories.json", {**draft, "created": MOMENT})
    hers = added.json()["rows"][0]["id"]
    for target in ("personal", made.json()["rows"][0]["id"], COLLECTION, "neither"):
        for _ in "12":
            path = f"/notes/-/hybrid/memories/{hers}/publish"
            await eve.send("POST", f"{path}.json", {"collection": target})
            await eve.fill_in(path, target=target)


async def upload(eve: Eve) -> None:
    exported = f"---\nid: {TARGET}\ntitle: {TITLE}\n---\n{GUESSED}".encode()
    for fields in ({"dry_run": "1"}, {}, {"differing": "replace"}, {"differing": "add"}, {}):
        await eve.upload({FILE: GUESSED.encode()}, **fields)
        await eve.upload({FILE: b"otherwise"}, **fields)
        await eve.upload({"pin.md": exported}, **fields)
        rows = [{"text": GUESSED, "ref": TITLE}, {"text": LONG, "title": TITLE, "ref": FILE}]
        await eve.upload({"rows.ndjson": "\n".join(map(json.dumps, rows)).encode()}, **fields)


async def read(eve: Eve) -> None:
    """What she may not ask is refused in both."""
    one = f"/notes/-/hybrid/memories/{TARGET}"
    for path in (
        ".json?q=PIN",
        f"{one}.json",
        "/memories.json",
        one,
    ):
        answer = await eve.who.get(path)
        assert answer.status_code in (403, 404), path
        eve.note(path, answer.status_code, answer.headers.items(), answer.text)
    for sql in (
        f"select topic_hash('{TOPIC}') x",
        "select hybrid_search('PIN') x",
        "select hybrid_explain('PIN') x",
        f"select memory_text('{TARGET}') x",
    ):
        eve.seen.append((sql, await eve.who.sql(sql)))


WAYS = (add, name_collections, rename, edit, complete, publish, upload, read)

RELATIONS = {
    "a body that two memories share": """
        select count(*) from memories a join memories b on a.content = b.content and a.id < b.id
    """,
    "bodies": "select count(*) from memory_bodies",
    "memories": "select count(*) from memories",
    "versions": "select version, count(*) from memories group by 1 order by 1",
    "rows of imports": "select count(*), count(distinct file) from memory_sources",
    "files": "select count(*), count(distinct content) from vault_source_files",
    "collections": "select count(*) from collections",
}
"""Of the file as who reads its clear columns sees it."""


async def everything(
    filled: Filled,
    serve: Serve,
    world: World,
    way: Callable[[Eve], Any],
    folder: Path,
    *,
    strict: bool,
) -> list[Any]:
    """All that Eve sees of a world."""
    folder.mkdir()
    path = folder / "notes.db"
    if strict:
        model = os.environ["MEMORY_STORE_MODEL"]
        new = {"key_file": filled.key_file, "embedder": model, "profile": "strict"}
        MemoryStore.create(path, **new)[0].close()
    else:
        path.write_bytes(filled.path.read_bytes())
    with MemoryStore.open(path, key_file=filled.key_file) as store:
        fill(store, world)
    allow = {f"hybrid-{name}": {"id": "root"} for name in ("search", "decrypt")}
    settings = {
        "key-file": str(filled.key_file),
        "allow": {**allow, "hybrid-write": {"id": ["root", "eve"]}},
    }
    served = await serve(path, options={"notes": settings})
    for _ in "12":  # others upload the same file, too, and publish
        begun = await post(served.by("root"), {world.file: world.content})
        await ended(served.by("root"), begun.json()["job"])
    eve = Eve(served.by("eve"), path)
    await way(eve)
    connection = connect(path, read_only=True)
    try:
        for name, sql in RELATIONS.items():
            eve.seen.append((name, [tuple(row) for row in connection.execute(sql)]))
    finally:
        connection.close()
    return eve.seen


@pytest.mark.sampled(5)
@pytest.mark.parametrize("strict", [False, True], ids=["default", "strict"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_what_others_keep_makes_no_difference_to_who_only_writes(
    filled: Filled, serve: Serve, tmp_path: Path, way: Callable[[Eve], Any], strict: bool
) -> None:
    right, wrong = [
        await everything(filled, serve, world, way, tmp_path / name, strict=strict)
        for name, world in (("right", AS_GUESSED), ("wrong", OTHERWISE))
    ]
    for one, other in zip(right, wrong, strict=True):
        assert one == other
    said = json.dumps(right, default=str)
    assert "Another text" not in said


async def test_a_reader_still_shares_bodies_and_knows_what_was_imported(
    filled: Filled, serve: Serve
) -> None:
    settings = {"key-file": str(filled.key_file)}
    root = (await serve(filled.path, options={"notes": settings})).by("root")
    for _ in "12":
        await root.send("POST", "/memories.json", {"text": GUESSED}, headers=BEARER)
    shared = await root.sql("select count(*) n from memories group by content order by n desc")
    assert shared[0] == {"n": 2}
    for expected in ("imported 1", "unchanged 1"):
        begun = await post(root, {FILE: b"A letter"})
        assert expected in (await ended(root, begun.json()["job"]))["summary"]


async def test_the_hashes_of_topics_are_closed_to_who_only_writes(
    filled: Filled, serve: Serve
) -> None:
    allow = {"hybrid-search": {"id": "root"}, "hybrid-write": {"id": ["root", "eve"]}}
    settings = {"key-file": str(filled.key_file), "allow": allow}
    eve = (await serve(filled.path, options={"notes": settings})).by("eve")
    draft = {"text": "x", "topics": ["garden"]}
    added = await eve.send("POST", "/memories.json", draft, headers=BEARER)
    assert added.status_code == 201
    with pytest.raises(AssertionError, match="not authorized"):
        await eve.sql("select topic, count(*) from memory_topics group by topic")


async def test_who_searches_one_collection_and_writes_another_sees_no_hashes_either(
    filled: Filled, serve: Serve
) -> None:
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        searched = store.collections.create("searched").id
        written = store.collections.find("personal")
    look = ["view-instance", "view-database", "view-table", "execute-sql"]
    only = {"notes": {searched: ["hybrid-search"], written: ["hybrid-write"]}}
    settings = {"key-file": str(filled.key_file)}
    datasette = await serve(filled.path, options={"notes": settings})
    sql = "select topic, count(*) from memory_topics group by topic"
    mixed = datasette.by({"id": "root", "_r": {"a": look, "r": only}})
    with pytest.raises(AssertionError, match="not authorized"):
        await mixed.sql(sql)
    only["notes"][written].append("hybrid-search")
    both = datasette.by({"id": "root", "_r": {"a": look, "r": only}})
    assert await both.sql(sql)


def test_what_was_written_unread_is_whole(filled: Filled) -> None:
    """A body of its own is verified and found, before and after its collection has a new key."""
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        first = store.add(GUESSED)
        blind = store.limited_to(EVERYTHING, disclosed=NOTHING, writer="eve").add(GUESSED)
        for change in (lambda: None, store.keys.rotate):
            change()
            assert store.get(blind.id).text == first.text
            assert store.search("PIN").rows[0].id in (first.id, blind.id)
            assert store.verify()["failures"] == []
        assert store.edit(blind.id, title="Read by now").text == first.text
        assert store.verify()["failures"] == []
