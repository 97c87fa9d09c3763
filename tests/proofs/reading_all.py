"""Read a vault in every way: ``reading_all.py WAY PATH KEY_FILE ID OTHER_FOLDER``, to JSON."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # plugin


def by_command(path: str, key_file: str, memory: str, elsewhere: str) -> dict[str, Any]:
    """Each command: its exit code, what it printed, and what it complained about."""
    from click.testing import CliRunner

    from memory_store.cli import main

    commands = {
        "search": ["sluice", "--json", "--limit", "32"],
        "get": [memory, "--json"],
        "list": ["--json"],
        "topics": ["--json"],
        "collections": ["--json"],
        "stats": ["--json"],
        "verify": ["--json"],
        "audit": ["--json"],
        "doctor": [],
        "export": [f"{elsewhere}/export", "--ndjson"],
        "backup": [f"{elsewhere}/backup.db"],
        "add": ["One more."],
    }
    said = {}
    for command, options in commands.items():
        result = CliRunner().invoke(main, [command, path, *options])
        said[command] = [result.exit_code, result.stdout, result.stderr]
    return said


def by_program(path: str, key_file: str, memory: str, elsewhere: str) -> dict[str, Any]:
    """With the Python API, in this process and in a search process."""
    from memory_store import MemoryStore
    from memory_store.records.request import search_request
    from memory_store.searchers.pool import Searchers

    with MemoryStore.open(path, key_file=key_file) as store:
        said: dict[str, Any] = {
            "list": sorted(one.text for one in store.list(limit=1_000)),
            "every": sorted(one.text for one in store.every()),
            "get": store.get(memory).text,
            "failures": store.verify()["failures"],
            "older": store.older(),
        }
        searchers = Searchers(store, 1, lambda line: said.setdefault("complaints", line))
        store.search_through(searchers.ask)
        until = time.monotonic() + 60
        while not searchers.ready and time.monotonic() < until:
            store.search("sluice", mode="keyword")
            time.sleep(0.05)
        found = searchers.ask((), "search", search_request("sluice", mode="keyword", limit=32))
        said["elsewhere"] = found is not None and len(found.rows)
        said["here"] = len(store.search("sluice", mode="keyword", limit=32).rows)
        searchers.stop()
    return said


async def served(
    path: str, key_file: str, memory: str, elsewhere: str, *, immutable: bool
) -> dict[str, Any]:
    """With Datasette: the status of each page, and what the search found."""
    from datasette.app import Datasette
    from datasette.cli import check_databases
    from plugin.conftest import ALLOW, Served, plain_datasette

    newer = hasattr(Datasette, "get_internal_database")
    settings = {"notes": {"key-file": key_file, "allow": ALLOW}}
    configuration = {"plugins": {"datasette-hybrid": {"databases": settings}}}
    files = () if immutable else (Path(path),)
    more = {"immutables": [path]} if immutable else {}
    datasette = plain_datasette(files, configuration, **more)
    if newer:  # in the order of `datasette serve`
        await check_databases(datasette)
    await datasette.invoke_startup()
    if not newer:
        await check_databases(datasette)
    root = Served(datasette, "notes").by("root")
    pages = {
        "home": "/-/hybrid",
        "search page": f"{root.base}?q=sluice",
        "search": f"{root.base}.json?q=sluice&mode=keyword&limit=32",
        "memory": f"{root.base}/memories/{memory}",
        "memories": f"{root.base}/memories.json",
        "database": "/notes.json",
        "table": "/notes/memories.json",
    }
    said: dict[str, Any] = {}
    for name, page in pages.items():
        answer = await datasette.client.get(page, cookies=root.cookies)
        said[name] = [answer.status_code, answer.text]
    found = await root.sql("select hybrid_search('sluice', 32) as found")
    said["sql"] = len(json.loads(found[0]["found"]))
    headers = {"Authorization": "Bearer nothing"}
    address = f"{root.base}/memories.json"
    answer = await root.send("POST", address, {"text": "more"}, headers=headers)
    said["add"] = [answer.status_code, answer.text]
    return said


def main() -> None:
    way, *arguments = sys.argv[1:]
    if way in ("served", "immutable"):
        said = asyncio.run(served(*arguments, immutable=way == "immutable"))
    else:
        said = {"command": by_command, "program": by_program}[way](*arguments)
    print(json.dumps(said))


if __name__ == "__main__":
    main()
