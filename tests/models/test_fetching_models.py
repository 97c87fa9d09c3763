"""``memory-store models get``: what is fetched, compared, kept, recorded and refused."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import tiny_embedder
from click.testing import CliRunner, Result
from model_hub import REVISION, Hub

from memory_store.cli import main
from memory_store.errors import ModelUnavailableError
from memory_store.models import embedder as embedders
from memory_store.models import offline, pins
from memory_store.models import reranker as rerankers
from memory_store.models.embedder import load_embedder
from memory_store.models.reranker import DEFAULT_RERANKER, load_reranker

REPOSITORY = "Qdrant/all-MiniLM-L6-v2-onnx"
UNPINNED = "BAAI/bge-small-en-v1.5"
UNPINNED_REPOSITORY = "Qdrant/bge-small-en-v1.5-onnx-Q"


@pytest.fixture(autouse=True)
def _as_in_a_new_process(monkeypatch: pytest.MonkeyPatch, without_weights: None) -> None:
    """Models are loaded once per process: here each test is one."""
    monkeypatch.setattr(embedders, "_loaded", {})
    monkeypatch.setattr(rerankers, "_loaded", {})


@pytest.fixture
def pinned(tiny: Path, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The hub's copy of the default model, in its place the tiny one, which is pinned."""
    served = shutil.copytree(tiny, tmp_path / "hub" / "minilm")
    hub.repositories[REPOSITORY] = served
    names = sorted(file.name for file in served.iterdir())
    files = [
        {"name": name, "size": (served / name).stat().st_size, "sha256": digest}
        for name, digest in pins.digests_of(served, names).items()
    ]
    revision = {"id": REVISION, "source": "this test", "files": files}
    model = {"name": offline.MODEL_NAME, "kind": "embedding", "licence": "Apache-2.0"}
    model |= {"repository": REPOSITORY, "graph": "model.onnx", "revisions": [revision]}
    data = tmp_path / "pins.json"
    data.write_text(json.dumps({"models": [model]}))
    monkeypatch.setattr(pins, "PINS", data)
    pins.known_models.cache_clear()
    yield served
    pins.known_models.cache_clear()


@pytest.fixture
def unpinned(tiny: Path, hub: Hub, tmp_path: Path) -> Path:
    """The hub's copy of a model that nothing is known of."""
    served = shutil.copytree(tiny, tmp_path / "hub" / "bge")
    (served / "model.onnx").rename(served / "model_optimized.onnx")
    hub.repositories[UNPINNED_REPOSITORY] = served
    return served


def run(*words: str) -> Result:
    result = CliRunner().invoke(main, ["models", *words], prog_name="memory-store")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def listed(name: str) -> dict[str, Any]:
    rows = json.loads(run("--json").stdout)
    return next(row for row in rows if row["name"] == name)


def left_in(folder: Path) -> list[str]:
    """Every file below a folder."""
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


def test_the_files_are_named_before_they_are_fetched_and_then_used(pinned: Path, hub: Hub) -> None:
    with pytest.raises(ModelUnavailableError) as absent:
        load_embedder()
    assert absent.value.remedy == "memory-store models get"
    done = run("get")
    assert done.exit_code == 0, done.output
    assert f"from {hub.address}/{REPOSITORY} at {REVISION[:12]}" in done.stderr
    for file in pinned.iterdir():
        assert f"{file.name}  " in done.stderr
        assert pins.digest_of(file) in done.stderr
    assert load_embedder().name == offline.MODEL_NAME
    asked = [path for path in hub.asked if "/resolve/" in path]
    assert asked == [f"/{REPOSITORY}/resolve/{REVISION}/{name}" for name in sorted(left_in(pinned))]


def test_what_is_here_and_fits_is_not_fetched_again(pinned: Path, hub: Hub) -> None:
    run("get")
    hub.asked.clear()
    assert "is here" in run("get").stdout
    assert listed(offline.MODEL_NAME)["state"] == "present"
    assert load_embedder()
    assert hub.asked == []


@pytest.mark.parametrize(
    "change",
    [
        lambda file: file.write_bytes(file.read_bytes()[::-1]),
        lambda file: file.write_bytes(file.read_bytes()[:-1]),
        lambda file: file.write_bytes(file.read_bytes() + b"more"),
        lambda file: file.unlink(),
    ],
    ids=["other bytes", "too short", "too long", "missing"],
)
def test_a_hub_that_sends_something_else_is_refused_and_nothing_is_kept(
    change: Callable[[Path], object], pinned: Path, cache: Path
) -> None:
    change(pinned / "tokenizer.json")
    done = run("get")
    assert done.exit_code == 1
    assert "tokenizer.json" in done.stderr
    assert left_in(cache) == []
    with pytest.raises(ModelUnavailableError, match="not on this machine"):
        load_embedder()


def test_a_model_that_was_here_stays_where_another_cannot_be_fetched(
    pinned: Path, cache: Path
) -> None:
    run("get")
    before = left_in(cache)
    (pinned / "tokenizer.json").unlink()
    assert run("get", "--trust").exit_code == 1
    assert left_in(cache) == before
    assert load_embedder().dimensions == tiny_embedder.DIMENSIONS


def test_a_redirection_to_an_address_without_tls_is_not_followed(
    pinned: Path, hub: Hub, attempts: list[object], cache: Path
) -> None:
    hub.elsewhere = "http://192.0.2.1"
    done = run("get")
    assert done.exit_code == 1
    assert "without TLS" in done.stderr
    assert attempts == []
    assert left_in(cache) == []


@pytest.mark.parametrize(
    ("variable", "value", "code", "said"),
    [
        ("HF_ENDPOINT", "http://hub.example", 2, "https"),
        ("HF_ENDPOINT", "http://127.0.0.1:9", 1, "could not be fetched"),
        ("HF_ENDPOINT", "http://127.0.0.1:9", 1, "datasette-hybrid[offline]"),
        ("MEMORY_STORE_OFFLINE", "1", 1, "unset MEMORY_STORE_OFFLINE"),
        ("HF_HUB_OFFLINE", "1", 1, "unset HF_HUB_OFFLINE"),
    ],
)
def test_a_hub_that_may_not_or_cannot_be_asked_says_what_to_do(
    pinned: Path,
    hub: Hub,
    attempts: list[object],
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    value: str,
    code: int,
    said: str,
) -> None:
    monkeypatch.setenv(variable, value)
    done = run("get")
    assert (done.exit_code, said in done.stderr) == (code, True), done.stderr
    assert attempts == hub.asked == []


@pytest.mark.parametrize("file", ["model.onnx", "tokenizer.json", "config.json"])
def test_a_file_that_was_changed_afterwards_is_not_loaded(
    file: str, pinned: Path, cache: Path
) -> None:
    run("get")
    place = cache / "models" / offline.MODEL_NAME / file
    place.write_bytes(place.read_bytes() + b" ")
    with pytest.raises(ModelUnavailableError, match="not those that were recorded") as caught:
        load_embedder()
    assert file in str(caught.value)
    assert caught.value.remedy == "memory-store models get"
    assert listed(offline.MODEL_NAME)["state"] == "refused"
    assert run("get").exit_code == 0, "the command mends it"
    assert load_embedder()


def test_a_model_without_a_pin_is_not_fetched_without_your_word(unpinned: Path, hub: Hub) -> None:
    done = run("get", UNPINNED)
    assert done.exit_code == 1
    assert f"memory-store models get {UNPINNED} --trust" in done.stderr
    assert hub.asked == []


def test_what_you_trust_is_recorded_and_said(unpinned: Path) -> None:
    done = run("get", UNPINNED, "--trust")
    assert done.exit_code == 0, done.output
    assert "you trust it" in done.stderr
    assert pins.digest_of(unpinned / "model_optimized.onnx") in done.stderr
    assert load_embedder(UNPINNED).name == UNPINNED
    row = listed(UNPINNED)
    assert row["state"] == "present"
    assert row["pin"].startswith("recorded on ")
    assert row["revision"] == REVISION


def test_a_hub_that_names_no_commit_is_not_trusted(unpinned: Path, hub: Hub, cache: Path) -> None:
    hub.revision = "\x1b]52;c;ZXZpbA==\x07"
    done = run("get", UNPINNED, "--trust")
    assert done.exit_code == 1
    assert "names no commit" in done.stderr
    assert "\x1b" not in done.output
    assert left_in(cache) == []


def test_what_was_trusted_is_refused_when_it_changes_here(unpinned: Path, cache: Path) -> None:
    run("get", UNPINNED, "--trust")
    graph = cache / "models" / UNPINNED / "model_optimized.onnx"
    graph.write_bytes(graph.read_bytes().replace(b"last_hidden_state", b"lost_hidden_state"))
    with pytest.raises(ModelUnavailableError, match=r"model_optimized\.onnx") as caught:
        load_embedder(UNPINNED)
    assert caught.value.remedy == f"memory-store models get {UNPINNED}"


def test_what_was_trusted_is_noticed_when_the_hub_changes_it(unpinned: Path, cache: Path) -> None:
    run("get", UNPINNED, "--trust")
    shutil.rmtree(cache / "models")
    tokenizer = unpinned / "tokenizer.json"
    tokenizer.write_text(tokenizer.read_text().replace('"puppy"', '"pappy"'))
    refused = run("get", UNPINNED)
    assert refused.exit_code == 1
    assert "not the file that was recorded" in refused.stderr
    again = run("get", UNPINNED, "--trust")
    assert again.exit_code == 0
    assert "Changed since it was recorded: tokenizer.json" in again.stderr


def test_a_name_that_neither_knows_is_refused_before_anything_is_asked(hub: Hub) -> None:
    for name in ("no/such-model", "smaller"):
        done = run("get", name, "--trust")
        assert done.exit_code == 2
        assert "Neither FastEmbed nor FlashRank" in done.stderr
    assert run("get", "../../escaped").exit_code == 1
    assert hub.asked == []


def test_fastembeds_own_cache_is_used_where_its_files_fit(pinned: Path, cache: Path) -> None:
    snapshot = cache / "models" / f"models--{REPOSITORY.lower().replace('/', '--')}"
    shutil.copytree(pinned, snapshot / "snapshots" / REVISION)
    (snapshot / "refs").mkdir()
    (snapshot / "refs" / "main").write_text(REVISION)
    assert load_embedder().name == offline.MODEL_NAME


def test_a_broken_record_names_the_file(unpinned: Path, tmp_path: Path) -> None:
    run("get", UNPINNED, "--trust")
    (tmp_path / "config" / "models.json").write_text("{")
    with pytest.raises(ModelUnavailableError, match=r"models\.json cannot be read"):
        load_embedder(UNPINNED)


def _archive(folder: Path, target: Path, name: str = DEFAULT_RERANKER) -> Path:
    """The files of ``folder`` as FlashRank packs them, with two that have no business there."""
    with zipfile.ZipFile(target, "w") as packed:
        for file in folder.iterdir():
            packed.write(file, f"{name}/{file.name}")
        packed.writestr(f"{name}/../escaped.txt", "outside")
        packed.writestr("__MACOSX/._config.json", "junk")
    return target


def test_a_reranker_that_is_not_the_pinned_one_is_refused(
    tiny_cross_encoder: Path, hub: Hub, tmp_path: Path, cache: Path
) -> None:
    hub.repositories["prithivida/flashrank"] = tmp_path / "hub"
    (tmp_path / "hub").mkdir()
    _archive(tiny_cross_encoder, tmp_path / "hub" / f"{DEFAULT_RERANKER}.zip")
    known = pins.known_model(DEFAULT_RERANKER)
    assert known is not None
    hub.revision = known.revisions[0].id
    done = run("get", DEFAULT_RERANKER)
    assert done.exit_code == 1
    assert f"{DEFAULT_RERANKER}.zip of {DEFAULT_RERANKER} has" in done.stderr
    assert left_in(cache) == []


def test_a_reranker_is_installed_from_an_archive_that_you_trust(
    cache: Path, tiny_cross_encoder: Path, tmp_path: Path
) -> None:
    archive = _archive(tiny_cross_encoder, tmp_path / "model.zip")
    refused = run("get", DEFAULT_RERANKER, "--archive", str(archive))
    assert refused.exit_code == 1
    assert left_in(cache) == []
    for _ in range(2):
        done = run("get", DEFAULT_RERANKER, "--archive", str(archive), "--trust")
        assert done.exit_code == 0, done.output
    assert load_reranker().name == DEFAULT_RERANKER
    assert load_reranker().calibration is not None
    assert [entry.name for entry in (cache / "rerankers").iterdir()] == [DEFAULT_RERANKER]
    assert not list(tmp_path.rglob("escaped.txt"))


def test_a_reranker_that_was_changed_afterwards_is_not_loaded(
    cache: Path, tiny_cross_encoder: Path, tmp_path: Path
) -> None:
    archive = _archive(tiny_cross_encoder, tmp_path / "model.zip")
    run("get", DEFAULT_RERANKER, "--archive", str(archive), "--trust")
    tokenizer = cache / "rerankers" / DEFAULT_RERANKER / "tokenizer.json"
    tokenizer.write_text(tokenizer.read_text() + " ")
    with pytest.raises(ModelUnavailableError, match=r"tokenizer\.json") as caught:
        load_reranker()
    assert caught.value.remedy == f"memory-store models get {DEFAULT_RERANKER}"


def test_an_archive_that_is_not_what_it_should_be_changes_nothing(
    cache: Path, tiny_cross_encoder: Path, tmp_path: Path
) -> None:
    good = _archive(tiny_cross_encoder, tmp_path / "good.zip")
    cut = tmp_path / "cut.zip"
    cut.write_bytes(good.read_bytes()[:2000])
    other = _archive(tiny_cross_encoder, tmp_path / "other.zip", name="something-else")
    for archive in (cut, other, tmp_path / "absent.zip"):
        done = run("get", DEFAULT_RERANKER, "--archive", str(archive), "--trust")
        assert done.exit_code in (1, 2), archive
        assert "Error: " in done.stderr
    assert run("get", "--archive", str(good)).exit_code == 2, "an embedding model"
    assert left_in(cache) == []


@pytest.mark.model
def test_a_package_of_weights_that_is_not_the_pinned_one_builds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    source = offline.weights_folder()
    if source is None:
        pytest.skip("the offline extra is not installed")
    package = tmp_path / "site" / offline.PACKAGE
    shutil.copytree(source, package / "model")
    (package / "__init__.py").write_text("")
    config = package / "model" / "config.json"
    config.write_text(config.read_text().replace('"layer_norm_eps": 1e-12', '"layer_norm_eps": 1'))
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    with pytest.raises(ModelUnavailableError, match=r"not the one that is pinned \(config\.json"):
        offline.build_model(tmp_path / "built")
    assert not (tmp_path / "built").exists()
