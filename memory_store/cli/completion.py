"""``memory-store completion``: the Tab key of your shell completes commands, options and names.

Boundary: what is completed is shown in the terminal. A keeper that has the vault open is asked for
it, else the vault is opened, only by a key that needs no question; where there is none, nothing is
completed and nothing is said.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.shell_completion import CompletionItem, get_completion_class

from memory_store.cli.terminal import SHORT_ID, printable_line
from memory_store.errors import MemoryStoreError
from memory_store.keeper.client import printed
from memory_store.titles import shown_title

if TYPE_CHECKING:
    from memory_store.store import MemoryStore

Found = TypeVar("Found")

PROGRAM = "memory-store"
VARIABLE = "_MEMORY_STORE_COMPLETE"  # what click looks for, by the program's name
LEAST_BEGUN = 2  # letters of a word before its end is offered
MOST = 200  # names that are offered: more is not read below a prompt


def _folder(variable: str, *usual: str) -> Path:
    return Path(os.environ.get(variable) or Path.home().joinpath(*usual))


def _data() -> Path:
    return _folder("XDG_DATA_HOME", ".local", "share")


FILES: dict[str, Callable[[], Path]] = {
    "bash": lambda: _data() / "bash-completion" / "completions" / PROGRAM,
    "fish": lambda: (
        _folder("XDG_CONFIG_HOME", ".config") / "fish" / "completions" / f"{PROGRAM}.fish"
    ),
    "zsh": lambda: _data() / "zsh" / "site-functions" / f"_{PROGRAM}",
}
"""Where each shell looks for the completions of a program; zsh does so once it is told to."""


@click.command()
@click.argument("shell", type=click.Choice([*FILES]))
@click.option("--print", "only_print", is_flag=True, help="Show the script, write nothing")
def completion(shell: str, only_print: bool) -> None:
    """Let the Tab key complete commands, options, ids, topics and collections.

    \b
    memory-store completion bash
    memory-store completion zsh --print

    Names out of a vault are completed where it opens without a question: after unlock, by a key
    file or by the keyring.
    """
    made = get_completion_class(shell)
    assert made is not None
    script = made(click.Command(PROGRAM), {}, PROGRAM, VARIABLE).source()
    if only_print:
        click.echo(script)
        return
    path = FILES[shell]()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script, "utf-8")
    click.echo(f"Written to {path}. Open a new terminal, type memory-store and press Tab.")
    if shell == "bash":
        click.echo("It is read by the package bash-completion.")
    if shell == "zsh":
        click.echo(f"Put this into ~/.zshrc, before compinit: fpath+=({path.parent})")


def collection_names(
    context: click.Context, parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """The names of collections that begin so."""
    kept = _kept(context, "collections")
    names = (
        [one["name"] for one in kept]
        if kept is not None
        else _opened(context, lambda store: list(store.collections.names().values()))
    )
    return _begun(names, begun)


def topic_names(
    context: click.Context, parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """The most frequent topics that begin so."""
    kept = _kept(context, "topics")
    names = (
        [one["topic"] for one in kept[:MOST]]
        if kept is not None
        else _opened(context, lambda store: list(store.frequent_topics(MOST)))
    )
    return _begun(names, begun)


def words_begun(
    context: click.Context, parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """The words of memories that begin so, the most frequent first; of several words the last."""
    before, space, last = begun.rpartition(" ")
    if len(last) < LEAST_BEGUN:
        return []
    found = _opened(context, lambda store: [one.word for one in store.words(last)])
    return [CompletionItem(f"{before}{space}{printable_line(one)}") for one in found]


def query_words(
    context: click.Context, parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """The words of memories that begin so; else files, for DB."""
    return words_begun(context, parameter, begun) or files(context, parameter, begun)


def memory_ids(
    context: click.Context, parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """The ids of the newest memories that begin so, with their titles; else files, for DB."""

    kept = _kept(context, "list", "--limit", str(MOST))
    newest = (
        [(one["id"], one["title"], one["text"]) for one in kept]
        if kept is not None
        else _opened(
            context, lambda store: [(one.id, one.title, one.text) for one in store.list(limit=MOST)]
        )
    )
    found = [
        CompletionItem(id[:SHORT_ID], help=printable_line(shown_title(title, text)))
        for id, title, text in newest
        if id.startswith(begun)
    ]
    return found or files(context, parameter, begun)


def files(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Whatever files the shell itself would offer."""
    return [CompletionItem(begun, type="file")]


def _begun(names: Iterable[str], begun: str) -> list[CompletionItem]:
    return [CompletionItem(one) for one in map(printable_line, names) if one.startswith(begun)]


def _kept(context: click.Context, *words: str) -> list[dict[str, Any]] | None:
    """The records that a command lists where the vault is kept open; ``None``: it is not."""
    command, *options = words
    database = str(context.params["database"])
    answered = printed([command, database, *options, "--json"], quiet=True)
    return json.loads(answered[1]) if answered is not None and answered[0] == 0 else None


def _opened(context: click.Context, find: Callable[[MemoryStore], list[Found]]) -> list[Found]:
    """What is found in the vault of a command that is being typed; nothing where it is locked."""
    from memory_store.unlocking import open_store

    try:
        key_file = context.params.get("key_file")
        with open_store(context.params["database"], key_file=key_file) as store:
            return find(store)
    except (MemoryStoreError, OSError):  # said by the command itself, once it is run
        return []
