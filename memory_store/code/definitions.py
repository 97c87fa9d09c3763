"""What a source file defines: names, with their lines where a grammar is at hand.

Boundary: reads opened text and keeps nothing.

:func:`defined_names` needs no grammar and gives the same names on every machine, so that an index
does not depend on what is installed. :func:`definitions` goes by the grammar where there is one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from msgspec import Struct

from memory_store.code.grammars import parsed
from memory_store.code.syntax_queries import matches, queries

if TYPE_CHECKING:
    from tree_sitter import Node, Tree

    Match: TypeAlias = tuple[int, dict[str, list[Node]]]

MOST_SIGNATURE = 160  # characters
MOST_UNREAD = 100  # pieces of a file that no grammar could read, and are read by lines
DEEPEST = 40  # levels of definitions within definitions

_W = r"\p{L}\p{N}_"  # what a name is made of, in the words of RE2
_NAME = rf"[A-Za-z_$][{_W}$]*[!?]?"
_KEYWORDS = (
    "class|def|defp|defmodule|fn|func|fun|function|struct|interface|trait|enum|union|type|typedef"
    "|protocol|extension|module|namespace|object|record|macro_rules!|contract|message|service|sub"
)
_DEFINED = (
    rf"(?m)^[ \t]*(?:(?:[a-z]+(?:\([^()\n]*\))?[ \t]+){{0,6}}?)(?:{_KEYWORDS})[ \t*]+"
    rf"(?:\([^()\n]*\)[ \t]*)?(?P<name>{_NAME})"
    rf"|^[ \t]*(?:export[ \t]+)?(?:const|let|var|val)[ \t]+(?P<bound>{_NAME})[^=\n]*="
    rf"[ \t]*(?:async[ \t]*)?(?:function\b|\([^()\n]*\)[^=\n]*=>|{_NAME}[ \t]*=>)"
    rf"|^[ \t]*(?:[{_W}<>\[\],.:*&~]+[ \t*&]+){{1,6}}(?:[{_W}]+::)?(?P<called>[A-Za-z_~][{_W}]*)"
    r"[ \t]*\([^;{}()]*(?:\([^()]*\)[^;{}()]*)*\)[^;{}()=\n]{0,80}\{"
)
_BOUND = (
    r"(?m)^(?:(?:export|default|declare|public|pub(?:\([a-z]+\))?)[ \t]+)*"
    rf"(?:const|let|var|val|static)[ \t]+(?:mut[ \t]+)?({_NAME})"
    r"|^([A-Za-z_][\p{L}\p{N}_]*)[ \t]*(?::[^=\n(){}]+)?=[^=]"
)
"""What a whole file knows by a name, and no function or class: it begins its line."""
_DEFINED_MEMORY = 64 << 20  # bytes RE2 may take for it
_NO_NAME = frozenset(
    {
        *("if", "for", "while", "switch", "return", "else", "catch", "try", "do", "new", "throw"),
        *("await", "case", "with", "from", "import", "in", "is", "as", "and", "or", "not", "elif"),
        *("except", "finally", "synchronized", "using", "lock", "sizeof", "typeof", "delete"),
        "yield",
    }
)
_NO_NAMES = frozenset(map(str.encode, _NO_NAME))

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
_ASIDE = frozenset({"name", "container", "package", "import", "_require"})
_EXPORTS = ("export_statement", "template_declaration")
_MINOR = frozenset({"constant", "declaration", "macro"})
_LEADING = re.compile(r"\s*(?:(?:[#@;*]|//|/\*|--)[^\n]*\n\s*)*")
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
    return _names(_defined(), text)


def bound_names(text: str) -> list[str]:
    """The names of constants and variables of a whole file, as they are spelled, in order."""
    return _names(_bound(), text)


def _names(pattern: Any, text: str) -> list[str]:
    found = map(_name_in, pattern.finditer(text.encode("utf-8", "replace")))
    return [name.decode() for name in found if name not in _NO_NAMES]


def _name_in(match: Any) -> Any:
    return next(filter(None, match.groups()))


def _defined_in(text: str) -> Iterator[Any]:
    """What looks like a definition. Half a character, which RE2 does not take, names nothing."""
    found: Iterator[Any] = _defined().finditer(text.encode("utf-8", "replace").decode())
    return found


@cache
def _defined() -> Any:
    """What a definition looks like, on RE2: there are texts on which Python's own would not end."""
    return _compiled(_DEFINED)


@cache
def _bound() -> Any:
    return _compiled(_BOUND)


def _compiled(pattern: str) -> Any:
    import re2

    options = re2.Options()
    options.max_mem = _DEFINED_MEMORY
    return re2.compile(pattern, options=options)


def definitions(text: str, language: str) -> list[Definition]:
    """The definitions of a source text in order; by its lines alone where no grammar is there."""
    return definitions_in(parsed(text, language), text, language)


def definitions_in(tree: Tree | None, text: str, language: str) -> list[Definition]:
    """The same of a text that was parsed, or could not be."""
    return found_by_lines(text) if tree is None else definitions_of(tree.root_node, text, language)


def definitions_of(
    root: Node, text: str, language: str, found: Sequence[Match] | None = None
) -> list[Definition]:
    """The definitions of a parsed text in order: by the queries of its language, else by how its
    grammar names what defines. ``found`` is what the queries matched, where that is known."""
    if found is None:
        known = queries(language)
        found = None if known is None else matches(known.definitions, root)
    if found is None:
        return list(_by_grammar(root, text))
    ordered = [one for one in _by_query(found, text) if one.name != "_"]
    if not root.has_error:
        return ordered
    unread = _unread(root)
    by_lines = [
        one
        for one in (found_by_lines(text) if unread else ())
        if any(first <= one.line <= last for first, last in unread)
    ]
    around = defaultdict[str, list[Definition]](list)
    for one in ordered:
        around[one.name].append(one)
    new = [
        one
        for one in by_lines
        if not any(other.line <= one.line <= other.end_line for other in around[one.name])
    ]
    return sorted([*ordered, *new], key=lambda one: (one.start, -one.end))


def enclosing(found: list[Definition], start: int, end: int, text: str = "") -> Definition | None:
    """The innermost definition around a part; else the first that begins in it.

    With the ``text``, a part begins behind the remarks and decorators that lead to a definition.
    """
    leading = _LEADING.match(text, start, end)
    reached = leading.end() if leading is not None else start
    start = next((one.start for one in found if start <= one.start <= reached), start)
    around = [one for one in found if one.start <= start and end <= one.end]
    if around:
        return max(around, key=lambda one: (one.start, -one.end))
    within = [one for one in found if start <= one.start < end]
    return next((one for one in within if one.kind not in _MINOR), within[0] if within else None)


def found_by_lines(text: str) -> list[Definition]:
    found = []
    for match in _defined_in(text):
        name = _name_in(match)
        if name in _NO_NAME:
            continue
        start = match.start() + len(match[0]) - len(match[0].lstrip())
        line = text.count("\n", 0, start) + 1
        rest = text.find("\n", start)
        end = len(text) if rest < 0 else rest
        signature = _signature(text[start:end])
        found.append(Definition(name, "definition", "", line, line, start, end, signature))
    return found


def _unread(root: Node) -> list[tuple[int, int]]:
    """The lines of what a grammar could make nothing of, where it is more than a line."""
    pieces, waiting = list[tuple[int, int]](), [root]
    while waiting and len(pieces) < MOST_UNREAD:
        node = waiting.pop()
        if node.is_error and node.end_point[0] > node.start_point[0]:
            pieces.append((node.start_point[0] + 1, node.end_point[0] + 1))
        else:
            waiting += [one for one in node.children if one.has_error]
    return pieces


def _by_query(found: Sequence[Match], text: str) -> Iterator[Definition]:
    """What the queries of a language matched, each within what surrounds it."""
    data, at = _placed(text)
    chosen: dict[int, tuple[int, str, Node, Node, str]] = {}  # by where the name begins
    for pattern, captures in found:
        kind = next((one for one in captures if one not in _ASIDE), None)
        if kind is None or "name" not in captures:
            continue
        name, node = captures["name"][0], captures[kind][0]
        inside = _text(captures["container"][0], data) if "container" in captures else ""
        if name.start_byte not in chosen or pattern < chosen[name.start_byte][0]:
            chosen[name.start_byte] = (pattern, kind, name, node, inside)
    around: list[tuple[int, str, str]] = []  # end, kind and name of what surrounds the next one
    ordered = sorted(chosen.values(), key=lambda one: (one[3].start_byte, -one[3].end_byte))
    for _, kind, named, node, inside in ordered:
        while around and around[-1][0] <= node.start_byte:
            around.pop()
        *outer, own = _parts(_text(named, data))
        above = around[-1][1] if around else ""
        if kind == "function" and (above in _NESTS or outer):
            kind = "method"
        if kind == "declaration" and above in ("function", "method"):
            continue  # C and C++: a variable that is made by a constructor looks like it
        container = ".".join(
            [*(one[2] for one in around), *outer, *([cleaned(inside)] if inside else [])]
        )
        if len(around) < DEEPEST:
            surrounding = "class" if kind == "within" else kind
            around.append((node.end_byte, surrounding, ".".join([*outer, own])))
        if kind == "within":
            continue
        whole = node
        if node.parent is not None and node.parent.type in ("decorated_definition", *_EXPORTS):
            whole = node.parent
        start, end = at(whole.start_byte), at(whole.end_byte)
        first = whole.start_point[0] + 1
        last = max(first, whole.end_point[0] + (1 if whole.end_point[1] else 0))
        signature = _signature(text[at(node.start_byte) : end])
        yield Definition(own, kind, container, first, last, start, end, signature)


def cleaned(name: str) -> str:
    """A name as a path of names: ``A\\B``, ``A::B`` and ``*A[T]`` become ``A.B`` and ``A``."""
    return ".".join(_parts(name))


def _parts(name: str) -> list[str]:
    """The names that a qualified name has, without type parameters: the last one is its own."""
    plain = re.sub(r"[<\[(].*", "", name, flags=re.S) if name[-1:] in ">])" else name
    found = [part.strip().lstrip("*&#@:\"' ") for part in re.split(r"::|\\|\.|/", plain)]
    return [part.rstrip("\"' ")[:200] for part in found if part] or [name[:200]]


def _text(node: Node, data: bytes) -> str:
    return data[node.start_byte : node.end_byte].decode("utf-8", "replace")


def _placed(text: str) -> tuple[bytes, Callable[[int], int]]:
    """A text in UTF-8, and what turns an offset in it into one of characters."""
    data = text.encode()
    if len(data) == len(text):
        return data, lambda offset: offset
    return data, _characters(text).__getitem__


def _by_grammar(root: Node, text: str) -> Iterator[Definition]:
    data, at = _placed(text)
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
    line = re.sub(r"(?<=[(\[]) |,? (?=[)\]])", "", " ".join(first.split()))
    return line[:MOST_SIGNATURE]


def _characters(text: str) -> list[int]:
    """Byte offset in UTF-8 → character offset."""
    begins = (np.frombuffer(text.encode(), dtype=np.uint8) & 0xC0) != 0x80
    return [*(np.cumsum(begins) - 1).tolist(), len(text)]
