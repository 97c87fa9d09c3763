"""``demo/compose.yaml``: what its services are given, and that their commands do what they should.

There are no containers here: the same commands run beside one another.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from datasette.app import Datasette
from own_process import ended
from postgres_server import Server, running, why_not

DEMO = Path(__file__).parents[2] / "demo"
NODES = DEMO / "nodes"
COMPOSE = yaml.safe_load((DEMO / "compose.yaml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
VAULT = SERVICES["one"]["environment"]


def volumes(service: str) -> dict[str, str]:
    """Name of each volume, and where the service sees it."""
    return dict(one.split(":")[:2] for one in SERVICES[service]["volumes"])


def test_the_database_has_no_key_of_the_vault_and_is_reached_from_inside_alone() -> None:
    database, inside = SERVICES["database"], COMPOSE["networks"]["inside"]
    assert inside["internal"] is True
    assert database["networks"] == ["inside"]
    assert "ports" not in database
    assert VAULT["MEMORY_STORE_KEY_FILE"].startswith("/keys/")
    with_key = {name: volumes(name)["keys"] for name in SERVICES if "keys" in volumes(name)}
    assert with_key == dict.fromkeys(("secrets", "fill", "one", "two"), "/keys")
    assert set(COMPOSE["volumes"]) == {name for one in SERVICES for name in volumes(one)}


def test_the_nodes_are_for_this_machine_alone_and_change_no_key() -> None:
    for name, port in (("one", "8001"), ("two", "8002")):
        node = SERVICES[name]
        assert node["ports"] == [f"127.0.0.1:{port}:{port}"]
        assert node["command"] == ["sh", "node.sh", port, "0.0.0.0"]
        assert node["volumes"] == ["keys:/keys:ro"]
        assert node["cap_drop"] == ["ALL"]
        assert node["environment"] == VAULT
        assert node["depends_on"] == {"fill": {"condition": "service_completed_successfully"}}
    for file in ("Dockerfile", "secrets.sh", "fill.sh", "node.sh", "metadata.json"):
        assert (NODES / file).is_file()
    assert "verify-full" in VAULT["MEMORY_STORE_DB"]
    assert "verify-full" in (DEMO.parent / "docs" / "how-to" / "postgres.md").read_text()


class Parts:
    """The volumes as folders, and the commands of the services in them."""

    def __init__(self, folder: Path, model: Path) -> None:
        self.folder = folder
        self.port = _free_port()
        for name in COMPOSE["volumes"]:
            (folder / name).mkdir()
        (folder / "notes").mkdir()
        (folder / "notes" / "ferry.md").write_text("# Ferry\n\nCabin on deck nine.\n")
        private = {
            f"MEMORY_STORE_{name}": str(folder / name) for name in ("CACHE", "STATE", "DATA")
        }
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("PG", "MEMORY_STORE"))},
            **{name: self.here(value) for name, value in VAULT.items()},
            **private,
            "MEMORY_STORE_CONFIG": str(folder / "config"),
            "MEMORY_STORE_MODEL": str(model),
            "MEMORY_STORE_KEEPER": "off",
            "NOTES": str(folder / "notes"),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PGHOSTADDR": "127.0.0.1",  # of the host "database"
            "PGPORT": str(self.port),
        }

    def here(self, value: str) -> str:
        return value.replace("/keys/", f"{self.folder}/keys/")

    def make_secrets(self) -> None:
        command: str = SERVICES["secrets"]["command"][-1].partition(" && ")[0]
        for name, place in volumes("secrets").items():
            command = command.replace(f" {place}", f" {self.folder / name}")
        subprocess.run(command.split(), cwd=NODES, env=self.environment, check=True)

    def database(self, server_folder: Path) -> list[str]:
        """The options of the server; its files are made its own user's."""
        server_folder.chmod(0o755)
        for file in (self.folder / "database-keys").iterdir():
            shutil.copy(file, server_folder)
            if os.geteuid() == 0:
                shutil.chown(server_folder / file.name, "postgres")
        keys = f"{server_folder}/"
        given = [one.replace("/keys/", keys) for one in SERVICES["database"]["command"]]
        return [*given, "-c", "listen_addresses=127.0.0.1"]

    def run(self, script: str, **changed: str) -> subprocess.CompletedProcess[str]:
        return ended("sh", script, cwd=NODES, env={**self.environment, **changed})


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@pytest.fixture
def parts(tmp_path: Path, tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    reason = why_not() or (shutil.which("openssl") is None and "openssl is not installed")
    if reason:
        pytest.skip(reason)
    import tempfile

    parts = Parts(tmp_path, tiny_model)
    parts.make_secrets()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tls")))
        server: Server = stack.enter_context(
            running(*parts.database(folder), sign_in="scram-sha-256", port=parts.port)
        )
        server.sql("create database notes", database="postgres")
        server.sql((tmp_path / "prepare" / "prepare.sql").read_text(), database="notes")
        yield parts


def test_the_vault_is_filled_over_tls_by_a_role_that_defines_nothing(parts: Parts) -> None:
    filled = parts.run("fill.sh")
    assert filled.returncode == 0, filled.stderr
    assert "imported 1," in filled.stdout
    again = parts.run("fill.sh")
    assert "imported 0, unchanged 1" in again.stdout, again.stderr
    other = VAULT["MEMORY_STORE_DB"].replace("@database", "@127.0.0.1")
    refused = parts.run("fill.sh", MEMORY_STORE_DB=parts.here(other))
    assert refused.returncode != 0
    password = (parts.folder / "keys" / "pgpass").read_text().strip().rpartition(":")[2]
    for said in (filled, again, refused):
        assert password not in said.stdout + said.stderr
    secrets = (parts.folder / "keys" / "cookies").read_bytes()
    parts.make_secrets()  # it was started again
    assert (parts.folder / "keys" / "cookies").read_bytes() == secrets


@pytest.mark.soak
def test_who_signed_in_at_one_node_is_signed_in_at_the_other(parts: Parts) -> None:
    assert parts.run("fill.sh").returncode == 0
    with ExitStack() as stack:
        addresses = []
        for _ in range(2):
            port = _free_port()
            node = subprocess.Popen(
                ["sh", "node.sh", str(port)], cwd=NODES, env=parts.environment, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
            stack.callback(node.wait)
            stack.callback(node.terminate)
            assert node.stdout is not None
            assert any("running on" in line for line in iter(node.stdout.readline, ""))
            addresses.append(f"http://127.0.0.1:{port}")
        cookies = (parts.folder / "keys" / "cookies").read_text().strip()
        signed = Datasette(memory=True, secret=cookies).sign({"a": {"id": "root"}}, "actor")
        for address in addresses:
            page = httpx.get(f"{address}/notes/-/hybrid?q=cabin", cookies={"ds_actor": signed})
            assert "deck nine" in page.text.replace("<mark>", "").replace("</mark>", "")
