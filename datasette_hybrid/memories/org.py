"""Org mode as the Markdown that says the same, for reading one memory.

Boundary: a text goes in and a text comes out, which :mod:`.markdown` renders and cleans. Nothing is
read, included, evaluated or exported. Each line is looked at once.

https://orgmode.org/worg/org-syntax.html
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .rst import bare, fenced, linked, piped

HEADLINE = re.compile(r"(?P<stars>\*{1,30}) +(?P<said>\S.*)\Z")
STATE = re.compile(r"(?:TODO|DONE|NEXT|WAITING|CANCELLED|CANCELED|STARTED|HOLD)(?= |\Z)")
TAGS = re.compile(r":(?:[\w@#%]{1,80}:){1,20}")
KEYWORD = re.compile(r"#\+(?P<name>[\w-]{1,40}):\s*(?P<said>.*)\Z")
BEGIN = re.compile(r"#\+begin_(?P<name>\w{1,40})", re.IGNORECASE)
END = re.compile(r"#\+end_(\w{1,40})\s*\Z", re.IGNORECASE)
DRAWER = re.compile(r":(?P<name>[\w-]{1,40}):\Z")
ITEM = re.compile(r"(?P<mark>[-+]|\d{1,9}[.)])\s+(?:\[(?P<box>[ xX-])\]\s+)?(?P<said>\S.*)\Z")
NOTE = re.compile(r"\[fn:(?P<name>[\w-]{1,60})\]\s*(?P<said>\S.*)\Z")
INLINE = re.compile(
    r"\[\[(?P<target>[^\[\]\n]{1,2000})\](?:\[(?P<words>[^\[\]\n]{1,1000})\])?\]"
    r"|\[fn:(?P<note>[\w-]{1,60})\]"
    r"|(?<![\w=~*/_+])(?P<mark>[=~*/_+])(?P<said>[^\s](?:[^\n]{0,400}?[^\s])?)(?P=mark)(?![\w])"
    r"|[*`]"
)
MARKS = {"=": "`", "~": "`", "*": "**", "/": "*", "_": "*", "+": "~~"}
UNSEEN = {"options", "startup", "property", "todo", "seq_todo", "tags", "archive", "setupfile"}
UNSEEN |= {"include", "results", "header", "name", "attr_html", "attr_latex", "attr_org", "tblfm"}
UNSEEN |= {"export_file_name", "macro", "bind", "columns", "category", "html_head", "latex_header"}
SHUT = {"properties", "logbook", "clock"}  # drawers that hold no text of a person's


def as_markdown(text: str) -> str:
    """``text``, which is written in Org mode, as Markdown."""
    lines = text.expandtabs(8).split("\n")
    ends = _drawer_ends(lines)
    made: list[str] = []
    at, hanging = 0, -1  # hanging: how far the text of the list's last item stands in
    while at < len(lines):
        line = lines[at].strip()
        indent = len(lines[at]) - len(lines[at].lstrip(" "))
        if not line:
            made.append("")
        elif found := HEADLINE.match(lines[at]):
            made += ["", f"{'#' * min(len(found['stars']), 6)} {_headline(found['said'])}", ""]
            hanging = -1
        elif begun := BEGIN.match(line):
            end = _block_end(lines, at + 1)
            made += ["", *_block(begun["name"].casefold(), lines[at + 1 : end]), ""]
            at = end
        elif (drawer := DRAWER.match(line)) and ends[at]:
            if drawer["name"].casefold() in SHUT:
                at = ends[at]
        elif found := KEYWORD.match(line):
            made += _keyword(found["name"].casefold(), found["said"])
        elif line == "#" or line.startswith("# ") or END.match(line) or line.upper() == ":END:":
            pass
        elif line[0] == "|":
            end = _run(lines, at, "|")
            made += ["", *_table(lines[at:end])]
            at = end - 1
        elif line == ":" or line.startswith(": "):
            end = _run(lines, at, ":")
            made += ["", *fenced([one.strip()[2:] for one in lines[at:end]]), ""]
            at = end - 1
        elif len(line) >= 5 and not line.strip("-"):
            made += ["", "---", ""]
        elif found := NOTE.match(line):
            made += ["", f"[^{found['name']}]: {_inline(found['said'])}"]
        elif found := ITEM.match(line):
            if hanging < 0:
                made.append("")
            hanging = indent + len(found["mark"]) + 1
            made.append(" " * indent + _item(found))
        else:
            if indent < hanging and made and not made[-1]:
                hanging = -1
            made.append(" " * max(hanging, 0) + _inline(line))
        at += 1
    return "\n".join(made) + "\n"


def _drawer_ends(lines: Sequence[str]) -> list[int]:
    """For each line where the drawer ends that would begin there, before the next headline."""
    ends, end = [0] * len(lines), 0
    for at in range(len(lines) - 1, -1, -1):
        if lines[at].strip().upper() == ":END:":
            end = at
        elif lines[at].startswith("*"):
            end = 0
        else:
            ends[at] = end
    return ends


def _block_end(lines: Sequence[str], at: int) -> int:
    """Where a block ends; the end of the text where it is not said."""
    while at < len(lines) and not END.match(lines[at].strip()):
        at += 1
    return at


def _run(lines: Sequence[str], at: int, mark: str) -> int:
    while at < len(lines) and lines[at].lstrip().startswith(mark):
        at += 1
    return at


def _headline(said: str) -> str:
    words, _, last = said.rstrip().rpartition(" ")
    tags = TAGS.fullmatch(last) if words else None
    words = words.rstrip() if tags else said
    state = STATE.match(words)
    if state:
        words = words[state.end() :].strip()
    shown = " ".join([*([f"**{state[0]}**"] if state else []), _inline(words)])
    topics = [f"`{one}`" for one in last.split(":") if one] if tags else []
    return " ".join([shown, *topics])


def _keyword(name: str, said: str) -> list[str]:
    if not said or name in UNSEEN:
        return []
    if name == "title":
        return [f"# {_inline(said)}", ""]
    if name == "caption":
        return [f"*{_inline(said)}*", ""]
    return [f"- **{name.capitalize()}:** {_inline(said)}"]


def _block(name: str, lines: Sequence[str]) -> list[str]:
    body = [line.removeprefix(",") for line in lines]
    if name == "quote":
        return [f"> {_inline(line.strip())}".rstrip() for line in body]
    if name == "verse":
        return [f"{_inline(line.strip())}\\" if line.strip() else "" for line in body]
    if name == "comment":
        return []
    if name == "center":
        return [_inline(line.strip()) for line in body]
    by = min((len(line) - len(line.lstrip(" ")) for line in body if line.strip()), default=0)
    return fenced([line[by:] for line in body])


def _table(lines: Sequence[str]) -> list[str]:
    rows = [line.strip().strip("|").split("|") for line in lines if not _is_rule(line)]
    return piped([[cell.strip() for cell in row] for row in rows], _inline)


def _is_rule(line: str) -> bool:
    return line.strip().startswith("|-")


def _item(found: re.Match[str]) -> str:
    mark = found["mark"] if found["mark"][0].isdigit() else "-"
    box = f"[{'x' if found['box'] in 'xX' else ' '}] " if found["box"] else ""
    term, between, said = found["said"].partition(" :: ")
    words = f"**{_inline(term)}:** {_inline(said)}" if between else _inline(term)
    return f"{mark} {box}{words}"


def _inline(words: str) -> str:
    return INLINE.sub(_replaced, words)


def _replaced(found: re.Match[str]) -> str:
    if found["note"]:
        return f"[^{found['note']}]"
    if found["mark"]:
        mark, said = MARKS[found["mark"]], found["said"]
        return f"{mark}{said}{mark}"
    target, words = found["target"], found["words"]
    if target is None:
        return f"\\{found[0]}"
    kind, colon, rest = target.partition(":")
    if colon and kind in ("file", "attachment"):
        target = rest.partition("::")[0]
    elif kind == "id" or target[0] in "*#" or (colon and kind not in ("http", "https", "mailto")):
        return bare(words or target.lstrip("*#"))
    return linked(words or target, target)
