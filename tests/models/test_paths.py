from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from memory_store.errors import BadInputError
from memory_store.paths import cache_folder, config_folder, state_folder

FOLDERS = [
    ("MEMORY_STORE_CACHE", "XDG_CACHE_HOME", cache_folder),
    ("MEMORY_STORE_CONFIG", "XDG_CONFIG_HOME", config_folder),
    ("MEMORY_STORE_STATE", "XDG_STATE_HOME", state_folder),
]


@pytest.mark.parametrize(("variable", "xdg", "folder"), FOLDERS)
def test_a_folder_is_the_chosen_one_or_the_systems_and_made_for_its_owner_alone(
    variable: str,
    xdg: str,
    folder: Callable[[], Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(variable, str(tmp_path / "a" / "b"))
    assert folder() == tmp_path / "a" / "b"
    assert folder().is_dir()
    if os.name == "posix":
        assert stat.S_IMODE(folder().stat().st_mode) == 0o700
        monkeypatch.delenv(variable, raising=False)
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv(xdg, str(tmp_path / "base"))
        assert folder().is_relative_to(tmp_path)
        assert folder().name == "memory-store"


@pytest.mark.skipif(os.name != "posix", reason="POSIX modes")
def test_a_folder_that_everybody_may_write_to_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    monkeypatch.setenv("MEMORY_STORE_CACHE", str(shared))
    with pytest.raises(BadInputError, match="every user") as caught:
        cache_folder()
    assert caught.value.parameter == "MEMORY_STORE_CACHE"
    shared.chmod(0o755)
    assert cache_folder() == shared


def test_a_file_where_the_folder_should_be_is_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("MEMORY_STORE_STATE", str(tmp_path / "file"))
    with pytest.raises(BadInputError, match="cannot be used") as caught:
        state_folder()
    assert caught.value.parameter == "MEMORY_STORE_STATE"
