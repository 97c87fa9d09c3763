"""One copy of a vault in an exchange: what changed in it since the last one, and what it sends.

Boundary: opens the memories that were changed, for they leave as versions: to another copy in this
process, or into a sealed bundle. What changed is found by row tags; nothing else is opened.

No writer takes part: what was written since the last exchange, by whatever program, is noticed when
the next one begins. Each such change is then a version with a number of this device.
"""

from __future__ import annotations

import hashlib
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from msgspec import Struct, msgpack
from msgspec.structs import replace

from memory_store.actions.action import Opened
from memory_store.actions.attempts import SettledConflictError
from memory_store.configuration import typed_vault
from memory_store.errors import BadInputError, FormatError, TamperedError
from memory_store.index.snapshot import Snapshot
from memory_store.records import Memory
from memory_store.session.whole_vault import WholeVault
from memory_store.vault import machine, sync_state, trash
from memory_store.vault.contents import Content, digest, exact_digest, packed
from memory_store.vault.keyring import OWNER
from memory_store.vault.originals import opened as opened_original
from memory_store.vault.registers import ERASED, Register, changed, clock, first
from memory_store.vault.rows import Origin, open_memories, read_origins
from memory_store.vault.storage import Storage
from memory_store.vault.storage.table import parts
from memory_store.vault.sync_state import Known, State

ORIGINALS_AT_ONCE = 8 * 2**20  # bytes
BATCH = 64  # memories that are opened, or written, at a time
READY_BATCH = 512  # that are written at a time where nothing is to be embedded


class Sent(Struct, frozen=True, array_like=True):
    """A register with the contents of all its versions, and the vectors of the shown one.

    ``vectors`` are the fingerprint of the model, the windows and as many float16 vectors (``None``:
    there are none). ``original`` are the bytes of the file that the shown version was read from.
    """

    register: Register
    vectors: tuple[str, list[tuple[int, int]], bytes] | None = None
    original: bytes | None = None

    @property
    def size(self) -> int:
        """About how many bytes it says."""
        said = sum(len(one.content or b"") for one in self.register.versions)
        return said + len(self.original or b"")


Outgoing = tuple[int, Sent]
"""The sequence of a register, and what is sent of it."""


class Tally(Struct):
    """What an exchange did to one copy so far."""

    added: int = 0
    changed: int = 0
    deleted: int = 0
    conflicts: dict[str, None] = {}


class Copy:
    """An opened vault in an exchange. Everything it does is committed by itself: an exchange that
    was stopped anywhere is done again, and changes nothing twice."""

    def __init__(self, opened: Opened) -> None:
        self.opened = opened
        self.vault: WholeVault = opened.vault.whole_vault()
        self.vault.keyring.check_owner()
        self.vault.access.refuse_writing(self.vault.path)
        self.tally = Tally()
        self.state = sync_state.read_state(self.vault.reader(), self.vault.keyring)
        self._known: dict[str, Known] | None = None

    def save(self, state: State) -> None:
        """Write the state."""
        with self.vault.writing() as storage, storage.transaction(self.vault.keyring):
            self.write(storage, state)
        self.wrote(state)

    def write(self, storage: Storage, state: State, known: Sequence[Known] = ()) -> None:
        """Write the state, and what is known of some memories, in the caller's transaction; then
        call :meth:`wrote`. Raises SettledConflictError where another exchange did so meanwhile."""
        if sync_state.read_state(storage, self.vault.keyring) != self.state:
            raise SettledConflictError(
                f"{self.vault.path}: another program is syncing it; run it again when that is done"
            )
        sync_state.write(storage, self.vault.keyring, known, state)

    def wrote(self, state: State, known: Iterable[Known] = ()) -> None:
        """What was written is committed."""
        self.state = state
        if self._known is not None:
            self._known.update((one.register.memory, one) for one in known)

    def known(self) -> Mapping[str, Known]:
        """All that is known of memories. Read once: none but this exchange writes it meanwhile."""
        if self._known is None:
            self._known = sync_state.read_known(self.vault.reader(), self.vault.keyring)
        return self._known

    def clock(self) -> dict[str, int]:
        """Device → the number of its last change that was seen here."""
        seen = clock(one.register for one in self.known().values())
        return {**seen, self.state.device: self.state.number} if self.state.device else seen

    def last_folder(self) -> Path:
        """The folder of the last exchange of this copy. Raises BadInputError where it had none."""
        state, path = self.state, self.vault.path
        known_from = state.folder_from or state.place
        if not state.folder or known_from != sync_state.machine_place(path):
            typed = f"memory-store sync{typed_vault(path)} FOLDER"
            raise BadInputError(f"this vault has no folder yet; name one once: {typed}", "TARGET")
        return Path(state.folder)

    def begin(self, seen_elsewhere: Mapping[str, int], *, last_file: int = 0) -> None:
        """Be a device: a new one where the file is a copy of another's, or an older one of its own.

        Numbers that were given once are not given again: two changes of one number would be taken
        for one. ``seen_elsewhere``: device → the last of its changes that others have seen;
        ``last_file`` is the last of its files that they have. What this machine sent counts, too,
        whatever others show of it.
        """
        state, place = self.state, sync_state.place_of(self.vault.reader(), self.vault.path)
        sent, file = self._noted_numbers(), f"{state.device} file"
        behind = max(sent.get(state.device, 0), seen_elsewhere.get(state.device, 0)) > state.number
        older = max(sent.get(file, 0), last_file) > state.file
        if not state.device or state.place != place or behind or older:
            fresh = replace(state, device=sync_state.new_device(), place=place, number=0, file=0)
            self.save(replace(fresh, targets={}, folder="", folder_from=""))
            self.vault.begin_copy()

    def note_numbers(self) -> None:
        """Keep on this machine which numbers were given: before anything leaves under them."""
        state, sent = self.state, self._noted_numbers()
        numbers = {**sent, state.device: state.number, f"{state.device} file": state.file}
        if numbers != sent:
            machine.keep(self.vault.vault, machine.DEVICES, OWNER, numbers)

    def _noted_numbers(self) -> dict[str, int]:
        return machine.kept(self.vault.vault, machine.DEVICES, OWNER)

    # -- what changed here ----------------------------------------------------------------------

    def note_changes(self) -> None:
        """Make versions of what was added, changed and deleted here since the last time."""
        vault = self.vault
        with vault.moment(counted=True) as (storage, rows):
            accounts = sorted(storage.accounts.of(vault.keyring.readable()).items())
            noted = hashlib.sha256(msgpack.encode(accounts)).digest()
            if noted == self.state.noted:
                return
            known = self.known()
            present = rows.snapshot.row_tags()
            earlier = {} if known else self._earlier(storage)
        there = [one for one, tag in present.items() if _row(known, one) != tag]
        gone = [one for one, each in known.items() if each.row and one not in present]
        for some in parts([*there, *gone, *(one for one in earlier if one not in present)], BATCH):
            self.note(some, earlier)
        self.save(replace(self.state, noted=noted))

    def _earlier(self, storage: Storage) -> dict[str, list[bytes]]:
        """Memory → digests of what it said before, as the trash knows; for the first exchange.

        So a copy of the vault in which it says so still is known to be behind, and not changed.
        """
        keyring, found = self.vault.keyring, dict[str, list[bytes]]()
        for entry in trash.entries(storage, keyring, keyring.readable()):
            with suppress(TamperedError, FormatError):  # ``verify`` names what is damaged there
                memory = trash.open_entry(storage, keyring, entry)
                found.setdefault(memory.id, []).append(exact_digest(memory))
        return found

    def note(self, ids: Sequence[str], earlier: Mapping[str, Sequence[bytes]] = {}) -> None:
        """Make versions of some memories, as far as they are not as they were known.

        ``earlier`` is what memories said that no exchange knew, and that may be gone.
        """
        vault, noted = self.vault, list[Known]()
        with vault.writing() as storage, storage.transaction(vault.keyring):
            known = sync_state.read_known(storage, vault.keyring, ids)
            with vault.moment() as (reader, rows):
                present = rows.tags(ids)
                stale = [
                    one
                    for one in ids
                    if _row(known, one) != present.get(one, b"")
                    or (one in earlier and one not in known)
                ]
                opened = {one.id: one for one in open_memories(reader, vault.keyring, stale, rows)}
                erased = self._erased(reader, [one for one in stale if one not in present])
            state = self.state
            for memory in stale:
                state = replace(state, sequence=state.sequence + 1)
                row, said = present.get(memory, b""), opened.get(memory)
                before = earlier.get(memory, ())
                gone = ERASED if memory in erased else b""
                after = _changed(known.get(memory), memory, said, gone, before, state)
                if state.device in after.register.seen:
                    number = after.register.seen[state.device]
                    state = replace(state, number=max(number, state.number))
                noted.append(replace(after, row=row, sequence=state.sequence))
            if noted:
                self.write(storage, state, noted)
        self.wrote(state, noted)

    def _erased(self, storage: Storage, gone: Collection[str]) -> set[str]:
        """Those of some memories that are gone for good: erased, or too old for the trash."""
        keyring, there = self.vault.keyring, list[trash.Entry]()
        try:
            there = trash.entries(storage, keyring, keyring.readable()) if gone else there
        except (TamperedError, FormatError):
            return set()  # what it holds is not known: nothing is erased elsewhere because of that
        return {*gone}.difference(one.kept.memory for one in there)

    # -- what is sent ---------------------------------------------------------------------------

    def outgoing(self, name: str, sent: int, *, all: bool = False) -> Iterator[list[Outgoing]]:
        """The registers that a target lacks, oldest change first, with all contents, in batches.

        ``all``: also those that came from there as they are.
        """
        if self.state.sequence <= sent:
            return
        lacking = [
            one
            for one in self.known().values()
            if one.sequence > sent and (all or one.source != name)
        ]
        lacking.sort(key=lambda one: one.sequence)
        for some in parts(lacking, BATCH):
            for few in self._few(some):
                yield self._with_contents(few)

    def _few(self, some: Sequence[Known]) -> Iterator[list[Known]]:
        """Memories in parts whose originals fit into memory together."""
        sizes: dict[str, int] = defaultdict(int)
        ids, held = [one.register.memory for one in some], self.vault.keyring.readable()
        parts = self.vault.reader().memories.originals(ids, held)
        for part, size in parts.items():
            sizes[part.partition(".")[0]] += size
        few, total = list[Known](), 0
        for one in some:
            few.append(one)
            total += sizes[one.register.memory]
            if total > ORIGINALS_AT_ONCE:
                yield few
                few, total = [], 0
        if few:
            yield few

    def _with_contents(self, some: Sequence[Known]) -> list[Outgoing]:
        ids = [one.register.memory for one in some]
        sequences = {one.register.memory: one.sequence for one in some}
        while True:
            with self.vault.moment() as (storage, rows):
                known = sync_state.read_known(storage, self.vault.keyring, ids)
                present = rows.tags(ids)
                stale = [one for one in ids if _row(known, one) != present.get(one, b"")]
                originals: dict[str, bytes] = {}
                contents = {} if stale else contents_of(self.vault, storage, [*present], originals)
                vectors = {one: self._vectors(rows.snapshot, one) for one in present}
            if not stale:
                break
            self.note(stale)
        return [
            (
                sequences[one],
                Sent(
                    filled(known[one].register, contents.get(one)),
                    vectors.get(one),
                    originals.get(one),
                ),
            )
            for one in ids
        ]

    def _vectors(
        self, snapshot: Snapshot, memory: str
    ) -> tuple[str, list[tuple[int, int]], bytes] | None:
        ordinal = snapshot.ordinal_of(memory)
        if ordinal is None or snapshot.stale[ordinal]:
            return None
        made_with = self.vault.settings.of(snapshot.collection(ordinal)).fingerprint
        spans = snapshot.windows(ordinal)
        return (made_with, spans, snapshot.stored_vectors(ordinal).tobytes()) if spans else None


def contents_of(
    vault: WholeVault,
    storage: Storage,
    ids: Sequence[str],
    originals: dict[str, bytes] | None = None,
) -> dict[str, bytes]:
    """Memory → what it says, packed; in a moment of the vault. ``originals`` takes the bytes of the
    files that were kept of them."""
    with vault.moment() as (_, rows):
        opened = list(open_memories(storage, vault.keyring, ids, rows))
    if originals is not None:
        kept = [one for one in opened if one.original is not None and one.original.token]
        originals |= {one.id: opened_original(storage, vault.keyring, one) for one in kept}
    origins = read_origins(storage, vault.keyring, [(one.id, one.collection) for one in opened])
    return {one.id: packed(Content(one, origins.get(one.id, Origin()))) for one in opened}


def filled(register: Register, content: bytes | None) -> Register:
    """A register whose versions carry what they say, given what the vault has of the memory."""
    versions = (
        replace(one, content=content) if one.content is None and not one.deleted else one
        for one in register.versions
    )
    return replace(register, versions=tuple(versions))


def emptied(register: Register) -> Register:
    """A register whose versions do not repeat what is in the vault: what the shown one says."""
    shown = register.shown
    here = shown.content if shown is not None else None
    versions = (
        replace(one, content=None) if one.content == here else one for one in register.versions
    )
    return replace(register, versions=tuple(versions))


def _row(known: Mapping[str, Known], memory: str) -> bytes:
    one = known.get(memory)
    return one.row if one is not None else b""


def _changed(
    before: Known | None,
    memory: str,
    said: Memory | None,
    gone: bytes,
    earlier: Sequence[bytes],
    state: State,
) -> Known:
    """What is known after a change here; the same register where it says what it said."""
    says, exact = (digest(said), exact_digest(said)) if said is not None else (b"", gone)
    when = _milliseconds(said.updated) if said is not None else time.time_ns() // 1_000_000
    if before is None and said is not None:
        return Known(first(memory, when, says, exact, earlier))
    register = (
        before.register if before is not None else first(memory, 0, b"", earlier[-1], earlier)
    )
    shown = register.shown
    if before is not None and shown is not None and (shown.says, shown.exact) == (says, exact):
        return before
    return Known(changed(register, state.device, state.number + 1, when, says, exact))


def _milliseconds(moment: str) -> int:
    return int(datetime.fromisoformat(moment).timestamp() * 1_000)
