"""Reading repositories: outlines, symbols, impact, parts of files, and what a repository is.

Boundary: answers are made of the memories that this view of the vault may open; each says how many
it opened. The trail has each as a reading.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from heapq import nsmallest

from memory_store.actions.action import Opened, action
from memory_store.actions.code_names import (
    Repository,
    named,
    neither,
    only,
    place_of,
    places,
    rank,
    repository_naming,
    repository_of,
)
from memory_store.actions.code_overview import CONTEXT_BUDGET, overview
from memory_store.actions.reads import open_all
from memory_store.code.definitions import definitions
from memory_store.code.parts import around, digest, folder_of, lines_of
from memory_store.code.parts import skeleton as without_bodies
from memory_store.code.symbols import MOST_LINES, Symbol
from memory_store.errors import BadInputError, NotFoundError
from memory_store.records.code import (
    CodeContext,
    CodeImpact,
    CodeOutline,
    CodeReference,
    CodeReferences,
    CodeText,
    CodeUses,
    Dependant,
    OutlineEntry,
    SymbolAnswer,
)
from memory_store.session.code_files import CodeFile, CodeFiles, Use, has_code
from memory_store.text.token_count import counted_with, is_exact, tokens
from memory_store.vault.audit_events import READ

MOST_CALLERS = 20  # of one file: its lines are all there
MOST_HOPS = 10
HOPS = 3
_PLACE = re.compile(r"(?P<file>.*?)(?::(?P<first>\d+)(?:-(?P<last>\d+))?)?\Z", re.S)


@action(None, writes=False)
def present(opened: Opened) -> bool:
    """Whether there is source code that may be read; opens nothing."""
    return has_code(opened.vault)


@action(READ, writes=False, counts=lambda found: (found.opened, len(found.definitions)))
def symbols(
    opened: Opened, name: str, *, collection: str | Sequence[str] = (), limit: int = 100
) -> SymbolAnswer:
    """Where a name is defined, and the lines that use it. ``Session.open`` is that of a class.

    Raises NotFoundError, naming alike ones, where nothing here defines or uses it.
    """
    repository, own, found = repository_naming(opened, collection, name)
    known = repository.known
    ranked = sorted(found, key=lambda one: rank(known, *one))
    uses = known.used.get(own, [])
    shown = nsmallest(limit, uses, key=lambda one: _order(known, one))
    return SymbolAnswer(
        name,
        tuple(repository.symbol(*one) for one in ranked[:limit]),
        tuple(_uses(repository, use) for use in shown),
        known.lines_used(own),
        repository.files,
        repository.opened,
    )


@action(READ, writes=False, counts=lambda found: (found.opened, len(found.rows)))
def references(
    opened: Opened, name: str, *, collection: str | Sequence[str] = (), limit: int = 100
) -> CodeReferences:
    """The lines that use a name, one a row. Raises NotFoundError, naming alike ones."""
    repository, own, _ = repository_naming(opened, collection, name)
    rows = sorted(_references(repository, own), key=lambda one: (one.file, one.line))
    return CodeReferences(name, tuple(rows[:limit]), len(rows), repository.opened)


@action(READ, writes=False, counts=lambda found: (found.opened, 1))
def outline(opened: Opened, file: str, *, collection: str | Sequence[str] = ()) -> CodeOutline:
    """The definitions of a file with their lines, what it imports, and what imports it.

    ``file`` is a path, the end of one, or an id. Raises NotFoundError, BadInputError where several
    files end so.
    """
    repository = repository_of(opened, collection)
    known = repository.known
    place = place_of(known, file)
    one, graph = known.files[place], known.graph
    return CodeOutline(
        one.path,
        one.id,
        repository.names[one.collection],
        one.language,
        one.symbols.lines,
        tuple(
            OutlineEntry(
                symbol.name,
                symbol.kind,
                symbol.container,
                symbol.line,
                symbol.end_line,
                symbol.signature,
                symbol.path.count("."),
            )
            for symbol in one.symbols.definitions
        ),
        tuple(known.files[other].path for other in graph.imports[place]),
        tuple(known.files[other].id for other in graph.imports[place]),
        tuple(known.files[other].path for other in graph.imported_by[place]),
        graph.unresolved[place],
        repository.opened,
    )


@action(READ, writes=False, counts=lambda found: (found.opened, len(found.files)))
def impact(
    opened: Opened, of: str, *, collection: str | Sequence[str] = (), hops: int = HOPS
) -> CodeImpact:
    """Who depends on a file or a symbol, the nearest first, at most ``hops`` steps away.

    On a symbol depends what uses its name and imports a file that defines it, or stands beside
    one; where no import says more, every file that uses the name. A file that defines it and uses
    it, too, is no step away. Raises NotFoundError.
    """
    if not 1 <= hops <= MOST_HOPS:
        raise BadInputError(f"hops: from 1 to {MOST_HOPS}", "hops")
    repository = repository_of(opened, collection)
    known, graph = repository.known, repository.known.graph
    found_files = places(known, of)
    uses: dict[int, tuple[int, ...]] = {}
    if found_files:
        kind = "file"
        starts = [only(known, of, found_files)]
        steps = graph.hops(starts, hops)
    else:
        kind = "symbol"
        try:
            name, found = named(known, of)
        except NotFoundError:
            raise neither(known, of) from None
        starts = sorted({place for place, _ in found})
        uses = {use.place: use.lines for use in known.used.get(name, ())}
        near = _near_uses(known, starts, uses)
        steps = {place: hop + 1 for place, hop in graph.hops(near, hops - 1).items()}
        steps |= dict.fromkeys(starts, 0)
    files = [
        Dependant(
            known.files[place].path,
            hop,
            uses.get(place, ()),
            repository.names[known.files[place].collection],
            known.files[place].id,
        )
        for place, hop in steps.items()
        if hop or place in uses
    ]
    return CodeImpact(
        of,
        kind,
        tuple(known.files[place].path for place in starts),
        tuple(sorted(files, key=lambda one: (one.hops, one.file))),
        sum(graph.unresolved),
        repository.opened,
    )


@action(READ, writes=False, counts=lambda found: (found.opened, 1))
def read(
    opened: Opened,
    file: str,
    *,
    collection: str | Sequence[str] = (),
    budget: int | None = None,
    skeleton: bool = False,
    snap: str | None = None,
    if_changed: str | None = None,
) -> CodeText:
    """Lines of a file: ``src/app.py``, ``src/app.py:40`` or ``src/app.py:40-80``.

    ``skeleton`` leaves out the bodies of functions, ``snap="function"`` widens the lines so that
    none is cut, ``budget`` ends before so many tokens, and ``if_changed`` (the ``hash`` of an
    earlier answer) spares the text of a file that is still the same. Raises NotFoundError,
    BadInputError.
    """
    if budget is not None and budget < 1:
        raise BadInputError("budget: at least 1 token", "budget")
    if snap not in (None, "function"):
        raise BadInputError(f"snap: no {snap!r}; there is: function", "snap")
    repository = repository_of(opened, collection)
    path, first, last = _asked_lines(repository.known, file)
    one = repository.known.files[place_of(repository.known, path)]
    (memory,) = open_all(opened.vault, [one.id]) or (None,)
    if memory is None:
        raise NotFoundError(f"{one.path}: was deleted a moment ago")
    text = memory.text
    count, now = len(lines_of(text)), digest(text)
    if first is not None and not 1 <= first <= (last or first):
        raise BadInputError(f"{file}: lines count from 1, the first one first", "file")
    if first is not None and first > count:
        raise BadInputError(f"{one.path} has {count:,} lines, and none of number {first:,}", "file")
    first, last = first or 1, min(last or first or count, count)
    unchanged = if_changed is not None and if_changed == now
    kept = list[tuple[int, str]]()
    if not unchanged:
        found = definitions(text, one.language) if skeleton or snap else []
        if snap:
            first, last = around(text, found, first, last)
        numbered = without_bodies(text, found) if skeleton else list(enumerate(lines_of(text), 1))
        kept = [(number, line) for number, line in numbered if first <= number <= last]
    shown, following = _within(kept, budget, one.path)
    part = "".join(line for _, line in shown)
    end = following - 1 if following else last
    return CodeText(
        one.path,
        one.id,
        repository.names[one.collection],
        one.language,
        first,
        end,
        count,
        part,
        now,
        unchanged,
        skeleton,
        f"{one.path}:{following}-{last}" if following else None,
        tokens(part),
        counted_with(),
        repository.opened + 1,
    )


@action(READ, writes=False, counts=lambda found: (found.opened, found.files))
def context(
    opened: Opened, *, collection: str | Sequence[str] = (), budget: int = CONTEXT_BUDGET
) -> CodeContext:
    """What a repository is, within a budget of tokens: its languages and folders, where it begins,
    which files are imported most, and which symbols are used most. Raises BadInputError."""
    return overview(repository_of(opened, collection), budget)


def _references(repository: Repository, name: str) -> Iterator[CodeReference]:
    known = repository.known
    for use in known.used.get(name, ()):
        file = known.files[use.place]
        where = repository.names[file.collection]
        for line in use.lines:
            yield CodeReference(name, file.path, line, where, file.id)


def _order(known: CodeFiles, use: Use) -> int:
    """Noise last, most lines first; files are in the order of their paths."""
    return known.noise[use.place] * MOST_LINES - len(use.lines)


def _uses(repository: Repository, use: Use) -> CodeUses:
    file = repository.known.files[use.place]
    name = repository.names[file.collection]
    return CodeUses(file.path, use.lines, _callers(file, use.lines), name, file.id)


def _callers(file: CodeFile, lines: Sequence[int]) -> tuple[str, ...]:
    """The innermost definitions around lines, which ascend; each once, the first ones of many. Of
    two on the same lines the first one counts."""
    begun: list[Symbol] = []
    found: list[Symbol] = []
    later = iter(file.symbols.definitions)  # in order: what stands in another comes behind it
    coming, until = next(later, None), 0
    for line in lines:
        if line <= until:  # in the same one as the line before
            continue
        if len(found) == MOST_CALLERS:
            break
        while coming is not None and coming.line <= line:
            if coming.end_line >= line and not (begun and _on_same_lines(begun[-1], coming)):
                begun.append(coming)
            coming = next(later, None)
        while begun and begun[-1].end_line < line:
            begun.pop()
        found += begun[-1:]
        until = begun[-1].end_line if begun else line
        until = until if coming is None else min(until, coming.line - 1)
    return tuple(dict.fromkeys(one.path for one in found))


def _on_same_lines(one: Symbol, other: Symbol) -> bool:
    return one.line == other.line and one.end_line == other.end_line


def _near_uses(known: CodeFiles, starts: Iterable[int], uses: Iterable[int]) -> list[int]:
    """Of the files that use a name those that can mean the one which ``starts`` define."""
    begun = set(starts)
    reached = set(known.graph.hops(begun, MOST_HOPS))
    folders = {(known.files[n].source, folder_of(known.files[n].path)) for n in begun}
    found = [n for n in uses if n not in begun]
    near = [
        n
        for n in found
        if n in reached or (known.files[n].source, folder_of(known.files[n].path)) in folders
    ]
    return near or found


# -- parts of files ------------------------------------------------------------------------


def _asked_lines(known: CodeFiles, file: str) -> tuple[str, int | None, int | None]:
    """A path, and the lines that stand behind it."""
    if places(known, file):
        return file, None, None
    given = _PLACE.match(file)
    assert given is not None  # it takes any text
    first, last = given["first"], given["last"]
    return given["file"], int(first) if first else None, int(last) if last else None


def _within(
    kept: Sequence[tuple[int, str]], budget: int | None, path: str
) -> tuple[list[tuple[int, str]], int | None]:
    """The lines that a budget holds, and the number of the first one behind them."""
    if budget is None:
        return list(kept), None
    text = ""
    spent, exact = 0, is_exact()  # what is counted line by line is no less than the whole
    for count, (number, line) in enumerate(kept):
        text += line
        spent = spent + tokens(line) if exact else tokens(text)
        if spent > budget:
            if count == 0:
                raise BadInputError(
                    f"a budget of {budget} tokens does not hold line {number} of {path}: "
                    f"give {tokens(line)} or more",
                    "budget",
                )
            return list(kept[:count]), number
    return list(kept), None
