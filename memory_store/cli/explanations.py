"""The explanation of a search on a terminal: each result's way, then the stages as small tables.

Boundary: all text passes :func:`memory_store.cli.terminal.printable_line`.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET

from memory_store.cli.terminal import DIM, printable_line, shortened, styled, width
from memory_store.records.explanation import Account, Stage, Verdict
from memory_store.search.explain.words import (
    StageWords,
    Table,
    boost_sentence,
    changes,
    moves,
    ordinal,
    score_name,
    stage_words,
    terms,
    why_about,
    why_words,
)

ARROW = " → "
INDENT = "    "
FIGURE_CELLS = 160  # of one figure: two lines of a terminal; --json has all of it


def account_lines(account: Account, room: int, colour: bool) -> list[str]:
    """One result: its places after each stage, the sum of its fusion score, later changes."""
    way = ARROW.join(f"{name} {rank}" for name, rank, _ in moves(account))
    parts = [_sum(account), *_changes(account)]
    lines = [*wrapped(way, room), *wrapped(" · ".join(filter(None, parts)), room)]
    return [styled(line, DIM, colour) for line in lines]


def stage_lines(stages: Sequence[Stage], room: int) -> list[str]:
    """What each stage did: name, wall and processor milliseconds, then figures and tables."""
    name_room = max(len(printable_line(stage.stage)) for stage in stages)
    name_room = max(name_room, len("stage"))
    lines = [f"{'stage':<{name_room}} {'ms':>7} {'cpu':>7}"]
    for report in stages:
        one = stage_words(report)
        name = printable_line(one.stage)
        head = f"{name:<{name_room}} {one.milliseconds:7.1f} {one.cpu_milliseconds:7.1f}  "
        body = _body(one, room - len(head)) or [""]
        lines.append((head + body[0]).rstrip())
        lines += [" " * len(head) + line for line in body[1:]]
    wall = sum(stage.milliseconds for stage in stages)
    cpu = sum(stage.cpu_milliseconds for stage in stages)
    return [*lines, f"{'':<{name_room}} {wall:7.1f} {cpu:7.1f}"]


def why_lines(why: Verdict, room: int) -> list[str]:
    """Why one memory was returned or not: the reason, then the figures behind it."""
    about = printable_line(why_about(why))
    reason = printable_line(why.reason or "")
    first, *rest = wrapped(f"why {about}: {reason}", room - len(INDENT))
    lines = [first, *(INDENT + line for line in rest)]
    one = why_words(why)
    return lines + [INDENT + line for line in [*_way(why, room), *_body(one, room - len(INDENT))]]


def _way(why: Verdict, room: int) -> list[str]:
    return account_lines(why, room - len(INDENT), colour=False) if why.ranks else []


def wrapped(text: str, room: int) -> list[str]:
    """``text`` without control characters, in lines of at most ``room`` cells."""
    lines: list[str] = []
    for word in printable_line(text).split():
        fits = lines and width(lines[-1]) + 1 + width(word) <= room
        if fits:
            lines[-1] += f" {word}"
        else:
            lines.append(shortened(word, room))
    return lines


def _sum(account: Account) -> str:
    """``fusion .63 = words 3rd .31 + meaning 1st .22 + topics 2nd .10``."""
    parts = [
        f"{name}{f' {ordinal(rank)}' if rank else ''} {_score(points)}"
        for name, rank, _, _, points in terms(account)
    ]
    if account.fusion_score is UNSET or not parts:
        return ""
    return f"{score_name(account)} {_score(account.fusion_score)} = {' + '.join(parts)}"


def _changes(account: Account) -> list[str]:
    """The type's factor in fusion, the reranker's score, and what changed the score after it."""
    named = [boost_sentence(account)]
    if account.rerank_score not in (None, UNSET):
        named.append(f"rerank {_score(account.rerank_score)}")
    for name, before, after in changes(account):
        named.append(f"{name} {_score(before)}{ARROW}{_score(after)}")
    return named


def _body(one: StageWords, room: int) -> list[str]:
    figures = " · ".join(
        shortened(printable_line(f"{name} {value}"), FIGURE_CELLS) for name, value in one.figures
    )
    lines = wrapped(figures, room)
    for table in one.tables:
        lines += table_lines(table, room)
    return lines


def table_lines(table: Table, room: int) -> list[str]:
    """A table with aligned columns; the last one is cut where it does not fit."""
    rows = [tuple(map(printable_line, row)) for row in (table.columns, *table.rows)]
    widths = [max(width(row[n]) for row in rows) for n in range(len(table.columns))]
    numeric = [all(_is_number(row[n]) for row in table.rows) for n in range(len(table.columns))]
    lines = []
    for row in rows:
        cells = [
            " " * (cells_wide - width(cell)) + cell
            if right
            else cell + " " * (cells_wide - width(cell))
            for cell, cells_wide, right in zip(row, widths, numeric, strict=True)
        ]
        lines.append(shortened("  ".join(cells).rstrip(), room))
    return lines


def _is_number(cell: str) -> bool:
    figure = cell.removeprefix("-").replace(",", "").replace(".", "").removesuffix("%")
    return not cell.strip("–") or figure.isdigit()


def _score(score: float) -> str:
    """``.83``, ``1.0``."""
    shown = f"{score:.2f}"
    return shown.removeprefix("0") if shown != "1.00" else "1.0"
