"""What the Tab key completes, asked as a shell asks it."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from typing_commands import run

from memory_store.cli import main
from memory_store.cli.completion import VARIABLE
from memory_store.store import MemoryStore


@pytest.fixture
def pressed(
    store: MemoryStore, key_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> Any:
    """Press Tab behind the last word; what is offered, as bash is given it."""
    monkeypatch.setenv("MEMORY_STORE_DB", str(store.path))
    monkeypatch.setenv("MEMORY_STORE_KEY_FILE", str(key_file))

    def press(*words: str) -> list[str]:
        monkeypatch.setenv(VARIABLE, "bash_complete")
        monkeypatch.setenv("COMP_WORDS", " ".join(["memory-store", *words]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        with pytest.raises(SystemExit):
            main.main([], prog_name="memory-store")
        said = capsys.readouterr()
        assert said.err == ""
        return [line.partition(",")[2] for line in said.out.splitlines() if line]

    return press


def test_commands_and_options_are_completed(pressed: Any) -> None:
    assert pressed("sea") == ["search", "searches"]
    assert pressed("search", "--since", "7d", "--un") == ["--until"]
    assert pressed("search", "--str") == ["--structural"]
    assert pressed("no-such-command", "x") == []


def test_names_of_a_vault_that_opens_without_a_question_are_completed(
    pressed: Any, store: MemoryStore
) -> None:
    memory = store.add("Bins on Tuesday", topics=["household", "bins"])
    store.collections.create("work")
    assert pressed("get", memory.id[:2]) == [memory.id[:8]]
    assert pressed("get", str(store.path), memory.id[:2]) == [memory.id[:8]]
    assert pressed("search", "--topic", "ho") == ["household"]
    assert pressed("list", "--collection", "wo") == ["work"]


def test_a_locked_vault_completes_nothing_and_says_nothing(
    pressed: Any, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.add("Bins on Tuesday", topics=["household"])
    monkeypatch.delenv("MEMORY_STORE_KEY_FILE")
    assert pressed("search", "--topic", "ho") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_written_where_the_shell_looks_for_it(
    shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(variable, str(tmp_path))
    shown = run("completion", shell, "--print")
    assert not [*tmp_path.rglob("*memory-store*")]
    written = run("completion", shell)
    assert written.exit_code == 0, written.output
    (file,) = tmp_path.rglob("*memory-store*")
    assert str(file) in written.output
    assert file.read_text().strip() == shown.output.strip()
    assert VARIABLE in shown.output
    if shell == "bash":
        subprocess.run(["bash", "-n", str(file)], check=True)
