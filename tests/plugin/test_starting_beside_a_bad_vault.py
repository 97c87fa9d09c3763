"""One bad vault keeps no other from being served: the log and its own page say what is wrong."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from datasette.app import Datasette

from memory_store.sqlite import connect
from memory_store.store import MemoryStore

from .conftest import ALLOW, Filled, Serve, Served

Harm = Callable[[Path], None]
PASSPHRASE = "seven red squirrels"


def sql(statement: str, *values: object) -> Harm:
    def harm(path: Path) -> None:
        with closing(connect(path)) as connection:
            connection.execute(statement, values)

    return harm


def bytes_at(place: int, data: bytes) -> Harm:
    """Damage in the file, past SQLite."""

    def harm(path: Path) -> None:
        with path.open("r+b") as file:
            file.seek(place)
            file.write(data)

    return harm


def unreadable(path: Path) -> None:
    path.chmod(0)


UNREADABLE = "a damaged schema"
"""Datasette itself answers none of its own pages then, of whichever database."""
HARMS: dict[str, Harm] = {
    "deep parameters": sql(
        "update vault_slots set parameters = ? where kind = 'passphrase'", "[" * 100_000
    ),
    "huge parameters": sql(
        "update vault_slots set parameters = ? where kind = 'passphrase'",
        '{"memory": 99999999999999999999, "passes": 3, "lanes": 4}',
    ),
    "parameters that are no text": sql(
        "update vault_slots set parameters = cast(x'ff80fe' as text) where kind = 'passphrase'"
    ),
    "a deep setting": sql("update vault_settings set value = ? where name = 'vault'", "[" * 50_000),
    "no settings": sql("delete from vault_settings"),
    "a newer format": sql("pragma user_version = 99"),
    "a damaged page": bytes_at(8192 * 3, b"\xff" * 8192),
    UNREADABLE: bytes_at(100, bytes(400)),
    "a name that is no text": sql(
        "update vault_principals set created = cast(x'ff80' as text) where id = 0"
    ),
}
if os.geteuid() != 0:
    HARMS["a file that may not be read"] = unreadable


@pytest.fixture
def bad(model: Path, tmp_path: Path) -> Path:
    """A vault whose key is configured, to be harmed."""
    (tmp_path / "bad").mkdir()
    store, _ = MemoryStore.create(tmp_path / "bad" / "bad.db", passphrase=PASSPHRASE)
    store.add("A memory of the bad vault.")
    store.close()
    return store.path


@pytest.mark.in_a_file
@pytest.mark.sampled(3)
@pytest.mark.parametrize("harm", HARMS)
async def test_a_bad_vault_keeps_no_other_from_being_served(
    filled: Filled,
    bad: Path,
    serve: Serve,
    harm: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if harm == UNREADABLE and hasattr(Datasette, "get_internal_database"):
        pytest.skip("Datasette 1.0 itself does not start: it first looks into every database")
    monkeypatch.setenv("BAD_PASSPHRASE", PASSPHRASE)
    HARMS[harm](bad)
    options = {
        "bad": {"passphrase": {"$env": "BAD_PASSPHRASE"}, "allow": ALLOW},
        "notes": {"key-file": str(filled.key_file), "allow": ALLOW},
    }
    served = await serve(bad, filled.path, options=options)
    said = capsys.readouterr().err
    root = Served(served.datasette, "notes").by("root")
    found = await root.get(".json?q=tomatoes")
    assert found.status_code == 200, found.text
    assert found.json()["rows"]
    assert (await root.get("/-/hybrid?q=tomatoes")).status_code == 200
    if harm != UNREADABLE:
        found_in_sql = await root.sql("select hybrid_search('tomatoes', 1) as found")
        assert found_in_sql[0]["found"] != "[]"
    page = await Served(served.datasette, "bad").by("root").get("/unlock")
    assert "Traceback" not in said
    reported = [line for line in said.splitlines() if line.startswith("datasette-hybrid: bad: ")]
    if "bad: open" in said:
        return  # what was harmed is not needed to open it
    assert reported, said
    reason = reported[0].removeprefix("datasette-hybrid: bad: ").removeprefix("locked: ")
    assert reason[1:60] in page.text.replace("&#39;", "'").replace("&#34;", '"')
    assert page.status_code in (200, 503)
    assert PASSPHRASE not in said + page.text
