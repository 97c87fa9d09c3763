"""Collections and their members: on the page, as JSON, and what they mean for everybody else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup
from msgspec.structs import replace

from datasette_hybrid.collections import Visit
from datasette_hybrid.vaults.opening import revision
from memory_store.access import NO_GRANTS
from memory_store.errors import BadInputError, NotFoundError
from memory_store.scopes import Scope
from memory_store.sqlite import sqlite3
from memory_store.store import MemoryStore

from .conftest import Filled, Serve, Served, copied
from .test_unlocking import unlocked


async def rows(asked: Served, path: str = "/collections.json") -> list[dict[str, Any]]:
    response = await asked.get(asked.base + path)
    assert response.status_code == 200, response.text
    return response.json()["rows"]


async def change(asked: Served, method: str, path: str, value: Any = None) -> Any:
    return await asked.send(method, f"{asked.base}/collections{path}", value)


async def made(asked: Served, name: str, *, private: bool = False) -> str:
    """The id of a new collection."""
    response = await change(asked, "POST", ".json", {"name": name, "private": private})
    assert response.status_code == 201, response.text
    return response.json()["rows"][0]["id"]


async def test_the_list_says_what_one_may_do_where(served: Served) -> None:
    (personal,) = await rows(served.by("bob"))
    assert personal["name"] == "personal"
    assert (personal["memories"], personal["open"], personal["role"]) == (3, True, None)
    assert personal["permissions"] == ["hybrid-search", "hybrid-decrypt"]
    assert personal["members"] is None
    (personal,) = await rows(served.by("alice"))
    assert personal["name"] is None  # sealed to those who may not read
    assert personal["permissions"] == ["hybrid-search"]
    for stranger in (None, "mallory"):
        assert (await served.by(stranger).get(served.base + "/collections.json")).status_code == 403
        assert (await served.by(stranger).get(served.base + "/collections")).status_code == 403


async def test_a_private_collection_exists_for_its_owner_alone(served: Served) -> None:
    wanda, root = served.by("wanda"), served.by("root")
    diary = await made(wanda, "Diary", private=True)
    added = await wanda.send(
        "POST",
        served.base + "/memories.json",
        {"text": "A plum cake for the neighbours", "collection": diary},
    )
    assert added.status_code == 201, added.text
    mine = {one["id"]: one for one in await rows(wanda)}
    assert (mine[diary]["name"], mine[diary]["memories"]) == ("Diary", 1)
    assert (mine[diary]["role"], mine[diary]["members"]) == ("owner", {"wanda": "owner"})
    found = (await wanda.get(".json?q=plum+cake")).json()
    assert found["rows"][0]["collection"] == "Diary"
    # root has every permission on the database, and nothing in here
    assert diary not in {one["id"] for one in await rows(root)}
    assert (await change(root, "PATCH", f"/{diary}.json", {"name": "x"})).status_code == 404
    page = await root.get("?q=plum+cake")
    assert "neighbours" not in page.text
    assert (await root.get(".json?q=plum+cake")).json()["total"] == 3
    memory = added.json()["rows"][0]["id"]
    assert (await root.get(f"{served.base}/memories/{memory}")).status_code == 404
    assert (await root.sql("select memory_text(:id) t", id=memory)) == [{"t": None}]


async def test_making_one_needs_the_permission_to_write(served: Served) -> None:
    for actor in ("alice", "bob"):
        response = await change(served.by(actor), "POST", ".json", {"name": "x"})
        assert response.status_code == 403
        assert "hybrid-write" in response.json()["error"]
        assert (
            "New collection" not in (await served.by(actor).get(served.base + "/collections")).text
        )


async def test_a_name_may_be_taken_by_one_that_is_hidden(served: Served) -> None:
    """Refusing it would show that there is one."""
    first = await made(served.by("wanda"), "Presents", private=True)
    second = await made(served.by("root"), "Presents")
    assert first != second
    again = await change(served.by("wanda"), "POST", ".json", {"name": "Presents"})
    assert again.status_code == 400
    assert again.json()["parameter"] == "collection"


@pytest.mark.parametrize(
    ("role", "found", "read", "written"),
    [
        ("searcher", 200, None, 403),
        ("reader", 200, "Diary", 403),
        ("writer", 200, "Diary", 201),
        ("owner", 200, "Diary", 201),
    ],
)
async def test_roles(served: Served, role: str, found: int, read: str | None, written: int) -> None:
    wanda, carol = served.by("wanda"), served.by("carol")
    diary = await made(wanda, "Diary", private=True)
    await wanda.send(
        "POST",
        served.base + "/memories.json",
        {"text": "A plum cake for the neighbours", "collection": diary},
    )
    assert (await carol.get(".json?q=cake")).status_code == 403
    path = f"/{diary}/members/carol.json"
    response = await change(wanda, "PUT", path, {"role": role})
    assert response.json() == {"ok": True, "actor": "carol", "role": role}
    answer = await carol.get(".json?q=plum+cake")
    assert answer.status_code == found
    (row,) = answer.json()["rows"]
    assert row["collection"] == read
    assert ("neighbours" in answer.text) == (read is not None)
    new = {"text": "Another cake", "collection": diary}
    posted = await carol.send("POST", served.base + "/memories.json", new)
    assert posted.status_code == written
    (seen,) = await rows(carol)
    assert (seen["role"], seen["members"] is not None) == (role, role == "owner")
    response = await change(wanda, "DELETE", path)
    assert response.status_code == 200
    assert (await carol.get(".json?q=cake")).status_code == 403
    assert (await change(wanda, "DELETE", path)).status_code == 404


async def test_only_owners_choose_members(served: Served) -> None:
    wanda = served.by("wanda")
    diary = await made(wanda, "Diary", private=True)
    await change(
        wanda, "PATCH", f"/{diary}.json", {"members": {"bob": "writer", "alice": "reader"}}
    )
    for actor in ("bob", "alice"):
        response = await change(
            served.by(actor), "PUT", f"/{diary}/members/eve.json", {"role": "reader"}
        )
        assert response.status_code == 403, actor
        assert (
            await change(served.by(actor), "DELETE", f"/{diary}/members/wanda.json")
        ).status_code == 403
        assert (
            await change(served.by(actor), "PATCH", f"/{diary}.json", {"members": None})
        ).status_code == 403
    for actor in ("root", None):
        response = await change(
            served.by(actor), "PUT", f"/{diary}/members/eve.json", {"role": "reader"}
        )
        assert response.status_code == (404 if actor else 403)
    (personal,) = await rows(served.by("root"))  # open: it has no owner
    response = await change(
        served.by("root"), "PUT", f"/{personal['id']}/members/root.json", {"role": "owner"}
    )
    assert response.status_code == 403


async def test_a_closed_collection_keeps_an_owner(served: Served) -> None:
    wanda = served.by("wanda")
    diary = await made(wanda, "Diary", private=True)
    for method, path, value in (
        ("DELETE", f"/{diary}/members/wanda.json", None),
        ("PUT", f"/{diary}/members/wanda.json", {"role": "reader"}),
        ("PUT", f"/{diary}/members/bob.json", {"role": "king"}),
        ("PUT", f"/{diary}/members/bob.json", {}),
        ("PATCH", f"/{diary}.json", {"members": {}}),
        ("PATCH", f"/{diary}.json", {"colour": "red"}),
        ("PATCH", f"/{diary}.json", {}),
        ("PATCH", f"/{diary}.json", {"name": " "}),
    ):
        response = await change(wanda, method, path, value)
        assert response.status_code == 400, (method, path, value, response.text)
    (mine,) = [one for one in await rows(wanda) if one["id"] == diary]
    assert mine["members"] == {"wanda": "owner"}
    response = await change(
        wanda, "PATCH", f"/{diary}.json", {"name": "Open diary", "members": None}
    )
    assert response.status_code == 200
    (now,) = [one for one in await rows(served.by("bob")) if one["id"] == diary]
    assert (now["name"], now["open"]) == ("Open diary", True)


async def test_a_caller_who_unlocked_closes_and_opens_any_collection(
    filled: Filled, serve: Serve
) -> None:
    served = await serve(filled.path, options={"notes": {"allow": {"hybrid-search": True}}})
    holder = await unlocked(served)
    (personal,) = await rows(holder)
    assert personal["members"] == {}
    assert len(await rows(served.by("root"))) == 1
    await holder.submit(
        "/collections",
        {"do": "set", "collection": personal["id"], "actor": "wanda", "role": "owner"},
    )
    (personal,) = await rows(holder)
    assert personal["members"] == {"wanda": "owner"}
    assert (await served.by("root").get(".json?q=tomatoes")).status_code == 403
    assert (await served.by("wanda").get(".json?q=tomatoes")).status_code == 200
    await holder.submit("/collections", {"do": "open", "collection": personal["id"], "sure": "1"})
    assert (await served.by("root").get(".json?q=tomatoes")).status_code == 200


async def test_the_page_does_the_same_with_forms(served: Served) -> None:
    wanda = served.by("wanda")
    response = await wanda.submit(
        "/collections", {"do": "create", "name": "Diary", "access": "private"}
    )
    assert response.status_code == 303, response.text
    page = BeautifulSoup((await wanda.get("/collections")).text, "html.parser")
    (personal,) = await rows(served.by("bob"))
    assert [one.get_text(strip=True) for one in page.find_all("h2")] == [
        f"Sealed collection {personal['id'][:8]}",  # wanda may write there, and not read
        "Diary",
        "New collection",
    ]
    diary = page.find("input", {"name": "collection"})["value"]
    for fields in (
        {"do": "set", "actor": "bob", "role": "writer"},
        {"do": "set", "actor": "carol", "role": "reader"},
        {"do": "remove", "actor": "carol"},
        {"do": "rename", "name": "Journal"},
    ):
        response = await wanda.submit("/collections", {"collection": diary, **fields})
        assert response.status_code == 303, response.text
        shown = f"{served.base}/collections?manage={diary}#c-{diary}"
        assert response.headers["location"] == shown
    (one,) = [one for one in await rows(wanda) if one["id"] == diary]
    assert (one["name"], one["members"]) == ("Journal", {"wanda": "owner", "bob": "writer"})
    assert "you are its writer" in (await served.by("bob").get("/collections")).text
    refused = await wanda.submit(
        "/collections", {"do": "remove", "collection": diary, "actor": "wanda"}
    )
    assert refused.status_code == 400
    assert "keeps an owner" in refused.text
    assert 'role="alert"' in refused.text
    refused = await served.by("bob").submit("/collections", {"do": "open", "collection": diary})
    assert refused.status_code == 403
    assert (await wanda.submit("/collections", {"do": "explode"})).status_code == 400


async def test_opening_and_leaving_a_collection_are_asked_about_first(served: Served) -> None:
    wanda, bob = served.by("wanda"), served.by("bob")
    diary = await made(wanda, "Diary", private=True)
    note = {"text": "A plum cake for the neighbours", "collection": diary}
    await wanda.send("POST", served.base + "/memories.json", note)
    await change(wanda, "PUT", f"/{diary}/members/bob.json", {"role": "owner"})
    opening = {"do": "open", "collection": diary}
    for asked in (
        await wanda.get(f"/collections?do=open&collection={diary}"),
        await wanda.get(f"/collections?do=open&collection={diary}&sure=1"),
        await wanda.submit("/collections", opening),
    ):
        assert asked.status_code == 200
        assert "wanda" in asked.text
        assert "plum" not in asked.text
    text = " ".join(BeautifulSoup(asked.text, "html.parser").get_text().split())
    assert "Open Diary to everybody?" in text
    assert "may then use its 1 memory" in text
    assert "Its 2 members are forgotten (wanda, bob)." in text

    leaving = {"do": "remove", "collection": diary, "actor": "bob"}
    asked = await bob.submit("/collections", leaving)
    assert asked.status_code == 200
    text = " ".join(BeautifulSoup(asked.text, "html.parser").get_text().split())
    assert "You (bob) lose access to its 1 memory" in text
    assert "Only another owner can let you in again: wanda." in text
    (mine,) = [one for one in await rows(bob) if one["id"] == diary]
    assert mine["members"] == {"bob": "owner", "wanda": "owner"}  # nothing has happened yet

    done = await bob.submit("/collections", {**leaving, "sure": "1"})
    assert done.headers["location"] == f"{served.base}/collections"
    assert diary not in {one["id"] for one in await rows(bob)}
    assert (await wanda.submit("/collections", {**opening, "sure": "1"})).status_code == 303
    assert diary in {one["id"] for one in await rows(bob)}


async def test_what_was_done_is_said_without_names(served: Served) -> None:
    """Datasette keeps the sentence in a cookie, which is signed and not sealed."""
    wanda = served.by("wanda")
    made = await wanda.submit("/collections", {"do": "create", "name": "Diary", "access": "open"})
    (said,) = served.datasette.unsign(made.cookies["ds_messages"], "messages")
    assert said[0] == "The collection is made."


@pytest.mark.in_a_file
async def test_members_hold_while_the_keys_rest_and_follow_other_programs(
    served: Served, filled: Filled
) -> None:
    diary = await made(served.by("wanda"), "Diary", private=True)
    vault = served.vault
    with vault._held():
        vault._wipe()  # as after a quiet while
    assert not vault.is_open
    assert vault.membership().members[diary] == {"wanda": "owner"}
    assert not vault.is_open  # asking reads no key
    with MemoryStore.open(filled.path, key_file=filled.key_file) as elsewhere:
        elsewhere.collections.change_members(diary, {"carol": "reader"})
        (personal,) = [one.id for one in elsewhere.collections.list() if one.name == "personal"]
        elsewhere.collections.change_members(personal, {"carol": "owner"})
    assert (await served.by("bob").get(".json?q=tomatoes")).status_code == 403
    assert len(await rows(served.by("carol"))) == 2
    vault.lock()
    assert vault.membership() is None
    assert (await served.by("carol").get(".json?q=tomatoes")).status_code == 423


@pytest.mark.in_a_file
async def test_members_are_those_of_the_file_that_is_there(
    served: Served, filled: Filled, original: Filled, tmp_path: Path
) -> None:
    another = copied(original, tmp_path / "another")
    with MemoryStore.open(another.path, key_file=another.key_file) as elsewhere:
        plans = elsewhere.collections.create("Plans", owner="carol").id
    await made(served.by("wanda"), "Diary", private=True)
    vault = served.vault
    with vault._held():
        vault._wipe()  # as after a quiet while
    assert revision(another.path, vault.access) == revision(filled.path, vault.access)
    for ending in ("-wal", "-shm"):  # of the file that goes
        Path(f"{filled.path}{ending}").unlink(missing_ok=True)
    another.path.replace(filled.path)
    assert vault.membership().members[plans] == {"carol": "owner"}


@pytest.mark.in_a_file
async def test_where_members_cannot_be_read_no_one_gets_anything(
    served: Served, filled: Filled, capfd: Any
) -> None:
    connection = sqlite3.connect(filled.path)
    with connection:
        connection.execute("update vault_settings set value = '99' where name = 'settings'")
    connection.close()
    for _ in range(2):
        assert (await served.by("bob").get("/-/versions.json")).status_code == 200
        for path in ("?q=tomatoes", ".json?q=tomatoes", served.base + "/collections.json"):
            assert (await served.by("root").get(path)).status_code == 403
    assert await served.by("bob").sql("select hybrid_search('tomatoes') found") == [{"found": "[]"}]
    reported = capfd.readouterr().err
    assert (
        reported.count("its members cannot be read, so no permission is granted (TamperedError)")
        == 1
    )
    assert "Traceback" not in reported


async def test_actor_ids_are_compared_as_text(served: Served) -> None:
    diary = await made(served.by("wanda"), "Diary", private=True)
    await change(served.by("wanda"), "PUT", f"/{diary}/members/7.json", {"role": "reader"})
    for actor, seen in (({"id": 7}, 1), ({"id": "7"}, 1)):
        assert len(await rows(served.by(actor))) == seen
    for actor in ({"id": True}, {"id": None}, {"name": "7"}, {"id": ["7"]}):
        assert (await served.by(actor).get(served.base + "/collections.json")).status_code == 403
    store = served.store
    assert store.collections.members(diary) == {"wanda": "owner", "7": "reader"}


async def test_a_name_and_members_are_changed_together_or_not_at_all(served: Served) -> None:
    wanda = served.by("wanda")
    diary = await made(wanda, "Diary", private=True)
    before = await rows(wanda)
    for members in ({"wanda": None}, {"bob": "king"}, {"nobody": None}, {}, "all"):
        wrong = await change(wanda, "PATCH", f"/{diary}.json", {"name": "New", "members": members})
        assert wrong.status_code in (400, 404), wrong.text
        assert await rows(wanda) == before
    both = {"name": "New", "members": {"bob": "reader"}}
    (row,) = (await change(wanda, "PATCH", f"/{diary}.json", both)).json()["rows"]
    assert (row["name"], row["members"]) == ("New", {"wanda": "owner", "bob": "reader"})
    taken = {"name": "personal", "members": {"bob": None}}
    session = served.store
    with pytest.raises(BadInputError, match="there is a collection"):
        session.collections.change_members(diary, remove=["bob"], new_name=taken["name"])
    assert session.collections.members(diary) == row["members"]


async def test_who_is_no_owner_any_more_changes_no_members(served: Served) -> None:
    """Also when another person's change was written a moment before."""
    diary = await made(served.by("wanda"), "Diary", private=True)
    store = served.store
    store.collections.change_members(diary, {"bob": "owner"})
    visit = Visit(
        served.vault,
        replace(NO_GRANTS, manage=Scope.of([diary]), search=Scope.of([diary])),
        "bob",
        frozenset(),
    )
    for role in ("reader", None):
        store.collections.change_members(
            diary, {"bob": role} if role else {}, [] if role else ["bob"]
        )
        with pytest.raises(NotFoundError, match="no owner any more"):
            visit.change_members(diary, {"mallory": "owner"})
        with pytest.raises(NotFoundError, match="no owner any more"):
            visit.open(diary)
    assert store.collections.members(diary) == {"wanda": "owner"}
