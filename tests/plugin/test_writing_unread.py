"""Who may write but not read: nothing that they send shows them what is there, or takes it away."""

from __future__ import annotations

from typing import Any

import pytest
from bs4 import BeautifulSoup

from datasette_hybrid.memories import form_pages
from datasette_hybrid.memories.memory_form import Typed
from memory_store.records import CollectionInfo
from memory_store.store import MemoryStore

from .conftest import ALLOW, ONE, Filled, Serve, Served
from .uploads import imported

PIN = "00000000-0000-4000-8000-000000000009"


@pytest.fixture
async def served(filled: Filled, serve: Serve) -> Served:
    """Eve may write, and nothing else; Wanda search and write."""
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        store.add("The PIN is 4821", id=PIN, created="2026-01-01T00:00:00Z")
    allow = {**ALLOW, "hybrid-write": {"id": ["root", "wanda", "eve"]}}
    return await serve(filled.path, options=filled.options(allow=allow))


async def own_collection(who: Served) -> str:
    made = await who.send("POST", "/collections.json", {"name": "mine", "private": True})
    assert made.status_code == 201, made.text
    return str(made.json()["rows"][0]["id"])


async def test_no_one_reads_a_memory_by_moving_it_to_a_collection_of_their_own(
    served: Served,
) -> None:
    eve = served.by("eve")
    mine = await own_collection(eve)
    one, many = f"{served.base}/memories/{ONE}", f"{served.base}/memories/edit.json"
    change = {"collection": mine, "version": 1}
    for method, path, value in (
        ("PATCH", f"{one}.json", change),
        ("PATCH", f"{one}.json", {**change, "title": "Mine"}),
        ("POST", many, {"memories": [{"id": ONE, **change}]}),
    ):
        refused = await eve.send(method, path, value)
        assert refused.status_code == 403, refused.text
        assert "hybrid-decrypt" in refused.json()["error"]
    published = await eve.send("POST", f"{one}/publish.json", {"collection": mine})
    assert published.status_code == 404
    page = await eve.submit(f"{one}/publish", {"collection": mine}, page="/collections")
    assert page.status_code in (403, 404)
    form = {"text": "x", "type": "note", "collection": mine, "version": "1", "id": ONE}
    assert (await eve.submit(f"{one}/edit", form, page="/new")).status_code == 404
    assert (await eve.get(f"{one}.json")).status_code == 404
    assert (await served.by("root").get(f"{one}.json")).json()["rows"][0]["version"] == 1


async def test_who_reads_and_writes_still_moves(served: Served) -> None:
    root = served.by("root")
    path = f"{served.base}/memories/{ONE}.json"
    moved = await root.send("PATCH", path, {"collection": "elsewhere"})
    assert moved.json()["rows"][0]["collection"] == "elsewhere"


async def test_an_id_that_is_taken_confirms_no_guess(served: Served) -> None:
    answers = []
    for pin in (4820, 4821, 4822):
        draft = {"id": PIN, "text": f"The PIN is {pin}", "created": "2026-01-01T00:00:00Z"}
        answer = await served.by("eve").send("POST", "/memories.json", draft)
        answers.append((answer.status_code, {**answer.json(), "yours": None}))
    assert answers[0][0] == 409
    assert answers == [answers[0]] * 3
    assert "The PIN" not in str(answers)
    again = {"id": PIN, "text": "The PIN is 4821"}
    readable = await served.by("root").send("POST", "/memories.json", again)
    assert readable.json()["rows"][0]["unchanged"] is True


async def test_a_form_sent_twice_confirms_no_guess(served: Served) -> None:
    notices = []
    for pin in (4820, 4821):
        form = {"id": PIN, "text": f"The PIN is {pin}", "type": "note", "collection": "personal"}
        again = await served.by("eve").submit("/new", form)
        assert again.status_code == 409
        notices.append(BeautifulSoup(again.text, "html.parser").select_one("[role=alert]").text)
    assert notices[0] == notices[1]
    assert "already" in notices[0]


async def test_a_published_copy_confirms_no_guess(served: Served) -> None:
    eve = served.by("eve")
    mine = await own_collection(eve)
    draft = {"text": "The PIN is 4821", "created": "2026-01-01T00:00:00Z", "collection": mine}
    made = await eve.send("POST", "/memories.json", draft)
    own = made.json()["rows"][0]["id"]
    path = f"{served.base}/memories/{own}/publish.json"
    copies = [
        (await eve.send("POST", path, {"collection": "personal"})).json()["rows"][0]
        for _ in range(2)
    ]
    assert copies[0]["id"] == copies[1]["id"]
    assert copies[0]["id"] != PIN


async def test_an_import_confirms_no_guess(served: Served) -> None:
    def reported(job: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in job.items() if name not in ("job", "job_url")}

    await imported(served.by("root"), {"pin.md": b"The PIN is 4821"})
    guesses = [f"The PIN is {pin}".encode() for pin in (4820, 4821)]
    trials = [
        reported(await imported(served.by("eve"), {"pin.md": guess}, dry_run="1"))
        for guess in guesses
    ]
    assert trials[0] == trials[1]
    assert (trials[0]["imported"], trials[0]["replaced"]) == (1, 0), "another's note is not known"
    assert (await imported(served.by("eve"), {"pin.md": guesses[0]}))["imported"] == 1
    again = [reported(await imported(served.by("eve"), {"pin.md": guess})) for guess in guesses]
    assert again[0] == again[1], "of her own she learns no more"
    assert "replaced or unchanged 1" in again[0]["summary"]
    trial = {"pin.md": b"The PIN is 4821"}
    reader = await imported(served.by("root"), trial, dry_run="1")
    assert (reader["replaced"], reader["unchanged"]) == (0, 1)


def test_a_link_to_the_form_means_the_collection_of_that_id() -> None:
    """Even where another one has that id for a name: an older vault may have such names."""
    one, other = CollectionInfo("id-1", "one", 0, ""), CollectionInfo("id-2", "id-1", 0, "")
    choices = form_pages.Choices((one, other))
    for given, chosen in (("id-1", "id-1"), ("id-2", "id-2"), ("one", "id-1"), ("none", "id-1")):
        assert form_pages._placed(Typed(collection=given), choices).collection == chosen
