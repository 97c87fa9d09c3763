"""``memory-store completion``: the Tab key of your shell completes commands, options and names.

Boundary: what is completed is shown in the terminal. A vault is opened for it only by a key that
needs no question; where there is none, nothing is completed and nothing is said.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem, get_completion_class

from memory_store.cli.terminal import SHORT_ID, printable_line
from memory_store.errors import MemoryStoreError
from memory_store.titles import shown_title

if TYPE_CHECKING:
    from memory_store.store import MemoryStore

PROGRAM = "memory-store"
VARIABLE = "_MEMORY_STORE_COMPLETE"  # what click looks for, by the program's name
LEAST_BEGUN = 2  # letters of a word before its end is offered
MOST = 200  # names that are offered: nobody reads more below a prompt


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

    Names out of a vault are completed where it opens without a question: by a key file or the
    keyring.
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
    return _named(context, begun, lambda store: store.collections.names().values())


def topic_names(
    context: click.Context, parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """The most frequent topics that begin so."""
    return _named(context, begun, lambda store: store.frequent_topics(MOST))


def words_begun(
    context: click.Context, parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """The words of memories that begin so, the most frequent first; of several words the last."""
    before, space, last = begun.rpartition(" ")
    if len(last) < LEAST_BEGUN:
        return []
    found = _opened(context, lambda store: [CompletionItem(one.word) for one in store.words(last)])
    return [CompletionItem(f"{before}{space}{printable_line(one.value)}") for one in found]


def query_words(
    context: click.Context, parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """The words of memories that begin so; else files, for DB."""
    return words_begun(context, parameter, begun) or files(context, parameter, begun)


def memory_ids(
    context: click.Context, parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """The ids of the newest memories that begin so, with their titles; else files, for DB."""

    def newest(store: MemoryStore) -> list[CompletionItem]:
        return [
            CompletionItem(one.id[:SHORT_ID], help=printable_line(shown_title(one.title, one.text)))
            for one in store.list(limit=MOST)
        ]

    found = [one for one in _opened(context, newest) if one.value.startswith(begun)]
    return found or files(context, parameter, begun)


def files(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Whatever files the shell itself would offer."""
    return [CompletionItem(begun, type="file")]


def _named(
    context: click.Context, begun: str, names: Callable[[MemoryStore], Iterable[str]]
) -> list[CompletionItem]:
    found = _opened(
        context, lambda store: [CompletionItem(printable_line(n)) for n in names(store)]
    )
    return [one for one in found if one.value.startswith(begun)]


def _opened(
    context: click.Context, find: Callable[[MemoryStore], list[CompletionItem]]
) -> list[CompletionItem]:
    """What is found in the vault of a command that is being typed; nothing where it is locked."""
    from memory_store.unlocking import open_store

    try:
        key_file = context.params.get("key_file")
        with open_store(context.params["database"], key_file=key_file) as store:
            return find(store)
    except (MemoryStoreError, OSError):  # said by the command itself, once it is run
        return []
