"""Which embedding model serves which collection, loaded when it is first asked for.

Boundary: reads the vault's settings; no text passes here. A model is looked for where it was when
it was chosen, then by its name.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from memory_store.configuration import typed_vault
from memory_store.errors import ModelError, ModelMismatchError, ModelUnavailableError
from memory_store.paths import home_path
from memory_store.records.degraded import Code, Degraded
from memory_store.session.opened_vault import OpenVault
from memory_store.vault.settings import CollectionSettings

if TYPE_CHECKING:
    from memory_store.models.embedder import Embedder


DEFAULT = "default"  # in the place of a model's name: the vault's own


class ModelState(Struct, frozen=True):
    """The embedding model as loaded (None: not there), and what its absence switches off."""

    embedder_name: str | None
    degraded: tuple[str, ...]


class Embedders:
    """The models of a vault's collections. ``usual`` names another than the vault's own."""

    def __init__(self, vault: OpenVault, usual: str | None) -> None:
        self._vault = vault
        self.usual = usual
        self._before: tuple[str, ...] = ()

    def change_usual(self, name: str) -> None:
        """Name another usual model; the one before is still found for what it made."""
        if self.usual:
            self._before = (*self._before, self.usual)
        self.usual = name

    def load(self, collection: str | None = None) -> Embedder:
        """The model of a collection (by id), or of the vault (``None``).

        Raises ModelUnavailableError, and ModelMismatchError when the vectors that are there come
        from another one.
        """
        from memory_store.models.embedder import load_embedder

        embedder = load_embedder(self.name(collection))
        check_model(self._vault, embedder, collection)
        return embedder

    def load_earlier(self, fingerprint: str) -> Embedder:
        """A model of before, which some vectors still come from.

        Raises ModelUnavailableError where its files are not here any more, or not as they were.
        """
        from memory_store.configuration import chosen
        from memory_store.models.embedder import load_embedder
        from memory_store.models.places import locate_embedder
        from memory_store.paths import MODEL_VARIABLE

        earlier = self._vault.settings.earlier
        one = next(one for one in earlier if one.fingerprint == fingerprint)
        there = bool(one.folder) and Path(one.folder).is_dir()
        names = (one.folder if there else "", self._named(one.embedder))
        for name in (*names, *self._before, self.usual or "", chosen(MODEL_VARIABLE) or ""):
            with contextlib.suppress(ModelUnavailableError):
                place = locate_embedder(name) if name else None
                if place is not None and place.name == one.embedder:
                    embedder = load_embedder(name)
                    if embedder.fingerprint == fingerprint:
                        return embedder
        raise ModelUnavailableError(
            f"{one.embedder}, which made them, is not on this machine any more",
            f"memory-store reindex{typed_vault(self._vault.path)}",
        )

    def folder(self, collection: str) -> str:
        """Where a collection's model lies, if it was given as a folder; else empty."""
        name = self.name(collection)
        folder = home_path(name) if name else None
        return str(folder.resolve()) if folder is not None and folder.is_dir() else ""

    @contextlib.contextmanager
    def loading_ahead(self) -> Iterator[None]:
        """Load the vault's model beside the work inside, if vectors come from it.

        Ends when both have: a model that is still being loaded while Python ends does so with a
        traceback. One that is missing or broken raises its error later, where it is asked for.
        FastEmbed is imported before, by itself: an import holds the interpreter, so that beside
        other work both would take the longer.
        """
        from memory_store.models.embedder import load_embedder
        from memory_store.models.places import locate_embedder

        def load() -> None:
            with contextlib.suppress(ModelUnavailableError, OSError):
                load_embedder(name)

        with contextlib.ExitStack() as ending:
            with contextlib.suppress(ModelUnavailableError, RuntimeError):  # no thread is to be had
                name, readable = self.name(), self._vault.keyring.readable()
                asked_for = self._vault.settings.embedder and name in map(self.name, readable)
                if asked_for and locate_embedder(name) is not None:
                    import fastembed  # noqa: F401 - imported here, used there

                    loading = threading.Thread(target=load, name="model loading ahead")
                    loading.start()
                    ending.callback(loading.join)
            yield

    def name(self, collection: str | None = None) -> str | None:
        """Name or folder of the model that :meth:`load` looks for; ``None``: the usual one.

        Raises ModelUnavailableError where the vault's owner names a model to a member by what
        could be a path on her machine.
        """
        chosen = self._vault.settings.chosen(collection or "")
        if chosen.embedder:
            there = chosen.folder and Path(chosen.folder).is_dir()
            return chosen.folder if there else self._named(chosen.embedder)
        return self.usual or self._named(self._vault.settings.embedder) or None

    def _named(self, name: str) -> str:
        """A model's name in the settings. A member takes it for a name alone, never for a path."""
        from memory_store.configuration import chosen
        from memory_store.models.places import DEFAULT_MODEL, MODEL_NAME_FORM
        from memory_store.paths import MODEL_VARIABLE

        if self._vault.keyring.is_owner or name in ("", DEFAULT_MODEL):
            return name
        if MODEL_NAME_FORM.fullmatch(name) and not os.path.lexists(name):
            return name
        mine = chosen(MODEL_VARIABLE) or self.usual or ""
        if Path(mine).name == name:  # her own choice, by the folder that she gave
            return mine
        raise ModelUnavailableError(
            f"The vault's owner names the model {name!r}, which could be a path on this machine.",
            f"set {MODEL_VARIABLE} to a model folder of yours",
        )

    def state(self, collection: str | None = None) -> ModelState:
        """Whether meaning can be searched in a collection, and if not, why and what mends it."""
        try:
            return ModelState(self.load(collection).name, ())
        except ModelError as error:
            return ModelState(None, (f"no vectors: {str(error).rstrip('.')}. Try: {error.remedy}",))

    def load_to_adopt(self, collection: str) -> Embedder:
        """The model that a collection is to have from now on, whatever its vectors came from.

        Its own choice; else what ``usual`` or the environment names; else the vault's model.
        """
        from memory_store.configuration import chosen
        from memory_store.models.embedder import load_embedder
        from memory_store.paths import MODEL_VARIABLE

        own = self._vault.settings.chosen(collection).embedder
        if own or not (self.usual or chosen(MODEL_VARIABLE)):
            return load_embedder(self.name(collection))
        return load_embedder(self.usual)

    def chosen(self, choice: CollectionSettings, given: str) -> CollectionSettings:
        """The choice with the model of that name or folder; ``default`` is the vault's."""
        from memory_store.models.embedder import load_embedder

        if given == DEFAULT:
            return CollectionSettings(choice.collection, choice.analyser)
        embedder = load_embedder(given)
        folder = home_path(given)
        return replace(
            choice,
            embedder=embedder.name,
            folder=str(folder.resolve()) if folder.is_dir() else "",
            fingerprint=embedder.fingerprint,
            dimensions=embedder.dimensions,
        )


class WritingEmbedders:
    """The models for one import: ``None`` for a collection whose model is not there.

    ``degraded`` then holds a line for it, ending in the command that mends it.
    """

    def __init__(self, embedders: Embedders, vault: OpenVault) -> None:
        self._embedders = embedders
        self._vault = vault
        self.degraded: tuple[str, ...] = ()
        self.loaded: dict[str, Embedder] = {}

    def __call__(self, collection: str) -> Embedder | None:
        try:
            self.loaded[collection] = self._embedders.load(collection)
            return self.loaded[collection]
        except ModelUnavailableError as error:
            self.failed(collection, error)
            return None

    def failed(self, collection: str, error: ModelUnavailableError) -> None:
        """Note that a collection's model made no vectors, of some texts or of any."""
        mend = f"{error.remedy}, then memory-store reindex{typed_vault(self._vault.path)}"
        said = f"stored without vectors: {str(error).rstrip('.')}."
        named = bool(self._vault.settings.chosen(collection).embedder)
        if named:
            said = f"collection {self._vault.collections.names()[collection]!r} {said}"
        line = Degraded(Code.MODEL, said, mend, names=named)
        self.degraded = tuple(dict.fromkeys((*self.degraded, line)))


def check_model(vault: OpenVault, embedder: Embedder, collection: str | None = None) -> None:
    """Raise ModelMismatchError unless ``embedder`` made the vectors there (or may).

    Those of a collection (by id), or of what has no model of its own (``None``).
    """
    if vault.settings.of(collection or "").fingerprint not in ("", embedder.fingerprint):
        vault.refresh_settings()
    kept = vault.settings.of(collection or "")
    if kept.fingerprint not in ("", embedder.fingerprint):
        where = vault.path.name
        if collection and vault.settings.chosen(collection).embedder:
            where = f"collection {vault.collections.names()[collection]!r} of {where}"
        raise ModelMismatchError(
            f"the vectors of {where} come from {kept.embedder} "
            f"(fingerprint {kept.fingerprint[:12]}), but {embedder.name} "
            f"({embedder.fingerprint[:12]}) is loaded",
            f"memory-store reindex{typed_vault(vault.path)}",
        )


def without_model(collection: str) -> None:
    """For ``--no-embed``: no model for any collection."""
