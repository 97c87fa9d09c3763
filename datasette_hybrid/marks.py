"""Text from memories as HTML, with what was looked for in ``<mark>``.

Boundary: text enters HTML through ``escape`` alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from markupsafe import Markup, escape

Spans = Callable[[str], Sequence[tuple[int, int]]]
"""Where in a piece of text something is to be marked."""

MARK, MARK_END = Markup("<mark>"), Markup("</mark>")


def marked(text: str, highlights: Iterable[Sequence[int]]) -> Markup:
    """``text`` escaped, with the character ranges in ``highlights`` inside ``<mark>``."""
    parts: list[Markup] = []
    position = 0
    for start, end in sorted((int(pair[0]), int(pair[1])) for pair in highlights):
        if start < position or end <= start or end > len(text):
            continue  # overlapping: the earlier one stays
        parts += escape(text[position:start]), MARK, escape(text[start:end]), MARK_END
        position = end
    return joined([*parts, escape(text[position:])])


def joined(parts: Sequence[Markup]) -> Markup:
    """Pieces of HTML in a row: ``Markup.join`` asks each of them again whether it is one."""
    return Markup("".join(parts))
