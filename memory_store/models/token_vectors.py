"""Vectors of texts and of their tokens, as embedding models give them.

Boundary: numbers, and texts that are handed to a tokenizer of this process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


class TokenVectors(Struct, frozen=True):
    """The tokens of one text: unit ``vectors`` [t, d] and their character ``offsets`` [t].

    Special tokens, and those beyond the model's window, are not among them; t may be 0.
    """

    vectors: Vectors
    offsets: tuple[tuple[int, int], ...]


def encodable(text: str) -> str:
    """``text`` with lone surrogates, which no tokenizer takes, replaced. Offsets stay true."""
    return text.encode("utf-8", "replace").decode("utf-8")


def unit_vectors(vectors: Sequence[NDArray[Any]] | NDArray[Any]) -> Vectors:
    """Stack to float32 [n, d] of length one; FastEmbed's own are off by rounding or not scaled."""
    unit: Vectors = np.array(vectors, dtype=np.float32)
    with np.errstate(invalid="ignore", over="ignore"):  # the user of a vector checks it
        lengths = np.linalg.norm(unit, axis=1, keepdims=True)
        unit /= np.maximum(lengths, np.float32(1e-12))  # in place: no copy stays behind
    return unit
