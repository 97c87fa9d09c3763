"""What language models answered to queries, kept sealed: the same question is sent away once.

Boundary: an entry is found by a keyed hash of everything that decides it (the question, the model,
the prompt) and holds the answer sealed for that hash's place, so the file says how many questions
there were, in which order, and nothing of them. In memory entries stay sealed too. A strict vault
keeps them in memory only, where a lock drops them.

The cache may lose anything at any time: an entry that cannot be written is kept in memory, one
that cannot be read is as good as none (``verify`` says so).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from memory_store.crypto.sealing import sealed_epoch
from memory_store.errors import FormatError, TamperedError
from memory_store.sqlite import sqlite3
from memory_store.vault.keyring import VAULT_SCOPE, CollectionKeys, Keyring
from memory_store.vault.storage import Storage

MOST_KEPT = 1_000  # newest entries: about 1 MB, and more different questions than a month holds
PATIENCE = 0.05  # seconds for another writer: a search does not wait for its own convenience
TABLE = "vault_expansions"


class Expansions:
    """The answers kept for one unlocked vault. Safe to use from many threads."""

    def __init__(self, path: Path, keyring: Keyring, *, on_disk: bool) -> None:
        self._path = path
        self._keyring = keyring
        self._on_disk = on_disk
        self._sealed: OrderedDict[bytes, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, storage: Storage, *question: str) -> bytes | None:
        """What was kept for ``question``, ``None`` where nothing readable was.

        ``storage`` may read the vault. Raises LockedError after a lock.
        """
        keys = self._keyring.of(VAULT_SCOPE)
        for tag in keys.stored_forms(self._tag(question)):
            with self._lock:
                sealed = self._sealed.get(tag)
            if sealed is None and self._on_disk:
                row = storage.expansions.of(tag)
                sealed = None if row is None else _blob(row[0])
            if sealed is None:
                continue
            with suppress(TamperedError, FormatError):  # asking the model again writes a good one
                return self.open(tag, sealed)
        return None

    def keep(self, content: bytes, *question: str) -> None:
        """Keep ``content`` for ``question``, on disk where that can be done at once."""
        keys = self._keyring.of(VAULT_SCOPE)
        tag = keys.stored(self._tag(question))
        sealed = keys.seal("expansion", keys.place(TABLE, "sealed", tag.hex()), content)
        with self._lock:
            self._sealed[tag] = sealed
            self._sealed.move_to_end(tag)
            while len(self._sealed) > MOST_KEPT:
                self._sealed.popitem(last=False)
        if self._on_disk:
            self._write(tag, sealed)

    def open(self, tag: bytes, sealed: bytes) -> bytes:
        """An entry's content. Raises TamperedError unless it was sealed for this very tag."""
        keys = self._keyring.of(VAULT_SCOPE)
        return bytes(keys.unseal("expansion", keys.place(TABLE, "sealed", tag.hex()), sealed))

    def forget(self) -> None:
        """Drop what is in memory."""
        with self._lock:
            self._sealed.clear()

    def _tag(self, question: tuple[str, ...]) -> bytes:
        parts = (part.encode("utf-8", "surrogatepass") for part in question)
        return self._keyring.of(VAULT_SCOPE).expansion.tag(*parts)

    def _write(self, tag: bytes, sealed: bytes) -> None:
        """Write an entry, on a connection of its own: an import may be holding the vault's."""
        if not self._path.is_file():  # connecting would make a new one
            return
        try:
            with (
                closing(Storage.open(self._path, patience=PATIENCE)) as storage,
                storage.transaction(self._keyring),
            ):
                keys = self._keyring.of(VAULT_SCOPE)
                place = keys.place(TABLE, "sealed", tag.hex())
                if sealed_epoch(sealed, place) == keys.epoch:  # else a new key came meanwhile
                    storage.expansions.write(tag, sealed, MOST_KEPT)
        except sqlite3.OperationalError:
            return  # read-only, full, or another program is writing: it is in memory


def stored(storage: Storage) -> Iterator[tuple[int, bytes, bytes]]:
    """Every entry in the file, as (sequence, tag, sealed), oldest first."""
    for sequence, tag, sealed in storage.expansions.all():
        yield sequence, _blob(tag), _blob(sealed)


def reseal(storage: Storage, keys: CollectionKeys) -> int:
    """Seal what is kept in the newest epoch, its tags with it (in the caller's transaction).

    What cannot be opened is let go: asking again writes a good one. Returns how many are kept.
    """
    kept, gone, replaced = list(stored(storage)), [], []
    for sequence, tag, sealed in kept:
        place = keys.place(TABLE, "sealed", tag.hex())
        try:
            content = keys.unseal("expansion", place, sealed)
            fresh = keys.exchanged(tag, sealed_epoch(sealed, place), keys.epoch)
        except (TamperedError, FormatError):
            gone.append(sequence)
            continue
        blob = keys.seal("expansion", keys.place(TABLE, "sealed", fresh.hex()), content)
        replaced.append((fresh, blob, sequence))
    storage.expansions.delete(gone)
    storage.expansions.replace(replaced)
    return len(kept)


def _blob(value: object) -> bytes:
    """A value from the file; what is no blob there is as wrong as an empty one."""
    return value if isinstance(value, bytes) else b""
