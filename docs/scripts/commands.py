"""Writes reference/cli.md from the commands: usage, first sentence and the names of options.

``--help`` says what they do. Options that several commands share are shown once, under their group.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator

import click

from memory_store.cli import GROUPS, main
from memory_store.records import OPTION_NAMES, TYPES

Record = tuple[str, str]
WIDTH = 88
SEARCH = {name.replace("_", "-") for name in OPTION_NAMES}
USUAL = ("--key-file", "--passphrase", "--json")
SHARED = {  # group → the command that shows its options, and their names
    "usual": ("settings", USUAL),
    "rows": ("list", ("--nl", "--csv", "--table")),
    "filter": ("search", ("--collection", "--type", "--topic", "--status", "--since", "--until")),
    "ranking": (
        "search",
        ("--recipe", "--reranker", "--no-rerank", "--expander", "--no-expand"),
    ),
    "history": ("search", ("--as-of", "--superseded", "--by")),
    "search": (
        "search",
        ("--mode", "--deep", "--limit", "--like", "--meta", "--min-score", "--narrow"),
    ),
    "files": (
        "import",
        ("--collection", "--type", "--topic", "--glob", "--exclude", "--no-embed"),
    ),
    "whose": ("searches run", ("--actor",)),
}


def shared() -> str:
    """The options of each group."""
    return _fenced("\n".join(f"{group}:\n{_listed(*_of(group))}" for group in SHARED))


def _of(group: str) -> tuple[dict[str, Record], list[str]]:
    command, names = SHARED[group]
    return _records(_command(command)), list(names)


def every_command() -> str:
    """Each family of commands, each command of it, and below that its sub-commands."""
    return "\n\n".join(f"### {family}\n\n{_family(names)}" for family, names in GROUPS.items())


def _family(names: Iterable[str]) -> str:
    return _fenced("\n\n".join(block for name in names for block in _blocks(_command(name), name)))


def _blocks(command: click.Command, name: str) -> Iterator[str]:
    yield _block(command, name)
    for below, one in getattr(command, "commands", {}).items():
        yield from _blocks(one, f"{name} {below}")


def _block(command: click.Command, name: str) -> str:
    """Usage, what it does, and the names of its own options and of the groups it shares."""
    context = click.Context(command)
    usage = " ".join(one for one in command.collect_usage_pieces(context) if one != "[OPTIONS]")
    records = _records(command)
    shares, own = _sorted_out(records)
    first = inspect.cleandoc(command.help or "").split("\n\n")[0]
    lines = [f"{name} {usage}".rstrip(), textwrap.indent(textwrap.fill(first, WIDTH - 2), "  ")]
    groups = [
        f"[{one}]" if one in SHARED else one for one in shares if one not in ("usual", *USUAL)
    ]
    if own or groups:
        names = ", ".join([*(_short(records[name]) for name in own), *groups])
        lines += [textwrap.indent(textwrap.fill(names, WIDTH - 2, break_on_hyphens=False), "  ")]
    return "\n".join(lines)


def _sorted_out(records: dict[str, Record]) -> tuple[list[str], list[str]]:
    """Groups (or options of one) that a command has in the same meaning, and its other options."""
    left = dict(records)
    shares = []
    for group, (command, names) in SHARED.items():
        known = _records(_command(command))
        same = [n for n in names if n in left and (n == "--json" or left[n] == known[n])]
        for name in same:
            del left[name]
        shares += [group] if len(same) == len(names) else same
    return shares, list(left)


def _records(command: click.Command) -> dict[str, Record]:
    """Longest name of each option → how it is written, and what it does."""
    context = click.Context(command)
    found = {}
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is not None and isinstance(parameter, click.Option):
            found[max(parameter.opts, key=len)] = record
    return found


def _command(name: str) -> click.Command:
    """The command of that name, or of a name and that of one below it."""
    command: click.Command = main
    for part in name.split():
        assert isinstance(command, click.Group)
        below = command.get_command(click.Context(command), part)
        assert below is not None
        command = below
    return command


def _listed(records: dict[str, Record], names: list[str]) -> str:
    """Options with what they do; those of a search, which has a page of its own, by name alone."""
    searching = _records(_command("search"))
    known = [
        n for n in names if records[n] == searching.get(n) and n[2:].replace("no-", "") in SEARCH
    ]
    formatter = click.HelpFormatter(width=WIDTH)
    with formatter.indentation():
        if known:
            formatter.write_text(", ".join(records[n][0].replace("-n, ", "-n/") for n in known))
        if described := [_without_types(records[n]) for n in names if n not in known]:
            formatter.write_dl(described)
    return formatter.getvalue().rstrip("\n")


def _short(record: Record) -> str:
    """The long form of an option, without its value, and of its opposite."""
    return " / ".join(re.findall(r"--[\w-]+", record[0]))


def _without_types(record: Record) -> Record:
    """The types stand with the options of a search."""
    option, text = record
    types = ", ".join(TYPES)
    return option, text.replace(f": {types}", "").replace(f"One of {types}", "Its type")


def _fenced(text: str) -> str:
    return f"```\n{text}\n```"
