"""reStructuredText as the Markdown that says the same, for reading one memory.

Boundary: a text goes in and a text comes out, which :mod:`.markdown` renders and cleans. Nothing is
read, included or run: a directive that would (``include``, ``raw``, ``csv-table``) shows as it was
typed, like every directive not known here. Each line is looked at once at each depth of nesting,
and at most ``DEEPEST`` deep. ``docutils`` reads more, but 100 KB of opened marks in one paragraph
keep it busy for half a minute (its time grows with the square), and a role that one text defines
stays defined for all others in the process.

https://docutils.sourceforge.io/docs/ref/rst/restructuredtext.html
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import pairwise

DEEPEST = 6
LONGEST_REPLACEMENT = 200  # characters that ``|name|`` stands for
RULED = re.compile(r"([=\-`:.'\"~^_*+#<>!$%&,/;?@\\|])\1{2,}\s*\Z")
DIRECTIVE = re.compile(
    r"\.\. (?:\|(?P<short>[^|]{1,80})\| )?(?P<name>[\w:+.-]{1,60})::(?: (?P<said>.*))?\Z"
)
TARGET = re.compile(
    r"\.\. _(?P<name>`[^`]{1,200}`|[^:`]{1,200}):(?: (?P<address>\S{1,2000}))?\s*\Z"
)
NOTE = re.compile(r"\.\. \[(?P<name>[#*]?[\w.-]{0,60})\] ?(?P<said>.*)\Z")
FIELD = re.compile(r":(?P<name>[^:\s][^:]{0,80}):(?: (?P<said>.*))?\Z")
BULLET = re.compile(r"(?P<mark>[-*+•]|\(?(?:\d{1,9}|#|[a-zA-Z])[.)])(?P<gap> +)(?=\S)")
GRID = re.compile(r"\+(?:[-=]+\+)+\Z")
COLUMNS = re.compile(r"=+(?: +=+)+\s*\Z")
INLINE = re.compile(
    r"(?P<code>``[^\n]{1,400}?``)"
    r"|:(?P<role>[a-zA-Z][\w:+.-]{0,40}):`(?P<of_role>[^`]{1,500})`"
    r"|`(?P<words>[^`<]{0,500}?)\s*<(?P<address>[^`<>]{1,2000})>`__?"
    r"|`(?P<quoted>[^`]{1,500})`__?(?!\w)"
    r"|\[(?P<note>[#*]?[\w.-]{0,60})\]_(?!\w)"
    r"|\|(?P<short>[^|\s][^|\n]{0,80})\|_{0,2}"
    r"|(?<![\w`])(?P<word>\w[\w.-]{0,80}(?<!_))__?(?![\w`])"
    r"|\\ "
)
ADDRESS = re.compile(r"(?:https?://|mailto:)\S", re.IGNORECASE)
CODE = {"code", "code-block", "sourcecode", "parsed-literal", "math", "highlight", "doctest"}
BOXES = {"note", "tip", "hint", "important", "warning", "caution", "attention", "danger", "error"}
BOXES |= {"admonition", "seealso", "todo", "topic", "sidebar"}
BOXES |= {"versionadded", "versionchanged", "deprecated"}
QUOTES = {"epigraph", "highlights", "pull-quote"}
PICTURES = {"image", "figure"}
PLAIN = {"container", "compound", "list-table", "rst-class", "only", "tabs", "tab"}
LISTS = {"toctree"}
UNSEEN = {"contents", "index", "sectnum", "currentmodule", "default-role", "meta"}
PROSE_ROLES = {"ref", "doc", "term", "any", "download", "numref", "title", "abbr", "sub", "sup"}


SIGNS = re.compile(
    r"^\.\. (?:[\w:+.-]{1,60}::|_[^:\n]{1,200}:)|(?<![\w:]):[a-zA-Z][\w:+.-]{0,40}:`[^`\n]"
    r"|`[^`<\n]{1,400}<[^`<>\n]{1,1000}>`_",
    re.MULTILINE,
)
"""What is in no other markup: a directive, a target, a role, a link."""


def looks_like(text: str) -> bool:
    """Whether a text is written in reStructuredText."""
    return SIGNS.search(text) is not None


def as_markdown(text: str) -> str:
    """``text``, which is reStructuredText, as Markdown."""
    lines = text.expandtabs(8).split("\n")
    return "\n".join(Blocks(_meanings(lines), {}).of(lines, 0)) + "\n"


def _meanings(lines: Sequence[str]) -> dict[str, str]:
    """What names stand for anywhere in the text: ``_name`` an address, ``|name|`` words."""
    found: dict[str, str] = {}
    for line in map(str.strip, lines):
        if not line.startswith(".. "):
            continue
        if target := TARGET.match(line):
            if target["address"]:
                found[f"_{_name(target['name'])}"] = target["address"]
        elif (named := DIRECTIVE.match(line)) and named["short"] and named["name"] == "replace":
            found[f"|{named['short']}|"] = (named["said"] or "")[:LONGEST_REPLACEMENT]
    return found


def _name(words: str) -> str:
    return " ".join(words.strip("`").split()).casefold()


class Blocks:
    """The blocks of a text, each as lines of Markdown. Titles have levels as they come."""

    def __init__(self, meanings: dict[str, str], levels: dict[tuple[str, bool], int]) -> None:
        self._meanings = meanings
        self._levels = levels

    def of(self, lines: Sequence[str], depth: int) -> list[str]:
        """The lines as Markdown; what is nested too deep as it was typed."""
        if depth > DEEPEST:
            return fenced(lines)
        made: list[str] = []
        at = 0
        while at < len(lines):
            if not lines[at].strip():
                made.append("")
                at += 1
                continue
            for read in (self._title, self._table, self._explicit, self._item, self._indented):
                if (found := read(lines, at, depth)) is not None:
                    at, shown = found
                    break
            else:
                at, shown = self._paragraph(lines, at, depth)
            made += ["", *shown] if shown and made and made[-1] and read != self._item else shown
        return made

    def _title(self, lines: Sequence[str], at: int, _: int) -> tuple[int, list[str]] | None:
        over = RULED.match(lines[at])
        under = at + 2 if over else at + 1
        ruled = RULED.match(lines[under]) if under < len(lines) else None
        words = lines[under - 1].strip() if under < len(lines) else ""
        fits = over is None or (ruled is not None and ruled[1] == over[1])
        if ruled and fits and words and not RULED.match(words) and (over or lines[at][0] != " "):
            kind = (ruled[1], over is not None)
            level = self._levels.setdefault(kind, len(self._levels) + 1)
            return under + 1, [f"{'#' * min(level, 6)} {self._inline(words)}", ""]
        if over and (at + 1 == len(lines) or not lines[at + 1].strip()):
            return at + 1, ["---", ""]
        return None

    def _table(self, lines: Sequence[str], at: int, _: int) -> tuple[int, list[str]] | None:
        if GRID.match(lines[at].rstrip()):
            end = _end(lines, at, lambda line: line[:1] in ("+", "|"))
            return end, _grid(lines[at:end]) or fenced(lines[at:end])
        if COLUMNS.match(lines[at]):
            end = _end_of_columns(lines, at)
            return end, _columns(lines[at:end], self._inline) or fenced(lines[at:end])
        return None

    def _explicit(self, lines: Sequence[str], at: int, depth: int) -> tuple[int, list[str]] | None:
        """What begins with two points: directives, targets, notes and comments."""
        line = lines[at]
        if line.rstrip() != ".." and not line.startswith((".. ", "__ ")):
            return None
        end = at + 1 if line.startswith("__ ") else _end_of_block(lines, at + 1)
        body = _outdented(lines[at + 1 : end])
        if named := DIRECTIVE.match(line.rstrip()):
            if named["short"]:
                return end, []
            typed = lines[at:end]
            return end, self._directive(
                named["name"].casefold(), named["said"] or "", body, typed, depth
            )
        if note := NOTE.match(line.rstrip()):
            words = self._inline(" ".join([note["said"], *(one.strip() for one in body)]).strip())
            return end, [f"[^{note['name'].lstrip('#*') or 'auto'}]: {words}", ""]
        return end, []

    def _directive(
        self, name: str, said: str, body: list[str], typed: Sequence[str], depth: int
    ) -> list[str]:
        options = _end(body, 0, lambda line: FIELD.match(line) is not None)
        given = {one[1]: one[2] or "" for one in map(FIELD.match, body[:options]) if one}
        rest = _outdented(body[options:])
        apart = [""] if typed[1:] and not typed[1].strip() else []
        if name in UNSEEN:
            return []
        if name in CODE:
            return [*fenced(rest or [said]), ""]
        if name in BOXES:
            kind = "note" if name in ("admonition", "topic", "sidebar", "seealso") else name
            titled = name in ("admonition", "topic", "sidebar")
            title = said if titled else name.capitalize() + (f" {said}" if name[0] == "v" else "")
            first = [] if titled or name[0] == "v" else [said]
            return _quoted(
                [f"[!{kind}] {self._inline(title)}", *self.of([*first, *apart, *rest], depth + 1)]
            )
        if name in QUOTES:
            return _quoted(self.of([said, *rest], depth + 1))
        if name == "rubric":
            return [f"**{self._inline(said)}**", ""]
        if name in PICTURES:
            alt = given.get("alt") or said.rpartition("/")[2]
            return [linked(alt, said), "", *self.of(rest, depth + 1)]
        if name in LISTS:
            return [f"- {bare(one.strip())}" for one in rest if one.strip()] + [""]
        if name in PLAIN:
            head = (
                [f"**{self._inline(said)}**", ""] if said and name in ("list-table", "tab") else []
            )
            return [*head, *self.of(rest, depth + 1)]
        return [*fenced(typed), ""]

    def _item(self, lines: Sequence[str], at: int, depth: int) -> tuple[int, list[str]] | None:
        """An item of a list, a field, a term with its definition, or lines that stay lines."""
        line = lines[at]
        if line.startswith("| ") or line.rstrip() == "|":
            end = _end(lines, at, lambda one: one.startswith("|"))
            verses = [self._inline(one[1:].strip()) for one in lines[at:end]]
            return end, [f"{one}\\" if one else "" for one in verses[:-1]] + [verses[-1], ""]
        if found := BULLET.match(line):
            mark = found["mark"].strip("()")
            digits = mark.rstrip(".)")
            if digits.isalpha() and not line[found.end() :].strip():
                return None
            mark = mark if mark in "-*+" else f"{digits if digits.isdigit() else 1}."
            mark = "-" if found["mark"] == "•" else mark
            return self._hung(lines, at, depth, f"{mark} ", line[found.end() :], found.end())
        if found := FIELD.match(line.rstrip()):
            head = f"- **{self._inline(found['name'])}:** "
            return self._hung(lines, at, depth, "  ", found["said"] or "", 1, head)
        below = lines[at + 1] if at + 1 < len(lines) else ""
        if below.startswith("  ") and below.strip() and line[0] != " " and line[-2:] != "::":
            term = f"- **{self._inline(line.strip())}**"
            return self._hung(lines, at, depth, "  ", "", 1, term)
        return None

    def _hung(
        self,
        lines: Sequence[str],
        at: int,
        depth: int,
        mark: str,
        first: str,
        indent: int,
        head: str = "",
    ) -> tuple[int, list[str]]:
        """A block that hangs on its first line, behind a mark of Markdown."""
        end = _end_of_block(lines, at + 1, indent if indent > 1 else 1)
        below = _outdented(lines[at + 1 : end])
        if first and below and not lines[at + 1].strip():
            below = ["", *below]
        if head:
            shown = self.of([*([first] if first else []), *below], depth + 1)
            begun = [head + (shown[0] if first and shown else "")]
            shown = shown[1:] if first else ["", *shown]
        else:
            shown = self.of([first, *below], depth + 1)
            begun, shown = [mark + (shown[0] if shown else "")], shown[1:]
        hung = " " * len(mark)
        return end, begun + [hung + one if one else "" for one in shown]

    def _indented(self, lines: Sequence[str], at: int, depth: int) -> tuple[int, list[str]] | None:
        if not lines[at].startswith(" "):
            return None
        end = _end_of_block(lines, at)
        return end, [*_quoted(self.of(_outdented(lines[at:end]), depth + 1)), ""]

    def _paragraph(self, lines: Sequence[str], at: int, _: int) -> tuple[int, list[str]]:
        end = _end(lines, at, lambda line: bool(line.strip()))
        words = " ".join(line.strip() for line in lines[at:end])
        if words.startswith(">>> "):
            return end, [*fenced(lines[at:end]), ""]
        if not words.endswith("::"):
            return end, [self._inline(words)]
        said = words[:-2].rstrip() + (":" if words[:-2].strip() and words[-3:-2] != " " else "")
        start = _end(lines, end, lambda line: not line.strip())
        stop = _end_of_block(lines, start) if start < len(lines) else start
        if start == stop:
            return end, [self._inline(words)]
        return stop, [self._inline(said), "", *fenced(_outdented(lines[start:stop])), ""]

    def _inline(self, words: str) -> str:
        shown = INLINE.sub(self._replaced, words)
        return f"\\{shown}" if shown.startswith(("# ", "> ")) else shown

    def _replaced(self, found: re.Match[str]) -> str:
        if found["code"]:
            return found[0]
        if found["role"]:
            role, said = (found["role"].rpartition(":")[2], " ".join(found["of_role"].split()))
            shown = said.partition(" <")[0]
            if role in ("pep", "rfc"):
                return f"{role.upper()} {shown}"
            if role in ("strong", "emphasis"):
                return f"**{shown}**" if role == "strong" else f"*{shown}*"
            return shown if role in PROSE_ROLES else f"`{shown.lstrip('~!')}`"
        if found["address"]:
            address = " ".join(found["address"].split())
            if address.endswith("_"):
                address = self._meanings.get(f"_{_name(address[:-1])}", "")
            return linked(found["words"] or address, address)
        if found["note"] is not None:
            return f"[^{found['note'].lstrip('#*') or 'auto'}]"
        if found["short"]:
            return self._meanings.get(f"|{found['short']}|", found[0])
        if named := found["quoted"] or found["word"]:
            meant = self._meanings.get(f"_{_name(named)}")
            return linked(named, meant) if meant else named if found["quoted"] else found[0]
        return ""


def _end(lines: Sequence[str], at: int, holds: Callable[[str], bool]) -> int:
    """Where the lines end for which it holds."""
    while at < len(lines) and holds(lines[at]):
        at += 1
    return at


def _end_of_block(lines: Sequence[str], at: int, indent: int = 1) -> int:
    """Where the indented lines end, with the blank ones between them."""
    end = at
    while at < len(lines):
        if lines[at].strip():
            if not lines[at].startswith(" " * indent):
                break
            end = at + 1
        at += 1
    return end


def _end_of_columns(lines: Sequence[str], at: int) -> int:
    """A table of columns has a rule above, one below its head if it has one, and one at its end."""
    rules = 0
    for number in range(at, len(lines)):
        line = lines[number].rstrip()
        if COLUMNS.match(line):
            rules += 1
            following = lines[number + 1].strip() if number + 1 < len(lines) else ""
            if rules > 1 and not following:
                return number + 1
        elif line and line[:1] in "=" and rules:
            return number
    return len(lines)


def _outdented(lines: Sequence[str]) -> list[str]:
    """The lines without the white space that all have in front, and blank ones around them."""
    present = [len(line) - len(line.lstrip(" ")) for line in lines if line.strip()]
    by = min(present, default=0)
    shown = [line[by:] for line in lines]
    while shown and not shown[0].strip():
        del shown[0]
    return shown


def fenced(lines: Sequence[str]) -> list[str]:
    """The lines as a block of code, behind a fence that is in none of them."""
    longest = max((len(run) for run in re.findall("`+", "\n".join(lines))), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence, *lines, fence]


def _quoted(lines: Sequence[str]) -> list[str]:
    return [f"> {line}".rstrip() for line in lines]


def _grid(lines: Sequence[str]) -> list[str]:
    """A table that is drawn; nothing where cells span others."""
    border = lines[0].rstrip()
    places = [at for at, one in enumerate(border) if one == "+"]
    rows = [_empty_cells(len(places) - 1)]
    for line in map(str.rstrip, lines[1:]):
        if GRID.match(line):
            if [at for at, one in enumerate(line) if one == "+"] != places:
                return []
            rows.append(_empty_cells(len(places) - 1))
            continue
        if any(line[at : at + 1] != "|" for at in places):
            return []
        for number, (start, end) in enumerate(pairwise(places)):
            rows[-1][number].append(line[start + 1 : end].strip())
    joined = map(_joined, rows)
    return piped([row for row in joined if any(row)], lambda words: words)


def _columns(lines: Sequence[str], inline: Callable[[str], str]) -> list[str]:
    """A table whose columns stand under a rule. A line costs as much as it is long."""
    starts = [found.start() for found in re.finditer("=+", lines[0])]
    spans = [*zip(starts, [*starts[1:], None], strict=True)]
    rows: list[list[list[str]]] = []
    for line in lines[1:]:
        if not line.strip() or COLUMNS.match(line):
            continue
        reached = spans[: bisect_left(starts, len(line))]
        cells = [line[start:end].strip() for start, end in reached]
        if cells[:1] != [""] or not rows:
            rows.append([])
        row = rows[-1]
        row += _empty_cells(len(cells) - len(row))
        for number, cell in enumerate(cells):
            row[number].append(cell)
    return piped([*map(_joined, rows)], inline)


def _empty_cells(count: int) -> list[list[str]]:
    return [[] for _ in range(count)]


def _joined(row: Sequence[Sequence[str]]) -> list[str]:
    return [" ".join(filter(None, lines)) for lines in row]


def piped(rows: Sequence[Sequence[str]], inline: Callable[[str], str]) -> list[str]:
    """Rows as a table of Markdown, the first of them its head, which is as wide as the widest."""
    if not rows:
        return []
    shown = [" | ".join(inline(cell).replace("|", "\\|") for cell in row) for row in rows]
    width = max(map(len, rows))
    head = f"| {shown[0]} |{' |' * (width - len(rows[0]))}"
    return [head, f"|{'---|' * width}", *(f"| {row} |" for row in shown[1:]), ""]


def linked(words: str, address: str) -> str:
    """A link of Markdown; of an address that leads nowhere from a page, the words and itself."""
    words = " ".join(words.split())
    address = re.sub(r"[<>`\n]", "", address).strip()
    if ADDRESS.match(address):
        return f"[{bare(words)}](<{address}>)"
    return words if words == address or not address else f"{words} (`{address}`)"


def bare(words: str) -> str:
    """Words for a link: no bracket in them is one of Markdown."""
    return re.sub(r"([\[\]\\])", r"\\\1", words)
