"""Connections to a PostgreSQL server: opened, lent again, opened anew when the server was away.

Boundary: a password goes from the address to the server's library and nowhere else. What the server
says is repeated without the details in which it quotes values. Off this machine only TLS.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from memory_store.addresses import Address
from memory_store.errors import (
    AwayError,
    BadInputError,
    DamagedError,
    MemoryStoreError,
    ReadOnlyError,
    StorageError,
)
from memory_store.sqlite import sqlite3

try:
    import psycopg
    from psycopg.errors import UndefinedTable
    from psycopg.generators import fetch_many
except ImportError as error:
    raise StorageError(
        "a vault on a PostgreSQL server needs a package: pip install 'datasette-hybrid[postgres]'"
    ) from error

if TYPE_CHECKING:
    from psycopg import Connection

__all__ = ["Greeting", "Link", "ServerAwayError", "ServerError", "UndefinedTable", "let_go"]

CONNECT_SECONDS = 4
SILENT_SECONDS = 6  # that one may hear nothing of the other's machine before it is taken for gone
PROBES = 2  # in the last seconds of it
STATEMENT_SECONDS = 300  # the longest: the sealed index of a large vault over a slow line
WAITS = (0.0, 0.2, 1.0, 3.0)  # seconds before each try to reach a server that was away
MOST_IDLE = 8  # connections to one database, for any of its vaults, that wait to be used again
BEGUN = (psycopg.pq.TransactionStatus.INTRANS, psycopg.pq.TransactionStatus.INERROR)
LOCAL = ("localhost", "127.0.0.1", "::1")
UNSAID = "prefer"  # what the server's library takes without a choice
PLAIN = ("disable", "allow", UNSAID)
WANTS_PASSWORD = (
    "the server wants the password as it is, which is given to none that could be another: use "
    "sslmode=verify-full, or say require_auth=password"
)
KNOWS_HOW = (
    160_000  # the library's version from which it can be told how to be asked for a password
)
READ_ONLY = "25006"
NOT_ALLOWED = "42501"
FORGOTTEN = ("26000", "0A000")
"""A statement that was prepared is not any more, or its tables were changed since."""
Answer = TypeVar("Answer")


class ServerError(StorageError, sqlite3.OperationalError):
    """The server is away, busy, full or refuses.

    The rooms above name SQLite's error where a write may fail now and be tried later; this is it.
    """


class ServerAwayError(ServerError, AwayError):
    """The server cannot be reached, or does not serve now."""


class TakenError(StorageError, sqlite3.IntegrityError):
    """It has a row of that key already."""


class Greeting:
    """What is said at the beginning of a connection, and asked when one is lent again."""

    def say(self, connection: Connection[Any]) -> str:
        """Say it. Returns what the connection is about from then on."""
        return ""

    def holds(self, connection: Connection[Any], about: str) -> Callable[[], bool]:
        """Ask whether it would say the same now; what is returned reads the answer."""
        return lambda: True


class Link:
    """One connection of one thread at a time, made when something is first asked, which comes back
    after the server was away."""

    def __init__(
        self,
        address: Address,
        *,
        read_only: bool,
        patience: float,
        greeting: Greeting | None = None,
    ) -> None:
        self.address = address
        self._key = (os.getpid(), address.database, address.password, read_only, patience)
        self._settings = _settings(read_only, patience)
        self._greeting = greeting or Greeting()
        self.about = ""
        """What the greeting said."""
        self._lent = False  # and whether that has to be asked with the first question
        self.in_transaction = False
        self._beginning: tuple[str, ...] = ()  # of a transaction: said with the first question
        self._writes = False
        self.began_with: Sequence[Any] = ()
        """What the last statement that a transaction began with answered, where it writes."""
        self._unheard = False  # whether the answer to a rollback was not waited for
        self._doubtful = False
        """Whether something failed among what was asked at once. Its library may then count on
        statements that were never prepared: the connection is used no more."""
        self._pipe: psycopg.Pipeline | None = None  # of a transaction that writes
        self._leave = ExitStack()
        self._opened: Connection[Any] | None = None

    def run(self, ask: Callable[[Connection[Any]], Answer]) -> Answer:
        """Ask the server. Raises ServerError, ReadOnlyError or StorageError.

        Outside of a transaction, where all that is asked only reads, a connection that was cut, or
        whose session lost what was prepared, is opened again and the question asked once more.
        """
        begun = self.in_transaction and not self._beginning
        try:
            return self._asked(ask)
        except psycopg.Error as error:
            forgotten = error.sqlstate in FORGOTTEN
            self._doubtful |= forgotten  # and then what follows has a new connection
            if begun or not (forgotten or (self._opened and self._opened.closed)):
                raise self._said(error) from None
        if self._opened is not None:
            self._opened.close()
        self._reconnect()
        try:
            return self._asked(ask)
        except psycopg.Error as error:
            raise self._said(error) from None

    def _asked(self, ask: Callable[[Connection[Any]], Answer]) -> Answer:
        connection, beginning = self._connection, self._beginning
        if not (beginning or self._lent):
            return ask(connection)
        self._leave.enter_context(connection.pipeline())
        try:
            begun = [connection.execute(statement) for statement in beginning]
            holds = self._greeting.holds(connection, self.about) if self._lent else lambda: True
            answer = ask(connection)
            self._leave.close()
        except BaseException:
            self._doubtful = True
            self._leave_pipe()
            raise
        self._lent = False
        if not holds():  # what was answered is of another vault
            if beginning:
                connection.execute("rollback")
            self.about = self._greeting.say(connection)
            return self._asked(ask)
        self._beginning = ()
        if self._writes:
            self.began_with = begun[-1].fetchone() or ()
            self._pipe = self._leave.enter_context(connection.pipeline())
        return answer

    def answer(self, ask: Callable[[Connection[Any]], Answer]) -> Answer:
        """As :meth:`run`; and what is asked has its answer when it returns."""
        pipe = self._pipe
        if pipe is None:
            return self.run(ask)

        def heard(connection: Connection[Any]) -> Answer:
            asked = ask(connection)
            pipe.sync()
            return asked

        return self.run(heard)

    def begin(self, *statements: str, writes: bool = False) -> None:
        """Begin a transaction by statements, until :meth:`commit` or :meth:`roll_back`: together
        with what is first asked in it. One that ``writes`` waits for the answer to that, and from
        then on only :meth:`answer` and :meth:`commit` do."""
        self._beginning, self._writes, self.in_transaction = statements, writes, True

    def commit(self) -> None:
        """End a transaction that writes."""

        def end(connection: Connection[Any]) -> None:
            connection.execute("commit")
            self._leave.close()

        self._writes = False
        self.run(end)
        self.in_transaction, self._pipe = False, None

    def roll_back(self) -> None:
        """End a transaction, if its connection is still there. The answer is not waited for: it
        would say nothing."""
        self._leave_pipe()
        connection, heard = self._opened, not self._unheard
        self.in_transaction, self._beginning, self._writes = False, (), False
        if connection and heard and connection.pgconn.transaction_status in BEGUN:
            try:
                connection.pgconn.send_query(b"rollback")
                self._unheard = True
            except psycopg.OperationalError:
                connection.close()

    def _leave_pipe(self) -> None:
        """After an error. What else went wrong there was because of it."""
        self._pipe = None
        try:
            self._leave.close()
        except psycopg.Error:
            self._doubtful = True

    def close(self) -> None:
        """Let the connection go, for the next one who wants such a one."""
        if self._opened is None or self._opened.closed:
            return
        if self._doubtful:
            self._opened.close()
            return
        connection = self._connection
        idle = connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        if not (idle and _kept(self._key, _Idle(connection, self.address.vault, self.about))):
            connection.close()

    @property
    def _connection(self) -> Connection[Any]:
        """The connection, which waits for a question."""
        begun = self.in_transaction and not self._beginning  # which stays where it failed
        if self._doubtful and self._opened is not None and not begun:
            self._opened.close()
            self._opened, self._unheard, self._doubtful = None, False, False
        if self._opened is None:
            lent = _lent(self._key, self.address.vault)
            self._opened = lent.connection if lent else self._connected()
            self.about = lent.about if lent and lent.vault == self.address.vault else ""
            self._lent = bool(self.about)
            try:
                if not self._lent:
                    self.about = self._greeting.say(self._opened)
            except psycopg.Error as error:
                if not self._opened.closed:
                    raise self._said(error) from None
                self._reconnect()
        if self._unheard:
            self._unheard = False
            with suppress(psycopg.Error):  # of a connection that was lost: what is asked says so
                self._opened.wait(fetch_many(self._opened.pgconn))
        return self._opened

    def _connected(self) -> Connection[Any]:
        """A new one. Of several hosts it is the primary's, if there is one."""
        if len(_hosts(self.address)) > 1 and "target_session_attrs" not in self.address.options:
            with suppress(ServerAwayError):
                return self._connected_to({"target_session_attrs": "primary"})
        return self._connected_to({})

    def _connected_to(self, wanted: dict[str, Any]) -> Connection[Any]:
        try:
            connection = psycopg.connect(
                self.address.database,
                **wanted,
                **_secured(self.address),
                options=self._settings,
                connect_timeout=CONNECT_SECONDS,
                keepalives_idle=SILENT_SECONDS - 2 * PROBES,
                keepalives_interval=2,
                keepalives_count=PROBES,
                tcp_user_timeout=SILENT_SECONDS * 1_000,
                application_name="memory-store",
                client_encoding="utf8",  # of a database without one the library makes bytes
                autocommit=True,
                prepare_threshold=2,
            )
        except psycopg.Error as error:
            raise self._said(error) from None
        return connection

    def _reconnect(self) -> None:
        """Try again for as long as the server refuses; where nothing answers at all, once."""
        began = time.monotonic()
        for wait in WAITS:
            time.sleep(wait)
            try:
                self._opened, self._unheard, self._doubtful = self._connected(), False, False
                self.about, self._lent = self._greeting.say(self._opened), False
                return
            except ServerError as error:
                away: MemoryStoreError = error
            except psycopg.Error as error:  # it was lost at once: the server is going, or coming
                away = self._said(error)
            if time.monotonic() - began > CONNECT_SECONDS:
                break
        raise away

    def _said(self, error: psycopg.Error) -> MemoryStoreError:
        """An error of the server's or its library's, as one of ours."""
        code = error.sqlstate or ""
        if code == READ_ONLY and self._opened is not None:
            self._opened.close()  # the next question finds the primary, once there is one
        kind, cause = _CAUSES.get(code) or _CAUSES.get(code[:2]) or (StorageError, "")
        if code == NOT_ALLOWED and self.about and (self._writes or self._pipe is not None):
            kind, cause = ReadOnlyError, "nothing can be written: this role may only read"
        if not code and isinstance(error, psycopg.OperationalError):
            said = _last_reason(str(error))
            kind, cause = ServerAwayError, f"the database is away ({said})"
            if "does not exist" in said:
                kind, cause = ServerError, said
            if "requested a cleartext password" in said:
                kind, cause = ServerError, WANTS_PASSWORD
            if "no password supplied" in said or "password authentication failed" in said:
                kind, cause = (
                    ServerError,
                    "the server wants a password, or another: set PGPASSWORD, or ~/.pgpass",
                )
        if not cause:
            cause = f"the database refused ({error.diag.message_primary or type(error).__name__})"
        return kind(f"{self.address}: {cause}")


def _last_reason(said: str) -> str:
    """Why there is no connection: what stands last in the first line that says so."""
    lines = [line for line in said.splitlines() if " failed: " in line] or [said]
    return lines[0].rpartition(" failed: ")[2].replace("FATAL:", "").strip()


_CAUSES: dict[str, tuple[type[MemoryStoreError], str]] = {
    "55P03": (ServerError, "another program has been writing to it for too long"),
    "57014": (ServerError, "the database took too long to answer"),
    "57P01": (ServerAwayError, "the database is away (it was shut down)"),
    "57P02": (ServerAwayError, "the database is away (it crashed, and starts again)"),
    "57P03": (ServerAwayError, "the database is away (it is starting, or stopping)"),
    "53100": (ServerError, "the disk of the server is full"),
    "53300": (ServerAwayError, "the server takes no more connections"),
    "23505": (TakenError, "it has a row of that key already; if you were making it: try again"),
    **dict.fromkeys(FORGOTTEN, (ServerError, "its tables were changed meanwhile; try again")),
    READ_ONLY: (ReadOnlyError, "nothing can be written: the server is a standby, or read-only"),
    "28": (ServerError, "the server does not let this user in: see PGPASSWORD and ~/.pgpass"),
    NOT_ALLOWED: (StorageError, "this role may not do it: memory-store storage init prints grants"),
    "3D000": (ServerError, "there is no such database on the server"),
    "08": (ServerAwayError, "the database is away"),
    "22": (DamagedError, "it has values that no vault writes; memory-store verify says where"),
}
"""SQLSTATE, or its class → what is raised, and the cause in words."""


_DETOURS = ("enable_seqscan", "enable_hashjoin", "enable_mergejoin")
"""Rows are read by their keys: a planner that knows nothing of a new vault would read all of it."""


def _settings(read_only: bool, patience: float) -> str:
    chosen = {
        "search_path": "memory_store_vault",
        "statement_timeout": STATEMENT_SECONDS * 1_000,
        "lock_timeout": max(1, int(patience * 1_000)),
        "default_transaction_read_only": "on" if read_only else "off",
        "jit": "off",  # no statement of ours is worth compiling
        "tcp_keepalives_idle": SILENT_SECONDS - 2 * PROBES,  # of us: a writer that is gone
        "tcp_keepalives_interval": 2,  # must not keep others waiting
        "tcp_keepalives_count": PROBES,
        "tcp_user_timeout": SILENT_SECONDS * 1_000,
        **dict.fromkeys(_DETOURS, "off"),
    }
    return " ".join(f"-c {name}={value}" for name, value in chosen.items())


def _secured(address: Address) -> dict[str, Any]:
    """Options of a connection that the address does not say: the password, and TLS."""
    if "service" in address.options:
        raise BadInputError(f"{address}: name a service in PGSERVICE, not in the address", "DB")
    said, hosts = _chosen(address, "sslmode"), _hosts(address)
    if said == UNSAID and said != (address.options.get("sslmode") or os.environ.get("PGSSLMODE")):
        said = ""
    chosen: dict[str, Any] = {"password": address.password} if address.password else {}
    checked = said.startswith("verify-") or all(host.startswith("/") for host in hosts)
    told = checked or _chosen(address, "require_auth")
    if not told and psycopg.pq.version() >= KNOWS_HOW:
        chosen["require_auth"] = "!password"  # not in clear to a server that is not checked
    if all(host.startswith("/") or host in LOCAL for host in hosts):
        return chosen
    if said in PLAIN:
        raise BadInputError(
            f"{address}: sslmode={said} would let others on the way read along; use "
            "sslmode=verify-full, or require where the server has no certificate of an authority",
            "DB",
        )
    return {**chosen, "sslmode": said or "require"}


def _chosen(address: Address, option: str) -> str:
    """What the user says of an option: in the address, else by variables, or by the service that
    they name. Empty where that is nothing."""
    if option in address.options:
        return address.options[option]
    known = {one.keyword: one.val or b"" for one in psycopg.pq.Conninfo.get_defaults()}
    return known.get(option.encode(), b"").decode()


def _hosts(address: Address) -> list[str]:
    """The hosts that are asked; a socket on this machine where none is named."""
    known = psycopg.conninfo.conninfo_to_dict(address.database)
    named = (
        known.get("hostaddr")
        or os.environ.get("PGHOSTADDR")  # which counts also where the address names a host
        or known.get("host")
        or os.environ.get("PGHOST")
    )
    if not named:
        return ["a service's"] if os.environ.get("PGSERVICE") else ["/"]
    return str(named).split(",")


class _Idle(NamedTuple):
    """A connection that was let go, which vault it was for, and what it is about."""

    connection: Connection[Any]
    vault: str
    about: str


Key = tuple[Any, ...]
_idle: defaultdict[Key, list[_Idle]] = defaultdict(list)
_lending = threading.Lock()


def _lent(key: Key, vault: str) -> _Idle | None:
    """A connection that was let go, and still is one as far as can be seen; one that was for that
    vault, if there is such a one."""
    with _lending:
        while _idle[key]:
            found = max(_idle[key], key=lambda one: one.vault == vault)
            _idle[key].remove(found)
            if not found.connection.closed:
                return found
    return None


def _kept(key: Key, one: _Idle) -> bool:
    with _lending:
        if key[0] != os.getpid() or len(_idle[key]) >= MOST_IDLE:
            return False
        _idle[key].append(one)
    return True


@atexit.register
def let_go() -> None:
    """Close every connection that nothing uses."""
    with _lending:
        for waiting in _idle.values():
            while waiting:
                waiting.pop().connection.close()
