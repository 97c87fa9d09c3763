"""The symbols of a source file: what it defines, what it uses, and what it imports.

Boundary: reads opened text; what it gives back is as plain as that text, and is sealed where
it is kept.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from memory_store.code.chunks import chunks_in
from memory_store.code.definitions import Definition, cleaned, definitions_in, definitions_of
from memory_store.code.grammars import has_grammar, parsed
from memory_store.code.imports import Import, imports_of
from memory_store.code.syntax_queries import captured, matches, queries
from memory_store.text.chunks import Span

if TYPE_CHECKING:
    from tree_sitter import Node

BY_LINES, BY_GRAMMAR = "lines", "grammar"
MOST_NAMES = 20_000  # of definitions, and of names that are used, in one file
MOST_LINES = 1_000  # that one name is used on, in one file
_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_NO_USE = frozenset({"self", "this", "super", "cls"})


class Symbol(Struct, frozen=True, array_like=True, gc=False):  # a repository has a million
    """One definition as it is kept. Lines count from 1.

    ``kind`` is ``class``, ``interface``, ``struct``, ``enum``, ``type``, ``module``, ``function``,
    ``method``, ``property``, ``constant``, ``macro``, ``declaration`` (of what stands elsewhere),
    or ``definition`` where no grammar was there.
    """

    name: str
    kind: str
    container: str
    line: int
    end_line: int
    signature: str

    @property
    def path(self) -> str:
        """Its name with that of what it stands in: ``Session.open``."""
        return f"{self.container}.{self.name}" if self.container else self.name


class FileSymbols(Struct, frozen=True, array_like=True, gc=False):
    """What one file defines, uses (a name → its lines) and imports.

    ``made_by`` says whether a grammar was there. Without one nothing is known but definitions, by
    their lines. ``chunk_ends`` and ``spans`` are characters: where each chunk ends, and where each
    definition begins and ends. What was indexed before they were kept has none.
    """

    made_by: str
    lines: int
    package: str
    definitions: tuple[Symbol, ...]
    references: dict[str, tuple[int, ...]]
    imports: tuple[Import, ...]
    chunk_ends: tuple[int, ...] = ()
    spans: tuple[int, ...] = ()


def is_current(symbols: FileSymbols, language: str) -> bool:
    """Whether nothing more is known of a file by a grammar that was added since."""
    by_lines = symbols.made_by == BY_LINES
    return not (by_lines and has_grammar(language))


def layout(
    text: str, language: str, known: FileSymbols | None
) -> tuple[list[Span], list[Definition]]:
    """The chunks and the definitions of a source text, as far as its symbols know them; else it
    is parsed."""
    ends = known.chunk_ends if known is not None else ()
    if known is None or not ends or ends[-1] != len(text) or not is_current(known, language):
        tree = parsed(text, language)
        return chunks_in(tree, text), definitions_in(tree, text, language)
    return [Span(*pair) for pair in pairwise((0, *ends))], [
        Definition(
            one.name, one.kind, one.container, one.line, one.end_line, start, end, one.signature
        )
        for one, start, end in zip(
            known.definitions, known.spans[::2], known.spans[1::2], strict=True
        )
    ]


def symbols_of(text: str, language: str) -> FileSymbols:
    """The symbols of a source text."""
    lines = text.count("\n") + (not text.endswith("\n") and bool(text))
    tree, known = parsed(text, language), queries(language)
    ends = tuple(chunk.end for chunk in chunks_in(tree, text))
    if tree is None or known is None:
        found = definitions_in(tree, text, language)
        made_by = BY_GRAMMAR if has_grammar(language) else BY_LINES
        return FileSymbols(made_by, lines, "", _kept(found), {}, (), ends, _spans(found))
    data = text.encode()
    package, imported, names = "", list[Import](), set[int]()
    defining = matches(known.definitions, tree.root_node)
    for _, captures in defining:
        names.update(node.start_byte for node in captures.get("name", ()))
        for node in captures.get("package", ()):
            package = package or cleaned(_text(node, data))
        for node in captures.get("import", ()):
            imported += imports_of(_text(node, data), language, node.start_point[0] + 1)
    found = definitions_of(tree.root_node, text, language, defining)
    return FileSymbols(
        BY_GRAMMAR,
        lines,
        package,
        _kept(found),
        _references(captured(known.references, tree.root_node, "ref"), data, names),
        tuple(dict.fromkeys(imported)),
        ends,
        _spans(found),
    )


def _kept(found: list[Definition]) -> tuple[Symbol, ...]:
    return tuple(
        Symbol(one.name, one.kind, one.container, one.line, one.end_line, one.signature)
        for one in found[:MOST_NAMES]
    )


def _spans(found: list[Definition]) -> tuple[int, ...]:
    return tuple(at for one in found[:MOST_NAMES] for at in (one.start, one.end))


def _references(nodes: list[Node], data: bytes, defining: set[int]) -> dict[str, tuple[int, ...]]:
    """A name → the lines that use it, each once."""
    places = sorted({node.byte_range for node in nodes})
    newlines = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))
    lines = newlines.searchsorted([start for start, _ in places]).tolist()
    uses: dict[str, dict[int, None]] = {}
    spelled: dict[bytes, dict[int, None] | None] = {}  # as a name is spelled → its lines
    for (start, end), line in zip(places, lines, strict=True):
        if start in defining:
            continue
        said = data[start:end]
        if said not in spelled:
            name = _used(said)
            known = name and (name in uses or len(uses) < MOST_NAMES)
            spelled[said] = uses.setdefault(name, {}) if known else None
        on = spelled[said]
        if on is not None and len(on) < MOST_LINES:
            on[line + 1] = None
    return {name: tuple(sorted(on)) for name, on in uses.items()}


def _used(said: bytes) -> str:
    """The name that is used; empty for what is none."""
    name = said.decode("utf-8", "replace").lstrip("@#$:")
    if len(name) < 2 or name in _NO_USE or len(name) > 200 or _IDENTIFIER.match(name) is None:
        return ""
    return name


def _text(node: Node, data: bytes) -> str:
    return data[node.start_byte : node.end_byte].decode("utf-8", "replace")
