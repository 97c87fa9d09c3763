"""What a source file defines: names, with their lines where a grammar is at hand.

Boundary: reads opened text and keeps nothing.

:func:`defined_names` needs no grammar and gives the same names on every machine, so that an index
does not depend on what is installed. :func:`definitions` goes by the grammar where there is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from memory_store.code.grammars import parsed

if TYPE_CHECKING:
    from tree_sitter import Node

MOST_SIGNATURE = 160  # characters
DEEPEST = 40  # levels of definitions within definitions

_NAME = r"[A-Za-z_$][\w$]*[!?]?"
_KEYWORDS = (
    "class|def|defp|defmodule|fn|func|fun|function|struct|interface|trait|enum|union|type|typedef"
    "|protocol|extension|module|namespace|object|record|macro_rules!|contract|message|service|sub"
)
_DEFINED = re.compile(
    rf"^[ \t]*(?:(?:[a-z]+(?:\([^()\n]*\))?[ \t]+){{0,6}}?)(?:{_KEYWORDS})[ \t*]+"
    rf"(?:\([^()\n]*\)[ \t]*)?(?P<name>{_NAME})"
    rf"|^[ \t]*(?:export[ \t]+)?(?:const|let|var|val)[ \t]+(?P<bound>{_NAME})[^=\n]*="
    rf"[ \t]*(?:async[ \t]*)?(?:function\b|\([^()\n]*\)[^=\n]*=>|{_NAME}[ \t]*=>)"
    rf"|^[ \t]*(?:[\w<>\[\],.:*&~]+[ \t*&]+){{1,6}}(?:\w+::)?(?P<called>[A-Za-z_~]\w*)"
    r"[ \t]*\([^;{}()]*(?:\([^()]*\)[^;{}()]*)*\)[^;{}()=\n]{0,80}\{",
    re.M,
)
_NO_NAME = frozenset(
    {
        *("if", "for", "while", "switch", "return", "else", "catch", "try", "do", "new", "throw"),
        *("await", "case", "with", "from", "import", "in", "is", "as", "and", "or", "not", "elif"),
        *("except", "finally", "synchronized", "using", "lock", "sizeof", "typeof", "delete"),
        "yield",
    }
)

_KINDS = {
    "class": "class", "interface": "interface", "trait": "trait", "struct": "struct",
    "enum": "enum", "union": "union", "module": "module", "namespace": "module",
    "protocol": "interface", "object": "class", "record": "class", "impl": "class",
    "constructor": "method", "method": "method", "function": "function", "func": "function",
    "macro": "macro", "type": "type", "typedef": "type", "mod": "module", "extension": "class",
    "contract": "class", "message": "class", "service": "class",
}  # fmt: skip
_HOW = re.compile(
    r"(?:[a-z]+_)*?(class|interface|trait|struct|enum|union|module|namespace|protocol|object|record"
    r"|impl|constructor|method|function|func|macro|type|typedef|mod|extension|contract|message"
    r"|service)(?:_[a-z]+)*?_?(?:definition|declaration|item|specifier|spec|signature|alias)?\Z"
)
_NESTS = frozenset({"class", "interface", "trait", "struct", "module", "enum"})
_PLAIN = frozenset({"class", "module", "method", "singleton_method"})  # Ruby names its nodes so


class Definition(Struct, frozen=True):
    """One definition. Lines count from 1; ``start`` and ``end`` are characters of the text.

    ``container`` is what it stands in, ``Session.open`` for what is within that.
    """

    name: str
    kind: str
    container: str
    line: int
    end_line: int
    start: int
    end: int
    signature: str

    @property
    def path(self) -> str:
        """Its name with that of what it stands in: ``Session.open``."""
        return f"{self.container}.{self.name}" if self.container else self.name


def defined_names(text: str) -> list[str]:
    """The names that a text defines, as they are spelled, in order; what looks like it, too."""
    found = (
        match["name"] or match["bound"] or match["called"] for match in _DEFINED.finditer(text)
    )
    return [name for name in found if name not in _NO_NAME]


def definitions(text: str, language: str) -> list[Definition]:
    """The definitions of a source text in order; by its lines alone where no grammar is there."""
    tree = parsed(text, language)
    return _by_lines(text) if tree is None else list(_by_grammar(tree.root_node, text))


def enclosing(found: list[Definition], start: int, end: int) -> Definition | None:
    """The innermost definition around a part; else the first that begins in it."""
    around = [one for one in found if one.start <= start and end <= one.end]
    if around:
        return max(around, key=lambda one: (one.start, -one.end))
    return next((one for one in found if start <= one.start < end), None)


def _by_lines(text: str) -> list[Definition]:
    found = []
    for match in _DEFINED.finditer(text):
        name = match["name"] or match["bound"] or match["called"]
        if name in _NO_NAME:
            continue
        start = match.start() + len(match[0]) - len(match[0].lstrip())
        line = text.count("\n", 0, start) + 1
        rest = text.find("\n", start)
        end = len(text) if rest < 0 else rest
        signature = _signature(text[start:end])
        found.append(Definition(name, "definition", "", line, line, start, end, signature))
    return found


def _by_grammar(root: Node, text: str) -> Iterator[Definition]:
    data = text.encode()
    places = None if len(data) == len(text) else _characters(text)

    def at(offset: int) -> int:
        return offset if places is None else places[offset]

    waiting: list[tuple[Node, tuple[str, ...]]] = [(root, ())]
    while waiting:
        node, inside = waiting.pop()
        kind, name = _definition(node, data)
        within = inside
        if kind and name:
            outer = node
            if node.parent is not None and node.parent.type == "decorated_definition":
                outer = node.parent
            start, end = at(outer.start_byte), at(outer.end_byte)
            if kind == "function" and inside and node.parent is not None and _is_method(node):
                kind = "method"
            if not node.type.startswith("impl"):
                first = outer.start_point[0] + 1
                signature = _signature(text[at(node.start_byte) : end])
                last = max(first, outer.end_point[0] + (1 if outer.end_point[1] else 0))
                path = ".".join(inside)
                yield Definition(name, kind, path, first, last, start, end, signature)
            within = (*inside, name)[:DEEPEST]
        waiting.extend((child, within) for child in reversed(node.named_children))


def _definition(node: Node, data: bytes) -> tuple[str, str]:
    """The kind and name of what a node defines; empty for any other node."""
    if node.type == "variable_declarator":
        value = node.child_by_field_name("value")
        if value is None or "function" not in value.type:
            return "", ""
        kind = "function"
    else:
        said = _HOW.match(node.type)
        named = node.type.endswith(
            ("_definition", "_declaration", "_item", "_specifier", "_spec", "_signature", "_alias")
        )
        if said is None or not (named or node.type in _PLAIN):
            return "", ""
        kind = _KINDS[said[1]]
    name = node.child_by_field_name("name") or node.child_by_field_name("declarator")
    if name is None and node.type == "impl_item":
        name = node.child_by_field_name("type")
    while name is not None and (inner := name.child_by_field_name("declarator")) is not None:
        name = inner
    if name is None or (
        node.type.endswith("_specifier") and node.child_by_field_name("body") is None
    ):
        return "", ""
    return kind, data[name.start_byte : name.end_byte].decode("utf-8", "replace")[:200]


def _is_method(node: Node) -> bool:
    above = node.parent
    while above is not None:
        said = _HOW.match(above.type)
        if said is not None and above.child_by_field_name("name") is not None:
            return _KINDS[said[1]] in _NESTS
        above = above.parent
    return False


def _signature(text: str) -> str:
    """A definition up to its body, on one line."""
    first = re.split(r"\{|:\s*\n|\n\s*\n", text, maxsplit=1)[0]
    return " ".join(first.split())[:MOST_SIGNATURE]


def _characters(text: str) -> list[int]:
    """Byte offset in UTF-8 → character offset."""
    found: list[int] = []
    for number, one in enumerate(text):
        found.extend([number] * len(one.encode()))
    found.append(len(text))
    return found
