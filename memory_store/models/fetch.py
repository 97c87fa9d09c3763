"""Putting a model on this machine: what would be fetched from where, and doing it.

Boundary: files of strangers are used only when their SHA-256 is the one that is pinned, or one
that you trusted earlier, or when you trust now (``--trust``) what the hub has: then it is
recorded, so that a later change is noticed. Files are written to a temporary folder, compared,
and renamed into place together; on any mismatch nothing of them is kept.
"""

from __future__ import annotations

import tempfile
from datetime import date
from pathlib import Path

from msgspec import Struct

from memory_store.errors import BadInputError, ModelUnavailableError
from memory_store.models import hub, pins
from memory_store.models.archives import MAX_BYTES, unpack
from memory_store.models.offline import MODEL_FILES, REMEDY, put_in_place
from memory_store.models.pins import Kind, KnownModel, PinnedFile, Record, Revision
from memory_store.models.places import DEFAULT_MODEL, MODEL_NAME_FORM, command_for
from memory_store.models.reranker import locate_reranker, rerankers_folder
from memory_store.paths import cache_folder

FLASHRANK = "prithivida/flashrank"
BESIDE = (*MODEL_FILES[1:], "special_tokens_map.json")  # what FastEmbed reads beside a graph
NO_SHA256 = ""  # of a file without a pin


class Offer(Struct, frozen=True):
    """What would be fetched: the files of a model at one revision.

    Files whose SHA-256 is not known beforehand have :data:`NO_SHA256`.
    """

    name: str
    kind: Kind
    licence: str
    repository: str
    graph: str
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
    if archive is not None and _kind(name) != "reranking":
        raise BadInputError("archive: only rerankers come as one; give its NAME, too", "archive")
    if trust:
        return _trusted(name, archive)
    if known is not None and known.revisions:
        return _offer(known, known.revisions[0])
    if record is not None and (record.fetchable or archive is not None):
        return _offer(record, record.as_revision())
    named = _catalogued(name)
    raise ModelUnavailableError(
        f"{named.name} is not pinned: no SHA-256 of its files is known here, so they would be "
        f"whatever {named.repository} has today.",
        f"{pins.COMMAND} {named.name} --trust",
    )


def _offer(model: KnownModel | Record, revision: Revision) -> Offer:
    return Offer(model.name, model.kind, model.licence, model.repository, model.graph, revision)


def fetch(
    wanted: Offer, *, archive: Path | None = None, progress: hub.OnProgress | None = None
) -> Fetched:
    """Fetch a model, compare its files and put them in place; from ``archive``, where given."""
    embedding = wanted.kind == "embedding"
    home = cache_folder() / "models" if embedding else rerankers_folder()
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetching-", dir=home) as temporary:
        folder = Path(temporary) / wanted.name.rsplit("/", 1)[-1]
        folder.mkdir(mode=0o700)
        packed = _files(wanted, folder, Path(temporary), archive, progress or _silent)
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
        length, digest = hub.fetch_file(
            wanted.repository,
            revision.id,
            file.name,
            target,
            size=file.size,
            progress=progress,
            remedy=remedy,
        )
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
    unpack(archive, wanted.name, folder, [file.name for file in revision.files])
    return PinnedFile(revision.archive.name, digest)


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
        "another hub (HF_ENDPOINT), and tell its operator",
    )


def _record(wanted: Offer, files: tuple[PinnedFile, ...], packed: PinnedFile | None) -> bool:
    """Record files that have no pin and no record yet. Whether there was anything to record."""
    if {file.name: file.sha256 for file in files} in pins.accepted(wanted.name):
        return False
    pins.keep_record(
        Record(
            name=wanted.name,
            kind=wanted.kind,
            repository=wanted.repository,
            revision=wanted.revision.id,
            graph=wanted.graph,
            recorded=date.today().isoformat(),
            files=files,
            archive=packed,
            licence=wanted.licence,
        )
    )
    return True


def _changed(before: Record | None, files: tuple[PinnedFile, ...]) -> tuple[str, ...]:
    if before is None or before.revision == pins.BUILT:
        return ()
    now = {file.name: file.sha256 for file in files}
    was = {file.name: file.sha256 for file in before.files}
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
        wanted = [named.graph, *BESIDE] if embedding else [f"{named.name}.zip"]
        wanted += [f for f in (f"{named.graph}_data",) if f in sizes]
        absent = [file for file in wanted if file not in sizes and file != BESIDE[-1]]
        if absent:
            raise ModelUnavailableError(
                f"{named.repository} has no {', '.join(absent)}.", pins.COMMAND
            )
        listed = tuple(PinnedFile(f, NO_SHA256, sizes[f]) for f in wanted if f in sizes)
        if embedding:
            revision = Revision(listing.sha, "you", listed)
        else:
            revision = Revision(listing.sha, "you", (), listed[0])
    return _offer(named, revision)


def _kind(name: str) -> Kind:
    known = pins.known_model(name) or pins.recorded(name)
    return _catalogued(name).kind if known is None else known.kind


def _catalogued(name: str) -> KnownModel:
    """A model as FastEmbed or FlashRank list it. Raises :class:`BadInputError` for others."""
    from fastembed import TextEmbedding
    from flashrank.Config import model_file_map

    if MODEL_NAME_FORM.fullmatch(name) is None:
        raise BadInputError(f"{name!r} is no name for a model.", "name")
    for row in TextEmbedding.list_supported_models():
        if row["model"].lower() == name.lower() and row["sources"]["hf"]:
            repository, graph = row["sources"]["hf"], row["model_file"]
            return KnownModel(row["model"], "embedding", row["license"], repository, graph)
    if name in model_file_map:
        return KnownModel(name, "reranking", "CC-BY-SA-4.0", FLASHRANK, model_file_map[name])
    raise BadInputError(f"Neither FastEmbed nor FlashRank knows a model named {name!r}.", "name")


def _remedy(name: str) -> str:
    """What to do where the hub cannot be reached."""
    return REMEDY if name == DEFAULT_MODEL else f"{command_for(name)}, later"


def _silent(file: str, done: int, total: int | None) -> None:
    """For callers that show nothing."""
