"""The page of a file of source code: its outline, what depends on it, and its numbered lines."""

from __future__ import annotations

import sys
import time
from typing import Any

import pytest

from datasette_hybrid.code.source import coloured_lines
from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore

from .conftest import ALLOW, HOSTILE, Filled, Serve, soup

CODE: Any = {"type": "code", "metadata": {"language": "python"}}
FILE, USER = (f"00000000-0000-4000-8000-00000000c0d{digit}" for digit in "ef")
TEXT = f"class Box:\n    def open_lid(self):\n        return '''{HOSTILE}\n'''\n"


@pytest.fixture
def coded(filled: Filled) -> Filled:
    using = "import boxes\n\n\ndef unpack():\n    return boxes.Box().open_lid()\n"
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        drafts = [
            MemoryDraft(TEXT, ref="boxes.py", title="boxes.py", id=FILE, **CODE),
            MemoryDraft(using, ref="unpack.py", title="unpack.py", id=USER, **CODE),
            MemoryDraft("def shut_lid(): ...\n", ref="app/lids.py", title="lids.py", **CODE),
        ]
        store.add_many(drafts, embed=False)
    return filled


async def test_a_file_shows_its_outline_its_dependants_and_its_lines(
    coded: Filled, serve: Serve
) -> None:
    served = (await serve(coded.path, options=coded.options(allow=ALLOW))).by("bob")
    shown = soup(await served.get(f"{served.base}/memories/{FILE}"))
    outline, dependants = shown.select(".hy-outline")
    assert [(one.text, one["href"]) for one in outline.select("a")] == [
        ("Box", "#L1"),
        ("open_lid", "#L2"),
    ]
    (user,) = dependants.select("a")
    assert (user.text, user["href"]) == ("unpack.py", f"{served.base}/memories/{USER}")
    lines = shown.select(".hy-line")
    assert [one["id"] for one in lines] == ["L1", "L2", "L3", "L4"]
    assert "\n".join(one.code.text for one in lines) + "\n" == TEXT
    assert lines[0].select_one(".hy-c-k").text == "class"
    assert not shown.select(".hy-source script, .hy-source img")
    assert [one.text for one in shown.select(".hy-imports text")] == ["unpack.py", "boxes.py"]
    other = soup(await served.get(f"{served.base}/memories/{USER}"))
    assert [one.text for one in other.select(".hy-imports text")] == ["boxes.py", "unpack.py"]
    assert not soup(await served.get(f"{served.base}/memories/{FILE}")).select(".hy-imports script")
    imports = other.select(".hy-outline")[-1]
    assert [one["href"] for one in imports.select("a")] == [f"{served.base}/memories/{FILE}"]


async def test_a_result_of_code_is_coloured_and_its_words_are_marked(
    coded: Filled, serve: Serve
) -> None:
    served = (await serve(coded.path, options=coded.options(allow=ALLOW))).by("bob")
    shown = soup(await served.get(f"{served.base}?q=class+box+open_lid"), blanks_in=("p",))
    preview = shown.select_one(".hy-preview.hy-code")
    assert preview.text == TEXT.rstrip()
    assert preview.select_one(".hy-c-k").text == "class"
    assert "open_lid" in [one.text for one in preview.select(".hy-c-nf mark")]
    assert not preview.select("script, img")


async def test_a_result_of_code_says_and_links_its_line(coded: Filled, serve: Serve) -> None:
    served = (await serve(coded.path, options=coded.options(allow=ALLOW))).by("bob")
    shown = soup(await served.get(f"{served.base}?q=unpack&type=code"))
    (result,) = [one for one in shown.select(".hy-result") if "unpack.py" in one.h2.text]
    assert result.h2.a["href"].endswith("#L1")
    assert result.select_one(".hy-place").text.startswith("lines 1–5")
    deeper = soup(await served.get(f"{served.base}?q=shut_lid&type=code"))
    assert deeper.select_one(".hy-place").text.startswith("app/lids.py · line 1")
    page = soup(await served.get(deeper.select_one(".hy-result h2 a")["href"]))
    assert page.select_one(".hy-title .hy-place").text == "app/lids.py"
    notes = soup(await served.get(f"{served.base}?q=tomatoes&type=note"))
    assert "#L" not in notes.select_one(".hy-result h2 a")["href"]
    assert not notes.select(".hy-place")


async def test_a_result_of_code_links_its_next_best_passages(coded: Filled, serve: Serve) -> None:
    steps = "    step = 1\n" * 200
    text = f"def open_lid(box):\n{steps}\n\ndef shut(box):\n    open_lid(box)\n{steps}"
    with MemoryStore.open(coded.path, key_file=coded.key_file) as store:
        store.add_many([MemoryDraft(text, ref="long.py", title="long.py", **CODE)], embed=False)
    served = await serve(coded.path, options=coded.options(allow=ALLOW))
    asked = f"{served.base}?q=open_lid&type=code&mode=keyword"
    shown = soup(await served.by("bob").get(asked))
    (result,) = [one for one in shown.select(".hy-result") if "long.py" in one.h2.text]
    found = (await served.by("bob").get(asked.replace("?", ".json?"))).json()["rows"]
    _, *others = next(row for row in found if row["title"] == "long.py")["passages"]
    assert "shut" in {one["symbol"] for one in others}
    links = result.select(".hy-also a")
    memory = result.h2.a["href"].partition("#")[0]
    assert [one["href"] for one in links] == [f"{memory}#L{one['line']}" for one in others]
    assert [one.text for one in links] == [
        f"lines {one['line']}–{one['end_line']} {one['symbol']}" for one in others
    ]
    for row in (await served.by("alice").get(asked.replace("?", ".json?"))).json()["rows"]:
        assert row["passages"] is None
    assert not soup(await served.by("alice").get(asked)).select(".hy-also")


async def test_lines_that_a_pattern_matches_are_shown_and_lead_to_the_file(
    coded: Filled, serve: Serve
) -> None:
    served = await serve(coded.path, options=coded.options(allow=ALLOW))
    asked = f"{served.base}?q=%2Fopen_%5Cw%2B%2F&mode=literal&type=code"
    shown = soup(await served.by("bob").get(asked))
    (row, *_) = (await served.by("bob").get(asked.replace("?", ".json?"))).json()["rows"]
    result = shown.select_one(".hy-result")
    memory = result.h2.a["href"].partition("#")[0]
    lines = [*dict.fromkeys(one["line"] for one in row["matches"])][:8]
    assert [one["href"] for one in result.select(".hy-matches a")] == [
        f"{memory}#L{line}" for line in lines
    ]
    contexts = {one["line"]: one["context"].strip() for one in row["matches"]}
    assert [one.text for one in result.select(".hy-matches code")] == [
        contexts[line] for line in lines
    ]
    assert all("open_" in one.text for one in result.select(".hy-matches mark"))
    assert not result.select(".hy-preview")
    assert not soup(await served.by("alice").get(asked)).select(".hy-matches")


async def test_who_may_not_read_sees_neither_place_nor_page(coded: Filled, serve: Serve) -> None:
    served = (await serve(coded.path, options=coded.options(allow=ALLOW))).by("alice")
    shown = await served.get(f"{served.base}?q=open_lid&type=code")
    assert shown.status_code == 200
    assert soup(shown).select(".hy-result"), "they are found"
    assert not any(
        word in shown.text for word in ("hy-place", "#L", "boxes.py", "open_lid(", "unpack")
    )
    assert (await served.get(f"{served.base}/memories/{FILE}")).status_code == 403


async def test_a_note_that_is_called_code_is_shown_as_a_note(filled: Filled, serve: Serve) -> None:
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        note = store.add("Just *words*.", title="A snippet")
    served = (await serve(filled.path, options=filled.options(allow=ALLOW))).by("bob")
    shown = soup(await served.get(f"{served.base}/memories/{note.id}"))
    assert not shown.select(".hy-source")
    assert shown.select_one(".hy-text em").text == "words"


@pytest.mark.parametrize("language", ["python", "javascript", "no-such-language"])
@pytest.mark.parametrize("text", ["", "\n", "\n\nx = 1", "a\r\nb\n", "x\x0cy\nz", f"{HOSTILE}\n"])
def test_lines_are_as_many_and_say_the_same_in_any_language(language: str, text: str) -> None:
    lines = coloured_lines(text, language)
    plain = text.removesuffix("\n").split("\n")
    assert len(lines) == len(plain)
    assert all("<script" not in line and "<img" not in line for line in lines)


def test_without_pygments_there_is_one_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    from datasette_hybrid.code import source

    for name in [one for one in sys.modules if one.partition(".")[0] == "pygments"]:
        monkeypatch.setitem(sys.modules, name, None)
    source._lexer.cache_clear()
    try:
        shown: Any = coloured_lines("class Box:\n    pass\n", "python")
    finally:
        source._lexer.cache_clear()
    assert list(shown) == ["class Box:", "    pass"]


@pytest.mark.parametrize(
    ("language", "text"),
    [("hcl", "a" * 60_000), ("java", "a\n" * 20_000), ("ocaml", f"let a = {'0' * 60_000}\n")],
)
async def test_a_file_that_is_made_to_harm_is_shown_without_colours(
    coded: Filled, serve: Serve, language: str, text: str
) -> None:
    """Each would take half a minute or more, in which no other request is answered."""
    harmful: Any = {"type": "code", "metadata": {"language": language}}
    with MemoryStore.open(coded.path, key_file=coded.key_file) as store:
        (file,) = store.add_many([MemoryDraft(text, ref="harm", **harmful)], embed=False)
    served = (await serve(coded.path, options=coded.options(allow=ALLOW))).by("bob")
    began = time.process_time()
    answer = await served.get(f"{served.base}/memories/{file.id}")
    assert time.process_time() - began < 10
    shown = soup(answer)
    assert shown.select_one(".hy-line code").text == text.split("\n")[0]
    assert not shown.select(".hy-source [class^=hy-c-]")
