"""The embedder interface, on a tiny real model that FastEmbed loads."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_hub import Hub

from memory_store.errors import ModelUnavailableError
from memory_store.models.embedder import Embedder, load_embedder
from memory_store.models.places import locate_embedder

TEXTS = [
    "the car broke down",
    "rotation of encryption keys",
    "my automobile broke down on the motorway",
    "the car broke down",
    "",
    "keys " * 50,
]
MULTILINGUAL = "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"


def test_vectors_come_back_in_the_order_of_the_texts(embedder: Embedder) -> None:
    vectors = embedder.embed(TEXTS)
    assert vectors.shape == (len(TEXTS), embedder.dimensions)
    assert vectors.dtype == np.float32
    for text, vector in zip(TEXTS, vectors, strict=True):
        assert vector == pytest.approx(embedder.embed_query(text), abs=1e-6)
        assert not text or np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)
    assert embedder.embed(TEXTS[::-1])[::-1] == pytest.approx(vectors, abs=0)
    assert embedder.embed([]).shape == (0, embedder.dimensions)


def test_several_queries_are_embedded_as_if_alone(embedder: Embedder) -> None:
    vectors = embedder.embed_queries(TEXTS)
    assert vectors.shape == (len(TEXTS), embedder.dimensions)
    for text, vector in zip(TEXTS, vectors, strict=True):
        assert (vector == embedder.embed_query(text)).all()
    assert embedder.embed_queries([]).shape == (0, embedder.dimensions)


def test_texts_of_one_meaning_are_closer_than_others(embedder: Embedder) -> None:
    car, keys, automobile = embedder.embed(TEXTS[:3])
    assert car @ automobile > 0.5 > car @ keys + 0.2


def test_more_texts_than_a_batch_keep_their_places(embedder: Embedder) -> None:
    texts = [f"note {number} " * (1 + number % 7) for number in range(100)]
    vectors = embedder.embed(texts)
    for number in (0, 15, 16, 17, 63, 99):
        assert vectors[number] == pytest.approx(embedder.embed_query(texts[number]), abs=1e-6)


def test_a_text_is_read_to_its_last_token_and_no_further(embedder: Embedder) -> None:
    full = ["a1"] * (embedder.max_tokens - 3)  # [CLS] and [SEP] take a place each
    assert embedder.count_tokens(" ".join([*full, "b2"])) == embedder.max_tokens - 2
    last, other, beyond = embedder.embed(
        [" ".join([*full, "b2"]), " ".join([*full, "c3"]), " ".join([*full, "b2", "d4"])]
    )
    assert not np.allclose(last, other)
    assert last == pytest.approx(beyond, abs=0)


def test_token_offsets_point_at_the_words_however_long_the_text(embedder: Embedder) -> None:
    text = "Grüße 🌲 an the car " * 200
    offsets = embedder.token_offsets(text)
    assert len(offsets) == embedder.count_tokens(text) > embedder.max_tokens
    cars = [text[start:end] for start, end in offsets if text[start:end] == "car"]
    assert len(cars) == 200
    assert text[offsets[-1][0] : offsets[-1][1]] == "car"


@settings(max_examples=60, deadline=None)
@given(text=st.text(max_size=200))
def test_any_text_at_all_has_offsets_in_order_and_a_vector(text: str, tiny: Path) -> None:
    embedder = load_embedder(str(tiny))
    offsets = embedder.token_offsets(text)
    assert all(0 <= start <= end <= len(text) for start, end in offsets)
    assert offsets == sorted(offsets)
    assert np.isfinite(embedder.embed_query(text)).all()


def test_lone_surrogates_do_not_stop_it(embedder: Embedder) -> None:
    broken = "the \ud800 car"
    assert embedder.embed([broken])[0] == pytest.approx(embedder.embed_query("the ? car"))
    assert embedder.token_offsets(broken)[-1] == (6, 9)


def test_many_threads_load_a_model_once_and_get_the_vectors_one_would(
    embedder: Embedder, tiny: Path, tmp_path: Path
) -> None:
    alone = embedder.embed(TEXTS)
    copy = shutil.copytree(tiny, tmp_path / "copy")
    with ThreadPoolExecutor(12) as pool:
        loaded = list(pool.map(lambda _: load_embedder(str(copy)), range(24)))
        assert len({id(one) for one in loaded}) == 1
        for vectors in pool.map(lambda _: embedder.embed(TEXTS), range(40)):
            assert vectors == pytest.approx(alone, abs=1e-6)


def test_the_environment_chooses_the_model(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_STORE_MODEL", str(tiny))
    assert load_embedder() is load_embedder(str(tiny))
    assert load_embedder().name == "tiny"
    assert load_embedder("tiny") is load_embedder()  # as a vault remembers it
    with pytest.raises(ModelUnavailableError, match="no model folder 'tiniest'"):
        load_embedder("tiniest")


def test_the_fingerprint_separates_models_and_copies_together(
    embedder: Embedder, tiny: Path, tmp_path: Path
) -> None:
    def changed(name: str, file: str, before: bytes, after: bytes) -> str:
        folder = shutil.copytree(tiny, tmp_path / name)
        content = (folder / file).read_bytes()
        (folder / file).write_bytes(content.replace(before, after))
        return load_embedder(str(folder)).fingerprint

    assert changed("copy", "config.json", b"", b"") == embedder.fingerprint
    window = changed("window", "tokenizer_config.json", b": 64", b": 32")
    pieces = changed("pieces", "tokenizer.json", b'"puppy"', b'"pappy"')
    graph = changed("graph", "model.onnx", b"last_hidden_state", b"lost_hidden_state")
    assert len({embedder.fingerprint, window, pieces, graph}) == 4


def test_a_folder_says_how_its_output_is_pooled(tiny: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny, tmp_path / "first-token")
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_cls_token": True}))
    # The tiny model's first token, [CLS], says nothing: its vector is zero whatever follows.
    assert not load_embedder(str(folder)).embed_query("the car").any()
    assert load_embedder(str(tiny)).embed_query("the car").any()


@pytest.mark.parametrize(
    ("name", "command"),
    [
        (None, "memory-store models get"),
        (MULTILINGUAL, f"memory-store models get {MULTILINGUAL}"),
        ("BAAI/bge-small-en-v1.5", "memory-store models get BAAI/bge-small-en-v1.5 --trust"),
    ],
)
def test_an_absent_model_names_the_command_that_fetches_it_and_no_one_is_asked(
    name: str | None,
    command: str,
    without_weights: None,
    attempts: list[object],
    hub: Hub,
) -> None:
    assert locate_embedder(name) is None
    with pytest.raises(ModelUnavailableError, match="is not on this machine") as caught:
        load_embedder(name)
    assert caught.value.remedy == command
    assert attempts == hub.asked == []


@pytest.mark.parametrize(
    "name", ["no/such-model", "../../no-such", "/nowhere", "a b", "x" * 500, "a\0b"]
)
def test_a_name_that_is_no_model_is_a_clear_error(name: str, attempts: list[object]) -> None:
    with pytest.raises(ModelUnavailableError) as caught:
        load_embedder(name)
    assert repr(name) in str(caught.value)
    assert caught.value.remedy
    assert attempts == []


@pytest.mark.parametrize(
    "file", ["model.onnx", "tokenizer.json", "tokenizer_config.json", "config.json"]
)
def test_an_incomplete_or_broken_folder_is_named(file: str, tiny: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny, tmp_path / "model")
    (folder / file).write_bytes(b"\x00 not what it should be")
    with pytest.raises(ModelUnavailableError, match="cannot be loaded") as caught:
        load_embedder(str(folder))
    assert str(folder) in str(caught.value)
    (folder / file).unlink()
    with pytest.raises(ModelUnavailableError, match=f"lacks .*{file}"):
        load_embedder(str(folder))
