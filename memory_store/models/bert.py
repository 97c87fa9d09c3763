"""The ONNX graph of a BERT encoder, written by hand from its weights.

Equal weights give equal bytes, and with them an equal fingerprint, on every machine.

Boundary: numbers only. No file, no network, no text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Tensors = Mapping[str, NDArray[Any]]

OPSET = 17  # the first with LayerNormalization; every onnxruntime since 1.13 reads it
IR_VERSION = 8  # what goes with opset 17: the newest would shut out older runtimes
MASKED = -10_000.0  # added to attention logits of padding, as in the original BERT code
TABLE_LEVELS = 127  # int8 levels either side of zero, where numbers are only looked up
# Where they are multiplied: 255 * 63 * 2 still fits the int16 in which processors without VNNI
# add pairs of products, so every machine computes the same vectors (127 would saturate there).
WEIGHT_LEVELS = 63
GELU_MINIMUM = 0.17  # GELU never falls below -0.16998
RUNTIME_OPERATORS = "com.microsoft"  # onnxruntime's own, one pass where ONNX needs three


class Graph:
    """Nodes and constants of an ONNX graph under construction, named by counting."""

    def __init__(self, tensors: Tensors, epsilon: float, *, int8: bool) -> None:
        self.tensors, self.epsilon, self.int8 = tensors, epsilon, int8
        self.nodes: list[Any] = []
        self.constants: dict[str, NDArray[Any]] = {}

    def constant(self, value: Any, dtype: Any = np.float32) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.ascontiguousarray(value, dtype=dtype)
        return name

    def integers(self, *values: int) -> str:
        return self.constant(values, np.int64)

    def add(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """Append a node; the name of its output, or a list of names when there are several."""
        from onnx import helper

        names = [f"n{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(operator, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    def rows(self, table: NDArray[Any], indices: str) -> Any:
        """Rows of an embedding table [v, d], by index."""
        if not self.int8:
            return self.add("Gather", self.constant(table), indices, axis=0)
        values, scales = quantised(table, axis=1, levels=TABLE_LEVELS)
        picked = self.add("Gather", self.constant(values, np.int8), indices, axis=0)
        scale = self.add("Gather", self.constant(scales), indices, axis=0)
        return self.add("Mul", self.add("Cast", picked, to=1), scale)

    def linear(
        self, x: str, weight: NDArray[Any], bias: NDArray[Any], minimum: float | None = None
    ) -> Any:
        """``x @ weight + bias`` for a weight [in, out].

        In int8 each row (token) of ``x`` has its own step: one step for a whole batch, as
        onnxruntime's quantiser has it, doubles the error (mean cosine to fp32 .993 against .996)
        and makes a text's vector depend on its neighbours in the batch; it is 10 % faster.
        ``minimum`` is the least value ``x`` can take, when it is negative and small: then all
        256 levels serve what is above.
        """
        if not self.int8:
            product = self.add("MatMul", x, self.constant(weight))
            return self.add("Add", product, self.constant(bias))
        values, scales = quantised(weight, axis=0, levels=WEIGHT_LEVELS)
        if minimum is None:
            zero, levels, size = 128, 127, self.add("Abs", x)
        else:
            zero, levels, size = 0, 255, self.add("Add", x, self.constant(-minimum))
            x, bias = size, bias + minimum * (values * scales).sum(axis=0)
        zero_point = self.constant(zero, np.uint8)
        largest = self.add("ReduceMax", size, axes=[-1], keepdims=1)
        step = self.add("Mul", largest, self.constant(1 / levels))
        step = self.add("Max", step, self.constant(1e-12))
        steps = self.add("Div", x, step)
        product = self.add(
            "MatMulIntegerToFloat",
            self.add("QuantizeLinear", steps, self.constant(1.0), zero_point),
            self.constant(values, np.int8),
            self.constant(1.0),
            self.constant(scales.ravel()),
            zero_point,
            domain=RUNTIME_OPERATORS,
        )
        return self.add("Add", self.add("Mul", product, step), self.constant(bias))

    def dense(self, name: str, x: str, minimum: float | None = None) -> Any:
        """The layer of that name; see :meth:`linear`."""
        weight, bias = (self.tensors[f"{name}.{part}"] for part in ("weight", "bias"))
        return self.linear(x, weight.T, bias, minimum)

    def normalised(self, name: str, x: str) -> Any:
        scale, shift = (self.constant(self.tensors[f"{name}.{p}"]) for p in ("weight", "bias"))
        return self.add("LayerNormalization", x, scale, shift, axis=-1, epsilon=self.epsilon)

    def gelu(self, x: str) -> Any:
        """Exact GELU, in the form that onnxruntime recognises and fuses."""
        bent = self.add("Erf", self.add("Div", x, self.constant(np.sqrt(2.0))))
        half = self.add("Mul", x, self.add("Add", bent, self.constant(1.0)))
        return self.add("Mul", half, self.constant(0.5))


def quantised(
    values: NDArray[Any], *, axis: int, levels: int
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Symmetric int8 values and the float32 step of each line along ``axis`` (kept as size 1)."""
    steps = np.maximum(np.abs(values).max(axis=axis, keepdims=True), 1e-12) / levels
    return np.rint(values / steps).astype(np.int8), steps.astype(np.float32)


def bert(name: str, tensors: Tensors, config: dict[str, Any], *, int8: bool) -> bytes:
    """The serialised encoder: ``input_ids``, ``attention_mask`` [b, s] → last hidden [b, s, d]."""
    from onnx import TensorProto, helper, numpy_helper

    graph = Graph(tensors, config["layer_norm_eps"], int8=int8)
    x = _embeddings(graph)
    mask = graph.add("Cast", "attention_mask", to=TensorProto.FLOAT)
    hidden = graph.add("Sub", graph.constant(1.0), mask)
    masked = graph.add("Mul", hidden, graph.constant(MASKED))
    penalty = graph.add("Unsqueeze", masked, graph.integers(1, 2))
    for layer in range(config["num_hidden_layers"]):
        x = _layer(graph, f"encoder.layer.{layer}", x, penalty, config["num_attention_heads"])
    graph.nodes.append(helper.make_node("Identity", [x], ["last_hidden_state"]))
    shape = ["batch", "tokens"]
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, shape)
        for name in ("input_ids", "attention_mask")
    ]
    output = helper.make_tensor_value_info(
        "last_hidden_state", TensorProto.FLOAT, [*shape, config["hidden_size"]]
    )
    constants = [numpy_helper.from_array(v, name) for name, v in graph.constants.items()]
    model = helper.make_model(
        helper.make_graph(graph.nodes, name, inputs, [output], constants),
        producer_name="memory-store",
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(RUNTIME_OPERATORS, 1)],
        ir_version=IR_VERSION,
    )
    return bytes(model.SerializeToString(deterministic=True))


def _embeddings(graph: Graph) -> Any:
    """Word + position + the one segment a single text has, normalised: [b, s, d]."""
    word, position, segment = (
        graph.tensors[f"embeddings.{kind}_embeddings.weight"]
        for kind in ("word", "position", "token_type")
    )
    words = graph.rows(word, "input_ids")
    shape = graph.add("Shape", "input_ids")
    tokens = graph.add("Slice", shape, graph.integers(1), graph.integers(2))
    places = graph.constant(position + segment[0])
    place = graph.add("Slice", places, graph.integers(0), tokens)
    return graph.normalised("embeddings.LayerNorm", graph.add("Add", words, place))


def _layer(graph: Graph, name: str, x: str, penalty: str, heads: int) -> Any:
    """One encoder layer on ``x`` [b, s, d]; ``penalty`` [b, 1, 1, s] is added to the logits."""
    attention = f"{name}.attention"
    size = graph.tensors[f"{attention}.self.query.weight"].shape[0]
    # Query, key and value in one product; the scale of the logits goes into the query's weights.
    scale = {"query": (size // heads) ** -0.5, "key": 1.0, "value": 1.0}
    weight, bias = (
        np.concatenate([graph.tensors[f"{attention}.self.{k}.{p}"] * s for k, s in scale.items()])
        for p in ("weight", "bias")
    )
    together = graph.linear(x, weight.T, bias)
    by_head = graph.integers(0, 0, heads, size // heads)
    query, key, value = (
        graph.add("Reshape", part, by_head)
        for part in graph.add("Split", together, outputs=3, axis=-1)
    )
    rows = graph.add("Transpose", query, perm=[0, 2, 1, 3])
    columns = graph.add("Transpose", key, perm=[0, 2, 3, 1])
    logits = graph.add("Add", graph.add("MatMul", rows, columns), penalty)
    weights = graph.add("Softmax", logits, axis=-1)
    mixed = graph.add("MatMul", weights, graph.add("Transpose", value, perm=[0, 2, 1, 3]))
    beside = graph.add("Transpose", mixed, perm=[0, 2, 1, 3])
    flat = graph.add("Reshape", beside, graph.integers(0, 0, size))
    x = graph.add("Add", graph.dense(f"{attention}.output.dense", flat), x)
    x = graph.normalised(f"{attention}.output.LayerNorm", x)
    wide = graph.gelu(graph.dense(f"{name}.intermediate.dense", x))
    narrow = graph.dense(f"{name}.output.dense", wide, minimum=-GELU_MINIMUM)
    return graph.normalised(f"{name}.output.LayerNorm", graph.add("Add", narrow, x))
