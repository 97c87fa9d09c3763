"""Very many vaults in one Datasette: each is opened when it is used, and asked about by itself."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from datasette import Response, hookimpl
from datasette.plugins import pm
from datasette.utils import tilde_encode

from datasette_hybrid import compat
from datasette_hybrid.permissions import grants
from datasette_hybrid.permissions.asker import asker
from datasette_hybrid.tables import hooks
from datasette_hybrid.vaults import registry
from datasette_hybrid.vaults.registry import vaults_of

from .conftest import Filled, Serve, Served, soup

NAMES = ("notes", "second", "a.b c~d")


@pytest.fixture
async def served(
    filled: Filled, serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Served:
    """Three vaults, which are many here."""
    for module in (registry, grants, hooks):
        monkeypatch.setattr(module, "MANY", 2)
    monkeypatch.setenv("MEMORY_STORE_KEY_FILE", str(filled.key_file))
    copies = [Path(shutil.copy(filled.path, tmp_path / f"{name}.db")) for name in NAMES[1:]]
    plain = tmp_path / "plain.db"
    with contextlib.closing(sqlite3.connect(plain)) as connection:
        connection.execute("create table plain (id integer primary key)")
    return await serve(filled.path, *copies, plain)


def at(served: Served, database: str, actor: str = "root") -> Served:
    return Served(served.datasette, tilde_encode(database)).by(actor)


def opened(served: Served) -> set[str]:
    return {one.database for one in vaults_of(served.datasette).all() if one.is_open}


async def test_each_is_opened_by_its_first_granted_use(served: Served) -> None:
    assert opened(served) == set()
    for number, name in enumerate(NAMES):
        assert (await at(served, name, "nobody").get(".json?q=tomatoes")).status_code == 403
        assert opened(served) == set(NAMES[:number])
        answer = await at(served, name).get(".json?q=tomatoes")
        assert [row["title"] for row in answer.json()["rows"]]
        assert opened(served) == set(NAMES[: number + 1])


async def test_a_request_below_one_vault_asks_for_no_grants_on_others(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[set[str]] = []
    resolve = grants.resolve_some

    async def heard(
        datasette: object, actor: object, databases: list[str], *more: object
    ) -> object:
        asked.append(set(databases))
        return await resolve(datasette, actor, databases, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(grants, "resolve_some", heard)
    for name in NAMES:
        for page in (".json?q=x", "?q=tomatoes", "/memories.json", "/words.json?prefix=x"):
            asked.clear()
            await at(served, name).get(page)
            assert asked, page
            assert all(one == {name} for one in asked), page
    root = at(served, "notes")
    sql = "/notes.json?" + urlencode({"sql": "select * from hybrid_search('tomatoes')"})
    for path in (sql, "/notes", "/notes/memories", "/notes/memories.json"):
        asked.clear()
        response = await root.datasette.client.get(
            path, cookies=root.cookies, follow_redirects=True
        )
        assert response.status_code == 200, path
        assert {*chain(*asked)} == {"notes"}, path
    for path in ("/", "/-/hybrid?q=tomatoes"):
        asked.clear()
        await root.datasette.client.get(path, cookies=root.cookies)
        assert set(NAMES) in asked, path
    assert not asker.get().grants


async def test_a_question_about_one_database_has_rules_of_that_one_alone(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not hasattr(served.datasette, "allowed_many"):
        pytest.skip("Datasette 0.65 asks about each database by itself")
    ruled: list[set[str]] = []
    usual = compat.permission_rules

    def counted(rules: Iterable[compat.Rule]) -> Any:
        kept = [*rules]
        ruled.append({one.database for one in kept})
        return usual(kept)

    monkeypatch.setattr(compat, "permission_rules", counted)
    root = at(served, "notes")
    assert (await root.get(".json?q=tomatoes")).status_code == 200
    assert ruled
    assert all(one <= {"notes"} for one in ruled)
    ruled.clear()
    await root.datasette.client.get("/-/hybrid?q=tomatoes", cookies=root.cookies)
    assert sum(len(one) == 1 for one in ruled) > sum(len(one) > 1 for one in ruled)


async def test_sql_may_name_a_vault_that_its_address_does_not(served: Served) -> None:
    sql = "select hybrid_search('tomatoes', '{\"database\": \"second\"}') as found"
    for address in ("notes", "plain"):
        for actor, found in (("root", True), ("nobody", False)):
            response = await at(served, address, actor).datasette.client.get(
                f"/{address}.json?" + urlencode({"sql": sql, "_shape": "array"}),
                cookies=at(served, address, actor).cookies,
                follow_redirects=True,
            )
            ((row,),) = [response.json()]
            assert ("Watering the tomatoes" in row["found"]) is found
            assert (response.headers.get("cache-control") == "no-store") is found


async def test_tables_of_a_vault_that_the_address_does_not_name_are_as_closed_as_ever(
    served: Served,
) -> None:
    datasette = served.datasette
    if not hasattr(datasette, "allowed_many"):
        pytest.skip("Datasette 0.65 decides about each table")
    seen: dict[str, bool] = {}

    async def look(request: Any) -> Any:
        for name in NAMES:
            resource = TableResource(database=name, table="memories")
            seen[name] = await datasette.allowed(
                action="view-table", resource=resource, actor=request.actor
            )
        return Response.json({})

    from datasette.resources import TableResource

    class Looking:
        __name__ = "looking"

        @hookimpl
        def register_routes(self) -> Any:
            return [(r"^/(?P<database>[^/]+)/-/look$", look)]

    pm.register(Looking(), name="looking")
    try:
        root = at(served, "notes")
        assert (await root.datasette.client.get("/notes/-/look", cookies=root.cookies)).status_code
        assert seen == {"notes": True, "second": False, "a.b c~d": False}
    finally:
        pm.unregister(name="looking")


async def test_what_goes_to_all_of_them_still_does(served: Served) -> None:
    for name in NAMES:
        assert (await at(served, name).get("?q=tomatoes")).status_code == 200, name
    root = at(served, "notes")
    page = await root.datasette.client.get("/-/hybrid?q=tomatoes", cookies=root.cookies)
    assert soup(page).get_text().count("Watering the tomatoes") >= len(NAMES)
    sql = "select hybrid_search('tomatoes', '{\"database\": \"second\"}') as found"
    (row,) = await root.sql(sql)
    assert "Watering the tomatoes" in row["found"]


async def test_datasette_goes_through_no_tables_of_theirs_at_each_permission(
    served: Served,
) -> None:
    datasette = served.datasette
    assert (await at(served, "notes").get(".json?q=tomatoes")).status_code == 200
    if not hasattr(datasette, "set_column_metadata"):
        pytest.skip("Datasette 0.65 keeps no descriptions")
    assert not (datasette.config or {}).get("databases")
