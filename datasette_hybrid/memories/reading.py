"""Markdown as safe HTML, for reading one memory.

Boundary: memories hold text from anywhere (imports, assistants, web pages). Every piece of it
passes through ``escape`` here, and the only tags and attributes in the result are the ones
written in this file. Raw HTML shows as the text it is; images are never loaded; links leave
without a referrer and only for http, https and mailto. The common forms of Markdown are
understood, and everything else stays as it was written. No expression here can go back and forth
over a long run of blanks: each matches a line's beginning, or pieces of bounded length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from markupsafe import Markup, escape

FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)")
HEADING = re.compile(r"^ {0,3}(#{1,6})(?=\s)")
RULE = re.compile(r"^ {0,3}[-*_]")
ITEM = re.compile(r"^( *)(?:([-*+])|(\d{1,9})[.)])\s+(?:\[([ xX])\]\s+)?(.*)$")
QUOTE = re.compile(r"^ {0,3}>\s?")

INLINE = re.compile(
    r"(?P<code>(?P<ticks>`{1,3})(?P<coded>[^`\n]+)(?P=ticks))"
    r"|(?P<link>!?\[(?P<label>[^\[\]\n]{1,400})\]\((?P<target>[^()\s]{1,2000})\))"
    r"|(?P<bare>https?://[^\s<>\"')\]]{3,2000})"
    r"|(?P<strong>\*\*(?P<strongly>[^*\n]{1,2000})\*\*)"
    r"|(?P<emphasis>(?<![\w*])\*(?P<emphatic>[^*\s][^*\n]{0,2000})\*(?![\w*])"
    r"|(?<![\w_])_(?P<underlined>[^_\s][^_\n]{0,2000})_(?![\w_]))"
)
SAFE_TARGET = re.compile(r"^(?:https?://|mailto:)", re.IGNORECASE)
STARTS = re.compile(r"^\s*(?:[-*+]\s|\d{1,9}[.)]\s|#{1,6}\s|>|`{3}|~{3}|\|)|^(?: {4}|\t)")
WRAPPED = 60  # characters: editors wrap at 72 to 100, people who break lines on purpose earlier
NESTING = 6  # quotes within quotes; deeper ones are shown as text
LINE_LIMIT = 20_000  # characters; a longer line is no Markdown that anybody wrote
RENDERED_LIMIT = 400_000  # characters; beyond it a memory is shown as plain text


def readable(text: str, *, title: str = "") -> Markup:
    """``text`` as HTML. A first heading that repeats ``title`` is left out."""
    if len(text) > RENDERED_LIMIT:
        return Markup("<pre>{}</pre>").format(text)
    lines = text.split("\n")
    for position, line in enumerate(lines):
        if line.strip():
            heading = _heading(line)
            if heading and heading[1].casefold() == title.strip().casefold():
                del lines[: position + 1]
            break
    return Markup("\n").join(_blocks(lines, 0))


def unwrapped(text: str) -> str:
    """``text`` with the newlines of hard-wrapped paragraphs turned into spaces.

    A long line followed by one that starts no list, heading or quote was cut by an editor, not
    by its author; short lines (verse, addresses) stay. Offsets keep their place.
    """
    lines = text.split("\n")
    parts = [lines[0]]
    for before, line in pairwise(lines):
        wrapped = len(before) >= WRAPPED and line.strip() and not STARTS.match(line)
        parts.append((" " if wrapped else "\n") + line)
    return "".join(parts)


def _blocks(lines: Sequence[str], depth: int) -> Iterator[Markup]:
    position = 0
    while position < len(lines):
        line = lines[position]
        if not line.strip():
            position += 1
        elif len(line) > LINE_LIMIT:
            yield Markup("<p>{}</p>").format(line)
            position += 1
        elif fence := FENCE.match(line):
            position, block = _code(lines, position, fence[1])
            yield block
        elif heading := _heading(line):
            level, words = min(heading[0] + 1, 6), heading[1]
            yield Markup("<h{}>{}</h{}>").format(level, _inline(words), level)
            position += 1
        elif _is_rule(line):
            yield Markup("<hr>")
            position += 1
        elif QUOTE.match(line) and depth < NESTING:
            end = _while(lines, position, lambda one: bool(QUOTE.match(one)))
            inner = [QUOTE.sub("", one, count=1) for one in lines[position:end]]
            body = Markup("\n").join(_blocks(inner, depth + 1))
            yield Markup("<blockquote>{}</blockquote>").format(body)
            position = end
        elif ITEM.match(line):
            end = _while(lines, position, _belongs_to_list)
            yield _list(lines[position:end])
            position = end
        elif _starts_table(lines, position):
            end = _while(lines, position, lambda one: "|" in one and len(one) <= LINE_LIMIT)
            yield _table(lines[position:end])
            position = end
        else:
            end = _while(lines, position + 1, _continues)
            yield _paragraph(lines[position:end])
            position = end


def _heading(line: str) -> tuple[int, str] | None:
    """A heading's level and words; ``None`` for another line."""
    found = HEADING.match(line)
    if found is None:
        return None
    return len(found[1]), line[found.end() :].strip().rstrip("#").rstrip()


def _is_rule(line: str) -> bool:
    """Whether a line is three or more of one of ``- * _`` and blanks."""
    if not RULE.match(line):
        return False
    signs = "".join(line.split())
    return len(signs) >= 3 and not signs.strip(signs[0])


def _continues(line: str) -> bool:
    """Whether a line goes on with the paragraph before it."""
    if not line.strip() or len(line) > LINE_LIMIT:
        return False
    return not (FENCE.match(line) or HEADING.match(line) or ITEM.match(line) or QUOTE.match(line))


def _belongs_to_list(line: str) -> bool:
    """Whether a line goes on with a list."""
    return bool(line.strip()) and len(line) <= LINE_LIMIT and not FENCE.match(line)


def _while(lines: Sequence[str], position: int, holds: object) -> int:
    while position < len(lines) and holds(lines[position]):  # type: ignore[operator]
        position += 1
    return position


def _code(lines: Sequence[str], position: int, fence: str) -> tuple[int, Markup]:
    end = position + 1
    while end < len(lines) and not lines[end].strip().startswith(fence):
        end += 1
    body = "\n".join(lines[position + 1 : end])
    return end + 1, Markup("<pre><code>{}</code></pre>").format(body)


def _paragraph(lines: Sequence[str]) -> Markup:
    joined = unwrapped("\n".join(line.strip() for line in lines)).split("\n")
    return Markup("<p>{}</p>").format(Markup("<br>\n").join(_inline(one) for one in joined))


def _list(lines: Sequence[str]) -> Markup:
    """A list as one level of items, indented as written: notes seldom need more."""
    items: list[list[str]] = []
    marks: list[tuple[int, str | None]] = []
    ordered = bool(ITEM.match(lines[0]) and ITEM.match(lines[0])[3])  # type: ignore[index]
    for line in lines:
        item = ITEM.match(line)
        if item:
            items.append([item[5]])
            marks.append((min(len(item[1]) // 2, 4), item[4]))
        else:
            items[-1].append(line.strip())
    rendered = []
    for words, (level, box) in zip(items, marks, strict=True):
        content = Markup("<br>\n").join(_inline(one) for one in words)
        if box is not None:
            sign, label = ("☐", "open") if box == " " else ("☑", "done")
            content = Markup('<span role="img" aria-label="{}">{}</span> {}').format(
                label, sign, content
            )
        css = f"level-{level}" + (" task" if box is not None else "")
        rendered.append(Markup('<li class="{}">{}</li>').format(css, content))
    tag = "ol" if ordered else "ul"
    return Markup("<{}>{}</{}>").format(tag, Markup("").join(rendered), tag)


def _starts_table(lines: Sequence[str], position: int) -> bool:
    following = lines[position + 1] if position + 1 < len(lines) else ""
    return "|" in lines[position] and _is_table_rule(following)


def _is_table_rule(line: str) -> bool:
    """Whether a line is the one under a table's head: ``| --- | :--: |``."""
    cells = line.strip().removeprefix("|").removesuffix("|").split("|")
    return len(line) <= LINE_LIMIT and all(_is_table_dash(cell.strip()) for cell in cells)


def _is_table_dash(cell: str) -> bool:
    dashes = cell.removeprefix(":").removesuffix(":")
    return len(dashes) >= 2 and not dashes.strip("-")


def _table(lines: Sequence[str]) -> Markup:
    head = Markup("").join(Markup("<th>{}</th>").format(_inline(c)) for c in _cells(lines[0]))
    rows = Markup("").join(
        Markup("<tr>{}</tr>").format(
            Markup("").join(Markup("<td>{}</td>").format(_inline(c)) for c in _cells(line))
        )
        for line in lines[2:]
    )
    return Markup(
        '<div class="wide"><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>'
    ).format(head, rows)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _inline(text: str) -> Markup:
    parts: list[Markup] = []
    position = 0
    for found in INLINE.finditer(text):
        parts.append(escape(text[position : found.start()]))
        parts.append(_span(found))
        position = found.end()
    parts.append(escape(text[position:]))
    return Markup("").join(parts)


def _span(found: re.Match[str]) -> Markup:
    if found["code"]:
        return Markup("<code>{}</code>").format(found["coded"])
    if found["link"]:
        if not SAFE_TARGET.match(found["target"]) or found["link"].startswith("!"):
            return escape(found["link"])
        return _anchor(found["target"], found["label"])
    if found["bare"]:
        address = found["bare"].rstrip(".,;:!?")
        return _anchor(address, address) + escape(found["bare"][len(address) :])
    if found["strong"]:
        return Markup("<strong>{}</strong>").format(found["strongly"])
    return Markup("<em>{}</em>").format(found["emphatic"] or found["underlined"])


def _anchor(target: str, label: str) -> Markup:
    return Markup('<a href="{}" rel="noreferrer noopener nofollow ugc">{}</a>').format(
        target, label
    )
