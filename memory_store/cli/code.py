"""``code context outline symbols impact read``: repositories, read by their syntax.

Boundary: paths, names and lines are untrusted text; all of it is made printable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import asdict

from memory_store.cli.answers import source
from memory_store.cli.options import Group, json_option, row_options, vault_command
from memory_store.cli.rows import aligned, write_answer, write_rows
from memory_store.cli.terminal import (
    BOLD,
    DIM,
    colour_wanted,
    columns,
    memories,
    printable_line,
    shortened,
    styled,
)

if TYPE_CHECKING:
    from memory_store.records import SourceInfo
    from memory_store.records.code import (
        CodeContext,
        CodeImpact,
        CodeOutline,
        CodeText,
        SymbolAnswer,
    )
    from memory_store.store import MemoryStore

SHOWN = 30  # lines of a list
STATUS = ("collection", "path", "memories", "time", "commit", "behind")


def collection_option(function: Any) -> Any:
    """``--collection``, repeatable."""
    help = "Only of this collection (repeatable)"
    return click.option("--collection", multiple=True, metavar="NAME", help=help)(function)


@click.group(cls=Group)
def code() -> None:
    """Read repositories by their syntax: outlines, symbols, who depends on what.

    \b
    memory-store import notes.db ~/src/flask
    memory-store code context notes.db
    memory-store code symbols notes.db Flask.dispatch_request
    memory-store code outline notes.db src/flask/sessions.py
    memory-store code impact notes.db src/flask/globals.py
    memory-store code read notes.db src/flask/app.py:80-120 --snap function

    Symbols, paths and imports are sealed like the text. Each answer ends with how many memories
    were opened for it.
    """


@vault_command(group=code)
@collection_option
@click.option("--budget", type=int, default=2_000, show_default=True, help="Tokens at most")
@json_option("Print an object as JSON")
def context(store: MemoryStore, collection: tuple[str, ...], budget: int, as_json: bool) -> None:
    """Say what a repository is: languages, entry points, folders, the most used files and symbols.

    \b
    memory-store code context notes.db
    memory-store code context notes.db --collection flask --budget 500 --json
    """
    found = store.code.context(collection=collection, budget=budget)
    write_answer(as_json, found, _context_lines(found))


@vault_command(group=code)
@click.argument("file")
@collection_option
@json_option("Print an object as JSON")
def outline(store: MemoryStore, file: str, collection: tuple[str, ...], as_json: bool) -> None:
    """List a file's definitions with their lines, what it imports, and what imports it.

    \b
    memory-store code outline notes.db src/flask/sessions.py
    memory-store code outline notes.db sessions.py --json
    """
    found = store.code.outline(file, collection=collection)
    write_answer(as_json, found, _outline_lines(found))


@vault_command(group=code)
@click.argument("name")
@collection_option
@click.option("-n", "--limit", type=click.IntRange(1), default=100, show_default=True, help="Rows")
@json_option("Print an object as JSON")
def symbols(
    store: MemoryStore, name: str, collection: tuple[str, ...], limit: int, as_json: bool
) -> None:
    """Say where a name is defined, and which lines use it.

    \b
    memory-store code symbols notes.db SecureCookieSession
    memory-store code symbols notes.db Flask.dispatch_request --json
    """
    found = store.code.symbols(name, collection=collection, limit=limit)
    write_answer(as_json, found, _symbol_lines(found))


@vault_command(group=code)
@click.argument("file_or_symbol")
@collection_option
@click.option("--hops", type=int, default=3, show_default=True, help="Steps at most, from 1 to 10")
@json_option("Print an object as JSON")
def impact(
    store: MemoryStore, file_or_symbol: str, collection: tuple[str, ...], hops: int, as_json: bool
) -> None:
    """Say which files depend on a file or on a symbol, the nearest first.

    \b
    memory-store code impact notes.db src/flask/globals.py
    memory-store code impact notes.db SessionInterface --hops 1 --json
    """
    found = store.code.impact(file_or_symbol, collection=collection, hops=hops)
    write_answer(as_json, found, _impact_lines(found))


@vault_command(group=code)
@click.argument("file", metavar="FILE[:FROM-TO]")
@collection_option
@click.option("--budget", type=int, help="End before so many tokens")
@click.option("--skeleton", is_flag=True, help="Without the bodies of functions")
@click.option("--snap", metavar="function", help="Widen the lines, so that no function is cut")
@click.option("--if-changed", metavar="HASH", help="No text if the file still has that hash")
@json_option("Print an object as JSON")
def read(store: MemoryStore, file: str, as_json: bool, **options: Any) -> None:
    """Show lines of a file, with their numbers.

    \b
    memory-store code read notes.db src/flask/app.py:80-120
    memory-store code read notes.db src/flask/app.py:85 --snap function
    memory-store code read notes.db app.py --skeleton --budget 800 --json
    """
    found = store.code.read(file, **options)
    write_answer(as_json, found, _text_lines(found))


@vault_command(group=code)
@row_options("Print an array as JSON")
def status(store: MemoryStore, form: str) -> None:
    """Say which commit of each work tree is in here, and how far the tree has gone on.

    \b
    memory-store code status notes.db
    memory-store code status notes.db --json
    """
    from memory_store.actions.sources import import_again

    found = [one for one in store.sources() if one.commit]
    again = import_again(store.path)
    lines = [line for one in found for line in _status_lines(one, again)]
    lines = lines or ["no work tree with a commit was imported: memory-store sources lists all"]
    write_rows(form, [asdict(one) for one in found], STATUS, lines)


# -- as lines ------------------------------------------------------------------------------


def _status_lines(one: SourceInfo, again: str) -> Iterator[str]:
    yield _heading(f"{one.collection}  {one.path}")
    yield f"  {memories(one.memories)}, at commit {(one.commit or '')[:10]}"
    if one.behind:
        yield f"  {printable_line(f'{one.behind}. Try: {again}')}"
    else:
        yield "  its work tree is at that commit"


def _context_lines(found: CodeContext) -> Iterator[str]:
    files = "1 file" if found.files == 1 else f"{found.files:,} files"
    yield f"{files} · {found.lines:,} lines of source code"
    yield from _section("Languages", _counted(found.languages.items()))
    yield from _section("Begins in", found.entry_points)
    yield from _section("Folders", _counted(found.folders.items()))
    imported = [
        (f"{one.imported_by:,}", one.file, ", ".join(one.symbols[:5]))
        for one in found.most_imported
    ]
    yield from _section("Imported most", aligned(imported, [0]))
    used = [(f"{one.references:,}", one.path, f"{one.file}:{one.line}") for one in found.most_used]
    yield from _section("Used most", aligned(used, [0]))
    yield from _section("Changed last by", _counted(found.authors.items()))
    yield from _section(
        "Changed last", [f"{day}  {file}" for file, day in found.last_changed.items()]
    )
    left = ", ".join(
        f"{count:,} {name.replace('_', ' ')}" for name, count in found.left_out.items()
    )
    spent = f"{found.spent:,} of {found.budget:,} tokens ({found.counted_with})"
    yield from _end(found.opened, spent + (f" · left out: {left}" if left else ""))


def _outline_lines(found: CodeOutline) -> Iterator[str]:
    yield _heading(f"{found.file}  {found.language}, {found.lines:,} lines")
    for one in found.symbols:
        lines = f"{one.line}-{one.end_line}" if one.end_line > one.line else f"{one.line}"
        yield _line(f"{lines:>11}  {'  ' * one.depth}{printable_line(one.signature)}")
    if not found.symbols:
        yield f"no definitions are known in it: {printable_line(found.language)}"
    yield from _section("Imports", found.imports)
    yield from _section("Imported by", found.imported_by)
    outside = f"{found.unresolved:,} imports lead out of here" if found.unresolved else ""
    yield from _end(found.opened, outside)


def _symbol_lines(found: SymbolAnswer) -> Iterator[str]:
    for one in found.definitions:
        yield _heading(f"{one.file}:{one.line}-{one.end_line}  {one.kind} {one.path}")
        yield _line(f"    {printable_line(one.signature)}")
    uses = [
        f"{one.file}:{_numbers(one.lines)}  {', '.join(one.callers[:4])}".rstrip()
        for one in found.uses
    ]
    yield from _section(f"Used on {_so_many(found.references, 'line')}", uses)
    yield from _end(found.opened)


def _impact_lines(found: CodeImpact) -> Iterator[str]:
    starts = f"  ({', '.join(found.starts[:4])})" if found.starts != (found.of,) else ""
    yield _heading(f"{found.kind} {found.of}{starts}")
    if not found.files:
        yield "nothing here depends on it"
    for hop in sorted({one.hops for one in found.files}):
        some = [one for one in found.files if one.hops == hop]
        away = f"{hop} {'step' if hop == 1 else 'steps'} away" if hop else "Where it is defined"
        title = f"{away}: {_so_many(len(some), 'file')}"
        yield from _section(
            title, [f"{one.file}{':' + _numbers(one.lines) if one.lines else ''}" for one in some]
        )
    yield from _end(found.opened)


def _text_lines(found: CodeText) -> Iterator[str]:
    yield _heading(f"{found.file}:{found.line}-{found.end_line} of {found.lines:,}")
    if found.unchanged:
        yield f"unchanged since {found.hash}"
        yield from _end(found.opened)
        return
    number = found.line
    for line in found.text.removesuffix("\n").split("\n"):
        yield f"{number:>5}  {source(line)}".rstrip()
        skipped = line.lstrip().partition(f"… {number}-")[2]
        number = int(skipped) + 1 if found.skeleton and skipped.isdigit() else number + 1
    more = f" · next: {printable_line(found.next)}" if found.next else ""
    spent = f"{_so_many(found.spent, 'token')} ({found.counted_with}) · hash {found.hash}{more}"
    yield from _end(found.opened, spent)


def _so_many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    every = list(lines)
    if not every:
        return
    yield ""
    yield _heading(title)
    yield from (_line(f"  {printable_line(one)}") for one in every[:SHOWN])
    if len(every) > SHOWN:
        yield f"  … and {len(every) - SHOWN:,} more: --json has all"


def _counted(pairs: Iterable[tuple[str, int]]) -> list[str]:
    return [f"{count:>6,}  {name}" for name, count in pairs]


def _numbers(lines: tuple[int, ...]) -> str:
    shown = ",".join(map(str, lines[:6]))
    return shown + (",…" if len(lines) > 6 else "")


def _heading(text: str) -> str:
    return styled(shortened(printable_line(text), columns()), BOLD, colour_wanted())


def _line(text: str) -> str:
    return shortened(text, columns())


def _end(opened: int, more: str = "") -> Iterator[str]:
    said = f"{memories(opened)} opened" + (f" · {printable_line(more)}" if more else "")
    yield ""
    yield styled(said, DIM, colour_wanted())
