"""Reranking with a cross-encoder of TinyBERT-L-2's size, its weights random.

    python -m benchmarks.cross_encoder FOLDER

writes such a model as ONNX: 2 layers, 128 dimensions, 2 heads, 30,522 pieces, 512 places, as
"Well-Read Students Learn Better" (Turc and others, 2019) calls BERT-tiny. What it costs to read a
pair depends on its shape, not on its weights, and no model can be fetched where this runs. The
tokenizer is a real one: that of the embedding model, whose vocabulary is BERT's. FlashRank loads it
as the product loads any other.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from flashrank import Ranker, RerankRequest
from msgspec import Struct, field
from onnx import TensorProto, helper, numpy_helper

from benchmarks.generated import draw_vault
from benchmarks.measuring import side_by_side
from benchmarks.report import Line
from memory_store.models.places import locate_embedder
from memory_store.models.reranker import DEFAULT_RERANKER, MAX_TOKENS, load_reranker
from memory_store.records import Memory
from memory_store.search.recipes import DEFAULT
from memory_store.store import MemoryStore

LAYERS, WIDTH, HEADS, INNER = 2, 128, 2, 512
PIECES, SEGMENTS = 30_522, 2
FILE = "flashrank-TinyBERT-L-2-v2.onnx"  # what FlashRank calls its own
TARGETS = {64: ("≤ 200 ms", 0.200), 256: ("≤ 700 ms", 0.700)}
QUERIES = 9
NOTES = 1_000
FEWEST_WORDS = 5_000
INPUTS = ("input_ids", "attention_mask", "token_type_ids")


class Graph(Struct):
    """An ONNX graph in the making: nodes, and weights drawn from one random stream."""

    nodes: list[Any] = field(default_factory=list)
    weights: dict[str, Any] = field(default_factory=dict)
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(2_019))

    def add(self, kind: str, inputs: Sequence[str], **attributes: Any) -> str:
        """A node, by the name of its output."""
        name = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def constant(self, value: Any, kind: Any = np.float32) -> str:
        """A fixed array, by its name."""
        name = f"constant_{len(self.weights)}"
        self.weights[name] = np.asarray(value, dtype=kind)
        return name

    def drawn(self, *shape: int) -> str:
        """Random weights as BERT's are before training (deviation .02)."""
        return self.constant(self.random.normal(0.0, 0.02, shape))

    def dense(self, given: str, rows: int, columns: int) -> str:
        """A linear layer."""
        product = self.add("MatMul", [given, self.drawn(rows, columns)])
        return self.add("Add", [product, self.constant(np.zeros(columns))])

    def normed(self, given: str) -> str:
        """Layer normalisation."""
        scale, shift = self.constant(np.ones(WIDTH)), self.constant(np.zeros(WIDTH))
        return self.add("LayerNormalization", [given, scale, shift], axis=-1, epsilon=1e-12)


def build(folder: Path) -> Path:
    """Write the model and a tokenizer into ``folder``. Raises ``ModelUnavailableError`` where no
    embedding model is there to take the tokenizer from."""
    folder.mkdir(parents=True, exist_ok=True)
    place = locate_embedder()
    if place is None:
        raise FileNotFoundError("no embedding model to take a tokenizer from")
    for name in ("tokenizer.json", "config.json", "tokenizer_config.json"):
        (folder / name).write_bytes((place.folder / name).read_bytes())
    specials = {
        f"{name}_token": f"[{name.upper()}]" for name in ("pad", "unk", "cls", "sep", "mask")
    }
    (folder / "special_tokens_map.json").write_text(json.dumps(specials), "utf-8")
    settings = json.loads((folder / "tokenizer_config.json").read_text("utf-8"))
    settings["model_max_length"] = MAX_TOKENS
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), "utf-8")
    onnx.save(_model(), folder / FILE)
    return folder


def _model() -> Any:
    graph = Graph()
    _logits(graph, _encoded(graph, _embedded(graph)))
    made = helper.make_graph(
        graph.nodes,
        "tiny",
        [helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", "tokens"]) for n in INPUTS],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 1])],
        [numpy_helper.from_array(value, name) for name, value in graph.weights.items()],
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _embedded(graph: Graph) -> str:
    """Pieces, places and segments, added and normalised."""
    pieces = graph.add("Gather", [graph.drawn(PIECES, WIDTH), "input_ids"])
    segments = graph.add("Gather", [graph.drawn(SEGMENTS, WIDTH), "token_type_ids"])
    ones = graph.add("CumSum", [_ones_like_ids(graph), graph.constant(1, np.int64)], exclusive=1)
    places = graph.add("Gather", [graph.drawn(MAX_TOKENS, WIDTH), ones])
    added = graph.add("Add", [graph.add("Add", [pieces, segments]), places])
    return graph.normed(added)


def _ones_like_ids(graph: Graph) -> str:
    shape = graph.add("Shape", ["input_ids"])
    one = numpy_helper.from_array(np.array([1], np.int64))
    return graph.add("ConstantOfShape", [shape], value=one)


def _encoded(graph: Graph, given: str) -> str:
    """The layers: attention, then two dense ones, each with what went in added to it."""
    real = graph.add("Cast", ["attention_mask"], to=TensorProto.FLOAT)
    missing = graph.add("Sub", [graph.constant(1.0), real])
    rows = graph.add("Unsqueeze", [missing, graph.constant([1, 2], np.int64)])
    barred = graph.add("Mul", [rows, graph.constant(-10_000.0)])
    for _ in range(LAYERS):
        attended = graph.normed(graph.add("Add", [given, _attention(graph, given, barred)]))
        inner = _gelu(graph, graph.dense(attended, WIDTH, INNER))
        given = graph.normed(graph.add("Add", [attended, graph.dense(inner, INNER, WIDTH)]))
    return given


def _attention(graph: Graph, given: str, barred: str) -> str:
    split = graph.constant([0, 0, HEADS, WIDTH // HEADS], np.int64)
    query, key, value = (
        graph.add("Reshape", [graph.dense(given, WIDTH, WIDTH), split]) for _ in range(3)
    )
    query = graph.add("Transpose", [query], perm=[0, 2, 1, 3])
    key = graph.add("Transpose", [key], perm=[0, 2, 3, 1])
    value = graph.add("Transpose", [value], perm=[0, 2, 1, 3])
    likeness = graph.add("MatMul", [query, key])
    scaled = graph.add("Div", [likeness, graph.constant(np.sqrt(WIDTH / HEADS))])
    shares = graph.add("Softmax", [graph.add("Add", [scaled, barred])], axis=-1)
    mixed = graph.add("Transpose", [graph.add("MatMul", [shares, value])], perm=[0, 2, 1, 3])
    joined = graph.add("Reshape", [mixed, graph.constant([0, 0, WIDTH], np.int64)])
    return graph.dense(joined, WIDTH, WIDTH)


def _gelu(graph: Graph, given: str) -> str:
    bent = graph.add("Erf", [graph.add("Div", [given, graph.constant(np.sqrt(2.0))])])
    share = graph.add("Add", [bent, graph.constant(1.0)])
    product = graph.add("Mul", [given, share])
    return graph.add("Mul", [product, graph.constant(0.5)])


def _logits(graph: Graph, given: str) -> None:
    """The first token's vector, through a pooler, to one number."""
    first = graph.add("Gather", [given, graph.constant(0, np.int64)], axis=1)
    pooled = graph.add("Tanh", [graph.dense(first, WIDTH, WIDTH)])
    scored = graph.dense(pooled, WIDTH, 1)
    graph.nodes.append(helper.make_node("Identity", [scored], ["logits"]))


def whole_words() -> list[str]:
    """The vocabulary's words that are one piece each, the frequent ones first.

    None where it has next to none. Invented words are cut into 2.4 pieces each; a natural note has
    1.2 to 1.6 pieces a word.
    """
    place = locate_embedder()
    if place is None:
        raise FileNotFoundError("no embedding model to take words from")
    model = json.loads((place.folder / "tokenizer.json").read_text("utf-8"))["model"]
    pieces = sorted(model["vocab"], key=model["vocab"].get)
    words = [piece for piece in pieces if piece.isascii() and piece.isalpha() and len(piece) > 2]
    return words if len(words) >= FEWEST_WORDS else []


def reranking_lines(folder: Path, notes: int = NOTES) -> Iterator[Line]:
    """A search that reads 64 pairs, and a deep one that reads 256, in a vault of its own.

    Beside FlashRank by itself: the same beginnings of the same notes in one call, as it comes.
    """
    (folder / "keys").mkdir(parents=True)
    key_file, name = folder / "keys" / "bench.key", str(build(folder / DEFAULT_RERANKER))
    drawn = draw_vault(folder / "reread.db", key_file, notes, None, words=whole_words())
    load_reranker(name)
    ranker = Ranker(DEFAULT_RERANKER, cache_dir=str(folder), max_length=MAX_TOKENS)
    with MemoryStore.open(drawn.path, key_file=key_file) as store:
        for pairs in TARGETS:
            yield _reranked(store, drawn.queries, name, ranker, pairs)


def _reranked(
    store: MemoryStore, queries: Sequence[str], name: str, ranker: Ranker, pairs: int
) -> Line:
    deep = pairs > min(TARGETS)
    asked = [" ".join(query.split()[:4]) for query in queries[:QUERIES]]
    read = max(store.rank(one, reranker=name, deep=deep, depth=10).reranked for one in asked[:2])
    texts = {
        query: [
            {"text": _beginning(store.get(memory))}
            for memory, _ in store.rank(query, depth=read, rerank=False, deep=deep).results[:read]
        ]
        for query in asked
    }
    works = {
        "ours": lambda one: store.search(one, reranker=name, deep=deep),
        "FlashRank": lambda one: ranker.rerank(RerankRequest(query=one, passages=texts[one])),
    }
    taken = side_by_side(works, asked)
    return Line(
        f"{'deep' if deep else 'standard'} search, {read} pairs reranked",
        int(store.stats()["memories"]),
        taken["ours"],
        "FlashRank, one call",
        taken["FlashRank"],
        *TARGETS[pairs],
        "wall",
    )


def _beginning(memory: Memory) -> str:
    """As much of a memory as a search lets the model read."""
    return f"{memory.title}\n{memory.text}"[: DEFAULT.rerank_characters]


if __name__ == "__main__":
    print(build(Path(sys.argv[1])))
