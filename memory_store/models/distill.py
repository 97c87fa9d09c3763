"""A static model made of a sentence model: each token of its vocabulary goes through it once.

The vectors lose their mean, and a token weighs a / (a + p), where p is its share of the tokens of
some texts: Arora, Liang and Ma 2017, "A Simple but Tough-to-Beat Baseline for Sentence Embeddings".

Boundary: tokens go through the model, texts are counted; what is written holds a share for each
token, and no text. It is plain: where the texts are secret, keep it as them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from memory_store.errors import BadInputError, ModelUnavailableError
from memory_store.models.embedder import load_embedder
from memory_store.models.places import DOCTOR, STATIC_FILES, locate_embedder
from memory_store.models.token_vectors import encodable

SMOOTHING = 1e-3  # a, as in the paper
_WEIGHTS, _TOKENIZER, _CONFIG = STATIC_FILES


def distil(folder: Path, texts: Iterable[str], model: str | None = None) -> int:
    """Write a static model into a new ``folder``, made of a sentence model that is on this machine.

    Returns how many tokens it has. Raises BadInputError where the folder is there already, and
    ModelUnavailableError.
    """
    from safetensors.numpy import save_file

    embedder, place = load_embedder(model), locate_embedder(model)
    if place is None or place.is_static:
        raise ModelUnavailableError(f"{embedder.name} is no sentence model.", DOCTOR)
    tokenizer = Tokenizer.from_file(str(place.folder / _TOKENIZER))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    size = tokenizer.get_vocab_size()
    counts = np.zeros(size)
    for text in texts:
        ids = tokenizer.encode(encodable(text), add_special_tokens=False).ids
        counts += np.bincount(ids, minlength=size)
    special = [
        number for number, one in tokenizer.get_added_tokens_decoder().items() if one.special
    ]
    known = np.setdiff1d(np.arange(size), special)
    vectors = np.zeros((size, embedder.dimensions), np.float32)
    vectors[known] = embedder.embed([_written(tokenizer, int(one)) for one in known])
    vectors[known] -= vectors[known].mean(axis=0)
    weights = SMOOTHING / (SMOOTHING + counts / max(1.0, counts.sum()))
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        raise BadInputError(f"{folder} is there already", "folder") from None
    tensors = {"embeddings": vectors.astype(np.float16), "weights": weights.astype(np.float32)}
    save_file(tensors, folder / _WEIGHTS)
    tokenizer.save(str(folder / _TOKENIZER))
    config = {"model_type": "model2vec", "normalize": True, "max_length": 512}
    (folder / _CONFIG).write_text(json.dumps(config, indent=1), "utf-8")
    return size


def _written(tokenizer: Tokenizer, number: int) -> str:
    """A token as it stands in a text."""
    return (tokenizer.id_to_token(number) or "").removeprefix("##").lstrip("▁")
