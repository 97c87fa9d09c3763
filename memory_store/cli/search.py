"""``memory-store search``: one question, answered on the terminal or as data."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import copy_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from memory_store.cli.kept import Found, done_by_keeper, hand_over, search_by_keeper
from memory_store.cli.options import (
    SCOPE,
    Lent,
    at_terminal,
    chosen_mode,
    completed_by,
    mode_options,
    request_options,
    row_options,
    text_or_stdin,
    vault_command,
)
from memory_store.cli.rows import usual, write_json, write_rows
from memory_store.cli.terminal import SHORT_ID, here_only, is_elsewhere, printable_line
from memory_store.cli.vault_argument import TYPED, VaultCommand, names_a_vault
from memory_store.errors import BadInputError, MemoryStoreError
from memory_store.records import RESULT_COLUMNS, SearchResult, search_request

if TYPE_CHECKING:
    from memory_store.records import SearchRequest, SearchResponse
    from memory_store.store import MemoryStore

_TABLE_COLUMNS = ("rank", "score", "title", "type", "created", "topics", "id")
_FOLDER_COLUMNS = (*_TABLE_COLUMNS[:-1], "ref")


IN = "--in"
USUAL = ("mode", "limit", "recipe", "status", "min-score", "budget", "budget-ms")
"""The options whose usual values ``config.yaml`` may say, under ``search``."""
VARIABLES = {name: f"MEMORY_STORE_SEARCH_{name.upper().replace('-', '_')}" for name in USUAL}
"""Each with the variable that comes before the file."""


class QueryCommand(VaultCommand):
    """Lets a query begin with ``-word`` or ``-"phrase"``: an option never holds a space.

    Options that are not given have the values of ``config.yaml``.
    """

    def needs_none(self, args: list[str]) -> bool:
        options = args[: args.index("--")] if "--" in args else args
        return any(one == IN or one.startswith(f"{IN}=") for one in options)

    def invoke(self, ctx: click.Context) -> Any:
        folder = ctx.params.get("in_folder")
        if folder is None:
            if ctx.params.get("interactive") and not is_elsewhere():
                _refuse_without_terminal()  # before a passphrase is asked for
                if (search := search_by_keeper(ctx)) is not None:
                    return _choose_kept(ctx, search)
            return super().invoke(ctx)
        here_only("a folder")
        _refuse_what_needs_a_vault(ctx.params)
        from memory_store.cli.folder import folder_in_memory

        meaning = chosen_mode(ctx) == "vector" or ctx.params["mode_semantic"]
        with folder_in_memory(folder, embed=meaning) as store:
            ctx.params["database"], ctx.obj = store.path, Lent(store, ())
            return copy_context().run(super().invoke, ctx)  # its name is a vault's here alone

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[TYPED] = list(args)
        ctx.default_map = _usual_options()
        if "--" not in args:
            queries = [a for a in args if re.match(r'-(?!-)\S*\s|-"', a)]
            if len(queries) == 1:
                args = [*(a for a in args if a not in queries), "--", *queries]
        return super().parse_args(ctx, args)


@vault_command(cls=QueryCommand)
@click.argument("query", metavar="[QUERY]...", nargs=-1, shell_complete=completed_by("query_words"))
@click.option("-i", "--interactive", is_flag=True, help="Search while you type, and choose")
@mode_options
@request_options("language", "all", "deep", "limit", *SCOPE)
@request_options("like", "meta", "min_score", "narrow", "recipe")
@request_options("reranker", "rerank", "expander", "expand", "sealed", "budget", "budget_ms")
@click.option(
    "--page", type=click.IntRange(min=1), default=1, help="This page, each of --limit results"
)
@request_options("continue", "explain", "why")
@click.option(
    IN,
    "in_folder",
    metavar="FOLDER",
    type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
    help="Search this folder, which was not imported, in memory: no vault, no key, nothing kept",
)
@row_options("Print the object of the JSON API")
def search(
    store: MemoryStore,
    query: tuple[str, ...],
    interactive: bool,
    in_folder: Path | None,
    form: str,
    page: int,
    **options: Any,
) -> None:
    """Find memories by name and by meaning.

    \b
    memory-store search notes.db "when does the lease end"
    memory-store search notes.db '"exact phrase" -unwanted topic:home'
    memory-store search notes.db budget --since 3w --type decision --json

    \b
    memory-store search notes.db --like 3f2a91c0
    memory-store search -i
    memory-store search --in ~/src/flask "where are session cookies signed"

    QUERY may be - for standard input.
    """
    words = " ".join(query)
    if interactive:
        _choose(store, words, options)
        return
    asked = search_request(text_or_stdin(words).strip() if words == "-" else words, **options)
    if not asked.asks:
        typing = ", or memory-store search -i to search while you type" if at_terminal() else ""
        raise BadInputError(
            f"Say what you look for, for example: memory-store search spare key{typing}", "q"
        )
    show_answer(store, asked, form, page, by_ref=in_folder is not None)


def show_answer(
    store: MemoryStore, asked: SearchRequest, form: str, page: int = 1, *, by_ref: bool = False
) -> None:
    """Search, and print a page of the answer in a form; ``by_ref`` for one of a folder."""
    response = _page(store, asked, page)
    more = _more(response, asked, page)
    if collections := {row.collection for row in response.rows if row.line is not None}:
        behind = [] if by_ref else store.gone_on(collections)
        response = replace(response, degraded=(*response.degraded, *behind))
    if by_ref:
        from memory_store.cli.folder import without_vault

        response = without_vault(response)
    if form == "text":
        from memory_store.cli.answers import print_answer
        from memory_store.keeper.served import served_at

        pages = "" if by_ref else served_at(str(store.path))
        more = more if response.rows or page > 1 else _way_out(store, asked)
        print_answer(response, more, by_ref=by_ref, pages=pages)
        return
    if form == "json":
        write_json(response.as_dict())
        return
    shown = {"table": _for_people, "csv": _titled}.get(form, SearchResult.as_dict)
    table = _FOLDER_COLUMNS if by_ref else _TABLE_COLUMNS
    columns = table if form == "table" else RESULT_COLUMNS
    write_rows(form, [shown(row) for row in response.rows], columns)
    for line in response.remarks(usual(response)):
        click.echo(printable_line(line), err=True)


def _usual_options() -> dict[str, Any]:
    from memory_store.configuration import SEARCH, config_file, settings

    usual = settings().get(SEARCH, {})
    for name in usual:
        if name not in USUAL:
            known = ", ".join(USUAL)
            raise BadInputError(
                f"{config_file()}: {SEARCH}: {name!r} cannot be set here. There are {known}", SEARCH
            )
    said = {name: os.environ.get(variable) for name, variable in VARIABLES.items()}
    usual = {**usual, **{name: value for name, value in said.items() if value}}
    return {name.replace("-", "_"): value for name, value in usual.items()}


def _refuse_what_needs_a_vault(given: Mapping[str, Any]) -> None:
    """Options and arguments that mean a vault, beside a folder that is searched without one."""
    key = next((name for name in ("key_file", "passphrase") if given[name]), None)
    if key:
        raise BadInputError(f"{key}: {IN} needs no key: leave it out", key)
    if given["interactive"]:
        raise BadInputError(f"-i searches a vault: leave out {IN} or -i", "interactive")
    if given["continue_"]:
        raise BadInputError(
            f"continue: {IN} keeps nothing between two searches: use --page", "continue"
        )
    first, *others = given["query"] or ("",)
    if others and names_a_vault(first):
        raise BadInputError(f"{IN} searches its folder alone: leave out {first}", "in")


def _refuse_without_terminal() -> None:
    from memory_store.cli.picker import check_library

    if not (at_terminal() and sys.stdout.isatty()):
        raise BadInputError("-i needs a terminal", "interactive")
    check_library()


def _choose(store: MemoryStore, words: str, options: dict[str, Any]) -> None:
    """Search while you type, then show or edit the memory that you choose."""
    if is_elsewhere():  # one query of a choice that is made there
        if query := sys.stdin.read().strip():
            hand_over(Found(store.search(search_request(query, **options))))
        return
    from memory_store.cli.memories import edit_at_terminal, show_memory
    from memory_store.cli.picker import pick

    picked = pick(lambda query: store.search(search_request(query, **options)), words)
    if picked is None:
        return
    memory = store.get(picked.id)
    if picked.edit:
        memory = edit_at_terminal(store, memory, None)
        click.echo(f"{memory.id} is now version {memory.version}")
    else:
        show_memory(store, memory)


def _choose_kept(ctx: click.Context, search: Callable[[str], SearchResponse]) -> None:
    """The same, in a vault that is kept open: a keeper shows or edits what you choose."""
    from memory_store.cli.picker import pick

    picked = pick(search, " ".join(ctx.params["query"]))
    if picked is not None:
        does = "edit" if picked.edit else "get"
        ctx.exit(done_by_keeper([does, str(ctx.params["database"]), picked.id]))


def _page(store: MemoryStore, asked: SearchRequest, page: int) -> SearchResponse:
    """A page of a search. It is known by the one before it, so each is searched, and counted."""
    response = store.search(asked)
    for number in range(2, page + 1):
        if not response.next:
            pages = "is 1 page" if number == 2 else f"are {number - 1} pages"
            raise BadInputError(f"--page {page}: there {pages}", "page")
        following = store.search(replace(asked, continue_=response.next))
        response = replace(
            following,
            opened=response.opened + following.opened,
            milliseconds=response.milliseconds + following.milliseconds,
        )
    return response


def _more(response: SearchResponse, asked: SearchRequest, page: int) -> str:
    """How to see more. The token is a hundred characters: for those who asked with one."""
    if not response.next:
        return ""
    token = f"more: --continue {response.next}"
    return token if asked.continue_ else f"more: --page {page + 1}"


def _way_out(store: MemoryStore, asked: SearchRequest) -> str:
    """The filter without which something is found, where nothing is with it."""
    usual = search_request("")
    for name in (*SCOPE, "meta", "min_score", "narrow"):
        if (unfiltered := getattr(usual, name)) != getattr(asked, name):
            alone = {"limit": 1, "rerank": False, "explain": False, "why": None}
            wider = replace(asked, **{name: unfiltered}, **alone)
            with suppress(MemoryStoreError):  # the rest may not be to be searched for
                if wider.asks and store.search(wider).rows:
                    return f"Without --{name.replace('_', '-')} there are results."
    return ""


def _titled(row: SearchResult) -> dict[str, Any]:
    return {**row.as_dict(), "title": row.shown_title}


def _for_people(row: SearchResult) -> dict[str, Any]:
    """Table cells: scores of 0–100, days, short ids, first words where there is no title."""
    from memory_store.cli.answers import title_of

    return {
        **row.as_dict(),
        "title": title_of(row),
        "score": round(row.score * 100),
        "created": row.created[:10],
        "topics": " ".join(f"#{topic}" for topic in row.topics),
        "id": row.id[:SHORT_ID],
    }
