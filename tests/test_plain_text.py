"""Previews without the marks of Markdown: what stays, and where it is then."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_store.plain_text import CODE, Plain, plainly, without_marks

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
    "==",
    "- ",
    "1. ",
    " ",
    "word",
    "é",
    "`",
    "[[",
    "](x)",
    "]]",
    "[",
    "> ",
    "%%",
    "\\",
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("# Packing\n\nTwo coats.", "Packing\nTwo coats."),
        ("# Oars [![Built](a.svg)](b) [![Seen][c]][d]\n\nTwo.", "Oars  \nTwo."),
        ("See [the rules][r], [these][] and ![a plan][p].", "See the rules, these and a plan."),
        ('Row.\n\n[r]: https://a.example/r\n[p]: <b.svg> "Plan"\n\nEnd.', "Row.\n\nEnd."),
        (
            "a[i][j] and [^1]\n\n[^1]: One.\n[Ann]: it is late",
            "a[i][j] and [^1]\n\n[^1]: One.\n[Ann]: it is late",
        ),
        ("Out at **six**, *not* seven, __ever__.", "Out at six, not seven, ever."),
        ("Out ==at six==. a==b, c==d, == e ==", "Out at six. a==b, c==d, == e =="),
        (
            "at six. The ferry\nthat goes across the river Hook stops where the old mill stood,\n"
            "and waits there for the rain, the post and whoever else is late to\nend.\n\nAnn",
            "at six. The ferry that goes across the river Hook stops where the old mill stood, "
            "and waits there for the rain, the post and whoever else is late to end.\n\nAnn",
        ),
        (
            "For the boat:\n- a rope\n- a lamp, of those that burn with a wick, and in summer\n"
            "  some oil against the flies",
            "For the boat:\n- a rope\n- a lamp, of those that burn with a wick, and in summer\n"
            "  some oil against the flies",
        ),
        (
            "- a lamp, of those that burn with a wick, and for the summer,\n  some oil",
            "- a lamp, of those that burn with a wick, and for the summer, some oil",
        ),
        ("milk\nbread\ntwo onions\n\nrice", "milk\nbread\ntwo onions\n\nrice"),
        (
            "Groceries for the weekend, from the market:\nmilk\nbread\nonions\n",
            "Groceries for the weekend, from the market:\nmilk\nbread\nonions\n",
        ),
        (
            "Write to:\nHarper Lindqvist\n"
            "Old Mill, 7 Long Lane behind the church, by the second gate\nKirkby",
            "Write to:\nHarper Lindqvist\n"
            "Old Mill, 7 Long Lane behind the church, by the second gate\nKirkby",
        ),
        ("| port | tide |\n|---|:--:|\n| Hook | six |", "port · tide\nHook · six"),
        ("| port | tide |\n| - | :-: |\n| Hook | six |", "port · tide\nHook · six"),
        ("| port | | tide |\n| Hook \\| six |\n| Den", "port · tide\nHook | six\n| Den"),
        ("tide. |\n| Hook | at six, or", "tide.\nHook · at six, or"),
        ("cat a |\nless, or |x|", "cat a\nless, or |x|"),
        ("One.\n\n---\n\nTwo.", "One.\n\nTwo."),
        ("One.\n\n![[map.png]]\n\n%% later %%\n\nTwo.", "One.\n\nTwo."),
        ("![[map.png]]\n\n\tOne.", "\tOne."),
        ("snake_case_name, 2*3*4 and x * y", "snake_case_name, 2*3*4 and x * y"),
        ("#hashtag stays", "#hashtag stays"),
        (
            "#+TITLE: Trees\n** TODO Prune\n:PROPERTIES:\n:ID: 7f\n:END:\nAsk [[id:7f][Ann]].\n"
            "** Tools\n#+begin_quote\nSharp ones.\n#+end_quote",
            "TODO Prune\nAsk Ann.\nTools\nSharp ones.\n",
        ),
        ("See [the plan](plan.md 'x') and [[Plan|it]].", "See the plan and it."),
        ('See [the plan](a/plan.md "Plan") and ![a map](map.png).', "See the plan and a map."),
        ("Map: ![[a/map.png#outline|100]] or [[map.png]]", "Map:  or map.png"),
        ("![[Ferry]] or [[Ferry#Out]] or [[#Out]]", "Ferry or Ferry › Out or Out"),
        ("![[Ferry#^b15695]], [[Ferry#^a|it]]", "Ferry, it"),
        ("- [ ] Rope\n* [x] Lamp\n- [x](y)", "☐ Rope\n☑ Lamp\n- x"),
        ("Out at six. ^b15695\n- x ^2\n\n^the-end", "Out at six.\n- x ^2\n\n"),
        ("> [!tip]- Early\n> Go at five.", "Early\nGo at five."),
        ("Seven.<!-- or six --> %%ask%%", "Seven. "),
        (r"\[`b17`] of total\_size, \*not\* em", "[`b17`] of total_size, *not* em"),
        (r"C:\Users and a\nb", r"C:\Users and a\nb"),
        ("Kelp\n====\n\n.. note:: Mind it\n\n.. _site: https://x.org\n", "Kelp\n\nMind it\n\n"),
        ("See :ref:`it`, `that <https://x.org>`_ and `this`_.", "See `it`, that and this."),
        ("a::b :c: 1:2 `d <e>` x_y_", "a::b :c: 1:2 `d <e>` x_y_"),
    ],
)
def test_marks_go_and_words_stay(text: str, shown: str) -> None:
    assert plainly(text).text == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("See [[Lisbon#Tra", "See Lisbon › Tra"),
        ("See ![[Lis", "See Lis"),
        ("See [[a/b|the tr", "See the tr"),
        ("See [the map](https://exa", "See the map"),
        ("a[0] and [[ -f x", "a[0] and [[ -f x"),
    ],
)
def test_a_link_that_a_preview_cuts_has_no_marks(text: str, shown: str) -> None:
    assert plainly(text).text == shown


@given(TEXTS)
def test_every_character_that_stays_is_where_it_is_configured_to_be(text: str) -> None:
    plain = plainly(text)
    for at, character in enumerate(text):
        if not _is_cut(plain, at):
            assert plain.text[plain.place(at)] == character
    places = [plain.place(at) for at in range(len(text) + 1)]
    assert places == sorted(places)
    assert places[-1] == len(plain.text)


def _is_cut(plain: Plain, at: int) -> bool:
    if plain.first is not None:
        if _is_cut(plain.first, at):
            return True
        at = plain.first.place(at)
    return any(edit.start <= at < edit.end for edit in plain.edits)


@given(TEXTS, st.integers(0, 60), st.integers(0, 60))
def test_what_is_kept_does_not_change(text: str, one: int, two: int) -> None:
    start, end = sorted((min(one, len(text)), min(two, len(text))))
    plain = plainly(text, [(start, end)] if start < end else [])
    assert plain.text[plain.place(start) :].startswith(text[start:end])


def test_the_marks_of_code_go_and_code_stays_as_it_is() -> None:
    text = "Run `a *b* c`:\n```sh\nmake **x**\n  [[y]]\n```\nIt is **done**."
    shown, marks = without_marks(text, [(text.index("done"), text.index("done") + 4)])
    assert shown == "Run a *b* c:\nmake **x**\n  [[y]]\nIt is done."
    assert [shown[start:end] for start, end in marks] == ["done"]


@given(TEXTS)
def test_highlights_stay_within_the_text(text: str) -> None:
    shown, marks = without_marks(text, [(0, len(text))])
    assert marks == [(0, len(shown))]


def test_each_code_block_is_looked_at_a_few_times_however_many_there_are() -> None:
    looks = 0

    class Counted(tuple[int, int]):
        def __getitem__(self, at: Any) -> Any:
            nonlocal looks
            looks += 1
            return super().__getitem__(at)

        def __iter__(self) -> Iterator[int]:
            nonlocal looks
            looks += 1
            return super().__iter__()

    for blocks in (100, 1_000):
        text, looks = "*a* `*b*`, long enough to be wrapped at its end by an editor\n" * blocks, 0
        kept = [Counted(found.span("inline")) for found in CODE.finditer(text)]
        plain = plainly(text, kept)
        assert (
            plain.text
            == " ".join(["a `*b*`, long enough to be wrapped at its end by an editor"] * blocks)
            + "\n"
        )
        assert 0 < looks <= 20 * blocks


def test_a_longer_fence_holds_shorter_ones() -> None:
    for fence in ("````", "~~~~~"):
        inner = "```md\n*as it is*\n```\n"
        assert without_marks(f"One.\n\n{fence}md\n{inner}{fence}\n*Two*", ())[0] == (
            f"One.\n\n{inner}Two"
        )


def test_code_keeps_its_empty_lines_and_around_it_one_is_left() -> None:
    text, marks = without_marks("One.\n\n\n\n```\na\n\n\n\nb\n```\n\n\n\nTwo.", [(26, 29)])
    assert text == "One.\n\na\n\n\n\nb\n\nTwo."
    assert [text[start:end] for start, end in marks] == ["Two"]
