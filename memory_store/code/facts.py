"""What ranking asks of a source file besides its words: the names it defines, what its path says.

Boundary: reads opened text and a path; keeps nothing. An index holds these facts as keyed hashes,
as it holds words, each under a name of its own kind that no word of a text can have.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from memory_store.code.definitions import defined_names
from memory_store.text.canonical import folded

DEFINES = "code: defines"
PATH = "code: path"

TESTS, EXAMPLES = "tests", "examples"
PROSE = "prose"
"""What is no source code: the documents of a repository."""

_TEST_FOLDERS = frozenset({"test", "tests", "__tests__", "spec", "specs", "testing"})
_COMPAT_FOLDERS = frozenset({"compat", "_compat", "legacy"})
_EXAMPLE_FOLDERS = frozenset({"example", "examples", "doc", "docs"})
_BARRELS = frozenset({"__init__.py", "package-info.java"})  # prx, "Noise Penalties"
_PROSE = (".md", ".markdown", ".txt", ".rst")  # a note on a blood test is no test
_TEST_NAME = re.compile(r"test_|.*_tests?\.\w+\Z|.*\.(?:test|spec)\.\w+\Z|.*[a-z0-9]Tests?\.\w+\Z")


def facts(text: str, ref: str | None) -> dict[str, Sequence[str]]:
    """The facts of a file: the words of each kind, in order."""
    return {DEFINES: [*map(folded, defined_names(text))], PATH: path_kinds(ref or "")}


def path_kinds(path: str) -> tuple[str, ...]:
    """What kinds of noise a file is, by its path alone: none, one or several."""
    *above, own = path.rstrip("/").split("/")
    name, folders = own.lower(), {part.lower() for part in above}
    kinds = {
        TESTS: bool(folders & _TEST_FOLDERS) or _is_test_name(own),
        "compat": bool(folders & _COMPAT_FOLDERS),
        EXAMPLES: bool(folders & _EXAMPLE_FOLDERS),
        "barrel": name in _BARRELS,
        "declarations": name.endswith(".d.ts"),
    }
    return tuple(kind for kind, is_one in kinds.items() if is_one)


def is_noise(path: str) -> bool:
    """Whether a file is a test or an example, by its path."""
    return bool({TESTS, EXAMPLES}.intersection(path_kinds(path)))


def _is_test_name(name: str) -> bool:
    """``test_a.py``, ``a_test.go``, ``a.test.ts``, ``a.spec.js``, ``ATest.java``."""
    return not name.lower().endswith(_PROSE) and _TEST_NAME.match(name) is not None
