"""The models: which are there, calibrated, or chosen. None is built, fetched or asked.

Boundary: shows names and folders of models.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from memory_store.configuration import typed_vault
from memory_store.doctor.installation import Check
from memory_store.errors import ModelUnavailableError

if TYPE_CHECKING:
    from memory_store.store import MemoryStore


def embedding_model(store: MemoryStore | None) -> Check:
    """The vault's own model when a vault is open, else the one that would be used."""
    from memory_store.models.offline import can_build
    from memory_store.models.places import check_place, chosen_embedder, locate_embedder

    effect = "no search by meaning; keywords and topics go on"
    kept = None if store is None else store.stats()["model"]
    name = chosen_embedder(kept)
    try:
        place = locate_embedder(name)  # before it is loaded: loading may build or fetch it
    except ModelUnavailableError as error:
        remedy = "set MEMORY_STORE_MODEL to a model's name, or the folder of a complete model"
        return Check("embedding model", "missing", str(error), effect, remedy)
    if place is not None:
        try:
            check_place(place)
        except ModelUnavailableError as error:
            return Check("embedding model", "missing", str(error), effect, error.remedy)
        state = None if store is None else store.model_state()
        if store is not None and state is not None and state.degraded:
            remedy = f"memory-store reindex{typed_vault(store.path)}"
            return Check("embedding model", "missing", "; ".join(state.degraded), effect, remedy)
        return Check("embedding model", "ok", f"{place.name} in {place.folder}")
    if can_build(name):
        built = f"{name}, built from installed weights at first use"
        return Check("embedding model", "ok", built)
    return Check(
        "embedding model", "missing", f"{name} is not on this machine", effect, _mend(name)
    )


def _mend(name: str) -> str:
    """What puts an embedding model on this machine, with the network and without."""
    from memory_store.models.offline import PACKAGES
    from memory_store.models.places import command_for

    command, packaged = command_for(name), PACKAGES.get(name)
    return f"{command}, or without a network {packaged.remedy}" if packaged else command


def reranking_model() -> Check:
    """The reranking model that searches use, and what its scores mean."""
    from memory_store.models.maxsim import asks_for_maxsim
    from memory_store.models.pins import command_for
    from memory_store.models.reranker import (
        NO_DEFAULT,
        check_folder,
        chosen_reranker,
        locate_reranker,
    )

    effect = "results keep the order of the fusion, and no model reads them again"
    if asks_for_maxsim(None):
        return Check("reranking model", "ok", "maxsim: late interaction by the embedding model")
    try:
        folder = locate_reranker()
    except ModelUnavailableError as error:
        remedy = "set MEMORY_STORE_RERANKER to the folder of a complete model"
        return Check("reranking model", "missing", str(error), effect, remedy)
    try:
        if folder is not None:
            check_folder(folder)
        calibration = "" if folder is None else _calibration(folder)
    except ModelUnavailableError as error:
        return Check("reranking model", "missing", str(error), effect, error.remedy)
    if folder is not None:
        return Check("reranking model", "ok", f"{folder.name} in {folder}, {calibration}")
    name = chosen_reranker(None)
    return Check(
        "reranking model",
        "missing",
        f"{name} is not on this machine",
        effect,
        command_for(name, NO_DEFAULT),
    )


def _calibration(folder: Path) -> str:
    """Where the meaning of a reranker's scores comes from."""
    from memory_store.models.calibration import CALIBRATIONS, fitted_for
    from memory_store.models.reranker import fingerprint

    for fitted in fitted_for(folder.name):
        if fitted.fingerprint == fingerprint(folder):
            return f"calibrated with {fitted.pairs:,} pairs of yours on {fitted.fitted}"
    if folder.name in CALIBRATIONS:
        return "calibrated by a preset, not fitted: memory-store calibrate fits it to your notes"
    return "not calibrated: scores without bands (memory-store calibrate)"


def expander() -> Check:
    """Whether a language model is chosen that queries are sent to. It is not loaded or asked."""
    from memory_store.models.expander import chosen_expander
    from memory_store.paths import EXPANDER_VARIABLE

    model = chosen_expander(None)
    if model is None:
        return Check("query expansion", "off", f"{EXPANDER_VARIABLE} names no language model")
    if find_spec("llm") is None:
        effect = f"{model} is never asked; the words of a query are searched for as they are"
        remedy = "pip install 'datasette-hybrid[llm]'"
        return Check("query expansion", "missing", "llm is not installed", effect, remedy)
    return Check(
        "query expansion", "ok", f"queries are sent to {model}, as {EXPANDER_VARIABLE} says"
    )
