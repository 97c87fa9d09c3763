"""What stands for the title of a memory that has none, where its text is shown anyway.

Boundary: reads text that a surface is about to show; keeps nothing.
"""

from __future__ import annotations

import re

TITLE_CHARACTERS = 50  # of a text that stands in for a title: a line of a list, or half of one
_LINE_MARK = re.compile(r"\s*(?:(?:#{1,6}|[-*+>]|\d+[.)])\s+)*(?:\[[ xX]\]\s+)?")


def shown_title(title: str, text: str, start: int = 0) -> str:
    """The title as stored, or the first words of ``text`` in its place, ending in ``…``.

    ``text`` is what the asker sees of the memory anyway; ``start`` is where it begins in the
    whole (``Passage.start``). At most about :data:`TITLE_CHARACTERS` characters of its first line
    with words; empty where there are none.
    """
    if title.strip():
        return title
    lines = [_LINE_MARK.sub("", line, count=1).split() for line in text.splitlines()]
    lines = [line for line in lines if any(map(str.isalnum, "".join(line)))]
    if not lines:
        return ""
    line = " ".join(lines[0])
    first = line
    if len(line) > TITLE_CHARACTERS:
        first = line[: TITLE_CHARACTERS + 1].rpartition(" ")[0] or line[:TITLE_CHARACTERS]
    more = "…" if len(first) < len(line) or len(lines) > 1 else ""
    return f"{'…' if start else ''}{first.rstrip(',;:') if more else first}{more}"
