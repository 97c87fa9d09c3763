"""Chunks of source code, and what it defines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_store.code import grammars
from memory_store.code.chunks import CHUNK_CHARACTERS, code_chunks
from memory_store.code.definitions import defined_names, definitions, enclosing

LINES = st.sampled_from(
    [
        "",
        "class A:",
        "    def get_it(self):",
        "        return 'é' * 3",
        "# why",
        "x = [",
        "]",
        "}" * 90,
    ]
)
TEXTS = st.one_of(st.text(max_size=4_000), st.lists(LINES, max_size=400).map("\n".join))


@given(TEXTS, st.sampled_from(["python", "javascript", "no such language"]))
def test_every_character_is_in_exactly_one_chunk_of_bounded_size(text: str, language: str) -> None:
    chunks = code_chunks(text, language)
    assert "".join(text[start:end] for start, end in chunks) == text
    assert all(0 < end - start <= CHUNK_CHARACTERS for start, end in chunks)


def test_a_function_stays_whole_with_its_comment_and_decorator() -> None:
    body = "\n".join(f"    step_{n} = {n}" for n in range(50))
    parts = [f"# about {n}\n@cached\ndef work_{n}():\n{body}\n" for n in range(3)]
    text = "import os\n\n" + "\n".join(parts)
    held = [text[start:end] for start, end in code_chunks(text, "python")]
    assert all(any(part in one for one in held) for part in parts)


@pytest.mark.parametrize("about", ["", '    """' + "What is shut.\n" * 130 + '    """\n'])
def test_the_first_line_of_a_class_stays_with_what_it_begins(about: str) -> None:
    members = "".join(f"    def get_{n}(self):\n        return {n}\n\n" for n in range(60))
    text = f"def before():\n    pass\n\n\nclass Box(Lid):\n{about}{members}"
    first, second, *_ = (text[start:end] for start, end in code_chunks(text, "python"))
    assert first == "def before():\n    pass\n\n\n"
    assert second.startswith("class Box(Lid):\n")
    assert len(second) > CHUNK_CHARACTERS / 2


SOURCES = {
    "python": ("class Box:\n    def open(self):\n        pass\n", ["Box", "Box.open"]),
    "javascript": ("class Box { open() {} }\nconst shut = () => 1\n", ["Box", "Box.open", "shut"]),
    "typescript": (
        "interface Box { open(): void }\ntype Lid = string\n",
        ["Box", "Box.open", "Lid"],
    ),
    "go": ("package a\ntype Box struct{}\nfunc (b Box) Open() {}\n", ["Box", "Box.Open"]),
    "rust": ("struct Box;\nimpl Box { fn open(&self) {} }\n", ["Box", "Box.open"]),
    "java": ("class Box { void open() {} }\n", ["Box", "Box.open"]),
    "c": ("struct box { int a; };\nint open(int a) { return a; }\n", ["box", "open"]),
    "cpp": ("class Box { void open() {} };\n", ["Box", "Box.open"]),
    "csharp": ("class Box { void Open() {} }\n", ["Box", "Box.Open"]),
    "ruby": ("class Box\n  def open\n  end\nend\n", ["Box", "Box.open"]),
    "php": ("<?php\nclass Box { function open() {} }\n", ["Box", "Box.open"]),
    "kotlin": ("class Box { fun open() {} }\n", ["Box", "Box.open"]),
    "swift": ("class Box { func open() {} }\n", ["Box", "Box.open"]),
    "scala": ("class Box { def open() = 1 }\n", ["Box", "Box.open"]),
}


@pytest.mark.parametrize("language", SOURCES)
def test_definitions_are_known_in_fourteen_languages(language: str) -> None:
    text, expected = SOURCES[language]
    assert [one.path for one in definitions(text, language)] == expected


@pytest.mark.parametrize("language", SOURCES)
def test_names_are_known_without_a_grammar(language: str) -> None:
    text, expected = SOURCES[language]
    alike = {path.rpartition(".")[2] for path in expected}
    assert alike & set(defined_names(text))


@pytest.mark.parametrize("before", ["", "# how it opens\n    ", "@property\n    @cached\n    "])
def test_a_part_is_of_the_definition_that_its_indent_and_remarks_lead_to(before: str) -> None:
    text = f"class Box:\n    {before}def open(self):\n        return 1\n    size = 2\n"
    found, start = definitions(text, "python"), text.index("\n") + 1
    around = enclosing(found, start, text.index("    size") - 1, text)
    assert around is not None
    assert around.path == "Box.open"
    whole = enclosing(found, start, len(text.rstrip()), text)
    assert whole is not None
    assert whole.path == "Box"


def test_without_grammars_definitions_are_known_by_their_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(grammars, "installed", lambda: False)
    text = "import os\n\nclass Box:\n    def open(self, how):\n        pass\n"
    found = definitions(text, "python")
    assert [(one.name, one.line, one.signature) for one in found] == [
        ("Box", 3, "class Box:"),
        ("open", 4, "def open(self, how):"),
    ]
    assert enclosing(found, 0, len(text)) == found[0]
