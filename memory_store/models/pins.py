"""Which models are known, what their files must be, and what was recorded on this machine.

Boundary: a model decides what every search returns, so its files are used only if their SHA-256
is one that ``pins.json`` holds, or one that you trusted (``models.json`` in the configuration
folder). A folder of your own that you name is yours to choose. No note text and no key is here.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from memory_store.errors import BadInputError, ModelUnavailableError
from memory_store.paths import config_folder, replace_file

Kind = Literal["embedding", "reranking"]
Digests = Mapping[str, str]  # file, relative to the model's folder → hex SHA-256

PINS = Path(__file__).with_name("pins.json")
KEPT = "models.json"
COMMAND = "memory-store models get"
BUILT = "built here"  # in the place of a revision: by an onnx that writes the graph otherwise
FROM_ARCHIVE = "from an archive"  # the same: of a zip that was on this machine


class PinnedFile(Struct, frozen=True):
    """A file of a model; ``size`` in bytes, ``None`` where no source says it."""

    name: str
    sha256: str
    size: int | None = None


class Revision(Struct, frozen=True):
    """The files of a model at one commit of its repository, and where the pins were found.

    ``archive`` is the zip that holds the files, where the hub has no others.
    """

    id: str
    source: str
    files: tuple[PinnedFile, ...]
    archive: PinnedFile | None = None

    @property
    def wanted(self) -> tuple[PinnedFile, ...]:
        """What has to be fetched."""
        return self.files if self.archive is None else (self.archive,)

    @property
    def digests(self) -> Digests:
        return {file.name: file.sha256 for file in self.files}


class Package(Struct, frozen=True):
    """A Python package that carries a model's weights, and what is built from them."""

    name: str
    source: str
    files: tuple[PinnedFile, ...]
    built: tuple[PinnedFile, ...]


class Described(Struct, frozen=True):
    """What a model is: its ``repository`` on a hub, its ``graph`` in there."""

    name: str
    kind: Kind
    licence: str
    repository: str
    graph: str

    def described(self) -> dict[str, Any]:
        """These fields alone."""
        return {name: getattr(self, name) for name in Described.__struct_fields__}


class KnownModel(Described, frozen=True):
    """A model named in the documents. The first of ``revisions`` is fetched; all are accepted.

    Without revisions it is known but not pinned: fetching it takes your word (``--trust``).
    """

    revisions: tuple[Revision, ...] = ()
    package: Package | None = None


class Record(Described, frozen=True, kw_only=True):
    """What a model's files were when you trusted them, or when they were built here."""

    licence: str = "not known here"
    revision: str
    recorded: str
    files: tuple[PinnedFile, ...]
    archive: PinnedFile | None = None

    @property
    def fetchable(self) -> bool:
        """Whether a hub has it."""
        return self.revision not in (BUILT, FROM_ARCHIVE)

    @property
    def revisions(self) -> tuple[Revision]:
        """The one that was recorded."""
        source = f"recorded on {self.recorded}"
        return (Revision(self.revision, source, self.files, self.archive),)


class Kept(Struct, frozen=True):
    """The file of this machine: what you trusted, and what you were asked."""

    records: tuple[Record, ...] = ()
    asked: tuple[str, ...] = ()


class _Pins(Struct, frozen=True):
    models: tuple[KnownModel, ...]


@functools.cache
def known_models() -> tuple[KnownModel, ...]:
    """The models that the documents name."""
    return msgspec.json.decode(PINS.read_bytes(), type=_Pins).models


def known_model(name: str) -> KnownModel | None:
    """The known model of that name, whatever its capitals."""
    return next((one for one in known_models() if one.name.lower() == name.lower()), None)


def kept() -> Kept:
    """What this machine remembers. Raises :class:`ModelUnavailableError` for a broken file."""
    try:
        path = config_folder(make=False) / KEPT
    except BadInputError:  # a service without a home has recorded nothing
        return Kept()
    try:
        return msgspec.json.decode(path.read_bytes(), type=Kept)
    except FileNotFoundError:
        return Kept()
    except (OSError, msgspec.DecodeError) as error:
        raise ModelUnavailableError(f"{path} cannot be read: {error}", f"rm {path}") from error


def recorded(name: str) -> Record | None:
    """What was recorded of the model ``name`` on this machine."""
    return next((one for one in kept().records if one.name.lower() == name.lower()), None)


def keep_record(
    model: Described, revision: str, files: Iterable[PinnedFile], archive: PinnedFile | None = None
) -> None:
    """Record a model's files, in the place of what was recorded of that name before."""
    now = kept()
    record = Record(
        **model.described(),
        revision=revision,
        recorded=date.today().isoformat(),
        files=tuple(files),
        archive=archive,
    )
    others = tuple(one for one in now.records if one.name.lower() != record.name.lower())
    _write(replace(now, records=(*others, record)))


def keep_asked(name: str) -> None:
    """Remember that you were asked about the model ``name``."""
    now = kept()
    if name not in now.asked:
        _write(replace(now, asked=(*now.asked, name)))


def _write(content: Kept) -> None:
    path = config_folder() / KEPT
    try:
        replace_file(path, msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n")
    except OSError as error:
        raise ModelUnavailableError(
            f"What was fetched could not be recorded in {path}: {error.strerror}.",
            "export MEMORY_STORE_CONFIG=FOLDER",
        ) from error


def command_for(name: str, default: str) -> str:
    """The command that fetches the model ``name``."""
    known = known_model(name)
    if known is not None and known.name == default:
        return COMMAND
    pinned = known is not None and bool(known.revisions)
    if not pinned:
        record = recorded(name)
        pinned = record is not None and record.fetchable
    return f"{COMMAND} {name}" if pinned else f"{COMMAND} {name} --trust"


def accepted(name: str) -> list[Digests]:
    """Every set of files that the model ``name`` may consist of; empty: nothing is known of it."""
    known, record = known_model(name), recorded(name)
    sets = [one.digests for model in (known, record) if model for one in model.revisions]
    if known is not None and known.package is not None:
        sets.append({file.name: file.sha256 for file in known.package.built})
    return sets


def check_files(name: str, folder: Path, remedy: str) -> dict[str, str]:
    """The SHA-256 of the files in ``folder`` that make the model ``name``; {}: nothing is known.

    Raises :class:`ModelUnavailableError` where they are none of the sets that are
    :func:`accepted`; ``remedy`` is the command that mends it.
    """
    sets = accepted(name)
    found = digests_of(folder, dict.fromkeys(file for one in sets for file in one))
    if not sets or any(one.items() <= found.items() for one in sets):
        return found
    closest = min(sets, key=lambda one: sum(found.get(n) != s for n, s in one.items()))
    wrong = ", ".join(n for n, s in closest.items() if found.get(n) != s)
    raise ModelUnavailableError(
        f"The files of the model {name} in {folder} are not those that were recorded "
        f"({wrong}), so it was not loaded.",
        remedy,
    )


def digests_of(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """The SHA-256 of those files that are there."""
    return {name: digest_of(folder / name) for name in names if (folder / name).is_file()}


def digest_of(file: Path) -> str:
    """The hex SHA-256 of a file."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def fingerprint(window: int, digests: Iterable[str], prompts: tuple[str, ...] = ()) -> str:
    """Hex SHA-256 over all that decides what a model says: its window, its graph, its tokenizer.

    And what it reads before each text, where there is anything.
    """
    parts = [str(window).encode(), *map(bytes.fromhex, digests)]
    parts += [prompt.encode() + b"\0" for prompt in prompts if any(prompts)]
    return hashlib.sha256(b"".join(parts)).hexdigest()
