"""What a command asks a keeper, before it imports anything else.

Boundary: text of memories comes through the socket, from a process of the same user, and goes to
this process's own output. A key that the caller names is never sent: then the command opens the
vault itself, unless it is the key file that the keeper's vault was opened with.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from typing import TYPE_CHECKING, Any

from memory_store.keeper.address import SUPPORTED, on_server, peer_is_mine, socket_of, sockets
from memory_store.keeper.frames import (
    ACCEPTED,
    ANSWER,
    ASKED,
    EDIT,
    ERR,
    EXIT,
    INPUT,
    MOST_ANSWERED,
    MOST_INPUT,
    OUT,
    PAGE,
    PERSON,
    PIECE,
    PROTOCOL,
    RAW,
    STEP,
    VERSION,
    receive,
    send,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from contextlib import AbstractContextManager

    Editing = Callable[[str], AbstractContextManager[Callable[[], str]]]

SWITCH = "MEMORY_STORE_KEEPER"  # off: no command asks a keeper
DATABASE_VARIABLE = "MEMORY_STORE_DB"
KEY_FILE_VARIABLE = "MEMORY_STORE_KEY_FILE"
PASSPHRASE_VARIABLE = "MEMORY_STORE_PASSPHRASE"
SECRETS = (PASSPHRASE_VARIABLE, "MEMORY_STORE_NEW_PASSPHRASE")
NOT_SENT = (SWITCH, DATABASE_VARIABLE, KEY_FILE_VARIABLE, *SECRETS)
PREFIX = "MEMORY_STORE_"
ALSO_SENT = ("HF_ENDPOINT", "HF_HUB_OFFLINE", "HOME", "TRANSFORMERS_OFFLINE", "TZ", "XDG_DATA_HOME")
TERMINAL_VARIABLES = ("COLUMNS", "NO_COLOR", "TERM")

READS = (
    *("search", "get", "list", "links", "related", "code", "topics", "landscape", "stats"),
    *("exists", "review", "audit"),
)
"""Commands that a keeper does, which may be done once more where it ends meanwhile."""
WRITES = (
    *("add", "edit", "done", "reopen", "delete", "undo", "trash", "publish"),
    *("collections", "sources", "searches"),
)
FINDS = ("ask", "search")
"""Commands that go on here with what a keeper finds, as a choice or a language model's answer."""
FOLLOWS = ("import", "watch")
"""Commands that a keeper does beside others; here it is shown how far they are."""
COMMAND, ASSISTANT, EMBED = "command", "mcp", "embed"
"""Kinds of what a keeper is asked to do; the second is a command, too. The third is to embed what
has no vectors, and to stay until that is done."""
OF_ENTRIES = ("install", "doctor")  # the words of mcp that serve no assistant
LOCAL = ("--help", "-h", "--in", "--passphrase", "--expander", "--original")
"""Words of what a command does itself."""
CHOICE = ("-i", "--interactive")  # of what it goes on with

CONNECT_SECONDS = 1.0
ACCEPT_SECONDS = 3.0
EXIT_FAILED, EXIT_REFUSED, EXIT_NO_KEY, EXIT_INTERRUPTED = 1, 2, 3, 130
LOCKED = "Error: the vault was locked. To go on: memory-store unlock, then start this server again"
DIED = (
    "Error: the process that keeps the vault open ended before it answered. Look whether it was "
    "done before you run it again."
)
OLDER = (
    "Note: the process that keeps the vault open is of another version or configuration, and was "
    "not asked. To start it anew: memory-store unlock"
)


def answered(words: list[str], page: Callable[[list[str]], None], editing: Editing) -> int | None:
    """Have a keeper do what the command line says. Its exit code; ``None``: do it yourself.

    ``page`` shows lines through a pager, where a command at a terminal has many; ``editing`` gives
    what opens a text in an editor, each time it is called.
    """
    kept = _command(words)
    if kept is None or _named(words) & {*LOCAL, *CHOICE}:
        return None
    connection = connected(words[1:])
    if connection is None:
        return None
    with connection:
        try:
            return Doing(kept, words, page, editing).done(connection)
        except KeyboardInterrupt:
            _write(2, b"\nStopped.\n" if sys.stderr.isatty() else b"Stopped.\n")
            return EXIT_INTERRUPTED


def _named(words: list[str]) -> set[str]:
    """The words, an option without the value behind its ``=``."""
    return {word.partition("=")[0] if word.startswith("--") else word for word in words}


def printed(
    words: list[str], given: bytes = b"", *, quiet: bool = False
) -> tuple[int, bytes, bytes] | None:
    """Exit code, standard output and standard error of a command that a keeper does.

    ``None`` where none does it, and why is said unless it is to be ``quiet``. ``given`` is what it
    reads from standard input, if it is not left to this process's own.
    """
    if _named(words) & set(LOCAL):
        return None
    connection = connected(words[1:])
    if connection is None:
        return None
    with connection:
        try:
            doing = Doing(words[0], words, _shown_later, _edited_later, given)
            kind, data, pieces = doing.exchanged(connection)
        except OSError:
            return None
    if kind != EXIT:
        if not quiet:
            _say_why(data)
        return None
    out, err = (b"".join(data for place, data in pieces if place == one) for one in (OUT, ERR))
    return int(data), out, err


def followed(words: list[str]) -> Generator[tuple[str, list[Any]], None, None] | int | None:
    """The steps of a command that a keeper does beside others: a name, and what it says.

    Its exit code where it has ended already; ``None`` where the caller is to do it. To close the
    generator stops the command. It raises BrokenError where the keeper ends.
    """
    if set(words) & set(LOCAL):
        return None
    connection = connected(words[1:])
    if connection is None:
        return None
    doing = Doing(words[0], words, _shown_later, _edited_later)
    try:
        kind, data, pieces = doing.exchanged(connection)
    except OSError:
        kind, data, pieces = b"", b"", []
    if kind == STEP:
        doing.show(pieces)
        return _steps(connection, data)
    connection.close()
    if kind != EXIT:
        _say_why(data)
        return None
    doing.show(pieces)
    return int(data)


def _steps(connection: socket.socket, data: bytes) -> Generator[tuple[str, list[Any]], None, None]:
    kind = STEP
    with connection:
        while kind == STEP:
            name, said = json.loads(data)
            yield name, said
            kind, data = receive(connection, MOST_ANSWERED)


def _shown_later(lines: list[str]) -> None:
    """None of these commands shows pages, or opens an editor, before it goes on here."""


def _edited_later(text: str) -> AbstractContextManager[Callable[[], str]]:
    from contextlib import nullcontext

    return nullcontext(lambda: text)


def _command(words: list[str]) -> str | None:
    """The command that a keeper may do, which the first word names or begins."""
    if not words or words[0].startswith("-"):
        return None
    if words[0] == ASSISTANT:
        return None if set(words) & set(OF_ENTRIES) else ASSISTANT
    begun = [name for name in (*READS, *WRITES) if name.startswith(words[0])]
    return begun[0] if begun else None


def connected(words: list[str] | tuple[str, ...] = ()) -> socket.socket | None:
    """A connection to the keeper of the vault that one of the words names, or of the usual one.

    ``None`` where there is none, or none is to be asked.
    """
    if not SUPPORTED or os.environ.get(SWITCH, "").lower() in ("off", "0", "no", "false"):
        return None
    if os.environ.get(PASSPHRASE_VARIABLE):
        return None
    found = _sockets()
    if not found:
        return None
    if len(found) > 1:
        named = [socket_of(word, os.path.dirname(found[0])) for word in (*words, _usual())]
        found = [one for one in named if one in found][:1]
    return connected_to(found[0]) if found else None


def connected_to(path: str) -> socket.socket | None:
    """A connection to the keeper behind a socket; ``None`` where it is gone."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(CONNECT_SECONDS)
    try:
        connection.connect(path)
        if peer_is_mine(connection):
            return connection
    except OSError:  # killed, or too busy: there is the command itself
        pass
    connection.close()
    return None


def ask(connection: socket.socket, kind: str, **facts: Any) -> dict[str, Any] | None:
    """A question about the keeper itself; ``None`` where it does not answer."""
    try:
        send(connection, ASKED, json.dumps({"protocol": PROTOCOL, "kind": kind, **facts}).encode())
        answer, data = receive(connection, MOST_ANSWERED, seconds=ACCEPT_SECONDS)
    except OSError:
        return None
    found = json.loads(data) if answer == ANSWER else None
    return found if isinstance(found, dict) else None


def facts(words: list[str] | tuple[str, ...]) -> dict[str, Any]:
    """What a keeper has to know to do a command as this process would."""
    sent = {
        name: value
        for name, value in os.environ.items()
        if (name.startswith(PREFIX) and name not in NOT_SENT) or name in ALSO_SENT
    }
    usual = os.environ.get(DATABASE_VARIABLE, "")
    return {
        "protocol": PROTOCOL,
        "package": os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
        "words": [as_bytes(word) for word in words],
        "folder": as_bytes(os.getcwd()),
        "database": as_bytes(on_server(usual) or usual),
        "key_file": as_bytes(_absolute(os.environ.get(KEY_FILE_VARIABLE, ""))),
        "variables": sent,
    }


def as_bytes(text: str) -> str:
    """Any bytes of a command line as text that every JSON takes: a character for each byte."""
    return os.fsencode(text).decode("latin-1")


class Doing:
    """One command that a keeper does, and what a person answers meanwhile.

    A keeper does not wait for a person. Where one must be asked, it stops before it has changed
    anything. It is then sent the answers, and does the command again from the start.
    """

    def __init__(
        self,
        kept: str,
        words: list[str],
        page: Callable[[list[str]], None],
        editing: Editing,
        given: bytes = b"",
    ) -> None:
        self._kept = kept
        self._words = words
        self._page = page
        self._editing = editing
        self._answers: list[tuple[str, str]] = []
        self._edited: int | None = None
        self._given = given
        self._shown: list[tuple[bytes, bytes]] = []
        self._accepted = False

    def done(self, connection: socket.socket) -> int | None:
        """The exit code; ``None`` where the command is to be done by the caller."""
        from contextlib import ExitStack

        keeper, edited = connection.getpeername(), None
        with ExitStack() as ending:
            while True:
                try:
                    kind, data, pieces = self.exchanged(connection)
                except OSError:
                    if self._kept not in WRITES or not self._accepted:
                        return None
                    _write(2, f"{DIED}\n".encode())
                    return EXIT_FAILED
                if kind not in (EXIT, RAW, PERSON, EDIT):
                    _say_why(data)
                    return None
                try:
                    self.show(pieces)
                except BrokenPipeError:  # such as head
                    return EXIT_FAILED
                except OSError as error:  # a full disk
                    _write(2, f"Error: {str(error.strerror).lower()}\n".encode())
                    return EXIT_FAILED
                if kind == EXIT:
                    return int(data)
                if kind == RAW:
                    return _relayed_to_the_end(connection)
                if kind == EDIT:
                    from memory_store.errors import BadInputError, MemoryStoreError

                    asked = json.loads(data)
                    try:
                        edited = edited or ending.enter_context(self._editing(asked["text"]))
                        self._given = edited().encode()
                    except MemoryStoreError as error:  # no folder in memory, or given up
                        _write(2, f"Error: {error}\n".encode())
                        return EXIT_REFUSED if isinstance(error, BadInputError) else EXIT_FAILED
                    self._edited, self._answers, self._shown = asked["version"], [], []
                elif not self._answer(data.decode()):
                    return EXIT_FAILED
                again = connected_to(keeper)
                if again is None:
                    return None
                connection = ending.enter_context(again)

    def _answer(self, shown: str) -> bool:
        """Read what the person answers to what is ``shown``; whether there was an answer."""
        line = sys.stdin.readline()
        if not line:
            _write(2, b"\nAborted.\n")
            return False
        self._answers.append((shown, line.rstrip("\n")))
        return True

    def exchanged(
        self, connection: socket.socket
    ) -> tuple[bytes, bytes, list[tuple[bytes, bytes]]]:
        """The last frame of a keeper's answer, and what the command wrote before."""
        doing = ASSISTANT if self._kept == ASSISTANT else COMMAND
        from_input = "-" in self._words
        asked = {**facts(self._words), "kind": doing, "terminal": terminal()}
        asked["input"] = from_input or self._edited is not None or bool(self._given)
        asked |= {"answers": self._answers, "edited": self._edited}
        connection.settimeout(ACCEPT_SECONDS)
        send(connection, ASKED, json.dumps(asked).encode())
        kind, data = receive(connection, MOST_ANSWERED, seconds=ACCEPT_SECONDS)
        if kind != ACCEPTED:
            return kind, data, []
        connection.settimeout(None)
        if from_input and not self._given:
            self._given = sys.stdin.buffer.read(MOST_INPUT)
            _keep_input(self._given)
        if asked["input"]:
            send(connection, INPUT, self._given)
        self._accepted = True
        pieces: list[tuple[bytes, bytes]] = []
        while True:
            kind, data = receive(connection, MOST_ANSWERED)
            if kind not in (OUT, ERR, PAGE):
                return kind, data, pieces
            pieces.append((kind, data))

    def show(self, pieces: list[tuple[bytes, bytes]]) -> None:
        """Write what was written, but for what the person was asked by."""
        seen = len(self._shown) if pieces[: len(self._shown)] == self._shown else 0
        for place, piece in pieces[seen:]:
            if place == PAGE:
                self._page(json.loads(piece))
            else:
                _write(1 if place == OUT else 2, piece)
        self._shown = pieces


def _relayed_to_the_end(connection: socket.socket) -> int:
    try:
        return _relayed(connection)
    except OSError:  # the assistant, or the keeper, was killed
        return EXIT_FAILED


def _relayed(connection: socket.socket) -> int:
    """Hand on what an assistant says, and what it is answered, until either end is done."""
    from select import select

    sources: list[int | socket.socket] = [0, connection]
    while True:
        ready, _, _ = select(sources, [], [])
        if connection in ready:
            if not (answer := connection.recv(PIECE)):
                break
            _write(1, answer)
        if 0 in ready:
            said = os.read(0, PIECE)
            if said:
                connection.sendall(said)
            else:
                sources.remove(0)
                connection.shutdown(socket.SHUT_WR)
    if 0 in sources:  # the assistant has not ended it
        _write(2, f"{LOCKED}\n".encode())
        return EXIT_NO_KEY
    return 0


def _say_why(reason: bytes) -> None:
    """The command does it itself; of another version it says so, which a command can mend."""
    if reason == VERSION:
        _write(2, f"{OLDER}\n".encode())


def _keep_input(given: bytes) -> None:
    """Put back what was read, for a command that has to be done here after all."""
    import io

    sys.stdin = io.TextIOWrapper(io.BytesIO(given), sys.stdin.encoding, sys.stdin.errors)


def terminal() -> dict[str, Any]:
    """Where this process writes to, as far as it changes what a command prints."""
    streams = (sys.stdin, sys.stdout, sys.stderr)
    try:
        width = os.get_terminal_size(1).columns
    except OSError:
        width = 0
    return {
        "variables": {name: os.environ.get(name, "") for name in TERMINAL_VARIABLES},
        "width": width,
        "shown": [stream is not None and stream.isatty() for stream in streams],
        "encoding": sys.stdout.encoding,
        "errors": sys.stdout.errors,
    }


def _sockets() -> list[str]:
    try:
        return sockets()
    except OSError:  # a folder that cannot be trusted: unlock and doctor say so
        return []


def _usual() -> str:
    from memory_store.configuration import default_vault
    from memory_store.errors import MemoryStoreError

    try:
        return str(default_vault())
    except MemoryStoreError:  # of a configuration that the command itself will refuse
        return ""


def _absolute(path: str) -> str:
    return os.path.realpath(os.path.expanduser(path)) if path else ""


def _write(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
