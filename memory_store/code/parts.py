"""Parts of a source text: some lines, a whole function, its skeleton, what a budget holds.

Boundary: opened text comes in and parts of it go out; nothing is kept.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from memory_store.code.definitions import Definition

_BODY = re.compile(r"\{|:[ \t]*(?:#[^\n]*)?\n|\n[ \t]*\n|=>|=[ \t]*\n")
_BODIES = ("function", "method")


def lines_of(text: str) -> list[str]:
    """The lines of a text, each with its end."""
    return (
        text.splitlines(keepends=True) if "\r" not in text else re.findall(r"[^\n]*\n|[^\n]+", text)
    )


def folder_of(path: str) -> str:
    """The folder of a file, ``.`` for the root."""
    return path.rpartition("/")[0] or "."


def digest(text: str) -> str:
    """What says, to one who has read a text, whether it is still the same."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def around(text: str, found: Sequence[Definition], first: int, last: int) -> tuple[int, int]:
    """Lines ``first`` to ``last`` (from 1), widened so that no function is cut; where there is
    none, so that what begins on them is whole: a class by its first line."""
    met = [one for one in found if one.line <= last and one.end_line >= first]
    chosen = [one for one in met if one.kind in _BODIES] or [
        one for one in met if text.count("\n", 0, one.start + _decorators(text, one)) + 1 >= first
    ]
    return min([first, *(one.line for one in chosen)]), max([last, *(o.end_line for o in chosen)])


def skeleton(text: str, found: Sequence[Definition]) -> list[tuple[int, str]]:
    """Lines of a text with their numbers, without the bodies of its functions: in the place of
    each stands a line that names what was left out."""
    lines = lines_of(text)
    left_out: dict[int, int] = {}  # the first line of a body → its last
    for one in found:
        if one.kind not in _BODIES:
            continue
        begun = _BODY.search(text, one.start + _decorators(text, one), one.end)
        if begun is None:
            continue
        head = text.count("\n", 0, begun.end()) + (not text[: begun.end()].endswith("\n"))
        last = one.end_line - lines[one.end_line - 1].strip().startswith(("}", "end"))
        if last > head + 1:
            left_out[head + 1] = max(last, left_out.get(head + 1, 0))
    kept = list[tuple[int, str]]()
    number = 1
    while number <= len(lines):
        last = left_out.get(number, 0)
        if last:
            indent = re.match(r"[ \t]*", lines[number - 1])
            kept.append((number, f"{indent[0] if indent else ''}… {number}-{last}\n"))
            number = last + 1
        else:
            kept.append((number, lines[number - 1]))
            number += 1
    return kept


def _decorators(text: str, one: Definition) -> int:
    """How far into a definition its own first line begins."""
    part = text[one.start : one.end]
    at = part.find(one.name)
    while at > 0:
        line = part.rfind("\n", 0, at) + 1
        if not part[line:at].lstrip().startswith(("@", "#[")):
            return line
        at = part.find(one.name, part.find("\n", at) + 1 or len(part))
    return 0
