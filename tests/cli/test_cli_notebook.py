"""The table a notebook shows."""

from __future__ import annotations

from bs4 import BeautifulSoup

from memory_store.records import Passage, SearchResponse, SearchResult

ATTACK = '<script>alert(1)</script><img src=x onerror="alert(2)">&"\''


def response(text: str, *spans: tuple[int, int], title: str = "Lease") -> SearchResponse:
    row = SearchResult(
        rank=1,
        id="3f2a9c1b-0000-4000-8000-000000000000",
        ref=None,
        score=0.834,
        band=None,
        collection="personal",
        type="note",
        created="2024-03-02T09:00:00Z",
        topics=(title,),
        title=title,
        preview=text,
        complete=True,
        passages=(Passage(0, len(text), text, spans),),
    )
    return SearchResponse(
        query=title,
        mode="hybrid",
        rows=(row,),
        counts="",
        opened=12,
        total=48210,
        degraded=(f"no model: {title}",),
        milliseconds=35.4,
    )


def page(answer: SearchResponse) -> BeautifulSoup:
    return BeautifulSoup(answer._repr_html_(), "html.parser")


def test_matching_words_are_marked() -> None:
    found = page(response("The lease ends in May.", (4, 9)))
    assert [mark.text for mark in found.find_all("mark")] == ["lease"]
    assert "The lease ends in May." in found.text


def test_a_long_text_is_cut_around_its_first_match() -> None:
    text = "filler " * 200 + "lease " + "filler " * 200
    found = page(response(text, (1400, 1405)))
    assert [mark.text for mark in found.find_all("mark")] == ["lease"]
    assert len(found.find_all("tr")[-1].text) < 600


def test_score_and_the_number_opened_are_shown() -> None:
    found = page(response("text"))
    assert "83" in found.text
    assert "12 of 48,210 memories opened · 35 ms" in found.text


def test_notes_cannot_inject_html() -> None:
    found = page(response(ATTACK, (0, 8), (20, 30), title=ATTACK))
    assert {tag.name for tag in found.find_all(True)} <= {
        *("div", "table", "caption", "colgroup", "col", "thead", "tbody", "tr", "th", "td"),
        *("strong", "span", "mark"),
    }
    for tag in found.find_all(True):
        assert set(tag.attrs) <= {"style", "scope", "colspan", "aria-hidden"}
    assert ATTACK in found.text  # shown as it is, not lost


def test_nothing_found_is_said() -> None:
    empty = SearchResponse("q", "hybrid", (), "", opened=0, total=3)
    assert "Nothing found." in page(empty).text
