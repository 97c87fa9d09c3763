"""Chunks: a source file cut where its syntax does.

Boundary: opened text comes in, offsets go out; nothing is kept.

A chunk holds at most 1,500 characters (a single longer line is cut), and every character is in
exactly one. With a grammar a definition stays whole where it fits, with the decorators and comments
in front of it; without one a text is cut by lines, at blank ones where it can be.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from memory_store.code.grammars import parsed
from memory_store.text.chunks import Span

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

CHUNK_CHARACTERS = 1_500
DEEPEST = 100  # levels of a syntax tree that chunks are cut by
_BLANK = re.compile(r"\n[ \t]*\n")


def code_chunks(text: str, language: str) -> list[Span]:
    """The chunks of a source text, in order; ``[]`` for an empty one."""
    return chunks_in(parsed(text, language), text)


def chunks_in(tree: Tree | None, text: str) -> list[Span]:
    """The same of a text that was parsed, or could not be."""
    if tree is None or len(text) <= CHUNK_CHARACTERS:
        return _packed(text, _line_starts(text))
    starts = _line_starts(text)
    cuts = _packed_cuts(tree.root_node, text, starts)
    spans = [Span(a, b) for a, b in pairwise([0, *cuts, len(text)]) if b > a]
    return [part for span in spans for part in _fitting(text, span)]


def line_of(text: str, offset: int) -> int:
    """The number of the line, from 1, in which a character stands."""
    return text.count("\n", 0, offset) + 1


def _line_starts(text: str) -> list[int]:
    return [0, *(match.end() for match in re.finditer("\n", text))]


def _packed_cuts(root: Node, text: str, lines: list[int]) -> list[int]:
    """Where chunks begin: neighbours of one level together as long as they fit."""
    cuts: list[int] = []
    at = 0  # where the chunk at work begins

    def size(first: int, row: int) -> int:
        return lines[min(row, len(lines) - 1)] - first

    def walk(nodes: Iterable[Node], depth: int = 0, head: int = -1) -> None:
        nonlocal at
        for top, bottom, node in _groups(nodes):
            end = bottom + 1
            if size(at, end) <= CHUNK_CHARACTERS:
                continue
            start = lines[top]
            large = size(start, end) > CHUNK_CHARACTERS
            if start > at and not (large and at == head):  # the first lines of a class stay with it
                cuts.append(start)
                at = start
            if large and depth < DEEPEST:
                walk(node.named_children, depth + 1, at)

    walk(root.named_children)
    return sorted(set(cuts))


def _groups(nodes: Iterable[Node]) -> Iterator[tuple[int, int, Node]]:
    """Nodes with their first and last row; a comment in front belongs to what follows it."""
    top = before = -1
    for node in nodes:
        first, last = node.start_point[0], node.end_point[0] - (node.end_point[1] == 0)
        if "comment" in node.type or node.type in ("decorator", "attribute_item", "annotation"):
            if top < 0 or first > before + 1:
                top = first
            before = last
            continue
        if top >= 0 and first <= before + 1:
            first = top
        top = before = -1
        yield first, max(first, last), node


def _fitting(text: str, span: Span) -> list[Span]:
    if span.end - span.start <= CHUNK_CHARACTERS:
        return [span]
    part = text[span.start : span.end]
    return [Span(span.start + a, span.start + b) for a, b in _packed(part, _line_starts(part))]


def _packed(text: str, lines: list[int]) -> list[Span]:
    """Chunks of whole lines, cut after a blank one where that is in the second half."""
    found: list[Span] = []
    at = 0
    ends = [*lines[1:], len(text)]
    blanks = {match.end() for match in _BLANK.finditer(text)}
    fitting = blank = 0
    for end in ends:
        while end - at > CHUNK_CHARACTERS:
            cut = blank if blank > at + CHUNK_CHARACTERS // 2 else fitting
            cut = cut if cut > at else at + CHUNK_CHARACTERS
            found.append(Span(at, cut))
            at = cut
        fitting = end
        blank = end if end in blanks else blank
    if len(text) > at:
        found.append(Span(at, len(text)))
    return found
