"""This installation: versions, libraries, folders, the network, and where a key comes from.

Boundary: shows paths, versions and names of variables, never what a variable holds of a key.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from memory_store.errors import BadInputError, MemoryStoreError

State = Literal["ok", "missing", "off"]


class Check(Struct, frozen=True):
    """One line of the report. ``missing`` degrades the search; ``off`` is a choice or an extra.

    ``effect`` says what does not work, ``remedy`` is a command; both are empty when all is well.
    """

    name: str
    state: State
    detail: str
    effect: str = ""
    remedy: str = ""


def versions() -> Check:
    """Of Python and of the packages that come together here."""
    packages = ("datasette-hybrid", "datasette", "sqlite-utils")
    listed = [f"{name} {metadata.version(name)}" for name in packages if _installed(name)]
    return Check("versions", "ok", f"Python {platform.python_version()}, {', '.join(listed)}")


def sqlite() -> Check:
    """Which SQLite, and through which module."""
    from memory_store.sqlite import sqlite3

    return Check("sqlite", "ok", f"SQLite {sqlite3.sqlite_version} through {sqlite3.__name__}")


def extension() -> Check:
    """Whether sqlite-vec loads into a connection, and by which of the ways."""
    from memory_store.sqlite import ExtensionUnavailable, connect_with_vec

    try:
        connection, how = connect_with_vec()
    except ExtensionUnavailable as error:
        return Check(
            "sqlite-vec",
            "off",
            str(error),
            "vectors are searched with NumPy; no vec_* functions in SQL",
            "pip install pysqlite3-binary",
        )
    try:
        (version,) = connection.execute("select vec_version()").fetchone()
    finally:
        connection.close()
    return Check("sqlite-vec", "ok", f"{version}, loaded through {how}")


def table_function() -> Check:
    """Whether SQL may select from ``hybrid_search()``, and if not, why."""
    from memory_store.sql.table_function import why_unavailable
    from memory_store.sqlite import sqlite3

    reason = why_unavailable(sqlite3)
    if reason is None:
        return Check("table function", "ok", "select * from hybrid_search('…')")
    return Check(
        "table function",
        "off",
        reason,
        "hybrid_search('…') only as a value: select … from json_each(hybrid_search('…'))",
        "pip install pysqlite3-binary",
    )


def libraries() -> list[Check]:
    """What the package depends on, for broken environments."""
    wanted = {
        "fastembed": "no embedding of text",
        "flashrank": "no reranking",
        "numpy": "no search at all",
        "py3langid": "every text is taken for English",
        "PyStemmer": "words match only as they are spelled",
        "google-re2": "no literal mode",
        "PyYAML": "no front matter on import",
        "semantic-text-splitter": "no import of long texts",
    }
    return [
        Check("library", "missing", f"{name} is not installed", effect, f"pip install {name}")
        for name, effect in wanted.items()
        if not _installed(name)
    ] or [Check("libraries", "ok", f"{len(wanted)} of {len(wanted)} installed")]


EXTRAS = {
    "keyring": (("keyring",), "no key in the operating system's keyring"),
    "documents": (
        ("bs4", "defusedxml", "mammoth", "markdownify", "pptx", "pypdfium2", "python_calamine"),
        "import leaves out PDF, Office files, web pages, books and mail",
    ),
    "code": (
        ("ast_grep_py", "pygments", "semble_grammars", "tree_sitter"),
        "code is cut by lines, and no search by structure",
    ),
    "watch": (("watchfiles",), "no memory-store watch"),
    "interactive": (("prompt_toolkit",), "no results while you type (search -i)"),
    "llm": (("llm",), "no query expansion by a language model, no answers (ask)"),
    "mcp": (("mcp",), "no server for assistants (memory-store mcp)"),
    "postgres": (("psycopg",), "no vault on a PostgreSQL server"),
    "shards": (("grpc",), "no vault whose index several machines hold"),
}
"""Extra → what it brings (by the names they are imported by), and what is missing without it."""


def extras() -> list[Check]:
    """What is installed only where you asked for it."""
    checks = []
    for name, (packages, effect) in EXTRAS.items():
        lacking = [one for one in packages if find_spec(one) is None]
        if lacking:
            said = "not installed" if len(lacking) == len(packages) else f"without {lacking[0]}"
            mend = f"pip install 'datasette-hybrid[{name}]'"
            checks.append(Check(name, "off", said, effect, mend))
        else:
            checks.append(Check(name, "ok", "installed"))
    return checks


def folders() -> list[Check]:
    """Where models, settings and state lie, if they can."""
    from memory_store import paths

    unnoticed = "an older file put in the place of a newer one is not noticed"
    places: tuple[tuple[str, Callable[[], str], str], ...] = (
        ("cache folder", lambda: _usable(paths.cache_folder(make=False)), "no models"),
        ("configuration", _configuration, "no settings"),
        ("state folder", lambda: _usable(paths.state_folder(make=False)), unnoticed),
    )
    checks = []
    for name, find, effect in places:
        try:
            checks.append(Check(name, "ok", find()))
        except MemoryStoreError as error:
            checks.append(Check(name, "missing", str(error), effect, "see the message"))
    return checks


def _usable(folder: Path) -> str:
    """The folder, if files can be kept in it, or it can be made. Makes nothing."""
    nearest = next(place for place in (folder, *folder.parents) if place.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        raise BadInputError(f"{folder} cannot be used: nothing can be written in {nearest}")
    return str(folder) if nearest == folder else f"{folder} (made when it is needed)"


def network() -> Check:
    """Whether models may be fetched, by the one command that does."""
    from memory_store.models.hub import OFFLINE_VARIABLES, network_allowed

    if network_allowed():
        return Check("network", "ok", "used by memory-store models get alone, when you run it")
    names = [name for name in OFFLINE_VARIABLES if os.environ.get(name)]
    return Check("network", "off", f"switched off by {' and '.join(names)}")


def _configuration() -> str:
    """The folder of settings, and which of them ``config.yaml`` says there."""
    from memory_store.configuration import config_file, settings

    said = ", ".join(settings())
    return f"{config_file().parent} ({config_file().name}: {said or 'nothing'})"


def keepers() -> list[Check]:
    """Which vaults ``unlock`` keeps open, by which processes, and until when."""
    from memory_store.keeper import address, client

    name = "kept open"
    if not address.SUPPORTED:
        return [Check(name, "off", address.NOT_HERE)]
    try:
        found = address.sockets()
    except OSError as error:
        detail = f"{error.filename or address.RUNTIME_VARIABLE} {error.strerror}"
        effect = "unlock cannot keep a vault open"
        return [Check(name, "missing", detail, effect, f"chmod 700 {error.filename or 'it'}")]
    checks = []
    for path in found:
        connection = client.connected_to(path)
        if connection is not None:
            with connection:
                status = client.ask(connection, "status")
            checks.append(_kept_open(name, path, status))
    return checks or [Check(name, "ok", "no vault: see memory-store unlock")]


def _kept_open(name: str, socket: str, status: dict[str, Any] | None) -> Check:
    if status is None:
        effect = "commands wait for it, and then open the vault themselves"
        return Check(name, "missing", f"{socket} does not answer", effect, f"rm {socket}")
    vault = os.fsdecode(status["vault"].encode("latin-1"))
    idle, limit, left = (status[one] / 60 for one in ("idle", "idle_limit", "left"))
    detail = (
        f"{vault}, by process {status['process']}, last asked {idle:.0f} min ago; locked after "
        f"{limit:.0f} min without a question, or in {left / 60:.1f} h"
    )
    if status["older"]:
        effect = "it runs another version: commands open the vault themselves"
        return Check(name, "missing", detail, effect, f"memory-store unlock {vault}")
    return Check(name, "ok", detail)


def key_source(key_file: Path | None = None, *, asked: bool = False) -> Check:
    """The first key that is given: a file, a prompt (``asked``), or what the environment has.

    Where it does not fit, the vault is opened with the next (:mod:`memory_store.unlocking`).
    """
    from memory_store.configuration import chosen
    from memory_store.key_lookup import PASSPHRASE_VARIABLE
    from memory_store.paths import KEY_FILE_VARIABLE

    named = chosen(KEY_FILE_VARIABLE)
    given = {
        f"--key-file names {key_file}": key_file is not None,
        f"a passphrase, from {PASSPHRASE_VARIABLE} or asked for": asked,
        f"{KEY_FILE_VARIABLE} names {named}": bool(named),
        f"{PASSPHRASE_VARIABLE} is set": bool(os.environ.get(PASSPHRASE_VARIABLE)),
    }
    first = next((words for words, is_given in given.items() if is_given), None)
    if first is not None:
        return Check("first key given", "ok", first)
    nothing = "none in the environment; given or asked for at each command"
    return Check("first key given", "off", nothing)


def _installed(package: str) -> bool:
    """Whether a distribution of that name is installed."""
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return False
    return True
