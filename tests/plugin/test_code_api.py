"""What is asked of source code over HTTP: for those who may read, of what they may read."""

from __future__ import annotations

import re
from typing import Any

import pytest

from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore

from .conftest import ALLOW, Filled, Serve

BOXES = "class Box:\n    def open_lid(self):\n        return 1\n"
USER = "from boxes import Box\n\n\ndef unpack(box: Box):\n    return box.open_lid()\n"
ENDS = {
    "context": "",
    "outline": "file=boxes.py",
    "symbols": "name=Box",
    "references": "name=open_lid",
    "impact": "of=boxes.py",
    "read": "file=boxes.py:2-3",
}


@pytest.fixture
def coded(filled: Filled) -> Filled:
    """The vault with two files of source code in a collection, and one in another."""
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        for ref, text, collection in (
            ("boxes.py", BOXES, "shop"),
            ("unpack.py", USER, "shop"),
            ("hidden.py", "class Vault:\n    pass\n", "hidden"),
        ):
            draft = MemoryDraft(text, type="code", ref=ref, collection=collection)
            store.add_many([draft], embed=False)
    return filled


async def answered(served: Any, end: str, query: str = "") -> Any:
    response = await served.get(f"{served.base}/code/{end}.json?{query or ENDS[end]}")
    assert response.status_code == 200, response.text
    assert response.headers["cache-control"] == "no-store"
    return response.json()


async def test_each_answers_what_the_command_does(coded: Filled, serve: Serve) -> None:
    served = (await serve(coded.path, options=coded.options(allow=ALLOW))).by("bob")
    outline = await answered(served, "outline")
    assert [one["name"] for one in outline["symbols"]] == ["Box", "open_lid"]
    assert outline["imported_by"] == ["unpack.py"]
    symbols = await answered(served, "symbols")
    assert [(one["file"], one["line"]) for one in symbols["definitions"]] == [("boxes.py", 1)]
    assert [one["file"] for one in symbols["uses"]] == ["unpack.py"]
    uses = await answered(served, "references")
    assert [(one["file"], one["line"]) for one in uses["rows"]] == [("unpack.py", 5)]
    impact = await answered(served, "impact")
    assert [(one["file"], one["hops"]) for one in impact["files"]] == [("unpack.py", 1)]
    read = await answered(served, "read")
    assert (read["line"], read["text"].splitlines()[0]) == (2, "    def open_lid(self):")
    again = await answered(served, "read", f"file=boxes.py&if_changed={read['hash']}")
    assert (again["unchanged"], again["text"]) == (True, "")
    context = await answered(served, "context", "collection=shop&budget=300")
    assert context["files"] == 2
    assert context["ok"]


async def test_sql_has_tables_of_what_the_actor_may_read_and_the_trail_has_the_reading(
    coded: Filled, serve: Serve
) -> None:
    with MemoryStore.open(coded.path, key_file=coded.key_file) as store:
        store.collections.change_members("hidden", {"root": "owner"})
    served = await serve(coded.path, options=coded.options(allow=ALLOW))
    defined, used = "select file, name from code_symbols()", "select * from code_references('Box')"
    for actor in (None, "alice", "wanda", "mallory"):
        for sql in (defined, used):
            assert await served.by(actor).sql(sql) == [], actor
    files = {row["file"] for row in await served.by("bob").sql(defined)}
    assert files == {"boxes.py", "unpack.py"}
    (row,) = await served.by("bob").sql("select file, line from code_references('open_lid')")
    assert row == {"file": "unpack.py", "line": 5}
    trail = (await served.by("root").get(f"{served.base}/audit.json")).json()["rows"]
    readings = [(one["who"], one["surface"]) for one in trail if one["action"] == "read"]
    assert readings == [("bob", "sql")]


async def test_who_may_not_read_gets_no_name_of_it(coded: Filled, serve: Serve) -> None:
    served = await serve(coded.path, options=coded.options(allow=ALLOW))
    for actor in (None, "alice", "wanda", "mallory"):
        for end, query in ENDS.items():
            response = await served.by(actor).get(f"{served.base}/code/{end}.json?{query}")
            assert response.status_code == 403, (actor, end, response.text)
            assert not {"boxes", "Box", "unpack"} & set(response.text.replace(".", " ").split())


async def test_of_collections_that_may_not_be_read_there_is_nothing(
    coded: Filled, serve: Serve
) -> None:
    with MemoryStore.open(coded.path, key_file=coded.key_file) as store:
        store.collections.change_members("hidden", {"root": "owner"})
    served = (await serve(coded.path, options=coded.options(allow=ALLOW))).by("bob")
    for end, query in (("outline", "file=hidden.py"), ("symbols", "name=Vault")):
        response = await served.get(f"{served.base}/code/{end}.json?{query}")
        assert response.status_code == 404, response.text
    assert (await answered(served, "context"))["files"] == 2


ALIKE = {
    "outline": "file=hiden.py",
    "symbols": "name=Vaultt",
    "references": "name=Vaulty",
    "impact": "of=hiden.py",
    "read": "file=hiddn.py:1-2",
}


async def test_a_refusal_names_what_is_called_alike_of_what_the_actor_may_read_alone(
    coded: Filled, serve: Serve
) -> None:
    with MemoryStore.open(coded.path, key_file=coded.key_file) as store:
        store.collections.change_members("hidden", {"root": "owner", "bob": "searcher"})
    served = await serve(coded.path, options=coded.options(allow=ALLOW))
    for end, query in ALIKE.items():
        for actor, names in (("root", True), ("bob", False)):
            response = await served.by(actor).get(f"{served.base}/code/{end}.json?{query}")
            assert response.status_code == 404, response.text
            said = set(re.findall(r"[\w.]+", response.json()["error"]))
            assert bool(said & {"hidden.py", "Vault"}) is names, (actor, end, said)


@pytest.mark.parametrize(
    ("end", "query", "status", "said"),
    [
        ("outline", "", 400, "file: a path, the end of one, or an id expected"),
        ("symbols", "name=Box&file=boxes.py", 400, "file: there is no such parameter here"),
        ("symbols", "name=Box&limit=1001", 400, "limit: at most 1,000"),
        ("impact", "of=boxes.py&hops=11", 400, "hops: from 1 to 10"),
        ("impact", "of=boxes.py&hops=x", 400, "hops: a whole number of at least 1 expected"),
        ("read", "file=boxes.py&skeleton=perhaps", 400, "skeleton: 1 or 0 expected"),
        ("read", "file=boxes.py&budget=1", 400, "a budget of 1 tokens does not hold line 1"),
        ("read", "file=boxes.py:40", 400, "boxes.py has 3 lines"),
        (
            "read",
            "file=boxes.py:x-y",
            400,
            "'x-y' names no lines of boxes.py: boxes.py:40-80 would",
        ),
        ("read", "file=README.md", 404, "Notes are read with memory-store get"),
        ("read", "file=elsewhere.py", 404, "elsewhere.py"),
        ("symbols", "name=Boxx", 404, "there is: Box"),
        ("outline", "file=boxes.py&collection=nowhere", 404, "nowhere"),
    ],
)
async def test_what_is_wrong_is_named(
    coded: Filled, serve: Serve, end: str, query: str, status: int, said: str
) -> None:
    served = (await serve(coded.path, options=coded.options(allow=ALLOW))).by("bob")
    response = await served.get(f"{served.base}/code/{end}.json?{query}")
    assert (response.status_code, response.json()["ok"]) == (status, False), response.text
    assert said in response.json()["error"]
