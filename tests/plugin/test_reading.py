"""Markdown becomes HTML for reading, and nothing else ever becomes HTML."""

from __future__ import annotations

import html
import re
import threading
import time
from typing import Any

import pytest
from bs4 import BeautifulSoup
from hypothesis import given, settings
from hypothesis import strategies as st

from datasette_hybrid.memories import page as memory_page
from datasette_hybrid.memories.reading import LINE_LIMIT, readable, unwrapped
from datasette_hybrid.search.result_views import marked

from .conftest import Served

OURS = {"p", "br", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "span", "pre", "code", "hr"}
OURS |= {"blockquote", "div", "table", "thead", "tbody", "tr", "th", "td", "a", "strong", "em"}
ATTRIBUTES = {"a": {"href", "rel"}, "li": {"class"}, "span": {"role", "aria-label"}}
MARKS = ["<", ">", '"', "'", "&", "`", "```", "*", "**", "_", "[", "](", ")", "!", "|", "\n", " "]
STARTS = ["# ", "- ", "> ", "1. ", "[x] ", "--- | ---", "\t", "{{7*7}}", "&#x6a;", "\x00", "é"]
LURES = ["javascript:", "https://x.example/", "<script>", "onerror=", "data:text/html,"]
PIECES = st.lists(st.sampled_from([*MARKS, *STARTS, *LURES]), max_size=40).map("".join)


def parsed(html: str) -> BeautifulSoup:
    return BeautifulSoup(f"<body>{html}</body>", "html.parser").body


@settings(max_examples=400)
@given(PIECES | st.text(max_size=200))
def test_only_our_own_tags_attributes_and_addresses_come_out(text: str) -> None:
    page = parsed(readable(text))
    for tag in page.find_all(True):
        assert tag.name in OURS
        assert set(tag.attrs) <= ATTRIBUTES.get(tag.name, {"class"})
        if tag.name == "a":
            assert tag["href"].lower().startswith(("http://", "https://", "mailto:"))


@settings(max_examples=300)
@given(PIECES, st.lists(st.tuples(st.integers(-5, 60), st.integers(-5, 60)), max_size=5))
def test_marking_words_changes_no_text(text: str, highlights: list[tuple[int, int]]) -> None:
    shown = str(marked(text, highlights))
    assert html.unescape(re.sub("</?mark>", "", shown)) == text
    assert shown.count("<mark>") == shown.count("</mark>")


@given(st.text(alphabet="ab \n-#>", max_size=400))
def test_unwrapping_moves_no_character(text: str) -> None:
    flat = unwrapped(text)
    assert len(flat) == len(text)
    assert all(a == b or (a, b) == ("\n", " ") for a, b in zip(text, flat, strict=True))


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("# One\n\nword", "<h2>One</h2>\n<p>word</p>"),
        ("a **b** *c* `d`", "<p>a <strong>b</strong> <em>c</em> <code>d</code></p>"),
        ("snake_case_name", "<p>snake_case_name</p>"),
        ("```py\nx < 1\n```", "<pre><code>x &lt; 1</code></pre>"),
        ("> said", "<blockquote><p>said</p></blockquote>"),
        ("[x](javascript:alert)", "<p>[x](javascript:alert)</p>"),
        ("![x](https://e.example/p.png)", "<p>![x](https://e.example/p.png)</p>"),
    ],
)
def test_the_common_forms(text: str, html: str) -> None:
    assert str(readable(text)) == html


def test_a_heading_that_repeats_the_title_is_left_out() -> None:
    assert str(readable("# Garden\n\nBeans.", title="Garden")) == "<p>Beans.</p>"


def test_lines_that_an_editor_cut_flow_again_and_verse_stays() -> None:
    long = "word " * 15
    assert "<br>" not in readable(f"{long}\n{long}")
    assert str(readable("Roses are red\nViolets are blue")).count("<br>") == 1


@pytest.mark.parametrize(
    "text", ["[" * 20_000, "*" * 20_000, "> " * 5_000, "`" * 20_001, "_a" * 9_000]
)
def test_hostile_repetition_is_read_quickly(text: str) -> None:
    """Would hang if an expression could go back and forth over its input."""
    assert readable(text)


BLANKS = " " * 200_000
SHORTER = " " * (LINE_LIMIT - 20)  # blanks that the limit lets through


@pytest.mark.parametrize("blanks", [BLANKS, SHORTER], ids=["long", "longest"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# ", "x"),
        ("# a", "#x"),
        ("a | b\n", "x"),
        ("a | b\n--", "x"),
        ("a | b\n|", "|x"),
        ("a | b\n-- |", "x"),
        ("---", "x"),
        ("- ", "x"),
        ("- [x]", "x"),
        ("> ", "x"),
        ("``` ", "\nx"),
        ("", "x"),
    ],
)
def test_a_long_run_of_blanks_is_read_at_once(before: str, blanks: str, after: str) -> None:
    """Far more than a second goes by where an expression tries every way to share them out."""
    started = time.process_time()  # of this process: others may be busy, too
    shown = readable(before + blanks + after)
    assert time.process_time() - started < 1
    assert "x" in shown


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("# One ##", "<h2>One</h2>"),
        ("# One # #", "<h2>One #</h2>"),
        ("#tag", "<p>#tag</p>"),
        ("* * *", "<hr>"),
        ("* * -", '<ul><li class="level-0">* -</li></ul>'),
        ("a | b\n--- | -", "<p>a | b<br>\n--- | -</p>"),
    ],
)
def test_what_is_a_heading_a_rule_or_a_table(text: str, html: str) -> None:
    assert str(readable(text)) == html


@pytest.mark.parametrize("rule", ["--|--", "| --- | :--: |", ":-- | --:", "|--|--|"])
def test_a_table_may_be_ruled_in_many_ways(rule: str) -> None:
    table = parsed(readable(f"a | b\n{rule}\n1 | 2\n"))
    assert [cell.get_text() for cell in table.select("th, td")] == ["a", "b", "1", "2"]


def test_a_line_too_long_to_be_markdown_is_shown_as_it_is() -> None:
    long = "**a** " * LINE_LIMIT
    shown = parsed(readable(f"*one*\n{long}\n- *two*"))
    assert [tag.get_text() for tag in shown.select("em")] == ["one", "two"]
    assert long in shown.get_text()
    assert not shown.select("strong")


async def test_a_memory_is_made_readable_in_a_thread_of_its_own(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not where all other requests wait for it."""
    threads = []

    def watched(text: str, **options: Any) -> Any:
        threads.append(threading.current_thread())
        return readable(text, **options)

    monkeypatch.setattr(memory_page, "readable", watched)
    one = f"{served.base}/memories/00000000-0000-4000-8000-000000000001"
    assert (await served.by("bob").get(one)).status_code == 200
    assert len(threads) == 1
    assert threads[0] is not threading.main_thread()
