"""A real embedding model of 200 kilobytes, for tests: ``python tests/tiny_embedder.py FOLDER``.

FastEmbed loads it like any other. A word becomes pieces of two letters; each piece is bound to
the one before it, and the pieces' vectors are averaged. Texts that share words or word stems
are close, words of one concept (``CONCEPTS``) share a heavy vector, stop words and punctuation
have none, and other texts are nearly orthogonal.
Words in other scripts than Latin are unknown to it and add nothing.
"""

from __future__ import annotations

import json
import string
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

DIMENSIONS = 64
WINDOW = 64  # tokens, special ones included
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ALPHABET = string.ascii_lowercase + string.digits
CONCEPTS = (
    ("car", "cars", "automobile", "vehicle"),
    ("doctor", "physician", "medic"),
    ("holiday", "vacation", "trip"),
    ("money", "cash", "funds"),
    ("house", "home", "dwelling"),
    ("dog", "puppy", "hound"),
    ("meal", "dinner", "supper"),
    ("begin", "start", "commence"),
)
CONCEPT_WEIGHT = 4
SILENT = (
    "a",
    "an",
    "and",
    "are",
    "at",
    "be",
    "by",
    "for",
    "from",
    "in",
    "is",
    "it",
    "my",
    "of",
    "on",
    "or",
    "our",
    "that",
    "the",
    "to",
    "was",
    "with",
)


def vocabulary(words: Iterable[str] = ()) -> dict[str, int]:
    """Piece → id: special tokens, punctuation, one and two letters, whole words, concepts."""
    pairs = [a + b for a in ALPHABET for b in ALPHABET]
    pieces = [*ALPHABET, *pairs]
    whole = [word for group in CONCEPTS for word in group]
    entries = [
        *SPECIAL,
        *string.punctuation,
        *pieces,
        *(f"##{piece}" for piece in pieces),
        *whole,
        *SILENT,
        *words,
    ]
    return {piece: number for number, piece in enumerate(dict.fromkeys(entries))}


def write_tokenizer(
    folder: Path, vocab: dict[str, int], window: int, dimensions: int = DIMENSIONS
) -> None:
    """The four JSON files that FastEmbed and FlashRank read beside an ONNX file."""
    tokenizer = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True, strip_accents=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, vocab[token]) for token in ("[CLS]", "[SEP]")],
    )
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    specials = dict(zip(names, SPECIAL, strict=True))
    files = {
        "config.json": {"pad_token_id": vocab["[PAD]"], "hidden_size": dimensions},
        "tokenizer_config.json": {"model_max_length": window, **specials},
        "special_tokens_map.json": specials,
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content), "utf-8")


def save_model(
    path: Path,
    nodes: list[Any],
    inputs: list[str],
    output: tuple[Any, ...],
    constants: dict[str, Any],
) -> None:
    """Write an ONNX file whose inputs are int64 [batch, tokens]; ``output`` is (name, shape)."""
    shape = ["batch", "tokens"]
    graph = helper.make_graph(
        nodes,
        path.stem,
        [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name in inputs],
        [helper.make_tensor_value_info(output[0], TensorProto.FLOAT, output[1])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    opset = [helper.make_opsetid("", 17)]
    path.write_bytes(
        helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()
    )


def build(folder: Path, words: Iterable[str] = (), dimensions: int = DIMENSIONS) -> Path:
    """Write the model into ``folder``; ``words`` get a vector of their own, kept whole."""
    vocab = vocabulary(words)
    write_tokenizer(folder, vocab, WINDOW, dimensions)
    random = np.random.default_rng(20_240_501)
    vectors = random.choice(np.array([-1, 1], np.int8), (len(vocab), dimensions))
    for group in CONCEPTS:
        vectors[[vocab[word] for word in group]] = CONCEPT_WEIGHT * vectors[vocab[group[0]]]
    vectors[[vocab[piece] for piece in (*SPECIAL, *string.punctuation, *SILENT)]] = 0
    continues = np.array([[piece.startswith("##")] for piece in vocab])
    constants = {
        "vectors": vectors,
        "continues": continues,
        "shift": np.array([0, 1, 0, 0, 0, 0], np.int64),
        "from": np.array([0], np.int64),
        "to": np.array([-1], np.int64),
        "axis": np.array([1], np.int64),
    }
    node = helper.make_node
    nodes = [
        node("Gather", ["vectors", "input_ids"], ["levels"]),
        node("Cast", ["levels"], ["own"], to=TensorProto.FLOAT),
        node("Gather", ["continues", "input_ids"], ["inside"]),
        node("Pad", ["own", "shift"], ["later"]),
        node("Slice", ["later", "from", "to", "axis"], ["before"]),
        node("Mul", ["own", "before"], ["bound"]),
        node("Where", ["inside", "bound", "own"], ["last_hidden_state"]),
    ]
    output = ("last_hidden_state", ["batch", "tokens", dimensions])
    save_model(folder / "model.onnx", nodes, ["input_ids", "attention_mask"], output, constants)
    return folder


if __name__ == "__main__":
    print(build(Path(sys.argv[1])))
