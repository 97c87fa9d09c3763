"""Previews without the marks of Markdown: what stays, and where it is then."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasette_hybrid.search.plain_text import plainly

from .conftest import Served, soup

PIECES = [
    "# ",
    "## ",
    "**",
    "*",
    "_",
    "|",
    "|---|",
    "---",
    "\n",
    "\n\n",
    "- ",
    "1. ",
    " ",
    "word",
    "é",
    "`",
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("# Packing\n\nTwo coats.", "Packing\nTwo coats."),
        ("Out at **six**, *not* seven, __ever__.", "Out at six, not seven, ever."),
        ("The ferry across the\nriver, in\nthe rain.", "The ferry across the river, in the rain."),
        (
            "For the boat:\n- a rope\n- a lamp\n  with oil",
            "For the boat:\n- a rope\n- a lamp with oil",
        ),
        ("| port | tide |\n|---|:--:|\n| Hook | six |", "port | tide\nHook | six"),
        ("One.\n\n---\n\nTwo.", "One.\n\n\nTwo."),
        ("snake_case_name, 2*3*4 and x * y", "snake_case_name, 2*3*4 and x * y"),
        ("#hashtag stays", "#hashtag stays"),
    ],
)
def test_marks_go_and_words_stay(text: str, shown: str) -> None:
    assert plainly(text).text == shown


@given(TEXTS)
def test_every_character_that_stays_is_where_it_is_configured_to_be(text: str) -> None:
    plain = plainly(text)
    cut = {at for edit in plain.edits for at in range(edit.start, edit.end)}
    for at, character in enumerate(text):
        if at not in cut:
            assert plain.text[plain.place(at)] == character
    places = [plain.place(at) for at in range(len(text) + 1)]
    assert places == sorted(places)
    assert places[-1] == len(plain.text)


@given(TEXTS, st.integers(0, 60), st.integers(0, 60))
def test_what_is_kept_does_not_change(text: str, one: int, two: int) -> None:
    start, end = sorted((min(one, len(text)), min(two, len(text))))
    plain = plainly(text, [(start, end)] if start < end else [])
    assert plain.text[plain.place(start) :].startswith(text[start:end])


async def test_a_preview_shows_words_and_marks_those_looked_for(served: Served) -> None:
    text = (
        "# Ferry notes\n\n## Out\n\nThe **ferry to Hook** leaves\nat six; the "
        "`ferry --early` at five.\n\n| ferry | when |\n|---|---|\n| early | five |"
    )
    store = served.store
    store.add(text, title="Ferry notes")
    bob = served.by("bob")
    preview = _preview(await bob.get("?q=ferry+hook"))
    assert preview.get_text() == (
        "Out\nThe ferry to Hook leaves at six; the ferry --early at five.\n"
        "\nferry | when\nearly | five"
    )
    marks = [mark.get_text() for mark in preview.select("mark")]
    assert marks == ["ferry", "Hook", "ferry", "ferry"]
    row = (await bob.get(".json?q=ferry+hook")).json()["rows"][0]
    assert "**ferry to Hook** leaves\nat six" in row["preview"]


def _preview(response: Any) -> Any:
    return soup(response).select_one(".hy-result .hy-preview")
