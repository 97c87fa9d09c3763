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

from datasette_hybrid.marks import marked
from datasette_hybrid.memories import page as memory_page
from datasette_hybrid.memories.markdown import BLOCK_LIMIT, Notes, readable

from .conftest import ONE, Served

OURS = {"p", "br", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "span", "pre", "code", "hr"}
OURS |= {"blockquote", "div", "table", "thead", "tbody", "tr", "th", "td", "a", "strong", "em"}
OURS |= {"s", "sup", "section", "details", "summary"}
ATTRIBUTES = {
    "a": {"href", "rel", "id"},
    "li": {"class", "id"},
    "ol": {"start"},
    "pre": {"tabindex"},
    "div": {"class", "tabindex"},
    "details": {"class", "open"},
    "span": {"role", "aria-label", "class"},
}
CLASSES = {"task", "footnote-item", "title", "wide", "callout", "info", "good", "care", "bad"}
CLASSES |= {"center", "right", "footnotes", "missing", "embed", "highlight", "comment"}
MEMORY = "/notes/-/hybrid/memories/00000000-0000-4000-8000-000000000001"
MARKS = [
    "[[",
    "]]",
    "![[",
    "#",
    "<",
    ">",
    '"',
    "'",
    "&",
    "`",
    "```",
    "*",
    "**",
    "==",
    "_",
    "[",
    "](",
    ")",
    "!",
    "|",
    "\n",
    " ",
]
STARTS = [
    "[^1]",
    "[^1]: ",
    "> [!note] ",
    "~~",
    "https://",
    "www.",
    "<a href=",
    "--- | :-:",
    "# ",
    "- ",
    "> ",
    "1. ",
    "[x] ",
    "--- | ---",
    "\t",
    "{{7*7}}",
    "&#x6a;",
    "\x00",
    "é",
]
LURES = ["javascript:", "https://x.example/", "<script>", "onerror=", "data:text/html,"]
PIECES = st.lists(st.sampled_from([*MARKS, *STARTS, *LURES]), max_size=40).map("".join)


def parsed(html: str) -> BeautifulSoup:
    return BeautifulSoup(f"<body>{html}</body>", "html.parser").body


@settings(max_examples=400)
@given(PIECES | st.text(max_size=200))
def test_only_our_own_tags_attributes_and_addresses_come_out(text: str) -> None:
    only_ours(parsed(readable(text)))
    only_ours(parsed(readable(text, notes=EVERYTHING)), MEMORY)


class Everything(dict):  # type: ignore[type-arg]
    """Whatever a link asks for is there."""

    def get(self, *_: object) -> str:
        return ONE

    def __getitem__(self, _: object) -> str:
        return ONE


INSIDE = Notes(lambda _: MEMORY, Everything())
EVERYTHING = Notes(
    lambda _: MEMORY, Everything(), {ONE: ("<b>x", "[[a]] <i> ![[b]]\n\n# H\n\n![c](d)", INSIDE)}
)


def only_ours(page: Any, *also: str) -> None:
    for tag in page.find_all(True):
        assert tag.name in OURS
        assert set(tag.attrs) <= ATTRIBUTES.get(tag.name, {"class"})
        assert set(tag.get("class", [])) <= CLASSES
        assert tag.get("tabindex", "0") == "0"
        assert re.fullmatch(r"fn(ref)?-note-[\d:]+|heading-\d+", tag.get("id", "heading-1"))
        if "href" in tag.attrs:  # not where the cleaner finds no host in an address
            begins = ("http://", "https://", "mailto:", "#fn", "#heading-", *also)
            assert tag["href"].lower().startswith(begins)


@settings(max_examples=300)
@given(PIECES, st.lists(st.tuples(st.integers(-5, 60), st.integers(-5, 60)), max_size=5))
def test_marking_words_changes_no_text(text: str, highlights: list[tuple[int, int]]) -> None:
    shown = str(marked(text, highlights))
    assert html.unescape(re.sub("</?mark>", "", shown)) == text
    assert shown.count("<mark>") == shown.count("</mark>")


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("# One\n\nword", "<h2>One</h2>\n<p>word</p>"),
        ("a **b** *c* `d`", "<p>a <strong>b</strong> <em>c</em> <code>d</code></p>"),
        ("snake_case_name", "<p>snake_case_name</p>"),
        ("```py\nx < 1\n```", '<pre tabindex="0"><code>x &lt; 1\n</code></pre>'),
        ("> said", "<blockquote>\n<p>said</p>\n</blockquote>"),
        ("[x](javascript:alert)", "<p>[x](javascript:alert)</p>"),
        ("<b>x</b>", "<p>&lt;b&gt;x&lt;/b&gt;</p>"),
        ("~~gone~~ [[Kept]]", "<p><s>gone</s> [[Kept]]</p>"),
        ("3. c\n4. d", '<ol start="3">\n<li>c</li>\n<li>d</li>\n</ol>'),
        ("# One ##", "<h2>One</h2>"),
        ("# One # #", "<h2>One #</h2>"),
        ("#tag", "<p>#tag</p>"),
        ("* * *", "<hr>"),
        ("a | b\n--- | x", "<p>a | b<br>\n--- | x</p>"),
    ],
)
def test_the_common_forms(text: str, html: str) -> None:
    assert str(readable(text)) == html


@pytest.mark.parametrize(
    ("text", "address", "words"),
    [
        ("see https://e.example/a?b=1.", "https://e.example/a?b=1", "https://e.example/a?b=1"),
        ("see www.e.example", "http://www.e.example", "www.e.example"),
        ("[a *b*](mailto:me@e.example)", "mailto:me@e.example", "a b"),
        ("![a plum](https://e.example/p.png)", "https://e.example/p.png", "a plum"),
        ("![](https://e.example/p.png)", "https://e.example/p.png", "https://e.example/p.png"),
    ],
)
def test_addresses_and_pictures_become_links(text: str, address: str, words: str) -> None:
    link = parsed(readable(text)).select_one("a")
    assert (link["href"], link.get_text()) == (address, words)
    assert link["rel"] == ["noreferrer", "noopener", "nofollow", "ugc"]


def test_tasks_say_whether_they_are_done() -> None:
    items = parsed(readable("- [ ] mow\n- [x] sow\n  - [ ] reap\n- rest")).select("li")
    boxes = [item.find("span", recursive=False) for item in items]
    assert [box and box["aria-label"] for box in boxes] == ["open", "done", "open", None]
    assert items[2].find_parent("li") is items[1]


@pytest.mark.parametrize(
    ("text", "look", "title", "body"),
    [
        ("> [!note]\n> Two coats.", "info", "Note", "Two coats."),
        ("> [!WARNING] Wet *paint*\n> Wait.", "care", "Wet paint", "Wait."),
        ("> [!faq] Really?\n>\n> Yes.", "care", "Really?", "Yes."),
        ("> [!recipe] Plum jam", "info", "Plum jam", ""),
    ],
)
def test_a_callout_is_a_box_with_a_title(text: str, look: str, title: str, body: str) -> None:
    box = parsed(readable(text)).select_one(f"div.callout.{look}")
    assert [one.get_text() for one in box.find_all("p")] == [title, *[body] * bool(body)]


@pytest.mark.parametrize(("mark", "is_open"), [("-", False), ("+", True)])
@pytest.mark.parametrize("body", ["", "> Two coats.\n> [!x] Three.\n", ">\n> Two coats.\n"])
def test_a_callout_folds_where_it_says_so(mark: str, is_open: bool, body: str) -> None:
    page = parsed(readable(f"> [!tip]{mark} How *thick*\n{body}\nRest."))
    box = page.select_one("details.callout.good")
    assert box.has_attr("open") == is_open
    assert box.summary.get_text() == "How thick"
    assert bool(box.find("p")) == bool(body)
    assert page.find_all("p")[-1].parent is not box


def test_a_comment_of_the_writer_shows_as_one_and_its_marks_do_not() -> None:
    shown = readable("Ask Ada.%% The **old** one,\nnot the new. %% Then go: 50%% off, 20% tax.")
    assert '<span class="comment">The **old** one,\nnot the new.</span> Then go' in shown
    assert "50%% off, 20% tax" in shown
    assert "<code>%%a%%</code>" in readable("Write `%%a%%`")


def test_a_highlight_shows_and_a_comparison_stays() -> None:
    for text in ("a==b, c==d", "a == e == f", "====", "==at", "==at `six==`"):
        assert "highlight" not in readable(f"Out {text} now")
    shown = readable("Out ==at *six*==, see [==x==](https://example.org/==y==).")
    assert shown.startswith('<p>Out <span class="highlight">at <em>six</em></span>, see <a href=')
    assert readable("==as `a==b`==") == (
        '<p><span class="highlight">as <code>a==b</code></span></p>'
    )
    assert '<span class="highlight">x</span></a>' in shown


def test_a_footnote_and_its_place_lead_to_each_other() -> None:
    page = parsed(readable("Plums[^one] again[^one].\n\n[^one]: Of the tree."))
    note = page.select_one("section.footnotes li")
    places = page.select("sup a")
    assert [place["href"] for place in places] == [f"#{note['id']}"] * 2
    assert [back["href"] for back in note.select("a")] == [f"#{place['id']}" for place in places]


def test_columns_stand_as_the_line_under_the_head_says() -> None:
    table = parsed(readable("a | b | c\n--|:-:|--:\n1 | 2 | 3"))
    assert [cell.get("class") for cell in table.select("td")] == [None, ["center"], ["right"]]


def test_a_heading_that_repeats_the_title_is_left_out() -> None:
    assert str(readable("# Garden\n\nBeans.", title="Garden")) == "<p>Beans.</p>"
    assert str(readable("# The **Garden** { #beds }\n\nA.", title="The Garden")) == "<p>A.</p>"


@pytest.mark.parametrize(
    ("heading", "said"),
    [
        ("Guests { #guests }", "Guests"),
        ("Guests {#guests .wide}", "Guests"),
        ("Guests {: #guests}", "Guests"),
        ("`{ #a }`", "<code>{ #a }</code>"),
        ("Guests {1}", "Guests {1}"),
    ],
)
def test_the_anchor_of_a_heading_is_not_shown(heading: str, said: str) -> None:
    assert str(readable(f"a\n\n## {heading}")) == f"<p>a</p>\n<h2>{said}</h2>"


def test_what_may_be_wider_than_the_page_can_be_scrolled_by_keys() -> None:
    text = "```\nx\n```\n\n    y\n\n| a |\n|---|\n| b |\n"
    shown = parsed(readable(text))
    assert [one.get("tabindex") for one in shown.select("pre, .wide")] == ["0", "0", "0"]
    assert parsed(readable("x" * 2_000_000)).select_one("pre")["tabindex"] == "0"


def test_headings_begin_below_that_of_the_page_and_leave_no_level_out() -> None:
    text = "### A\n\n##### B\n\n#### C\n\n# D\n\n## E\n\n###### F\n\n### G\n"
    levels = re.findall(r"<h(\d)>(.)</h\1>", str(readable(text)))
    assert levels == [*zip("2332344", "ABCDEFG", strict=True)]


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("Out at six. ^b15695\n\nBack.", "<p>Out at six.</p>\n<p>Back.</p>"),
        ("- one ^first-item\n- two ^370665", "<ul>\n<li>one</li>\n<li>two</li>\n</ul>"),
        ("> Six.\n\n^quote-of-the-day", "<blockquote>\n<p>Six.</p>\n</blockquote>"),
        ("x ^2\n\n`a ^b`\n\na ^b c", "<p>x ^2</p>\n<p><code>a ^b</code></p>\n<p>a ^b c</p>"),
    ],
)
def test_the_name_of_a_block_is_not_shown(text: str, html: str) -> None:
    assert readable(text) == html


def test_lines_that_an_editor_cut_flow_again_and_verse_stays() -> None:
    long = "word " * 15
    assert "<br>" not in readable(f"{long}\n{long}")
    assert str(readable("Roses are red\nViolets are blue")).count("<br>") == 1


@pytest.mark.sampled(4)
@pytest.mark.once
@pytest.mark.parametrize(
    "text",
    [
        "[" * 20_000,
        "*" * 20_000,
        "> " * 5_000,
        "`" * 20_001,
        "_a" * 9_000,
        ("![" * 249 + "\n\n") * 800,
        "[a](http://x " * 20_000,
        ("*a **b _c " * 2_000 + "\n\n") * 19,
        ">" * 390_000,
        "a\n" * 190_000,
        "|a" * 10_000 + "\n" + "|-" * 10_000 + "\n" + ("|b" * 10_000 + "\n") * 5,
        "[^1]" * 20_000 + "\n\n[^1]: x",
        (":a: " * 4_999 + "\n\n") * 20,
        ("==a `b" * 3_000 + "\n\n") * 20,
        (" ==a" + "`b`" * 6_000 + "\n\n") * 20,
    ],
    ids=lambda text: text[:8],
)
def test_hostile_repetition_is_read_quickly(text: str) -> None:
    """Some would take minutes if each bracket were tried with each other."""
    started = time.process_time()
    assert readable(text)
    assert time.process_time() - started < 10


def test_many_names_of_one_long_address_do_not_become_gigabytes() -> None:
    links = "[a] " * 4_000 + "\n\n"
    text = f"[a]: http://{'x' * 150_000}\n[b]: http://example.org\n\n[b]\n\n{links * 14}"
    shown = readable(text)
    assert len(shown) < 10 * len(text)
    assert parsed(shown).select_one("a")["href"] == "http://example.org"


def test_a_note_that_is_embedded_over_and_over_is_boxed_until_the_page_is_long_enough() -> None:
    note = "A word, and another. " * 900
    inside = Notes(address=str, targets={})
    targets = {("wiki", "A"): "1"}
    notes = Notes(address=str, targets=targets, embedded={"1": ("A", note, inside)})
    started = time.process_time()
    shown = parsed(readable("![[A]]\n\n" * 4_000, notes=notes))
    assert 10 < len(shown.select("div.embed")) < 40
    assert len(shown.select("a")) == 4_000
    assert time.process_time() - started < 20


BLANKS = " " * 200_000
SHORTER = " " * (BLOCK_LIMIT - 20)  # blanks that the limit lets through


@pytest.mark.parametrize("blanks", [BLANKS, SHORTER], ids=["long", "longest"])
@pytest.mark.once
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


@pytest.mark.parametrize("rule", ["--|--", "| --- | :--: |", ":-- | --:", "|--|--|"])
def test_a_table_may_be_ruled_in_many_ways(rule: str) -> None:
    table = parsed(readable(f"a | b\n{rule}\n1 | 2\n"))
    assert [cell.get_text() for cell in table.select("th, td")] == ["a", "b", "1", "2"]


def test_a_paragraph_too_long_to_be_written_by_hand_is_shown_as_it_is() -> None:
    long = "**a** " * BLOCK_LIMIT
    shown = parsed(readable(f"*one*\n\n{long}\n- *two*"))
    assert [tag.get_text() for tag in shown.select("em")] == ["one", "two"]
    assert long.strip() in shown.get_text()
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
    one = f"{served.base}/memories/{ONE}"
    assert (await served.by("bob").get(one)).status_code == 200
    assert len(threads) == 1
    assert threads[0] is not threading.main_thread()
