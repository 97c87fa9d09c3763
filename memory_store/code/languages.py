"""Which language a source file is in, by its name or its first line.

Boundary: reads names and first lines; keeps nothing.

A language is called as its grammar is in ``semble-grammars``.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath

_SUFFIXES = {
    "bash": ".sh .bash .zsh .ksh",
    "batch": ".bat .cmd",
    "c": ".c .h",
    "clojure": ".clj .cljs .cljc",
    "cmake": ".cmake",
    "cpp": ".cc .cpp .cxx .c++ .hh .hpp .hxx .ipp .cu .cuh",
    "csharp": ".cs",
    "css": ".css",
    "dart": ".dart",
    "elixir": ".ex .exs",
    "erlang": ".erl .hrl",
    "fortran": ".f .f90 .f95 .f03",
    "go": ".go",
    "graphql": ".graphql .gql",
    "groovy": ".groovy .gradle",
    "haskell": ".hs",
    "hcl": ".tf .hcl",
    "html": ".html .htm",
    "ini": ".ini .cfg",
    "java": ".java",
    "javascript": ".js .jsx .mjs .cjs",
    "jinja2": ".j2 .jinja .jinja2",
    "julia": ".jl",
    "kotlin": ".kt .kts",
    "lua": ".lua",
    "make": ".mk",
    "nix": ".nix",
    "objc": ".m .mm",
    "ocaml": ".ml .mli",
    "perl": ".pl .pm",
    "php": ".php",
    "powershell": ".ps1 .psm1",
    "proto": ".proto",
    "python": ".py .pyi .pyw .pyx",
    "r": ".r",
    "racket": ".rkt",
    "ruby": ".rb .rake .gemspec",
    "rust": ".rs",
    "scala": ".scala .sbt",
    "scheme": ".scm .ss",
    "scss": ".scss .less",
    "solidity": ".sol",
    "sql": ".sql",
    "starlark": ".bzl .star",
    "svelte": ".svelte",
    "swift": ".swift",
    "toml": ".toml",
    "tsx": ".tsx",
    "typescript": ".ts .mts .cts",
    "vim": ".vim",
    "vue": ".vue",
    "xml": ".xml .xsd .xsl",
    "yaml": ".yaml .yml",
    "zig": ".zig",
}
_NAMES = {
    "build.bazel": "starlark",
    "cmakelists.txt": "cmake",
    "dockerfile": "dockerfile",
    "gemfile": "ruby",
    "gnumakefile": "make",
    "jenkinsfile": "groovy",
    "justfile": "just",
    "makefile": "make",
    "rakefile": "ruby",
}
_INTERPRETERS = {
    "ash": "bash", "bash": "bash", "dash": "bash", "ksh": "bash", "sh": "bash", "zsh": "bash",
    "deno": "typescript", "lua": "lua", "node": "javascript", "perl": "perl", "php": "php",
    "python": "python", "pwsh": "powershell", "rscript": "r", "ruby": "ruby", "uv": "python",
}  # fmt: skip
_SHEBANG = re.compile(
    rb"#![ \t]*(?:\S*/)?(?:env[ \t]+(?:-\S+[ \t]+)*(?:\S*/)?)?([A-Za-z]+)[\d.]*(?=\s|\Z)"
)

_LANGUAGE = {suffix: name for name, listed in _SUFFIXES.items() for suffix in listed.split()}
SUFFIXES = tuple(_LANGUAGE)
"""Every suffix of source code, in lower case."""


_CPP_HEADER = re.compile(
    r"^[ \t]*(?:template[ \t]*<|(?:inline[ \t]+)?namespace\b|using[ \t]+(?:namespace\b|\w+[ \t]*=)"
    r"|class[ \t]+\w|(?:private|public|protected)[ \t]*:|constexpr\b"
    r"|#[ \t]*include[ \t]*<[a-z_]+>)"
    r"|\bstd::\w",
    re.M,
)
_OBJC_HEADER = re.compile(
    r"^[ \t]*(?:@(?:interface|protocol|class|property|end|import)\b|#[ \t]*import\b)", re.M
)


def language_of_file(name: str, text: str) -> str | None:
    """The language of a file by its name or first line; a header's by what is in it."""
    language = language_of_name(name) or language_of_shebang(text[:200].encode())
    if language == "c" and name.lower().endswith(".h"):
        if _OBJC_HEADER.search(text):
            return "objc"
        if _CPP_HEADER.search(text):
            return "cpp"
    return language


def language_of_name(name: str) -> str | None:
    """The language of a file that is called so; ``None`` where its name does not say."""
    path = PurePosixPath(name)
    return _NAMES.get(path.name.lower()) or _LANGUAGE.get(path.suffix.lower())


def language_of_shebang(head: bytes) -> str | None:
    """The language of a script by its first line, ``#!/usr/bin/env python3``."""
    found = _SHEBANG.match(head)
    return _INTERPRETERS.get(found[1].decode().lower()) if found else None
