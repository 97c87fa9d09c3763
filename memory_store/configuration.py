"""Your settings on this machine: ``config.yaml`` in the configuration folder.

Boundary: holds paths and names, never a key or a passphrase; what it does not know it refuses. The
environment comes before it, and an option of a command before both.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from memory_store.addresses import is_address, vault_path
from memory_store.errors import BadInputError, SettingsError
from memory_store.paths import (
    CONFIG_FILE,
    DB_VARIABLE,
    DEFAULT_NAME,
    EXPANDER_VARIABLE,
    KEY_FILE_VARIABLE,
    MIRROR_VARIABLE,
    MODEL_VARIABLE,
    OPEN_VARIABLE,
    RERANKER_VARIABLE,
    SHARDS_VARIABLE,
    config_folder,
    data_folder,
    home_path,
    named_as,
    replace_file,
)

VARIABLES = {
    "vault": DB_VARIABLE,
    "key-file": KEY_FILE_VARIABLE,
    "model": MODEL_VARIABLE,
    "reranker": RERANKER_VARIABLE,
    "expander": EXPANDER_VARIABLE,
    "open-with": OPEN_VARIABLE,
    "shards": SHARDS_VARIABLE,
    "mirror": MIRROR_VARIABLE,
}
"""A setting of the file, and the variable that comes before it."""
SEARCH = "search"  # the section whose entries are options of the command
PATHS = ("vault", "key-file", "shards")  # a ~ in them is your home folder
MOST_BYTES = 65_536
_OF_VARIABLE = {variable: name for name, variable in VARIABLES.items()}


def chosen(variable: str) -> str | None:
    """What the environment variable says, else its setting in ``config.yaml``; else ``None``.

    Raises BadInputError where the file cannot be understood.
    """
    return os.environ.get(variable) or settings().get(_OF_VARIABLE[variable])


OPENERS = {
    "obsidian": "obsidian://open?path={absolute}",
    "vscode": "vscode://file/{path}",
    "vscodium": "vscodium://file/{path}",
    "cursor": "cursor://file/{path}",
    "zed": "zed://file/{path}",
}
"""Programs that open a file of this machine by a link from a web page, and their links:
``{absolute}`` is its path, ``{path}`` the same without a first slash."""


def opener(folder: Path) -> str | None:
    """The link of :data:`OPENERS` that opens a file of a folder; ``None``: none is known.

    ``MEMORY_STORE_OPEN_WITH`` or ``open-with`` name the program; a vault of Obsidian has its own.
    Raises BadInputError for a program that is not known.
    """
    named = chosen(OPEN_VARIABLE)
    if not named:
        return OPENERS["obsidian"] if (folder / ".obsidian").is_dir() else None
    if named not in OPENERS:
        raise BadInputError(f"open-with: {named!r}: there are {', '.join(OPENERS)}", "open-with")
    return OPENERS[named]


def default_vault(*, make: bool = False) -> Path:
    """The vault that is meant where none is named. It may not be there yet; ``make`` its folder.

    ``MEMORY_STORE_DB`` names it, else ``vault`` in ``config.yaml``, else it is ``memories.db`` in
    the data folder.
    """
    named = chosen(DB_VARIABLE)
    return vault_path(named, home_path) if named else data_folder(make=make) / DEFAULT_NAME


def typed_vault(vault: Path) -> str:
    """A blank and the vault, as one types it behind a command; empty where it may be left out."""
    named = named_as.get() or vault
    with contextlib.suppress(BadInputError):  # nothing can be left out where the usual is unknown
        usual = default_vault()
        if usual in (named, vault) or (not is_address(usual) and usual.resolve() == vault):
            return ""
    return f" {shlex.quote(str(named))}"


def choose(name: str, value: str) -> Path:
    """Set a setting whose value is a text; everything else in the file stays as it is.

    Returns the file. Raises BadInputError where the setting is written in a way that takes more
    than a line, and as :func:`chosen`.
    """
    import yaml

    before, file = settings(), config_folder() / CONFIG_FILE
    lines = file.read_text("utf-8").splitlines() if before or file.exists() else []
    kept = [line for line in lines if not re.match(rf"{re.escape(name)}\s*:", line)]
    line = yaml.safe_dump({name: value}, allow_unicode=True).strip()
    content = "\n".join([*kept, line]) + "\n"
    try:
        after = yaml.safe_load(content)
    except yaml.YAMLError:
        after = None
    if not isinstance(after, dict) or after.keys() != {*before, name} or after[name] != value:
        raise SettingsError(file, f": write the line {line} into it yourself")
    replace_file(file, content.encode())
    return file


def settings() -> Mapping[str, Any]:
    """Every setting of the file by name; empty without a file. Raises as :func:`chosen`."""
    file = config_file()
    try:
        state = file.stat()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SettingsError(file, f": {error.strerror}") from None
    return _read(file, state.st_mtime_ns, state.st_size)


def config_file() -> Path:
    """Where the file is, or would be."""
    return config_folder(make=False) / CONFIG_FILE


@lru_cache(maxsize=4)
def _read(file: Path, changed: int, size: int) -> Mapping[str, Any]:
    import yaml  # late: few have such a file

    if size > MOST_BYTES:
        raise SettingsError(file, f": larger than {MOST_BYTES:,} bytes")
    try:
        found = yaml.safe_load(file.read_text("utf-8")) or {}
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark else ""
        said = error.problem or error.context or "not YAML"
        raise SettingsError(file, f"{line}: not YAML: {said}") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        said = " ".join(str(getattr(error, "strerror", error)).split())
        raise SettingsError(file, f": not YAML ({said})") from None
    if not isinstance(found, dict):
        raise SettingsError(file, ": expected lines of NAME: VALUE")
    return {name: _checked(file, name, value) for name, value in found.items()}


def _checked(file: Path, name: object, value: object) -> Any:
    if name == SEARCH:
        if isinstance(value, dict) and all(isinstance(key, str) for key in value):
            return value
        raise SettingsError(file, f": {SEARCH}: expected lines of OPTION: VALUE", SEARCH)
    if name not in VARIABLES:
        raise SettingsError(file, f": {name!r} is no setting. {_instead(name)}")
    if not isinstance(value, str) or not value:
        raise SettingsError(file, f": {name}: expected a text", str(name))
    return str(home_path(value)) if name in PATHS and not is_address(value) else value


def _instead(name: object) -> str:
    """All settings, where an option of a search belongs, and which setting may be meant."""
    from difflib import get_close_matches

    known = [*VARIABLES, SEARCH]
    near = get_close_matches(str(name), known, cutoff=0.5)
    meant = f". Did you mean {near[0]}?" if near else ""
    below = f"Options of a search stand under {SEARCH}, such as {SEARCH}: {{mode: keyword}}"
    return f"{below}. There are {', '.join(known)}{meant}"
