"""Writing memories into an opened vault: each with its terms and vectors, a batch a transaction.

Boundary: plain text comes in; only what the vault's keys have sealed or hashed is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from memory_store.actions.action import Opened, action
from memory_store.actions.attempts import again_if_overtaken, with_succession
from memory_store.actions.collections import collection_ids
from memory_store.actions.reads import shown
from memory_store.configuration import typed_vault
from memory_store.errors import (
    ConflictError,
    LockedError,
    ModelMismatchError,
    ModelUnavailableError,
)
from memory_store.importing.drafts import new_memory
from memory_store.models.readability import unread_languages, unsuited_languages
from memory_store.records import (
    Embedded,
    Embedding,
    ImportReport,
    Memory,
    MemoryDraft,
    PoorlyRead,
    Progress,
    read_record,
    several,
    unheard,
)
from memory_store.records.degraded import Degraded
from memory_store.search.degraded import read_it, unread_line, unsuited_line
from memory_store.session.embedders import WritingEmbedders, without_model
from memory_store.session.indexer import Indexer
from memory_store.session.opened_vault import OpenVault
from memory_store.session.writer import write_batch
from memory_store.text.identifiers import CODE
from memory_store.text.language import LANGUAGE_NAMES
from memory_store.vault import originals
from memory_store.vault.audit_events import ADD
from memory_store.vault.rows import Origin, read_origins
from memory_store.vault.trash import Change

if TYPE_CHECKING:
    from memory_store.importing.job import ImportJob

ADD_BATCH = 64  # memories in one transaction
COMPLETED_SECONDS = 2.0  # that an import gives to memories of an older vault, each time


@action(ADD, writes=True, counts=lambda _: (0, 1))
def add(opened: Opened, /, text: str, **draft: Any) -> Memory:
    """Add one memory. Keywords are the other fields of :class:`MemoryDraft`."""
    given = read_record(MemoryDraft, {"text": text, **draft})
    return _added(opened, [given], embed=True)[0]


@action(ADD, writes=True, counts=lambda added: (0, len(added)))
def add_many(opened: Opened, drafts: Iterable[MemoryDraft], *, embed: bool = True) -> list[Memory]:
    """Add memories; each batch of 64 is one transaction.

    Raises BadInputError or ConflictError, adding none.
    """
    return _added(opened, drafts, embed=embed)


def _added(opened: Opened, drafts: Iterable[MemoryDraft], *, embed: bool) -> list[Memory]:
    vault, found = opened.vault, cache(opened.vault.collections.find_or_create)
    drafts = list(drafts)
    memories = [new_memory(draft, found(draft.collection)) for draft in drafts]
    given = [memory.id for memory, draft in zip(memories, drafts, strict=True) if draft.id]
    taken = vault.reader().memories.rows(given)
    if taken:
        raise ConflictError(f"there is a memory {next(iter(taken))} already")
    for start in range(0, len(memories), ADD_BATCH):
        _write_new(opened, memories[start : start + ADD_BATCH], embed=embed)
    return shown(vault, memories)


def _write_new(opened: Opened, memories: Sequence[Memory], *, embed: bool) -> None:
    if not any(one.supersedes for one in memories):
        write(opened, memories, embed=embed)
        return
    vault = opened.vault
    again_if_overtaken(vault, lambda: write(opened, with_succession(vault, memories), embed=embed))


@action(None, writes=True, in_batches=True)
def import_paths(
    opened: Opened,
    /,
    paths: str | Path | Sequence[str | Path] = (),
    *,
    progress: Progress = unheard,
    embedded: Embedded = unheard,
    **options: Any,
) -> ImportReport:
    """Import files, folders and ``-`` (standard input); without paths, every source again.

    Keywords are the other fields of :class:`ImportRequest`. Each batch is committed by itself:
    after a stop, run it again to go on. ``progress`` is called with the name of a file, the
    number done and the number of files, ``embedded`` with how many windows of a batch have
    vectors, and how many it has.
    """
    from memory_store.importing.job import ImportJob, ImportRequest

    request = ImportRequest.of_paths(paths, **options)
    return imported(opened, ImportJob(request=request, progress=progress, embedded=embedded))


@action(None, writes=True, in_batches=True)
def run_import(opened: Opened, job: ImportJob) -> ImportReport:
    """Import the files of a job, or the paths of its request, or every known source again.

    A record is known again by collection and ref. What was imported from a folder is known by the
    end of its path where it is uploaded into a ``readable`` collection: the same is unchanged, and
    of what says something else ``differing`` decides. The event in the audit trail is the caller's
    to make, from the last report that ``written`` was called with, however the import ends.
    """
    return imported(opened, job)


def imported(opened: Opened, job: ImportJob) -> ImportReport:
    """See :func:`run_import`."""
    from memory_store.importing import pipeline

    vault, wanted = opened.vault, job.request
    models = WritingEmbedders(opened.embedders, vault)
    later = (job.words_first or job.embedded_later) and wanted.embed and not wanted.dry_run
    if later:  # a model that made none of the vectors there is refused before anything is written
        with vault.gate.entered():
            later = bool(_embedded_in(vault, models, wanted.collection))
    made_by = models if wanted.embed and not later else without_model
    report = pipeline.run_import(vault, job, made_by, models.failed)
    taken = report.imported or report.replaced or report.unchanged
    nothing = (
        bool(report.failed) and not taken
    )  # of a folder that is not there, that is said at once
    if later and not job.embedded_later and not nothing:
        from memory_store.session.reindex import embed_missing as embed

        job.in_words(report)
        with vault.gate.entered():  # with collections that were made by the import
            served = _embedded_in(vault, models, wanted.collection)
            poorly_read = _poorly_read(vault, models)
        for one in poorly_read:
            job.poorly_read(one)
        if poorly_read:  # another model may have been chosen
            with vault.gate.entered():
                served = _embedded_in(vault, models, wanted.collection)
        embed(vault, models, models.failed, served, job.embedding)
    if not wanted.dry_run and not job.embedded_later:
        from memory_store.session.reindex import UNHURRIED, complete

        with suppress(LockedError):  # what was imported is written, and the report says so
            complete(vault, UNHURRIED, COMPLETED_SECONDS)
    unread = _unread_lines(models, vault)
    return replace(report, degraded=(*report.degraded, *models.degraded, *unread))


@action(None, writes=True, in_batches=True)
def embed_missing(
    opened: Opened,
    *,
    progress: Callable[[Embedding], None] = unheard,
    breath: Callable[[], None] = unheard,
) -> tuple[str, ...]:
    """Embed what an import left without vectors, newest first, in small batches: for a server.

    ``breath`` is called often, while nothing is locked: it may wait, and an error that it raises
    ends the work. All that was embedded before stays, and the next call goes on from there. No
    vector is used again for an equal text elsewhere: the time that saves would show the writer of
    one collection what stands in another. Then memories of an older vault get what their entries
    lack, such as their words as spelled. Returns what is to be said of models that are missing or
    failed. Where another model made the vectors of a collection, nothing is done there.
    """
    return embedded_now(opened, progress, breath)


def embedded_now(
    opened: Opened, progress: Callable[[Embedding], None], breath: Callable[[], None]
) -> tuple[str, ...]:
    """See :func:`embed_missing`."""
    from memory_store.session.reindex import UNHURRIED, complete
    from memory_store.session.reindex import embed_missing as embed

    vault = opened.vault
    vault.access.refuse_writing(vault.path)
    models = WritingEmbedders(opened.embedders, vault)
    with vault.gate.entered():
        served = []
        for collection in vault.keyring.readable():
            with suppress(ModelMismatchError):
                served += [collection] if models(collection) is not None else []
    pace = replace(UNHURRIED, breath=breath)
    embed(vault, models, models.failed, served, progress, pace)
    complete(vault, pace)
    return models.degraded


def _embedded_in(vault: OpenVault, models: WritingEmbedders, target: str | None) -> list[str]:
    """The collections (by id) whose model is there.

    Raises ModelMismatchError for the target of an import; another collection is left as it is.
    """
    names, served = vault.collections.names(), []
    personal = vault.settings.personal
    for collection in vault.keyring.readable():
        try:
            if models(collection) is not None:
                served.append(collection)
        except ModelMismatchError:
            named = (names[collection], collection) if target is not None else (personal,)
            if (target or collection) in named:
                raise
    return served


def _poorly_read(vault: OpenVault, models: WritingEmbedders) -> list[PoorlyRead]:
    """The collections whose model was not made for their languages."""
    names, snapshot = vault.collections.names(), vault.snapshot()
    found = []
    for collection, model in models.loaded.items():
        written = snapshot.languages_in(collection)
        written.pop(CODE, None)
        if unsuited := unsuited_languages(model, written):
            words = int(snapshot.lengths[snapshot.visible([collection])].sum())
            called = tuple(LANGUAGE_NAMES.get(one, one) for one in unsuited)
            found.append(PoorlyRead(collection, names[collection], model.name, called, words))
    return found


def _unread_lines(models: WritingEmbedders, vault: OpenVault) -> list[Degraded]:
    """What is to be said of collections whose languages their model does not read well."""
    try:
        with vault.gate.entered():  # a lock meanwhile would close what is read here
            snapshot, poorly_read = vault.snapshot(), _poorly_read(vault, models)
    except LockedError:  # while it was importing: that is said by whom it stopped
        return []
    lines, others = list[Degraded](), len(vault.keyring.readable()) > 1
    for one in poorly_read:
        command = read_it(typed_vault(vault.path), [one.collection] if others else [])
        named = f"collection {one.collection!r}"
        model = models.loaded[one.id]
        unread = unread_languages(model, snapshot.languages_in(one.id))
        lines.append(
            unread_line(model.name, named, unread, command)
            if unread
            else unsuited_line(model, named, one.languages, command)
        )
    return lines


@action(None, writes=True, in_batches=True)
def reindex(
    opened: Opened,
    *,
    collection: str | Sequence[str] = (),
    embedder: str | None = None,
    whole: bool = False,
    progress: Progress | None = None,
) -> int:
    """Give every memory the vectors and terms of its collection's model and analyser.

    Of some collections, or of all. The model ``embedder`` (a name or folder) becomes that of the
    collections that are named. Where none is, it, or one named by the environment, becomes the
    vault's; a collection with a model of its own keeps it. What is not renewed yet is searched by
    the model that it has vectors of. Returns how many were done. Resumable: what is up to date
    already is left alone, unless ``whole``: then every entry is made anew from its text. Raises
    ModelUnavailableError when all was done that needs no absent model.
    """
    from memory_store.session.reindex import reindex as index_again

    chosen, folders = _to_change(opened, several(collection), embedder)
    load = opened.embedders.load_to_adopt
    return index_again(
        opened.vault, load, chosen, progress, whole=whole, folder=folders.__getitem__
    )


@action(None, writes=True, in_batches=True)
def change_model(
    opened: Opened, *, collection: str | Sequence[str] = (), embedder: str | None = None
) -> None:
    """Begin as :func:`reindex` does, and embed nothing: :func:`embed_missing` goes on with it.

    Raises ModelUnavailableError where a model is missing.
    """
    from memory_store.session.reindex import adopted

    vault = opened.vault
    vault.access.refuse_writing(vault.path)
    chosen, folders = _to_change(opened, several(collection), embedder)
    failures: list[ModelUnavailableError] = []
    with vault.gate.entered():
        adopted(
            vault,
            opened.embedders.load_to_adopt,
            vault.keyring.readable() if chosen is None else chosen,
            lambda _, error: failures.append(error),
            folders.__getitem__,
        )
    if failures:
        raise failures[0]


def _to_change(
    opened: Opened, named: Sequence[str], embedder: str | None
) -> tuple[tuple[str, ...] | None, dict[str, str]]:
    """The collections that are named, by id, and where the model of each one lay before.

    ``embedder`` is theirs from now on, or, where none is named, the vault's.
    """
    vault = opened.vault
    with vault.gate.entered():
        chosen = collection_ids(vault, named)
        folders = {one: opened.embedders.folder(one) for one in vault.keyring.readable()}
        if embedder and chosen is None:
            opened.embedders.change_usual(embedder)
        elif embedder and chosen is not None:
            vault.follow_settings()
            for one in chosen:
                choice = opened.embedders.chosen(vault.settings.chosen(one), embedder)
                if choice != vault.settings.chosen(one):
                    vault.collections.choose(choice)
    return chosen, folders


@action(None, writes=False)
def incomplete(opened: Opened, kind: str | None = None) -> int:
    """How many memories lack what their entries have had since a later version: the words as
    spelled, for ``kind`` ``lexicon``. :func:`embed_missing` and :func:`reindex` add it."""
    from memory_store.session.reindex import incomplete as lacking

    return len(lacking(opened.vault, None if kind is None else [kind]))


def write(
    opened: Opened, memories: Sequence[Memory], *, embed: bool = True, group: str = ""
) -> None:
    """Write memories with their index entries in one transaction.

    ``group`` is what the trash calls this change (empty: a random name).

    Raises ConflictError when one of a later version is no longer at the version before it.
    """
    vault = opened.vault
    models = WritingEmbedders(opened.embedders, vault) if embed else without_model
    preparer = Indexer(vault, models)
    try:
        origins = _origins(vault, memories)
        prepared = preparer.prepare([(m, origins.get(m.id, Origin())) for m in memories])
        added = tuple(memory.id for memory in memories if memory.version == 1)
        named = {"group": group} if group else {}
        change = Change(added=added, by=opened.by, **named)
        moved = _moved_originals(vault, memories)
        write_batch(vault, prepared, preparer.model, change, originals=moved)
    finally:
        preparer.close()


def _moved_originals(vault: OpenVault, memories: Sequence[Memory]) -> dict[str, bytes]:
    """The originals of memories that are to be in another collection than they were, under whose
    key they are sealed again."""
    kept = {one.id: one for one in memories if one.original is not None and one.original.token}
    storage, found = vault.reader(), dict[str, bytes]()
    for row in storage.memories.rows([*kept]).values():
        if row.collection != kept[row.id].collection:
            before = replace(kept[row.id], collection=row.collection)
            found[row.id] = originals.opened(storage, vault.keyring, before)
    return found


def _origins(vault: OpenVault, memories: Sequence[Memory]) -> dict[str, Origin]:
    """An edited memory keeps its source, but no longer equals what was read there."""
    rows = vault.reader().memories.rows([memory.id for memory in memories if memory.version > 1])
    readable = set(vault.keyring.readable())
    places = [(row.id, row.collection) for row in rows.values() if row.collection in readable]
    found = read_origins(vault.reader(), vault.keyring, places)
    return {memory: replace(origin, draft=None) for memory, origin in found.items()}
