"""Structural search: code with holes, tried on the few files that may match it."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from ast_grep_py import SgRoot

from memory_store.code import patterns
from memory_store.code.patterns import StructuralPattern
from memory_store.errors import BadInputError, ExtraMissingError
from memory_store.records import MemoryDraft, SearchResponse
from memory_store.search import literal
from memory_store.store import MemoryStore

FILES = {
    "a.py": (
        "def open_box(key):\n    try:\n        return turn(key)\n"
        "    except OSError:\n        pass\n"
    ),
    "b.py": "try:\n    turn(1, two)\nexcept ValueError: pass\nsame(x, x)\nsame(x, y)\n",
    "c.py": "# except OSError: pass\ntext = 'turn(key)'\n",
    "d.js": "class Box { turn(key) { return this.turn(key, 1); } }\n",
    "e.go": "package e\nfunc Turn(key int) error { if err != nil { return err }; return nil }\n",
    "f.py": "def (((\n  turn(key)\n",
}


@pytest.fixture(scope="module")
def code(module_store: MemoryStore) -> MemoryStore:
    """A vault with source code in three languages, and a note that looks like some."""
    languages = {".py": "python", ".js": "javascript", ".go": "go"}
    drafts = [
        MemoryDraft(
            text, type="code", ref=name, metadata={"language": languages[Path(name).suffix]}
        )
        for name, text in FILES.items()
    ]
    note = MemoryDraft("turn(key) and except OSError: pass", ref="note")
    module_store.add_many([*drafts, note], embed=False)
    return module_store


def search(store: MemoryStore, pattern: str, **options: Any) -> SearchResponse:
    return store.search(pattern, mode="structural", **options)


def places(response: SearchResponse) -> dict[str | None, list[tuple[int, int]]]:
    return {row.ref: [(one.line, one.column) for one in row.matches] for row in response.rows}


def test_syntax_is_found_and_not_what_looks_like_it(code: MemoryStore) -> None:
    response = search(code, "except $E: pass", language="python")
    assert places(response) == {"a.py": [(4, 5)], "b.py": [(3, 1)]}
    assert response.opened == 3  # c.py holds the words, too


def test_holes_are_captured_and_one_name_stands_for_the_same_code(code: MemoryStore) -> None:
    (row,) = search(code, "same($X, $X)").rows
    assert [(one.text, dict(one.captures)) for one in row.matches] == [("same(x, x)", {"X": "x"})]
    assert row.matches[0].text in row.matches[0].context
    found = search(code, "turn($$$ALL)", language="py").rows
    assert {(row.ref, one.captures["ALL"]) for row in found for one in row.matches} == {
        *(("a.py", "key"), ("b.py", "1, two"), ("f.py", "key")),
    }


def test_without_a_language_each_file_is_read_in_its_own(code: MemoryStore) -> None:
    found = places(search(code, "$F(key, 1)"))
    assert found == {"d.js": [(1, 32)]}
    assert places(search(code, "if err != nil { $$$ }")) == {"e.go": [(2, 28)]}


def test_auto_takes_holes_for_a_structural_pattern(code: MemoryStore) -> None:
    response = code.search("same($A, $B)", mode="auto")
    assert (response.mode, len(response.rows[0].matches)) == ("structural", 2)


def test_a_result_shows_the_passage_around_its_matches(code: MemoryStore) -> None:
    (row,) = search(code, "same($X, $X)").rows
    (passage,) = row.passages
    assert [passage.text[start:end] for start, end in passage.highlights] == ["same(x, x)"]


@pytest.mark.parametrize("pattern", ["turn($A)", "$F($$$)", "same($A, $B)", "$X = $Y", "pass"])
def test_what_is_found_is_what_ast_grep_finds_in_every_file(
    code: MemoryStore, pattern: str
) -> None:
    found = {
        row.ref: [one.text for one in row.matches]
        for row in search(code, pattern, language="python", all=True).rows
    }
    expected = {
        name: [
            node.text() for node in SgRoot(text.rstrip(), "python").root().find_all(pattern=pattern)
        ]
        for name, text in FILES.items()
        if name.endswith(".py")
    }
    assert found == {name: texts for name, texts in expected.items() if texts}


def test_a_pattern_without_a_word_is_tried_page_by_page_or_on_all(
    code: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert search(code, "$A($A, $A)").opened == len(FILES)
    assert search(code, "$A == $A", all=True).opened == len(FILES)
    monkeypatch.setattr(literal, "MOST_CANDIDATES", 4)
    first = search(code, "$F($X, $X)")
    second = search(code, "$F($X, $X)", continue_=first.next)
    assert (first.opened, second.opened) == (4, len(FILES) - 4)
    assert [*places(first), *places(second)] == ["b.py"]
    assert "no index can narrow this pattern, for it holds no word: 2 more" in first.degraded[0]


@pytest.mark.parametrize(
    ("pattern", "language", "said"),
    [
        ("def )))", "python", "cannot be read as python; write code with"),
        ("switch ($X) { case 1: $Y }", "python", r"python, from line 1, column \d\d on"),
        ("fn $F() -> $R { $$$ }", "python", "cannot be read as python; it can be as c, cpp"),
        ("turn($A)", "cobol", "no patterns in 'cobol'; there is: bash, c, cpp"),
        ("turn($A)", "pyton", r"no patterns in 'pyton' \(did you mean python\?\)"),
        ("turn($A)", "golan", r"did you mean go\?"),
        ("turn($A, (1)", None, r"does not close the \( in line 1, column 5"),
        ("if ($X)\n  {", "js", r"does not close the \{ in line 2, column 3"),
        ("x" * 1_001, None, "more than 1,000 characters"),
    ],
)
def test_a_pattern_that_cannot_serve_is_refused(
    code: MemoryStore, pattern: str, language: str | None, said: str
) -> None:
    with pytest.raises(BadInputError, match=said):
        search(code, pattern, language=language)


def test_a_pattern_that_no_file_can_be_compared_with_is_not_said_to_match_nothing(
    code: MemoryStore,
) -> None:
    (line,) = search(code, "try $X").degraded  # no body: Bash takes it, Python does not
    assert line.startswith("2 files were not compared: this pattern cannot be read as python")
    assert search(code, "turn($A, $B, $C)").degraded == ()
    assert search(code, "if err != nil { $$$ }").degraded == ()  # found in another language


def test_without_ast_grep_the_extra_is_named(
    code: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        patterns, "find_spec", lambda name: None if name == "ast_grep_py" else find(name)
    )
    with pytest.raises(ExtraMissingError, match=r"pip install 'datasette-hybrid\[code\]'"):
        search(code, "turn($A)")


def test_a_bracket_in_quotes_and_a_lifetime_close_and_open_nothing() -> None:
    for pattern in ("print('(')", "fn f(x: &'a T) -> Vec<&'b U> { $$$ }", "case $X)", 'f("\\"(")'):
        assert patterns.unclosed(pattern) is None, pattern
    assert patterns.unclosed("f(a, (b)") == 1


def test_parts_of_code_are_read_in_what_they_need_around_them() -> None:
    cases = {
        ("python", "finally: $$$B"): "try:\n  a()\nfinally:\n  b()\n",
        ("javascript", "get $N() { $$$B }"): "class A { get x() { return 1 } }\n",
        ("go", "case $X: $$$B"): "package a\nfunc f() {\nswitch x {\ncase 1: b()\n}\n}\n",
        ("c", "turn($A, 1)"): "int f(int a) { return turn(a, 1); }\n",
    }
    for (language, pattern), text in cases.items():
        assert len(StructuralPattern(pattern).matches(text, language, 9)) == 1, pattern
