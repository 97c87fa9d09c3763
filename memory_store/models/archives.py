"""Putting a FlashRank model on this machine: from the hub, or from an archive already here.

Boundary: an archive is hostile until it has been read. Only flat files under the model's own
name are taken out of it, up to a size, into a new folder that is renamed when it is complete.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import urllib.request
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from memory_store.errors import BadInputError
from memory_store.models.embedder import MODEL_NAME_FORM
from memory_store.models.fetching import download
from memory_store.models.reranker import locate_reranker, rerankers_folder

MAX_BYTES = 2 * 1024**3  # of one archive, packed or unpacked; the largest of FlashRank's is 110 MB
DOWNLOAD_SECONDS = 30.0  # without a single byte, before a download is given up


def fetch_reranker(name: str, *, sha256: str | None = None) -> tuple[Path, str]:
    """Download FlashRank's model ``name`` and install it: its folder and the archive's SHA-256.

    FlashRank publishes no checksums; ``sha256`` pins one noted earlier. Raises
    :class:`ModelUnavailableError` when the network is off or down, and as
    :func:`install_reranker` does.
    """
    from flashrank.Config import model_file_map, model_url

    if name not in model_file_map:
        raise BadInputError(f"FlashRank knows no model named {name!r}.", "name")
    url = model_url.format(name)
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=_home()) as folder:
        archive = Path(folder) / "model.zip"
        with (
            download(name, url, f"python -m memory_store.models {name} --archive ZIP"),
            urllib.request.urlopen(url, timeout=DOWNLOAD_SECONDS) as source,
            archive.open("wb") as target,
        ):
            shutil.copyfileobj(source, target)
        return install_reranker(name, archive, sha256=sha256)


def install_reranker(name: str, archive: Path, *, sha256: str | None = None) -> tuple[Path, str]:
    """Install the model ``name`` from a FlashRank ``archive`` (zip): its folder and the SHA-256.

    Raises :class:`BadInputError` when the archive is not what it should be, and changes nothing.
    """
    if MODEL_NAME_FORM.fullmatch(name) is None or "/" in name:
        raise BadInputError(f"{name!r} is no name for a model.", "name")
    digest = _digest(archive)
    if sha256 is not None and sha256.strip().lower() != digest:
        raise BadInputError(f"{archive} has the SHA-256 {digest}, not {sha256}.", "sha256")
    target = _home() / name
    with tempfile.TemporaryDirectory(prefix=".installing-", dir=_home()) as temporary:
        folder = Path(temporary) / name
        folder.mkdir(mode=0o700)
        _unpack(archive, name, folder)
        locate_reranker(str(folder))
        if target.exists():
            os.rename(target, Path(temporary) / "replaced")
        os.rename(folder, target)
    return target, digest


def _home() -> Path:
    folder = rerankers_folder()
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _digest(archive: Path) -> str:
    try:
        if archive.stat().st_size > MAX_BYTES:
            raise BadInputError(f"{archive} is larger than a model can be.", "archive")
        with archive.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise BadInputError(f"{archive} cannot be read: {error.strerror}.", "archive") from error


def _unpack(archive: Path, name: str, folder: Path) -> None:
    """Copy the files ``name/*`` of ``archive`` into ``folder``; everything else is ignored."""
    try:
        with zipfile.ZipFile(archive) as packed:
            files = [(m, PurePosixPath(m.filename)) for m in packed.infolist() if not m.is_dir()]
            chosen = [(member, path.name) for member, path in files if path.parts[:-1] == (name,)]
            if sum(member.file_size for member, _ in chosen) > MAX_BYTES:
                raise BadInputError(f"{archive} unpacks to more than a model can be.", "archive")
            for member, file in chosen:
                with packed.open(member) as source, (folder / file).open("wb") as target:
                    shutil.copyfileobj(source, target)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        raise BadInputError(f"{archive} is not a readable zip file: {error}", "archive") from error
