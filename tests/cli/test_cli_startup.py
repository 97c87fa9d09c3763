"""What starting the command costs, counted in modules instead of milliseconds."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

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


def loaded_by(code: str) -> set[str]:
    """The heavy modules that are loaded after ``code`` ran in a fresh interpreter."""
    report = "import json, sys; print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    result = subprocess.run(
        [sys.executable, "-c", f"{code}\n{report}"], capture_output=True, text=True, check=True
    )
    return HEAVY & set(json.loads(result.stderr.splitlines()[-1]))


def test_help_loads_nothing_heavy() -> None:
    code = "from memory_store.cli import main\nmain(['--help'], standalone_mode=False)"
    assert loaded_by(code) == set()


@pytest.mark.parametrize("name", ["Memory", "MemoryDraft", "SearchOptions", "SearchResponse"])
def test_the_nouns_load_nothing_heavy(name: str) -> None:
    assert loaded_by(f"from memory_store import {name}") == set()


def test_the_control_notices_a_heavy_import() -> None:
    assert loaded_by("import numpy") == {"numpy"}


def test_every_public_name_can_be_imported() -> None:
    import memory_store

    for name in memory_store.__all__:
        assert getattr(memory_store, name).__name__ == name


def test_an_unknown_name_is_an_ordinary_import_error() -> None:
    with pytest.raises(ImportError, match="MemoryShop"):
        from memory_store import MemoryShop  # noqa: F401


def test_the_module_is_the_command() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "memory_store", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.startswith("memory-store, version ")
