"""Rows that no word of the query led to are called the nearest, on every surface of the plugin."""

from __future__ import annotations

import json
import shutil
from typing import Any

from .conftest import Filled, Serve, Served, soup

SAID = "No memory holds any of these words; these are the nearest in meaning."
NONSENSE = "q=xyzzy+plugh+frobnicate"


def notes_on(response: Any) -> list[str]:
    page = soup(response)
    return [note.get_text(" ", strip=True) for note in page.select("#hy-answer [role=note]")]


async def test_the_page_says_it_above_the_results_and_calls_it_no_lack(served: Served) -> None:
    for actor in ("bob", "alice"):  # who may read, and who may only search
        visitor = served.by(actor)
        said = notes_on(await visitor.get(f"?{NONSENSE}"))
        assert said[0] == SAID
        assert not any("nearest in meaning" in note for note in said[1:])
        assert (await visitor.get(f".json?{NONSENSE}")).json()["nearest"] == SAID
        for asked in (f"{NONSENSE}+tomatoes", f"{NONSENSE}+garden", f"{NONSENSE}&mode=vector"):
            assert SAID not in notes_on(await visitor.get(f"?{asked}")), asked


async def test_sql_says_it_among_the_stages(served: Served) -> None:
    for actor in ("bob", "alice"):
        (row,) = await served.by(actor).sql(
            "select hybrid_explain('xyzzy plugh') a, hybrid_explain('xyzzy tomatoes') b"
        )
        assert {"stage": "nearest", "milliseconds": 0.0, "lines": [SAID]} in json.loads(row["a"])
        assert SAID not in row["b"]


async def test_across_databases_each_says_it_of_itself(filled: Filled, serve: Serve) -> None:
    other = filled.path.with_name("other.db")
    shutil.copy(filled.path, other)
    settings = {"key-file": str(filled.key_file)}
    served = await serve(filled.path, other, options={"notes": settings, "other": settings})
    response = await served.by("root").get(f"/-/hybrid?{NONSENSE}")
    assert notes_on(response) == [SAID, SAID]
