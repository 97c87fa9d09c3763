"""A vault's tables are changed through the vault alone, and its file is safe to give away."""

from __future__ import annotations

from typing import Any

import pytest
from bs4 import BeautifulSoup
from datasette.plugins import pm

from memory_store.store import MemoryStore

from .conftest import ALLOW, ONE, Filled, Serve, Served, plain_datasette

ON_1 = hasattr(pm.hook, "permission_resources_sql") and pm.hook.permission_resources_sql.has_spec()
only_1 = pytest.mark.skipif(not ON_1, reason="Datasette 0.65 writes to no table by itself")
ROW = {"id": "x", "collection": "y", "version": 1, "content": "z"}
CHANGES = (
    ("memories/-/insert", {"row": ROW}),
    ("memories/-/insert", {"rows": [ROW], "replace": True}),
    ("memories/-/upsert", {"rows": [ROW]}),
    (f"memories/{ONE}/-/update", {"update": {"type": "code"}}),
    (f"memories/{ONE}/-/delete", {}),
    ("memories/-/alter", {"operations": [{"op": "rename_table", "to": "mine"}]}),
    ("memories/-/drop", {"confirm": True}),
    ("memory_topics/-/insert", {"row": {"memory": ONE, "topic": "x"}}),
    ("vault_slots/-/drop", {"confirm": True}),
    ("vault_settings/-/upsert", {"rows": [{"name": "revision", "value": "9"}]}),
)


@pytest.fixture
async def owned(filled: Filled, serve: Serve) -> Served:
    """Datasette as ``--root`` starts it: on 1.0 the actor root may do everything."""
    served = await serve(filled.path, options=filled.options(allow=ALLOW))
    if ON_1:
        served.datasette.root_enabled = True
    return served.by("root")


async def post(served: Served, path: str, value: Any) -> Any:
    return await served.send("POST", f"/notes/{path}", value)


@only_1
@pytest.mark.parametrize(("path", "value"), CHANGES)
async def test_not_even_root_changes_a_vaults_tables(
    owned: Served, filled: Filled, path: str, value: Any
) -> None:
    before = filled.path.read_bytes()
    response = await post(owned, path, value)
    assert response.status_code == 403, response.text
    assert response.json()["ok"] is False
    assert response.json()["errors"]
    assert filled.path.read_bytes() == before


@only_1
@pytest.mark.parametrize(
    "sql",
    [
        "delete from memories",
        "update memories set version = 7",
        "insert into memory_topics (memory, topic) values ('x', 'y')",
        "drop table vault_slots",
        "alter table memories add column mine text",
        "create index mine on memories (version)",
        "create trigger mine after delete on memories begin select 1; end",
        "create view memories_mine as select * from memories",
        "create view mine as select * from memories",
    ],
)
async def test_nor_does_sql_that_writes(owned: Served, filled: Filled, sql: str) -> None:
    response = await owned.send("POST", "/notes/-/execute-write", {"sql": sql})
    assert response.status_code == 403, response.text
    assert response.json()["error"]
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        assert store.verify()["failures"] == []


@only_1
async def test_pages_offer_no_change_that_would_be_refused(owned: Served) -> None:
    for path in ("/notes/memories", f"/notes/memories/{ONE}", "/notes/collections"):
        page = BeautifulSoup((await owned.get(path)).text, "html.parser")
        assert not page.select("[data-row-action], [data-table-action]")


@only_1
async def test_root_still_makes_tables_of_their_own_beside_a_vault(
    owned: Served, filled: Filled
) -> None:
    made = await post(owned, "-/create", {"table": "mine", "rows": [{"id": 1, "memory": ONE}]})
    assert made.status_code == 201, made.text
    added = await post(owned, "mine/-/insert", {"row": {"id": 2, "memory": ONE}})
    assert added.status_code == 201, added.text
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        assert store.search("tomatoes").rows


async def test_root_may_download_the_file_which_gives_nothing_away(
    filled: Filled, model: Any
) -> None:
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        titles = [memory.title for memory in store.list()]
    datasette = plain_datasette((), {}, immutables=[str(filled.path)])
    await datasette.invoke_startup()
    assert (await datasette.client.get("/notes.db")).status_code == 403
    root = Served(datasette).by("root").cookies
    response = await datasette.client.get("/notes.db", cookies=root)
    assert response.status_code == 200
    assert response.content[:15] == b"SQLite format 3"
    for secret in (*titles, "tomatoes", "garden", "Sundays", "personal"):
        assert secret.encode() not in response.content
        assert secret.encode("utf-16-le") not in response.content
