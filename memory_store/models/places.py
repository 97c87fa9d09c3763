"""Where an embedding model is on this machine, and whether it is the one it should be.

Boundary: looks at names and files, loads nothing and opens no connection. A folder of your own
that you name is taken as it is; the files of a model in our cache folder must be those that are
pinned or recorded (:mod:`memory_store.models.pins`).
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from memory_store.configuration import chosen
from memory_store.errors import ModelUnavailableError
from memory_store.models import offline, pins
from memory_store.models.presets import PRESETS
from memory_store.paths import MODEL_VARIABLE, cache_folder, home_path

DEFAULT_MODEL = offline.MODEL_NAME
MULTILINGUAL = offline.MULTILINGUAL
MULTILINGUAL_COMMAND = f"{pins.COMMAND} multilingual"
SHORT = {one.name: one.embedder for one in PRESETS}  # names that are easier to type
DOCTOR = "memory-store doctor DB"
STATIC_FILES = ("model.safetensors", "tokenizer.json", "config.json")  # in Model2Vec's format
MODEL_NAME_FORM = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(/[A-Za-z0-9][\w.-]{0,95})?")


class ModelPlace(Struct, frozen=True):
    """Where a model's files are: ``folder`` and, in it, the ``file`` of the graph, or of vectors.

    ``registered`` is FastEmbed's name for it; ``None`` for a folder FastEmbed has not heard of.
    ``ours`` is a folder in our cache, whose files have to be those that are pinned or recorded.
    """

    name: str
    folder: Path
    file: str = "model.onnx"
    registered: str | None = None
    ours: bool = False

    @property
    def is_static(self) -> bool:
        """Whether it holds a vector for each token, and no graph."""
        return self.file == STATIC_FILES[0]


def locate_embedder(name_or_folder: str | None = None) -> ModelPlace | None:
    """Where :func:`load_embedder` finds the model without building or fetching it, else ``None``.

    A model loaded from a folder is known by the folder's name: that name alone is enough where
    ``MEMORY_STORE_MODEL`` holds the folder. Loads nothing. Raises
    :class:`ModelUnavailableError` for what is neither name nor folder.
    """
    asked = chosen_embedder(name_or_folder)
    given = _in_folder(asked)
    if given is not None:
        return given
    if MODEL_NAME_FORM.fullmatch(asked) is None:
        raise ModelUnavailableError(f"There is no model folder {asked!r} on this machine.", DOCTOR)
    cached = cached_embedder(asked)
    if cached is not None:
        return cached
    chosen = _in_folder(chosen_embedder(None))
    return chosen if chosen is not None and chosen.name == asked else None


def _in_folder(asked: str) -> ModelPlace | None:
    folder = home_path(asked)
    if asked == DEFAULT_MODEL or not os.path.isdir(folder):  # unlike is_dir, takes any name
        return None
    folder = folder.resolve()
    flat, nested, static = "model.onnx", "onnx/model.onnx", STATIC_FILES[0]
    graph = next((one for one in (flat, nested) if (folder / one).is_file()), None)
    if _says_static(folder) or (graph is None and (folder / static).is_file()):
        graph = static
    return ModelPlace(folder.name, folder, graph or nested)


def _says_static(folder: Path) -> bool:
    """Whether a model with a graph, too, is one of Model2Vec: that graph is none for FastEmbed."""
    try:
        said = json.loads((folder / STATIC_FILES[2]).read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(said, dict) and said.get("model_type") == "model2vec"


def chosen_embedder(name_or_folder: str | None) -> str:
    """What was asked for, else what the environment says, else the default."""
    asked = name_or_folder or chosen(MODEL_VARIABLE) or DEFAULT_MODEL
    return asked if asked not in SHORT or _is_a_folder(asked) else SHORT[asked]


def _is_a_folder(asked: str) -> bool:
    """Whether a short name is that of a folder: here, in our cache, or where the variable says."""
    named = chosen(MODEL_VARIABLE) or ""
    folders = (home_path(asked), cache_folder(make=False) / "models" / asked, home_path(named))
    return any(folder.name == asked and folder.is_dir() for folder in folders)


def cached_embedder(asked: str) -> ModelPlace | None:
    """The model of that name in our cache folder, also where FastEmbed itself has put it."""
    models = cache_folder(make=False) / "models"
    known = pins.recorded(asked) or pins.known_model(asked)
    if known is None or not pins.accepted(asked):
        named = ModelPlace(asked, models / asked)  # a folder of your own, put there by hand
        there = "/" not in asked and (named.folder / named.file).is_file()
        return named if there else None  # with one it is a model of a hub, and has a pin or record
    for folder in (models / known.name, _snapshot(models, known.repository)):
        if folder is not None and (folder / known.graph).is_file():
            return ModelPlace(
                known.name, folder, known.graph, registered=_by_name(known.name), ours=True
            )
    return None


def _by_name(name: str) -> str | None:
    """The name where FastEmbed knows it; of those that are built here it knows one."""
    return None if name == MULTILINGUAL else name


def _snapshot(models: Path, repository: str) -> Path | None:
    """Where FastEmbed's own download, which is not used any more, has put a repository's files."""
    wanted = f"models--{repository.replace('/', '--')}".lower()
    for folder in models.glob("models--*"):
        main = folder / "refs" / "main"
        if folder.name.lower() == wanted and main.is_file():
            return folder / "snapshots" / main.read_text("utf-8").strip()
    return None


def build_known(name: str, source: Path | None = None) -> ModelPlace:
    """A model that comes as a package of weights, which is pinned, built from the installed one or
    from the folder ``source``."""
    known, package = offline.pinned_package(name)
    folder = offline.build_model(cache_folder() / "models" / known.name, known.name, source=source)
    digests = pins.digests_of(folder, [file.name for file in package.built])
    if digests not in pins.accepted(name):  # another onnx wrote the same graph otherwise
        files = [pins.PinnedFile(file, digest) for file, digest in digests.items()]
        pins.keep_record(replace(known, repository=package.name), pins.BUILT, files)
    return ModelPlace(known.name, folder, known.graph, registered=_by_name(known.name), ours=True)


def check_place(place: ModelPlace) -> dict[str, str]:
    """The SHA-256 of a model's files, as far as they are known or recorded.

    Raises :class:`ModelUnavailableError` where the files in our cache are others.
    """
    return pins.check_files(place.name, place.folder, command_for(place.name)) if place.ours else {}


def command_for(name: str) -> str:
    """The command that puts the model ``name`` on this machine."""
    if name == MULTILINGUAL:
        return MULTILINGUAL_COMMAND
    return pins.command_for(name, DEFAULT_MODEL)


def is_there(name_or_folder: str | None = None) -> bool:
    """Whether the model is on this machine, or can be built from what is."""
    asked = chosen_embedder(name_or_folder)
    return locate_embedder(asked) is not None or offline.can_build(asked)


def absent_command(name_or_folder: str | None = None) -> str:
    """The command that puts the model on this machine; empty where it is, or has no name."""
    try:
        there = is_there(name_or_folder)
    except ModelUnavailableError:  # a folder that is gone: no command brings it back
        return ""
    asked = chosen_embedder(name_or_folder)
    return command_for(asked) if not there and "/" in asked else ""
