"""The settings of a vault: what they are, and where its topics are kept.

Boundary: names and sizes; heads of memories are opened to put their topics into the table again.
"""

from __future__ import annotations

from collections.abc import Callable

from memory_store.actions.action import Opened, action, batches
from memory_store.errors import BadInputError, ConflictError
from memory_store.records import VaultSettings
from memory_store.records.fusion import FittedFusion
from memory_store.session.whole_vault import WholeVault
from memory_store.session.writer import drop
from memory_store.vault import topic_table, trash
from memory_store.vault.audit_events import ERASE
from memory_store.vault.settings import FILLING, MEMORY, TABLE, check_topics
from memory_store.vault.storage import Storage
from memory_store.vault.topic_hashes import END, Done

MOST_DAYS = 3_650
Progress = Callable[[str, int, "int | None"], None]


@action(None, writes=False)
def settings(opened: Opened) -> VaultSettings:
    """The vault's settings as they are now, and whether a change of them was left unfinished."""
    vault = opened.vault
    vault.follow_settings()
    known, storage = vault.settings, vault.reader()
    kept, left = known.topics_kept, storage.topics.count()
    return VaultSettings(
        vault=vault.vault.hex(),
        format=storage.format(),
        profile=known.profile,
        topics=TABLE if kept == FILLING else kept,
        topics_unfinished=kept == FILLING or (kept == MEMORY and left > 0),
        model=known.embedder or None,
        fingerprint=known.fingerprint or None,
        dimensions=known.dimensions or None,
        trash=known.trash,
        collections=len(known.collections),
        created=known.created or None,
        revision=known.revision,
        rankings=known.rankings,
    )


@action(None, writes=True)
def set_ranking(opened: Opened, fitted: FittedFusion | None) -> None:
    """Weigh evidence by numbers of the vault's own, or by the general ones again (``None``).

    They are sealed in the settings, and hold for every program that opens the vault with the
    owner's key. Raises BadInputError for a part of a vault or a key that is not the owner's,
    TamperedError, ReadOnlyError, StorageError.
    """
    vault = opened.vault.whole_vault()
    vault.keyring.check_owner()
    with vault.writing() as storage, storage.transaction(vault.keyring):
        known = vault.stored_settings(storage)
        rankings = () if fitted is None else known.with_ranking(fitted)
        if rankings != known.rankings:
            vault.change_settings(storage, present=known, rankings=rankings)


@action(None, writes=True, in_batches=True)
def set_topics(opened: Opened, where: str, progress: Progress | None = None) -> bool:
    """Keep topics as hashes in a ``table`` of the file, or in ``memory`` alone.

    In the table SQL can join by them (:func:`~memory_store.actions.topics.topic_hash`), and who has
    the file sees which memories share a topic; ``memory`` takes them out of the file. Searches are
    the same. It is done in batches while others read and write; what was stopped goes on when it is
    called again. Returns whether the write-ahead log is empty, too: it is not as long as another
    program reads. Raises BadInputError for a strict vault, a part of one or a key that is not the
    owner's, ConflictError where another program chose otherwise meanwhile, TamperedError,
    ReadOnlyError, StorageError.
    """
    vault = opened.vault.whole_vault()
    vault.keyring.check_owner()
    with vault.gate.entered():
        vault.follow_settings()
        check_topics(where, vault.settings.profile)
        _choose(vault, where)
        storage, kept = vault.reader(), vault.settings.topics_kept
        table = storage.topics if kept == MEMORY else storage.memories
        total = table.count()

    def step(storage: Storage, below: int) -> Done:
        if vault.settings_in(storage).topics_kept != kept:
            raise ConflictError("topics: another program changed this setting meanwhile")
        if kept == MEMORY:
            return topic_table.clear(storage, below)
        with vault.moment() as (_, known):  # the transaction's: no other commits meanwhile
            return topic_table.restore(storage, vault.keyring, known, below)

    done = 0
    for count in batches(vault, END, step) if kept in (MEMORY, FILLING) else ():
        done += count
        if progress is not None:
            progress("topics", min(done, total), total)
    with vault.gate.entered(), vault.writing() as storage:
        if kept == FILLING:
            _finish(storage, vault)
        return storage.erase_traces()


@action(ERASE, writes=True, counts=lambda gone: (0, gone))
def set_trash(opened: Opened, days: int) -> int:
    """Keep what is deleted or replaced for so many days; 0 keeps nothing. Returns how many rows of
    the trash are too old by that, and were erased.

    Raises BadInputError for a number that it cannot be, a part of a vault or a key that is not the
    owner's, ReadOnlyError.
    """
    vault = opened.vault.whole_vault()
    vault.keyring.check_owner()
    if not 0 <= days <= MOST_DAYS:
        raise BadInputError(f"trash: a number of days from 0 to {MOST_DAYS:,}", "trash")
    with vault.writing() as storage:
        with storage.transaction(vault.keyring):
            vault.change_settings(storage, trash=days)
            gone, deleted = trash.purge(storage, vault.keyring, days)
            drop(storage, vault.keyring, deleted)
        storage.erase_traces()
    return gone


def _choose(vault: WholeVault, where: str) -> None:
    """Write down what holds for every writer from now on; the table takes a while to fill."""
    with vault.writing() as storage, storage.transaction(vault.keyring):
        known = vault.stored_settings(storage)
        wanted = FILLING if where == TABLE and known.topics_kept != TABLE else where
        if known.topics_kept != wanted:
            vault.change_settings(storage, present=known, topics=wanted)


def _finish(storage: Storage, vault: WholeVault) -> None:
    """Note that all hashes are back in the table, from where they may be looked up again."""
    with storage.transaction(vault.keyring):
        known = vault.stored_settings(storage)
        if known.topics_kept == FILLING:
            vault.change_settings(storage, present=known, topics=TABLE)
