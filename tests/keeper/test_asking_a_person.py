"""A command that a keeper does asks its person by itself: to confirm, and through an editor."""

from __future__ import annotations

import json
import os
import pty
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from keeping_open import KeptOpen

from memory_store.cli.editor import editing
from memory_store.keeper import client
from memory_store.keeper.frames import ASKED, EXIT, MOST_ANSWERED, PERSON, receive, send
from memory_store.store import MemoryStore

Asked = Callable[..., tuple[int | None, str]]


@pytest.fixture
def asked(
    kept: KeptOpen, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Asked]:
    """Do a command at a terminal where answers are typed, and give code and all that it showed."""
    outer, inner = pty.openpty()
    with os.fdopen(outer, "wb", buffering=0) as keys, os.fdopen(inner) as screen:
        monkeypatch.setattr(sys, "stdin", screen)
        usual = client.terminal
        monkeypatch.setattr(client, "terminal", lambda: {**usual(), "shown": [True, True, True]})

        def do(*words: str, typed: Sequence[str] = ()) -> tuple[int | None, str]:
            for line in typed:
                keys.write(f"{line}\n".encode())
            code = client.answered(list(words), lambda lines: None, editing)
            out, err = capfdbinary.readouterr()
            return code, (out + err).decode()

        yield do


@contextmanager
def memory(kept: KeptOpen, text: str) -> Iterator[tuple[MemoryStore, str]]:
    with MemoryStore.open(kept.path, key_file=kept.key_file) as store:
        id = store.add(text).id
        yield store, id
        store.delete_many([one.id for one in store.list(limit=100) if one.id == id], now=True)


def is_there(store: MemoryStore, id: str) -> bool:
    return id in {one.id for one in store.list(limit=100)}


def test_delete_asks_and_the_keeper_deletes(kept: KeptOpen, asked: Asked) -> None:
    with memory(kept, "Shall this go?") as (store, id):
        code, shown = asked("delete", str(kept.path), id, typed=["n"])
        assert code == 1
        assert shown.count("Delete this?") == shown.count("Shall this go?") == 1
        assert is_there(store, id)
        code, shown = asked("delete", str(kept.path), id, typed=["y"])
        assert (code, shown.count("Delete this?"), f"{id} deleted" in shown) == (0, 1, True)
        assert not is_there(store, id)


def test_an_answer_counts_for_what_was_shown_alone(kept: KeptOpen) -> None:
    with memory(kept, "Shown before") as (store, id):
        words = ("delete", str(kept.path), id)
        shown = _last(kept, words)
        assert shown[0] == PERSON
        store.edit(id, text="Another text now")
        again = _last(kept, words, (shown[1].decode(), "y"))
        assert again[0] == PERSON
        assert is_there(store, id)
        assert _last(kept, words, (again[1].decode(), "y")) == (EXIT, b"0")


def test_edit_opens_the_editor_of_the_person(
    kept: KeptOpen, asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i s/nine/ten/ $1\n")
    editor.chmod(0o700)
    monkeypatch.setenv("EDITOR", str(editor))
    monkeypatch.delenv("VISUAL", raising=False)
    with memory(kept, "Bins at nine") as (store, id):
        code, shown = asked("edit", str(kept.path), id)
        assert (code, store.get(id).text) == (0, "Bins at ten")
        assert f"{id} is now version 2" in shown


@pytest.mark.parametrize(
    ("editor", "said"),
    [
        ("nosuchedit", "the editor nosuchedit cannot be started (No such file or directory)"),
        ("false", "the editor false ended with an error, so nothing is changed"),
    ],
)
def test_an_editor_that_fails_changes_nothing_and_is_named(
    kept: KeptOpen, asked: Asked, monkeypatch: pytest.MonkeyPatch, editor: str, said: str
) -> None:
    monkeypatch.setenv("EDITOR", editor)
    monkeypatch.delenv("VISUAL", raising=False)
    with memory(kept, "Bins at nine") as (store, id):
        code, shown = asked("edit", str(kept.path), id)
        assert (code, store.get(id).version) == (1, 1)
        assert shown.count("Error: ") == 1
        assert said in shown


def test_what_was_changed_meanwhile_stays_in_the_editor_until_you_say(
    kept: KeptOpen, asked: Asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The editor's second turn begins with the text that it left."""
    editor, turns = tmp_path / "editor", tmp_path / "turns"
    editor.write_text(f"#!/bin/sh\necho turn >> {turns}\nprintf ' and more' >> $1\n")
    editor.chmod(0o700)
    monkeypatch.setenv("EDITOR", str(editor))
    monkeypatch.delenv("VISUAL", raising=False)
    with memory(kept, "First") as (store, id):
        words = ("edit", str(kept.path), id, "--if-version", "7")
        code, shown = asked(*words, typed=["n"])
        assert code != 0
        assert "Not saved" in shown
        assert store.get(id).text == "First"
        code, shown = asked(*words, typed=["y"])
        assert (code, store.get(id).text) == (0, "First and more and more")
        assert turns.read_text().count("turn") == 3


def _last(kept: KeptOpen, words: Sequence[str], *answers: tuple[str, str]) -> tuple[bytes, bytes]:
    """The last frame of the answer to a command at a terminal."""
    facts = {**client.facts(words), "kind": "command", "answers": answers}
    facts["terminal"] = {**client.terminal(), "shown": [True, True, True]}
    with kept.connect() as connection:
        send(connection, ASKED, json.dumps(facts).encode())
        answer = receive(connection, MOST_ANSWERED, seconds=20)
        while answer[0] not in (PERSON, EXIT, b"Y"):
            answer = receive(connection, MOST_ANSWERED, seconds=20)
        return answer
