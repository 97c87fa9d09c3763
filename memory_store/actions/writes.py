"""Writing memories into an opened vault: each with its terms and vectors, a batch a transaction.

Boundary: plain text comes in; only what the vault's keys have sealed or hashed is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from memory_store.actions.collections import collection_ids
from memory_store.actions.reads import shown
from memory_store.errors import BadInputError, ConflictError
from memory_store.importing.drafts import memory_from_draft, with_text_topics
from memory_store.records import ImportReport, Memory, MemoryDraft, Progress
from memory_store.session.embedders import Embedders, WritingEmbedders, without_model
from memory_store.session.opened_vault import OpenVault
from memory_store.session.preparation import Preparer
from memory_store.session.writer import write_batch
from memory_store.vault.rows import Origin, read_origins, read_rows

if TYPE_CHECKING:
    from memory_store.importing.job import ImportJob

ADD_BATCH = 64  # memories in one transaction


def draft_of(text: str, given: dict[str, Any]) -> MemoryDraft:
    """A draft from keywords. Raises BadInputError for one that names no field."""
    known = set(MemoryDraft.__struct_fields__)
    unknown = sorted(set(given) - known)
    if unknown:
        raise BadInputError(f"no field {unknown[0]!r} in a memory", unknown[0])
    if given.get("metadata") is None:
        given.pop("metadata", None)
    given["topics"] = tuple(given.get("topics") or ())
    return MemoryDraft(text, **given)


def add_many(
    vault: OpenVault, embedders: Embedders, drafts: Iterable[MemoryDraft], *, embed: bool
) -> list[Memory]:
    """Add memories, a batch a transaction. Raises BadInputError or ConflictError, adding none."""
    memories = [
        memory_from_draft(
            with_text_topics(draft), vault.collections.find_or_create(draft.collection)
        )
        for draft in drafts
    ]
    taken = read_rows(vault.reader(), [memory.id for memory in memories])
    if taken:
        raise ConflictError(f"there is a memory {next(iter(taken))} already")
    for start in range(0, len(memories), ADD_BATCH):
        write(vault, embedders, memories[start : start + ADD_BATCH], embed=embed)
    return shown(vault, memories)


def run_import(vault: OpenVault, embedders: Embedders, job: ImportJob) -> ImportReport:
    """Import what a job asks for. Enters the vault itself: a long import lets locks through
    between its batches."""
    from memory_store.importing import pipeline

    models = WritingEmbedders(embedders, vault)
    made_by = models if job.request.embed else without_model
    report = pipeline.run_import(vault, job, made_by, models.failed)
    return replace(report, degraded=(*report.degraded, *models.degraded))


def reindex(
    vault: OpenVault,
    embedders: Embedders,
    names: Sequence[str],
    progress: Progress | None,
    *,
    whole: bool,
) -> int:
    """Index collections (none: all) with their present models and analysers. Returns how many
    memories were done: all of them if ``whole``. Enters the vault itself, as :func:`run_import`
    does."""
    from memory_store.session.renewal import reindex as index_again

    with vault.gate.entered():
        chosen = collection_ids(vault, names)
    return index_again(vault, embedders.load_to_adopt, chosen, progress, whole=whole)


def write(
    vault: OpenVault, embedders: Embedders, memories: Sequence[Memory], *, embed: bool = True
) -> None:
    """Write memories with their index entries in one transaction.

    Raises ConflictError when one of a later version is no longer at the version before it.
    """
    preparer = Preparer(vault, WritingEmbedders(embedders, vault) if embed else without_model)
    try:
        origins = _origins(vault, memories)
        prepared = preparer.prepare([(m, origins.get(m.id, Origin())) for m in memories])
        write_batch(vault, prepared, preparer.model)
    finally:
        preparer.close()


def _origins(vault: OpenVault, memories: Sequence[Memory]) -> dict[str, Origin]:
    """An edited memory keeps its source, but no longer equals what was read there."""
    rows = read_rows(vault.reader(), [memory.id for memory in memories if memory.version > 1])
    readable = set(vault.keyring.readable())
    places = [(row.id, row.collection) for row in rows.values() if row.collection in readable]
    found = read_origins(vault.reader(), vault.keyring, places)
    return {memory: replace(origin, draft=None) for memory, origin in found.items()}
