"""The sources of a vault: which paths were imported into it, and which of them are read again.

Boundary: opens the sealed paths of this principal alone. To forget a source deletes no memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memory_store.actions.action import Opened, action
from memory_store.configuration import typed_vault
from memory_store.errors import BadInputError, NotFoundError
from memory_store.importing.git import behind
from memory_store.importing.ledger import left_out
from memory_store.paths import real_path
from memory_store.records import Embedding, ImportReport, Progress, SourceInfo, unheard
from memory_store.records.degraded import Code, Degraded
from memory_store.session.opened_vault import OpenVault
from memory_store.vault.rows import Origin
from memory_store.vault.sources import Source, note, read_sources, write_source
from memory_store.vault.storage.damage import vault_faults

if TYPE_CHECKING:
    from memory_store.importing.job import ImportJob

EDITED = frozenset({"type", "topics", "glob", "exclude", "all_files", "keep_originals"})
RESCAN = 60.0  # seconds between two looks at what is followed without an event


@action(None, writes=False)
def sources(opened: Opened, path: str | None = None) -> list[SourceInfo]:
    """Every path that this principal imported, in the order in which they were named.

    Or those of one ``path``, or of a number in that list. Raises NotFoundError.
    """
    vault = opened.vault
    found = _named(vault, path) if path else read_sources(vault.reader(), vault.keyring)
    return [_described(vault, one) for one in found]


@action(None, writes=False)
def is_source(opened: Opened, path: str) -> bool:
    """Whether this principal imported that very path."""
    return any(
        one.path == path for one in read_sources(opened.vault.reader(), opened.vault.keyring)
    )


def import_again(vault: Path) -> str:
    """The command that reads every source again, each with its options."""
    return f"memory-store import{typed_vault(vault)}"


def _described(vault: OpenVault, one: Source) -> SourceInfo:
    commit, reason = one.last.get("commit"), left_out(vault, one)
    return SourceInfo(
        path=one.path,
        collection=vault.collections.names()[one.collection],
        memories=len(vault.reader().origins.of_source(one.id, vault.keyring.openable())),
        options={name: kept for name, kept in one.options.items() if kept},
        time=one.last.get("time"),
        failed=one.last.get("failed", 0),
        failures=tuple((name, reason) for name, reason in one.last.get("failures", ())),
        left_out=reason,
        commit=commit,
        behind=behind(Path(one.path), commit) if commit and not reason else None,
    )


@action(None, writes=False)
def gone_on(opened: Opened, collections: Collection[str]) -> list[Degraded]:
    """The work trees of some collections (by name) that have gone on since they were imported,
    each with the command that reads it again. Those of this principal on this machine alone."""
    vault = opened.vault
    names = vault.collections.names()
    lines = []
    for one in read_sources(vault.reader(), vault.keyring):
        commit = one.last.get("commit")
        if not commit or names[one.collection] not in collections or left_out(vault, one):
            continue
        if said := behind(Path(one.path), commit):
            behind_ = f"{names[one.collection]} is {said}."
            lines.append(Degraded(Code.SOURCES, behind_, import_again(vault.path), names=True))
    return lines


@action(None, writes=True, in_batches=True)
def watch(
    opened: Opened,
    /,
    paths: str | Path | Sequence[str | Path] = (),
    *,
    rescan: float = RESCAN,
    stopped: Callable[[], bool] = lambda: False,
    prune: bool = True,
    progress: Progress = unheard,
    embedding: Callable[[Embedding], None] = unheard,
    **options: Any,
) -> Iterator[ImportReport]:
    """Import paths, or every known source, and then what changes in them, until ``stopped``.

    Yields the report of the first import, and of each later one that did something. A change is
    written within two seconds, by words and topics; vectors follow. Memories whose file is gone go
    to the trash (``prune``). ``progress`` is called with the file that the first import is at,
    ``embedding`` with how many memories have their vectors. Keywords are the other fields of
    :class:`ImportRequest`.
    Raises ExtraMissingError without ``watchfiles``.
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
            return embedded_now(opened, embedding, breath)

    def known() -> list[str]:
        with vault_faults(vault.path), vault.gate.entered():
            found = read_sources(vault.reader(), vault.keyring)
            return [one.path for one in found if left_out(vault, one) is None]

    calls = watcher.Calls(run, known, embed, vault.path.resolve(), stopped, progress)
    return watcher.watch(calls, ImportRequest.of_paths(paths, prune=prune, **options), rescan)


@action(None, writes=True)
def forget_source(opened: Opened, path: str) -> int:
    """Read a path (or the number of one in the list) no more when an import names none.

    Its memories stay.

    Returns how many sources it was: one for each collection. Raises NotFoundError.
    """
    vault = opened.vault.whole_vault()
    found = _named(vault, path)
    with vault.writing() as storage, storage.transaction(vault.keyring):
        for one in found:
            storage.sources.delete(one.id)
    return len(found)


@action(None, writes=True)
def edit_source(opened: Opened, /, path: str, **options: Any) -> int:
    """Change the options with which an import without a path reads a source: ``type``, ``topics``,
    ``glob``, ``exclude``, ``all_files``, ``keep_originals``.

    The next import goes by them; until then its memories are as they are. Returns how many sources
    it was. Raises NotFoundError, and BadInputError for an option that there is not.
    """
    from memory_store.importing.job import ImportRequest

    vault = opened.vault.whole_vault()
    if unknown := options.keys() - EDITED:
        raise BadInputError(f"{min(unknown)}: a source has no such option", min(unknown))
    found = _named(vault, path)
    with vault.writing() as storage, storage.transaction(vault.keyring):
        edited = []
        for one in found:
            if reason := left_out(vault, one):
                raise BadInputError(f"{one.path} {reason}", "path")
            changed = ImportRequest(paths=(one.path,)).again(one.path, {**one.options, **options})
            kept = {**changed.kept(), "collection": one.options.get("collection")}
            edited.append(write_source(storage, vault.keyring, one.collection, one.path, kept))
    note(vault.keyring, *edited)
    return len(found)


@action(None, writes=False)
def memories_of_source(opened: Opened, path: str) -> list[str]:
    """The ids of the memories that came from a source, or from one of a number in the list.

    Only those that the key of their own collection proves to have come from there. Raises
    NotFoundError.
    """
    vault = opened.vault.whole_vault()
    keyring, origins = vault.keyring, vault.reader().origins
    return [
        memory
        for one in _named(vault, path)
        for memory, collection, *stored in origins.of_source(one.id, keyring.openable())
        if Origin.proven(keyring.of(collection), memory, one.collection, stored) is not None
    ]


def _named(vault: OpenVault, path: str) -> list[Source]:
    """The sources of a path, one for each collection, or of a number in the list."""
    found = read_sources(vault.reader(), vault.keyring)
    if path.isdecimal() and len(path) < 10 and 0 < int(path) <= len(found):
        return [found[int(path) - 1]]
    wanted = {path, str(real_path(path))}
    named = [one for one in found if one.path in wanted]
    if not named:
        raise NotFoundError(f"{path} is no source of this vault: memory-store sources lists them")
    return named
