"""Model presets: chosen by one name, for this machine or for a new vault."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from memory_store.cli import main
from memory_store.configuration import settings
from memory_store.models.offline import MODEL_NAME, MULTILINGUAL
from memory_store.models.places import chosen_embedder
from memory_store.models.presets import PRESETS
from memory_store.models.reranker import DEFAULT_RERANKER, chosen_reranker
from memory_store.store import MemoryStore


def run(*words: str, code: int = 0) -> str:
    answer = CliRunner().invoke(main, words)
    assert answer.exit_code == code, answer.output
    return str(answer.output)


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("MEMORY_STORE_MODEL", raising=False)
    monkeypatch.delenv("MEMORY_STORE_RERANKER", raising=False)
    folder = Path(os.environ["MEMORY_STORE_CONFIG"])
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder / "config.yaml"


def test_use_chooses_both_models_for_every_vault(config: Path) -> None:
    config.write_text("# mine\nvault: ~/notes.db\nmodel: other\nsearch:\n  limit: 5\n")
    said = run("models", "use", "reranked")
    assert f"{config} says model: reranked" in said
    assert "memory-store models get reranked" in said
    assert config.read_text() == "# mine\nvault: ~/notes.db\nsearch:\n  limit: 5\nmodel: reranked\n"
    assert chosen_embedder(None) == MODEL_NAME
    assert chosen_reranker(None) == "ms-marco-MiniLM-L-12-v2"
    said = run("models", "use", "multilingual")
    assert "memory-store reindex --embedder multilingual" in said
    assert (chosen_embedder(None), chosen_reranker(None)) == (MULTILINGUAL, DEFAULT_RERANKER)
    run("models", "use", "ms-marco-MiniLM-L-12-v2")
    assert settings()["reranker"] == chosen_reranker(None) == "ms-marco-MiniLM-L-12-v2"


def test_a_variable_comes_before_and_is_named(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_STORE_MODEL", "small")
    assert "MEMORY_STORE_MODEL is set" in run("models", "use", "multilingual")
    assert chosen_embedder(None) == MODEL_NAME


def test_what_is_no_model_is_refused_with_the_presets(config: Path, tmp_path: Path) -> None:
    for words in (("models", "use", "smal"), ("init", str(tmp_path / "n.db"), "--model", "smal")):
        said = run(*words, code=2)
        assert "'smal' is no preset (small, multilingual, reranked)" in " ".join(said.split())
    assert not config.exists()
    assert not (tmp_path / "n.db").exists()


def test_a_file_that_takes_more_than_a_line_is_left_to_you(config: Path) -> None:
    text = "model: >\n  a long\n  name\n"
    config.write_text(text)
    assert "write the line model: small into it yourself" in run("models", "use", "small", code=2)
    assert config.read_text() == text


def test_the_list_says_what_each_is_best_for_and_which_is_chosen(config: Path) -> None:
    run("models", "use", "small")
    lines = run("models", "list").splitlines()
    for one in PRESETS:
        (line,) = [line for line in lines if line.strip().startswith(one.name)]
        assert one.best_for in line
        assert line.endswith("(chosen)") is (one.name == "small")
    assert run("models", "list") == run("models")
    assert run("models", "list", "--json") == run("models", "--json")
    assert json.loads(run("models", "list", "--json"))


def test_a_new_vault_keeps_the_model_that_it_was_made_with(config: Path, tmp_path: Path) -> None:
    key_file = tmp_path / "keys" / "notes.key"
    made = ("init", str(tmp_path / "notes.db"), "--key-file", str(key_file))
    run(*made, "--model", "multilingual")
    run("models", "use", "small")
    with MemoryStore.open(tmp_path / "notes.db", key_file=key_file) as store:
        assert store.embedder_name() == MULTILINGUAL
        assert store.settings().model == MULTILINGUAL
        assert store.settings().fingerprint is None
    words = ("doctor", str(tmp_path / "notes.db"), "--key-file", str(key_file))
    assert "MEMORY_STORE_MODEL names" in run(*words)
    run("models", "use", "multilingual")
    assert "MEMORY_STORE_MODEL names" not in run(*words)
