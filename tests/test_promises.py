"""Every promise on the pages about trust names the tests that hold it, and those tests exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
DOCS = TESTS.parent / "docs"
PAGES = (
    *("trust/security.md", "trust/permissions.md"),
    *("how-to/keys.md", "how-to/unlock.md", "how-it-works/sealing.md"),
)
TESTED = re.compile(r"^Tests:\s(.+?)(?:\n\n|\n?\Z)", re.MULTILINE | re.DOTALL)
BELIEF = re.compile(r"^Belief, no test: ", re.MULTILINE)
NO_PROMISES = {
    "Configuration": "examples, which are run",
    "Collections and members on the web": "a table of addresses; the OpenAPI tests hold it",
    "Report a problem": "an address",
    "What is proved": "a table of tests",
}


def sections(page: str) -> dict[str, str]:
    """Title → text of each section of a page; the text above the first has the title ''."""
    title, found = "", {"": ""}
    fenced = False
    for line in (DOCS / page).read_text("utf-8").splitlines():
        fenced ^= line.startswith("```")
        if line.startswith("## ") and not fenced:
            title = line[3:].strip()
            found[title] = ""
        else:
            found[title] += line + "\n"
    return found


def named(page: str) -> list[str]:
    """The tests that a page names: `folder/test_file.py` or `folder/test_file.py::test_name`."""
    text = (DOCS / page).read_text("utf-8")
    return re.findall(r"(?:tests/)?((?:\w+/)*test_\w+\.py(?:::test_\w+)?)", text)


@cache
def functions(file: Path) -> frozenset[str]:
    tree = ast.parse(file.read_text("utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, kinds))


@pytest.mark.parametrize("page", PAGES)
def test_every_test_that_a_page_names_is_there(page: str) -> None:
    tests = named(page)
    assert tests, f"{page} names no test"
    for test in tests:
        file, _, function = test.partition("::")
        assert (TESTS / file).is_file(), f"{page} names {file}"
        assert not function or function in functions(TESTS / file), f"{page} names {test}"


@pytest.mark.parametrize("page", PAGES)
def test_every_section_names_the_tests_of_its_promises(page: str) -> None:
    without = [
        title
        for title, text in sections(page).items()
        if title and title not in NO_PROMISES
        if not TESTED.search(text) and not BELIEF.search(text)
    ]
    assert without == []
