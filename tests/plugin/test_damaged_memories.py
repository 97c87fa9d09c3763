"""A damaged memory on the pages and over JSON: it is said to be one, and can be deleted."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from typing import Any

import pytest

from .conftest import ALLOW, ONE, Filled, Served, soup

pytestmark = pytest.mark.in_a_file


@pytest.fixture
async def damaged(filled: Filled, serve: Callable[..., Awaitable[Served]]) -> Served:
    """The vault, with a text that was changed in the file."""
    with closing(sqlite3.connect(filled.path)) as connection, connection:
        cut = "update memory_bodies set body = substr(body, 1, length(body) - 1)"
        connection.execute(f"{cut} where id in (select content from memories where id = ?)", [ONE])
    return await serve(filled.path, options=filled.options(allow=ALLOW))


def there(served: Served) -> set[str]:
    """The ids of what can be read, once all is."""
    assert served.store.verify()["failures"] == []
    return {memory.id for memory in served.store.list()}


async def test_the_page_of_a_damaged_memory_leads_to_its_deletion(damaged: Served) -> None:
    root = damaged.by("root")
    shown = await root.get(f"{damaged.base}/memories/{ONE}")
    assert shown.status_code == 500
    (way,) = [link for link in soup(shown).select("a") if link.text == "Delete it"]
    asked = await root.get(way["href"])
    assert "It is damaged and cannot be read." in asked.text
    assert "It goes for good" in asked.text
    version = soup(asked).select_one("input[name=version]")["value"]
    deleted = await root.submit(way["href"], {"version": version})
    assert deleted.status_code == 303
    assert "undo=" not in deleted.headers["location"]
    assert ONE not in there(damaged)
    assert (await root.get(way["href"])).status_code == 404


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("DELETE", f"/memories/{ONE}.json", None),
        ("POST", "/memories/delete.json", {"ids": [ONE]}),
    ],
)
async def test_a_damaged_memory_is_deleted_over_json(
    damaged: Served, method: str, path: str, body: Any
) -> None:
    root = damaged.by("root")
    read = await root.get(f"{damaged.base}/memories/{ONE}.json")
    assert read.status_code == 500
    assert "memory_bodies.body of " in read.json()["error"]
    deleted = await root.send(method, damaged.base + path, body)
    assert deleted.json()["ok"] is True
    assert ONE not in there(damaged)


async def test_a_damaged_memory_of_others_is_not_deleted(damaged: Served) -> None:
    refused = await damaged.by("bob").get(f"{damaged.base}/memories/{ONE}/delete")
    assert refused.status_code == 403
