"""The file that a memory was read from can be saved by those who may read it, and runs nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Served, soup
from .uploads import imported

HOSTILE = b"<script>alert(1)</script><p>Opens in March.</p>"
NAME = 'weir "été";.html'


@pytest.fixture
def memory(served: Served, tmp_path: Path) -> str:
    """The id of a memory whose original was kept."""
    path = tmp_path / NAME
    path.write_bytes(HOSTILE)
    served.store.import_paths([path], keep_originals=True, embed=False)
    (found,) = [one.id for one in served.store.list(limit=100) if one.ref == NAME]
    return found


@pytest.mark.in_a_file
async def test_a_reader_saves_it_and_no_browser_shows_it(served: Served, memory: str) -> None:
    page = f"{served.base}/memories/{memory}"
    shown = soup(await served.by("root").get(page)).find("a", string=NAME)
    assert shown["href"].endswith("/original")
    answer = await served.by("root").get(f"{page}/original")
    assert answer.content == HOSTILE
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"] == (
        "attachment; filename*=UTF-8''weir%20%22%C3%A9t%C3%A9%22%3B.html"
    )
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    assert "sandbox" in answer.headers["content-security-policy"]
    said = (await served.by("root").get(f"{page}.json")).json()
    assert said["rows"][0]["original"]["name"] == NAME
    assert "token" not in said["rows"][0]["original"]
    table = await served.by("root").get(f"/{served.database}/memory_bodies?id__startswith={memory}")
    assert table.status_code == 200
    assert "1 row" in table.text
    assert "alert(1)" not in table.text


async def test_others_get_neither_the_file_nor_its_name(served: Served, memory: str) -> None:
    page = f"{served.base}/memories/{memory}"
    for actor in ("sam", "eve"):
        answer = await served.by(actor).get(f"{page}/original")
        assert answer.status_code in (403, 404)
        assert HOSTILE not in answer.content
        assert "weir" not in (await served.by(actor).get(f"{page}.json")).text


async def test_of_a_memory_without_one_nothing_is_offered(served: Served) -> None:
    found = served.store.add("Typed here.")
    page = f"{served.base}/memories/{found.id}"
    assert "/original" not in (await served.by("root").get(page)).text
    assert (await served.by("root").get(f"{page}/original")).status_code == 404


async def test_an_upload_keeps_it_where_that_is_asked_for(served: Served) -> None:
    files = {"weir/spring.html": HOSTILE}
    report = await imported(served.by("root"), files, keep_originals="1")
    (id,) = report["ids"]
    assert served.store.original(id) == HOSTILE
    again = await imported(served.by("root"), files)  # the box left empty
    assert (again["unchanged"], again["replaced"]) == (1, 0)
    assert served.store.original(id) == HOSTILE
