"""metadata.yml (0.65) and datasette.yaml (1.0) say the same, and start a Datasette."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from .conftest import Filled, Served, plain_datasette

ROOT = Path(__file__).parents[2]


def test_the_twins_are_alike() -> None:
    old, new = (yaml.safe_load((ROOT / name).read_text()) for name in TWINS)
    assert old == new
    assert "notes" in old["plugins"]["datasette-hybrid"]["databases"]


TWINS = ("metadata.yml", "datasette.yaml")


async def test_they_open_the_demo_vault_for_root_and_no_other(
    filled: Filled, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_STORE_KEY_FILE", str(filled.key_file))
    datasette = plain_datasette((filled.path,), yaml.safe_load((ROOT / TWINS[0]).read_text()))
    await datasette.invoke_startup()
    served = Served(datasette)
    for actor, titles in (("root", ["Watering the tomatoes"]), ("alice", []), (None, [])):
        response = await served.by(actor).get(
            "/notes/search.json", params={"query": "watering", "_shape": "array"}
        )
        assert response.status_code == 200, (actor, response.text)
        assert [row["title"] for row in response.json()][:1] == titles
        unasked = await served.by(actor).get("/notes/search")
        assert unasked.status_code == 200, unasked.text
    for path in ("/-/metadata.json", "/-/config.json", "/-/plugins.json"):
        shown = await served.get(path)
        assert filled.key_file.read_text().strip() not in shown.text
