"""Static models in Model2Vec's format: read from a folder, fetched by name, equal to their mean."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from model_hub import Hub
from numpy.typing import NDArray
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
from typing_commands import run

from memory_store.errors import ModelUnavailableError
from memory_store.models import embedder as embedders
from memory_store.models.__main__ import main as distill_main
from memory_store.models.embedder import languages_of, load_embedder
from memory_store.store import MemoryStore

WORDS = ("[UNK]", "open", "the", "box", "lid", "coin", "count")
VECTORS = np.random.default_rng(7).normal(size=(len(WORDS), 16)).astype(np.float16)


@pytest.fixture(autouse=True)
def _as_in_a_new_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedders, "_loaded", {})


def written(folder: Path, **tensors: Any) -> Path:
    """A model of seven words, as Model2Vec saves one."""
    folder.mkdir(parents=True)
    tokenizer = Tokenizer(models.WordLevel({w: n for n, w in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    save_file({"embeddings": VECTORS, **tensors}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({"normalize": True}))
    return folder


def mean_of(*words: str) -> NDArray[np.float32]:
    found: NDArray[np.float32] = (
        VECTORS[[WORDS.index(word) for word in words]].astype(np.float32).mean(axis=0)
    )
    found /= np.linalg.norm(found)
    return found


def test_a_text_is_the_mean_of_the_tokens_that_are_known(tmp_path: Path) -> None:
    model = load_embedder(str(written(tmp_path / "static")))
    assert (model.name, model.dimensions, model.max_tokens) == ("static", 16, 512)
    made = model.embed(["Open the BOX, strange", "strange", ""])
    assert made[0] == pytest.approx(mean_of("open", "the", "box"), abs=1e-6)
    assert not made[1:].any()
    assert model.embed_query("lid") == pytest.approx(mean_of("lid"), abs=1e-6)
    assert model.token_offsets("Open the box") == [(0, 4), (5, 8), (9, 12)]
    (tokens,) = model.token_vectors(["lid box"])
    assert tokens.vectors[0] == pytest.approx(mean_of("lid"), abs=1e-6)


def test_tokens_may_share_vectors_and_have_weights(tmp_path: Path) -> None:
    mapping = np.array([0, 1, 2, 3, 3, 5, 6])
    weights = np.array([1, 1, 0, 1, 3, 1, 1], np.float32)
    model = load_embedder(str(written(tmp_path / "static", mapping=mapping, weights=weights)))
    assert model.embed_query("the lid") == pytest.approx(mean_of("box"), abs=1e-6)
    plain = load_embedder(str(written(tmp_path / "other")))
    assert model.fingerprint != plain.fingerprint


def test_a_vault_of_code_is_searched_by_it(tmp_path: Path) -> None:
    folder = written(tmp_path / "static")
    with MemoryStore.in_memory(embedder=str(folder)) as store:
        store.add("def open_lid(box): pass\n", type="code", ref="a.py")
        coin = store.add("count the coin", type="code", ref="b.py")
        (row, *_) = store.search("coin", mode="vector").rows
        assert (row.id, row.vector_rank) == (coin.id, 1)


def test_one_is_fetched_by_name_and_kept_as_it_was(hub: Hub, tmp_path: Path) -> None:
    hub.repositories["minishlab/potion-retrieval-32M"] = written(tmp_path / "hub" / "potion")
    get = ["models", "get", "potion-retrieval-32M"]
    refused = run(*get)
    assert "potion-retrieval-32M --trust" in refused.output
    done = run(*get, "--trust")
    assert done.exit_code == 0, done.output
    model = load_embedder("potion-retrieval-32M")
    assert languages_of(model) == {"en"}
    assert model.embed_query("lid") == pytest.approx(mean_of("lid"), abs=1e-6)
    (tmp_path / "cache" / "models" / "potion-retrieval-32M" / "config.json").write_text("{}")
    embedders._loaded.clear()
    with pytest.raises(ModelUnavailableError, match=r"config\.json"):
        load_embedder("potion-retrieval-32M")


def test_a_graph_of_model2vec_is_not_taken_for_one_of_a_sentence_model(tmp_path: Path) -> None:
    folder = written(tmp_path / "static")
    (folder / "onnx").mkdir()
    (folder / "onnx" / "model.onnx").write_bytes(b"one that takes offsets")
    (folder / "config.json").write_text(json.dumps({"model_type": "model2vec"}))
    assert load_embedder(str(folder)).dimensions == 16


def test_a_folder_that_lacks_vectors_is_refused(tmp_path: Path) -> None:
    folder = written(tmp_path / "static", mapping=np.array([0, 1]))
    with pytest.raises(ModelUnavailableError, match="no vector for each token"):
        load_embedder(str(folder))


def test_one_is_made_of_a_sentence_model(
    tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("the car and the house " * 20)
    (tmp_path / "texts" / "a.png").write_bytes(b"\xff\xfe\xff")
    made = tmp_path / "made"
    asked = ["distill", str(made), "--texts", str(tmp_path / "texts"), "--model", str(tiny)]
    assert distill_main(asked) == 0
    assert "tokens in" in capsys.readouterr().out
    model, whole = load_embedder(str(made)), load_embedder(str(tiny))
    assert model.dimensions == whole.dimensions
    near, far = (
        float(model.embed_query("zebras") @ model.embed_query(t)) for t in ("zebra", "quince")
    )
    assert near > far
    assert distill_main(asked) == 1
    assert "is there already" in capsys.readouterr().err
    assert distill_main([*asked[:1], str(tmp_path / "b"), *asked[2:-1], str(made)]) == 1
    assert "no sentence model" in capsys.readouterr().err
