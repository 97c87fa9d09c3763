"""Searches under a name: each actor's own, sealed, and their feeds, which give nothing more."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from memory_store.records import search_request
from memory_store.store import MemoryStore

from .conftest import ALLOW, Filled, Served, plain_datasette, soup

ATOM = "{http://www.w3.org/2005/Atom}"
NAME, QUERY = "zanzibarnamed", "tomatoes quokkaqueried"


async def saved(asked: Served, name: str = NAME, **search: Any) -> dict[str, Any]:
    made = await asked.send(
        "POST", "/searches.json", {"name": name, "search": search or {"q": QUERY}}
    )
    assert made.status_code == 201, made.text
    row: dict[str, Any] = made.json()["rows"][0]
    return row


async def feed(asked: Served, row: dict[str, Any]) -> dict[str, str]:
    made = await asked.send("POST", f"{asked.base}/searches/{row['id']}/feed.json")
    assert made.status_code == 201, made.text
    given: dict[str, str] = made.json()
    return given


async def read(served: Served, row: dict[str, Any], token: str, form: str = "json") -> Any:
    return await served.datasette.client.get(
        f"{served.base}/feeds/{row['id']}.{form}", auth=("anyone", token)
    )


def plain_bytes(served: Served) -> bytes:
    folder, name = served.vault.path.parent, served.vault.path.name
    return b"".join(one.read_bytes() for one in folder.glob(f"{name}*"))


async def test_a_search_is_saved_on_its_page_listed_run_renamed_and_removed(
    served: Served,
) -> None:
    root = served.by("root")
    asked = f"{served.base}?q=tomatoes&type=note"
    form = soup(await root.get(asked)).select_one("details.hy-save form")
    assert form is not None
    fields = {str(one["name"]): str(one["value"]) for one in form.select("input[value]")}
    del fields["csrftoken"]
    assert fields == {"q": "tomatoes", "type": "note", "name": "tomatoes"}
    kept = await root.submit(str(form["action"]), fields, page=asked)
    assert kept.headers["location"] == f"{served.base}/searches"
    (link,) = soup(await root.get("/searches")).select("ul.hy-trash > li > a")
    ran = await root.get(str(link["href"]))
    assert (ran.status_code, ran.headers["location"]) == (303, asked)
    assert f"{link['href']}" in (await root.get(served.base)).text
    change = f"{link['href']}/change"
    page = f"{served.base}/searches"
    await root.submit(change, {"do": "rename", "name": "red ones"}, page=page)
    assert [one.name for one in served.store.searches.list("root")] == ["red ones"]
    await root.submit(change, {"do": "remove"}, page=page)
    assert served.store.searches.list() == []


async def test_name_query_and_token_are_sealed_in_the_file(served: Served) -> None:
    root = served.by("root")
    given = await feed(root, await saved(root))
    found = plain_bytes(served)
    for word in (*NAME.split(), *QUERY.split(), given["token"], "root"):
        assert word.encode() not in found
    listed = (await root.get("/searches.json")).text
    assert given["token"] not in listed
    assert "feed" in listed


@pytest.mark.parametrize("other", ["wanda", "bob", "alice"])
async def test_nobody_else_sees_runs_or_changes_it(served: Served, other: str) -> None:
    row, stranger = await saved(served.by("root")), served.by(other)
    path = f"{served.base}/searches/{row['id']}"
    assert (await stranger.get("/searches.json")).json()["rows"] == []
    assert NAME not in (await stranger.get("/searches")).text
    assert (await stranger.get(path)).status_code == 404
    for method, address, value in (
        ("GET", f"{path}.json", None),
        ("PATCH", f"{path}.json", {"name": "mine"}),
        ("DELETE", f"{path}.json", None),
        ("POST", f"{path}/feed.json", None),
        ("DELETE", f"{path}/feed.json", None),
    ):
        assert (await stranger.send(method, address, value)).status_code == 404, method
    mine = await saved(stranger)  # the same name is free for each actor
    assert mine["id"] != row["id"]
    assert [one.name for one in served.store.searches.list("root")] == [NAME]


@pytest.mark.parametrize("actor", [None, "mallory"])
async def test_without_the_search_grant_none_is_saved(served: Served, actor: str | None) -> None:
    asked = served.by(actor)
    assert (await asked.get("/searches.json")).status_code == 403
    body = {"name": NAME, "search": {"q": QUERY}}
    assert (await asked.send("POST", "/searches.json", body)).status_code == 403
    assert served.store.searches.list() == []


async def test_a_restricted_token_changes_none_and_no_token_makes_a_feed(served: Served) -> None:
    row = await saved(served.by("root"))
    body = {"name": "other", "search": {"q": QUERY}}
    restricted = served.by({"id": "root", "token": "dstok", "_r": {"a": ["hybrid-search"]}})
    assert (await restricted.send("POST", "/searches.json", body)).status_code == 403
    token = served.by({"id": "root", "token": "dstok"})
    assert (await token.send("POST", "/searches.json", body)).status_code == 201
    path = f"{served.base}/searches/{row['id']}/feed.json"
    assert (await token.send("POST", path)).status_code == 403


async def test_a_token_of_a_plugin_that_notes_none_in_its_actor_makes_no_feed(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("datasette_auth_tokens", reason="it is for Datasette 0.65")
    monkeypatch.setenv("ROOT_TOKEN", "sesame")
    plugins = {
        "datasette-hybrid": {"databases": filled.options(allow=ALLOW)},
        "datasette-auth-tokens": {
            "tokens": [{"token": {"$env": "ROOT_TOKEN"}, "actor": {"id": "root"}}]
        },
    }
    served = Served(plain_datasette((filled.path,), {"plugins": plugins}))
    await served.datasette.invoke_startup()
    by_token = {"authorization": "Bearer sesame"}
    made = await served.datasette.client.post(
        f"{served.base}/searches.json",
        json={"name": NAME, "search": {"q": QUERY}},
        headers=by_token,
    )
    assert made.status_code == 201, made.text
    path = f"{served.base}/searches/{made.json()['rows'][0]['id']}/feed.json"
    for cookie in ({}, {"cookie": "ds_actor=anything"}):
        refused = await served.datasette.client.post(path, headers={**by_token, **cookie})
        assert refused.status_code == 403, refused.text
        assert "a token makes no feed" in refused.text
    served.vault.lock()


async def test_a_feed_holds_what_its_actor_finds_in_both_forms(served: Served) -> None:
    bob = served.by("bob")
    row = await saved(bob, q="tomatoes")
    given = await feed(bob, row)
    shown = await read(served, row, given["token"])
    assert shown.status_code == 200, shown.text
    assert shown.headers["content-type"].startswith("application/feed+json")
    assert shown.headers["cache-control"] == "no-store"
    data = shown.json()
    found = (await bob.get(".json?q=tomatoes&limit=32")).json()["rows"]
    wanted = {one["id"] for one in found if one["band"] != "weak" or one["keyword_rank"]}
    assert 0 < len(wanted) < len(found)
    assert {one["id"].removeprefix("urn:uuid:") for one in data["items"]} == wanted
    assert (data["title"], data["feed_url"]) == (NAME, given["json"])
    atom = ElementTree.fromstring((await read(served, row, given["token"], "atom")).text)
    titles = [one.findtext(f"{ATOM}title") for one in atom.findall(f"{ATOM}entry")]
    assert titles == [one["title"] for one in data["items"]]
    filters = await saved(bob, topic="garden", name="By filters alone")
    shown = await read(served, filters, (await feed(bob, filters))["token"])
    found = (await bob.get(".json?topic=garden&limit=32")).json()["rows"]
    listed = [one["id"].removeprefix("urn:uuid:") for one in shown.json()["items"]]
    assert sorted(listed) == sorted(one["id"] for one in found)
    assert listed


async def test_a_feed_shows_words_without_the_marks_of_markdown(served: Served) -> None:
    root = served.by("root")
    served.store.add("Sow **quinces** in [March](plan.md).\n\n- [ ] dig", title="Quinces")
    row = await saved(root, q="quinces", mode="keyword")
    token = (await feed(root, row))["token"]
    (item,) = (await read(served, row, token)).json()["items"]
    assert item["content_text"] == "Sow quinces in March.\n\n☐ dig"
    atom = ElementTree.fromstring((await read(served, row, token, "atom")).text)
    assert [one.text for one in atom.iter(f"{ATOM}summary")] == [item["content_text"]]


async def test_a_token_opens_that_feed_alone_until_it_ends(served: Served) -> None:
    root = served.by("root")
    one, other = await saved(root, q="tomatoes"), await saved(root, "second", q="ferry")
    token = (await feed(root, one))["token"]
    await feed(root, other)
    assert (await read(served, one, token)).status_code == 200
    assert (await read(served, other, token)).status_code == 404
    assert (await read(served, one, token[:-1])).status_code == 404
    assert (await served.get(f"{served.base}/feeds/{one['id']}.json")).status_code == 401
    for path in (".json?q=tomatoes", "/searches.json", "/memories.json"):
        asked = await served.datasette.client.get(served.full(path), auth=("root", token))
        assert asked.status_code == 403, path
    newer = (await feed(root, one))["token"]
    assert (await read(served, one, token)).status_code == 404
    await root.send("DELETE", f"{served.base}/searches/{one['id']}/feed.json")
    assert (await read(served, one, newer)).status_code == 404


async def test_who_may_not_read_gets_no_text_in_a_feed(served: Served) -> None:
    alice = served.by("alice")  # may search, not read
    row = await saved(alice, q="tomatoes")
    shown = await read(served, row, (await feed(alice, row))["token"])
    texts = [one.text for one in served.store.list()]
    assert shown.json()["items"]
    assert {one["content_text"] for one in shown.json()["items"]} == {""}
    assert {one["title"] for one in shown.json()["items"]} == {"A memory that you may not read"}
    assert not any(text in shown.text for text in texts)


async def test_a_feed_follows_what_its_actor_may_do_now(served: Served) -> None:
    searches = served.store.searches
    kept = searches.save("mallory", NAME, search_request("tomatoes"))
    _, token = searches.make_feed("mallory", kept.id)
    shown = await read(served, {"id": kept.id}, token)
    assert shown.status_code == 403
    assert shown.json()["items"] == []
    assert "may not search" in shown.json()["description"]


async def test_a_locked_vault_gives_an_empty_feed_that_says_so(served: Served) -> None:
    root = served.by("root")
    row = await saved(root, q="tomatoes")
    token = (await feed(root, row))["token"]
    served.vault.lock()
    for given in (token, "any other"):
        shown = await read(served, row, given)
        assert shown.status_code == 423
        assert shown.json()["items"] == []
        assert "locked" in shown.json()["description"]
        assert NAME not in shown.text
        atom = await read(served, row, given, "atom")
        assert atom.status_code == 423
        assert ElementTree.fromstring(atom.text).findall(f"{ATOM}entry") == []


async def test_a_reader_that_asks_again_and_again_keeps_no_vault_open(served: Served) -> None:
    root = served.by("root")
    row = await saved(root, q="tomatoes")
    token = (await feed(root, row))["token"]
    before = served.vault._hours.used
    assert (await read(served, row, token)).status_code == 200
    assert served.vault._hours.used is before


async def test_a_stranger_opens_no_vault_whose_keys_rest(served: Served) -> None:
    root = served.by("root")
    row = await saved(root, q="tomatoes")
    token = (await feed(root, row))["token"]
    served.vault.rest()
    assert not served.vault.is_open
    for id, given in ((row["id"], "wrong"), (row["id"], token[:-1]), ("none", token)):
        assert (await read(served, {"id": id}, given)).status_code == 404
        assert not served.vault.is_open, given
    assert (await read(served, row, token)).status_code == 200
    newer = (await feed(root, row))["token"]
    served.vault.rest()
    assert (await read(served, row, token)).status_code == 404
    assert not served.vault.is_open
    assert (await read(served, row, newer)).status_code == 200


@pytest.mark.in_a_file
async def test_a_feed_made_elsewhere_while_the_keys_rest_is_found(
    served: Served, filled: Filled
) -> None:
    served.vault.rest()
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        kept = store.searches.save("root", NAME, search_request("tomatoes"))
        _, token = store.searches.make_feed("root", kept.id)
    assert (await read(served, {"id": kept.id}, token)).status_code == 200


async def test_what_cannot_be_saved_is_refused_by_name(served: Served) -> None:
    root = served.by("root")
    for body, culprit in (
        ({"name": "", "search": {"q": QUERY}}, "name"),
        ({"name": "a" * 101, "search": {"q": QUERY}}, "name"),
        ({"name": NAME, "search": {}}, "search"),
        ({"name": NAME, "search": {"q": "word " * 1_000}}, "search"),
        ({"name": NAME, "search": {"q": QUERY, "mood": "good"}}, "mood"),
        ({"name": NAME}, "search"),
    ):
        refused = await root.send("POST", "/searches.json", body)
        assert refused.status_code == 400, body
        assert refused.json()["parameter"] == culprit
    await saved(root)
    again = await root.send("POST", "/searches.json", {"name": NAME, "search": {"q": "x"}})
    assert again.status_code == 409
    for number in range(49):
        await saved(root, f"number {number}")
    full = await root.send("POST", "/searches.json", {"name": "one more", "search": {"q": "x"}})
    assert full.status_code == 400
