"""Which sources an import is about: the paths that were named, or every known one again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from memory_store.errors import BadInputError, ModelUnavailableError
from memory_store.importing.pipeline import Embedded, Progress, import_files, import_paths
from memory_store.importing.session import ImportOptions, ImportSession, known_sources
from memory_store.importing.twins import ADD
from memory_store.importing.walk import Found
from memory_store.records import LISTED_IDS, ImportReport
from memory_store.scopes import Scope
from memory_store.session.opened_vault import OpenVault
from memory_store.session.preparation import Preparer

if TYPE_CHECKING:
    from memory_store.models.embedder import Embedder


def run_imports(
    vault: OpenVault,
    paths: Sequence[str],
    options: ImportOptions,
    embedders: Callable[[str], Embedder | None],
    *,
    failed: Callable[[str, ModelUnavailableError], None],
    dry_run: bool,
    prune: bool,
    progress: Progress | None,
    embedded: Embedded | None,
) -> ImportReport:
    """Import the named paths, or each known source with the options it was imported with.

    ``embedders`` gives the model of a collection (by id), or None to leave it without vectors;
    ``failed`` is told of one that fails on a text, which is left without vectors alone.
    """
    left: Sequence[str] = ()
    if paths:
        runs = [(list(paths), options)]
    else:
        with vault.gate.entered():
            known, left = known_sources(vault)
        runs = [([path], kept) for path, kept in known]
        if not runs:
            why = f" on this machine: {'; '.join(left)}" if left else ""
            raise BadInputError(f"nothing was imported yet{why}: name a file or folder", "path")
    with vault.gate.entered():
        preparer = Preparer(vault, embedders, failed)
    reports = []
    try:
        for some, kept in runs:
            with vault.gate.entered():
                collection = vault.collections.find_or_create(kept.collection)
                session = ImportSession(vault, collection, preparer)
            reports.append(
                import_paths(
                    *(session, some, kept),
                    dry_run=dry_run,
                    prune=prune,
                    progress=progress,
                    embedded=embedded,
                )
            )
    finally:
        preparer.close()
    return replace(_together(reports), degraded=tuple(left))


def run_upload(
    vault: OpenVault,
    files: Sequence[Found],
    options: ImportOptions,
    embedders: Callable[[str], Embedder | None],
    *,
    failed: Callable[[str, ModelUnavailableError], None],
    dry_run: bool,
    differing: str,
    readable: Scope,
    stopped: Callable[[], bool],
    progress: Progress | None,
    embedded: Embedded | None,
    written: Callable[[ImportReport], None],
) -> ImportReport:
    """Import files that are at hand. See :func:`memory_store.importing.pipeline.import_files`.

    Outside of ``readable``, that a note is there already would confirm what it says: none is asked
    about.
    """
    with vault.gate.entered():
        preparer = Preparer(vault, embedders, failed)
    try:
        with vault.gate.entered():
            collection = vault.collections.find_or_create(options.collection)
            session = ImportSession(vault, collection, preparer)
        return import_files(
            session,
            files,
            options,
            dry_run=dry_run,
            differing=differing if collection in readable else ADD,
            stopped=stopped,
            progress=progress,
            embedded=embedded,
            written=written,
        )
    finally:
        preparer.close()


def _together(reports: Sequence[ImportReport]) -> ImportReport:
    """The sum of several reports: numbers added, lists joined."""
    totals: dict[str, Any] = {}
    for name in ImportReport.__struct_fields__:
        values = [getattr(report, name) for report in reports]
        if isinstance(values[0], int):
            totals[name] = sum(values)
        else:
            totals[name] = tuple(item for value in values for item in value)
    totals["ids"] = totals["ids"][:LISTED_IDS]
    return ImportReport(**totals)
