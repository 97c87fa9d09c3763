"""Front matter: the YAML (``---``) or TOML (``+++``) block at the head of a note.

Boundary: the block may come from a stranger. YAML is read as a stream of events, never through a
constructor: aliases and anchors are refused before they can multiply (430 bytes can cost 2 GiB),
no tag makes an object, and size, depth and the number of values are bounded. What comes out is
plain text, lists and mappings.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any

import yaml
from msgspec import Struct, field

from memory_store.importing.source_file import LIMITS, UnreadableError

MAX_FRONT_MATTER_CHARACTERS = 1024 * 1024
MAX_DEPTH = LIMITS.depth  # levels of lists and mappings, in front matter and in JSON metadata
MAX_VALUES = 50_000  # scalars, lists and mappings together: bounds time and memory
MAX_TOML_CHARACTERS = 64 * 1024  # tomllib is pure Python
MOST_MENDED = 16 * 1024  # characters: no person types more; a longer broken block is refused
TEXT_TAG = "tag:yaml.org,2002:str"
CORE_TAGS = frozenset(
    f"tag:yaml.org,2002:{name}"
    for name in ("str", "int", "float", "bool", "null", "seq", "map", "timestamp")
) | {"!"}


class FrontMatterError(UnreadableError):
    """The block is there but cannot be read. ``line`` counts from 1 in the whole file.

    ``refused``: it is not a slip of the pen, but made to cost memory or time, or to make objects.
    """

    def __init__(self, reason: str, line: int | None = None, *, refused: bool = False) -> None:
        super().__init__(reason, line)
        self.refused = refused


class Plain(str):
    """A scalar written without quotes: still exactly as written, see :func:`as_data`."""

    __slots__ = ()


class FrontMatter(Struct, frozen=True):
    """``fields`` by key, as written; the ``lines`` the keys stand on; the ``body`` after it all."""

    fields: Mapping[str, Any] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)
    body: str = ""


_CLOSERS = {"---": "--- or ...", "+++": "+++"}
_CLOSING = {
    "---": re.compile(r"^(?:---|\.\.\.)[^\S\n]*$\n?", re.M),
    "+++": re.compile(r"^\+\+\+[^\S\n]*$\n?", re.M),
}
_LOOKS_LIKE_A_FIELD = {
    "---": re.compile(r"\s*(?:#.*)?(?:[\w\"'][^\n]{0,100}?:(?:\s|\Z)|\Z)"),
    "+++": re.compile(r"\s*(?:#.*)?(?:[\w\"'.\s-]{1,100}=|\[|\Z)"),
}


def read_front_matter(text: str, depth: int = MAX_DEPTH) -> FrontMatter:
    """Splits ``text`` (``\\n`` newlines, no byte order mark) and reads its front matter.

    Text without front matter is all body, and so is a note that merely opens with a rule (``---``
    and prose). One blank line after the block belongs to neither. Raises
    :class:`FrontMatterError` for a block that is not closed or not readable.
    """
    fence = text.partition("\n")[0].rstrip()
    if fence not in _CLOSING:
        return FrontMatter(body=text)
    start = text.find("\n") + 1
    closing = _CLOSING[fence].search(text, start) if start else None
    if closing is None or closing.start() - start > MAX_FRONT_MATTER_CHARACTERS + 1:
        return _unclosed(text, start, fence, huge=closing is not None)
    block = text[start : closing.start()]
    if len(block) > MAX_FRONT_MATTER_CHARACTERS:
        most = f"front matter over {MAX_FRONT_MATTER_CHARACTERS // 1024} KB"
        raise FrontMatterError(most, 1, refused=True)
    try:
        read = _read_yaml(block, depth) if fence == "---" else _read_toml(block, depth)
    except FrontMatterError as error:
        if len(block) <= MOST_MENDED and not block.startswith("%"):  # a directive of YAML
            raise
        raise FrontMatterError(error.reason, _line(error), refused=True) from None
    if read is None:
        return FrontMatter(body=text)
    return FrontMatter(*read, body=text[closing.end() :].removeprefix("\n"))


def _line(error: FrontMatterError) -> int | None:
    return error.line if isinstance(error.line, int) else None


def as_data(value: Any) -> Any:
    """A value as JSON can hold it: unquoted scalars become numbers, booleans and null.

    The rules are those of YAML 1.2 (``no`` and ``12:30`` stay text), and a number is read as one
    only when nothing of its spelling is lost that a note's author may need (``007`` stays text).
    """
    if isinstance(value, Plain):
        return _resolve(str(value))
    if isinstance(value, str):
        return str(value)
    if isinstance(value, dict):
        return {str(key): as_data(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_data(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _unclosed(text: str, start: int, fence: str, *, huge: bool) -> FrontMatter:
    """A lone ``---`` is a rule, unless what follows it is clearly meant as front matter.

    ``huge``: it is closed, after more than front matter may hold.
    """
    if not start:
        return FrontMatter(body=text)
    first = next((line for line in text[start : start + 2_000].split("\n") if line.strip()), "")
    if first and _LOOKS_LIKE_A_FIELD[fence].match(first):
        never = f"front matter opened here is never closed with {_CLOSERS[fence]}"
        raise FrontMatterError(never, 1, refused=huge)
    return FrontMatter(body=text)


# YAML

TOO_DEEP = "maximum nesting depth"  # so libyaml says it since PyYAML 6.0.4


def _read_yaml(block: str, depth: int) -> tuple[dict[str, Any], dict[str, int]] | None:
    """Fields and their lines; ``None`` when the block is one piece of prose, not a mapping."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    reader = _YamlReader(depth)
    try:
        for event in yaml.parse(block, Loader=loader):
            reader.take(event)
    except yaml.MarkedYAMLError as error:
        mark: Any = error.problem_mark or error.context_mark
        problem = str(error.problem or error.context or "not readable")
        line = int(mark.line) + 2 if mark else 1
        if TOO_DEEP in problem:  # libyaml looks ahead, so it may be first to see that
            nested = f"front matter is nested over {depth} levels"
            raise FrontMatterError(nested, line, refused=True) from None
        raise FrontMatterError(f"front matter: {problem}", line) from None
    except yaml.reader.ReaderError as error:
        before = block[: error.position] if isinstance(error.position, int) else ""
        raise FrontMatterError(f"front matter: {error.reason}", before.count("\n") + 2) from None
    if reader.root is None:
        return {}, {}
    if isinstance(reader.root, dict):
        return reader.root, reader.lines
    if isinstance(reader.root, str):
        return ({}, {}) if reader.root in ("", "~", "null") else None
    raise FrontMatterError("front matter is a list, not key: value lines", 2)


class _Level(Struct):
    """An open list or mapping; ``key`` is the mapping's key that waits for its value."""

    content: list[Any] | dict[str, Any]
    key: str | None = None


class _YamlReader:
    """Builds plain data from events, refusing what a note has no need of."""

    def __init__(self, depth: int) -> None:
        self.depth = depth
        self.root: Any = None
        self.lines: dict[str, int] = {}
        self.levels: list[_Level] = []
        self.values = 0
        self.documents = 0

    def take(self, event: yaml.Event) -> None:
        mark: Any = event.start_mark
        line = int(mark.line) + 2  # marks count from 0 after the opening fence
        if isinstance(event, yaml.DocumentStartEvent):
            self.documents += 1
            if self.documents > 1:
                raise FrontMatterError("front matter holds more than one YAML document", line)
        if isinstance(event, yaml.NodeEvent):
            self._check(event, line)
        if isinstance(event, yaml.ScalarEvent):
            plain = event.style in (None, "") and event.tag not in (TEXT_TAG, "!")
            self._place(Plain(event.value) if plain else event.value, line)
        elif isinstance(event, yaml.CollectionStartEvent):
            content: list[Any] | dict[str, Any]
            content = {} if isinstance(event, yaml.MappingStartEvent) else []
            self._place(content, line)
            self.levels.append(_Level(content))
            if len(self.levels) > self.depth:
                nested = f"front matter is nested over {self.depth} levels"
                raise FrontMatterError(nested, line, refused=True)
        elif isinstance(event, yaml.CollectionEndEvent):
            self.levels.pop()

    def _check(self, event: yaml.NodeEvent, line: int) -> None:
        self.values += 1
        if self.values > MAX_VALUES:
            most = f"front matter holds over {MAX_VALUES} values"
            raise FrontMatterError(most, line, refused=True)
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise FrontMatterError(  # an alias of nothing is prose, as in `title: *Important*`
                "front matter: YAML aliases and anchors (& and *) are refused",
                line,
                refused=not isinstance(event, yaml.AliasEvent),
            )
        tag = getattr(event, "tag", None)
        if tag is not None and tag not in CORE_TAGS:
            raise FrontMatterError(
                f"front matter: the YAML tag {tag[:60]} is refused",
                line,
                refused=True,
            )

    def _place(self, value: Any, line: int) -> None:
        if not self.levels:
            self.root = value
            return
        level = self.levels[-1]
        if isinstance(level.content, list):
            level.content.append(value)
        elif level.key is None:
            self._open_key(level, value, line)
        else:
            level.content[level.key] = value
            level.key = None

    def _open_key(self, level: _Level, key: Any, line: int) -> None:
        if not isinstance(key, str):
            raise FrontMatterError("front matter: a key must be text", line)
        if key in level.content:
            raise FrontMatterError(f"front matter: the key {key[:60]!r} is there twice", line)
        level.key = str(key)
        if len(self.levels) == 1:
            self.lines[level.key] = line


_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = ("true", "True", "TRUE")
_BOOLEANS = {form: form in _TRUE for form in (*_TRUE, "false", "False", "FALSE")}
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})", re.ASCII)
_FLOAT = re.compile(
    r"[-+]?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,20}(?:[eE][-+]?[0-9]{1,3})?|[eE][-+]?[0-9]{1,3})",
    re.ASCII,
)


def _resolve(text: str) -> Any:
    if text in _NULLS:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        number = float(text)
        return number if math.isfinite(number) else text
    return text


# TOML

_TOML_STRING = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'")


def _read_toml(block: str, depth: int) -> tuple[dict[str, Any], dict[str, int]]:
    if len(block) > MAX_TOML_CHARACTERS:
        most = f"TOML front matter over {MAX_TOML_CHARACTERS // 1024} KB"
        raise FrontMatterError(most, 1, refused=True)
    for number, line in enumerate(block.split("\n"), start=2):
        if line.count(".") > depth and _TOML_STRING.sub("", line).count(".") > depth:
            # tomllib takes a dotted key in quadratic time: 64 KB of `a.a.a…` cost 14 s
            nested = f"front matter is nested over {depth} levels"
            raise FrontMatterError(nested, number, refused=True)
    try:
        fields = tomllib.loads("\n" + block)  # the newline stands for the fence: lines fit the file
    except tomllib.TOMLDecodeError as error:
        found = re.search(r" \(at line (\d+), column \d+\)", str(error))
        reason = str(error).replace(found[0], "") if found else str(error)
        raise FrontMatterError(f"front matter: {reason}", int(found[1]) if found else 1) from None
    except (RecursionError, ValueError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise FrontMatterError(f"front matter: {reason}", 1, refused=True) from None
    if deeper_than(fields, depth):
        raise FrontMatterError(f"front matter is nested over {depth} levels", 1, refused=True)
    return {key: _toml_value(value) for key, value in fields.items()}, {}


def _toml_value(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _toml_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_toml_value(item) for item in value]
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    return value


def deeper_than(value: Any, limit: int) -> bool:
    """Whether lists and mappings nest more than ``limit`` levels; needs no recursion."""
    level = [value]
    for _ in range(limit + 1):
        mappings = [item for outer in level if isinstance(outer, dict) for item in outer.values()]
        level = mappings + [item for outer in level if isinstance(outer, list) for item in outer]
        if not level:
            return False
    return True
