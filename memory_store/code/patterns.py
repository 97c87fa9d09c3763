"""Structural patterns: code with holes, compared with the syntax of other code by ast-grep.

Boundary: parses opened text in memory. A pattern is not run: it is compared node by node.

``$NAME`` stands for any one node, ``$$$NAME`` for any number of them; one name twice stands for
the same code. A pattern that is no whole statement (``except $E: pass``) is read in what it needs
around it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from memory_store.code.grammars import EXTRA, is_quick
from memory_store.errors import BadInputError, ExtraMissingError

if TYPE_CHECKING:
    from ast_grep_py import SgNode

LANGUAGES = (
    *("bash", "c", "cpp", "csharp", "css", "elixir", "go", "haskell", "hcl", "html", "java"),
    *("javascript", "json", "kotlin", "lua", "nix", "php", "python", "ruby", "rust", "scala"),
    *("solidity", "swift", "tsx", "typescript", "yaml"),
)
"""What ast-grep has a grammar for, by the names of :mod:`memory_store.code.languages`."""
STRICT = tuple(
    one for one in LANGUAGES if one not in ("bash", "css", "elixir", "hcl", "html", "json", "yaml")
)
"""Those that do not take nearly any text."""
_SHORT = {
    "c#": "csharp", "c++": "cpp", "js": "javascript", "jsx": "javascript", "ts": "typescript",
    "py": "python", "rb": "ruby", "rs": "rust", "golang": "go", "kt": "kotlin", "sh": "bash",
}  # fmt: skip
_HOLE = re.compile(r"\$\$\$[A-Z_][A-Z0-9_]*|\$\$\$|\$\$?[A-Z_][A-Z0-9_]*")
_NAMED_HOLE = re.compile(r"(\$\$\$|\$)([A-Z][A-Z0-9_]*)")
_QUOTED = re.compile(r"""(["'`])(?:\\.|(?!\1)[^\\\n])*\1""")
_CLOSING = {")": "(", "]": "[", "}": "{"}
_IN_CLASS = ("class A {\n", "\n}")
_AROUND: dict[str, tuple[tuple[str, str, str], ...]] = {
    "python": (
        ("try:\n    pass\n", "", "except_clause"),
        ("try:\n    pass\n", "", "finally_clause"),
        ("if x:\n    pass\n", "", "elif_clause"),
        ("if x:\n    pass\n", "", "else_clause"),
    ),
    "javascript": (
        (*_IN_CLASS, "method_definition"),
        ("try {}\n", "", "catch_clause"),
        ("switch (x) {\n", "\n}", "switch_case"),
    ),
    "typescript": (
        (*_IN_CLASS, "method_definition"),
        (*_IN_CLASS, "public_field_definition"),
        ("try {}\n", "", "catch_clause"),
        ("switch (x) {\n", "\n}", "switch_case"),
    ),
    "c": (("void f() {\n", ";\n}", "call_expression"),),
    "cpp": (("void f() {\n", ";\n}", "call_expression"),),
    "java": ((*_IN_CLASS, "method_declaration"), ("class A { { try {}\n", "\n} }", "catch_clause")),
    "csharp": ((*_IN_CLASS, "method_declaration"), (*_IN_CLASS, "property_declaration")),
    "go": (("package a\nfunc f() {\nswitch x {\n", "\n}\n}", "expression_case"),),
    "php": (("<?php class A {\n", "\n}", "method_declaration"),),
}
_AROUND["tsx"] = _AROUND["typescript"]


class NodeMatch(Struct, frozen=True):
    """A node that a pattern matches: its characters, and what its holes stand for."""

    start: int
    end: int
    captures: dict[str, str]


def known_language(name: str) -> str:
    """A language that patterns can be in. Raises BadInputError, with those that there are."""
    language = _SHORT.get(name.strip().lower(), name.strip().lower())
    if language not in LANGUAGES:
        alike = difflib.get_close_matches(language, (*LANGUAGES, *_SHORT), 1, 0.75)
        meant = f" (did you mean {_SHORT.get(alike[0], alike[0])}?)" if alike else ""
        raise BadInputError(
            f"language: no patterns in {name!r}{meant}; there is: {', '.join(LANGUAGES)}. In "
            "others a literal search finds text",
            "language",
        )
    return language


def literal_part(pattern: str) -> str:
    """A pattern without its holes: what stands in every text that it matches."""
    return _HOLE.sub(" \n ", pattern)


def require_patterns() -> None:
    """Raises ExtraMissingError, naming the extra, where ast-grep is not installed."""
    if find_spec("ast_grep_py") is None:
        raise ExtraMissingError(f"structural search needs ast-grep: {EXTRA}")


class StructuralPattern:
    """A pattern, and what it matches in texts of each language that it can be read in."""

    def __init__(self, source: str) -> None:
        require_patterns()
        self.source = source
        self._holes = {name: several == "$$$" for several, name in _NAMED_HOLE.findall(source)}
        self._rule = cache(self._rule_in)

    def reads(self, language: str) -> bool:
        """Whether it is code with holes in that language."""
        return language in LANGUAGES and self._rule(language) is not None

    def first_fault(self, language: str) -> tuple[int, int] | None:
        """Line and column, from 1, of the first place that cannot be read in a language; ``None``
        where nothing of it can."""
        for text in reversed(_written(self.source)):
            fault = _root(text, language).find(kind="ERROR")
            if fault is not None and (at := fault.range().start).index:
                return at.line + 1, at.column + 1
        return None

    def matches(self, text: str, language: str, most: int) -> list[NodeMatch]:
        """What it matches in a text, in order, ``most`` of them; none where it is no such code."""
        rule = self._rule(language) if language in LANGUAGES else None
        if rule is None or "\0" in text or not is_quick(text, language):
            return []
        found = list[NodeMatch]()
        for node in _root(text, language).find_all({"rule": {"pattern": rule}}):
            span = node.range()
            found.append(NodeMatch(span.start.index, span.end.index, dict(self._captures(node))))
            if len(found) == most:
                break
        return found

    def _captures(self, node: SgNode) -> Iterator[tuple[str, str]]:
        for name, several in self._holes.items():
            if several:
                parts = node.get_multiple_matches(name)
                yield name, "".join(_spaced(parts))
            elif (one := node.get_match(name)) is not None:
                yield name, one.text()

    def _rule_in(self, language: str) -> Any:
        """The pattern as ast-grep takes it; ``None`` where it cannot be read in a language."""
        if not self.source.strip() or "\0" in self.source:
            return None
        taken = _taken(self.source, language)
        if taken and any(not _broken(text, language) for text in _written(self.source)):
            return self.source
        for before, after, kind in _AROUND.get(language, ()):
            whole = f"{before}{self.source}{after}"
            if _holds(whole, kind, language):
                return {"context": whole, "selector": kind}
        return self.source if taken and _closed(self.source) else None


def _root(text: str, language: str) -> SgNode:
    from ast_grep_py import SgRoot

    return SgRoot(text, language).root()


def _taken(source: str, language: str) -> bool:
    """Whether ast-grep takes a pattern for one node."""
    try:
        _root("", language).find_all({"rule": {"pattern": source}})
    except RuntimeError:
        return False
    return True


def unclosed(source: str) -> int | None:
    """Where the first bracket of a piece of code stands that is not closed, whether or not what is
    in quotes counts; ``None`` where all are."""
    unquoted = _QUOTED.sub(lambda quoted: " " * len(quoted[0]), source)
    waiting = [_brackets(text)[0] for text in (source, unquoted)]
    return waiting[1][0] if all(waiting) else None


def _closed(source: str) -> bool:
    """Whether what a piece of code opens it closes, too."""
    waiting, loose = _brackets(source)
    return not (waiting or loose) and any(sign in "([{" for sign in source)


def _brackets(source: str) -> tuple[list[int], bool]:
    """Where brackets stand that are not closed, and whether one closes that was not opened."""
    waiting, loose = list[int](), False
    for place, sign in enumerate(source):
        if sign in _CLOSING.values():
            waiting.append(place)
        elif sign in _CLOSING:
            if waiting and source[waiting[-1]] == _CLOSING[sign]:
                waiting.pop()
            else:
                loose = True
    return waiting, loose


def _holds(whole: str, kind: str, language: str) -> bool:
    """Whether a text with holes parses, with a node of a kind in it."""
    for text in _written(whole):
        root = _root(text, language)
        if root.find(kind=kind) is not None and root.find(kind="ERROR") is None:
            return True
    return False


def _broken(text: str, language: str) -> bool:
    """Whether a text is not so much as begun in a language: its outermost node is an error."""
    root = _root(text, language)
    return root.kind() == "ERROR" or any(one.kind() == "ERROR" for one in root.children())


def _written(source: str) -> tuple[str, ...]:
    """A pattern with names in the place of its holes, in two ways: some grammars allow one."""
    return source, _HOLE.sub(lambda hole: "x" + hole[0].strip("$").lower(), source)


def _spaced(parts: list[SgNode]) -> Iterator[str]:
    """Neighbouring nodes with a blank behind each comma."""
    for place, one in enumerate(parts):
        yield one.text()
        if one.text() == "," and place + 1 < len(parts):
            yield " "
