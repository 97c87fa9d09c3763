"""What a task has beside its text and status: the day it is due, and steps.

Both are the memory's own: ``due`` in its metadata, where front matter has it, too, and steps as a
Markdown list with boxes.

Boundary: works on opened texts for one call; an error names a step's number, never its text.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import count
from typing import Any

from memory_store.dates import parse_moment, parse_time
from memory_store.errors import BadInputError
from memory_store.records import Memory
from memory_store.store import MemoryStore

DUE = "due"
LOOKED_AT = 500  # tasks, the newest, among which what is due is looked for
STEP = re.compile(r"^([^\S\n]*[-*+] \[)([ xX])(?=\] )", re.MULTILINE)


def day(said: str) -> str:
    """A day as text: ``2024-05-31``. Raises BadInputError."""
    return parse_time(said, parameter=DUE)[:10]


def due(memory: Memory) -> str:
    """The day a task is due; empty where it has none that is a day."""
    try:
        return day(str(memory.metadata[DUE])) if DUE in memory.metadata else ""
    except BadInputError:  # written by other means
        return ""


def due_first(store: MemoryStore, due_by: str = "", **filters: Any) -> tuple[list[Memory], bool]:
    """Tasks: what is due, the earliest first, then the others, the newest first.

    With ``due_by`` only what is due by the end of that day, or within that span. Also whether there
    may be older tasks, which were not looked at. Raises BadInputError.
    """
    filters = {"status": "open", **filters}
    found = store.list(type="task", limit=LOOKED_AT, **filters)
    more = len(found) == LOOKED_AT
    if due_by:
        last = parse_moment(due_by, parameter="due_by", end=True, ahead=True)
        found = [one for one in found if due(one) and parse_moment(due(one)) <= last]
    return sorted(found, key=lambda one: due(one) or "9999-99-99"), more


def ticked(text: str) -> str:
    """How many steps are done, as ``1/3``; empty without steps."""
    marks = [found[2] for found in STEP.finditer(text)]
    return f"{sum(mark != ' ' for mark in marks)}/{len(marks)}" if marks else ""


def tick(text: str, steps: Collection[int]) -> str:
    """The text with those steps done, counted from 1. Raises BadInputError."""
    there, steps = len(STEP.findall(text)), set(steps)
    wrong = [number for number in steps if not 1 <= number <= there]
    if wrong:
        raise BadInputError(
            f"tick: there is no step {wrong[0]}; this memory has {there} (lines that begin "
            "with - [ ])",
            "tick",
        )
    number = count(1)
    return STEP.sub(lambda found: found[1] + ("x" if next(number) in steps else found[2]), text)
