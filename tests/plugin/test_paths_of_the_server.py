"""What fails on a server is said without its folders, but to those who may read its audit trail."""

from __future__ import annotations

import shutil
import sqlite3
import struct
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from datasette_hybrid.vaults.registry import vaults_of
from memory_store.paths import config_folder
from memory_store.store import MemoryStore

from .conftest import ALLOW, Filled, Serve, Served
from .uploads import imported

AUDITED = {**ALLOW, "hybrid-audit": {"id": "root"}}
FILES = {"pears.md": b"# Pears\n\nPrune them in winter."}
SQL = "select hybrid_search('tomatoes')"


@pytest.fixture
def own_model(tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model folder of this test, that it may break."""
    folder = tmp_path / "own" / tiny_model.name
    shutil.copytree(tiny_model, folder)
    monkeypatch.setenv("MEMORY_STORE_MODEL", str(folder))
    return folder


async def call(visitor: Served, tool: str, arguments: dict[str, Any]) -> Any:
    """A call of an assistant's tool."""
    params = {"name": tool, "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    accepts = {"Accept": "application/json, text/event-stream", "Authorization": "Bearer nothing"}
    return await visitor.send("POST", "/mcp", message, headers=accepts)


async def went_without(served: Served, who: str, **fields: str) -> str:
    """What an import of this actor says that it went without, and its page."""
    done = await imported(served.by(who), FILES, **fields)
    assert done["state"] == "done"
    page = await served.by(who).get(f"/notes/-/hybrid/import/{done['job']}")
    assert all(line in unescape(page.text) for line in done["degraded"])
    return "\n".join(done["degraded"])


@pytest.mark.in_a_file
async def test_an_import_without_its_model_says_where_that_is_to_auditors_alone(
    filled: Filled, serve: Serve, own_model: Path, tmp_path: Path
) -> None:
    (own_model / "tokenizer.json").unlink()
    served = await serve(filled.path, options=filled.options(allow=AUDITED))
    to_a_writer = await went_without(served, "wanda")
    assert to_a_writer.startswith("stored without vectors")
    assert str(tmp_path) not in to_a_writer
    assert "memory-store" not in to_a_writer
    to_root = await went_without(served, "root")
    assert str(own_model) in to_root
    assert f"memory-store reindex {filled.path}" in to_root


async def test_an_import_says_to_readers_alone_which_languages_a_collection_has(
    filled: Filled, serve: Serve
) -> None:
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        place = store.collections.create("harbour").id
        for number in range(5):
            store.add(f"港の鍵は古い倉庫の裏に置いてあります。{number}", collection=place)
    served = await serve(filled.path, options=filled.options(allow=AUDITED))
    assert "does not read Japanese" in await went_without(served, "root", collection=place)
    assert await went_without(served, "wanda", collection=place) == ""


async def test_an_import_that_another_model_stops_names_the_models_to_auditors_alone(
    filled: Filled,
    serve: Serve,
    second_model: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    folder = tmp_path / "another" / "tiny-embedder"
    shutil.copytree(second_model, folder)
    monkeypatch.setenv("MEMORY_STORE_MODEL", str(folder))
    served = await serve(filled.path, options=filled.options(allow=AUDITED))
    vaults_of(served.datasette).stay()  # a server that stays embeds afterwards
    done = await imported(served.by("wanda"), FILES)
    assert (done["state"], done["imported"]) == ("failed", 0)
    assert "tiny-embedder" not in done["error"]
    assert "tiny-embedder" in (await imported(served.by("root"), FILES))["error"]


@pytest.mark.parametrize("content", ["model: [a\nb", "modle: x", "model: 1", None])
async def test_settings_that_cannot_be_read_are_named_without_their_folder(
    served: Served, content: str | None, tmp_path: Path
) -> None:
    file = config_folder() / "config.yaml"
    if content is None:
        file.mkdir()
    else:
        file.write_text(content)
    bob = served.by("bob")
    answers = [
        await bob.get(".json?q=tomatoes"),
        await bob.get("?q=tomatoes"),
        await bob.datasette.client.get(
            "/notes.json", params={"sql": SQL}, cookies=bob.cookies, follow_redirects=True
        ),
        await call(bob, "memory_search", {"query": "tomatoes"}),
    ]
    for answer in answers:
        assert "config.yaml" in answer.text.lower()
        assert str(tmp_path) not in answer.text


async def test_the_key_file_that_is_missing_is_named_to_auditors_alone(
    filled: Filled, serve: Serve, tmp_path: Path
) -> None:
    missing = tmp_path / "keys" / "gone.key"
    options = {"notes": {"key-file": str(missing), "allow": AUDITED}}
    served = await serve(filled.path, options=options)
    assert str(missing) in (await served.by("root").get("/unlock")).text
    for who in (None, "alice", "bob", "wanda"):
        page = await served.by(who).get("/unlock")
        assert page.status_code == 200
        assert str(tmp_path) not in page.text


def of_a_later_format(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("pragma user_version = 99")


def with_a_trigger(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("create trigger mine after insert on memories begin select 1; end")


@pytest.mark.in_a_file
@pytest.mark.parametrize("change", [of_a_later_format, with_a_trigger])
async def test_who_types_a_secret_at_a_strange_file_is_told_its_name_alone(
    closed: Served, filled: Filled, change: Any, tmp_path: Path
) -> None:
    change(filled.path)
    answer = await closed.submit("/unlock", {"secret": "anything"})
    assert answer.status_code == 409
    assert "notes.db: " in answer.text
    assert str(tmp_path) not in answer.text


@pytest.mark.in_a_file
async def test_a_strange_journal_is_named_without_its_folder(
    filled: Filled, serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where Datasette was given the file by a path that is not whole."""
    name = b"/another/file"
    end = struct.pack(">II8s", len(name), sum(name), bytes.fromhex("d9d505f920a163d7"))
    filled.path.with_name("notes.db-journal").write_bytes(bytes(512) + name + end)
    monkeypatch.chdir(filled.path.parent)
    served = await serve(Path("notes.db"), options=filled.options(allow=AUDITED))
    answer = await served.get(".json?q=tomatoes")
    assert answer.status_code == 503
    assert "notes.db-journal" in answer.text
    assert str(tmp_path) not in answer.text


async def test_the_folder_that_a_memory_came_from_is_named_whole_to_auditors_alone(
    filled: Filled, serve: Serve, tmp_path: Path
) -> None:
    (tmp_path / "diary").mkdir()
    (tmp_path / "diary" / "may.md").write_text("The swallows are back.")
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        (id_,) = store.import_paths([tmp_path / "diary"]).ids
        store.add("Heard on the radio.", source="https://radio.example/news")
    served = await serve(filled.path, options=filled.options(allow=AUDITED))
    for who, folder in (("root", str(tmp_path / "diary")), ("bob", "diary")):
        listed = (await served.by(who).get("/memories.json")).json()["rows"]
        sources = {row["source"] for row in listed}
        assert sources == {None, folder, "https://radio.example/news"}
        answer = await served.by(who).get(f"{served.base}/memories/{id_}.json")
        one = answer.json()["rows"][0]
        assert (one["source"], one["ref"]) == (folder, "may.md")


async def test_an_assistant_remembers_where_the_model_cannot_be_loaded(
    filled: Filled, serve: Serve, own_model: Path
) -> None:
    (own_model / "tokenizer.json").unlink()
    served = await serve(filled.path, options=filled.options(allow=AUDITED))
    arguments = {"memories": [{"text": "The swallows are back."}]}
    answer = await call(served.by("root"), "memory_add", arguments)
    assert answer.json()["result"]["isError"] is False
    newest = (await served.by("bob").get("/memories.json?_size=1")).json()["rows"][0]
    assert newest["text"] == "The swallows are back."
