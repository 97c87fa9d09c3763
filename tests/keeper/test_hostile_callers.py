"""Whatever comes through the socket, the keeper answers the next question."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from keeping_open import KeptOpen, until

from memory_store.keeper import client
from memory_store.keeper.frames import ASKED, HEADER, MOST_ASKED

KINDS = st.sampled_from([b"Q", b"I", b"A", b"O", b"X", b"Y", b"J", b"R", b"\0", b"\xff"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=12,
)
QUESTIONS = st.fixed_dictionaries(
    {"protocol": st.just(1) | JSON, "kind": st.sampled_from(["command", "mcp", "x"]) | JSON},
    optional=dict.fromkeys(("words", "folder", "variables", "terminal", "input", "more"), JSON),
)


def sent(kept: KeptOpen, data: bytes) -> bytes:
    """What comes back when these bytes, and then nothing more, are sent."""
    with kept.connect() as connection:
        connection.settimeout(20)
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            return connection.recv(1 << 16)
        except (BrokenPipeError, ConnectionResetError):
            return b""


@pytest.mark.sampled(0)
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=200))
def test_random_bytes(kept: KeptOpen, data: bytes) -> None:
    sent(kept, data)
    assert kept.status() is not None


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kind=KINDS, length=st.integers(0, 2**32 - 1), data=st.binary(max_size=60))
def test_lengths_that_are_lies(kept: KeptOpen, kind: bytes, length: int, data: bytes) -> None:
    assert sent(kept, HEADER.pack(kind, length) + data) == b""
    assert kept.status() is not None


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(question=QUESTIONS, cut=st.floats(0, 1))
def test_questions_that_are_none(kept: KeptOpen, question: object, cut: float) -> None:
    import json

    data = json.dumps(question).encode()
    frame = HEADER.pack(ASKED, len(data)) + data
    assert not sent(kept, frame).startswith(b"A")
    sent(kept, frame[: int(len(frame) * cut)])
    assert kept.status() is not None


def test_a_question_that_is_too_large_is_not_read(kept: KeptOpen) -> None:
    assert sent(kept, HEADER.pack(ASKED, MOST_ASKED + 1) + bytes(1000)) == b""
    assert kept.status() is not None


def test_callers_that_say_nothing_keep_no_other_waiting(kept: KeptOpen) -> None:
    silent = [kept.connect() for _ in range(20)]
    try:
        assert kept.status() is not None
    finally:
        for one in silent:
            one.close()


def test_a_caller_that_is_too_slow_is_left(kept: KeptOpen, monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes the five seconds that a keeper waits for a whole question."""
    with kept.connect() as connection:
        connection.settimeout(20)
        connection.sendall(HEADER.pack(ASKED, 1000))
        assert connection.recv(1) == b""
    assert kept.status() is not None


def test_more_callers_than_there_is_room_for(kept: KeptOpen) -> None:
    callers = [client.connected_to(kept.socket) for _ in range(50)]
    for one in callers:
        if one is not None:
            one.close()
    until(lambda: kept.status() is not None)


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="becomes another user")
def test_another_user_gets_no_answer(kept: KeptOpen) -> None:
    """Even where the folder would let them in: what a keeper looks at is whose process it is."""
    folder = Path(kept.socket).parent
    question = b'{"protocol": 1, "kind": "status"}'
    frame = HEADER.pack(ASKED, len(question)) + question
    for opened in (folder.parent, folder):
        opened.chmod(0o755)
    os.chmod(kept.socket, 0o666)
    try:
        assert _answers_user(0, kept.socket, frame)
        assert not _answers_user(65534, kept.socket, frame)
    finally:
        os.chmod(kept.socket, 0o600)
        for opened in (folder.parent, folder):
            opened.chmod(0o700)


def _answers_user(user: int, path: str, frame: bytes) -> bool:
    """Whether a process of that user is answered. Fails where it cannot even connect."""
    child = os.fork()
    if child == 0:
        code = 2
        try:
            os.setuid(user)
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(path)
                connection.settimeout(20)
                code = 1
                connection.sendall(frame)
                code = 0 if connection.recv(99) else 1
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code != 2, "it could not connect"
    return code == 0
