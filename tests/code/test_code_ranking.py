"""Which file of a repository comes first, and by which rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from memory_store.code.definitions import bound_names
from memory_store.code.facts import further_kinds, path_kinds
from memory_store.search import recipes
from memory_store.search.recipes import CODE
from memory_store.store import MemoryStore

FILLER = "\n".join(f"def other_{n}(value):\n    return value + {n}\n" for n in range(8))

Ranked = Callable[..., list[str | None]]


@pytest.fixture
def ranked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ranked:
    """The files found, best first, with the recipe ``code`` as it is or with other figures."""

    def search(files: Mapping[str, str], query: str, **figures: Any) -> list[str | None]:
        tree = tmp_path / "tree"
        for name, text in files.items():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text(text, "utf-8")
        (tree / ".git").mkdir(exist_ok=True)
        known = {**recipes.RECIPES, "changed": replace(CODE, name="changed", **figures)}
        monkeypatch.setattr(recipes, "RECIPES", known)
        with MemoryStore.in_memory() as store:
            store.import_paths([tree], embed=False)
            return [row.ref for row in store.search(query, recipe="changed").rows]

    return search


def test_a_name_alone_leads_to_its_definition_and_not_to_what_exports_it(ranked: Ranked) -> None:
    files = {
        "shop/__init__.py": "from shop.tills import Till as Till\n",
        "shop/tills.py": f"class Till:\n    pass\n\n{FILLER}",
        "shop/sales.py": FILLER,
    }
    plain = {"name_boost": 0.0, "file_boost": 0.0}
    assert ranked(files, "Till", **plain)[0] == "shop/tills.py"
    assert ranked(files, "Till", symbol_boost=0.0, **plain)[0] == "shop/__init__.py"


def test_a_question_finds_a_definition_by_other_forms_of_its_words(ranked: Ranked) -> None:
    files = {
        "shop/keys.py": f"def sign_cookie(payload):\n    return 1\n\n{FILLER}",
        "shop/views.py": f"# payload, payload\ndef show(payload):\n    return 1\n\n{FILLER}",
    }
    question = "where are cookies signed with their payload"
    assert ranked(files, question)[0] == "shop/keys.py"
    plain = {"name_boost": 0.0, "description_boost": 0.0}
    assert ranked(files, question, **plain)[0] == "shop/views.py"


@pytest.mark.parametrize(
    "till",
    [
        'def close(till):\n    """Count the coins of a day, and print their sum."""\n',
        "# Counts the coins of a day and prints their sum.\n@once\ndef close(till):\n    pass\n",
    ],
)
def test_a_question_finds_the_definition_whose_comment_or_docstring_says_it(
    ranked: Ranked, till: str
) -> None:
    said = "# coins, coins, a day\n\n\ndef each(day):\n    # the sum is printed, printed\n    pass"
    files = {"shop/a.py": f"{till}\n{FILLER}", "shop/b.py": f"{said}\n{FILLER}"}
    question = "how are the coins of a day counted and their sum printed"
    assert ranked(files, question)[0] == "shop/a.py"
    assert ranked(files, question, description_boost=0.0)[0] == "shop/b.py"


@pytest.mark.parametrize("file", ["shop/discounts.py", "shop/discounts/__init__.py"])
def test_a_file_answers_for_what_it_is_called(ranked: Ranked, file: str) -> None:
    files = {
        file: f"def lowered(price):\n    return price\n\n{FILLER}",
        "shop/sums.py": f"# price, price\ndef total(price):\n    return price\n\n{FILLER}",
    }
    assert ranked(files, "discounted price")[0] == file
    assert ranked(files, "discounted price", file_boost=0.0)[0] == "shop/sums.py"


def test_code_in_a_folder_of_documents_is_found_when_documents_are_asked_for(
    ranked: Ranked,
) -> None:
    files = {
        "doc/pages.go": "package doc\n\nfunc WritePages(command string) {\n}\n",
        "run.go": "package shop\n\n// write pages of a command\nfunc Run(command string) {\n}\n",
    }
    assert ranked(files, "write pages of a command")[0] == "run.go"
    assert ranked(files, "documentation: write pages of a command")[0] == "doc/pages.go"


def test_a_declaration_stands_behind_the_code(ranked: Ranked) -> None:
    files = {
        "till.d.ts": "export declare function openTill(count: number): void;\n",
        "till.ts": f"export function openTill(count: number) {{}}\n// {FILLER!r}\n",
    }
    assert ranked(files, "openTill count") == ["till.ts", "till.d.ts"]
    assert ranked(files, "openTill count", path_factors={})[0] == "till.d.ts"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("LIMIT = 3\n", "LIMIT"),
        ("limits: dict[str, int] = {}\n", "limits"),
        ("export const limit: RegExp = /a/;\n", "limit"),
        ("pub static LIMIT: &[u8] = &[1];\n", "LIMIT"),
        ("var ErrLimit = errors.New(x)\n", "ErrLimit"),
    ],
)
def test_what_a_whole_file_knows_by_a_name_is_defined_there(text: str, name: str) -> None:
    assert bound_names(text) == [name]
    assert name not in bound_names(f"def f():\n    {text}")


@pytest.mark.parametrize("comparison", ["limit == 3\n", "call(limit=3)\n", "if limit := 3:\n"])
def test_what_is_compared_or_handed_over_is_not_defined(comparison: str) -> None:
    assert "limit" not in bound_names(comparison)


@pytest.mark.parametrize(
    "path",
    [
        *("t/unit/a.py", "shop/tests.py", "conftest.py", "spec/a.rb", "a_spec.rb", "a-test.js"),
        *("a.test-d.ts", "TillSpec.scala", "benches/sum.rs", "testdata/a.go", "__mocks__/a.js"),
    ],
)
def test_a_file_of_tests_is_known_by_its_path(path: str) -> None:
    assert "tests" in {*path_kinds(path), *further_kinds(path)}


@pytest.mark.parametrize("path", ["contest.py", "latest.go", "inspect.js", "aspec.rb", "at/a.py"])
def test_a_word_that_ends_alike_is_no_test(path: str) -> None:
    assert (path_kinds(path), further_kinds(path)) == ((), ())


def test_a_name_with_its_class_finds_that_of_the_class(ranked: Ranked) -> None:
    box = f"class Box:\n    def lift(self):\n        return 1\n\n{FILLER}"
    crane = (
        "from a import Box\n\nclass Crane:\n    # Box, Box: lift, lift\n    def lift(self): ...\n"
    )
    files = {"shop/a.py": box, "shop/b.py": f"{crane}\n{FILLER}"}
    assert ranked(files, "Crane.lift")[0] == "shop/b.py"
    assert ranked(files, "Box.lift")[0] == "shop/a.py"
    assert ranked(files, "Box::lift()")[0] == "shop/a.py"
    assert ranked(files, "Box.lift", symbol_boost=0.0)[0] == "shop/b.py"
