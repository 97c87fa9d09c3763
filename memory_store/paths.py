"""Where the package keeps its files on each system: cache (models), configuration, state.

Boundary: these folders never hold note text, and one kind of key alone: device keys, which open
nothing without a passphrase (``vault/device_keys.py``). They are made readable by their owner
alone (mode 0700), and a folder that every account may write to is refused: an account that can
replace a model file there decides what every search returns.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from contextvars import ContextVar
from functools import lru_cache
from pathlib import Path

from memory_store.errors import BadInputError

APPLICATION = "memory-store"
HOMES = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
DB_VARIABLE = "MEMORY_STORE_DB"
KEY_FILE_VARIABLE = "MEMORY_STORE_KEY_FILE"
MODEL_VARIABLE = "MEMORY_STORE_MODEL"
RERANKER_VARIABLE = "MEMORY_STORE_RERANKER"
EXPANDER_VARIABLE = "MEMORY_STORE_EXPANDER"
OPEN_VARIABLE = "MEMORY_STORE_OPEN_WITH"
SHARDS_VARIABLE = "MEMORY_STORE_SHARDS"
MIRROR_VARIABLE = "MEMORY_STORE_MIRROR"
CONFIG_FILE = "config.yaml"
DEFAULT_NAME = "memories.db"

named_as: ContextVar[Path | None] = ContextVar("named_as", default=None)
"""What a vault is called by a command that another process does."""


def cache_folder(*, make: bool = True) -> Path:
    """What can be had again at a cost: models. ``MEMORY_STORE_CACHE`` overrides the place.

    ``make=False`` is for looking into it alone: it may not be there.
    Raises :class:`BadInputError` naming the variable when the folder cannot be made or trusted.
    """
    return _private_folder("MEMORY_STORE_CACHE", "cache", make)


def config_folder(*, make: bool = True) -> Path:
    """What the user chose. ``MEMORY_STORE_CONFIG`` overrides the place; raises as above."""
    return _private_folder("MEMORY_STORE_CONFIG", "config", make)


def data_folder(*, make: bool = True) -> Path:
    """Your default vault. ``MEMORY_STORE_DATA`` overrides the place; raises as above."""
    return _private_folder("MEMORY_STORE_DATA", "data", make)


def state_folder(*, make: bool = True) -> Path:
    """What must outlive a run: device keys, and the last counter of each vault.

    ``MEMORY_STORE_STATE`` overrides the place. Raises as :func:`cache_folder` does.
    """
    return _private_folder("MEMORY_STORE_STATE", "state", make)


def home_path(given: str | Path) -> Path:
    """A path with its ``~`` as a home folder; as it is where no account has that name.

    Never raises, as ``Path.expanduser`` does for ``~nobody`` and for names that no system takes.
    """
    try:
        return Path(given).expanduser()
    except (RuntimeError, ValueError):
        return Path(given)


def real_path(given: str | Path) -> Path:
    """A path with its ``~`` and its links followed, absolute.

    Links that lead to one another are left as they are, where ``Path.resolve`` raises before 3.13.
    """
    return Path(os.path.realpath(home_path(given)))


def make_private_file(file: Path, content: bytes, what: str) -> None:
    """Write a new file that its owner alone can read, in folders made like it.

    Raises BadInputError, which calls it ``what``, where it exists or cannot be written.
    """
    made = [folder for folder in file.absolute().parents if not folder.exists()]
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # O_EXCL: never write a key through a link that another account placed here in the meantime
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise BadInputError(f"{what} {file}: {error.strerror}", what.replace(" ", "-")) from error
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(content)
            out.flush()
            os.fsync(out.fileno())
    except OSError as error:  # half a key is none, and would be in the way
        file.unlink()
        raise BadInputError(f"{what} {file}: {error.strerror}", what.replace(" ", "-")) from error
    for folder in (file.parent, *(one.parent for one in made)):
        keep_names(folder)


def keep_names(folder: Path) -> None:
    """Wait until the names of a folder's files are on the disk, too: before that, what is sealed
    with a new key could outlive a power cut that its key does not."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # of a file system that knows no such wish, as SQLite has it
            os.fsync(handle)
    finally:
        os.close(handle)


def replace_file(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Write a file whole, for its owner alone, in the place of one that may be read meanwhile."""
    import tempfile  # late: it takes longer than a look at a path

    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())  # or a power cut leaves an empty file under the name
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise


def file_of(source: str | None, ref: str | None) -> str:
    """The path that a memory came from: of a folder the file in it. It may be gone."""
    path = source or ""
    return os.path.join(path, ref) if ref and os.path.isdir(path) else path


def _private_folder(variable: str, kind: str, make: bool = True) -> Path:
    chosen = os.environ.get(variable)
    folder = home_path(chosen).absolute() if chosen else _usual(kind, *map(os.environ.get, HOMES))
    try:
        if make:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = folder.stat().st_mode
    except OSError as error:
        if isinstance(error, FileNotFoundError | NotADirectoryError) and not make:
            return folder
        raise BadInputError(
            f"The folder {folder} cannot be used: {error.strerror}. "
            f"Set {variable} to a folder of your own.",
            variable,
        ) from error
    if os.name == "posix" and mode & stat.S_IWOTH:
        raise BadInputError(
            f"The folder {folder} can be written by every user of this machine. "
            f"Set {variable} to a folder of your own.",
            variable,
        )
    return folder


@lru_cache(maxsize=16)
def _usual(kind: str, *homes: str | None) -> Path:
    """Where programs keep such files here, as :data:`HOMES` say. A search asks six times."""
    from platformdirs import PlatformDirs  # late: --help keeps no files

    found: Path = getattr(PlatformDirs(APPLICATION, appauthor=False), f"user_{kind}_path")
    return found
