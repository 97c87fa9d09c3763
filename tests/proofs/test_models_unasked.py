"""No model hub is asked for anything, but by the command that says so.

The hub is on this machine and writes down what it is asked; every address off this machine is
heard by Python's own account, and by the system's (``strace``). Nothing forbids the network:
``MEMORY_STORE_OFFLINE`` is not set. The commands run as they do in a new installation that has no
model, on a vault whose vectors come from a model that is gone, and with a model that is there.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import at_terminal
import isolated
import pytest
import unasked
from model_hub import Hub, running
from own_process import ended
from test_no_network import TURNING, outside
from tracing import traced

from memory_store.models import offline

NAMED = "memory-store models get"
QUERY = "heron"
RERANKER = "ms-marco-TinyBERT-L-2-v2"
GONE = "BAAI/bge-small-en-v1.5"  # a model that FastEmbed knows, and would fetch


@dataclass
class Machine:
    """A machine with a vault, and a hub that it could ask."""

    folder: Path
    hub: Hub
    environment: dict[str, str]

    @property
    def vault(self) -> str:
        return str(self.folder / "notes.db")

    @property
    def key(self) -> list[str]:
        return ["--key-file", str(self.folder / "keys" / "notes.key")]

    @property
    def heard(self) -> list[str]:
        """Every address off this machine, and every question to the hub."""
        noted = self.folder / "heard"
        return [*(noted.read_text().splitlines() if noted.exists() else ()), *self.hub.asked]

    def command(self, *words: str) -> list[str]:
        return [sys.executable, unasked.__file__, str(self.folder / "heard"), *words]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return ended(
            *self.command("memory-store", *words),
            env=self.environment,
            stdin=subprocess.DEVNULL,
            timeout=at_terminal.PATIENCE,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """A machine without models and without a vault, free to use the network."""
    folder = tmp_path / "machine"
    folder.mkdir()
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MEMORY_STORE_", "HF_"))
    }
    with running() as hub:
        private = {
            f"MEMORY_STORE_{name}": str(folder / name.lower())
            for name in ("CACHE", "CONFIG", "STATE")
        }
        own = {"HF_ENDPOINT": hub.address, "NO_PROXY": "127.0.0.1", "HOME": str(folder)}
        own["PIP_NO_INDEX"] = "1"  # pip, asked after the hub, has nothing either
        yield Machine(folder, hub, {**kept, **private, **own})


@pytest.fixture
def vault(machine: Machine) -> Machine:
    """The same with an empty vault."""
    made = machine.run("init", machine.vault, *machine.key)
    assert made.returncode == 0, made.stderr
    return machine


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.md").write_text(f"# Heron {number}\n\nA grey heron by the pond.\n")
    return folder


@pytest.fixture
def with_vectors(vault: Machine, notes: Path, tiny_model: Path) -> Machine:
    """Its vectors were made by a model that was fetched and trusted once, and that is gone."""
    served = shutil.copytree(tiny_model, vault.folder / "served")
    (served / "model.onnx").rename(served / "model_optimized.onnx")
    vault.hub.repositories["Qdrant/bge-small-en-v1.5-onnx-Q"] = served
    fetched = vault.run("models", "get", GONE, "--trust")
    assert fetched.returncode == 0, fetched.stderr
    chosen = {**vault.environment, "MEMORY_STORE_MODEL": GONE}
    filled = ended(
        *vault.command("memory-store", "import", vault.vault, str(notes), *vault.key), env=chosen
    )
    assert filled.returncode == 0, filled.stderr
    assert "degraded" not in filled.stderr
    shutil.rmtree(vault.folder / "cache")
    vault.hub.asked.clear()
    return vault


def sayings(machine: Machine, notes: Path) -> dict[str, Sequence[str]]:
    """Every command that would like to have a model."""
    vault, key = machine.vault, machine.key
    return {
        "add": ("add", vault, "A heron's nest", *key),
        "import": ("import", vault, str(notes), *key),
        "search": ("search", vault, QUERY, *key),
        "vector": ("search", vault, QUERY, "--mode", "vector", *key),
        "reranker": ("search", vault, "grey heron", "--deep", "--json", *key),
        "reindex": ("reindex", vault, *key),
        "doctor": ("doctor", vault, *key),
        "verify": ("verify", vault, *key),
        "models": ("models",),
        "collection": ("collections", vault, "create", "other", "--embedder", "BAAI/bge-m3", *key),
    }


@pytest.mark.once
def test_a_new_installation_without_a_model_asks_no_one(vault: Machine, notes: Path) -> None:
    answers = {name: vault.run(*words) for name, words in sayings(vault, notes).items()}
    assert vault.heard == []
    for name in ("add", "import", "search", "reranker", "doctor", "verify", "models"):
        assert answers[name].returncode == 0, answers[name].stderr
    for name in ("add", "import", "search", "doctor", "models", "reindex"):
        assert NAMED in answers[name].stdout + answers[name].stderr, name
    assert f"{NAMED} {RERANKER}" in answers["reranker"].stdout


@pytest.mark.sampled(0)
@pytest.mark.once
def test_a_vault_whose_model_is_gone_asks_no_one_and_names_the_command(
    with_vectors: Machine, notes: Path
) -> None:
    words = sayings(with_vectors, notes)
    said = {name: with_vectors.run(*words[name]) for name in ("add", "import", "search", "vector")}
    assert with_vectors.heard == []
    assert "Heron 1" in said["search"].stdout
    assert f"{NAMED} {GONE}" in said["search"].stdout
    assert f"{NAMED} {GONE}" in said["add"].stderr
    assert said["vector"].returncode == 1
    assert f"{NAMED} {GONE}" in said["vector"].stderr


@pytest.mark.sampled(0)
@pytest.mark.once
@pytest.mark.model
def test_a_model_that_is_there_makes_no_one_be_asked(vault: Machine, notes: Path) -> None:
    if not offline.can_build():
        pytest.skip("the offline extra is not installed")
    vault.environment["WEIGHTS"] = "1"
    words = sayings(vault, notes)
    for name in ("import", "add", "search", "doctor"):
        answer = vault.run(*words[name])
        assert answer.returncode == 0, answer.stderr
        assert "vectors:" not in answer.stdout + answer.stderr
    assert vault.heard == []


@pytest.mark.once
def test_a_first_search_in_datasette_asks_no_one(with_vectors: Machine) -> None:
    found = served(with_vectors)
    assert with_vectors.heard == []
    assert [row["title"] for row in found["rows"]]
    assert found["degraded"] == [f"The model '{GONE}' is not on this machine."]  # no command


def served(machine: Machine) -> dict[str, list[object]]:
    """What the first search of a new server says, and its page."""
    from datasette.app import Datasette

    keyed = {"key-file": machine.key[1], "allow": {"hybrid-search": True, "hybrid-decrypt": True}}
    settings = machine.folder / "settings.json"
    plugins = {"datasette-hybrid": {"databases": {"notes": keyed}}}
    settings.write_text(json.dumps({"plugins": plugins}))
    option = "--config" if hasattr(Datasette, "get_internal_database") else "--metadata"
    words = ("datasette", "serve", machine.vault, option, str(settings), "-p", "0")
    log = machine.folder / "log"
    with log.open("wb") as said:
        server = subprocess.Popen(
            machine.command(*words), env=machine.environment, stdout=said, stderr=said
        )
    try:
        address = isolated.address_of(server, log)
        found = json.loads(isolated.answered(f"{address}/notes/-/hybrid.json?q={QUERY}"))
        isolated.answered(f"{address}/notes/-/hybrid?q={QUERY}")
    finally:
        server.terminate()
        server.wait(120)
    return dict(found)


@pytest.mark.sampled(0)
@pytest.mark.once
def test_the_system_is_asked_for_no_address_either(
    with_vectors: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in {*os.environ, *with_vectors.environment}:
        monkeypatch.delenv(name, raising=False)
    for name, value in with_vectors.environment.items():
        monkeypatch.setenv(name, value)
    words = sayings(with_vectors, tmp_path)
    for name in ("add", "search", "doctor"):
        script = with_vectors.command("memory-store", *words[name])[1:]
        run = traced(tmp_path / f"calls-{name}", script, TURNING)
        assert outside(run.calls) == []
    assert with_vectors.heard == []


@pytest.mark.once
def test_the_command_that_says_so_asks_the_hub_for_what_it_named(machine: Machine) -> None:
    """The hub has nothing here: it is asked once, for a pinned file, after it was named."""
    done = machine.run("models", "get")
    assert done.returncode == 1
    (asked,) = machine.hub.asked
    assert re.fullmatch(r"/Qdrant/all-MiniLM-L6-v2-onnx/resolve/[0-9a-f]{40}/model\.onnx", asked)
    assert f"from {machine.hub.address}/Qdrant/all-MiniLM-L6-v2-onnx at" in done.stderr
    assert len(machine.heard) == 1, "nothing but the hub"


def typed(machine: Machine, words: Sequence[str], answer: str) -> tuple[str, int]:
    """``memory-store WORDS…`` at a terminal, where a question is answered; what it showed."""
    command = machine.command("memory-store", *words)
    variables = {**machine.environment, "TERM": "xterm", "COLUMNS": "100"}
    return at_terminal.session(
        command, variables, [answer], echoed=True, question="[y/N]", sure=False
    )


@pytest.mark.sampled(1)
@pytest.mark.once
@pytest.mark.parametrize(("first", "answer"), [("init", "n"), ("import", "")])
def test_at_a_terminal_a_no_or_no_answer_asks_no_one_and_goes_on_without(
    first: str, answer: str, machine: Machine, notes: Path
) -> None:
    if first == "import":
        assert machine.run("init", machine.vault, *machine.key).returncode == 0
    import_ = ("import", machine.vault, str(notes), *machine.key)
    words = import_ if first == "import" else ("init", machine.vault, *machine.key)
    shown, code = typed(machine, words, answer)
    assert code == 0, shown
    assert f"(91 MB) from {machine.hub.address}" in shown
    assert f"{NAMED} and then memory-store reindex {machine.vault}" in shown
    again, code = typed(machine, import_, answer)
    assert code == 0, again
    assert "[y/N]" not in again, "asked once"
    assert machine.heard == []
    found = machine.run("search", machine.vault, QUERY, *machine.key)
    assert "Heron 1" in found.stdout


@pytest.mark.sampled(0)
@pytest.mark.once
def test_at_a_terminal_a_yes_asks_the_hub_and_a_failure_stops_no_import(
    machine: Machine, notes: Path
) -> None:
    assert machine.run("init", machine.vault, *machine.key).returncode == 0
    shown, code = typed(machine, ("import", machine.vault, str(notes), *machine.key), "y")
    assert code == 0, shown
    assert len(machine.hub.asked) == 1
    assert "Nothing was kept" in shown
    assert "imported 3" in shown


@pytest.mark.once
def test_a_hub_that_sends_another_model_is_refused(
    machine: Machine, tiny_model: Path, notes: Path
) -> None:
    """A model decides what is found: one with an own mind must not get in by its name."""
    machine.hub.repositories["Qdrant/all-MiniLM-L6-v2-onnx"] = tiny_model
    machine.hub.revision = "8f518e882455312b086101e60691f5e6e2f05c3c"
    done = machine.run("models", "get")
    assert done.returncode == 1
    assert "not the file that was pinned" in done.stderr
    assert not list((machine.folder / "cache").rglob("*.onnx"))
