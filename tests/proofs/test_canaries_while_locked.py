"""While a vault is locked, no route of the plugin, no table, no SQL and no download says a word.

The vault was open and searched before, so that whatever the server might have kept is there to be
told. Every route that the plugin registers is asked, by several people, in every way.
"""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import urlencode

import pytest
from canaries import KINDS, canary, spelled_in
from plugin.conftest import PASSPHRASE, Filled, Serve, Served
from plugin.test_unlocking import unlocked

from datasette_hybrid.serving import routes
from datasette_hybrid.vaults.registry import vaults_of
from memory_store.records import search_request
from memory_store.store import MemoryStore

QUERY = "plums"
EVERYBODY = {"hybrid-search": True, "hybrid-decrypt": True, "hybrid-write": True}
BEARER = {"Authorization": "Bearer nothing"}  # cookies alone post no JSON on 0.65
BASE = "/notes/-/hybrid"
SQL = (
    f"select hybrid_search('{QUERY}') found",
    f"select * from hybrid_search('{QUERY}')",
    f"select hybrid_explain('{QUERY}') stages",
    "select id, memory_text(id) text, * from memories",
    "select *, topic_hash('fruit', id) hash from collections",
    "select * from memory_bodies",
)


def fill(filled: Filled) -> tuple[dict[str, str], dict[str, str]]:
    """Words of their own in every field, and the ids of a memory and its collection."""
    words = {kind: canary(kind) for kind in KINDS}
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        collection = store.collections.create(words["collection"])
        memory = store.add(
            f"On {QUERY} and {words['text']} #{words['hashtag']}",
            title=words["title"],
            topics=(words["topic"], "fruit"),
            metadata={"box": words["metadata"]},
            source=f"/home/{words['path']}",
            ref=words["source"],
            collection=words["collection"],
        )
        saved = store.searches.save("root", words["title"], search_request(words["text"]))
        store.searches.make_feed("root", saved.id)
    return words, {"id": memory.id, "collection": collection.id, "saved": saved.id}


CODE = ("context", "outline", "symbols", "references", "impact", "read")


def examples(ids: dict[str, str]) -> list[str]:
    """Addresses that together meet every route."""
    one, collection = f"{BASE}/memories/{ids['id']}", f"{BASE}/collections/{ids['collection']}"
    saved = f"{BASE}/searches/{ids['saved']}"
    ends = ("", ".json", "/edit", "/done", "/reopen", "/topics", "/publish", "/delete", "/original")
    return [
        *("/-/hybrid/mcp", f"{BASE}/mcp"),
        *("/-/hybrid", "/-/hybrid/openapi.json", BASE, f"{BASE}.json", f"{BASE}.csv"),
        *(f"{BASE}/{end}" for end in ("unlock", "lock", "import", "import.json", "new")),
        *(f"{BASE}/import/1.json", f"{BASE}/import/1"),
        *(f"{BASE}/{end}" for end in ("audit", "audit.json", "audit.csv", "keys", "keys.json")),
        *(f"{BASE}/memories{end}.json" for end in ("", "/edit", "/delete")),
        *(f"{one}{end}" for end in ends),
        *(f"{one}{end}.json" for end in ("/done", "/reopen", "/publish", "/links", "/related")),
        *(f"{BASE}/trash{end}" for end in ("", ".json", "/restore", "/restore.json")),
        *(
            f"{BASE}/landscape",
            f"{BASE}/landscape.json",
            *(f"{BASE}/code/{one}.json" for one in CODE),
            f"{BASE}/review",
            f"{BASE}/review.json",
            f"{BASE}/first",
            f"{BASE}/exists",
            f"{BASE}/exists.json",
            f"{BASE}/words.json",
            f"{one}/topics.json",
            f"{BASE}/trash/empty",
            f"{BASE}/trash/empty.json",
            f"{BASE}/selected",
        ),
        *(f"{BASE}/searches{end}" for end in ("", ".json")),
        *(f"{saved}{end}" for end in ("", "/change", ".json", "/feed.json")),
        *(f"{BASE}/feeds/{ids['saved']}.{form}" for form in ("atom", "json")),
        *(f"{BASE}/collections", f"{BASE}/collections.json", f"{collection}.json"),
        *(f"{collection}/members/alice.json", f"{BASE}/nothing.json", f"{BASE}/nothing"),
    ]


def native() -> list[str]:
    """Datasette's own pages of the same file."""
    tables = ("memories", "memory_bodies", "memory_topics", "memory_sources", "collections")
    queries = [f"/notes{end}?{urlencode({'sql': sql})}" for sql in SQL for end in ("", ".json")]
    return [
        *(f"/notes/{table}{end}" for table in tables for end in ("", ".json", ".csv")),
        *(f"/notes/memories?_hybrid={QUERY}", f"/notes/memories?_search={QUERY}"),
        *("/", "/notes", "/notes.json", "/notes.db", "/-/databases.json", "/-/metadata.json"),
        *queries,
    ]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("how", ["never opened", "locked after use"])
async def test_a_locked_vault_shows_no_one_a_word(
    filled: Filled, serve: Serve, how: str, capfd: Any
) -> None:
    words, ids = fill(filled)
    served = await serve(filled.path, options={"notes": {"allow": EVERYBODY}})
    visitor = served
    if how == "locked after use":
        visitor = await unlocked(served, PASSPHRASE)
        before = b"".join([whole(await visitor.get(path)) for path in (*examples(ids), *native())])
        assert spelled_in(before, words) == set(KINDS), "all of it is shown while it is open"
        vaults_of(served.datasette).lock_all()
    addresses, asked = examples(ids), {"q": QUERY, "text": "new", "ids": [ids["id"]]}
    for actor in (served.by(None), served.by("root"), served.by("alice"), visitor):
        for path in (*addresses, *native()):
            answer = await actor.get(f"{path}{'&' if '?' in path else '?'}q={QUERY}")
            assert spelled_in(whole(answer), words) == set(), path
            assert answer.status_code != 500, path
        for path in addresses:
            for method in ("POST", "PATCH", "PUT", "DELETE"):
                answer = await actor.send(method, path, asked, headers=BEARER)
                assert spelled_in(whole(answer), words) == set(), (method, path)
                assert answer.status_code != 500, (method, path)
    written = capfd.readouterr()
    assert spelled_in((written.out + written.err).encode(), words) == set()


def whole(answer: Any) -> bytes:
    """The body of an answer and its headers."""
    return bytes(answer.content) + json.dumps([*answer.headers.items()]).encode()


def test_every_route_is_asked(served: Served) -> None:
    """A route that is added later has to be added here."""
    addresses = examples({"id": "a" * 36, "collection": "b" * 36, "saved": "c" * 36})
    for pattern, _ in routes():
        assert any(re.search(pattern, path) for path in addresses), pattern
