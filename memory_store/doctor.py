"""What is installed, loaded or missing, what that switches off, and the command that mends it.

Boundary: looks, and changes nothing: no download, no model built, no write. Paths and versions
are shown, never a key, a passphrase, or anything from a memory.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from memory_store.records import MemoryStoreError, ModelUnavailableError

if TYPE_CHECKING:
    from memory_store.records import CollectionInfo
    from memory_store.store import MemoryStore

State = Literal["ok", "missing", "off"]


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report. ``missing`` degrades the search; ``off`` is a choice or an extra.

    ``effect`` says what does not work, ``remedy`` is a command; both are empty when all is well.
    """

    name: str
    state: State
    detail: str
    effect: str = ""
    remedy: str = ""


def examine(path: str | Path | None, store: MemoryStore | None = None) -> list[Check]:
    """Every check that can be made: of this installation, of the file, and of the opened vault."""
    checks = [_versions(), _sqlite(), _extension()]
    checks += [_embedding_model(store), _reranking_model(), *_libraries(), *_extras(), _expander()]
    checks += [*_folders(), _network(), _key_source()]
    if path is not None:
        checks += _vault(Path(path), store)
    return checks


def _versions() -> Check:
    packages = ("datasette-hybrid", "datasette", "sqlite-utils")
    listed = [f"{name} {metadata.version(name)}" for name in packages if _installed(name)]
    return Check("versions", "ok", f"Python {platform.python_version()}, {', '.join(listed)}")


def _sqlite() -> Check:
    from memory_store.sqlite import sqlite3

    return Check("sqlite", "ok", f"SQLite {sqlite3.sqlite_version} through {sqlite3.__name__}")


def _extension() -> Check:
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


def _embedding_model(store: MemoryStore | None) -> Check:
    """The vault's own model when a vault is open, else the one that would be used."""
    from memory_store.models.embedder import DEFAULT_MODEL, REMEDY, locate_embedder
    from memory_store.models.offline import can_build

    effect = "no search by meaning; keywords and topics go on"
    kept = None if store is None else store.stats()["model"]
    name = kept or os.environ.get("MEMORY_STORE_MODEL") or DEFAULT_MODEL
    try:
        place = locate_embedder(name)  # before it is loaded: loading may build or fetch it
    except ModelUnavailableError as error:
        remedy = "set MEMORY_STORE_MODEL to a model's name, or the folder of a complete model"
        return Check("embedding model", "missing", str(error), effect, remedy)
    if place is not None:
        state = None if store is None else store.model_state()
        if store is not None and state is not None and state.degraded:
            remedy = f"memory-store reindex {store.path}"
            return Check("embedding model", "missing", "; ".join(state.degraded), effect, remedy)
        return Check("embedding model", "ok", f"{place.name} in {place.folder}")
    if name == DEFAULT_MODEL and can_build():
        return Check("embedding model", "ok", f"{name}, built from installed weights at first use")
    return Check("embedding model", "missing", f"{name} is not on this machine", effect, REMEDY)


def _reranking_model() -> Check:
    from memory_store.models.maxsim import asks_for_maxsim
    from memory_store.models.reranker import DEFAULT_RERANKER, locate_reranker

    effect = "results keep the order of the fusion, scores stay at 70 or below"
    if asks_for_maxsim(None):
        return Check("reranking model", "ok", "maxsim: late interaction by the embedding model")
    try:
        folder = locate_reranker()
        calibration = "" if folder is None else _calibration(folder)
    except ModelUnavailableError as error:
        remedy = "set MEMORY_STORE_RERANKER to the folder of a complete model"
        return Check("reranking model", "missing", str(error), effect, remedy)
    if folder is not None:
        return Check("reranking model", "ok", f"{folder.name} in {folder}, {calibration}")
    name = os.environ.get("MEMORY_STORE_RERANKER") or DEFAULT_RERANKER
    return Check(
        "reranking model",
        "missing",
        f"{name} is not on this machine",
        effect,
        f"python -m memory_store.models {name}",
    )


def _calibration(folder: Path) -> str:
    """Where the meaning of a reranker's scores comes from."""
    from memory_store.models.calibration import CALIBRATIONS, fitted_for
    from memory_store.models.reranker import fingerprint

    for fitted in fitted_for(folder.name):
        if fitted.fingerprint == fingerprint(folder):
            return f"calibrated with {fitted.pairs:,} pairs of yours on {fitted.fitted}"
    if folder.name in CALIBRATIONS:
        return "calibrated"
    return "not calibrated: scores without bands (memory-store calibrate)"


def _libraries() -> list[Check]:
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


def _extras() -> list[Check]:
    wanted = (
        ("keyring", "keyring", "no key in the operating system's keyring"),
        ("llm", "llm", "no query expansion by a language model, no answers (ask)"),
    )
    return [
        Check(name, "ok", f"{name} {metadata.version(package)}")
        if find_spec(name) is not None and _installed(package)
        else Check(name, "off", "not installed", effect, f"pip install {package}")
        for name, package, effect in wanted
    ]


def _expander() -> Check:
    """Whether a language model is chosen that queries are sent to. It is not loaded or asked."""
    from memory_store.models.expander import VARIABLE, chosen_expander

    model = chosen_expander(None)
    if model is None:
        return Check("query expansion", "off", f"{VARIABLE} names no language model")
    if find_spec("llm") is None:
        effect = f"{model} is never asked; the words of a query are searched for as they are"
        remedy = "pip install 'datasette-hybrid[llm]'"
        return Check("query expansion", "missing", "llm is not installed", effect, remedy)
    return Check("query expansion", "ok", f"queries are sent to {model}, as {VARIABLE} says")


def _folders() -> list[Check]:
    from memory_store import paths

    return [
        _folder("cache folder", paths.cache_folder, "no models"),
        _folder("configuration", paths.config_folder, "no settings"),
        _folder(
            "state folder",
            paths.state_folder,
            "an older file put in the place of a newer one is not noticed",
        ),
    ]


def _folder(name: str, find: Callable[[], Path], effect: str) -> Check:
    try:
        return Check(name, "ok", str(find()))
    except MemoryStoreError as error:
        return Check(name, "missing", str(error), effect, "see the message")


def _network() -> Check:
    from memory_store.models.fetching import OFFLINE_VARIABLES, network_allowed

    if network_allowed():
        return Check("network", "ok", "asked for model files only, when a named model is absent")
    names = [name for name in OFFLINE_VARIABLES if os.environ.get(name)]
    return Check("network", "off", f"switched off by {' and '.join(names)}")


def _key_source() -> Check:
    from memory_store.unlocking import KEY_FILE_VARIABLE, PASSPHRASE_VARIABLE

    named = os.environ.get(KEY_FILE_VARIABLE)
    if named:
        return Check("key", "ok", f"{KEY_FILE_VARIABLE} names {named}")
    if os.environ.get(PASSPHRASE_VARIABLE):
        return Check("key", "ok", f"{PASSPHRASE_VARIABLE} is set")
    return Check("key", "off", "none in the environment; given or asked for at each command")


def _vault(path: Path, store: MemoryStore | None) -> list[Check]:
    """The file, and the opened store behind it when there is one."""
    from memory_store.vault.schema import check_is_vault

    try:
        check_is_vault(path)
    except MemoryStoreError as error:
        return [Check("vault", "missing", str(error), "nothing to search", _make(path))]
    checks = [Check("vault", "ok", str(path.resolve())), _file_mode(path)]
    if store is None:
        return [
            *checks,
            Check("unlocked", "missing", "no key fits", "no search", "give --key-file PATH"),
        ]
    return [*checks, *_opened(path, store)]


def _make(path: Path) -> str:
    return f"memory-store init {path}" if not path.exists() else ""


def _file_mode(path: Path) -> Check:
    mode = path.stat().st_mode & 0o777
    if os.name == "posix" and mode & 0o022:
        return Check(
            "file mode",
            "missing",
            f"{mode:04o}: others may write to the vault",
            "changes are detected, destruction is not prevented",
            f"chmod go-w {path}",
        )
    return Check("file mode", "ok", f"{mode:04o}")


def _opened(path: Path, store: MemoryStore) -> list[Check]:
    stats = store.stats()
    memories, vectors = stats["memories"], stats["vectors"]
    counted = (
        f"{store.profile} profile, memories: {memories:,}, collections: {stats['collections']:,}"
    )
    checks = [
        Check("unlocked", "ok", counted),
        Check("vector index", "ok", str(stats["vector_index"])),
        *_environment_model(stats["model"], path),
        *_collections(store),
    ]
    if vectors < memories:
        lacking = "no memory has" if not vectors else "some memories have not"
        effect = "not found by meaning"
        remedy = f"memory-store reindex {path}"
        checks.append(Check("vectors", "missing", f"{lacking} been embedded", effect, remedy))
    elif memories:
        checks.append(Check("vectors", "ok", f"{vectors:,}, made with {stats['model']}"))
    else:
        checks.append(Check("vectors", "ok", "none needed yet"))
    return checks


def _environment_model(kept: str | None, path: Path) -> list[Check]:
    """Whether the environment names another model than this vault's vectors come from."""
    from memory_store.models.embedder import MODEL_VARIABLE, locate_embedder

    named = os.environ.get(MODEL_VARIABLE)
    if not named or not kept:
        return []
    try:
        place = locate_embedder(named)
    except ModelUnavailableError:
        place = None
    name = place.name if place is not None else named
    if name == kept:
        return []
    return [
        Check(
            "environment",
            "off",
            f"{MODEL_VARIABLE} names {name}; the vectors of this vault come from {kept}",
            f"{kept} is used; reindex would make {name} the vault's model",
            f"unset {MODEL_VARIABLE}, or memory-store reindex {path}",
        )
    ]


def _collections(store: MemoryStore) -> list[Check]:
    """Each collection's model and analyser, whether the model loads, and what is stale."""
    stale = store.stale()
    return [_collection(store, info, stale.get(info.name, 0)) for info in store.collections()]


def _collection(store: MemoryStore, info: CollectionInfo, stale: int) -> Check:
    name = f"collection {info.name}"
    model = info.embedder or "none yet"
    whose = "its own" if info.own_model else "the vault's"
    detail = f"analyser {info.analyser}, model {model} ({whose}), memories: {info.memories:,}"
    if info.own_model and (missing := _missing_model(store, info)):
        effect = "this collection is not searched by meaning"
        remedy = f"set MEMORY_STORE_MODEL to the folder of {model}, or copy it into models/"
        return Check(name, "missing", f"{detail}; {missing}", effect, remedy)
    if stale:
        effect = f"{stale:,} of its memories are indexed with earlier settings"
        remedy = f"memory-store reindex {store.path}"
        return Check(name, "missing", detail, effect, remedy)
    return Check(name, "ok", detail)


def _missing_model(store: MemoryStore, info: CollectionInfo) -> str:
    """Why a collection's own model does not load; empty when it does."""
    from memory_store.models.embedder import DEFAULT_MODEL, locate_embedder
    from memory_store.models.offline import can_build

    wanted = store.embedder_name(info.id)
    try:
        place = locate_embedder(wanted)  # before it is loaded: loading may build or fetch it
    except ModelUnavailableError as error:
        return str(error)
    if place is None:
        buildable = wanted == DEFAULT_MODEL and can_build()
        return "" if buildable else f"{wanted} is not on this machine"
    return "; ".join(store.model_state(info.id).degraded)


def _installed(package: str) -> bool:
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return False
    return True
