"""Commands as the process that asks would do them: one at a time, on the vault that is open.

Boundary: standard streams, the working folder and the variable of the usual vault are those of the
caller while its command runs, and no command runs beside it. Nothing waits for an answer here: a
command that needs a person or an editor ends before it has done anything, and begins again with
their answers; one that needs another key is left to its caller.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click
from msgspec import Struct

from memory_store.cli import main, whole_name
from memory_store.cli.failures import EXIT_FAILED, EXIT_NO_KEY
from memory_store.cli.options import Lent, Serving, Steps
from memory_store.cli.terminal import EditorWantedError, HereOnly, seen_by
from memory_store.cli.terminal import Terminal as Seen
from memory_store.keeper.client import ASSISTANT, DATABASE_VARIABLE, FINDS, FOLLOWS, READS, WRITES
from memory_store.keeper.frames import EDIT, ERR, EXIT, OUT, PAGE, PERSON, RAW, YOURSELF
from memory_store.store import MemoryStore

Frame = tuple[bytes, bytes]
DONE = (*READS, *WRITES, *FINDS, *FOLLOWS)
LATER = (
    *("actions.code", "actions.edits", "actions.landscape", "actions.links"),
    *("actions.review", "actions.sources", "actions.trail", "actions.words"),
    *("actions.trash", "actions.writes", "cli.answers", "cli.pager"),
    *("search.answer.response", "search.legs.vector", "search.pipeline"),
    *("search.reranking.cross_encoder", "search.reranking.pool_order"),
)
"""What listed commands import when they are done."""
FAULT = (
    "something went wrong inside the process that keeps the vault open. "
    "The same with MEMORY_STORE_KEEPER=off says what."
)


class Terminal(Struct, frozen=True):
    """What a command looks at of where it runs: variables, width, and which streams are shown."""

    variables: dict[str, str]
    width: int
    shown: tuple[bool, bool, bool]
    encoding: str
    errors: str


class Question(Struct, frozen=True):
    """What a process asks. Text that stands for bytes has a character for each of them.

    ``answers`` are what a person said, each with the SHA-256 of what had been written by then;
    ``edited`` is the version that the input is an edited text of.
    """

    protocol: int
    kind: str
    package: str = ""
    words: tuple[str, ...] = ()
    folder: str = ""
    database: str = ""
    key_file: str = ""
    variables: dict[str, str] = {}
    terminal: Terminal | None = None
    input: bool = False
    answers: tuple[tuple[str, str], ...] = ()
    edited: int | None = None


class AskPerson(HereOnly):
    """A person has to answer what was ``written``; ``shown`` is the SHA-256 of it."""

    def __init__(self, written: list[Frame], shown: str) -> None:
        super().__init__("a question")
        self.written = list(written)
        self.shown = shown


class Commands:
    """Does commands on one open store."""

    def __init__(
        self, store: MemoryStore, key_files: tuple[str, ...], embed: Callable[[], None]
    ) -> None:
        for name in DONE:  # all code that runs here is loaded before any of it
            main.get_command(click.Context(main), name)
        for module in LATER:
            import_module(f"memory_store.{module}")
        self._lent = Lent(store, key_files, embed=embed)
        self._one_at_a_time = threading.Lock()

    def opened_by(self, key_file: str) -> bool:
        """Whether a key file that a variable names leaves it at the vault that is open."""
        return _text(key_file) in self._lent.key_files

    def run(self, asked: Question, given: bytes) -> tuple[list[Frame], Serving | Steps | None]:
        """What the command wrote, in frames, and its exit code; or that its caller has to do it.

        Instead of the exit code, what serves an assistant, or goes on, from now on.
        """
        words = [_text(word) for word in asked.words]
        try:
            with self._one_at_a_time, _at_the_place_of(asked, given) as written:
                try:
                    code = _exit_code(asked.kind, words, self._lent)
                    serving = self._lent.later.pop() if self._lent.later else None
                except Exception:  # noqa: BLE001 - its words may quote a memory
                    written.append((ERR, f"Error: {FAULT}\n".encode()))
                    code, serving = EXIT_FAILED, None
        except AskPerson as question:
            return [*question.written, (PERSON, question.shown.encode())], None
        except EditorWantedError as wanted:
            text = {"version": wanted.version, "text": wanted.text}
            return [(EDIT, json.dumps(text).encode())], None
        except HereOnly as reason:
            return [(YOURSELF, str(reason).encode())], None
        if serving is not None:
            return written if isinstance(serving, Steps) else [*written, (RAW, b"")], serving
        if code == EXIT_NO_KEY and self._lent.store.locked:
            return [(YOURSELF, b"locked")], None
        return [*written, (EXIT, str(code).encode())], None


def _exit_code(kind: str, words: list[str], lent: Lent) -> int:
    try:
        name = whole_name(words[0])
    except click.UsageError:
        raise HereOnly("command") from None
    if name not in ((ASSISTANT,) if kind == ASSISTANT else DONE):
        raise HereOnly("command")
    try:
        main.main(words, "memory-store", obj=lent)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
    return 0


@contextmanager
def _at_the_place_of(asked: Question, given: bytes) -> Iterator[list[Frame]]:
    """The caller's streams, folder and usual vault, until it is left; all that is written."""
    terminal = asked.terminal
    assert terminal is not None
    written: list[Frame] = []
    streams = sys.stdin, sys.stdout, sys.stderr
    usual = os.environ.get(DATABASE_VARIABLE)
    how: dict[str, Any] = {"encoding": terminal.encoding, "write_through": True}
    try:
        try:
            os.chdir(_text(asked.folder))
        except OSError:
            raise HereOnly("folder") from None
        _set_usual(_text(asked.database))
        edited = [] if asked.edited is None else [(asked.edited, given.decode())]
        source = _Given(b"" if edited else given, terminal.shown[0], asked.answers, written)
        sys.stdin = io.TextIOWrapper(source, "utf-8")
        sys.stdout = io.TextIOWrapper(
            _Written(written, OUT, terminal.shown[1]), errors=terminal.errors, **how
        )
        sys.stderr = io.TextIOWrapper(
            _Written(written, ERR, terminal.shown[2]), errors="backslashreplace", **how
        )

        def page(lines: Sequence[str]) -> None:
            written.append((PAGE, json.dumps(lines).encode()))

        with seen_by(Seen(terminal.variables, terminal.width, page, edited)):
            yield written
    finally:
        sys.stdin, sys.stdout, sys.stderr = streams
        _set_usual(usual)
        os.chdir("/")


def _set_usual(database: str | None) -> None:
    if database:
        os.environ[DATABASE_VARIABLE] = database
    else:
        os.environ.pop(DATABASE_VARIABLE, None)


class _Written(io.BufferedIOBase):
    """A standard stream whose bytes are kept, in the order of both."""

    def __init__(self, written: list[Frame], kind: bytes, shown: bool) -> None:
        self._written = written
        self._kind = kind
        self._shown = shown

    def write(self, data: Any) -> int:
        self._written.append((self._kind, bytes(data)))
        return len(data)

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return self._shown


class _Given(io.BytesIO):
    """What the command was sent. At a terminal nothing was: there a person is to be asked.

    A person's answer counts where what they were shown before is what is written now.
    """

    def __init__(
        self,
        given: bytes,
        shown: bool,
        answers: Sequence[tuple[str, str]],
        written: list[Frame],
    ) -> None:
        super().__init__(given)
        self._shown = shown and not given
        self._answers = list(answers)
        self._written = written

    def isatty(self) -> bool:
        return self._shown

    def read(self, size: int | None = -1) -> bytes:
        return self._answer() if self._shown else super().read(size)

    def read1(self, size: int | None = -1) -> bytes:
        return self._answer() if self._shown else super().read1(size)

    def _answer(self) -> bytes:
        digest = hashlib.sha256(b"".join(piece for _, piece in self._written)).hexdigest()
        if not self._answers or self._answers[0][0] != digest:
            raise AskPerson(self._written, digest)
        return f"{self._answers.pop(0)[1]}\n".encode()


def _text(sent: str) -> str:
    """Bytes of a command line as Python has them, from a character for each byte."""
    return os.fsdecode(sent.encode("latin-1", "replace"))
