"""Permissions on one collection: configured, by other plugins, and in restricted tokens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from datasette import hookimpl
from datasette.app import Datasette
from datasette.plugins import pm

from memory_store.store import MemoryStore

from .conftest import ALLOW, Filled, Serve, Served, plain_datasette

NEXT = hasattr(Datasette, "allowed")
only_next = pytest.mark.skipif(not NEXT, reason="Datasette 1.0 alone has resources and tokens")
only_065 = pytest.mark.skipif(NEXT, reason="how Datasette 0.65 asks for permissions")
ACTIONS = ("hybrid-search", "hybrid-decrypt", "hybrid-write")


@dataclass(frozen=True)
class Parts:
    """A vault of three collections, by id; carol is a writer of the closed one, owned by wanda."""

    personal: str
    work: str
    closed: str


@pytest.fixture
def parts(filled: Filled) -> Parts:
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        (personal,) = store.collections.list()
        work = store.collections.create("work")
        closed = store.collections.create("closed", owner="wanda")
        store.collections.change_members(closed.id, {"carol": "writer"})
        store.add("The minutes of the meeting about plums", collection="work", title="Minutes")
        store.add("A diary about plums", collection="closed", title="Diary")
    return Parts(personal.id, work.id, closed.id)


@pytest.fixture
async def shared(filled: Filled, parts: Parts, serve: Serve) -> Served:
    return await serve(filled.path, options=filled.options(allow=ALLOW))


async def found(asked: Served, query: str = "plums") -> dict[str, str | None]:
    """Title by collection of what a search finds; ``{}`` where it is refused."""
    response = await asked.get(f".json?q={query}")
    if response.status_code == 403:
        return {}
    assert response.status_code == 200, response.text
    return {row["collection"]: row["title"] for row in response.json()["rows"]}


async def held(asked: Served) -> dict[str, list[str]]:
    """Collection → permissions, as the asker reads them; ``{}`` where nothing is."""
    response = await asked.get(f"{asked.base}/collections.json")
    if response.status_code == 403:
        return {}
    return {row["id"]: [*row["permissions"]] for row in response.json()["rows"]}


def restricted(actor: str, **restrictions: Any) -> dict[str, Any]:
    return {"id": actor, "_r": restrictions}


async def test_permissions_on_the_database_hold_for_open_collections(
    shared: Served, parts: Parts
) -> None:
    assert (await found(shared.by("bob")))["work"] == "Minutes"
    assert set(await held(shared.by("bob"))) == {parts.personal, parts.work}
    assert set(await held(shared.by("carol"))) == {parts.closed}
    assert set(await held(shared.by("wanda"))) == {parts.personal, parts.work, parts.closed}


@pytest.mark.parametrize(
    ("restrictions", "expected"),
    [
        ({"a": ["hybrid-search"]}, {"personal", "work", "closed"}),
        ({"d": {"notes": ["hybrid-search"]}}, {"personal", "work", "closed"}),
        ({"r": {"notes": {"work": ["hybrid-search"]}}}, {"work"}),
        ({"r": {"notes": {"closed": ["hybrid-search"]}}}, {"closed"}),
        ({"d": {"other": ["hybrid-search"]}}, set()),
        ({"r": {"other": {"work": ["hybrid-search"]}}}, set()),
        ({"r": {"notes": {"memories": ["hybrid-search"]}}}, set()),
        ({"a": ["view-database"]}, set()),
        ({}, set()),
    ],
)
async def test_a_restricted_token_gets_what_it_names(
    shared: Served, parts: Parts, restrictions: dict[str, Any], expected: set[str]
) -> None:
    """It need not name view-database besides, where its actor may."""
    ids = vars(parts)
    if "r" in restrictions:
        named = {
            database: {ids.get(name, name): actions for name, actions in resources.items()}
            for database, resources in restrictions["r"].items()
        }
        restrictions = {**restrictions, "r": named}
    seen = await held(shared.by(restricted("wanda", **restrictions)))
    assert seen == {ids[name]: ["hybrid-search"] for name in expected}


async def test_a_token_never_gets_more_than_its_actor(shared: Served, parts: Parts) -> None:
    everything = {"a": [*ACTIONS, "hybrid-audit"]}
    for actor in ("alice", "bob", "carol", "wanda", "mallory"):
        token = shared.by(restricted(actor, **everything))
        assert await held(token) == await held(shared.by(actor)), actor
    named = {"notes": {parts.closed: [*ACTIONS], parts.work: [*ACTIONS]}}
    for actor, seen in (("bob", {parts.work}), ("carol", {parts.closed}), ("mallory", set())):
        assert set(await held(shared.by(restricted(actor, r=named)))) == seen


async def test_a_token_to_write_does_not_choose_members(shared: Served, parts: Parts) -> None:
    path = f"{shared.base}/collections/{parts.closed}/members/eve.json"
    for actions in (["hybrid-write"], ["hybrid-write", "hybrid-search"]):
        token = shared.by(restricted("wanda", a=actions))
        response = await token.send("PUT", path, {"role": "reader"})
        assert response.status_code == 403, response.text
    token = shared.by(restricted("wanda", a=[*ACTIONS]))
    response = await token.send("PUT", path, {"role": "reader"})
    assert response.status_code == 200


@contextmanager
def plugin(instance: Any) -> Iterator[None]:
    pm.register(instance, name=type(instance).__name__)
    try:
        yield
    finally:
        pm.unregister(instance)


class Sharing:
    """Rules as datasette-acl has them: on one collection, to allow or to deny."""

    def __init__(self, actor: str, collection: str | None, allow: bool) -> None:
        self.actor, self.collection, self.allow = actor, collection, allow

    def _speaks(self, actor: Any, action: str) -> bool:
        return bool(actor) and actor.get("id") == self.actor and action in ACTIONS

    @hookimpl
    def permission_allowed(self, actor: Any, action: str, resource: Any) -> bool | None:
        about = ("notes", self.collection) if self.collection else "notes"
        return self.allow if self._speaks(actor, action) and resource == about else None

    @hookimpl
    def permission_resources_sql(self, actor: Any, action: str) -> Any:
        if not self._speaks(actor, action):
            return None
        from datasette.permissions import PermissionSQL

        return PermissionSQL(
            sql="select 'notes' as parent, :sharing as child, :allow as allow, 'shared' as reason",
            params={"sharing": self.collection, "allow": int(self.allow)},
        )


async def test_another_plugin_may_allow_one_open_collection(shared: Served, parts: Parts) -> None:
    with plugin(Sharing("dave", parts.work, True)):
        assert await held(shared.by("dave")) == {parts.work: [*ACTIONS]}
        assert await found(shared.by("dave")) == {"work": "Minutes"}
        assert await held(shared.by("erin")) == {}


async def test_another_plugin_may_deny_one_open_collection(shared: Served, parts: Parts) -> None:
    with plugin(Sharing("bob", parts.work, False)):
        assert set(await held(shared.by("bob"))) == {parts.personal}


async def test_no_plugin_opens_a_closed_collection(shared: Served, parts: Parts) -> None:
    for allowed in (parts.closed, None):
        with plugin(Sharing("dave", allowed, True)):
            assert parts.closed not in await held(shared.by("dave"))
            assert "closed" not in await found(shared.by("dave"))


# -- Datasette 1.0 ----------------------------------------------------------------------


@only_next
async def test_core_answers_about_databases_and_collections_alike(
    shared: Served, parts: Parts
) -> None:
    from datasette.resources import DatabaseResource

    from datasette_hybrid.permissions.resources import CollectionResource

    async def allowed(actor: Any, action: str, collection: str | None = None) -> bool:
        resource = (
            CollectionResource("notes", collection) if collection else DatabaseResource("notes")
        )
        return await shared.datasette.allowed(action=action, resource=resource, actor=actor)

    bob, carol, root = {"id": "bob"}, {"id": "carol"}, {"id": "root"}
    assert await allowed(bob, "hybrid-search")
    assert not await allowed(bob, "hybrid-write")
    assert await allowed(bob, "hybrid-decrypt", parts.work)
    assert not await allowed(bob, "hybrid-search", parts.closed)
    assert not await allowed(root, "hybrid-search", parts.closed)
    assert not await allowed(carol, "hybrid-search")
    assert await allowed(carol, "hybrid-write", parts.closed)
    assert not await allowed(carol, "hybrid-search", parts.work)
    page = await shared.datasette.allowed_resources("hybrid-write", {"id": "wanda"})
    assert {(one.parent, one.child) for one in page.resources} == {
        ("notes", one) for one in vars(parts).values()
    }
    assert isinstance(page.resources[0], CollectionResource)
    assert not (await shared.datasette.allowed_resources("hybrid-search", None)).resources
    assert await shared.datasette.allowed(
        action="hybrid-audit", resource=DatabaseResource("notes"), actor=root
    )


@only_next
async def test_root_gets_into_no_closed_collection(
    filled: Filled, parts: Parts, serve: Serve
) -> None:
    """Not even with ``--root``, which allows that actor everything else."""
    served = await serve(filled.path, options=filled.options())
    served.datasette.root_enabled = True
    assert set(await held(served.by("root"))) == {parts.personal, parts.work}


@only_next
async def test_permissions_blocks_hold_for_a_database_and_for_a_collection(
    filled: Filled, parts: Parts, serve: Serve
) -> None:
    notes = {
        "permissions": {"hybrid-search": {"id": ["dora", "gina"]}},
        "tables": {
            parts.work: {"permissions": {"hybrid-decrypt": {"id": "dora"}}},
            parts.personal: {"permissions": {"hybrid-search": {"id": "dora"}}},
            parts.closed: {"permissions": {"hybrid-search": {"id": "dora"}}},
        },
    }
    served = await serve(filled.path, options=filled.options(), databases={"notes": notes})
    assert await held(served.by("dora")) == {
        parts.personal: ["hybrid-search"],
        parts.work: ["hybrid-search", "hybrid-decrypt"],
    }
    assert await found(served.by("dora")) == {None: None, "work": "Minutes"}
    assert await held(served.by("gina")) == {parts.work: ["hybrid-search"]}  # the other denies her
    assert await held(served.by("hugo")) == {}


@only_next
async def test_internal_requests_that_skip_checks_leave_closed_collections_closed(
    shared: Served, parts: Parts
) -> None:
    response = await shared.datasette.client.get(
        f"{shared.base}/collections.json", skip_permission_checks=True
    )
    assert {row["id"] for row in response.json()["rows"]} == {parts.personal, parts.work}


@only_next
async def test_tokens_made_by_core_carry_restrictions_to_collections(
    shared: Served, parts: Parts
) -> None:
    from datasette.tokens import TokenRestrictions

    restrictions = (
        TokenRestrictions()
        .allow_resource("notes", parts.closed, "hybrid-write")
        .allow_resource("notes", parts.work, "hybrid-search")
    )
    token = await shared.datasette.create_token("wanda", restrictions=restrictions)
    bearer = {"Authorization": f"Bearer {token}"}
    stranger = shared.by(None)
    response = await stranger.get(f"{shared.base}/collections.json", headers=bearer)
    assert {row["id"]: row["permissions"] for row in response.json()["rows"]} == {
        parts.work: ["hybrid-search"],
        parts.closed: ["hybrid-write"],
    }
    path = f"{shared.base}/memories.json"
    for collection, status in ((parts.closed, 201), (parts.work, 400), (parts.personal, 400)):
        new = {"text": "By a token", "collection": collection}
        response = await stranger.send("POST", path, new, headers=bearer)
        assert response.status_code == status, response.text
    broken = await stranger.get(".json?q=plums", headers={"Authorization": "Bearer dstok_broken"})
    assert broken.status_code == 401


# -- Datasette 0.65 ---------------------------------------------------------------------


@only_065
async def test_permission_allowed_answers_about_a_collection(shared: Served, parts: Parts) -> None:
    async def allowed(actor: str, action: str, collection: str) -> bool:
        return await shared.datasette.permission_allowed(
            {"id": actor}, action, ("notes", collection)
        )

    assert await allowed("bob", "hybrid-decrypt", parts.work)
    assert not await allowed("bob", "hybrid-write", parts.work)
    assert not await allowed("root", "hybrid-search", parts.closed)
    assert await allowed("carol", "hybrid-write", parts.closed)
    assert not await allowed("carol", "hybrid-search", parts.work)
    assert not await allowed("root", "hybrid-search", "no such collection")


@only_065
async def test_tokens_of_datasette_auth_tokens(
    filled: Filled, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOT_TOKEN", "the bot's secret")
    bot = {"id": "wanda", "_r": {"r": {"notes": {parts.closed: ["hybrid-write"]}}}}
    options = filled.options(allow=ALLOW)
    configuration = {
        "plugins": {
            "datasette-hybrid": {"databases": options},
            "datasette-auth-tokens": {"tokens": [{"token": {"$env": "BOT_TOKEN"}, "actor": bot}]},
        }
    }
    datasette = plain_datasette((filled.path,), configuration)
    await datasette.invoke_startup()
    served = Served(datasette)
    bearer = {"Authorization": "Bearer the bot's secret"}
    path = f"{served.base}/memories.json"
    for collection, status in ((parts.closed, 201), (parts.work, 400)):
        new = {"text": "By a token", "collection": collection}
        response = await served.send("POST", path, new, headers=bearer)
        assert response.status_code == status, response.text
    wrong = await served.send("POST", path, {"text": "x"}, headers={"Authorization": "Bearer no"})
    assert wrong.status_code == 403
