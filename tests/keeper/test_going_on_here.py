"""What a keeper finds for a command that goes on in the person's own process."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator

import pytest
from click.shell_completion import BashComplete
from keeping_open import KeptOpen, by_itself
from language_models import LanguageModels
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from memory_store.cli import main, search
from memory_store.cli.completion import VARIABLE

QUESTION = "when does the lease of the flat end"


@pytest.fixture(autouse=True)
def without_a_key(kept: KeptOpen, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here no command could open the vault by itself."""
    monkeypatch.delenv("MEMORY_STORE_KEY_FILE")


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Press keys of a terminal again and again, until the test ends."""
    left, pressing = threading.Event(), list[threading.Thread]()
    monkeypatch.setattr(search, "at_terminal", lambda: True)
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):

        def press(text: str) -> None:
            while not left.wait(0.1):
                keys.send_text(text)

        def begin(text: str) -> None:
            monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
            pressing.append(threading.Thread(target=press, args=(text,)))
            pressing[0].start()

        yield begin
        left.set()
        for one in pressing:
            one.join()


def test_what_a_search_went_without_comes_with_its_code(
    kept: KeptOpen, capfdbinary: pytest.CaptureFixture[bytes], language_models: LanguageModels
) -> None:
    language_models.add("writer", "On 31 May [1].")
    words = ("--model", "writer", "--recipe", "qmd", "--json", *QUESTION.split())
    code, out, err = by_itself(capfdbinary, "ask", str(kept.path), *words)
    assert code == 0, err
    found = json.loads(out)
    assert "expansion" in found["degraded_codes"]
    assert "no query expansion" in found["degraded"][found["degraded_codes"].index("expansion")]


def test_an_answer_is_written_here_out_of_what_the_keeper_finds(
    kept: KeptOpen, capfdbinary: pytest.CaptureFixture[bytes], language_models: LanguageModels
) -> None:
    writer = language_models.add("writer", "On 31 May [1].")
    code, out, err = by_itself(capfdbinary, "ask", str(kept.path), *QUESTION.split())
    assert code == 1, "no model is chosen"
    assert b"Lease of the flat" in out
    assert err.count(b"Error: ") == 1
    assert writer.given == []
    words = ("ask", str(kept.path), "--model", "writer", "--limit", "2", *QUESTION.split())
    code, out, err = by_itself(capfdbinary, *words)
    assert (code, err) == (0, b"")
    assert b"On 31 May [1]." in out
    assert b"[1] Lease of the flat" in out
    assert "The deposit is 900." in writer.given[0][1]


def test_what_is_wrong_is_said_once_in_the_keepers_words(
    kept: KeptOpen, capfdbinary: pytest.CaptureFixture[bytes], language_models: LanguageModels
) -> None:
    language_models.add("writer", "nothing")
    words = ("ask", str(kept.path), "--model", "writer", "--limit", "99", "lease")
    code, out, err = by_itself(capfdbinary, *words)
    assert (code, out, err.count(b"--limit")) == (2, b"", 1)


def test_the_choice_is_made_here_among_what_the_keeper_finds(
    kept: KeptOpen, capfdbinary: pytest.CaptureFixture[bytes], typed: Callable[[str], None]
) -> None:
    typed("\r")
    code, out, err = by_itself(capfdbinary, "search", str(kept.path), "-i", "sourdough")
    assert (code, err) == (0, b"")
    assert b"Bake at 240 degrees with steam." in out


@pytest.mark.parametrize("command", ["ask", "search"])
def test_with_no_keeper_the_command_opens_the_vault_itself(
    kept: KeptOpen,
    capfdbinary: pytest.CaptureFixture[bytes],
    language_models: LanguageModels,
    typed: Callable[[str], None],
    command: str,
) -> None:
    typed("\x04")
    words = {"ask": ["--model", "nobody", "lease"], "search": ["-i", "lease"]}[command]
    code, _, err = by_itself(capfdbinary, "--no-keeper", command, str(kept.path), *words)
    assert code == 3
    assert b"locked" in err


def test_the_tab_key_completes_out_of_what_is_kept_open(
    kept: KeptOpen, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    def pressed(*words: str, begun: str = "") -> list[str]:
        asked = BashComplete(main, {}, "memory-store", VARIABLE)
        return [one.value for one in asked.get_completions(list(words), begun)]

    vault = str(kept.path)
    assert pressed("list", vault, "--topic", begun="ho") == ["home"]
    assert pressed("list", vault, "--collection", begun="per") == ["personal"]
    ids = pressed("get", vault)
    assert len(ids) >= 4
    assert pressed("get", vault, begun=ids[0][:6]) == [ids[0]]
    assert capfdbinary.readouterr() == (b"", b"")
