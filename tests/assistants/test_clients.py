"""What ``memory-store mcp install`` writes into an assistant's configuration."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typing_commands import run

from memory_store.assistants import clients
from memory_store.assistants.clients import BEFORE, CLIENTS
from memory_store.assistants.trail import Trail
from memory_store.store import MemoryStore

pytestmark = pytest.mark.in_a_file  # entries are named by it


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(folder))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / ".config"))
    return folder


def install(store: MemoryStore, key_file: Path, client: str, *flags: str) -> Result:
    command = ["mcp", str(store.path), "install", client, "--key-file", str(key_file), *flags]
    return run(*command)


def entry(client: str) -> dict[str, Any]:
    known = CLIENTS[client]
    text = known.path().read_text("utf-8")
    data = tomllib.loads(text) if known.path().suffix == ".toml" else json.loads(text)
    found: dict[str, Any] = data[known.key]["memories-notes"]
    return found


@pytest.mark.parametrize("client", CLIENTS)
def test_an_entry_has_absolute_paths_and_no_secret(
    home: Path, store: MemoryStore, key_file: Path, client: str
) -> None:
    result = install(store, key_file, client)
    assert result.exit_code == 0, result.output
    assert home in CLIENTS[client].path().parents
    found = entry(client)
    assert found["command"] == sys.executable
    assert found["args"][:5] == [
        *("-P", "-m", "memory_store", "mcp"),
        str(store.path.resolve()),
    ]
    assert str(key_file.resolve()) in found["args"]
    assert "--write" not in found["args"]
    secret = key_file.read_text().strip()
    assert secret not in CLIENTS[client].path().read_text("utf-8")
    assert secret not in result.output


def test_an_entry_runs_no_file_of_the_folder_that_the_assistant_works_on(
    home: Path, store: MemoryStore, key_file: Path, tmp_path: Path
) -> None:
    assert install(store, key_file, "claude-code").exit_code == 0
    found, folder = entry("claude-code"), tmp_path / "a stranger's project"
    folder.mkdir()
    for module in ("mcp", "click", "msgspec", "numpy", "memory_store"):
        (folder / f"{module}.py").write_text("open('was run', 'w').close()\n")
    subprocess.run(
        [found["command"], *found["args"]],
        env={**os.environ, **found["env"]},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )
    assert not (folder / "was run").exists()


def test_an_entry_is_named_in_letters_that_every_assistant_takes(
    home: Path, make_store: Any, key_file: Path
) -> None:
    assert install(make_store("my notes (1).db"), key_file, "cursor").exit_code == 0
    assert '"memories-my-notes-1"' in CLIENTS["cursor"].path().read_text("utf-8")


def test_other_settings_stay_and_the_old_file_is_kept(
    home: Path, store: MemoryStore, key_file: Path
) -> None:
    path = CLIENTS["cursor"].path()
    path.parent.mkdir(parents=True)
    before = json.dumps({"mcpServers": {"other": {"command": "x"}}, "theme": "dark"})
    path.write_text(before)
    assert install(store, key_file, "cursor", "--write").exit_code == 0
    after = json.loads(path.read_text())
    assert (after["theme"], after["mcpServers"]["other"]) == ("dark", {"command": "x"})
    assert "--write" in after["mcpServers"]["memories-notes"]["args"]
    assert install(store, key_file, "cursor").exit_code == 0
    assert path.with_name(path.name + BEFORE).read_text() == before


@pytest.mark.parametrize("client", CLIENTS)
def test_installed_again_the_last_one_counts(
    home: Path, store: MemoryStore, key_file: Path, client: str
) -> None:
    path = CLIENTS[client].path()
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".toml":
        path.write_text('model = "x"\n\n[tools]\nweb = true\n')
    assert install(store, key_file, client).exit_code == 0
    assert install(store, key_file, client, "--write").exit_code == 0
    assert "--write" in entry(client)["args"]
    if path.suffix == ".toml":
        data = tomllib.loads(path.read_text())
        assert (data["model"], data["tools"]) == ("x", {"web": True})


def test_an_entry_for_a_collection_that_there_is_not_is_refused(
    home: Path, store: MemoryStore, key_file: Path
) -> None:
    refused = install(store, key_file, "cursor", "--collection", "wrok")
    assert refused.exit_code == 2
    assert "there is none named 'wrok'" in refused.output
    assert not CLIENTS["cursor"].path().exists()
    store.collections.create("work")
    assert install(store, key_file, "cursor", "--collection", "work").exit_code == 0
    assert entry("cursor")["args"].count("--collection") == 1


def test_no_entry_is_written_with_a_key_that_opens_another_vault(
    home: Path, store: MemoryStore, tmp_path: Path
) -> None:
    other = tmp_path / "keys" / "other.key"
    MemoryStore.create(tmp_path / "other.db", key_file=other)[0].close()
    refused = install(store, other, "cursor")
    assert refused.exit_code == 3
    assert "no key slot of this vault" in refused.output
    assert not CLIENTS["cursor"].path().exists()


COMMENTED = """// Settings, see https://example.org/docs
{
  "theme": "dark", /* at night, "too" */
  KEY: {
    // one of my own
    "other": {"command": "x", "args": ["// no comment", "/* nor this */",]},
  },
  "last": [1, 2,], // with a comma
}
"""


@pytest.mark.parametrize("client", ["zed", "vscode", "cursor"])
@pytest.mark.parametrize(
    "servers", [COMMENTED, "{\n  // nothing yet\n}\n", "{}", '{"KEY": {}}', ""]
)
def test_comments_and_all_else_stay_as_they_were(
    home: Path, store: MemoryStore, key_file: Path, client: str, servers: str
) -> None:
    path, key = CLIENTS[client].path(), CLIENTS[client].key
    path.parent.mkdir(parents=True)
    before = servers.replace("KEY:", f'"{key}":').replace("KEY", key)
    path.write_text(before)
    for flags in ((), ("--write",)):  # the second time the entry is there
        result = install(store, key_file, client, *flags)
        assert result.exit_code == 0, result.output
        after = path.read_text()
        (found,) = clients.installed(client).values()
        assert ("--write" in found.args) is bool(flags)
        kept = iter(after.splitlines())
        assert all(line in kept for line in before.splitlines() if "/" in line)
        assert after.count("memory_store") == 1
    assert '"memories-notes": {' in after


@pytest.mark.parametrize(
    ("client", "text"),
    [
        ("zed", '{ "theme": "dark" /* without an end }'),
        ("vscode", '{"servers": {'),
        ("gemini", '{"mcpServers": []}'),
        ("codex", "[broken"),
        ("codex", "[mcp_servers]\nmemories-notes = {}\n"),
        ("codex", 'mcp_servers = { other = { command = "x" } }\n'),
        ("codex", 'x = """\n[mcp_servers."memories-notes"]\nmine\n"""\n'),
        ("codex", '[mcp_servers."memories-notes"]\nargs = [\n"a",\n]\n'),
        ("cursor", '["a list"]'),
    ],
)
def test_what_cannot_be_changed_without_loss_is_left_alone(
    home: Path, store: MemoryStore, key_file: Path, client: str, text: str
) -> None:
    path = CLIENTS[client].path()
    path.parent.mkdir(parents=True)
    path.write_text(text)
    result = install(store, key_file, client)
    assert result.exit_code == 2
    assert "--print" in result.output
    assert str(path) in result.output
    assert path.read_text() == text


def own_settings(client: str, ending: str = "\n") -> bytes:
    """The configuration that a person has already, with comments where the client allows them."""
    if CLIENTS[client].path().suffix == ".toml":
        lines = [
            "# mine, not yours",
            'model = "x" # the small one',
            "",
            "[tools]",
            "web = true",
            "",
        ]
    else:
        lines = ["{", "  // mine, not yours", '  "theme": "dark", /* at night */', "}", ""]
    return ending.join(lines).encode()


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("kind", ["as it is", "a link", "ends lines as Windows does", "empty"])
def test_an_odd_configuration_loses_nothing(
    home: Path, store: MemoryStore, key_file: Path, client: str, kind: str
) -> None:
    path = CLIENTS[client].path()
    path.parent.mkdir(parents=True, exist_ok=True)
    ending = "\r\n" if "Windows" in kind else "\n"
    before = b"" if kind == "empty" else own_settings(client, ending)
    file = home / "dotfiles" / path.name if kind == "a link" else path
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(before)
    file.chmod(0o640)
    if kind == "a link":
        path.symlink_to(file)
    beside = path.with_name(path.name + ".new")  # of another program
    beside.write_text("mine")
    for flags in ((), ("--append-only",)):
        result = install(store, key_file, client, *flags)
        assert result.exit_code == 0, result.output
        after = path.read_bytes()
        kept = iter(after.split(b"\n"))
        assert all(line in kept for line in before.split(b"\n")), after
        assert after.count(b"memory_store") == 1
        assert b"\r" not in after.replace(b"\r\n", b"") or b"\r\n" in before
        assert (b"\n" in after.replace(b"\r\n", b"")) is (ending == "\n")
        (found,) = clients.installed(client).values()
        assert ("--append-only" in found.args) is bool(flags)
    assert path.is_symlink() is (kind == "a link")
    assert file.stat().st_mode & 0o777 == 0o640
    assert beside.read_text() == "mine"
    assert file.with_name(path.name + BEFORE).exists()


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("kind", ["read-only", "in another encoding", "a folder"])
def test_what_cannot_be_read_or_written_is_left_alone_and_named(
    home: Path, store: MemoryStore, key_file: Path, client: str, kind: str
) -> None:
    path, before = CLIENTS[client].path(), own_settings(client)
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "a folder":
        path.mkdir()
    else:
        before = before.decode().encode("utf-16") if "encoding" in kind else before
        path.write_bytes(before)
        path.chmod(0o444 if kind == "read-only" else 0o644)
    there = sorted(path.parent.iterdir())
    result = install(store, key_file, client)
    assert result.exit_code == 2
    assert str(path) in result.output
    assert "--print" in result.output
    assert sorted(path.parent.iterdir()) == there
    assert path.is_dir() or path.read_bytes() == before


@pytest.mark.parametrize("client", ["codex", "cursor"])
def test_what_was_added_to_the_entry_by_hand_stays(
    home: Path, store: MemoryStore, key_file: Path, client: str
) -> None:
    assert install(store, key_file, client).exit_code == 0
    path = CLIENTS[client].path()
    text = path.read_text()
    if client == "codex":
        text += "startup_timeout_sec = 20 # it is slow\n# The next one.\n  [other]\n  y = 1\n"
    else:
        text = text.replace('"command"', '"startup_timeout_sec": 20, "command"')
    path.write_text(text)
    assert install(store, key_file, client, "--write").exit_code == 0
    assert entry(client)["startup_timeout_sec"] == 20
    assert "--write" in entry(client)["args"]
    if client == "codex":
        assert "20 # it is slow\n# The next one.\n  [other]\n  y = 1\n" in path.read_text()


def test_an_entry_can_be_shown_and_not_written(
    home: Path, store: MemoryStore, key_file: Path
) -> None:
    result = install(store, key_file, "gemini", "--print", "--append-only")
    shown = json.loads(result.output)["mcpServers"]["memories-notes"]
    assert "--append-only" in shown["args"]
    assert not CLIENTS["gemini"].path().exists()


def test_a_vault_that_only_a_passphrase_opens_is_refused(home: Path, make_store: Any) -> None:
    store = make_store("words.db", key_file=None, passphrase="correct horse", device_key=False)
    result = run("mcp", str(store.path), "install", "cursor")
    assert result.exit_code != 0
    assert "memory-store keys" in result.output
    assert not CLIENTS["cursor"].path().exists()


def test_doctor_starts_the_entry_as_the_assistant_would_and_searches(
    home: Path, store: MemoryStore, key_file: Path, tiny_model: Path, monkeypatch: Any
) -> None:
    monkeypatch.setenv("MEMORY_STORE_MODEL", str(tiny_model))
    store.add("The spare key of the flat hangs in the hall", title="What is in here")
    assert install(store, key_file, "codex", "--read-only").exit_code == 0
    tried = run("mcp", "doctor")
    assert tried.exit_code == 0, tried.output
    assert "codex: memories-notes" in tried.output
    assert "memory_start, memory_search, memory_landscape, memory_read, tasks" in tried.output
    assert "a search finds 1 " in tried.output
    assert {(one.actor, one.surface) for one in store.trail.events()} == {
        ("assistant codex", "trial")
    }
    assert Trail(store, "codex").last_came() == "", "a trial is no visit"


def test_doctor_says_at_which_step_an_entry_fails_and_what_mends_it(
    home: Path, store: MemoryStore, key_file: Path
) -> None:
    nothing = run("mcp", "doctor", "cursor")
    assert nothing.exit_code == 2
    assert "memory-store mcp install cursor" in nothing.output
    assert install(store, key_file, "cursor").exit_code == 0
    key_file.unlink()
    tried = run("mcp", "doctor", "cursor")
    assert tried.exit_code == 1
    assert "could not start the server" in tried.output
    assert key_file.name in tried.output, "the server's own words"
    assert "memory-store mcp install cursor" in tried.output


def test_one_assistant_has_one_right(home: Path, store: MemoryStore, key_file: Path) -> None:
    result = install(store, key_file, "cursor", "--read-only", "--write")
    assert result.exit_code == 2
    assert "choose one of --read-only and --write" in result.output


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("claude", "no assistant 'claude': did you mean claude-code or claude-desktop?"),
        ("vscod", "no assistant 'vscod': did you mean vscode?"),
        ("nosuch", f"no assistant 'nosuch': there are {', '.join(sorted(clients.CLIENTS))}"),
    ],
)
@pytest.mark.parametrize("action", ["install", "doctor"])
def test_a_name_that_is_no_assistant_says_which_may_be_meant(
    action: str, typed: str, said: str
) -> None:
    result = run("mcp", action, typed)
    assert result.exit_code == 2
    assert result.output == f"Error: {said}\n"


def test_the_help_names_every_assistant() -> None:
    text = " ".join(run("mcp", "--help").output.split())
    assert f"An assistant is one of: {', '.join(sorted(clients.CLIENTS))}." in text
