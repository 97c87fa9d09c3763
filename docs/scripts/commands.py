"""Writes reference/cli.md from the commands: usage, first sentence, examples and own options.

``--help`` says more. Options that several commands share are shown once, under their group.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator

import click

from memory_store.cli import COMMANDS, main

WIDTH = 98
EXAMPLES = 1
GROUPS = {  # group → the command that shows its options, and their names
    "key": ("search", ("--key-file", "--passphrase")),
    "format": ("list", ("--json", "--nl", "--csv", "--table")),
    "filter": ("search", ("--collection", "--type", "--topic", "--status", "--since", "--until")),
    "ranking": (
        "search",
        ("--recipe", "--reranker", "--no-rerank", "--expander", "--no-expand"),
    ),
}


def shared() -> str:
    """The options of each group."""
    blocks = []
    for group, (command, names) in GROUPS.items():
        records = _records(_command(command))
        blocks.append(f"{group}:\n{_listed([records[name] for name in names])}")
    return _fenced("\n\n".join(blocks))


def every_command() -> str:
    """Each command, and below it its sub-commands."""
    return "\n\n".join(part for name in COMMANDS for part in _parts(_command(name), name))


def _parts(command: click.Command, name: str) -> Iterator[str]:
    yield f"### memory-store {name}\n\n{_fenced(_block(command, name))}"
    yield from _fenced_below(command, name)


def _fenced_below(command: click.Command, name: str) -> Iterator[str]:
    for below, one in getattr(command, "commands", {}).items():
        yield _fenced(_block(one, f"{name} {below}"))
        yield from _fenced_below(one, f"{name} {below}")


def _block(command: click.Command, name: str) -> str:
    context = click.Context(command)
    usage = " ".join(one for one in command.collect_usage_pieces(context) if one != "[OPTIONS]")
    records = _records(command)
    groups, own = _sorted_out(records)
    lines = [f"memory-store {name} {usage}".rstrip(), *_text(command)]
    if own:
        lines += [_listed([records[option] for option in own])]
    if groups:
        lines += [f"  also: {', '.join(groups)}"]
    return "\n".join(lines)


def _text(command: click.Command) -> list[str]:
    """What a command does, in its first paragraph, and its examples."""
    first, *others = inspect.cleandoc(command.help or "").split("\n\n")
    examples = [
        f"    {line}"
        for one in others
        if one.startswith("\b")
        for line in one.splitlines()[1:]
        if "memory-store " in line and not line.endswith("\\")
    ]
    return [textwrap.fill(" ".join(first.split()), WIDTH), *examples[:EXAMPLES]]


def _sorted_out(records: dict[str, tuple[str, str]]) -> tuple[list[str], list[str]]:
    """Groups of which a command has options with the same meaning, and its other options."""
    left = dict(records)
    groups = []
    for group, (command, names) in GROUPS.items():
        known = _records(_command(command))
        same = [n for n in names if n in left and (n == "--json" or left[n] == known[n])]
        for name in same:
            del left[name]
        if same:
            groups.append(group if len(same) == len(names) else f"{group} ({' '.join(same)})")
    return groups, list(left)


def _records(command: click.Command) -> dict[str, tuple[str, str]]:
    """Longest name of each option → how it is written, and what it does."""
    context = click.Context(command)
    found = {}
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is not None and isinstance(parameter, click.Option):
            found[max(parameter.opts, key=len)] = record
    return found


def _command(name: str) -> click.Command:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    return command


def _listed(records: list[tuple[str, str]]) -> str:
    formatter = click.HelpFormatter(width=WIDTH)
    with formatter.indentation():
        formatter.write_dl(records)
    return formatter.getvalue().rstrip("\n")


def _fenced(text: str) -> str:
    return f"```\n{text}\n```"
