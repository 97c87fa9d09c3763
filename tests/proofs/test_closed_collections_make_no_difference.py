"""What a closed collection holds makes no difference to who is no member of it, at any address.

Two vaults differ in that collection alone: in one it holds a memory; in the other it also holds
what Mallory's own memories say, links to them, words that are nearly hers, topics, tasks, source
code, a trash, and its owner has just asked all that Mallory asks. Every address that the plugin has
is asked by her, so a new one is as well, and every tool and SQL function; then she writes in every
way that there is. The answers must be the same, also in a vault without that collection.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from plugin.conftest import BEARER, Filled, Serve, Served

from datasette_hybrid.serving import routes
from memory_store.assistants.tools import TOOLS
from memory_store.records import MemoryDraft, SearchRequest
from memory_store.store import MemoryStore

OURS = [f"00000000-0000-4000-8000-00000000050{number}" for number in range(6)]
THEIRS = [f"00000000-0000-4000-8000-00000000060{number}" for number in range(9)]
NOWHERE = "11111111-1111-4111-8111-111111111111"
MOMENT = "2026-01-01T00:00:00Z"
SAID: tuple[dict[str, Any], ...] = (
    {"text": "Marta serviced the boiler. See [[Secret plan]].", "title": "Boiler", "type": "note"},
    {"text": "The heating bill is due; ask Marta.", "title": "Heating", "topics": ("heating",)},
    {"text": "Rent is 900 a month.", "title": "Rent", "topics": ("house",), "type": "task"},
    {"text": "def parse(x):\n    return x\n", "title": "parse.py", "ref": "parse.py"},
    {"text": "import parse\n\nparse.parse(1)\n", "title": "run.py", "ref": "run.py"},
    {"text": "Short answers, please.", "title": "Tone", "type": "preference"},
)
QUESTIONS = (
    *("", "?q=boiler", "?q=boiler&explain=1", "?q=boilr", "?q=secretive", "?q=zygomorfic"),
    *("?q=heating+topic:heating&limit=1", "?q=parse", "?q=in:diary+boiler&mode=literal"),
    *(f"?like={OURS[0]}", f"?like={THEIRS[0]}", f"?q=boiler&why={THEIRS[0]}", "?topic=heating"),
    *("?term=secretive", "?term=boiler&exact=1", "?prefix=zyg", "?name=parse", "?file=parse.py"),
    *(f"?memory={THEIRS[8]}", "?collection=diary", "?as_of=2026-03-01", "?by=mallory"),
)
SQL = (
    "select hybrid_search('boiler') x",
    "select hybrid_explain('boilr') x",
    "select id, score from hybrid_search('secretive')",
    "select hybrid_exists('secretive') x, hybrid_exists('boiler') y",
    "select code_symbols() x, code_references('parse') y",
    *(f"select memory_text('{one}') x, memory_links('{one}') y" for one in (OURS[0], THEIRS[0])),
)
TOOL_CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("memory_start", {"query": "boiler"}),
    *(("memory_search", {"query": query}) for query in ("boiler", "boilr", "secretive")),
    ("memory_search", {"like": THEIRS[0]}),
    ("memory_landscape", {}),
    *(("memory_read", {"ids": [one]}) for one in (OURS[0], THEIRS[0])),
    ("tasks", {}),
    ("code_context", {}),
    ("code_outline", {"file": "parse.py"}),
    ("code_symbols", {"name": "parse"}),
    ("code_impact", {"of": "parse.py"}),
    ("code_read", {"file": "other.py"}),
)
CHANCE = re.compile(
    r"""(?!0{8})[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12} | "query_ms":\s?[\d.]+
    | <td>[\d.]+</td></tr> | <span\sclass="hy-ms">[^<]*</span>
    | \\?"leg_milliseconds\\?":\s?\{[^}]*\} | \\?"(?:cpu_)?milliseconds\\?":\s?[\d.e-]+
    | [\d.,]+(?:\s|&nbsp;)ms | (?:nonce-|nonce="|csrftoken"\svalue=")[\w+/=.-]*
    | (?:"(?:next|continue)\\?"|continue):\s?\\?"[\w%,:.-]+ | \\?"continue\\?":\\?"[\w-]+
    | continue=[\w%,:.-]+ | \d{4}-\d\d-\d\d[T\s]\d\d:\d\d[\d:.]*(?:Z|\+00:00)?""",
    re.VERBOSE,
)
"""What no two answers have in common."""


def fill(store: MemoryStore, collection: str, ids: list[str], created: str) -> None:
    for one, said in zip(ids, SAID, strict=False):
        kind = "code" if "ref" in said else said.get("type", "fact")
        draft = {**said, "type": kind, "created": created, "updated": MOMENT}
        store.add(id=one, collection=collection, **draft)


def little(store: MemoryStore, diary: str) -> None:
    store.add("Nothing much.", collection=diary, created=MOMENT)


def much(store: MemoryStore, diary: str) -> None:
    little(store, diary)
    fill(store, diary, THEIRS, "2026-02-01T00:00:00Z")
    there: dict[str, Any] = {"collection": diary, "created": MOMENT, "topics": ("heating", "plan")}
    text = "A secretive plan for Boiler, [[Heating]] and [[Rent]]."
    store.add(text, id=THEIRS[7], title="Secret plan", parent=OURS[0], **there)
    for number in range(12):
        text = f"zygomorphic boiler {number}; die Heizung, der Kessel und die Rohre"
        kind = ("task", "preference", "note")[number % 3]
        store.add(text, title=f"T{number}", type=kind, metadata={"by": "mallory"}, **there)
    store.add("from run import run\n", title="other.py", ref="other.py", type="code", **there)
    store.add("A gone wall", id=THEIRS[8], **there)
    store.edit(THEIRS[8], text="A wall, gone")
    store.delete(THEIRS[8])
    store.add_many([MemoryDraft("boiler, not embedded", collection=diary)], embed=False)
    store.searches.save("alice", "boiler", SearchRequest(query="boiler"))


def sealed(store: MemoryStore, diary: str, *, otherwise: bool) -> None:
    """Memories of the same stems, types and times; all that only a reader learns differs."""
    there: dict[str, Any] = {"collection": diary, "created": MOMENT, "updated": MOMENT}
    said = (
        ("The boilers leak: they were heated", "the boiler leaked; they were heating"),
        ("Secretive planning, divorces", "SECRETIVE plans! divorce?"),
        ("def parse(x):\n    return x\n", "def parse(x):\n\n\n    return x\n"),
    )
    drafts = []
    for number, pair in enumerate(said):
        kind = {"type": "code"} if number == 2 else {"type": "task" if number else "note"}
        drafts.append(
            MemoryDraft(
                pair[otherwise],
                id=THEIRS[number],
                title=("Boiler", "boilers")[otherwise and number < 2],
                ref=("letters/lawyer.py", "letters/gas.py")[otherwise],
                metadata={
                    "by": ("ann", "mallory")[otherwise],
                    "due": ("2026-02-01", "")[otherwise],
                },
                valid_to=("2999-02-01", "2999-01-01")[otherwise],
                parent=(OURS[0], OURS[1])[otherwise],
                **kind,
                **there,
            )
        )
    store.add_many(drafts, embed=False)
    store.add("A gone boiler", id=THEIRS[8], **there)
    if otherwise:
        store.edit(THEIRS[8], text="the gone boilers")
    store.delete(THEIRS[8])


def addresses(diary: str, team: str) -> Iterator[str]:
    """Every address of the plugin, of what is hers and of what is not."""
    for pattern, _ in routes():
        if pattern.endswith(("[./].*$", "json$")) and "[./]" in pattern:
            continue  # the rest, which is nowhere
        given: dict[str, tuple[str, ...]] = {"database": ("notes",), "job": ("x",), "actor": ("x",)}
        of = (
            (diary, team)
            if "/collections/" in pattern
            else (OURS[0], OURS[3], THEIRS[0], *THEIRS[7:])
        )
        given |= {"id": of, "form": ("atom", "json")}
        paths = [pattern.strip("^$").replace("\\.", ".")]
        for name in re.findall(r"\(\?P<(\w+)>", pattern):
            group = re.compile(rf"\(\?P<{name}>[^)]*\)")
            paths = [group.sub(value, path) for path in paths for value in given[name]]
        for path in paths:
            if "/memories/" in path or "/collections/" in path:
                yield path
            else:
                yield from (path + question for question in QUESTIONS)


WRITES: tuple[tuple[str, str, Any], ...] = (
    *(("POST", "/memories.json", {"text": "x", "collection": one}) for one in ("diary", "DIARY")),
    ("POST", "/memories.json", {"text": "A boiler", "collection": "TEAM", "parent": THEIRS[7]}),
    ("POST", "/memories.json", {"text": "A boiler", "collection": "TEAM", "supersedes": THEIRS[0]}),
    ("POST", "/memories.json", {"text": "[[Secret plan]]", "title": "T3", "collection": "TEAM"}),
    *(
        (method, f"/memories/{one}{below}", value)
        for one in (THEIRS[0], THEIRS[8], THEIRS[0][:8])
        for method, below, value in (
            ("PATCH", ".json", {"text": "y", "version": 1}),
            ("PATCH", ".json", {"collection": "TEAM"}),
            ("DELETE", ".json", None),
            ("POST", "/done.json", None),
            ("POST", "/topics.json", {"add": ["x"]}),
            ("POST", "/publish.json", {"collection": "TEAM"}),
        )
    ),
    *(("PATCH", f"/memories/{OURS[0]}.json", {"collection": one}) for one in ("diary", "DIARY")),
    *(
        ("POST", f"/memories/{OURS[0]}/publish.json", {"collection": one})
        for one in ("diary", "DIARY")
    ),
    (
        "POST",
        "/memories/edit.json",
        {"memories": [{"id": OURS[1], "title": "H"}, {"id": THEIRS[1]}]},
    ),
    ("POST", "/memories/delete.json", {"ids": [OURS[1], THEIRS[1]]}),
    ("POST", "/memories/delete.json", {"ids": [OURS[2]]}),
    ("POST", "/trash/restore.json", {"ids": [OURS[2], THEIRS[8]]}),
    ("POST", "/trash/restore.json", {"ids": [THEIRS[8]]}),
    ("POST", "/trash/empty.json", {"ids": [THEIRS[8]]}),
    ("POST", "/trash/empty.json", {}),
    ("POST", "/collections.json", {"name": "diary", "private": True}),
    ("PATCH", "/collections/DIARY.json", {"name": "mine"}),
    ("PATCH", "/collections/TEAM.json", {"name": "diary"}),
    ("PATCH", "/collections/DIARY.json", {"members": {"mallory": "owner"}}),
    ("PUT", "/collections/DIARY/members/mallory.json", {"role": "owner"}),
    ("DELETE", "/collections/DIARY/members/alice.json", None),
    ("POST", "/searches.json", {"name": "mine", "search": {"q": "boiler", "collection": "diary"}}),
    ("GET", "/searches.json", None),
    ("POST", ".json", {"q": "in:diary zygomorphic"}),
    ("POST", ".json", {"like": THEIRS[0]}),
    ("GET", ".json?q=boiler", None),
    ("GET", "/landscape.json", None),
    ("GET", "/trash.json", None),
)
CALLED_TO_WRITE: tuple[tuple[str, dict[str, Any]], ...] = (
    ("memory_add", {"memories": [{"text": SAID[0]["text"], "collection": "team"}]}),
    ("memory_add", {"memories": [{"text": "zygomorphic boiler 1", "collection": "diary"}]}),
    ("memory_add", {"memories": [{"text": "A secretive plan for Boiler, Heating and Rent."}]}),
    ("memory_add", {"memories": [{"text": "z", "collection": "team", "parent": THEIRS[7]}]}),
    ("memory_update", {"id": THEIRS[0], "version": 1, "delete": True}),
    ("memory_update", {"id": THEIRS[0], "supersede": "z"}),
    ("memory_update", {"id": THEIRS[8], "title": "z"}),
    ("memory_update", {"id": OURS[3], "publish": "diary"}),
)


async def seen(
    filled: Filled,
    serve: Serve,
    folder: Path,
    fill_diary: Callable[..., None] | None,
    role: str,
    diary_role: str = "",
) -> list[tuple[str, int, str]]:
    """All that Mallory is answered, in an order that does not depend on the world."""
    folder.mkdir()
    path = folder / "notes.db"
    new = {"key_file": filled.key_file, "embedder": os.environ["MEMORY_STORE_MODEL"]}
    diary = NOWHERE
    with MemoryStore.create(path, **new)[0] as store:
        team = store.collections.create("team").id
        fill(store, team, OURS, MOMENT)
        if fill_diary is not None:
            diary = store.collections.create("diary").id
            fill_diary(store, diary)
            store.collections.change_members(diary, {"alice": "owner"})
            if diary_role:
                store.collections.change_members(diary, {"mallory": diary_role})
        store.collections.change_members(team, {"alice": "owner", "mallory": role})
    served = await serve(path, options={"notes": {"key-file": str(filled.key_file)}})
    mallory, alice, answers = served.by("mallory"), served.by("alice"), []
    for question in QUESTIONS if fill_diary is much else ():
        for below in (".json", ""):
            await alice.get(f"{served.base}{below}{question}")

    def note(what: str, answer: Any) -> None:
        said = []
        for text in (what, answer.text):
            for one, name in ((diary, "DIARY"), (team, "TEAM"), (diary[:8], "D"), (team[:8], "T")):
                text = text.replace(one, name)
            said.append(text)
        answers.append((said[0], answer.status_code, CHANCE.sub("", said[1])))

    for address in addresses(diary, team):
        note(address, await mallory.get(address))
    for query in ("boiler", "secretive", "boilr"):
        found = f"/notes/memories.json?_hybrid={query}&_facet=type&_shape=objects"
        note(found, await mallory.get(found))
    for sql in SQL:
        answers.append((sql, 200, CHANCE.sub("", json.dumps(await mallory.sql(sql)))))
    for name, arguments in TOOL_CALLS:
        note(f"{name} {arguments}", await _called(mallory, name, arguments))
    for one in (OURS[0], THEIRS[0], "landscape"):
        uri = {"uri": f"memory://notes/{one}"}
        note(str(uri), await _sent(mallory, "resources/read", uri))
    for method, below, value in WRITES:
        said = json.dumps(value).replace("DIARY", diary).replace("TEAM", team)
        where = served.base + below.replace("DIARY", diary).replace("TEAM", team)
        sent = await mallory.send(method, where, json.loads(said))
        note(f"{method} {where} {said}", sent)
    for name, arguments in CALLED_TO_WRITE:
        note(f"{name} {arguments}", await _called(mallory, name, arguments))
    return answers


async def _called(who: Served, name: str, arguments: dict[str, Any]) -> Any:
    return await _sent(who, "tools/call", {"name": name, "arguments": arguments})


async def _sent(who: Served, method: str, parameters: dict[str, Any]) -> Any:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}
    accept = {"Accept": "application/json, text/event-stream"}
    return await who.send("POST", "/mcp", message, headers={**BEARER, **accept})


def test_every_tool_is_called() -> None:
    called = {name for name, _ in (*TOOL_CALLS, *CALLED_TO_WRITE)}
    assert {one.name for one in TOOLS} == called


@pytest.mark.sampled(1)
@pytest.mark.parametrize("role", ["writer", "reader", "searcher"])
async def test_what_a_closed_collection_holds_is_in_no_answer_to_others(
    filled: Filled, serve: Serve, tmp_path: Path, role: str
) -> None:
    pytest.importorskip("mcp", reason="the extra mcp is not installed")
    one = await seen(filled, serve, tmp_path / "little", little, role)
    other = await seen(filled, serve, tmp_path / "much", much, role)
    assert sum(status == 200 for _, status, _ in one) > 190
    if role == "writer":
        assert sum(status < 300 for _, status, _ in one[-len(WRITES) - len(CALLED_TO_WRITE) :]) > 15
    assert not any("zygomorphic" in text for *_, text in other)
    none = await seen(filled, serve, tmp_path / "none", None, role)
    for mine, theirs, alone in zip(one, other, none, strict=True):
        assert mine == theirs == alone


@pytest.mark.sampled(1)
async def test_what_only_a_reader_learns_is_in_no_answer_to_who_may_search_there(
    filled: Filled, serve: Serve, tmp_path: Path
) -> None:
    """Also where she may read another collection, and asks both at once."""
    pytest.importorskip("mcp", reason="the extra mcp is not installed")
    one, other = [
        await seen(
            filled,
            serve,
            tmp_path / str(otherwise),
            partial(sealed, otherwise=otherwise),
            "writer",
            "searcher",
        )
        for otherwise in (False, True)
    ]
    assert any(THEIRS[0] in text for _, status, text in one if status == 200)
    for mine, theirs in zip(one, other, strict=True):
        assert mine == theirs
