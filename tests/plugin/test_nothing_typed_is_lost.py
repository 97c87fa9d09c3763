"""What a person typed comes back, whatever refused it."""

from __future__ import annotations

import pytest

from datasette_hybrid.memories import memory_form
from datasette_hybrid.requests import cross_site

from .conftest import HOSTILE, Served, soup
from .test_writing_pages import NEW, ONE, fields, sent, stored


async def test_what_was_typed_survives_a_lock(served: Served) -> None:
    root, path = served.by("root"), f"/memories/{ONE}/edit"
    typed = {**fields(await root.get(served.base + path)), "text": f"Long thoughts. {HOSTILE}"}
    vault = served.vault
    token = await root.get(f"{served.base}/unlock")
    vault.lock()
    locked = await root.submit(served.base + path, typed, f"{served.base}/unlock")
    assert token.status_code == 200
    assert locked.status_code == 423
    assert soup(locked).select_one(".hy-problem a")["target"] == "_blank"
    again = fields(locked)
    assert {name: again[name] for name in typed} == typed
    assert "alert(1)>" not in locked.text
    vault.open_configured()
    saved = await root.submit(served.base + path, again, f"{served.base}/new")
    assert saved.status_code == 303
    assert stored(served).text == typed["text"]


async def test_what_was_typed_survives_the_end_of_a_session(served: Served) -> None:
    typed = {**fields(await served.by("root").get(f"{served.base}/new")), **NEW}
    stranger = served.by(None)
    refused = await stranger.submit(f"{served.base}/new", typed, "/-/hybrid")
    assert refused.status_code == 403
    again = fields(refused)
    assert again["text"] == NEW["text"]
    assert "personal" not in refused.text
    assert "garden" not in refused.text
    added = await served.by("root").submit(f"{served.base}/new", again)
    assert added.status_code == 303


async def test_what_was_typed_survives_the_deletion_of_the_memory(served: Served) -> None:
    root, path = served.by("root"), f"/memories/{ONE}/edit"
    typed = {**fields(await root.get(served.base + path)), "text": "Still worth keeping."}
    served.store.delete(ONE)
    gone = await root.submit(served.base + path, typed, f"{served.base}/new")
    assert gone.status_code == 404
    assert "deleted meanwhile" in gone.text
    assert soup(gone).select_one("form.hy-write")["action"].endswith("/-/hybrid/new")
    added = await root.submit(f"{served.base}/new", fields(gone))
    assert added.status_code == 303
    assert stored(served, added.headers["location"].rpartition("/")[2]).text == typed["text"]


async def test_a_text_too_long_for_a_page_comes_back_with_the_reason(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_form, "TEXT_LIMIT", 1_000)
    long = "word " * 300
    again = await sent(served.by("root"), "/new", **{**NEW, "text": long})
    assert again.status_code == 400
    assert "a page takes 1,000" in again.text
    assert fields(again)["text"] == long


@pytest.mark.skipif(not cross_site.BY_TOKEN, reason="1.0 compares origins, before any of our code")
async def test_what_was_typed_survives_a_token_that_no_longer_fits(served: Served) -> None:
    root, path = served.by("root"), f"{served.base}/new"
    typed = {**fields(await root.get(path)), **NEW}
    cookies = {**root.cookies, "ds_csrftoken": "from-before-a-restart"}
    client = served.datasette.client
    refused = await client.post(path, data={**typed, "csrftoken": "old"}, cookies=cookies)
    assert refused.status_code == 403
    assert "check what" in refused.text
    assert fields(refused)["text"] == NEW["text"]
    assert len(served.store.list()) == 3
    cookies = {**root.cookies, **dict(refused.cookies)}
    token = soup(refused).select_one("form.hy-write [name=csrftoken]")["value"]
    again = {**fields(refused), "csrftoken": token}
    saved = await client.post(path, data=again, cookies=cookies)
    assert saved.status_code == 303
