"""The entry of the MCP server in an assistant's own configuration.

Boundary: an entry names a key file by its path, never a key. Nothing else in a configuration is
changed, comments stay, and the file as it was is kept beside it. What is no JSON or TOML is left
alone.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import textwrap
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, ValidationError, convert

from memory_store.errors import BadInputError

BEFORE = ".before-memory-store"  # behind the name of the file as it was
STARTS = ("-m", "memory_store", "mcp")  # what the arguments of our entries begin with
PASSED_ON = (
    "MEMORY_STORE_STATE",
    "MEMORY_STORE_CACHE",
    "MEMORY_STORE_CONFIG",
    "MEMORY_STORE_MODEL",
    "MEMORY_STORE_OFFLINE",
)
"""Variables that an entry keeps, since assistants start servers with next to none."""


class Client(Struct, frozen=True):
    """An assistant: where its configuration is, and under which key servers stand there."""

    path: Callable[[], Path]
    key: str
    stdio: bool = False  # whether an entry says that it speaks on standard input and output


class Entry(Struct, frozen=True):
    """How a server is started."""

    command: str
    args: tuple[str, ...]
    env: dict[str, str] = {}

    def as_data(self, client: Client) -> dict[str, Any]:
        """The entry as the client's configuration has it."""
        kind = {"type": "stdio"} if client.stdio else {}
        return {**kind, "command": self.command, "args": list(self.args), "env": self.env}


def _home(*parts: str) -> Callable[[], Path]:
    return lambda: Path.home().joinpath(*parts)


def _application(*parts: str) -> Callable[[], Path]:
    """A file in the folder where the system keeps the settings of applications."""

    def found() -> Path:
        if sys.platform == "darwin":
            folder = Path.home() / "Library" / "Application Support"
        elif sys.platform == "win32":
            folder = Path(os.environ.get("APPDATA", Path.home() / "AppData" / "Roaming"))
        else:
            folder = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
        return folder.joinpath(*parts)

    return found


CLIENTS: dict[str, Client] = {
    "claude-code": Client(_home(".claude.json"), "mcpServers", stdio=True),
    "claude-desktop": Client(_application("Claude", "claude_desktop_config.json"), "mcpServers"),
    "cursor": Client(_home(".cursor", "mcp.json"), "mcpServers"),
    "vscode": Client(_application("Code", "User", "mcp.json"), "servers", stdio=True),
    "codex": Client(_home(".codex", "config.toml"), "mcp_servers"),
    "zed": Client(_application("zed", "settings.json"), "context_servers"),
    "gemini": Client(_home(".gemini", "settings.json"), "mcpServers"),
}


def entry_for(database: Path, arguments: Sequence[str]) -> Entry:
    """How this installation serves a vault; ``arguments`` follow the vault's path."""
    env = {name: os.environ[name] for name in PASSED_ON if os.environ.get(name)}
    args = (*STARTS, str(database.resolve()), *arguments)
    return Entry(sys.executable, args, env)


def shown(client: str, name: str, entry: Entry) -> str:
    """The entry as text, to be pasted into the configuration."""
    known = CLIENTS[client]
    if known.path().suffix == ".toml":
        return _toml(known.key, name, entry)
    return json.dumps({known.key: {name: entry.as_data(known)}}, indent=2, ensure_ascii=False)


def install(client: str, name: str, entry: Entry) -> Path:
    """Write the entry into the client's configuration. Returns the file.

    Raises BadInputError for a file that cannot be changed without loss.
    """
    known = CLIENTS[client]
    path = known.path()
    text = _read(path)
    if path.suffix == ".toml":
        changed = _with_table(text, known.key, name, entry, path)
    else:
        changed = _with_entry(text, known, name, entry, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        shutil.copy2(path, path.with_name(path.name + BEFORE))
    written = path.with_name(path.name + ".new")
    written.write_text(changed, "utf-8")
    if path.exists():
        shutil.copymode(path, written)
    else:
        written.chmod(0o600)
    written.replace(path)
    return path


def installed(client: str) -> dict[str, Entry]:
    """The entries of this server in a client's configuration, by their names.

    Raises BadInputError for a file that cannot be read; one that is not there has none.
    """
    known = CLIENTS[client]
    path = known.path()
    text = _read(path)
    try:
        data = tomllib.loads(text) if path.suffix == ".toml" else json.loads(_plain(text) or "{}")
        servers = data.get(known.key, {})
        entries = {name: convert(one, Entry) for name, one in servers.items() if _is_ours(one)}
    except (ValueError, AttributeError, ValidationError):
        raise BadInputError(f"{path} has no entry that this can read", "client") from None
    return entries


def _is_ours(entry: object) -> bool:
    arguments = entry.get("args") if isinstance(entry, dict) else None
    return isinstance(arguments, list) and arguments[: len(STARTS)] == [*STARTS]


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError):
        raise BadInputError(f"{path} cannot be read as text: {PASTE}", "client") from None


PASTE = "it was left as it is. See the entry with --print, and paste it yourself"


COMMENTS = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
LAST_COMMAS = re.compile(r'"(?:\\.|[^"\\])*"|,(?=\s*[}\]])')


def _plain(text: str) -> str:
    """JSON as editors take it, as JSON: comments and commas behind the last member are blank, and
    all else is where it was."""

    def blank(found: re.Match[str]) -> str:
        return found[0] if found[0].startswith('"') else re.sub(r"[^\n]", " ", found[0])

    return LAST_COMMAS.sub(blank, COMMENTS.sub(blank, text))


def _with_entry(text: str, client: Client, name: str, entry: Entry, path: Path) -> str:
    """The text with the entry in it, and all else as it was, comments too."""
    text = text if text.strip() else "{}\n"
    plain = _plain(text)
    try:
        found = json.loads(plain)
    except json.JSONDecodeError as error:
        wrong = f"{path} is no JSON (line {error.lineno}, column {error.colno})"
        raise BadInputError(f"{wrong}: {PASTE}", "client") from None
    servers = found.get(client.key, {}) if isinstance(found, dict) else None
    if not isinstance(servers, dict):
        raise BadInputError(f"{path}: {client.key} is not an object: {PASTE}", "client")
    data = entry.as_data(client)
    if name in servers:
        start, end = _place(plain, (client.key, name))
        changed = text[:start] + _dumped(data, 2) + text[end:]
    elif client.key in found:
        changed = _inserted(text, _place(plain, (client.key,))[0], {name: data}, servers, 1)
    else:
        place = plain.index("{")
        changed = _inserted(text, place, {client.key: {name: data}}, found, 0)
    if json.loads(_plain(changed)) != found | {client.key: servers | {name: data}}:
        raise BadInputError(f"{path} cannot be changed without loss: {PASTE}", "client")
    return changed


def _place(plain: str, keys: Sequence[str]) -> tuple[int, int]:
    """Where the value of a member of a member … begins and ends. Of two of one name, the last."""
    decode, between = json.JSONDecoder().raw_decode, re.compile(r"[\s,:]*")
    start, end = plain.index("{"), len(plain)
    for key in keys:
        places: dict[str, tuple[int, int]] = {}
        at = between.match(plain, start + 1).end()  # type: ignore[union-attr]
        while plain[at] != "}":
            name, at = decode(plain, at)
            first = between.match(plain, at).end()  # type: ignore[union-attr]
            _, last = decode(plain, first)
            places[name] = first, last
            at = between.match(plain, last).end()  # type: ignore[union-attr]
        start, end = places[key]
    return start, end


def _inserted(
    text: str, place: int, member: dict[str, Any], others: dict[str, Any], depth: int
) -> str:
    """The text with a member in front of the ``others`` of the object that begins at a place."""
    inside = textwrap.indent(json.dumps(member, indent=2, ensure_ascii=False)[2:-2], "  " * depth)
    ending = "," if others else "\n" + "  " * depth
    return f"{text[: place + 1]}\n{inside}{ending}{text[place + 1 :]}"


def _dumped(data: Any, depth: int) -> str:
    """JSON of several lines, for a value that begins in a line indented so deep."""
    said = json.dumps(data, indent=2, ensure_ascii=False)
    return textwrap.indent(said, "  " * depth).lstrip()


def _with_table(text: str, key: str, name: str, entry: Entry, path: Path) -> str:
    """The text with the entry's table at its end, in the place of one that was written before."""
    try:
        tomllib.loads(text)
        before = _without_table(text, f"[{key}.{json.dumps(name)}]")
        if name in tomllib.loads(before).get(key, {}):  # written by hand, in other words
            raise BadInputError(f"{path} has {key}.{name} already: {PASTE}", "client")
    except tomllib.TOMLDecodeError:
        raise BadInputError(f"{path} is no TOML: {PASTE}", "client") from None
    return f"{before}\n\n{_toml(key, name, entry)}\n".lstrip("\n")


def _without_table(text: str, head: str) -> str:
    """The text without the table of that head, up to the next one."""
    kept, inside = [], False
    for line in text.splitlines():
        if line.startswith("["):
            inside = line.strip() == head
        if not inside:
            kept.append(line)
    return "\n".join(kept).rstrip("\n")


def _toml(key: str, name: str, entry: Entry) -> str:
    """The entry as a table of TOML, whose strings are JSON's."""
    lines = [
        f"[{key}.{json.dumps(name)}]",
        f"command = {json.dumps(entry.command)}",
        f"args = {json.dumps(list(entry.args))}",
    ]
    if entry.env:
        pairs = ", ".join(f"{json.dumps(k)} = {json.dumps(v)}" for k, v in entry.env.items())
        lines.append(f"env = {{ {pairs} }}")
    return "\n".join(lines)
