"""Which models are known, which of them are on this machine, and whether their files fit.

Boundary: looks at files in our own folders. Opens no connection, loads and builds nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from msgspec import Struct

from memory_store.errors import ModelUnavailableError
from memory_store.models import pins
from memory_store.models.offline import can_build
from memory_store.models.places import DEFAULT_MODEL, cached_embedder, command_for
from memory_store.models.reranker import rerankers_folder

NOT_PINNED = "not pinned"


class Held(Struct, frozen=True):
    """A known model. ``pin`` says why its files are believed, ``detail`` which they are."""

    name: str
    kind: pins.Kind
    state: Literal["present", "absent", "refused"]
    detail: str
    folder: str | None
    licence: str
    repository: str
    revision: str | None
    size: int | None
    pin: str


def inventory() -> list[Held]:
    """The models of the documents, and those that you trusted."""
    known = pins.known_models()
    names = {one.name for one in known}
    others = [one for one in pins.kept().records if one.name not in names]
    return [*map(_held, known), *map(_held, others)]


def _held(model: pins.KnownModel | pins.Record) -> Held:
    folder = folder_of(model.name, model.kind)
    state, detail = _state(model.name, folder)
    revision = _revision(model)
    sizes = [] if revision is None else [file.size for file in revision.wanted]
    record = pins.recorded(model.name)
    pin = "pinned" if isinstance(model, pins.KnownModel) and model.revisions else NOT_PINNED
    return Held(
        name=model.name,
        kind=model.kind,
        state=state,
        detail=detail,
        folder=None if folder is None else str(folder),
        licence=model.licence,
        repository=model.repository,
        revision=None if revision is None else revision.id,
        size=None if None in sizes or not sizes else sum(size or 0 for size in sizes),
        pin=pin if record is None else f"recorded on {record.recorded}",
    )


def _revision(model: pins.KnownModel | pins.Record) -> pins.Revision | None:
    if isinstance(model, pins.Record):
        return model.as_revision()
    return model.revisions[0] if model.revisions else None


def _state(name: str, folder: Path | None) -> tuple[Literal["present", "absent", "refused"], str]:
    if folder is None:
        buildable = name == DEFAULT_MODEL and can_build()
        built = "built at first use from the installed package of weights"
        return "absent", built if buildable else command_for(name)
    try:
        found = pins.check_files(name, folder, "")
    except ModelUnavailableError as error:
        return "refused", f"{error} Try: {command_for(name)}"
    return "present", f"{_which(name, found)}, in {folder}"


def _which(name: str, found: pins.Digests) -> str:
    """Of which revision the files are, or what they were built from."""
    known, record = pins.known_model(name), pins.recorded(name)
    revisions = [] if known is None else list(known.revisions)
    revisions += [] if record is None else [record.as_revision()]
    for one in revisions:
        if all(found.get(file) == digest for file, digest in one.digests.items()):
            return f"revision {one.id[:12]}"
    if known is not None and known.package is not None:
        return f"built from the package {known.package.name}"
    return "as recorded"


def folder_of(name: str, kind: pins.Kind) -> Path | None:
    """The folder of ours that holds the model, ``None`` where there is none."""
    if kind == "embedding":
        place = cached_embedder(name)
        return None if place is None else place.folder
    folder = rerankers_folder() / name
    return folder if folder.is_dir() else None
