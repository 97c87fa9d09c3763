"""What an import statement names, by the language that it is written in.

Boundary: reads the statement's own text and keeps nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from msgspec import Struct

MODULE, FILE, FOLDER, NAMESPACE = "module", "file", "folder", "namespace"


class Import(Struct, frozen=True, array_like=True, gc=False):
    """One thing that is imported, and the line of its statement.

    ``how`` says what ``name`` is: a ``file`` by its path as it is written (``./x``, ``a/b.h``), a
    ``module`` by its parts with ``/`` between them (Python's leading points are kept), a ``folder``
    with every file in it (Go, Swift, ``import a.b.*``), or a ``namespace`` (C#).
    """

    how: str
    name: str
    line: int


_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|(?<!\S)#[^\n]*", re.S)
_QUOTED = re.compile(r"""["'`]([^"'`\n]+)["'`]""")
_NAME = re.compile(r"\w+")


def imports_of(statement: str, language: str, line: int) -> list[Import]:
    """What a statement imports; ``[]`` in a language whose imports are not known."""
    read = _READERS.get(language)
    return [] if read is None else [Import(how, name, line) for how, name in read(statement)]


Found = Iterator[tuple[str, str]]


def _python(statement: str) -> Found:
    plain = re.sub(r"#[^\n]*", "", statement).replace("\\\n", " ")
    origin = re.match(r"\s*from\s+([.\w]+)\s+import\s+(.*)", plain, re.S)
    if origin is None:
        listed = re.sub(r"^\s*import\s+", "", plain)
        for part in listed.split(","):
            if name := part.split(" as ")[0].strip():
                yield MODULE, name.replace(".", "/")
        return
    points = len(origin[1]) - len(origin[1].lstrip("."))
    module = origin[1][points:].replace(".", "/")
    for part in origin[2].strip("() \n").split(","):
        name = part.split(" as ")[0].strip(" ()\n\t")
        if name:
            path = "/".join(filter(None, [module, "" if name == "*" else name]))
            yield MODULE, "." * points + path


def _javascript(statement: str) -> Found:
    if found := _QUOTED.findall(statement):
        yield FILE, found[-1]


def _go(statement: str) -> Found:
    for path in _QUOTED.findall(statement):
        yield FOLDER, path


def _rust(statement: str) -> Found:
    plain = _COMMENT.sub("", statement)
    module = re.search(r"\bmod\s+(\w+)\s*;", plain)
    if module is not None:
        yield MODULE, f"self/{module[1]}"
        return
    used = re.search(r"\buse\s+(.*?);?\s*\Z", plain, re.S)
    for path in _branches(used[1] if used else ""):
        name = path.split(" as ")[0].replace("::", "/").strip(" /*").removesuffix("/self")
        if name:
            yield MODULE, re.sub(r"\s+", "", name)


def _branches(tree: str, before: str = "") -> Iterator[str]:
    """``a::{b, c::{d}}`` → ``a::b``, ``a::c::d``."""
    depth, start = 0, 0
    for place, sign in enumerate(tree + ","):
        depth += (sign == "{") - (sign == "}")
        if sign == "," and depth == 0:
            part = tree[start:place].strip()
            start = place + 1
            head, brace, rest = part.partition("{")
            if brace and before.count("::") < 40:
                yield from _branches(rest.rpartition("}")[0], before + head.strip())
            elif part:
                yield before + part


def _java(statement: str) -> Found:
    plain = re.sub(r" as \w+", "", " ".join(_COMMENT.sub("", statement).split()))
    plain = re.sub(r"^\s*import\s+(static\s+)?|[;\s]", "", plain)
    if plain.endswith((".*", "._")):
        yield FOLDER, plain[:-2].replace(".", "/")
    elif plain:
        yield MODULE, plain.replace(".", "/")


def _scala(statement: str) -> Found:
    plain = re.sub(r"^\s*import\s+", "", _COMMENT.sub("", statement)).strip()
    head, brace, listed = plain.partition("{")
    if not brace:
        yield from _java(f"import {plain}")
        return
    base = re.sub(r"\s", "", head).strip(".")
    for part in listed.rpartition("}")[0].split(","):
        name = re.split(r"=>|\sas\s", part)[0].strip()
        yield from _java(f"import {base}.{name}")


def _c(statement: str) -> Found:
    path = statement.strip()
    if path[:1] in ('"', "<"):
        yield FILE, path.strip('"') if path[:1] == '"' else path


def _csharp(statement: str) -> Found:
    plain = re.sub(r"^\s*(global\s+)?using\s+(static\s+)?(unsafe\s+)?", "", statement)
    name = re.sub(r"[;\s]", "", plain.rpartition("=")[2])
    if name and "(" not in name:
        yield NAMESPACE, name.replace("::", ".")


def _ruby(statement: str) -> Found:
    if found := _QUOTED.findall(statement):
        relative = statement.startswith(("require_relative", "load"))
        yield (FILE, f"./{found[0]}") if relative else (MODULE, found[0].removesuffix(".rb"))


def _php(statement: str) -> Found:
    if not re.match(r"\s*use\b", statement):
        if found := _QUOTED.findall(statement):
            yield FILE, "./" + found[-1].lstrip("/")
        return
    plain = re.sub(r"^\s*use\s+((function|const)\s+)?|;", "", statement)
    for path in _branches(plain.replace("\\", "::")):
        name = re.split(r"\s+as\s+", path)[0].replace("::", "/").strip(" /")
        if name:
            yield MODULE, re.sub(r"\s+", "", name)


def _swift(statement: str) -> Found:
    kinds = r"^\s*(@\w+\s+)*import\s+((?:struct|class|enum|protocol|typealias|func|let|var)\s+)?"
    plain = re.sub(kinds, "", statement).strip()
    if name := _NAME.match(plain):
        yield FOLDER, name[0]


_READERS: dict[str, Callable[[str], Found]] = {
    "python": _python, "javascript": _javascript, "typescript": _javascript, "tsx": _javascript,
    "go": _go, "rust": _rust, "java": _java, "kotlin": _java, "scala": _scala, "c": _c, "cpp": _c,
    "csharp": _csharp, "ruby": _ruby, "php": _php, "swift": _swift,
}  # fmt: skip
