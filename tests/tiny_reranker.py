"""A real cross-encoder of a few kilobytes, for tests: ``python tests/tiny_reranker.py FOLDER``.

FlashRank loads it like any other. Its logit is -11 for a passage that holds none of the query's
tokens (stop words not counted) and +4 for one that holds them all, the range in which MS MARCO
cross-encoders answer.
"""

from __future__ import annotations

import string
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from onnx import helper
from tiny_embedder import SILENT, SPECIAL, save_model, vocabulary, write_tokenizer

WINDOW = 512
FILE = "flashrank-TinyBERT-L-2-v2.onnx"  # what FlashRank wants its default model's file to be
NO_OVERLAP, FULL_OVERLAP = -11.0, 4.0


def chosen(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The folder of the model below ``folder``, under the name of one that is calibrated; searches
    use it from now on."""
    made = str(build(folder / "ms-marco-TinyBERT-L-2-v2"))
    monkeypatch.setenv("MEMORY_STORE_RERANKER", made)
    return made


def build(folder: Path, words: Iterable[str] = ()) -> Path:
    """Write the model into ``folder``; ``words`` become tokens of their own, kept whole."""
    vocab = vocabulary(words)
    write_tokenizer(folder, vocab, WINDOW)
    silent = {vocab[piece] for piece in (*SPECIAL, *string.punctuation, *SILENT)}
    constants = {
        "speaks": np.array([float(number not in silent) for number in vocab.values()], np.float32),
        "one": np.array(1, np.float32),
        "row": np.array([2], np.int64),
        "column": np.array([1], np.int64),
        "across": np.array([1], np.int64),
        "span": np.array(FULL_OVERLAP - NO_OVERLAP, np.float32),
        "floor": np.array(NO_OVERLAP, np.float32),
    }
    node = helper.make_node
    nodes = [
        node("Cast", ["attention_mask"], ["real"], to=1),
        node("Cast", ["token_type_ids"], ["second"], to=1),
        node("Gather", ["speaks", "input_ids"], ["content"]),
        node("Mul", ["content", "real"], ["counted"]),
        node("Mul", ["counted", "second"], ["in_passage"]),
        node("Sub", ["counted", "in_passage"], ["in_query"]),
        # equal[b, i, j]: tokens i and j are the same; found[b, i]: some passage token is i
        node("Unsqueeze", ["input_ids", "row"], ["ids_i"]),
        node("Unsqueeze", ["input_ids", "column"], ["ids_j"]),
        node("Equal", ["ids_i", "ids_j"], ["same"]),
        node("Cast", ["same"], ["equal"], to=1),
        node("Unsqueeze", ["in_passage", "column"], ["passage_j"]),
        node("Mul", ["equal", "passage_j"], ["hits"]),
        node("ReduceMax", ["hits"], ["found"], axes=[2], keepdims=0),
        node("Mul", ["found", "in_query"], ["matched"]),
        node("ReduceSum", ["matched", "across"], ["matches"], keepdims=1),
        node("ReduceSum", ["in_query", "across"], ["asked"], keepdims=1),
        node("Max", ["asked", "one"], ["at_least_one"]),
        node("Div", ["matches", "at_least_one"], ["overlap"]),
        node("Mul", ["overlap", "span"], ["scaled"]),
        node("Add", ["scaled", "floor"], ["logits"]),
    ]
    inputs = ["input_ids", "attention_mask", "token_type_ids"]
    save_model(folder / FILE, nodes, inputs, ("logits", ["batch", 1]), constants)
    return folder


if __name__ == "__main__":
    print(build(Path(sys.argv[1])))
