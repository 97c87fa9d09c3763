"""``sqlite-utils hybrid-search notes.db "when does the lease end"``.

Options and output are those of ``sqlite-utils search``: the rows found are handed to its own
``query``, which writes them.

Boundary: a caller who names the key sees the text. The key is handled by
:mod:`memory_store.unlocking` alone; the vault is locked again before anything is written. The rows
pass through a database in memory.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from sqlite_utils.cli import output_options
from sqlite_utils.cli import query as query_command

from memory_store.cli.failures import said_plainly
from memory_store.cli.options import SCOPE, mode_options, request_options
from memory_store.cli.search import QueryCommand
from memory_store.cli.terminal import printable_line
from memory_store.errors import MemoryStoreError
from memory_store.records import RESULT_COLUMNS, SearchResponse
from memory_store.unlocking import open_store

TABLE_COLUMNS = ("rank", "score", "title", "type", "created", "id")
"""What fits a terminal: the columns of ``--table`` and ``--fmt``, unless others are named."""
OUTPUT = frozenset(
    {"nl", "arrays", "csv", "tsv", "no_headers", "table", "fmt", "json_cols", "ascii_"}
)
"""The parameters of sqlite-utils' own output options."""


@click.command(name="hybrid-search", cls=QueryCommand)
@click.argument(
    "path", type=click.Path(file_okay=True, dir_okay=False, allow_dash=False), required=True
)
@click.argument("q", default="")
@click.option("-c", "--column", multiple=True, help="Columns to return")
@request_options("limit")
@mode_options
@request_options("deep", *SCOPE, "meta", "like", "min_score", "recipe", "sealed")
@output_options  # type: ignore[untyped-decorator, unused-ignore]
@click.option(
    "--key-file",
    type=click.Path(path_type=Path),
    help="File with the key (default: MEMORY_STORE_KEY_FILE)",
)
@click.pass_context
def hybrid_search(
    ctx: click.Context,
    /,
    path: str,
    q: str,
    column: tuple[str, ...],
    key_file: Path | None,
    **parameters: Any,
) -> None:
    """Search an encrypted memory store by name and by meaning

    Example:

        sqlite-utils hybrid-search notes.db "when does the lease end" -t
    """
    output = {name: value for name, value in parameters.items() if name in OUTPUT}
    options = {name: value for name, value in parameters.items() if name not in OUTPUT}
    columns = _columns(column, short=bool(output["table"] or output["fmt"]))
    response = _found(path, q, key_file, options)
    rows = [{**row.as_dict(), "title": row.shown_title} for row in response.rows]
    listed = ", ".join(f"json_extract(value, '$.{name}') as {name}" for name in columns)
    sql = f"select {listed} from json_each(:rows)"
    ctx.invoke(
        query_command, path=":memory:", sql=sql, param=[("rows", json.dumps(rows))], **output
    )
    for line in response.remarks():
        click.echo(printable_line(line), err=True)


def _found(path: str, q: str, key_file: Path | None, options: dict[str, Any]) -> SearchResponse:
    try:
        with open_store(path, key_file=key_file) as store:
            return store.search(q, **options)
    except MemoryStoreError as error:
        raise click.ClickException(printable_line(said_plainly(error) or "")) from None


def _columns(named: Sequence[str], *, short: bool) -> Sequence[str]:
    """The columns to print. Raises ``ClickException`` for one that no result has."""
    unknown = [name for name in named if name not in RESULT_COLUMNS]
    if unknown:
        raise click.ClickException(
            f"no column {unknown[0]!r}; there is: {', '.join(RESULT_COLUMNS)}"
        )
    return named or (TABLE_COLUMNS if short else RESULT_COLUMNS)
