"""reStructuredText and Org mode are shown as what they say; nothing is read, run or loaded."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from bs4 import BeautifulSoup
from hypothesis import given, settings
from hypothesis import strategies as st

from datasette_hybrid.memories import org, rst
from datasette_hybrid.memories.markdown import RENDERED_LIMIT, readable

from .conftest import Served, soup
from .test_markdown import ATTRIBUTES, OURS

SECRET = "root:x:0:0"


def shown(text: str, ref: str, **options: Any) -> Any:
    return BeautifulSoup(readable(text, ref=ref, **options), "html.parser")


@pytest.mark.parametrize("mark", [".. note:: Mind it", ":ref:`it`", "`it <https://x.org>`_"])
def test_a_text_file_with_marks_of_restructuredtext_is_shown_as_such(mark: str) -> None:
    text = f"Kelp\n====\n\nSo::\n\n  x\n\n{mark}\n"
    assert shown(text, "a.txt") == shown(text, "a.rst")
    assert shown(text, "a.md") != shown(text, "a.rst")
    plain = "Kelp\n====\n\nSo::\n\n  x\n"
    assert shown(plain, "a.txt") == shown(plain, "a.md")


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("Cats\n====\n\nAll.\n\nOld\n---\n", "<h2>Cats</h2>\n<p>All.</p>\n<h3>Old</h3>"),
        ("====\nCats\n====\n\nOld\n====\n", "<h2>Cats</h2>\n<h3>Old</h3>"),
        ("*a* **b** ``c*d``", "<p><em>a</em> <strong>b</strong> <code>c*d</code></p>"),
        ("Cut by\nan editor", "<p>Cut by an editor</p>"),
        ("- a\n\n  - b\n", "<ul>\n<li><p>a</p>\n<ul>\n<li>b</li>\n</ul>\n</li>\n</ul>"),
        ("#. a\n#. b\n", "<ol>\n<li>a</li>\n<li>b</li>\n</ol>"),
        ("1. a\n\n   b\n", "<ol>\n<li><p>a</p>\n<p>b</p>\n</li>\n</ol>"),
        (
            "So::\n\n  x = 1\n\n    y\n",
            '<p>So:</p>\n<pre tabindex="0"><code>x = 1\n\n  y\n</code></pre>',
        ),
        (
            ".. code:: sh\n   :caption: c\n\n   ls ```\n",
            '<pre tabindex="0"><code>ls ```\n</code></pre>',
        ),
        ("   said\n", "<blockquote>\n<p>said</p>\n</blockquote>"),
        (
            "Cat\n    An animal.\n",
            "<ul>\n<li><p><strong>Cat</strong></p>\n<p>An animal.</p>\n</li>\n</ul>",
        ),
        (":By: me\n", "<ul>\n<li><strong>By:</strong> me</li>\n</ul>"),
        ("| one\n| two\n", "<p>one<br>\ntwo</p>"),
        ("a\n\n----\n\nb", "<p>a</p>\n<hr>\n<p>b</p>"),
        (".. said to nobody\n\na", "<p>a</p>"),
        ("|x| is\n\n.. |x| replace:: Ex", "<p>Ex is</p>"),
        (":ref:`here <there>` :py:func:`~f`", "<p>here <code>f</code></p>"),
        (">>> 1\n1\n", '<pre tabindex="0"><code>&gt;&gt;&gt; 1\n1\n</code></pre>'),
        ("snake_case and __init__ stay", "<p>snake_case and <strong>init</strong> stay</p>"),
        (".. toctree::\n   :maxdepth: 1\n\n   one\n", "<ul>\n<li>one</li>\n</ul>"),
        (
            ".. what:: is\n\n   this\n",
            '<pre tabindex="0"><code>.. what:: is\n\n   this\n</code></pre>',
        ),
    ],
)
def test_the_common_forms_of_restructured_text(text: str, html: str) -> None:
    assert str(readable(text, ref="notes/a.RST")) == html


@pytest.mark.parametrize(
    ("text", "html"),
    [
        (
            "#+TITLE: Cats\n* Old\n** TODO Feed :home:\n",
            "<h2>Cats</h2>\n<h2>Old</h2>\n<h3><strong>TODO</strong> Feed <code>home</code></h3>",
        ),
        (
            "*a* /b/ _c_ =d= ~e~ +f+ 2*3",
            "<p><strong>a</strong> <em>b</em> <em>c</em> <code>d</code> <code>e</code>"
            " <s>f</s> 2*3</p>",
        ),
        ("- a\n  - b\n", "<ul>\n<li>a\n<ul>\n<li>b</li>\n</ul>\n</li>\n</ul>"),
        ("- cat :: an animal\n", "<ul>\n<li><strong>cat:</strong> an animal</li>\n</ul>"),
        ("#+begin_src sh\nls\n#+end_src\na", '<pre tabindex="0"><code>ls\n</code></pre>\n<p>a</p>'),
        ("#+BEGIN_QUOTE\nsaid\n#+END_QUOTE\n", "<blockquote>\n<p>said</p>\n</blockquote>"),
        (": fixed\n", '<pre tabindex="0"><code>fixed\n</code></pre>'),
        ("* A\n:PROPERTIES:\n:ID: 1\n:END:\nb\n", "<h2>A</h2>\n<p>b</p>"),
        (":PROPERTIES:\nnever shut", "<p>:PROPERTIES:<br>\nnever shut</p>"),
        ("# to nobody\na\n-----\nb", "<p>a</p>\n<hr>\n<p>b</p>"),
        ("#+begin_src\nnever shut", '<pre tabindex="0"><code>never shut\n</code></pre>'),
        ("[[file:b.org][there]] [[id:1][that]]", "<p>there (<code>b.org</code>) that</p>"),
    ],
)
def test_the_common_forms_of_org(text: str, html: str) -> None:
    assert str(readable(text, ref="a.org")) == html


@pytest.mark.parametrize("ref", ["a.rst", "a.org"])
def test_tables_boxes_notes_and_links(ref: str) -> None:
    text = {
        "a.rst": "+---+---+\n| a | b |\n+===+===+\n| 1 | 2 |\n+---+---+\n\n"
        "== ==\na  b\n== ==\n1  2\n== ==\n\n.. tip:: Do\n\n   - this\n\n"
        "See `a site <https://x.org>`_, Home_ [1]_.\n\n.. _Home: https://h.org\n.. [1] Said.\n",
        "a.org": "| a | b |\n|---+---|\n| 1 | 2 |\n\n| a | b |\n| 1 | 2 |\n\n"
        "See [[https://x.org][a site]], [[https://h.org][Home]] [fn:1].\n\n[fn:1] Said.\n",
    }[ref]
    page = shown(text, ref)
    assert [one.get_text(" ", strip=True) for one in page.select("table")] == ["a b 1 2"] * 2
    links = {one.get_text(): one["href"] for one in page.select("p a[href^=http]")}
    assert links == {"a site": "https://x.org", "Home": "https://h.org"}
    assert "Said." in page.select_one(".footnotes").get_text()
    if ref == "a.rst":
        box = page.select_one(".callout.good")
        assert box.select_one(".title").get_text() == "Tip"
        assert box.select_one("li").get_text() == "this"


HOSTILE = {
    "a.rst": """
.. include:: /etc/passwd

.. raw:: html
   :file: /etc/passwd

   <script>x</script>

.. csv-table:: t
   :file: /etc/passwd

.. literalinclude:: /etc/passwd

.. image:: javascript:alert(1)

`evil <javascript:alert(1)>`_ `b <data:text/html,x>`__ Evil_

.. _Evil: javascript:alert(1)

.. role:: raw-html(raw)
   :format: html

:raw-html:`<script>x</script>`
""",
    "a.org": """
#+INCLUDE: /etc/passwd
#+SETUPFILE: /etc/passwd
#+begin_export html
<script>x</script>
#+end_export
#+begin_src sh :eval yes
cat /etc/passwd
#+end_src
[[javascript:alert(1)][evil]] [[file:/etc/passwd]] [[elisp:(delete)][run]] [[shell:ls]]
<script>x</script> @@html:<b>@@
""",
}


@pytest.mark.parametrize("ref", HOSTILE)
def test_a_hostile_text_reads_runs_and_loads_nothing(ref: str) -> None:
    readable("warm", ref=ref)
    opened: list[Any] = []
    watching = True

    def note(event: str, given: Any) -> None:
        if watching:
            opened.append((event, given))

    sys.addaudithook(note)
    page = shown(HOSTILE[ref], ref)
    watching = False
    risky = ("open", "exec", "compile", "subprocess", "os.", "socket", "import")
    assert [one for one in opened if one[0].startswith(risky)] == []
    assert not page.select("script, img, iframe, [src], [onclick]")
    assert [one["href"] for one in page.select("a[href]") if one["href"][:4] != "http"] == []
    assert SECRET not in page.get_text()


PIECES = "*|`|``|_|__|[|]|<|>|:|::|..|.. |.. a::|.. _a: b|.. [1] a|.. |a| replace:: b|a|a_|- |1. "
PIECES += (
    "|\n|\n\n|  |    |=|====|+--+|| |== ==|* |#+a: b|#+begin_a|#+end_a|:A:|:END:|[[|]]|[fn:1]|/|~"
)
PIECES += "|http://x|javascript:x|<b>|\t|\\|\\ "
TEXTS = st.lists(st.sampled_from([*PIECES.split("|"), "|", "|a|"]), max_size=40).map("".join)


@given(TEXTS, st.sampled_from(["a.rst", "a.org"]))
@settings(max_examples=150, deadline=None)
def test_only_our_own_tags_and_attributes_come_out(text: str, ref: str) -> None:
    for tag in shown(text, ref).find_all(True):
        assert tag.name in OURS
        assert set(tag.attrs) <= ATTRIBUTES.get(tag.name, {"class"})


REPEATED: dict[Callable[[str], str], tuple[str, ...]] = {
    rst.as_markdown: (
        "`a <",
        "|a| ",
        "a_ ",
        "a::\n",
        "a\n==\n\n",
        "+--+\n|a |\n",
        "== ==\n\n",
        ".. a::\n  :b: c\n",
    ),
    org.as_markdown: ("[[a", "*a ", ":A:\n", "#+begin_a\n", "|a\n", "- a :: ", "[fn:", "* a :b:"),
}


@pytest.mark.parametrize("convert", REPEATED)
def test_twice_the_text_takes_twice_the_work(convert: Callable[[str], str]) -> None:
    for piece in REPEATED[convert]:
        short, long = (_steps(convert, piece * count) for count in (300, 1_200))
        assert long <= 5 * short + 500, piece


def _steps(convert: Callable[[str], str], text: str) -> int:
    """How many lines of Python a call runs through."""
    steps = 0

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal steps
        steps += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        convert(text)
    finally:
        sys.settrace(before)
    return steps


def test_nested_too_deep_it_is_shown_as_it_was_typed() -> None:
    text = "".join("  " * depth + ".. note:: a\n\n" for depth in range(200))
    page = shown(text, "a.rst")
    assert ".. note:: a" in page.select_one("pre").get_text()


def test_too_long_a_text_and_one_that_grows_are_shown_as_they_are() -> None:
    assert shown("a_ " * RENDERED_LIMIT, "a.rst").select_one("pre")
    grows = "|a|" * 20_000 + f"\n\n.. |a| replace:: {'x' * 200}\n"
    assert shown(grows, "a.rst").select_one("pre").get_text() == grows


async def test_the_page_of_a_memory_from_such_a_file_shows_what_it_says(served: Served) -> None:
    root = served.by("root")
    text = "Weir\n====\n\n.. warning:: It is *slippery*.\n"
    made = await root.send("POST", "/memories.json", {"text": text, "ref": "river.rst"})
    id = made.json()["rows"][0]["id"]
    page = soup(await root.get(f"{served.base}/memories/{id}"))
    assert [one.get_text() for one in page.select(".hy-text .callout.care em")] == ["slippery"]


LARGE = {
    "many short rows under a wide one.org": "|a" * 50_000 + "\n" + "|a\n" * 90_000,
    "a headline of blanks.org": "* a" + " " * 350_000 + "b",
    "a headline of tabs.org": "* a" + "\t" * 350_000 + "b",
    "many short rows under many columns.rst": "= " * 60_000 + "=\n" + "a\n" * 130_000,
    "one cell of many lines.rst": "= =\n" + "  a\n" * 90_000,
    "one drawn cell of many lines.rst": "+--+\n" + "|aa|\n" * 75_000,
}


@pytest.mark.once
@pytest.mark.parametrize("name", LARGE)
def test_tables_and_blanks_take_what_they_are_long_and_not_its_square(name: str) -> None:
    """Some took an hour and tens of gigabytes."""
    text = LARGE[name]
    assert 200_000 < len(text) < RENDERED_LIMIT
    started = time.process_time()
    assert readable(text, ref=name)
    assert time.process_time() - started < 10


def test_rows_of_a_table_may_be_longer_than_its_first_and_shorter() -> None:
    org = shown("| a |\n| b | c |\n| d |\n", "a.org")
    assert [one.get_text() for one in org.select("th, td")] == ["a", "", "b", "c", "d", ""]
    rst = shown("== == ==\na  b\n== == ==\nc  d  e\n      f\n== == ==\n", "a.rst")
    assert [one.get_text() for one in rst.select("th, td")] == ["a", "b", "", "c", "d", "e f"]
