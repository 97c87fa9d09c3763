"""A model that fails on a word, or answers with what are no vectors: said by name, nothing lost."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from tiny_embedder import DIMENSIONS, build, vocabulary
from tiny_reranker import FILE
from tiny_reranker import build as build_reranker

from memory_store.errors import ModelUnavailableError
from memory_store.store import MemoryStore

WORD = "hexed"  # what each of the models fails on


def constant(model: onnx.ModelProto, name: str) -> onnx.TensorProto:
    return next(one for one in model.graph.initializer if one.name == name)


def raising(model: onnx.ModelProto) -> None:
    """The last word's vector is not there: the runtime refuses to look it up."""
    kept = numpy_helper.to_array(constant(model, "vectors"))[:-1]
    constant(model, "vectors").CopyFrom(numpy_helper.from_array(kept, "vectors"))


def no_numbers(model: onnx.ModelProto) -> None:
    """The last word's vector is not a number, as after an overflow in half precision."""
    vectors = numpy_helper.to_array(constant(model, "vectors")).astype(np.float32)
    vectors[-1] = np.nan
    constant(model, "vectors").CopyFrom(numpy_helper.from_array(vectors, "vectors"))


def other_length(model: onnx.ModelProto) -> None:
    """Vectors of texts with that word are half as long as others."""
    graph, node = model.graph, helper.make_node
    graph.node[-1].output[0] = "whole"
    half = np.array([DIMENSIONS // 2], np.int64)
    for name, value in {
        "word": np.array(vocabulary([WORD])[WORD], np.int64),
        "half": half,
        "full": 2 * half,
        "first": np.array([0], np.int64),
        "last": np.array([2], np.int64),
    }.items():
        graph.initializer.append(numpy_helper.from_array(value, name))
    graph.node.extend(
        [
            node("Equal", ["input_ids", "word"], ["is_word"]),
            node("Cast", ["is_word"], ["counted"], to=onnx.TensorProto.INT64),
            node("ReduceMax", ["counted"], ["any"], keepdims=0),
            node("Mul", ["any", "half"], ["less"]),
            node("Sub", ["full", "less"], ["length"]),
            node("Slice", ["whole", "first", "length", "last"], ["last_hidden_state"]),
        ]
    )
    graph.output[0].type.tensor_type.shape.dim[2].dim_param = "length"


@pytest.fixture(params=[raising, no_numbers, other_length], ids=lambda kind: kind.__name__)
def failing(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A real model, which fails on texts with one word."""
    folder = build(tmp_path / "models" / f"tiny-{request.param.__name__}", words=[WORD])
    model = onnx.load(folder / "model.onnx")
    request.param(model)
    onnx.save(model, folder / "model.onnx")
    return folder


@pytest.fixture
def store(make_store: Callable[..., MemoryStore], failing: Path, tmp_path: Path) -> MemoryStore:
    """A vault into which a folder was imported, with that word in one of its files."""
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.md").write_text("The sluice is opened in March.")
    (notes / "b.md").write_text(f"The {WORD} sluice is never opened.")
    (notes / "c.md").write_text("Otters live at the weir.")
    return make_store(embedder=str(failing))


def test_an_import_keeps_every_note_and_says_which_model_failed(
    store: MemoryStore, failing: Path, tmp_path: Path
) -> None:
    report = store.import_paths([tmp_path / "notes"])
    assert (report.imported, report.failed) == (3, 0)
    (line,) = report.degraded
    assert line.startswith(f"stored without vectors: The model {failing.name} failed on a text")
    assert line.endswith(f"then memory-store reindex {store.path}")
    assert WORD not in line
    assert len(store.list()) == 3
    assert store.verify()["failures"] == []
    assert len(store.search("sluice", mode="vector").rows) == 2  # those that have vectors
    (found,) = store.search(WORD, mode="keyword").rows
    assert found.ref == "b.md"
    with pytest.raises(ModelUnavailableError, match=failing.name):  # until the model is mended
        store.reindex()
    assert len(store.search("sluice", mode="vector").rows) == 2


def test_a_memory_that_cannot_be_embedded_is_refused_and_the_next_is_not(
    store: MemoryStore, failing: Path
) -> None:
    kept = store.add("The sluice is opened in March.")
    for write in (lambda: store.add(f"The {WORD} sluice."), lambda: store.edit(kept.id, text=WORD)):
        with pytest.raises(ModelUnavailableError, match=failing.name) as refusal:
            write()
        assert WORD not in "".join(traceback.format_exception(refusal.value))
    assert [memory.text for memory in store.list()] == [kept.text]
    store.add("Otters live at the weir.")
    assert store.verify()["failures"] == []


def test_a_query_that_cannot_be_embedded_is_searched_by_its_words(
    store: MemoryStore, failing: Path, tmp_path: Path
) -> None:
    store.import_paths([tmp_path / "notes"])
    answer = store.search(f"the {WORD} sluice")
    assert answer.rows[0].ref == "b.md"
    assert any(failing.name in line for line in answer.degraded), answer.degraded
    assert not any(WORD in line for line in answer.degraded)
    with pytest.raises(ModelUnavailableError, match=failing.name):
        store.search(f"the {WORD} sluice", mode="vector")
    assert not any(failing.name in line for line in store.search("the sluice").degraded)


def test_a_reranker_that_fails_leaves_the_order_of_fusion(
    make_store: Callable[..., MemoryStore], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = build_reranker(tmp_path / "tiny-failing-reranker", words=[WORD])
    model = onnx.load(folder / FILE)
    kept = numpy_helper.to_array(constant(model, "speaks"))[:-1]
    constant(model, "speaks").CopyFrom(numpy_helper.from_array(kept, "speaks"))
    onnx.save(model, folder / FILE)
    monkeypatch.setenv("MEMORY_STORE_RERANKER", str(folder))
    store = make_store()
    for number in range(12):
        store.add(f"The sluice, part {number}.")
    store.add(f"The {WORD} sluice.")
    fused = [row.id for row in store.search("the sluice", rerank=False).rows]
    answer = store.search("the sluice")
    assert [row.id for row in answer.rows] == fused
    assert any("tiny-failing-reranker failed on a text" in line for line in answer.degraded)
    assert not any(WORD in line for line in answer.degraded)
