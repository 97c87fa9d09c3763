"""One vault behind a database of Datasette: opened, rested, locked.

Boundary: keys are in memory between an unlock (see ``opening.py``) and a lock: by the button, after
15 idle minutes, after 12 hours, when the file is exchanged, and when the server stops. A vault
whose key the configuration names rests instead of staying locked: its keys are wiped all the same,
and the next granted use reads them again from where they are kept. Locked by the button, it stays
locked until it is unlocked. An open vault grants nothing by itself: see ``permissions``.
"""

from __future__ import annotations

import secrets
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from memory_store import host
from memory_store.access import STRICT, Grants, without_writing
from memory_store.errors import LockedError, MemoryStoreError, StorageError
from memory_store.host import EVERYTHING, FileAccess, MemoryStore, Scope

from .. import background
from ..audit.recorder import Recorder
from ..configuration import DatabaseSettings
from ..permissions.asker import NO_ASKER, asker
from ..permissions.membership import Membership
from ..permissions.sessions import Sessions
from . import opening
from .file_stamps import same_file, stamp
from .hours import Hours
from .questions import Pairs, Questions, Who
from .server import Server
from .upkeep import Upkeep
from .views import Views

OPENING_PATIENCE = 2.0
"""Seconds that a look at the members waits while another request reads the key: a passphrase takes
a third of one, and a keyring may ask its owner."""


OF_TABLES = frozenset({"add", "edit", "delete", "restore", "erase", "collection changed"})
"""What an action is called that changes what stands in clear in the tables."""
SUPERSEDED = "the key that opened it was replaced or removed"


class AnotherKeyError(MemoryStoreError):
    """The vault is open with another principal's key, which may read other collections."""


class Vault:
    """One database that holds a vault, open or locked. Safe to use from many threads.

    ``choose`` says how its file can be opened now: that is asked at every opening. ``tables`` is
    what Datasette shows of a vault that is no file.
    ``opened_by`` says which key opened it, ``problem`` why the configured one did not.

    Every request asks who may do what, so nothing waits while the state is held: a key is
    read before (its keyring may ask the user), and a store is closed after (an import may be in the
    middle of a batch).
    """

    def __init__(
        self,
        database: str,
        path: Path,
        settings: DatabaseSettings,
        access: FileAccess = host.WRITABLE,
        choose: Callable[[], FileAccess] = lambda: host.WRITABLE,
        tables: host.ClearCopy | None = None,
    ) -> None:
        self.database = database
        self.path = path
        self.settings = settings
        self.access = access
        self._choose = choose
        self.opened_by: str | None = None
        self.audit = Recorder(database, settings.audit)
        self.questions = Questions()
        self.sessions = Sessions()
        self.views = Views()
        self.upkeep = Upkeep(settings, self.log)
        self.server = Server(database, self.log)
        self.tables = tables
        self.vault_id = ""
        self.strict = True  # until it was opened once: nothing is shown that might be sealed
        self.unlock_id: str | None = None
        self.problem: str | None = None
        self._store: MemoryStore | None = None
        self._resting = False
        self._membership: Membership | None = None
        self._members_unknown = False
        self._older_unshown = False
        self._revision: int | None = None
        self._feeds: Mapping[str, str] = {}
        self._followed: tuple[str | None, int] | None = None
        self._file = stamp(path)
        self._hours = Hours(settings)
        self._times_locked = 0
        self._lock, self._holders = threading.RLock(), 0
        self._to_close = ExitStack()
        self._opening = threading.Lock()  # taken before the other one, never inside it

    @contextmanager
    def _held(self) -> Iterator[None]:
        """No other thread changes the state meanwhile. What was let go of is closed afterwards."""
        closing = ExitStack()
        try:
            with self._lock:
                self._holders += 1
                try:
                    yield
                finally:
                    self._holders -= 1
                    if not self._holders:
                        closing = self._to_close.pop_all()
        finally:
            closing.close()

    @property
    def locked(self) -> bool:
        """Whether it has to be unlocked before a use. Never waits, and wipes nothing."""
        return not self._resting and (self._store is None or self._hours.over)

    @property
    def is_open(self) -> bool:
        """Whether keys are in memory now."""
        return self._store is not None

    def use(
        self,
        scope: Scope,
        *,
        creating: bool = False,
        readable: Scope = EVERYTHING,
        counts: bool = True,
    ) -> MemoryStore:
        """The open store with nothing in it but the collections of ``scope``: one of the grants'.

        Of collections outside of ``readable`` (the decrypt grant, where ``scope`` is another one)
        no memory is opened.
        ``counts``: whether the time until it locks itself begins anew.
        ``creating``: whether the asker may make collections. Writing discloses nothing of what is
        outside of the running request's decrypt grant. Raises :class:`LockedError`.
        """
        known = asker.get()
        whole = scope == EVERYTHING or known is NO_ASKER
        disclosed = EVERYTHING if whole else known.on(self.database).decrypt
        visits = known.actor_id is None
        asked_by = "visitor" if visits else f"actor {known.actor_id}"
        writer = secrets.token_urlsafe(16) if visits else asked_by
        if self._rests_now():
            self.open_configured()
        with self._held():
            store = self._present()
            if counts:
                self._hours.use()
            return store.limited_to(
                scope,
                creating=creating,
                readable=readable,
                disclosed=disclosed,
                writer=writer,
                asker=asked_by,
            )

    def _present(self) -> MemoryStore:
        if self._store is None:
            raise LockedError(f"{self.database} is locked: unlock it first")
        return self._store

    def _rests_now(self) -> bool:
        """Whether the keys are to be read again, after a look at the file and at the clock."""
        with self._held():
            self.follow_file()
            self.rest_if_due()
            return self._store is None and self._resting

    def follow_server(self) -> None:
        """Note whether the server that keeps the vault answers. Waits for it: for a thread.

        Brings its tables up to date. The keys are wiped where another vault stands in its place,
        and when the one that opened it was replaced or removed meanwhile.
        """
        store, address = self._store, self.settings.storage
        if address is None or self.tables is None or (store is None and self.server.answers):
            return
        try:
            found = opening.copy_what_is_clear(address, self.access, self.tables)
            if found is None:
                raise opening.none_there(address)
        except StorageError as error:
            self.server.note_away(error)
            return
        except host.sqlite3.Error as error:
            self.note_problem(f"its tables are out of date: {host.plain_cause(error)}")
            return
        self.server.note_back()
        exchanged, state = found[0] != self.vault_id, (self.unlock_id, found[1])
        known, self._followed = state == self._followed, state
        if store is not None and (exchanged or (not known and store.keys.superseded())):
            with self._held():
                if self._store is store:
                    self.strict = self.strict or exchanged
                    why = "another vault stands in its place" if exchanged else SUPERSEDED
                    self._wipe(why, exchanged=exchanged)

    def keep_question(self, scope: Scope, by: Who, asked: Pairs) -> str | None:
        """A name for a private search, until the lock. Counts as a use of the vault by the asker.

        Raises :class:`LockedError`.
        """
        self.use(scope)
        with self._held():
            self._present()  # after a lock nothing is kept
            return self.questions.keep(by, asked)

    def membership(self) -> Membership | None:
        """Who is a member of which collection; ``None`` while locked. Asking counts as no use.

        While the keys rest, what was known holds as long as the file's settings are the same; after
        a change the keys are read again, since grants cannot be read without them. Where that
        fails or takes long, no actor gets any meanwhile: ``None``. So it is while its server is
        away: see :meth:`.Server.check`.
        """
        if not self.server.answers:
            return None
        try:
            return self._known_members()
        except StorageError as error:
            if self.settings.storage is None:
                raise
            self.server.note_away(error)
            return None

    def _known_members(self) -> Membership | None:
        outdated = False
        if self._rests_now():
            stored = opening.revision(self.path, self.access)
            if stored is None:
                return None
            outdated = stored != self._revision
        if outdated:
            self.open_configured(patience=OPENING_PATIENCE)
        store, members = self._store, None
        with suppress(LockedError):  # meanwhile: a server is waited for while nothing is held
            members = None if store is None else self._members(store)
        with self._held():
            if store is not None and self._store is store:
                self._membership = members
            elif outdated or not self._resting:
                return None
            return self._membership

    def may_be_feed(self, id: str, token: str) -> bool:
        """Whether a token may open a feed, as far as that is known without the keys.

        A stranger may ask at any time. So while the keys rest, what was known of the feeds holds
        as long as the file's settings are the same, and a wrong token does not have them read.
        """
        if not self._rests_now():
            return True
        same = opening.revision(self.path, self.access) == self._revision
        return not same or host.is_token(self._feeds.get(id, ""), token)

    def stay(self) -> None:
        """For a server that stays: run its upkeep whenever it is open."""
        with self._held():
            self.upkeep.stay()
            if self._store is not None:
                self.upkeep.begin(self._store, read_only=bool(self.access.read_only))

    def open_configured(self, patience: float = -1) -> None:
        """Open with the key that the configuration or the environment names, if it fits.

        A configured key that is missing or wrong leaves the vault locked, with the reason in
        ``problem`` and on standard error: Datasette's other databases go on. Who is locked out
        meanwhile stays so, and a file that was exchanged meanwhile is left for the next use.
        While another thread opens it, this waits for ``patience`` seconds (below 0: for the end).
        """
        if not self._opening.acquire(timeout=patience):
            return
        try:
            with self._held():
                if self._store is not None:
                    return
                times, file = self._times_locked, stamp(self.path)
            try:
                access = self._choose()
                found = opening.open_configured(self.path, self.settings, access)
            except Exception as error:  # noqa: BLE001 - other vaults are served all the same
                unforeseen = f"{self.path.name} cannot be opened ({type(error).__name__})"
                known = isinstance(error, MemoryStoreError)
                if isinstance(error, StorageError) and self.settings.storage is not None:
                    self.server.note_away(error)
                    self.open_when_used()  # once it is back
                    return
                self.note_problem(f"locked: {error if known else unforeseen}")
                return
            with self._held():
                unchanged = times == self._times_locked and same_file(file, stamp(self.path))
                if found is None:
                    self._resting = self._resting and not unchanged
                elif unchanged and self._store is None:
                    self.access = access
                    self._adopt(found.store, found.source)
                    self.audit.note_server("unlock")
                    self._resting = True
                else:
                    self._to_close.callback(found.store.close)
        finally:
            self._opening.release()

    def open_when_used(self) -> None:
        """Leave the opening with a configured key, if there is one, to the first granted use."""
        self._resting = opening.may_be_opened(self.settings)

    def note_problem(self, line: str) -> None:
        """Say what is wrong: once on standard error, and on its page."""
        problem = line.removeprefix("locked: ")
        if self.problem != problem:
            self.problem = problem
            self.log(line)

    def log(self, line: str) -> None:
        """Say something about this vault on standard error, if that is open. Never a secret."""
        with suppress(OSError, ValueError):
            print(f"datasette-hybrid: {self.database}: {line}", file=sys.stderr)

    def older(self, *, again: bool) -> str | None:
        """A warning that the file is older than the one last used on this machine.

        Once for each opening, or ``again`` until it is accepted.
        """
        with self._held():
            if self._store is None or not (again or self._older_unshown):
                return None
            self._older_unshown = False
            return self._store.older()

    @property
    def read_only(self) -> str:
        """Why nothing can be written to it, as a sentence; empty where something can."""
        why = self.access.read_only
        return f"Nothing can be written to this vault: {why}." if why else ""

    def offered(self, grants: Grants) -> Grants:
        """What pages offer: nothing that writes where nothing can be written. Who asks for it all
        the same is told why not."""
        return without_writing(grants) if self.access.read_only else grants

    def state(self) -> str:
        """Whether it is open, and by what; or that it is locked, and what to do."""
        if self._store is None:
            return "locked: no key fits or none is named; unlock it in the browser"
        only = f" (nothing can be written: {self.access.read_only})"
        return f"open, by {self.opened_by}{only if self.access.read_only else ''}"

    def unlock(self, secret: str) -> None:
        """Open with a passphrase, a recovery code, or the content of a key file.

        Where the vault is open already the secret is only checked, and has to be of the principal
        that opened it: another may read other collections. The owner's takes a vault over, since
        it opens everything. Raises :class:`WrongKeyError`, :class:`AnotherKeyError`, or another
        :class:`MemoryStoreError` when the file is damaged.
        """
        access = self._choose()
        store = opening.open_typed(self.path, secret, access)
        if self._rests_now():
            self.open_configured()
        with self._held():
            present = self._store
            if present is None or (store.is_owner and not present.is_owner):
                if present is not None:
                    self._wipe()
                self.access = access
                self._adopt(store, "a browser that sent its secret")
                self._members_unknown = not store.is_owner
                return
            self._to_close.callback(store.close)
            if store.principal != present.principal:
                raise AnotherKeyError(f"{self.database} is open with another key")

    def lock(self) -> None:
        """Wipe the keys, end every session, and stay locked."""
        with self._held():
            self._resting = False
            self._times_locked += 1
            self._wipe()

    def rest_if_due(self) -> None:
        """Wipe the keys when the idle or the absolute time-out has passed."""
        with self._held():
            if self._store is not None and self._hours.over:
                self.audit.note_server("lock")
                self._wipe()

    def rest(self) -> None:
        """Wipe the keys until the next granted use, where a configured key opens it again."""
        with self._held():
            if self._store is not None and self._resting:
                self.audit.note_server("lock")
                self._wipe()

    def closing(self) -> tuple[float | None, float | None] | None:
        """In how many seconds of no use it locks itself, and in how many in any case.

        ``None`` for either that is never; for both where it is locked, or opens itself again.
        """
        if self._store is None or self._resting:
            return None
        return self._hours.left()

    def follow_file(self) -> None:
        """Wipe the keys when another file was put in place of the one they belong to.

        A write to the same vault in the same file is no such exchange. A file that another program
        keeps to itself is looked at again the next time. The keys are wiped, too, when the one that
        opened the vault was replaced or removed meanwhile, and when another program wrote to a file
        that was read without locks. A configured key that still fits opens it at the next use.
        """
        with self._held():
            if self.access.outdated(self.path):
                try:
                    self.access = self._choose()
                except StorageError as error:
                    self.note_problem(f"locked: {error}")
                self._wipe("another program wrote to its file, which was read without locks")
            before, now = self._file, stamp(self.path)
            if now == before:
                return
            try:
                same = same_file(before, now) and (
                    opening.vault_in(self.path, self.access) == self.vault_id
                )
            except StorageError:
                return
            self._file = now
            if not same:
                self.strict = True  # what may be shown of the new one is known when it is open
                self._wipe("its file was exchanged or is gone", exchanged=True)
            elif self._store is not None and self._store.keys.superseded():
                self._wipe(SUPERSEDED)

    def write_audit(self) -> None:
        """Write what was heard meanwhile, where the vault is open."""
        store = self._store
        if store is not None and self.server.answers:
            self.audit.write(store)

    def _hear(self, action: str, opened: int, returned: int) -> None:
        """A store's action was done. What it wrote to a server is in the tables before the answer;
        an import, which writes for long, is followed by the clock."""
        self.audit.hear(action, opened, returned)
        if self.tables is not None and action in OF_TABLES:
            self.follow_server()

    def _adopt(self, store: MemoryStore, source: str) -> None:
        store.report_to(self._hear)
        store.expander = self.settings.expander
        self._store = store
        self.vault_id = store.vault_id
        self.strict = store.profile == STRICT
        self.unlock_id = secrets.token_urlsafe(16)
        self.problem = None
        self.opened_by = source
        self._members_unknown = False
        self._hours.begin()
        older = store.first_warning()
        self._older_unshown = older is not None
        if older is not None:
            self.log(older)
        background.begin("hybrid-warm", lambda: _warm(store))
        if self.tables is not None:
            background.begin("hybrid-tables", self.follow_server)
        self.upkeep.begin(store, read_only=bool(self.access.read_only))

    def _wipe(self, reason: str = "", *, exchanged: bool = False) -> None:
        """Let go of the store, and say for what ``reason``.

        What belongs to an ``exchanged`` file, members too, goes into no other one.
        """
        store, self._store, self.unlock_id = self._store, None, None
        end_searches = self.upkeep.end()
        self._membership = self._revision = None
        self._feeds = {}
        self.sessions.wipe()
        self.questions.wipe()
        self.views.wipe()
        if store is not None:  # no key stays, also where a later step fails
            self._to_close.callback(store.close)
        self._to_close.callback(end_searches)
        if store is None:
            return
        if exchanged:
            self.audit.forget()
        elif self.server.answers:
            if self._resting:
                self._remember_members(store)
            self.audit.write(store)
        if reason:
            self.log(f"locked: {reason}")

    def _members(self, store: MemoryStore) -> Membership | None:
        """Who is a member of which collection, as the owner's settings say.

        A key that was typed and is not the owner's does not open those: no actor can say which
        collections are closed, and it serves only the person who typed it. A configured key is the
        server's own.
        """
        return None if self._members_unknown else Membership(store.collections.membership())

    def _remember_members(self, store: MemoryStore) -> None:
        """Know who is a member, and which feeds there are, while the keys rest.

        What cannot be read is read at the next use.
        """
        revision = opening.revision(self.path, self.access)
        with suppress(MemoryStoreError, host.sqlite3.Error):
            self._membership = self._members(store)
            self._feeds = store.searches.feeds() if store.is_owner else {}
            self._revision = revision


def _warm(store: MemoryStore) -> None:
    """Load the models before the first question. What is missing shows in every answer."""
    try:
        store.warm()
    except MemoryStoreError as error:
        print(f"datasette-hybrid: {error}", file=sys.stderr)
