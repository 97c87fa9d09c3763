"""Source code that others have published, fetched by whatever fetches packages for the user.

Nothing foreign stands in this repository: each package is named with its version and its digest,
fetched once into a cache outside (``PACKAGES``, else the user's own cache), and held against the
digest at every use. ``REQUIRE_PACKAGES`` makes an error of what cannot be fetched.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import NamedTuple

import pytest
from filelock import FileLock

PIP, NPM, APT = "pip", "npm", "apt-get"
CACHE = Path(os.environ.get("PACKAGES") or Path.home() / ".cache" / "memory-store-packages")


class Package(NamedTuple):
    """A published package: what fetches it, and what it must be."""

    by: str
    name: str
    version: str
    sha256: str


def fetched(package: Package, target: Path) -> Path:
    """The folder ``target`` with what the package holds; skips the test where it cannot be had."""
    archive = CACHE / package.sha256[:16] / _file_name(package)
    archive.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(archive.parent / ".lock"):
        if not archive.exists():
            _fetch(package, archive)
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    if digest != package.sha256:
        archive.unlink()
        pytest.fail(f"{package.name} {package.version} is another file than was pinned: {digest}")
    _unpack(archive, target)
    return target


def _file_name(package: Package) -> str:
    suffix = {PIP: ".whl", NPM: ".tgz", APT: ".deb"}[package.by]
    return f"{re.sub(r'[^a-z0-9.-]+', '-', package.name)}-{package.version}{suffix}"


def _fetch(package: Package, archive: Path) -> None:
    folder = archive.parent / "fetched"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    pinned = f"{package.name}=={package.version}"
    command = {
        PIP: [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", pinned],
        NPM: ["npm", "pack", "--silent", f"{package.name}@{package.version}"],
        APT: ["apt-get", "download", f"{package.name}={package.version}"],
    }[package.by]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
        failure = done.stderr.strip()[-300:] if done.returncode else ""
    except (OSError, subprocess.TimeoutExpired) as error:
        failure = str(error)
    found = [*folder.iterdir()]
    if len(found) != 1:
        said = f"{package.by} cannot fetch {package.name} {package.version}: {failure}"
        if os.environ.get("REQUIRE_PACKAGES"):
            pytest.fail(said)
        pytest.skip(said)
    found[0].rename(archive)
    folder.rmdir()


def _unpack(archive: Path, target: Path) -> None:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(target)
    elif archive.suffix == ".tgz":
        with tarfile.open(archive) as packed:
            packed.extractall(target, filter="data")
    else:
        subprocess.run(["dpkg-deb", "--extract", archive, target], check=True, timeout=60)
