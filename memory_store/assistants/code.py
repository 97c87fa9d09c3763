"""The tools that read repositories: what one is, outlines, symbols, who depends on what, lines.

Boundary: answers are made of what the assistant may read. Lines say what files say, so they are
data like every text; each answer takes at most its budget.
"""

# Annotations are not postponed: the schemas are made from them.

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from memory_store.assistants.answers import Shown, size, within
from memory_store.assistants.arguments import BUDGET, Budget, Names
from memory_store.assistants.assistant import Assistant, ids_of
from memory_store.errors import LockedError

File = Annotated[str, Meta(description="Path, or the end of one")]


class Context(Struct, frozen=True, forbid_unknown_fields=True):
    collection: Names = []
    budget: Budget = BUDGET


class Outline(Struct, frozen=True, forbid_unknown_fields=True):
    file: File
    budget: Budget = BUDGET


class Symbols(Struct, frozen=True, forbid_unknown_fields=True):
    name: Annotated[str, Meta(description="open or Session.open")]
    budget: Budget = BUDGET


class Impact(Struct, frozen=True, forbid_unknown_fields=True):
    of: Annotated[str, Meta(description="File or symbol")]
    hops: Annotated[int, Meta(ge=1, le=10)] = 3
    budget: Budget = BUDGET


class Lines(Struct, frozen=True, forbid_unknown_fields=True):
    file: Annotated[str, Meta(description="a.py, a.py:40 or a.py:40-80")]
    skeleton: Annotated[bool, Meta(description="No bodies of functions")] = False
    whole: Annotated[bool, Meta(description="Cut no function")] = False
    if_changed: Annotated[str, Meta(description="hash of an earlier answer")] = ""
    budget: Budget = BUDGET


class Told(Struct, frozen=True, omit_defaults=True):
    lines: Sequence[str]
    opened: int = 0
    cut: str = ""


def has_code(assistant: Assistant) -> bool:
    """Whether there is source code that it may read: no, as long as the vault is locked."""
    try:
        return assistant.reader.code.present()
    except LockedError:
        return False


def context(assistant: Assistant, given: Context) -> Told:
    """What a repository is."""
    collection = ids_of(assistant.reader, given.collection)
    found = assistant.reader.code.context(collection=collection, budget=given.budget)
    lines = [f"{found.files} files, {found.lines} lines"]
    lines += [f"{count} files of {language}" for language, count in found.languages.items()]
    lines += [f"begins in {one}" for one in found.entry_points]
    lines += [f"folder {folder}: {count} files" for folder, count in found.folders.items()]
    lines += [
        f"{one.file} is imported by {one.imported_by}: {', '.join(one.symbols)}"
        for one in found.most_imported
    ]
    lines += [
        f"{one.path} {one.file}:{one.line} is used on {one.references} lines"
        for one in found.most_used
    ]
    lines += [f"{name} changed {count} files last" for name, count in found.authors.items()]
    lines += [f"{file} was changed on {day}" for file, day in found.last_changed.items()]
    return within(Told(lines, opened=found.opened), given.budget, ("lines",))


def outline(assistant: Assistant, given: Outline) -> Told:
    """The definitions of a file."""
    found = assistant.reader.code.outline(given.file)
    lines = [
        f"{one.line}-{one.end_line} {'  ' * one.depth}{one.signature}" for one in found.symbols
    ]
    lines += [f"imports {one}" for one in found.imports]
    lines += [f"imported by {one}" for one in found.imported_by]
    lines.insert(0, f"{found.file}: {found.language}, {found.lines} lines")
    return within(Told(lines, opened=found.opened), given.budget, ("lines",))


def symbols(assistant: Assistant, given: Symbols) -> Told:
    """Where a name is defined and used."""
    found = assistant.reader.code.symbols(given.name)
    lines = [
        f"{one.file}:{one.line}-{one.end_line} {one.kind} {one.path}: {one.signature}"
        for one in found.definitions
    ]
    lines += [
        f"used in {one.file}:{','.join(map(str, one.lines[:20]))} {' '.join(one.callers[:5])}"
        for one in found.uses
    ]
    return within(Told(lines, opened=found.opened), given.budget, ("lines",))


def impact(assistant: Assistant, given: Impact) -> Told:
    """Who depends on a file or a symbol."""
    found = assistant.reader.code.impact(given.of, hops=given.hops)
    lines = [
        f"{one.hops} {one.file}{':' + ','.join(map(str, one.lines[:20])) if one.lines else ''}"
        for one in found.files
    ]
    return within(Told(lines, opened=found.opened), given.budget, ("lines",))


def read(assistant: Assistant, given: Lines) -> Shown:
    """Lines of a file, as many as the budget holds."""
    budget = given.budget
    while True:
        found = assistant.reader.code.read(
            given.file,
            budget=budget,
            skeleton=given.skeleton,
            snap="function" if given.whole else None,
            if_changed=given.if_changed or None,
        )
        answer = Shown.of(found)
        if size(answer) <= given.budget or budget < 2:
            return answer
        budget = budget * 3 // 4
