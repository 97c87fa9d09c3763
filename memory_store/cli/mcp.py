"""``memory-store mcp``: a vault for an assistant, as an MCP server on standard input and output.

Boundary: sees no key beyond opening the vault; an entry that it writes names a key file by its
path. What is not part of the protocol goes to standard error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from memory_store.cli.options import Lent, Serving, key_file_option
from memory_store.cli.terminal import here_only, printable_line
from memory_store.cli.vault_argument import VaultCommand, database_argument
from memory_store.errors import BadInputError, LockedError

if TYPE_CHECKING:
    from memory_store.assistants.assistant import Access
    from memory_store.store import MemoryStore

INSTALL, DOCTOR = "install", "doctor"
SURFACES = ("mcp", "llm", "trial")
"""What an assistant asks through, for the audit trail."""
CLIENT_NAMES = ("claude-code", "claude-desktop", "codex", "cursor", "gemini", "vscode", "zed")


def _known_client(ctx: click.Context, param: click.Parameter, client: str | None) -> str | None:
    """The name of an assistant. Raises BadInputError with those that may be meant."""
    if client is None or client in CLIENT_NAMES or ctx.resilient_parsing:
        return client
    from difflib import get_close_matches

    meant = [name for name in CLIENT_NAMES if name.startswith(client)]
    meant = meant or get_close_matches(client, CLIENT_NAMES)
    hint = (
        f"did you mean {' or '.join(meant)}?" if meant else f"there are {', '.join(CLIENT_NAMES)}"
    )
    raise BadInputError(f"no assistant {client!r}: {hint}", "client")


def _client_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in CLIENT_NAMES if name.startswith(incomplete)]


class McpCommand(VaultCommand):
    """What an assistant's entry names is looked at wherever it is, also without a default vault."""

    def invoke(self, ctx: click.Context) -> Any:
        self.makes_vault = ctx.params.get("action") == DOCTOR
        return super().invoke(ctx)


@click.command(cls=McpCommand)
@database_argument
@click.argument("action", required=False, type=click.Choice([INSTALL, DOCTOR]))
@click.argument(
    "client",
    metavar="[CLIENT]",
    required=False,
    callback=_known_client,
    shell_complete=_client_names,
)
@click.option("--read-only", is_flag=True, help="It may search and read (the default)")
@click.option("--write", is_flag=True, help="It may add, change and delete")
@click.option("--append-only", is_flag=True, help="It may add, and change nothing")
@click.option("--collection", multiple=True, metavar="NAME", help="It sees only this collection")
@click.option("--name", metavar="NAME", help="Whose memories are marked as: by (default: client)")
@click.option("--print", "only_print", is_flag=True, help="install: show the entry, write nothing")
@click.option("--surface", type=click.Choice(SURFACES), default=SURFACES[0], hidden=True)
@key_file_option()
def mcp(
    database: Path,
    action: str | None,
    client: str | None,
    read_only: bool,
    write: bool,
    append_only: bool,
    collection: tuple[str, ...],
    name: str | None,
    only_print: bool,
    surface: str,
    key_file: Path | None,
) -> None:
    """Give an assistant your memories, as an MCP server.

    \b
    memory-store mcp install claude-code           # it may search and read
    memory-store mcp install codex --write         # it may add, change and delete, too
    memory-store mcp install cursor --append-only --collection work
    memory-store mcp install zed --print
    memory-store mcp doctor claude-code            # start it as claude-code does, and search
    memory-store mcp notes.db                      # what an assistant starts

    An assistant is one of: claude-code, claude-desktop, codex, cursor, gemini, vscode, zed.

    The entry that install writes has absolute paths and no secret. The vault must open without a
    question: by a key file or the keyring.
    """
    chosen_flags = {"--read-only": read_only, "--append-only": append_only, "--write": write}
    named = [flag for flag, given in chosen_flags.items() if given]
    if len(named) > 1:
        raise BadInputError(f"choose one of {' and '.join(named)}", named[-1].strip("-"))
    if action is not None:
        here_only("an entry")
    if action == DOCTOR:
        _check(client)
        return
    access: Access = "write" if write else "append" if append_only else "read"
    if action is None:
        _serve(database, access, collection, name or "assistant", key_file, surface)
        return
    if client is None:
        raise BadInputError(f"install: name an assistant: {', '.join(CLIENT_NAMES)}", "client")
    flags = {"read": [], "append": ["--append-only"], "write": ["--write"]}[access]
    seen = [part for one in collection for part in ("--collection", one)]
    chosen = [*flags, *seen, "--name", name or client]
    _install(database, client, chosen, key_file, only_print, collection)


def _serve(
    database: Path,
    access: Access,
    collection: tuple[str, ...],
    name: str,
    key_file: Path | None,
    surface: str,
) -> None:
    from memory_store.assistants import require_sdk
    from memory_store.unlocking import open_store

    require_sdk()
    from memory_store.assistants.allowance import Allowance
    from memory_store.assistants.assistant import Assistant, only, sole
    from memory_store.assistants.trail import Trail

    def serving(store: MemoryStore, embed: Callable[[], None] | None) -> Serving:
        trail = Trail(store, name, surface)
        assistant = Assistant(
            only(store, collection),
            access,
            name,
            allowance=Allowance(),
            last_came=trail.last_came,
            embed_later=embed,
            into=sole(collection),
        )

        def until_it_leaves(*streams: TextIO) -> None:
            from memory_store.assistants.server import serve

            try:
                serve(assistant, database.stem, *streams)
            finally:
                trail.write()

        return until_it_leaves

    lent = click.get_current_context().find_object(Lent)
    if lent is not None:
        with lent.to(database, key_file, passphrase=False) as store:
            lent.later.append(serving(store.apart(), lent.embed))
        return
    with open_store(database, key_file=key_file) as store:
        from memory_store.late_vectors import embedding_beside

        with embedding_beside(store, lambda line: click.echo(line, err=True)) as embed:
            serving(store, embed)()


def _check(client: str | None) -> None:
    """Try the entries of one assistant, or of all that have one; exit code 1 where one fails."""
    from memory_store.assistants import clients, require_sdk
    from memory_store.errors import MemoryStoreError

    require_sdk()
    from memory_store.assistants.checkup import check

    found = [
        (one, name, entry)
        for one in ([client] if client else CLIENT_NAMES)
        for name, entry in clients.installed(one).items()
    ]
    if not found:
        wanted = client or "NAME"
        raise BadInputError(f"no entry to try. To write one: memory-store mcp install {wanted}")
    failed = False
    for one, name, entry in found:
        click.echo(f"{one}: {printable_line(name)} in {clients.CLIENTS[one].path()}")
        try:
            check(entry, lambda words, took: click.echo(f"  {words} ({took:.1f} s)"))
        except MemoryStoreError as error:
            failed = True
            click.echo(f"  {printable_line(str(error))}")
            click.echo(f"  To write the entry anew: memory-store mcp install {one}")
    if failed:
        click.get_current_context().exit(1)


def _entry_name(database: Path) -> str:
    """What a vault's server is called. Claude Code takes letters, digits, ``_`` and ``-``."""
    called = re.sub(r"[^a-z0-9_-]+", "-", database.stem, flags=re.I | re.A).strip("-")
    return "memories" if called in ("", "memories") else f"memories-{called}"


def _install(
    database: Path,
    client: str,
    arguments: list[str],
    key_file: Path | None,
    only_print: bool,
    collections: Sequence[str],
) -> None:
    from memory_store.assistants import clients, require_sdk
    from memory_store.vault.storage.schema import check_is_vault

    if not only_print:
        require_sdk()  # what the entry starts would only say it to the assistant
    check_is_vault(database)
    key = _key(database, key_file)
    if collections:
        _check_collections(database, collections, key_file)
    entry = clients.entry_for(database, [*key, *arguments])
    name = _entry_name(database)
    if only_print:
        click.echo(clients.shown(client, name, entry))
        return
    path = clients.install(client, name, entry)
    click.echo(f"{client}: {name} is in {path}. Start {client} anew.")
    if "--write" not in arguments and "--append-only" not in arguments:
        click.echo("It may search and read. To let it write, run this again with --write.")


def _check_collections(database: Path, names: Sequence[str], key_file: Path | None) -> None:
    """Raise BadInputError for a collection that there is not, where the vault opens unasked."""
    from memory_store.assistants.assistant import ids_of
    from memory_store.errors import MemoryStoreError
    from memory_store.keeper.assistant import kept_assistant
    from memory_store.unlocking import open_store

    words = [str(database), *(part for one in names for part in ("--collection", one))]
    if kept_assistant(words) is not None:
        return
    try:
        store = open_store(database, key_file=key_file)
    except MemoryStoreError:
        return
    with store:
        ids_of(store, names)


def _key(database: Path, key_file: Path | None) -> list[str]:
    """The option that opens the vault without a question; nothing where the keyring does.

    Raises WrongKeyError for a key file that opens another vault.
    """
    from memory_store.configuration import chosen, typed_vault
    from memory_store.key_lookup import keyring_may_open
    from memory_store.paths import KEY_FILE_VARIABLE

    named = key_file or chosen(KEY_FILE_VARIABLE)
    if named:
        from memory_store.key_files import checked_key_file
        from memory_store.unlocking import open_store

        open_store(database, key_file=Path(named)).close()
        return ["--key-file", str(Path(checked_key_file(Path(named), database)).resolve())]
    if keyring_may_open(database):
        return []
    from memory_store.keeper.client import connected

    connection = connected((str(database),))
    if connection is not None:
        connection.close()
        click.echo("It works as long as memory-store unlock keeps the vault open.", err=True)
        return []
    raise LockedError(
        "an assistant cannot type a passphrase: run memory-store unlock first, each time; or make "
        f"a key for it: memory-store keys add{typed_vault(database)} --new-key-file "
        "~/keys/assistant.key, then this again with --key-file ~/keys/assistant.key"
    )
