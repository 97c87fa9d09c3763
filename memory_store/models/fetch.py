"""Putting a model on this machine: what would be fetched from where, and doing it.

Boundary: files of strangers are used only when their SHA-256 is the one that is pinned, or one
that you trusted earlier, or when you trust now (``--trust``) what the hub has: then it is
recorded, so that a later change is noticed. Files are written to a temporary folder, compared,
and renamed into place together; on any mismatch nothing of them is kept. An archive is hostile
until it has been read: only flat files under the model's own name are taken out of it, up to a
size, into a folder that is new.
"""

from __future__ import annotations

import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Collection
from pathlib import Path, PurePosixPath

from msgspec import Struct

from memory_store.errors import BadInputError, ModelUnavailableError
from memory_store.models import hub, pins
from memory_store.models.offline import MODEL_FILES, PACKAGES, put_in_place
from memory_store.models.pins import Described, KnownModel, PinnedFile, Record, Revision
from memory_store.models.places import MODEL_NAME_FORM, STATIC_FILES, command_for
from memory_store.models.reranker import locate_reranker, rerankers_folder
from memory_store.paths import cache_folder

FLASHRANK = "prithivida/flashrank"
BESIDE = (*MODEL_FILES[1:], "special_tokens_map.json")  # what FastEmbed reads beside a graph
MAX_BYTES = 2 * 1024**3  # of an archive, packed or unpacked; FlashRank's largest has 110 MB
NO_SHA256 = ""  # of a file without a pin


class Offer(Described, frozen=True):
    """What would be fetched: the files of a model at one revision.

    Files whose SHA-256 is not known beforehand have :data:`NO_SHA256`.
    """

    revision: Revision

    @property
    def size(self) -> int | None:
        """Bytes to fetch, ``None`` where that is not known."""
        sizes = [file.size for file in self.revision.wanted]
        return None if None in sizes else sum(size or 0 for size in sizes)


class Fetched(Struct, frozen=True):
    """Where a model is now, and its files; ``changed`` are those that differ from a record."""

    folder: Path
    files: tuple[PinnedFile, ...]
    recorded: bool
    changed: tuple[str, ...] = ()


def offer(name: str, *, trust: bool = False, archive: Path | None = None) -> Offer:
    """What is to be fetched for the model ``name``, or taken out of ``archive``.

    Uses the network only to ``trust``: the hub is asked for its newest commit. Raises
    :class:`ModelUnavailableError` for a model that is not pinned and not trusted, and
    :class:`BadInputError` for a name that neither FastEmbed nor FlashRank knows.
    """
    known, record = pins.known_model(name), pins.recorded(name)
    if archive is not None and (known or record or _catalogued(name)).kind != "reranking":
        raise BadInputError("archive: only rerankers come as one; give its NAME, too", "archive")
    if trust:
        return _trusted(name, archive)
    if known is not None and known.revisions:
        return _offer(known, known.revisions[0])
    if record is not None and (record.fetchable or archive is not None):
        return _offer(record, record.revisions[0])
    named = _catalogued(name)
    packaged = PACKAGES.get(named.name)
    if packaged is not None:
        raise ModelUnavailableError(
            f"The weights of {named.name} come as a package, which is not installed here. (Or take "
            f"what {named.repository} has today: {pins.COMMAND} {named.name} --trust)",
            packaged.remedy,
        )
    raise ModelUnavailableError(
        f"{named.name} is not pinned: no SHA-256 of its files is known here, so they would be "
        f"whatever {named.repository} has today.",
        f"{pins.COMMAND} {named.name} --trust",
    )


def _offer(model: Described, revision: Revision) -> Offer:
    return Offer(**model.described(), revision=revision)


def fetch(
    wanted: Offer, *, archive: Path | None = None, progress: hub.OnProgress = lambda *_: None
) -> Fetched:
    """Fetch a model, compare its files and put them in place; from ``archive``, where given."""
    embedding = wanted.kind == "embedding"
    home = cache_folder() / "models" if embedding else rerankers_folder()
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=home) as temporary:
        folder = Path(temporary) / wanted.name.rsplit("/", 1)[-1]
        folder.mkdir(mode=0o700)
        packed = _files(wanted, folder, Path(temporary), archive, progress)
        names = [
            path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
        ]
        files = tuple(
            PinnedFile(name, pins.digest_of(folder / name), (folder / name).stat().st_size)
            for name in sorted(names)
        )
        _compare(wanted, {file.name: file.sha256 for file in files}, wanted.revision.files)
        if not embedding:
            locate_reranker(str(folder))  # raises where something is missing
        before = pins.recorded(wanted.name)
        new = _record(wanted, files, packed)
        put_in_place(folder, home / wanted.name)
    return Fetched(home / wanted.name, files, new, _changed(before, files) if new else ())


def _files(
    wanted: Offer, folder: Path, temporary: Path, archive: Path | None, progress: hub.OnProgress
) -> PinnedFile | None:
    """Fill ``folder``, comparing each file as it comes. The archive they came in, if any."""
    revision, remedy = wanted.revision, _remedy(wanted.name)

    def from_hub(file: PinnedFile, target: Path) -> str:
        place = (wanted.repository, revision.id, file.name)
        length, digest = hub.fetch_file(place, target, file.size, progress, remedy)
        if file.size not in (None, length):
            raise _mismatch(wanted, file.name, f"has {length:,} bytes, not {file.size:,}")
        _compare(wanted, {file.name: digest}, (file,))
        return digest

    if revision.archive is None:
        for file in revision.files:
            from_hub(file, folder / file.name)
        return None
    if archive is None:
        archive = temporary / "model.zip"
        digest = from_hub(revision.archive, archive)
    else:
        digest = _digest_of_archive(archive)
        _compare(wanted, {revision.archive.name: digest}, (revision.archive,))
    _unpack(archive, wanted.name, folder, [file.name for file in revision.files])
    return PinnedFile(revision.archive.name, digest)


def _unpack(archive: Path, name: str, folder: Path, only: Collection[str] = ()) -> None:
    """Copy the files ``name/*`` of ``archive`` to ``folder``: those in ``only``, or all.

    Everything else in it is ignored. Raises :class:`BadInputError` for what is no readable zip.
    """
    try:
        with zipfile.ZipFile(archive) as packed:
            files = [(m, PurePosixPath(m.filename)) for m in packed.infolist() if not m.is_dir()]
            chosen = [
                (member, path.name)
                for member, path in files
                if path.parts[:-1] == (name,) and (not only or path.name in only)
            ]
            if sum(member.file_size for member, _ in chosen) > MAX_BYTES:
                raise BadInputError(f"{archive} unpacks to more than a model can be.", "archive")
            for member, file in chosen:
                with packed.open(member) as source, (folder / file).open("wb") as target:
                    shutil.copyfileobj(source, target)
    except OSError as error:
        raise BadInputError(f"{archive} cannot be read: {error.strerror}.", "archive") from error
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
        raise BadInputError(f"{archive} is not a readable zip file: {error}", "archive") from error


def _digest_of_archive(archive: Path) -> str:
    try:
        if archive.stat().st_size > MAX_BYTES:
            raise BadInputError(f"{archive} is larger than a model can be.", "archive")
        return pins.digest_of(archive)
    except OSError as error:
        raise BadInputError(f"{archive} cannot be read: {error.strerror}.", "archive") from error


def _compare(wanted: Offer, found: pins.Digests, files: tuple[PinnedFile, ...]) -> None:
    """Refuse files that are missing, or not what is pinned or was recorded."""
    for file in files:
        digest = found.get(file.name)
        if digest is None:
            raise _mismatch(wanted, file.name, "is missing")
        if file.sha256 not in (NO_SHA256, digest):
            raise _mismatch(wanted, file.name, f"has the SHA-256 {digest}, not {file.sha256}")


def _mismatch(wanted: Offer, file: str, how: str) -> ModelUnavailableError:
    known = pins.known_model(wanted.name)
    pinned = known is not None and wanted.revision in known.revisions
    return ModelUnavailableError(
        f"{file} of {wanted.name} {how}. It is not the file that was "
        f"{'pinned' if pinned else 'recorded'}: nothing was kept.",
        "another hub (HF_ENDPOINT), and report it to the hub",
    )


def _record(wanted: Offer, files: tuple[PinnedFile, ...], packed: PinnedFile | None) -> bool:
    """Record files that have no pin and no record yet. Whether there was anything to record."""
    if {file.name: file.sha256 for file in files} in pins.accepted(wanted.name):
        return False
    pins.keep_record(wanted, wanted.revision.id, files, packed)
    return True


def _changed(before: Record | None, files: tuple[PinnedFile, ...]) -> tuple[str, ...]:
    if before is None or before.revision == pins.BUILT:
        return ()
    now, was = ({one.name: one.sha256 for one in them} for them in (files, before.files))
    return tuple(name for name in sorted({*now, *was}) if now.get(name) != was.get(name))


def _trusted(name: str, archive: Path | None) -> Offer:
    """What the hub has today of a model, or what is in ``archive``: files without a pin."""
    named = _catalogued(name)
    embedding = named.kind == "embedding"
    packed = None if embedding else PinnedFile(f"{named.name}.zip", NO_SHA256)
    if archive is not None:
        revision = Revision(pins.FROM_ARCHIVE, "you", (), packed)
    else:
        listing = hub.newest(named.repository, _remedy(named.name))
        sizes = {one.rfilename: one.size for one in listing.siblings}
        beside = STATIC_FILES[1:] if named.graph == STATIC_FILES[0] else BESIDE
        wanted = [named.graph, *beside] if embedding else [f"{named.name}.zip"]
        wanted += {f"{named.graph}_data"} & sizes.keys()
        absent = [file for file in wanted if file not in sizes and file != BESIDE[-1]]
        if absent:
            raise ModelUnavailableError(
                f"{named.repository} has no {', '.join(absent)}.", pins.COMMAND
            )
        listed = tuple(PinnedFile(f, NO_SHA256, sizes[f]) for f in wanted if f in sizes)
        parts = (listed, None) if embedding else ((), listed[0])
        revision = Revision(listing.sha, "you", *parts)
    return _offer(named, revision)


def _catalogued(name: str) -> KnownModel:
    """A model that is known here, or that FastEmbed or FlashRank list.

    Raises :class:`BadInputError` for others.
    """
    from fastembed import TextEmbedding
    from flashrank.Config import model_file_map

    if MODEL_NAME_FORM.fullmatch(name) is None:
        raise BadInputError(f"{name!r} is no name for a model.", "name")
    known = pins.known_model(name)
    if known is not None:
        return known
    for row in TextEmbedding.list_supported_models():
        if row["model"].lower() == name.lower() and row["sources"]["hf"]:
            repository, graph = row["sources"]["hf"], row["model_file"]
            return KnownModel(row["model"], "embedding", row["license"], repository, graph)
    if name in model_file_map:
        return KnownModel(name, "reranking", "CC-BY-SA-4.0", FLASHRANK, model_file_map[name])
    raise BadInputError(f"Neither FastEmbed nor FlashRank knows a model named {name!r}.", "name")


def _remedy(name: str) -> str:
    """What to do where the hub cannot be reached."""
    packaged = PACKAGES.get(name)
    return packaged.remedy if packaged else f"{command_for(name)} (when the hub is in reach)"
