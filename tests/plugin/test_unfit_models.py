"""A search by meaning whose model does not fit: what its error says, and to whom."""

from __future__ import annotations

from html import unescape
from pathlib import Path
from urllib.parse import quote

import pytest
from tiny_embedder import build as build_tiny_embedder

from memory_store.access.answers import NO_MODEL

from .conftest import Filled, Serve, Served

pytestmark = pytest.mark.in_a_file

ALLOW = {
    "hybrid-search": {"id": ["root", "alice", "bob"]},
    "hybrid-decrypt": {"id": ["root", "bob"]},
    "hybrid-audit": {"id": "root"},
}


@pytest.fixture(params=["another one", "one that lacks a file"])
async def served(
    request: pytest.FixtureRequest,
    filled: Filled,
    model: Path,
    serve: Serve,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Served:
    """The vault on a machine whose model is not the one that its vectors come from."""
    unfit = tmp_path / "of-the-house" / model.name
    build_tiny_embedder(unfit, words=["weir"])
    if request.param != "another one":
        (unfit / "tokenizer.json").unlink()
    monkeypatch.setenv("MEMORY_STORE_MODEL", str(unfit))
    return await serve(filled.path, options=filled.options(allow=ALLOW))


async def refusals(served: Served) -> list[str]:
    """What every surface answers to a search by meaning."""
    sql = "select * from hybrid_search('tomatoes', json_object('mode', 'vector'))"
    ways = [f"{served.base}{way}?q=tomatoes&mode=vector" for way in (".json", "", ".csv")]
    ways.append(f"/{served.database}.json?sql={quote(sql)}")
    client, cookies = served.datasette.client, served.cookies
    answers = [await client.get(way, cookies=cookies, follow_redirects=True) for way in ways]
    assert [one.status_code for one in answers if one.status_code < 400] == []
    return [one.text for one in answers]


@pytest.mark.parametrize("actor", ["alice", "bob"])
async def test_others_than_the_owner_are_told_that_it_is_so_and_no_more(
    served: Served, actor: str
) -> None:
    for said in await refusals(served.by(actor)):
        assert NO_MODEL[1:] in unescape(said), "a sentence begins with a capital"
        assert "of-the-house" not in said
        assert "tiny-embedder" not in said


async def test_the_owner_is_told_which_model_it_is(
    served: Served, request: pytest.FixtureRequest
) -> None:
    said = (await refusals(served.by("root")))[0]
    assert ("is loaded" if "another" in request.node.name else "lacks tokenizer.json") in said
