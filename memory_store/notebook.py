"""Search answers in a notebook: one HTML table, readable on light and dark themes.

Boundary: notes are untrusted text. Everything is escaped; there are no links, no scripts, no
images and no class names that a note could borrow, so that an opened notebook fetches nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from memory_store.plain_text import without_marks
from memory_store.titles import shown_title

if TYPE_CHECKING:
    from memory_store.records import SearchResponse, SearchResult

PREVIEW_CHARACTERS = 280  # about three lines of a notebook cell
LEAD_CHARACTERS = 60  # context before the first highlighted word

_RULE = "border-bottom:1px solid rgba(128,128,128,.25)"
_CELL = f"padding:.55em .7em;vertical-align:top;text-align:left;{_RULE}"
_QUIET = "font-size:.88em;opacity:.7"
_MARK = "background:rgba(255,213,79,.45);color:inherit;padding:0 .1em;border-radius:.15em"
_TRACK = "display:inline-block;width:4.5em;height:.45em;border-radius:.25em"
_FILL = "display:block;height:100%;border-radius:.25em;background:#3b7dd8"


def response_table(response: SearchResponse) -> str:
    """The answer as an HTML fragment: ranked rows, the memories opened, and what was missing."""
    rows = "".join(_row(row) for row in response.rows)
    headings = "".join(
        f'<th scope="col" style="{_CELL};font-weight:600">{name}</th>'
        for name in ("#", "Score", "Memory")
    )
    nothing = f'<tr><td colspan="3" style="{_CELL}">Nothing found.</td></tr>'
    return (
        '<div style="max-width:60em;line-height:1.45">'
        '<table style="border-collapse:collapse;width:100%;table-layout:fixed;color:inherit;'
        'font-size:inherit;line-height:inherit">'
        f'<caption style="text-align:left;padding:.3em .7em;{_QUIET}">{escape(response.query)}'
        '</caption><colgroup><col style="width:2.6em"><col style="width:7em"><col></colgroup>'
        f"<thead><tr>{headings}</tr></thead><tbody>{rows or nothing}</tbody></table>"
        f"{_footer(response)}</div>"
    )


def _row(row: SearchResult) -> str:
    score = round(max(0.0, min(row.score, 1.0)) * 100)
    facts = [row.type, row.created[:10], " ".join(f"#{topic}" for topic in row.topics), row.id[:8]]
    facts += [f"by {row.by}"] if row.by else []
    start = row.passages[0].start if row.passages else 0
    title = shown_title(row.title, row.preview, start) or "(untitled)"
    return (
        f'<tr><td style="{_CELL};opacity:.7">{row.rank}</td>'
        f'<td style="{_CELL};white-space:nowrap">{score} '
        f'<span style="{_TRACK};background:rgba(128,128,128,.2)" aria-hidden="true">'
        f'<span style="{_FILL};width:{score}%"></span></span></td>'
        f'<td style="{_CELL};overflow-wrap:anywhere"><strong>'
        f"{escape(title)}</strong>"
        f'<div style="{_QUIET}">{escape(" · ".join(fact for fact in facts if fact))}</div>'
        f"<div>{_preview(row)}</div></td></tr>"
    )


def _preview(row: SearchResult) -> str:
    if not row.passages:
        return _excerpt(row.preview, ())
    passage = row.passages[0]
    if row.line is not None:  # source code
        return _excerpt(passage.text, passage.highlights)
    return _excerpt(*without_marks(passage.text, passage.highlights))


def _excerpt(text: str, highlights: Sequence[tuple[int, int]]) -> str:
    """A few lines of ``text`` around its first highlight, escaped, with the highlights marked."""
    spans = sorted((max(0, a), min(b, len(text))) for a, b in highlights if a < b)
    begin = max(0, spans[0][0] - LEAD_CHARACTERS) if spans else 0
    if begin:
        begin = text.find(" ", begin, spans[0][0]) + 1 or begin
    end = min(len(text), begin + PREVIEW_CHARACTERS)
    if end < len(text):
        space = text.rfind(" ", begin, end)
        end = space if space > begin else end  # between words, where there are any
    pieces = ["… " if begin else ""]
    at = begin
    for start, stop in spans:
        start, stop = max(start, at), min(stop, end)
        if start < stop:
            pieces.append(escape(text[at:start]))
            pieces.append(f'<mark style="{_MARK}">{escape(text[start:stop])}</mark>')
            at = stop
    pieces += [escape(text[at:end]), " …" if end < len(text) else ""]
    return "".join(pieces)


def _footer(response: SearchResponse) -> str:
    noun = "memory" if response.total == 1 else "memories"
    lines = [
        f"{response.opened:,} of {response.total:,} {noun} opened · "
        f"{response.milliseconds:,.0f} ms",
        *response.remarks(),
    ]
    return "".join(
        f'<div style="padding:.3em .7em;{_QUIET}">{escape(line)}</div>' for line in lines
    )
