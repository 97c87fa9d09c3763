"""The running API against its description: thousands of requests, good ones and bad ones.

Nothing breaks, answers are as described, what the description forbids is refused, and no one gets
in without credentials. The requests are the same in every run.
"""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from own_process import ended

from datasette_hybrid.openapi.operations import OPERATIONS
from memory_store.store import MemoryStore

from .browsing import serving
from .conftest import Filled

FULL = os.environ.get("PROOFS") == "full"
TRIED = OPERATIONS if FULL else OPERATIONS[::3]
"""A usual run asks for a third of the operations, each with the same thoroughness."""
EXAMPLES = 20 if FULL else 2
"""Random ones for each operation, besides those for every part of its schema."""
SECONDS = 900  # a run takes 15 to 60, and more where the machine is busy

BEARER = """
from datasette import hookimpl


@hookimpl
def actor_from_request(request):
    return {"id": "root"} if request.headers.get("authorization") == "Bearer root" else None
"""
"""Tokens for both versions of Datasette: 0.65 makes none."""

SETTINGS = """
color = false
continue-on-failure = true

# what a description cannot say (a date, a pattern) is refused with a reason
[checks]
positive_data_acceptance.enabled = false

[phases.coverage]
unexpected-methods = ["PUT", "DELETE"]

[parameters]
"path.database" = "notes"

# one memory to read and change, another to delete
[[operations]]
include-tag = "memories"
exclude-operation-id = "deleteMemory"
parameters = { "path.id" = "00000000-0000-4000-8000-000000000001" }

[[operations]]
include-operation-id = "deleteMemory"
parameters = { "path.id" = "00000000-0000-4000-8000-000000000002" }

# a file of source code, and a name in it
[[operations]]
include-tag = "code"
parameters = { "query.file" = "boat.py", "query.name" = "row", "query.of" = "boat.py" }

# options in a body are read as in an address: "5" is a number there
[[operations]]
include-operation-id = ["searchPosted", "searchCsvPosted"]
checks.negative_data_rejection.enabled = false

# in a form whatever is sent is text, and a field that is there twice is one
[[operations]]
include-operation-id = "upload"
checks.negative_data_rejection.enabled = false

# the same parameters, read in the same place as for JSON
[[operations]]
include-operation-id = ["searchCsv", "searchCsvPosted", "auditCsv"]
phases.coverage.enabled = false
"""

DECIDED_ON = "9b2d4e6f-1a3c-4f5e-8d7b-0c1e2f3a4b5d"  # the memory that the example names
REFUSED = {400, 403, 404}
NEED_LUCK = {
    *("changeMemories", "deleteMemories", "publishMemory", "searchCsv"),
    *("getCollection", "changeCollection", "setMember", "removeMember"),
    *("followImport", "stopImport", "restoreMemories"),
    *("getSearch", "makeFeed"),  # of a saved search
}
"""Operations whose good requests name something that is there, which random ones hardly do."""


@pytest.mark.sampled(0)
@pytest.mark.once  # half a minute, and minutes in full
def test_the_running_api_is_as_described(
    filled: Filled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_STORE_KEY_FILE", str(filled.key_file))
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        store.add("Travel light.", id=DECIDED_ON)
        store.add("def row() -> None:\n    row()\n", type="code", source="/boats", ref="boat.py")
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "bearer.py").write_text(BEARER)
    (tmp_path / "schemathesis.toml").write_text(SETTINGS)
    report = tmp_path / "report.ndjson"
    with serving(filled.path, "--plugins-dir", plugins) as address:
        outcome = ended(
            *(sys.executable, "-m", "schemathesis.cli", "--config-file", "schemathesis.toml"),
            *("run", f"{address}/-/hybrid/openapi.json", "-H", "Authorization: Bearer root"),
            *(part for one in TRIED for part in ("--include-operation-id", one.name)),
            *("--phases", "examples,coverage,fuzzing", "-n", str(EXAMPLES), "--seed", "1"),
            *("--no-shrink", "--suppress-health-check", "all", "--warnings", "off"),
            *("--report", "ndjson", "--report-ndjson-path", str(report)),
            cwd=tmp_path,
            timeout=SECONDS,
        )
    assert outcome.returncode == 0, outcome.stdout[-6000:] + outcome.stderr[-1000:]
    answered = statuses(report)
    names = {f"{one.method} {one.path}": one.name for one in TRIED}
    assert {names[label] for label, seen in answered.items() if seen & REFUSED} == {*names.values()}
    unreached = {names[label] for label, seen in answered.items() if not seen & {200, 201, 202}}
    assert unreached <= NEED_LUCK


def statuses(report: Path) -> dict[str, set[int]]:
    """Operation → the status codes it was answered with."""
    seen: dict[str, set[int]] = defaultdict(set)
    for line in report.read_text("utf-8").splitlines():
        for event in json.loads(line).values():
            for one in (event.get("recorder") or {}).get("interactions", {}).values():
                response = one.get("response")
                if response:
                    seen[event["recorder"]["label"]].add(response["status_code"])
    return seen
