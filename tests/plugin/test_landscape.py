"""The landscape as a page and as JSON: for those who may read, and of what they may read."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from urllib.parse import urlencode

from memory_store.scopes import Scope
from memory_store.store import MemoryStore

from .conftest import ALLOW, Filled, Serve


async def test_the_page_is_a_map_and_the_same_as_a_list(filled: Filled, serve: Serve) -> None:
    served = await serve(filled.path, options=filled.options(allow=ALLOW))
    data = (await served.by("bob").get(f"{served.base}/landscape.json")).json()
    assert data["ok"]
    assert data["regions"]
    page = (await served.by("bob").get(f"{served.base}/landscape")).text
    assert page.count("<circle") >= len(data["regions"])
    listed = page.partition('<ol class="hy-regions">')[2]
    for one in data["regions"]:
        assert f"<bdi>{escape(one['name'])}</bdi>" in listed
        assert f"?{escape(urlencode({'topic': one['name']}))}" in page
    (href, *_) = re.findall(r'<a class="hy-region" href="([^"]+)"', page)
    found = await served.by("bob").get(href)
    assert found.status_code == 200
    assert "hy-result" in found.text


async def test_a_name_on_the_map_is_whole_or_says_that_it_is_cut(
    filled: Filled, serve: Serve
) -> None:
    names = ("Licences and payment", "Contributing", "Pneumonoultramicroscopic")
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        for name in names:
            for number in range(3):
                store.add(f"{name} {number}", topics=[name])
    served = await serve(filled.path, options=filled.options(allow=ALLOW))
    page = (await served.by("bob").get(f"{served.base}/landscape")).text
    shown = re.findall(r"<text [^>]*>([^<]+)</text>", page)
    words = {word for name in names for word in name.split()}
    assert words & {word for line in shown for word in line.split()}
    for line in shown:
        if any(line.startswith(name[:4]) for name in names):
            assert line.endswith("…") or words.issuperset(line.split()), line


async def test_telling_words_stand_beside_topics(filled: Filled, serve: Serve) -> None:
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        for number in range(3):
            store.add(f"The quince ripens, row {number}", topics=["orchard", "food"])
    served = await serve(filled.path, options=filled.options(allow=ALLOW))
    page = (await served.by("bob").get(f"{served.base}/landscape")).text
    assert re.search(r"words: <bdi>[^<]*quince", page)


async def test_the_search_leads_to_it_whatever_there_is_to_find(
    filled: Filled, serve: Serve
) -> None:
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        for one in store.list():
            store.edit(one.id, topics=(), type="note")
    served = await serve(filled.path, options=filled.options(allow=ALLOW))
    for actor, led in (("root", True), ("bob", True), ("alice", False)):
        for way in ("", "?q=tomatoes"):
            page = (await served.by(actor).get(served.base + way)).text
            assert (f'href="{served.base}/landscape"' in page) == led, (actor, way)


async def test_it_needs_the_right_to_read(filled: Filled, serve: Serve) -> None:
    served = await serve(filled.path, options=filled.options(allow=ALLOW))
    for actor in ("alice", "mallory"):
        for end in ("/landscape", "/landscape.json"):
            assert (await served.by(actor).get(served.base + end)).status_code == 403
    assert (await served.get(f"{served.base}/landscape.json")).status_code == 403


async def test_a_moment_that_is_none_is_refused(filled: Filled, serve: Serve) -> None:
    served = await serve(filled.path, options=filled.options(allow=ALLOW))
    answer = await served.by("bob").get(f"{served.base}/landscape.json?as_of=yesteryear")
    assert (answer.status_code, answer.json()["parameter"]) == (400, "as_of")


async def test_before_there_was_anything_it_says_so(filled: Filled, serve: Serve) -> None:
    served = await serve(filled.path, options=filled.options(allow=ALLOW))
    page = (await served.by("bob").get(f"{served.base}/landscape?as_of=1900")).text
    assert "No memories that you may read belong together as of 1900" in page


def test_of_some_collections_it_is_what_it_would_be_without_the_others(
    filled: Filled, private_folders: Path
) -> None:
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        store.collections.create("hidden")
        ids = {one.name: one.id for one in store.collections.list()}
        before = store.landscape()
        store.add("Of no concern", topics=["wholly-secret"], collection="hidden")
        seen = store.limited_to(Scope.of(i for name, i in ids.items() if name != "hidden"))
        assert seen.landscape() == before
        assert "wholly-secret" in str(store.landscape().as_dict())
