"""Every definition and every use in source code, as tables.

What they are narrowed down to is looked up, and a row is made when it is read. So a table of a
million rows costs what is read of it.

Boundary: works on the files that a view of the vault may open. Those whose outlines are in the
index are not opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from operator import attrgetter
from types import MappingProxyType
from typing import Generic, TypeVar

from memory_store.actions.action import Opened, action
from memory_store.actions.code_names import Repository, repository_naming, repository_of
from memory_store.code.symbols import Symbol
from memory_store.errors import BadInputError, NotFoundError
from memory_store.records.code import CodeReference, CodeSymbol
from memory_store.session.code_files import CodeFiles, code_files_using, has_code
from memory_store.vault.audit_events import READ

T = TypeVar("T")
C = TypeVar("C")
Equal = Mapping[str, str]
"""Columns, and the text that each is equal to."""
NOTHING: Equal = MappingProxyType({})
Order = Sequence[tuple[str, bool]]
"""Columns to order by, each with whether the last comes first."""

OF_SYMBOLS = ("name", "kind", "container", "file", "language", "collection", "id")
OF_USES = ("name", "file", "collection", "id")
"""The columns that rows are narrowed down by."""


class Rows(Generic[T]):
    """So many rows. Each is made when it is read, as often as it is read."""

    def __init__(self, count: int = 0, made: Callable[[], Iterable[T]] = tuple) -> None:
        self._count, self._made = count, made

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[T]:
        return iter(self._made())

    def each(self, change: Callable[[T], C]) -> Rows[C]:
        """The same rows, each changed when it is read."""
        return Rows(self._count, lambda: map(change, self._made()))


@action(READ, writes=False, counts=lambda found: (0, len(found)))
def every_symbol(
    opened: Opened,
    *,
    name: str | None = None,
    equal: Equal = NOTHING,
    order: Order = (),
    counted: bool = True,
) -> Rows[CodeSymbol]:
    """Every definition, or those of a name, as ``symbols`` takes it; none where there is none.

    ``equal`` narrows them down by :data:`OF_SYMBOLS`. They come by files and lines, unless
    ``order`` says otherwise. ``references`` is 0 where uses are not ``counted``.
    """
    repository, _, named_so = _asked(opened, name, equal)
    known, places = repository.known, _places(repository, equal)
    if named_so is None:
        files = known.files
        found = [(place, one) for place in places for one in files[place].symbols.definitions]
    else:
        among = set(places)
        found = [one for one in named_so if one[0] in among]
        found.sort(key=lambda one: (one[0], one[1].line))
    for column in ("name", "kind", "container"):
        if column in equal:
            said, wanted = attrgetter(column), equal[column]
            found = [one for one in found if said(one[1]) == wanted]
    uses = known.line_counts if counted else {}

    def made() -> Iterator[CodeSymbol]:
        return (repository.symbol(*one, uses.get(one[1].name, 0)) for one in found)

    return _ordered(Rows(len(found), made), order)


@action(READ, writes=False, counts=lambda found: (0, len(found)))
def every_use(
    opened: Opened, *, name: str | None = None, equal: Equal = NOTHING, order: Order = ()
) -> Rows[CodeReference]:
    """Every line that uses a name which is defined here, or one such name, likewise: narrowed down
    by :data:`OF_USES`, by files."""
    repository, own, _ = _asked(opened, name, equal)
    known, places = repository.known, _places(repository, equal)
    wanted = known.defined.keys() if own is None else known.defined.keys() & {own}
    if "name" in equal:
        wanted &= {equal["name"]}

    def used() -> Iterator[tuple[int, str, tuple[int, ...]]]:
        for place in places:
            lines = known.files[place].symbols.references
            for one in lines if len(wanted) > len(lines) else wanted:
                if one in wanted and one in lines:
                    yield place, one, lines[one]

    def made() -> Iterator[CodeReference]:
        for place, one, lines in used():
            file = known.files[place]
            where = repository.names[file.collection]
            for line in lines:
                yield CodeReference(one, file.path, line, where, file.id)

    return _ordered(Rows(sum(len(lines) for _, _, lines in used()), made), order)


def _asked(
    opened: Opened, name: str | None, equal: Equal
) -> tuple[Repository, str | None, list[tuple[int, Symbol]] | None]:
    """The files that rows may come from; where a name is asked for, that name and what defines
    it."""
    if has_code(opened.vault):
        if name is not None:
            with suppress(NotFoundError, BadInputError):
                return repository_naming(opened, (), str(name))
        elif "name" in equal:
            known, files, count = code_files_using(opened.vault, equal["name"], None)
            names = opened.vault.collections.names()
            found = known.defined.get(equal["name"], [])
            return Repository(known, names, count, files), equal["name"], found
        else:
            return repository_of(opened, ()), None, None
    return Repository(CodeFiles(()), {}, 0, 0), "", []


def _places(repository: Repository, equal: Equal) -> Iterable[int]:
    """The files that are not left out, in order."""
    known, names = repository.known, repository.names
    places: Iterable[int] = range(len(known.files))
    if "id" in equal:
        places = [n for n in (known.by_id.get(equal["id"]),) if n is not None]
    if "file" in equal:
        of_path = known.by_path.get(equal["file"], ())
        places = [n for n in of_path if n in places]
    if "collection" in equal:
        places = [n for n in places if names[known.files[n].collection] == equal["collection"]]
    if "language" in equal:
        places = [n for n in places if known.files[n].language == equal["language"]]
    return places


def _ordered(rows: Rows[T], order: Order) -> Rows[T]:
    if not order:
        return rows
    every = [*rows]
    for column, descending in reversed(order):
        every.sort(key=attrgetter(column), reverse=descending)
    return Rows(len(every), lambda: every)
