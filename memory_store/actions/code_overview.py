"""What a repository is, within a budget: its languages, folders, entry points, most used parts.

Boundary: works on the files that a view of the vault may open; opens nothing itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from memory_store.actions.code_names import Repository
from memory_store.code.parts import folder_of
from memory_store.errors import BadInputError
from memory_store.records.code import CodeContext, CodeSymbol, FileInBrief
from memory_store.session.code_files import CodeFiles
from memory_store.text.token_count import counted_with, tokens

CONTEXT_BUDGET = 2_000
LEAST_BUDGET = 50
MOST_LISTED = 200  # symbols
MOST_CHANGED = 20  # files
_ENTRY = re.compile(
    r"(?:__main__|manage|setup|wsgi|asgi|app|main|cli|server|index|lib|mod|program)\.\w+\Z"
    r"|package\.json\Z|pyproject\.toml\Z|cargo\.toml\Z|go\.mod\Z|makefile\Z|dockerfile\Z",
    re.I,
)


def overview(repository: Repository, budget: int) -> CodeContext:
    """See :func:`memory_store.actions.code.context`."""
    if budget < LEAST_BUDGET:
        raise BadInputError(
            f"a budget of {budget} tokens holds nothing: give {LEAST_BUDGET} or more", "budget"
        )
    known = repository.known
    lists: dict[str, list[Any]] = {
        "languages": Counter(one.language for one in known.files).most_common(),
        "entry_points": _entry_points(known),
        "folders": Counter(map(folder_of, known.names)).most_common(),
        "most_imported": _most_imported(known),
        "most_used": _most_used(repository),
        "authors": Counter(name for one in known.files for name in one.authors).most_common(),
        "last_changed": _last_changed(known),
    }
    kept, left_out, spent = _budgeted(lists, budget)
    return CodeContext(
        len(known.files),
        sum(one.symbols.lines for one in known.files),
        dict(kept["languages"]),
        dict(kept["folders"]),
        tuple(kept["entry_points"]),
        tuple(kept["most_imported"]),
        tuple(kept["most_used"]),
        left_out,
        budget,
        spent,
        counted_with(),
        repository.opened,
        dict(kept["authors"]),
        dict(kept["last_changed"]),
    )


def _entry_points(known: CodeFiles) -> list[str]:
    """Files where a program or a package begins, by their names; the shallowest first."""
    names = [
        name
        for name, noise in zip(known.names, known.noise, strict=True)
        if not noise and _ENTRY.match(name.rpartition("/")[2])
    ]
    return sorted(names, key=lambda one: (one.count("/"), one))


def _last_changed(known: CodeFiles) -> list[tuple[str, str]]:
    """The files that were changed last, with the day, as far as Git was asked."""
    dated = zip(known.files, known.names, strict=True)
    found = sorted((one.changed, name) for one, name in dated if one.changed)
    return [(name, day) for day, name in reversed(found[-MOST_CHANGED:])]


def _most_imported(known: CodeFiles) -> list[FileInBrief]:
    graph = known.graph
    counted = [
        (len(graph.imported_by[place]), known.names[place], one)
        for place, one in enumerate(known.files)
        if graph.imported_by[place] and not known.noise[place]
    ]
    counted.sort(key=lambda one: (-one[0], one[1]))
    return [
        FileInBrief(
            name,
            one.symbols.lines,
            count,
            tuple(symbol.name for symbol in one.symbols.definitions if not symbol.container)[:8],
        )
        for count, name, one in counted
    ]


def _most_used(repository: Repository) -> list[CodeSymbol]:
    """Classes and functions, by how many files use them."""
    known = repository.known
    found = [
        (len({use.place for use in known.used.get(name, ())} - {place}), place, symbol)
        for name, defined in known.defined.items()
        if len(defined) == 1
        for place, symbol in defined
        if symbol.kind not in ("constant", "property", "declaration") and not known.noise[place]
    ]
    found = [one for one in found if one[0] > 1]
    found.sort(key=lambda one: (-one[0], known.names[one[1]], one[2].line))
    return [
        replace(repository.symbol(place, symbol), file=known.names[place])
        for _, place, symbol in found[:MOST_LISTED]
    ]


def _budgeted(
    lists: Mapping[str, list[Any]], budget: int
) -> tuple[dict[str, list[Any]], dict[str, int], int]:
    """Of each list as much as fits: by turns, a line of each, so that none takes all."""
    kept: dict[str, list[Any]] = {name: [] for name in lists}
    spent, full = 0, set[str]()
    for number in range(max(map(len, lists.values()))):
        for name, rows in lists.items():
            if name in full or number >= len(rows):
                continue
            cost = tokens(_written(rows[number]))
            if spent + cost > budget:
                full.add(name)
                continue
            kept[name].append(rows[number])
            spent += cost
    left = {name: len(rows) - len(kept[name]) for name, rows in lists.items()}
    return kept, {name: count for name, count in left.items() if count}, spent


def _written(row: Any) -> str:
    """A line of a context, about as long as it is shown."""
    if isinstance(row, FileInBrief):
        return f"{row.file} {row.imported_by} {row.lines} {' '.join(row.symbols)}"
    if isinstance(row, CodeSymbol):
        return f"{row.signature} {row.file}:{row.line} {row.references}"
    return f"{row[0]} {row[1]}" if isinstance(row, tuple) else str(row)
