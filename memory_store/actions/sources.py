"""The sources of a vault: which paths were imported into it, and which of them are read again.

Boundary: opens the sealed paths of this principal alone. To forget a source deletes no memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory_store.actions.action import Opened, action
from memory_store.errors import NotFoundError
from memory_store.importing.ledger import left_out
from memory_store.paths import home_path
from memory_store.records import ImportReport, SourceInfo, unheard
from memory_store.vault.sources import read_sources
from memory_store.vault.storage.damage import vault_faults

if TYPE_CHECKING:
    from memory_store.importing.job import ImportJob

RESCAN = 60.0  # seconds between two looks at what is followed without an event


@action(None, writes=False)
def sources(opened: Opened) -> list[SourceInfo]:
    """Every path that this principal imported, in the order in which they were named."""
    vault = opened.vault
    names, origins = vault.collections.names(), vault.reader().origins
    return [
        SourceInfo(
            path=one.path,
            collection=names[one.collection],
            memories=len(origins.of_source(one.id, vault.keyring.openable())),
            options={name: kept for name, kept in one.options.items() if kept},
            left_out=left_out(vault, one),
        )
        for one in read_sources(vault.reader(), vault.keyring)
    ]


@action(None, writes=True, in_batches=True)
def watch(
    opened: Opened,
    /,
    paths: str | Path | Sequence[str | Path] = (),
    *,
    rescan: float = RESCAN,
    stopped: Callable[[], bool] = lambda: False,
    **options: Any,
) -> Iterator[ImportReport]:
    """Import paths, or every known source, and then what changes in them, until ``stopped``.

    Yields the report of the first import, and of each later one that did something. A change is
    written within two seconds, by words and topics; vectors follow. Keywords are the other fields
    of :class:`ImportRequest`. Raises ExtraMissingError without ``watchfiles``.
    """
    from memory_store.actions.writes import embedded_now, imported
    from memory_store.importing import watcher
    from memory_store.importing.job import ImportRequest

    vault = opened.vault.whole_vault()
    vault.access.refuse_writing(vault.path)

    def run(job: ImportJob) -> ImportReport:
        with vault_faults(vault.path):
            return imported(opened, job)

    def embed(breath: Callable[[], None]) -> Sequence[str]:
        with vault_faults(vault.path):
            return embedded_now(opened, unheard, breath)

    def known() -> list[str]:
        with vault_faults(vault.path), vault.gate.entered():
            found = read_sources(vault.reader(), vault.keyring)
            return [one.path for one in found if left_out(vault, one) is None]

    calls = watcher.Calls(run, known, embed, vault.path.resolve(), stopped)
    return watcher.watch(calls, ImportRequest.of_paths(paths, **options), rescan)


@action(None, writes=True)
def forget_source(opened: Opened, path: str) -> int:
    """Read a path no more when an import names none. Its memories stay.

    Returns how many sources it was: one for each collection. Raises NotFoundError.
    """
    vault = opened.vault.whole_vault()
    wanted = {path, str(home_path(path).resolve())}
    found = [one for one in read_sources(vault.reader(), vault.keyring) if one.path in wanted]
    if not found:
        raise NotFoundError(f"{path} is no source of this vault: memory-store sources lists them")
    with vault.writing() as storage, storage.transaction(vault.keyring):
        for one in found:
            storage.sources.delete(one.id)
    return len(found)
