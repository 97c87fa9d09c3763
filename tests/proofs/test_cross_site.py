"""Which requests from browsers and programs are let in, for every address that changes something.

The rule (docs/trust/permissions.md): what a browser sends for another site changes nothing, but for
the JSON API with a token and no cookies, which no browser sends by itself; uploads are forms, and
an assistant's server takes nothing from another site at all. Cookies alone are enough for this
site's own pages: by the headers of browsers on Datasette 1.0, by a token in the form on 0.65.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from counts import FULL
from datasette import hookimpl
from datasette.plugins import pm
from plugin.browsing import PATIENCE
from plugin.conftest import Filled, Serve, Served
from plugin.uploads import form

from datasette_hybrid.requests.cross_site import BY_TOKEN, SAFE_METHODS
from datasette_hybrid.serving import routes
from datasette_hybrid.vaults.registry import vaults_of
from memory_store.records import search_request
from memory_store.store import MemoryStore

SOURCES: dict[str, dict[str, str]] = {
    "a program": {},
    "this site": {"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"},
    "this site, an old browser": {"Origin": "http://localhost"},
    "another site": {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
    "another site, an old browser": {"Origin": "https://evil.example"},
    "another host of this domain": {"Sec-Fetch-Site": "same-site"},
    "a page without an origin": {"Origin": "null", "Sec-Fetch-Site": "cross-site"},
    "a broken origin": {"Origin": "http://["},
}
ELSEWHERE = frozenset([*SOURCES][3:])
CREDENTIALS = ("nothing", "cookie", "cookie and token", "bearer", "bearer and cookie")
HOME = "/notes/-/hybrid"
MAKES_A_TOKEN = ("/searches/{id}/feed.json", "POST")  # which a token alone may not


def lets_in(source: str, credential: str, *, html: bool) -> bool:
    """The rule."""
    if credential == "nothing":  # no one is signed in, and anonymous may do nothing
        return False
    if source in ELSEWHERE:
        return credential == "bearer" and not html
    return not (BY_TOKEN and credential == "cookie")


class Bearer:
    """Tokens for both versions of Datasette: 0.65 makes none."""

    __name__ = "bearer"  # Datasette lists its plugins

    @hookimpl
    def actor_from_request(self, request: Any) -> dict[str, str] | None:
        bearer = request.headers.get("authorization") == "Bearer root"
        return {"id": "root"} if bearer else None


@pytest.fixture(autouse=True)
def _bearer() -> Iterator[None]:
    plugin = Bearer()
    pm.register(plugin)
    yield
    pm.unregister(plugin)


@dataclass
class Site:
    """A running Datasette, what a signed-in browser holds, and its vault beside it."""

    served: Served
    recovery_code: str
    cookies: dict[str, str] = field(default_factory=dict)
    token: str = ""
    made: int = 0

    @property
    def store(self) -> MemoryStore:
        vault = vaults_of(self.served.datasette).of("notes")
        assert vault._store is not None
        return vault._store

    def memory(self) -> str:
        return self.store.add("a note to lose", title="A note").id

    def deleted(self) -> str:
        memory = self.memory()
        self.store.delete(memory)
        return memory

    def collection(self) -> str:
        self.made += 1
        collection = self.store.collections.create(f"made {self.made}", owner="root").id
        self.store.collections.change_members(collection, {"bob": "reader"})
        return collection

    def free_name(self) -> str:
        self.made += 1
        return f"kept {self.made}"

    def search(self) -> str:
        for one in self.store.searches.list():  # there is room for so many only
            self.store.searches.remove(one.owner, one.id)
        return self.store.searches.save("root", self.free_name(), search_request("ferry")).id

    def followed(self) -> str:
        return self.store.searches.make_feed("root", self.search())[0].id

    def state(self) -> Any:
        """Everything that a request could have changed."""
        if vaults_of(self.served.datasette).of("notes").locked:
            return "locked"
        memories = [(one.id, one.version, one.type) for one in self.store.list(limit=10_000)]
        names = [(one.id, one.name, one.memories) for one in self.store.collections.list()]
        names += [(one.id, one.version) for one in self.store.trash.list()]
        saved = [(one.id, one.name, one.feed) for one in self.store.searches.list()]
        return (
            memories,
            names,
            saved,
            {k: dict(v) for k, v in self.store.collections.membership().items()},
        )


@dataclass(frozen=True)
class Act:
    """A good request: where to, and its fields (of a form) or its value (of JSON)."""

    method: str
    path: str
    value: Any = None
    files: dict[str, bytes] | None = None


def edited(site: Site) -> Act:
    memory = site.memory()
    return Act(
        "POST", f"{HOME}/memories/{memory}/edit", {"text": "x", "version": "1", "id": memory}
    )


REMEMBERED = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "memory_add", "arguments": {"memories": [{"text": "a new memory"}]}},
}
AS_DATA = re.compile(r"(\.json|\.csv|/mcp)$")
LIKE_FORMS = ("/import.json", "/mcp", "/-/hybrid/mcp")
"""Not let in from elsewhere by a token alone, as the rest of the JSON API is."""

ACTS: dict[tuple[str, str], Callable[[Site], Act]] = {
    ("/-/hybrid", "POST"): lambda site: Act("POST", "/-/hybrid", {"q": "tomatoes"}),
    ("", "POST"): lambda site: Act("POST", HOME, {"q": "tomatoes"}),
    (".json", "POST"): lambda site: Act("POST", f"{HOME}.json", {"q": "tomatoes"}),
    (".csv", "POST"): lambda site: Act("POST", f"{HOME}.csv", {"q": "tomatoes"}),
    ("/exists", "POST"): lambda site: Act("POST", f"{HOME}/exists", {"q": "tomatoes"}),
    ("/exists.json", "POST"): lambda site: Act("POST", f"{HOME}/exists.json", {"term": ["tea"]}),
    ("/words.json", "POST"): lambda site: Act("POST", f"{HOME}/words.json", {"prefix": "t"}),
    ("/mcp", "POST"): lambda site: Act("POST", f"{HOME}/mcp", REMEMBERED),
    ("/-/hybrid/mcp", "POST"): lambda site: Act("POST", "/-/hybrid/mcp", REMEMBERED),
    ("/unlock", "POST"): lambda site: Act("POST", f"{HOME}/unlock", {"secret": site.recovery_code}),
    ("/lock", "POST"): lambda site: Act("POST", f"{HOME}/lock", {}),
    ("/new", "POST"): lambda site: Act("POST", f"{HOME}/new", {"text": "a new note"}),
    ("/memories/{id}", "POST"): lambda site: Act(
        "POST", f"{HOME}/memories/{site.memory()}", {"q": "tomatoes"}
    ),
    ("/memories/{id}/edit", "POST"): edited,
    **{
        (f"/memories/{{id}}/{what}", "POST"): (
            lambda site, what=what, fields=fields: Act(
                "POST", f"{HOME}/memories/{site.memory()}/{what}", fields
            )
        )
        for what, fields in (
            ("done", {}),
            ("reopen", {}),
            ("topics", {"add": "garden"}),
            ("publish", {"collection": "shelf"}),
            ("delete", {"version": "1"}),
            ("done.json", None),
            ("reopen.json", None),
            ("publish.json", {"collection": "shelf"}),
        )
    },
    ("/memories.json", "POST"): lambda site: Act("POST", f"{HOME}/memories.json", {"text": "new"}),
    ("/memories/edit.json", "POST"): lambda site: Act(
        "POST", f"{HOME}/memories/edit.json", {"memories": [{"id": site.memory(), "title": "b"}]}
    ),
    ("/memories/delete.json", "POST"): lambda site: Act(
        "POST", f"{HOME}/memories/delete.json", {"ids": [site.memory()]}
    ),
    ("/trash/restore", "POST"): lambda site: Act(
        "POST", f"{HOME}/trash/restore", {"entry": f"{site.deleted()}:1"}
    ),
    ("/trash/empty", "POST"): lambda site: Act(
        "POST", f"{HOME}/trash/empty", {"entry": f"{site.deleted()}:1"}
    ),
    ("/trash/restore.json", "POST"): lambda site: Act(
        "POST", f"{HOME}/trash/restore.json", {"ids": [site.deleted()]}
    ),
    ("/trash/empty.json", "POST"): lambda site: Act(
        "POST", f"{HOME}/trash/empty.json", {"ids": [site.deleted()]}
    ),
    ("/searches", "POST"): lambda site: Act(
        "POST", f"{HOME}/searches", {"q": "tomatoes", "name": site.free_name()}
    ),
    ("/searches.json", "POST"): lambda site: Act(
        "POST", f"{HOME}/searches.json", {"name": site.free_name(), "search": {"q": "plums"}}
    ),
    ("/searches/{id}/change", "POST"): lambda site: Act(
        "POST", f"{HOME}/searches/{site.search()}/change", {"do": "remove"}
    ),
    ("/searches/{id}.json", "PATCH"): lambda site: Act(
        "PATCH", f"{HOME}/searches/{site.search()}.json", {"name": site.free_name()}
    ),
    ("/searches/{id}.json", "DELETE"): lambda site: Act(
        "DELETE", f"{HOME}/searches/{site.search()}.json"
    ),
    ("/searches/{id}/feed.json", "POST"): lambda site: Act(
        "POST", f"{HOME}/searches/{site.search()}/feed.json"
    ),
    ("/searches/{id}/feed.json", "DELETE"): lambda site: Act(
        "DELETE", f"{HOME}/searches/{site.followed()}/feed.json"
    ),
    ("/review", "POST"): lambda site: Act(
        "POST", f"{HOME}/review", {"id": site.memory(), "do": "delete"}
    ),
    ("/review.json", "POST"): lambda site: Act(
        "POST", f"{HOME}/review.json", {"id": site.memory(), "do": "delete"}
    ),
    ("/selected", "POST"): lambda site: Act(
        "POST", f"{HOME}/selected", {"id": site.memory(), "do": "done"}
    ),
    ("/memories/{id}.json", "PATCH"): lambda site: Act(
        "PATCH", f"{HOME}/memories/{site.memory()}.json", {"title": "b"}
    ),
    ("/memories/{id}.json", "DELETE"): lambda site: Act(
        "DELETE", f"{HOME}/memories/{site.memory()}.json"
    ),
    ("/collections", "POST"): lambda site: Act(
        "POST",
        f"{HOME}/collections",
        {"do": "rename", "collection": site.collection(), "name": f"other {site.made}"},
    ),
    ("/collections.json", "POST"): lambda site: Act(
        "POST", f"{HOME}/collections.json", {"name": f"new {len(site.store.collections.list())}"}
    ),
    ("/collections/{id}.json", "PATCH"): lambda site: Act(
        "PATCH", f"{HOME}/collections/{site.collection()}.json", {"members": {"alice": "reader"}}
    ),
    ("/collections/{id}/members/{actor}.json", "PUT"): lambda site: Act(
        "PUT", f"{HOME}/collections/{site.collection()}/members/alice.json", {"role": "reader"}
    ),
    ("/collections/{id}/members/{actor}.json", "DELETE"): lambda site: Act(
        "DELETE", f"{HOME}/collections/{site.collection()}/members/bob.json"
    ),
    ("/import", "POST"): lambda site: Act("POST", f"{HOME}/import", {}, {"a.md": b"words"}),
    ("/import.json", "POST"): lambda site: Act(
        "POST", f"{HOME}/import.json", {}, {"a.md": b"words"}
    ),
}
"""Address below a database's (or the whole of it), and method → a good request."""

NEEDS_A_JOB = {("/import/{job}", "POST"), ("/import/{job}.json", "DELETE")}


def changing() -> set[tuple[str, str]]:
    """Every address of the plugin with every method that is not safe, but for those of nowhere."""
    found = set()
    for pattern, view in routes():
        path = re.sub(r"\(\?P<(\w+)>\[\^/\]\+\)", r"{\1}", pattern.strip("^$")).replace("\\", "")
        if "[./]" not in path:
            found |= {
                (path.removeprefix("/{database}/-/hybrid"), method)
                for method in set(view.methods) - SAFE_METHODS
            }
    return found


def test_every_address_that_changes_something_is_tried() -> None:
    assert {*ACTS, *NEEDS_A_JOB} == changing()
    each = [combinations(number) for number in range(len(ACTS))]
    assert {len(those) for those in each} == {40 if FULL else 8}
    assert {*itertools.chain(*each)} == {*itertools.product(SOURCES, CREDENTIALS)}


@pytest.fixture
async def site(filled: Filled, serve: Serve) -> Site:
    settings = {"key-file": str(filled.key_file), "allow": {"hybrid-audit": {"id": "root"}}}
    for action in ("search", "decrypt", "write"):
        settings["allow"][f"hybrid-{action}"] = {"id": "root"}
    served = (await serve(filled.path, options={"notes": settings})).by("root")
    shown = await served.get(f"{HOME}/new")
    token = re.search(r'name="csrftoken" value="([^"]+)"', shown.text)
    made = Site(served, filled.recovery_code)
    made.cookies = {**served.cookies, **dict(shown.cookies)}
    made.token = token[1] if token else ""
    made.store.collections.create("shelf")
    return made


async def sent(site: Site, act: Act, source: str, credential: str) -> Any:
    """Send it as a caller who says it comes from there, with those credentials."""
    headers = dict(SOURCES[source])
    if "bearer" in credential:
        headers["Authorization"] = "Bearer root"
    cookies = site.cookies if "cookie" in credential else {}
    tokens = {"csrftoken": site.token} if "token" in credential else {}
    options: dict[str, Any] = {}
    if act.files is not None:
        body, headers["Content-Type"] = form(act.files, **tokens, dry_run="1")
        options["content"] = body
    elif AS_DATA.search(act.path):
        headers |= {"Content-Type": "application/json"}
        headers |= {"Accept": "application/json, text/event-stream"}
        options["content"] = json.dumps(act.value).encode() if act.value is not None else b""
        headers |= {"X-CSRFToken": site.token} if tokens else {}
    else:
        options["data"] = {**act.value, **tokens}
    return await site.served.datasette.client.request(
        act.method, act.path, headers=headers, cookies=cookies, **options
    )


async def settled(site: Site, answer: Any, unlock: Callable[[], Awaitable[None]]) -> None:
    """After a request that was let in: the import it began is over, the vault is open again."""
    await unlock()
    job = answer.headers.get("location", "")
    if answer.headers["content-type"].startswith("application/json"):
        data = answer.json()
        job = f"x/import/{data['job']}" if isinstance(data, dict) and "job" in data else job
    until = time.monotonic() + PATIENCE
    while "/import/" in job:
        assert time.monotonic() < until, job
        state = await site.served.get(f"{HOME}/import/{job.rpartition('/')[2]}.json")
        if state.json()["state"] != "running":
            return
        await asyncio.sleep(0.02)


def combinations(number: int) -> list[tuple[str, str]]:
    """All 40 with PROOFS=full, else 8: other ones for the next address, of every source one."""
    every = [*itertools.product(enumerate(SOURCES), enumerate(CREDENTIALS))]
    return [
        (source, credential)
        for (place, source), (other, credential) in every
        if FULL or (place + other + number) % len(CREDENTIALS) == 0
    ]


@pytest.mark.sampled(24)
@pytest.mark.parametrize(("path", "method"), sorted(ACTS))
async def test_the_rule_decides_who_is_let_in(site: Site, path: str, method: str) -> None:
    html = not AS_DATA.search(path) or path in LIKE_FORMS
    vault = vaults_of(site.served.datasette).of("notes")

    async def unlock() -> None:
        if vault.locked:
            await asyncio.to_thread(vault.unlock, site.recovery_code)

    act = before = None
    for source, credential in combinations(sorted(ACTS).index((path, method))):
        expected = lets_in(source, credential, html=html)
        if credential == "nothing" and path in ("/unlock", "/-/hybrid"):
            # the secret is the credential; the page across all vaults shows no memories
            expected = source not in ELSEWHERE
        if (path, method) == MAKES_A_TOKEN:
            expected = expected and credential != "bearer"
        if act is None:  # what was refused can be sent again: it has changed nothing
            act = ACTS[path, method](site)
            before = site.state()
        answer = await sent(site, act, source, credential)
        reported = (path, method, source, credential, answer.status_code, answer.text[:300])
        if expected:
            assert answer.status_code < 400, reported
            await settled(site, answer, unlock)
            act = None
        else:
            assert answer.status_code == 403, reported
            assert site.state() == before, reported


async def test_an_import_is_stopped_by_the_same_rule(site: Site) -> None:
    upload = Act("POST", f"{HOME}/import.json", {}, {"a.md": b"words"})
    begun = await sent(site, upload, "a program", "bearer")
    await settled(site, begun, lambda: asyncio.sleep(0))
    job = begun.json()["job"]
    for (path, method), source, credential in itertools.product(
        sorted(NEEDS_A_JOB), SOURCES, CREDENTIALS
    ):
        act = Act(method, f"{HOME}{path.replace('{job}', job)}", {} if method == "POST" else None)
        answer = await sent(site, act, source, credential)
        expected = lets_in(source, credential, html=method == "POST")
        assert (answer.status_code < 400) == expected, (path, source, credential, answer.text[:300])
