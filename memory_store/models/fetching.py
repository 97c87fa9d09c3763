"""Fetching model files over the network: the only place in the package that opens a connection.

Boundary: what goes out is the name of a model. Nothing is fetched while ``MEMORY_STORE_OFFLINE``
or ``HF_HUB_OFFLINE`` is set, and an unreachable hub is noticed within seconds, once per process.
"""

from __future__ import annotations

import os
import socket
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from urllib.parse import urlsplit

from memory_store.errors import ModelUnavailableError

OFFLINE_VARIABLES = ("MEMORY_STORE_OFFLINE", "HF_HUB_OFFLINE")
REACH_SECONDS = 2.0  # to open a connection: a hub that is slower than this is as good as absent
QUIET_SECONDS = 60.0  # how long a failure is remembered before the hub is tried again

_failed: dict[str, float] = {}


def network_allowed() -> bool:
    """Whether model files may be asked for: neither offline variable is set to a true value."""
    no = {"", "0", "false", "no", "off"}
    return all(os.environ.get(name, "").strip().lower() in no for name in OFFLINE_VARIABLES)


def reachable(url: str) -> bool:
    """Whether the host of ``url`` (or the proxy set for it) takes a connection within 2 s."""
    parts = urlsplit(urllib.request.getproxies().get("https") or url)
    if parts.hostname is None:
        return False
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((parts.hostname, port), timeout=REACH_SECONDS).close()
    except OSError:
        return False
    return True


def fetch_embedder(name: str, cache: Path, remedy: str) -> tuple[Path, str]:
    """Folder and ONNX file name of a model that FastEmbed knows, from ``cache`` or the hub.

    Raises :class:`ModelUnavailableError` with ``remedy`` when it is neither there nor to be had.
    """
    from fastembed import TextEmbedding
    from fastembed.common.model_description import DenseModelDescription, ModelSource

    known = {row["model"].lower(): row for row in TextEmbedding.list_supported_models()}
    row = known.get(name.lower())
    if row is None:
        raise ModelUnavailableError(f"FastEmbed knows no model named {name!r}.", remedy)
    description = DenseModelDescription(**{**row, "sources": ModelSource(**row["sources"])})

    def from_hub(*, only_cached: bool) -> Path:
        with _quiet("fastembed"):
            return Path(
                TextEmbedding.download_model(
                    description, str(cache), retries=1, local_files_only=only_cached
                )
            )

    try:
        return from_hub(only_cached=True), description.model_file
    except ValueError:
        endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co")
        with download(name, endpoint, remedy):
            return from_hub(only_cached=False), description.model_file


@contextmanager
def download(name: str, url: str, remedy: str) -> Iterator[None]:
    """Run a download of ``name``, if the network is allowed and up; typed errors otherwise."""
    absent = f"The model {name} is not on this machine"
    if not network_allowed():
        raise ModelUnavailableError(f"{absent}, and the network is switched off.", remedy)
    lately = name in _failed and time.monotonic() - _failed[name] < QUIET_SECONDS
    if not lately and not reachable(url):
        _failed[name] = time.monotonic()
        lately = True
    if lately:
        raise ModelUnavailableError(f"{absent}, and {url} cannot be reached.", remedy)
    try:
        yield
    except (OSError, ValueError, HTTPException) as error:
        _failed[name] = time.monotonic()
        raise ModelUnavailableError(f"{absent}, and fetching it failed: {error}", remedy) from error


@contextmanager
def _quiet(package: str) -> Iterator[None]:
    """Silence a package that logs through loguru what we raise as an error anyway."""
    from loguru import logger

    logger.disable(package)
    try:
        yield
    finally:
        logger.enable(package)
