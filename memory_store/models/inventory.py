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
from memory_store.models.places import cached_embedder, command_for
from memory_store.models.reranker import rerankers_folder

NOT_PINNED = "not pinned"
State = Literal["present", "absent", "refused"]


class Held(Struct, frozen=True):
    """A known model. ``pin`` says why its files are believed, ``detail`` which they are."""

    name: str
    kind: pins.Kind
    state: State
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
    revision = model.revisions[0] if model.revisions else None
    sizes = [file.size for file in revision.wanted] if revision else [None]
    record = pins.recorded(model.name)
    return Held(
        name=model.name,
        kind=model.kind,
        state=state,
        detail=detail,
        folder=str(folder) if folder else None,
        licence=model.licence,
        repository=model.repository,
        revision=revision.id if revision else None,
        size=None if None in sizes else sum(size or 0 for size in sizes),
        pin=f"recorded on {record.recorded}" if record else "pinned" if revision else NOT_PINNED,
    )


def _state(name: str, folder: Path | None) -> tuple[State, str]:
    if folder is None:
        buildable = can_build(name)
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
    for one in (revision for model in (known, record) if model for revision in model.revisions):
        if one.digests.items() <= found.items():
            return f"revision {one.id[:12]}"
    if known is not None and known.package is not None:
        return f"built from the package {known.package.name}"
    return "as recorded"


def folder_of(name: str, kind: pins.Kind) -> Path | None:
    """The folder of ours that holds the model, ``None`` where there is none."""
    if kind == "embedding":
        place = cached_embedder(name)
        return None if place is None else place.folder
    folder = rerankers_folder(make=False) / name
    return folder if folder.is_dir() else None
