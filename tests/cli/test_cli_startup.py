"""What starting the command costs, counted in modules instead of milliseconds; its help."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from own_process import ended, python
from typing_commands import run

from memory_store.cli import COMMANDS
from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore

HEAVY = {
    "cryptography",
    "datasette",
    "fastembed",
    "flashrank",
    "numpy",
    "onnxruntime",
    "platformdirs",
    "py3langid",
    "semantic_text_splitter",
    "sqlite3",
    "sqlite_utils",
    "Stemmer",
    "yaml",
}


def loaded_by(code: str, looked_for: set[str] = HEAVY) -> set[str]:
    """Those of some modules that are loaded after ``code`` ran in a fresh interpreter."""
    report = "import json, sys; print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    result = python("-c", f"{code}\n{report}", check=True)
    return looked_for & set(json.loads(result.stderr.splitlines()[-1]))


def test_help_loads_nothing_heavy() -> None:
    code = "from memory_store.cli import main\nmain(['--help'], standalone_mode=False)"
    assert loaded_by(code) == set()


@pytest.mark.parametrize("name", ["Memory", "MemoryDraft", "SearchRequest", "SearchResponse"])
def test_the_nouns_load_nothing_heavy(name: str) -> None:
    assert loaded_by(f"from memory_store import {name}") == set()


NOT_TO_SEARCH = {
    "csv",
    "fastembed",
    "onnxruntime",
    "py3langid",
    "sqlite_vec",
    "memory_store.importing.pipeline",
    "memory_store.session.entries",
    "memory_store.models.language_model",
    "memory_store.actions.edits",
    "memory_store.actions.key_sharing",
    "memory_store.actions.writes",
}


def test_a_search_for_words_loads_nothing_that_writes_or_embeds(tmp_path: Path) -> None:
    folder, key_file = tmp_path / "vault", tmp_path / "notes.key"
    folder.mkdir()
    store, _ = MemoryStore.create(folder / "notes.db", key_file=key_file)
    said = "and the valve of the boiler that we have is the same as it was in spring"
    store.add_many(MemoryDraft(f"Number {n} is here, {said}") for n in range(120))
    store.add("Jeg har ikke sett nøkkelen siden i går, og jeg vet ikke hvor den er nå")
    assert set(store.stats()["languages"]) == {"en", "no"}
    store.close()
    query = "boiler valve spring"  # without a word that shows its language
    words = [str(store.path), query, "--mode", "keyword", "--key-file", str(key_file)]
    code = f"from memory_store.cli import main\nmain({['search', *words]!r}, standalone_mode=False)"
    assert loaded_by(code, NOT_TO_SEARCH) == set()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted in /proc")
def test_the_command_starts_no_threads_for_matrices() -> None:
    code = (
        "import os, sys\n"
        "from memory_store.cli import main\n"
        "try:\n    main(['--version'])\n"
        "except SystemExit:\n    import numpy\n"
        "assert len(os.listdir('/proc/self/task')) == 1"
    )
    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_NUM_THREADS"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, capture_output=True)


def test_the_control_notices_a_heavy_import() -> None:
    assert loaded_by("import numpy") == {"numpy"}


def test_every_public_name_can_be_imported() -> None:
    import memory_store

    second_names = {"SearchOptions": "SearchRequest"}
    for name in memory_store.__all__:
        assert getattr(memory_store, name).__name__ == second_names.get(name, name)


def test_an_unknown_name_is_an_ordinary_import_error() -> None:
    with pytest.raises(ImportError, match="MemoryShop"):
        from memory_store import MemoryShop  # noqa: F401


def test_the_module_is_the_command() -> None:
    result = python("-m", "memory_store", "--version", check=True)
    assert result.stdout.startswith("memory-store, version ")


DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"


def test_the_help_in_the_documentation_is_current() -> None:
    result = python("-m", "cogapp", "--check", str(DOCUMENT))
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_has_help_with_an_example(name: str) -> None:
    result = run(name, "--help")
    assert result.exit_code == 0
    assert f"memory-store {name} " in result.stdout.partition("\n\n")[2]


@pytest.mark.skipif(os.name != "posix", reason="descriptors are closed by a shell")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_a_search_works_where_the_caller_closed_an_input_or_an_output(
    make_store: Callable[..., MemoryStore], key_file: Path, closed: str
) -> None:
    store = make_store()
    store.add("The harbour freezes over", title="Ice")
    store.lock()
    words = [sys.executable, "-m", "memory_store", "search", str(store.path), "harbour"]
    done = ended("sh", "-c", f"{shlex.join([*words, '--key-file', str(key_file)])} {closed}")
    assert (done.returncode, "Ice" in done.stdout) == (0, closed != ">&-"), done.stderr
