"""Static embedding models, in Model2Vec's format: a vector for each token, for a text their mean.

``potion-retrieval-32M`` is one (prx, "Embedding Model"). It reads a text some hundred times faster
than a sentence model, and knows no order of words: for source code, not for notes.

Boundary: as that of :mod:`memory_store.models.embedder`: files of this machine, no connection.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from memory_store.errors import ModelUnavailableError
from memory_store.models import offline, pins
from memory_store.models.places import DOCTOR, STATIC_FILES, ModelPlace, check_place
from memory_store.models.token_vectors import TokenVectors, Vectors, encodable, unit_vectors

MAX_TOKENS = 512  # where the model says nothing; Model2Vec's own


class StaticEmbedder:
    """An :class:`~memory_store.models.embedder.Embedder` that looks vectors up."""

    def __init__(self, place: ModelPlace) -> None:
        digests = check_place(place)
        if find_spec("safetensors") is None:
            raise ModelUnavailableError(f"To read {place.name} takes safetensors.", offline.REMEDY)
        try:
            config = json.loads((place.folder / "config.json").read_text("utf-8"))
            self._tokenizer = Tokenizer.from_file(str(place.folder / "tokenizer.json"))
            self._table = _table(place, self._tokenizer)
        except Exception as error:  # tokenizers' errors share no narrower base class
            raise ModelUnavailableError(
                f"The model in {place.folder} cannot be loaded: {error}", DOCTOR
            ) from error
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self.name = place.name
        self.dimensions = self._table.shape[1]
        self.max_tokens = int(config.get("max_length") or MAX_TOKENS)
        of_files = (digests.get(f) or pins.digest_of(place.folder / f) for f in STATIC_FILES[:2])
        self.fingerprint = pins.fingerprint(self.max_tokens, of_files)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors [n, d]; zeros for a text without a token that the model knows."""
        means = np.zeros((len(texts), self.dimensions), np.float32)
        for mean, encoded in zip(means, self._encoded(texts), strict=True):
            if encoded.ids:
                mean[:] = self._table[encoded.ids[: self.max_tokens]].mean(axis=0)
        return unit_vectors(means)

    def embed_query(self, text: str) -> Vectors:
        """The unit vector [d] of a query."""
        vector: Vectors = self.embed([text])[0]
        return vector

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """The unit vectors [n, d] of several queries."""
        return self.embed(texts)

    def token_offsets(self, text: str) -> list[tuple[int, int]]:
        """Character offsets of each token of ``text``."""
        (encoded,) = self._encoded([text])
        return list(encoded.offsets)

    def count_tokens(self, text: str) -> int:
        """How many tokens ``text`` has."""
        return len(self.token_offsets(text))

    def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        """The vectors of each token of ``texts``."""
        return [
            TokenVectors(
                unit_vectors(self._table[one.ids[: self.max_tokens]]),
                tuple(one.offsets[: self.max_tokens]),
            )
            for one in self._encoded(texts)
        ]

    def _encoded(self, texts: Sequence[str]) -> list[Encoding]:
        return self._tokenizer.encode_batch([*map(encodable, texts)], add_special_tokens=False)


def _table(place: ModelPlace, tokenizer: Tokenizer) -> NDArray[np.float32]:
    """A vector for each token, float32 [vocabulary, d]; zeros for an unknown one, which Model2Vec
    leaves out of the mean: of a vector of length one that makes no difference."""
    from safetensors.numpy import load_file

    tensors = load_file(place.folder / place.file)
    if "embeddings" not in tensors:
        raise ValueError(f"there is no ONNX graph, and {place.file} has no vectors of tokens")
    table: NDArray[np.float32] = tensors["embeddings"].astype(np.float32)
    if "mapping" in tensors:
        table = table[tensors["mapping"]]
    if "weights" in tensors:
        table *= tensors["weights"].astype(np.float32)[:, None]
    if table.ndim != 2 or len(table) < tokenizer.get_vocab_size():
        raise ValueError(f"{place.file} has no vector for each token")
    unknown = json.loads(tokenizer.to_str())["model"].get("unk_token")
    known = tokenizer.token_to_id(unknown) if unknown else None
    if known is not None:
        table[known] = 0.0
    return table
