"""How an answer looks on a terminal, and what a hostile note can do to it: nothing."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from memory_store.cli.answers import (
    account_lines,
    opened_line,
    print_answer,
    result_lines,
    stage_lines,
    why_lines,
)
from memory_store.cli.progress import progress_line
from memory_store.cli.terminal import bar, escaped, printable, printable_line, shortened, width
from memory_store.records import Passage, SearchResponse, SearchResult
from memory_store.records.explanation import (
    Account,
    Analyse,
    Boost,
    Contribution,
    Expand,
    Fetch,
    FilterCount,
    LegPlace,
    Open,
    Place,
    ScoreChange,
    Verdict,
    WordsHeld,
)

DRIVING = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
HOSTILE = "before\x1b]0;owned\x07\x1b[2J\x9b31mafter\u202egnp.exe\r\nnext"


def result(text: str, *words: str, **values: object) -> SearchResult:
    """A result whose one passage is ``text``, with each of ``words`` highlighted."""
    spans = tuple(m.span() for word in words for m in re.finditer(re.escape(word), text))
    fields = {
        "rank": 1,
        "id": "3f2a9c1b-0000-4000-8000-000000000000",
        "ref": None,
        "score": 0.83,
        "band": None,
        "collection": "personal",
        "type": "note",
        "created": "2024-03-02T09:00:00Z",
        "topics": ("home", "lease"),
        "title": "Lease of the flat",
        "preview": text,
        "complete": True,
        "passages": (Passage(0, len(text), text, tuple(sorted(spans))),),
        **values,
    }
    return SearchResult(**fields)  # type: ignore[arg-type]


def test_a_result_is_rank_score_title_then_facts_then_text() -> None:
    lines = result_lines(result("The lease ends in May.", "lease"), 80, colour=False)
    assert lines == [
        " 1  ████████▎·  83  Lease of the flat",
        "    note · 2024-03-02 · #home #lease · 3f2a9c1b",
        "    The lease ends in May.",
    ]


def test_a_result_of_code_names_its_next_best_passages_a_line_each() -> None:
    text, hostile = "def open_lid():\n    pass", "Box.shut\x1b[2J"
    places = ((40, 41, "open_lid"), (120, 140, hostile), (7, 7, None))
    passages = [
        Passage(0, len(text), text, line=line, end_line=end, symbol=symbol)
        for line, end, symbol in places
    ]
    row = result(text, ref="a.py", line=40, end_line=41, symbol="open_lid", passages=passages)
    lines = result_lines(row, 80, colour=False)
    assert lines[0].endswith("a.py:40-41 open_lid")
    assert lines[-2:] == [f"    also 120-140 {printable_line(hostile)}", "    also 7"]
    assert max(map(width, result_lines(row, 24, colour=False))) <= 24


def test_matching_words_are_bold_only_in_colour() -> None:
    row = result("The lease ends in May.", "lease")
    assert result_lines(row, 80, colour=True)[2] == "    The \x1b[1mlease\x1b[0m ends in May."
    assert "\x1b" not in "".join(result_lines(row, 80, colour=False))


def test_a_long_text_is_shown_where_the_words_are() -> None:
    text = "filler " * 400 + "the lease and the deposit are here " + "filler " * 400
    lines = result_lines(result(text, "lease", "deposit"), 80, colour=False)
    assert len(lines) == 2 + 3
    assert "lease and the deposit" in " ".join(line.strip() for line in lines)
    assert lines[2].startswith("    … ")
    assert lines[-1].endswith("…")


def test_the_densest_stretch_wins_over_the_first_match() -> None:
    text = "one lease " + "filler " * 200 + "deposit lease rent " + "filler " * 50
    shown = " ".join(result_lines(result(text, "lease", "deposit", "rent"), 80, colour=False))
    assert "deposit lease rent" in shown


def test_short_lines_stand_apart_and_items_have_their_own_sign() -> None:
    lines = result_lines(result("milk\nbread\n- rope\n1. lamp\n\nThe rest."), 80, colour=False)
    assert lines[-1].strip() == "milk · bread - rope 1. lamp · The rest."


def test_a_heading_that_repeats_the_title_is_not_shown_twice() -> None:
    lines = result_lines(result("# Lease of the flat\n\nEnds in May.", "lease"), 80, colour=False)
    assert lines[2:] == ["    Ends in May."]


def test_a_result_without_passages_shows_its_preview() -> None:
    lines = result_lines(result("", preview="sealed but shown", passages=()), 80, colour=False)
    assert lines[2:] == ["    sealed but shown"]


@pytest.mark.parametrize("room", [40, 80, 100])
def test_no_line_is_wider_than_the_terminal(room: int) -> None:
    row = result("漢字かな " * 60 + "w" * 300, title="T" * 300, topics=("x" * 90, "y" * 90))
    assert max(width(line) for line in result_lines(row, room, colour=False)) <= room


def test_a_hostile_note_cannot_drive_the_terminal() -> None:
    row = result(HOSTILE, title=HOSTILE, topics=(HOSTILE,), type="note", ref=HOSTILE)
    for line in result_lines(row, 100, colour=False):
        assert DRIVING.search(line) is None
        assert "\n" not in line


def test_the_last_line_counts_what_was_opened() -> None:
    response = SearchResponse("q", "hybrid", (), "", opened=12, total=48210, milliseconds=35.2)
    assert opened_line(response) == "12 of 48,210 memories opened · 35 ms"


@pytest.mark.parametrize(
    ("certain", "best", "said"),
    [
        (None, 0.9, "64 results"),
        (3, 0.9, "3 certain; 61 may fit"),
        (64, 0.9, "64 certain"),
        (0, 0.4, "Nothing certain; 64 may fit"),
        (0, 0.07, "Nothing seems to fit; 64 come nearest"),
    ],
)
def test_how_many_there_are_is_one_number(certain: int | None, best: float, said: str) -> None:
    rows = (replace(result("ducks"), score=best),)
    totals, facets = {"certain": certain}, {"status": {"open": 60, "done": 4}}
    response = SearchResponse("q", "hybrid", rows, "", 1, 99, facets=facets, totals=totals)
    assert response.how_many(response.found) == said


def test_what_is_far_from_the_best_one_takes_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    rows = (
        result("The lease ends in May.", score=0.8, band="strong", keyword_rank=1),
        result("A lease of 1999.", rank=2, score=0.02, band="weak", keyword_rank=2, title="Old"),
        result("Ducks.", rank=3, score=0.09, band="weak", title="Ducks"),
        result("Bread.", rank=4, score=0.11, band="weak", title="Bread"),
        result("Geese.", rank=5, score=0.02, band="weak", topic_rank=1, title="Geese"),
    )
    rows = tuple(replace(row, id=f"{row.rank}{row.id[1:]}") for row in rows)
    facets, totals = {"status": {"open": 5}}, {"certain": 1}
    response = SearchResponse("q", "hybrid", rows, "", 5, 9, facets=facets, totals=totals)
    print_answer(response)
    shown = capsys.readouterr().out
    assert shown.index("Bread.") < shown.index("Geese.") < shown.index("1 more, far less likely")
    assert "\n 3  ▉·········   9  Ducks · 3f2a9c1b\n" in shown
    assert "Ducks." not in shown
    assert "1 certain; 4 may fit" in shown

    nil = tuple(replace(row, score=min(row.score, 0.8 * (row.score > 0.02))) for row in rows)
    print_answer(replace(response, rows=nil))
    shown = capsys.readouterr().out
    assert shown.index("Bread.") < shown.index("3 more, far less likely") < shown.index("Geese")

    print_answer(replace(response, rows=tuple(replace(row, rank=row.rank + 5) for row in rows)))
    assert "Ducks." in capsys.readouterr().out, "who goes on wants to see them"

    nearest = tuple(replace(row, score=row.score / 10) for row in rows)
    print_answer(replace(response, rows=nearest, totals={"certain": 0}))
    shown = capsys.readouterr().out
    assert shown.startswith("Nothing seems to fit; 5 come nearest\n\n 1  ▊·········   8  Lease of")
    assert len(shown.splitlines()) == 2 + 5 + 1 + 1
    assert max(map(width, shown.splitlines())) <= 80


@given(st.text())
def test_printable_text_never_holds_a_driving_character(text: str) -> None:
    assert DRIVING.search(printable(text)) is None
    assert DRIVING.search(printable_line(text)) is None
    assert not {"\n", "\t"} & set(printable_line(text))


@given(st.text())
def test_printable_keeps_every_letter(text: str) -> None:
    letters = [c for c in text if c.isalnum()]
    assert [c for c in printable(text) if c.isalnum()] == letters


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_escaped_json_is_safe_to_show_and_loses_nothing(value: object) -> None:
    shown = escaped(json.dumps(value, ensure_ascii=False))
    assert DRIVING.search(shown) is None
    assert json.loads(shown) == value


@given(st.text(), st.integers(min_value=1, max_value=40))
def test_shortened_text_fits(text: str, limit: int) -> None:
    assert width(shortened(text, limit)) <= limit


@given(st.floats(min_value=-1, max_value=2))
def test_a_bar_is_always_ten_cells(score: float) -> None:
    assert len(bar(score)) == 10


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("a.md", 0, 10, None), "················ 0 of 10 · a.md"),
        (("a.md", 5, 10, None), "████████········ 5 of 10 · a.md"),
        (
            ("a.md", 1200, 4800, 120.0),
            "████············ 1,200 of 4,800 · 120/s · 30 s left · a.md",
        ),
        (("evil\x1b[2J.md", 3, None, None), "3 · evil[2J.md"),
        (("long.md", 1, 10, 0.5, 400.0), "█▋·············· 1 of 10 · 0.5/s · 7 min left · long.md"),
        (("long.md", 1, 10, 0.04, 400.0), "█▋·············· 1 of 10 · 7 min left · long.md"),
        (("", 10, 10, 2.5), "████████████████ 10 of 10 · 2.5/s"),
    ],
)
def test_the_progress_line(arguments: tuple[str, int, int | None, float | None], line: str) -> None:
    assert progress_line(*arguments) == line


ACCOUNT = Account(
    fusion_score=0.63,
    contributions=(
        Contribution("keyword", "original", rank=3, points=0.31),
        Contribution("vector", "hyde", rank=12, points=0.22),
        Contribution("topic", "original", rank=1, points=0.10),
    ),
    boost=Boost("task boost", 1.3, "pool"),
    rerank_score=0.81,
    ranks=(
        Place("fusion", 7, 0.63),
        Place("rerank", 2, 0.81, ()),
        Place("type boosts", 2, 0.81, ()),
        Place("demotions", 4, 0.567, ("done penalty",)),
        Place("keyword floor", 5, 0.567, ()),
    ),
    steps=(ScoreChange("done penalty", 0.81, 0.567),),
)


def test_a_result_is_followed_from_fusion_to_its_place() -> None:
    assert account_lines(ACCOUNT, 100, colour=False) == [
        "fusion 7 → rerank 2 → done penalty 4 → others raised 5",
        "fusion .63 =",
        "  .31 ███▏······ words, 3rd",
        "  .22 ██▎······· meaning (hyde), 12th",
        "  .10 █········· topics, 1st",
        "task boost × 1.3, for the pool only · rerank .81 · done penalty .81 → .57",
    ]


def test_what_a_surface_withheld_is_left_out() -> None:
    assert account_lines(Account(fusion_rank=7), 80, colour=False) == []


def test_stages_are_a_table_with_times_and_figures() -> None:
    analyse = Analyse(
        milliseconds=1.25,
        cpu_milliseconds=1.0,
        language="de",
        keywords=("frost",),
        searchable=412,
        of=48210,
        filters=(FilterCount("type:decision", 1812),),
    )
    stages = [analyse, Open(milliseconds=20.0, opened=1234, kept=3)]
    assert stage_lines(stages, 90) == [
        "stage        ms     cpu",
        "analyse     1.2     1.0  language de · keywords frost · searchable 412 of 48,210",
        "                         filter         memories",
        "                         type:decision     1,812",
        "open       20.0     0.0  opened 1,234 · kept 3",
        "           21.2     1.0",
    ]


@given(st.text(), st.lists(st.text(), max_size=3).map(tuple), st.integers(60, 100))
def test_details_of_any_kind_are_shown_and_fit(
    text: str, several: tuple[str, ...], room: int
) -> None:
    stages = [
        Expand(model=text, sent=text, variants=several),
        Fetch(sequential_collections={text: 0.5}),
    ]
    for line in stage_lines(stages, room):
        assert DRIVING.search(line) is None
        assert width(line) <= room


def test_why_gives_the_reason_then_the_figures() -> None:
    why = Verdict(
        id="3f2a9c1b-0000-4000-8000-000000000000",
        returned=False,
        reason="no leg found it near enough",
        legs=(
            LegPlace("keyword", "original", 80, 1.2, 64, 3.4),
            LegPlace("vector", "original", None, None, 9, 0.4),
        ),
        words=WordsHeld(held=("lease",), missing=("ends", "May")),
        coverage=0.314,
    )
    assert why_lines(why, 80) == [
        "why 3f2a9c1b: no leg found it near enough",
        "    words held lease · words missing ends, May · share of the query 31%",
        "    leg      place  score  taken  score of the last",
        "    words       80    1.2     64                3.4",
        "    meaning      –      –      9                0.4",
    ]


@pytest.mark.parametrize(
    ("typed", "shown"),
    [("cooking-85", "cooking-85"), ("x" * 99, "x" * 59 + "…"), ("\x1b[1m", "[1m")],
)
def test_what_was_typed_for_an_id_is_shown_in_full(typed: str, shown: str) -> None:
    line = why_lines(Verdict(id=typed, returned=False, reason="there is none"), 88)[0]
    assert line == f"why {shown}: there is none"
