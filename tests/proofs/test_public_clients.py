"""The protocol as others read it: the official Inspector, and the public conformance suite.

Both are npm packages, fetched for these tests: about a minute, so with ``PROOFS=full`` alone. The
suite's other scenarios are about a test server's own tools, streams and sessions; here is none.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from counts import FULL
from own_process import ended
from plugin.browsing import running
from plugin.conftest import Filled

PACKAGES = (
    "@modelcontextprotocol/inspector@2.12.0",
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "node@22",  # that the suite needs
)
LISTING = ("tools-list", "resources-list", "prompts-list")
EARLIER = "2025-11-25"  # of the protocol, with a handshake
NEWEST = "2026-07-28"  # each request by itself
SCENARIOS = (
    *(
        (EARLIER, one)
        for one in ("server-initialize", "ping", *LISTING, "dns-rebinding-protection")
    ),
    *((NEWEST, one) for one in (*LISTING, "dns-rebinding-protection", "caching")),
    *((NEWEST, one) for one in ("http-header-validation", "sep-2164-resource-not-found")),
    (NEWEST, "input-required-result-unsupported-methods"),
)
WITH_A_TEST_TOOL = {  # which this server has not
    "sep-2575-missing-capability-http-400",
    "sep-2575-server-rejects-undeclared-capability",
    "sep-2575-http-server-no-independent-requests-on-stream",
    "sep-2575-server-no-log-without-loglevel",
}
LISTS = {
    "tools/list": "memory_search",
    "prompts/list": "weekly-review",
    "resources/list": "landscape",
    "resources/templates/list": "{id}",
}
SEARCH = ("tools/call", "--tool-name", "memory_search", "--tool-arg", "query=tomatoes water")

pytestmark = [
    pytest.mark.skipif(not FULL, reason="fetches npm packages: make proofs"),
    pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed"),
]
pytest.importorskip("mcp", reason="the extra mcp is not installed")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the programs of the packages."""
    folder = tmp_path_factory.mktemp("npm")
    wanted = ["npm", "install", "--prefix", folder, "--no-audit", "--no-fund", *PACKAGES]
    done = ended(*wanted)
    if done.returncode:
        pytest.skip(f"npm cannot fetch the packages: {done.stderr.strip()[-200:]}")
    return folder / "node_modules" / ".bin"


@pytest.fixture
def address(filled: Filled, model: Path, tmp_path: Path) -> Iterator[str]:
    """A Datasette whose vault everyone may use: the suite sends no token."""
    everyone = dict.fromkeys(("hybrid-search", "hybrid-decrypt", "hybrid-write"), True)
    config = {"plugins": {"datasette-hybrid": {"databases": filled.options(allow=everyone)}}}
    metadata = tmp_path / "metadata.json"
    metadata.write_text(json.dumps(config))
    with running(filled.path, "--metadata", metadata, environment=dict(os.environ)) as server:
        yield f"{server.address}/notes/-/hybrid/mcp"


def said_by(programs: Path, *words: Any, passes: bool = True) -> str:
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "NO_COLOR": "1"}
    done = ended(programs / words[0], *map(str, words[1:]), timeout=120, env=environment)
    assert done.returncode == 0 or not passes, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(("revision", "scenario"), SCENARIOS)
def test_the_conformance_suite_passes(
    programs: Path, address: str, revision: str, scenario: str
) -> None:
    options = ("--url", address, "--scenario", scenario, "--spec-version", revision)
    said = said_by(programs, "conformance", "server", *options)
    assert "0 failed, 0 warnings" in said
    assert "Passed: 0/0" not in said


def test_each_request_stands_by_itself(programs: Path, address: str) -> None:
    options = ("--url", address, "--scenario", "server-stateless", "--spec-version", NEWEST)
    said = said_by(programs, "conformance", "server", *options, passes=False)
    results = re.findall(r"\[(sep-2575-[a-z0-9-]+) *\] \S*(SUCCESS|WARNING|FAILURE)", said)
    assert {name for name, result in results if result != "SUCCESS"} <= WITH_A_TEST_TOOL, said
    assert sum(result == "SUCCESS" for _, result in results) >= 20, said


def test_the_inspector_reads_it_over_http(programs: Path, address: str) -> None:
    inspected(programs, address, "--transport", "http")


def test_the_inspector_reads_it_over_standard_input_and_output(
    programs: Path, filled: Filled, model: Path
) -> None:
    command = ("memory_store", "mcp", filled.path, "--key-file", filled.key_file)
    inspected(programs, sys.executable, "-m", *command)


def inspected(programs: Path, *server: Any) -> None:
    """Ask for every list, and search."""
    for method, named in LISTS.items():
        said = said_by(programs, "mcp-inspector", "--cli", *server, "--method", method)
        assert named in json.dumps(json.loads(said)), method
    said = said_by(programs, "mcp-inspector", "--cli", *server, "--method", *SEARCH)
    assert "Watering the tomatoes" in json.loads(said)["content"][0]["text"]
