"""The only place in the package that opens a connection: named files of a model hub, by HTTPS.

(:mod:`memory_store.models.weights_wheel` starts pip, which does.)

Boundary: what goes out is the name of a model, a revision and a file. Nothing calls this but
``memory-store models get``, and ``init`` and ``import`` after you answered yes. Nothing is asked
for while ``MEMORY_STORE_OFFLINE`` or ``HF_HUB_OFFLINE`` is set. What comes in is not trusted: its
length and SHA-256 are counted here and compared by the caller before a file is used.
"""

from __future__ import annotations

import hashlib
import os
import re
import ssl
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPException
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from socket import gaierror
from typing import IO, Any
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit

import msgspec
from msgspec import Struct

from memory_store.errors import BadInputError, ModelUnavailableError

OFFLINE_VARIABLES = ("MEMORY_STORE_OFFLINE", "HF_HUB_OFFLINE")
ENDPOINT_VARIABLE = "HF_ENDPOINT"
ENDPOINT = "https://huggingface.co"
QUIET_SECONDS = 30.0  # without a single byte, before a connection is given up
MOST_LISTED = 10 * 1024**2  # bytes of a hub's answer about one model
MAX_BYTES = 4 * 1024**3  # of one file; the largest that FastEmbed knows has 2.4 GB
PIECE = 1024**2
COMMIT = re.compile(r"[0-9a-f]{40}")

OnProgress = Callable[[str, int, int | None], None]  # file, bytes so far, bytes in all


class Sibling(Struct, frozen=True):
    """A file as the hub lists it."""

    rfilename: str
    size: int | None = None


class Listing(Struct, frozen=True):
    """What the hub says of a model: its newest commit, and the files in it."""

    sha: str
    siblings: tuple[Sibling, ...] = ()


def network_allowed() -> bool:
    """Whether model files may be asked for: neither offline variable is set to a true value."""
    no = {"", "0", "false", "no", "off"}
    return all(os.environ.get(name, "").strip().lower() in no for name in OFFLINE_VARIABLES)


def endpoint() -> str:
    """The hub: ``HF_ENDPOINT``, else Hugging Face. Plain HTTP is for this machine only."""
    chosen = os.environ.get(ENDPOINT_VARIABLE, "").rstrip("/") or ENDPOINT
    if not _allowed(chosen):
        raise BadInputError(
            f"{ENDPOINT_VARIABLE} is {chosen}: a hub needs an https:// address", ENDPOINT_VARIABLE
        )
    return chosen


def newest(repository: str, remedy: str) -> Listing:
    """The newest commit of a repository and its files, as the hub says now."""
    url = f"{endpoint()}/api/models/{quote(repository)}/revision/main?blobs=true"
    with _opened(url, repository, remedy) as answer:
        text = answer.read(MOST_LISTED + 1)
    try:
        listing = msgspec.json.decode(text, type=Listing)
    except msgspec.DecodeError as error:
        raise ModelUnavailableError(
            f"{url} answers with what is no list of files: {error}", remedy
        ) from error
    if COMMIT.fullmatch(listing.sha) is None:  # it is shown, and becomes part of an address
        raise ModelUnavailableError(f"{url} names no commit.", remedy)
    return listing


def fetch_file(
    place: tuple[str, str, str], target: Path, size: int | None, progress: OnProgress, remedy: str
) -> tuple[int, str]:
    """Write a file of the hub to ``target``: its length and SHA-256.

    ``place`` is its repository, the commit there, and its name. Ends early, with an error, when
    more comes than ``size`` bytes.
    """
    repository, revision, file = place
    url = f"{endpoint()}/{quote(repository)}/resolve/{quote(revision)}/{quote(file)}"
    digest, length = hashlib.sha256(), 0
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _opened(url, f"{repository}/{file}", remedy) as source, target.open("wb") as out:
        while piece := source.read(PIECE):
            length += len(piece)
            if length > (most := MAX_BYTES if size is None else size):
                raise ModelUnavailableError(
                    f"{url} sends more than the {most:,} bytes of {file}. Nothing was kept.",
                    remedy,
                )
            digest.update(piece)
            out.write(piece)
            progress(file, length, size)
    return length, digest.hexdigest()


@contextmanager
def _opened(url: str, what: str, remedy: str) -> Iterator[IO[bytes]]:
    """A connection to ``url``, if the network is allowed and up; typed errors otherwise."""
    if not network_allowed():
        named = " and ".join(name for name in OFFLINE_VARIABLES if os.environ.get(name))
        raise ModelUnavailableError(
            f"{what} was not fetched: the network is switched off.", f"unset {named}"
        )
    opener = urllib.request.build_opener(
        _Redirects(), urllib.request.HTTPSHandler(context=_certificates())
    )
    request = urllib.request.Request(url, headers={"User-Agent": "memory-store"})
    try:
        with opener.open(request, timeout=QUIET_SECONDS) as answer:
            yield answer
    except (OSError, HTTPException) as error:
        why = str(getattr(error, "reason", error))
        if isinstance(error, HTTPError):
            why = f"{error.code} {why}"
        elif isinstance(getattr(error, "reason", None), gaierror):
            why = "its name is not known here, so this machine may be offline"
        raise ModelUnavailableError(
            f"{what} could not be fetched from {urlsplit(url).netloc}: {why}. Nothing was kept.",
            remedy,
        ) from error


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Hubs keep large files elsewhere: followed to HTTPS addresses alone."""

    def redirect_request(
        self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        if not _allowed(newurl):
            raise HTTPError(newurl, code, "redirected to an address without TLS", headers, fp)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _allowed(url: str) -> bool:
    parts = urlsplit(url)
    if parts.scheme == "https" and parts.hostname:
        return True
    if parts.scheme != "http" or not parts.hostname:
        return False
    try:
        return ip_address(parts.hostname).is_loopback
    except ValueError:
        return parts.hostname == "localhost"


def _certificates() -> ssl.SSLContext:
    """The system's certificates, and certifi's where some Pythons bring none."""
    context = ssl.create_default_context()
    if find_spec("certifi") is not None:
        import certifi

        context.load_verify_locations(certifi.where())
    return context
