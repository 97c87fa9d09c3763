"""The entry of the MCP server in an assistant's own configuration.

Boundary: an entry names a key file by its path, never a key. Nothing else in a configuration is
changed, comments and links stay, and the file as it was is kept beside it. What is no JSON or TOML,
or is read-only, is left alone.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import sys
import textwrap
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, ValidationError, convert

from memory_store.errors import BadInputError
from memory_store.paths import replace_file

WRITTEN = ("command", "args", "env")  # of an entry, by us
WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
PRIVATE = stat.S_IRUSR | stat.S_IWUSR
BEFORE = ".before-memory-store"  # behind the name of the file as it was
STARTS = ("-P", "-m", "memory_store", "mcp")
"""What the arguments of our entries begin with. An assistant starts a server in the folder that it
works on: with ``-P`` no file of that folder is imported in the place of a package."""
PASSED_ON = (
    "MEMORY_STORE_STATE",
    "MEMORY_STORE_CACHE",
    "MEMORY_STORE_CONFIG",
    "MEMORY_STORE_MODEL",
    "MEMORY_STORE_OFFLINE",
    "XDG_RUNTIME_DIR",  # where an open vault is found
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

    What a link leads to is changed, and the link stays. Raises BadInputError for a file that is not
    to be written to, or cannot be changed without loss.
    """
    known = CLIENTS[client]
    path = known.path()
    text = _read(path)
    if path.exists() and not path.stat().st_mode & WRITABLE:
        raise BadInputError(f"{path} is read-only: {PASTE}", "client")
    line_end = "\r\n" if "\r\n" in text else "\n"
    plain = text.replace("\r\n", "\n")
    if path.suffix == ".toml":
        changed = _with_table(plain, known.key, name, entry, path)
    else:
        changed = _with_entry(plain, known, name, entry, path)
    try:
        _replace(path.resolve(), changed.replace("\n", line_end).encode())
    except OSError as error:
        raise BadInputError(f"{path}: {error.strerror}: {PASTE}", "client") from None
    return path


def _replace(path: Path, content: bytes) -> None:
    """Put a file in the place of one, with the rights of that. The first one is kept beside it,
    also where this is done again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else PRIVATE
    before = path.with_name(path.name + BEFORE)
    if path.exists() and not before.exists():
        shutil.copy2(path, before)
    replace_file(path, content, mode)


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
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()
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
    there = servers.get(name)
    others = there if isinstance(there, dict) else {}  # such as what it may do without asking
    data = {**others, **entry.as_data(client)}
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
    """The text with the entry's table at its end, or in the place of the one that is there."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise BadInputError(f"{path} is no TOML: {PASTE}", "client") from None
    table = _toml(key, name, entry)
    head = table.partition("\n")[0]
    if any(line.strip() == head for line in text.splitlines()):
        changed = _with_lines(text, head, table)
    else:
        changed = f"{text.rstrip()}\n\n{table}\n".lstrip()
    try:
        after = tomllib.loads(changed)
        servers = found.get(key, {})
        others = {k: v for k, v in servers.get(name, {}).items() if k not in WRITTEN}
        new = tomllib.loads(table)[key][name]
        kept = after == found | {key: servers | {name: others | new}}
    except (tomllib.TOMLDecodeError, AttributeError, TypeError):
        kept = False  # the servers are written in another way than this can add to
    if not kept:
        raise BadInputError(f"{path} cannot be changed without loss: {PASTE}", "client")
    return changed


def _with_lines(text: str, head: str, table: str) -> str:
    """The text with a table's lines in the place of those of that head; other lines of it stay."""
    kept, inside = [], False
    for line in text.splitlines():
        if line.strip() == head:
            inside = True
            kept.append(table)
            continue
        inside = inside and not line.lstrip().startswith("[")
        if not (inside and line.partition("=")[0].strip() in WRITTEN):
            kept.append(line)
    return "\n".join(kept) + "\n"


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
