"""What ranking asks of a source file besides its words: what it defines, what its path says.

Boundary: reads opened text and a path; keeps nothing. An index holds these facts as keyed hashes,
as it holds words, each under a name of its own kind that no word of a text can have. What a kind
holds stays as it is: vaults that have it are held against it. What is to be known besides is a kind
of its own, which earlier vaults lack.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from memory_store.code.definitions import bound_names, defined_names
from memory_store.text import tokens
from memory_store.text.canonical import folded
from memory_store.text.identifiers import names_of

DEFINES = "code: defines"
PATH = "code: path"
EARLIER = frozenset({DEFINES, PATH})
"""The kinds that there were at first."""
BINDS = "code: binds"
NAMED = "code: named"
FILE = "code: file"
PLACE = "code: place"

TESTS, EXAMPLES, DECLARATIONS = "tests", "examples", "declarations"
PROSE = "prose"
"""What is no source code: the documents of a repository."""

NAMES_LANGUAGE = "en"
"""In which names are mostly written: their words are compared by its stems."""

_TEST_FOLDERS = frozenset({"test", "tests", "__tests__", "spec", "specs", "testing"})
_COMPAT_FOLDERS = frozenset({"compat", "_compat", "legacy"})
_EXAMPLE_FOLDERS = frozenset({"example", "examples", "doc", "docs"})
_BARRELS = frozenset({"__init__.py", "package-info.java"})  # prx, "Noise Penalties"
_PROSE = (".md", ".markdown", ".txt", ".rst")  # a note on a blood test is no test
_TEST_NAME = re.compile(r"test_|.*_tests?\.\w+\Z|.*\.(?:test|spec)\.\w+\Z|.*[a-z0-9]Tests?\.\w+\Z")

_MORE_TEST_FOLDERS = frozenset(
    {
        *("t", "testdata", "e2e", "fixtures", "__fixtures__", "__mocks__"),
        *("benchmarks", "bench", "benches"),
    }
)
_MORE_TEST_NAMES = re.compile(
    r"(?:conf)?tests?\.\w+\Z|.*[._-](?:tests?|spec|test-d)\.\w+\Z|.*[a-z0-9]Spec\.\w+\Z"
)
_DECLARATIONS = (".d.mts", ".d.cts", ".pyi")
_FOR_THE_FOLDER = frozenset({"__init__", "index", "mod", "lib", "main"})
"""Names of files that stand for the folder they are in."""


def facts(text: str, ref: str | None) -> dict[str, Sequence[str]]:
    """The facts of a file: the words of each kind, in order."""
    defined, bound, path = defined_names(text), bound_names(text), ref or ""
    return {
        DEFINES: [*map(folded, defined)],
        BINDS: [*map(folded, bound)],
        NAMED: name_stems([*defined, *bound]),
        FILE: name_stems(names_of(_subject(path))),
        PATH: path_kinds(path),
        PLACE: further_kinds(path),
    }


def name_stems(names: Iterable[str]) -> list[str]:
    """The words that names are made of, each once, by their stems."""
    stems = (stem for name in names for stem in tokens.name_stems(name, NAMES_LANGUAGE))
    return [*dict.fromkeys(stems)]


def _subject(path: str) -> str:
    """The name by which a file says what it is about: its own, or that of its folder."""
    *above, own = path.split("/")
    stem = own.partition(".")[0]
    return above[-1] if above and stem.lower() in _FOR_THE_FOLDER else stem


def path_kinds(path: str) -> tuple[str, ...]:
    """What kinds of noise a file is, by its path alone: none, one or several."""
    *above, own = path.rstrip("/").split("/")
    name, folders = own.lower(), {part.lower() for part in above}
    kinds = {
        TESTS: bool(folders & _TEST_FOLDERS) or _is_test_name(own),
        "compat": bool(folders & _COMPAT_FOLDERS),
        EXAMPLES: bool(folders & _EXAMPLE_FOLDERS),
        "barrel": name in _BARRELS,
        DECLARATIONS: name.endswith(".d.ts"),
    }
    return tuple(kind for kind, is_one in kinds.items() if is_one)


def further_kinds(path: str) -> tuple[str, ...]:
    """What else it is: tests and declarations as they are called in more languages than prx's.

    ``t/a.py``, ``tests.py``, ``conftest.py``, ``a_spec.rb``, ``a-test.js``, ``ASpec.scala``.
    """
    *above, own = path.rstrip("/").split("/")
    name, folders = own.lower(), {part.lower() for part in above}
    kinds = {
        TESTS: bool(folders & _MORE_TEST_FOLDERS)
        or (not name.endswith(_PROSE) and _MORE_TEST_NAMES.match(own) is not None),
        DECLARATIONS: name.endswith(_DECLARATIONS),
    }
    return tuple(kind for kind, is_one in kinds.items() if is_one)


def is_noise(path: str) -> bool:
    """Whether a file is a test or an example, by its path."""
    return bool({TESTS, EXAMPLES}.intersection(path_kinds(path)))


def _is_test_name(name: str) -> bool:
    """``test_a.py``, ``a_test.go``, ``a.test.ts``, ``a.spec.js``, ``ATest.java``."""
    return not name.lower().endswith(_PROSE) and _TEST_NAME.match(name) is not None
