"""Literal search: a pattern, tried on the few memories that may match it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import re2
from expanded import refs
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace
from private import private_below

from memory_store.errors import BadInputError
from memory_store.index.kinds import KINDS
from memory_store.index.trigrams import TRIGRAMS
from memory_store.records import MemoryDraft
from memory_store.session.entries import RECORDS
from memory_store.store import MemoryStore


class TestLiteral:
    def test_a_pattern_is_tried_on_the_memories_that_hold_its_words(
        self, notes: MemoryStore
    ) -> None:
        response = notes.search(r"spare keys? (under|were)", mode="literal")
        assert refs(response) == ["1"]
        assert response.opened == 2
        (passage,) = response.rows[0].passages
        marked = [passage.text[start:end] for start, end in passage.highlights]
        assert marked == ["spare key under"]

    def test_case_is_the_pattern_s_own_business(self, notes: MemoryStore) -> None:
        assert refs(notes.search("spare key", mode="literal")) == ["1"]
        assert sorted(refs(notes.search("(?i)SPARE KEY", mode="literal"))) == ["1", "2"]
        assert refs(notes.search("SPARE KEY", mode="literal")) == []

    def test_a_line_has_ends_and_the_text_has_others(self, store: MemoryStore) -> None:
        store.add("import os\nimport sys\nimport re\n", ref="lines")
        for pattern in ("^import sys$", "sys$", "^import re", r"\Aimport os", r"^import re\z"):
            assert refs(store.search(pattern, mode="literal", all=True)) == ["lines"], pattern
        for pattern in (r"\Aimport sys", r"import sys\z", "^sys", "import$"):
            assert refs(store.search(pattern, mode="literal", all=True)) == [], pattern
        (row,) = store.search("^import sys$", mode="literal", all=True).rows
        assert row.matches[0].line == 2

    def test_a_note_is_found_by_its_title_and_a_repository_s_file_by_its_text_alone(
        self, store: MemoryStore, tmp_path: Path
    ) -> None:
        for name in ("tree/lantern.py", "tree/lantern.txt", "notes/lantern.txt"):
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(f"print = {name[:4]!r}\n", "utf-8")
        (tmp_path / "tree" / "other.py").write_text("lantern = 1\n", "utf-8")
        (tmp_path / "tree" / ".git").mkdir()
        store.import_paths([tmp_path / "tree", tmp_path / "notes"], embed=False)
        rows = store.search("lantern", mode="literal", all=True).rows
        assert {(row.ref, store.get(row.id).text) for row in rows} == {
            ("other.py", "lantern = 1"),
            ("lantern.txt", "print = 'note'"),
        }

    @pytest.mark.parametrize("pattern", ["foo(", "(?m)foo("])
    def test_a_refusal_quotes_what_was_typed(self, notes: MemoryStore, pattern: str) -> None:
        with pytest.raises(BadInputError) as refused:
            notes.search(pattern, mode="literal")
        assert f"missing ): {pattern}. To" in str(refused.value)

    def test_blanks_at_the_ends_count_inside_slashes(self, notes: MemoryStore) -> None:
        assert refs(notes.search("/(?i)spare key /", mode="literal")) == ["1"]

    def test_auto_takes_slashes_for_a_pattern(self, notes: MemoryStore) -> None:
        response = notes.search(r"/leaves at \w+/", mode="auto")
        assert (response.mode, refs(response)) == ("literal", ["8"])

    def test_filters_hold_for_patterns_too(self, notes: MemoryStore) -> None:
        assert refs(notes.search("spare", mode="literal", topic=("errands",))) == []
        assert refs(notes.search("spare", mode="literal", topic=("house",))) == ["1"]

    @pytest.mark.parametrize("pattern", ["(", "a{5,2}", r"\w+", "x" * 1_001, "(?=look)ahead"])
    def test_a_pattern_that_cannot_serve_is_refused(self, notes: MemoryStore, pattern: str) -> None:
        with pytest.raises(BadInputError) as refusal:
            notes.search(pattern, mode="literal")
        assert refusal.value.parameter == ("all" if pattern == r"\w+" else "q")

    def test_a_pattern_between_slashes_needs_no_word(self, notes: MemoryStore) -> None:
        notes.add("a -> b")
        assert len(notes.search("/->/", mode="literal", all=True).rows) == 1
        for pattern, parameter in {"/./": "all", "/(/": "q"}.items():
            with pytest.raises(BadInputError) as refusal:
                notes.search(pattern, mode="literal")
            assert refusal.value.parameter == parameter
            assert "holds no word" not in str(refusal.value)

    def test_a_pattern_that_would_hang_others_is_over_at_once(self, notes: MemoryStore) -> None:
        notes.add("spare " + "a" * 20_000)
        response = notes.search("spare (a+)+$ ?b", mode="literal")
        assert response.milliseconds < 5_000

    def test_no_more_than_256_are_opened_and_it_is_said(
        self, make_store: Callable[..., MemoryStore]
    ) -> None:
        store = make_store()
        store.add_many((MemoryDraft(f"spare part {n}") for n in range(300)), embed=False)
        response = store.search(r"spare part \d+", mode="literal", limit=32)
        assert response.opened == 256
        assert "44 more" in response.degraded[0]
        found, pages = len(response.rows), 1
        while response.next:
            response = store.search(
                r"spare part \d+", mode="literal", limit=32, continue_=response.next
            )
            found, pages = found + len(response.rows), pages + 1
        assert (found, response.degraded, pages) == (300, (), 10)
        every = store.search(r"spare part \d+", mode="literal", all=True)
        assert (every.opened, every.totals["matched"], every.degraded) == (300, 300, ())

    def test_a_part_of_a_word_is_found(self, notes: MemoryStore) -> None:
        for pattern in ("ease", "/eas/", "ea(se|sy) end", r"\w+dlord", "[Ll]ease"):
            response = notes.search(pattern, mode="literal")
            assert (refs(response), response.opened) == (["3"], 1), pattern

    def test_what_no_index_can_narrow_asks_for_all(self, notes: MemoryStore) -> None:
        with pytest.raises(BadInputError, match=r"no index can narrow this pattern.*--all"):
            notes.search(r"[a-z]+ [a-z]ey", mode="literal")
        response = notes.search(r"(?i)sp\w+ [a-z]ey", mode="literal", all=True)
        assert sorted(refs(response)) == ["1", "2"]
        assert response.opened == notes.stats()["memories"]

    def test_a_result_carries_its_matches(self, notes: MemoryStore) -> None:
        (row,) = notes.search(r"spare key (under|were)", mode="literal").rows
        (match,) = row.matches
        assert match.text == "spare key under"
        line = notes.get(row.id).text.split("\n")[match.line - 1]
        assert line[match.column - 1 :].startswith(match.text)
        assert row.as_dict()["matches"][0]["line"] == match.line

    def test_a_match_is_one_whatever_the_floor(self, notes: MemoryStore) -> None:
        for pattern, mode in (("eas", "literal"), ("lease", "literal")):
            response = notes.search(pattern, mode=mode, min_score=0.9)
            assert [row.score for row in response.rows] == [1.0]
            assert response.totals["matched"] == 1
        assert notes.search("eas", mode="literal").rows[0].fusion_score == 0.0

    def test_matches_are_counted_and_not_what_was_tried(
        self, make_store: Callable[..., MemoryStore]
    ) -> None:
        store = make_store()
        store.add_many((MemoryDraft(f"spare part {n}") for n in range(30)), embed=False)
        first = store.search(r"spare part \d\d", mode="literal", limit=7)
        assert (first.totals["matched"], first.opened) == (20, 30)
        second = store.search(r"spare part \d\d", mode="literal", limit=7, continue_=first.next)
        assert second.totals["matched"] == 20

    def test_a_sign_that_is_no_pattern_is_answered_with_what_to_do(
        self, notes: MemoryStore
    ) -> None:
        with pytest.raises(BadInputError, match=r"missing \].*put \\ before it"):
            notes.search("[", mode="literal")
        with pytest.raises(BadInputError, match=r"no word to search for.*--mode literal"):
            notes.search("[")
        with pytest.raises(BadInputError, match="no word to search for"):  # filters or not
            notes.search("🎉", type=["note"])

    def test_all_is_for_patterns(self, notes: MemoryStore) -> None:
        with pytest.raises(BadInputError, match="all: for a pattern"):
            notes.search("spare", all=True)


@pytest.mark.parametrize("pattern", ["in:foo", "-type:x", r"\*\*\*", "🎉 →", "since:never"])
def test_a_pattern_is_no_query_also_where_there_is_code(store: MemoryStore, pattern: str) -> None:
    held = pattern.replace("\\", "")
    for kind in ("note", "code"):
        store.add_many([MemoryDraft(f"It says {held} here.", type=kind)], embed=False)
    assert len(store.search(pattern, mode="literal").rows) == 2


TEXTS = (
    "The lease ends in May",
    "released, leased: pleased",
    "Straße und Öl, ésparelle",
    "naïve café",
    "getHTTPResponse(user_id)",
    "don't  cache the user's name",
    "東京都の猫",
    "Kelvin \u212a, \u017fharp",
    "connect_timeout=30\nread_timeout = 5",
    "İstanbul ist groß",
    "spare\nkey",
    "e\u0301e, ae\u0301",
)
SLICES = st.sampled_from(TEXTS).flatmap(
    lambda text: st.tuples(st.integers(0, len(text) - 1), st.integers(1, 9)).map(
        lambda cut: text[cut[0] : cut[0] + cut[1]]
    )
)
"""Parts of texts, which seldom begin or end where a word does."""
BETWEEN = st.sampled_from(["", "", " ", ".*", r"\w*", r"\s+", r"\b", "[a-z]?", "[^x]", "(?i)"])


@st.composite
def patterns(draw: st.DrawFn) -> str:
    """An expression of slices that may match: with gaps, alternatives, classes, flags."""
    made = draw(st.sampled_from(["", "", "(?i)", "(?s)"]))
    for piece in draw(st.lists(SLICES, min_size=1, max_size=3)):
        escaped = re2.escape(piece)
        form = draw(st.integers(0, 5))
        if form == 0:
            escaped = f"(?:{escaped}|{re2.escape(draw(SLICES))})"
        elif form == 1:
            escaped = f"(?:{escaped}){draw(st.sampled_from(['?', '*', '+', '{1,2}', '{0}']))}"
        elif form == 2:
            escaped = "".join(f"[{re2.escape(c + c.upper()[:1])}]" for c in piece)
        elif form == 3:
            escaped += draw(st.sampled_from(["?", "*", "+", "{2}"]))
        made += escaped + draw(BETWEEN)
    return made


def shelved(folder: Path, model: Path, *, trigrams: bool) -> MemoryStore:
    """A vault with each text as a note and as code, with trigrams or as before there were any."""
    with private_below(folder) as environment:
        store, _ = MemoryStore.create(
            folder / "shelf.db", key_file=folder / "keys" / "key", embedder=str(model)
        )
        if not trigrams:
            environment.delitem(KINDS, TRIGRAMS.name)
            environment.delitem(RECORDS, TRIGRAMS.name)
        for type_ in ("note", "code"):
            store.add_many((MemoryDraft(text, type=type_) for text in TEXTS), embed=False)
    return store


@pytest.fixture(scope="module", params=[True, False], ids=["trigrams", "none"])
def shelf(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, tiny_model: Path
) -> Iterator[MemoryStore]:
    with shelved(tmp_path_factory.mktemp("shelf"), tiny_model, trigrams=request.param) as store:
        yield store


@given(pattern=st.one_of(SLICES.map(re2.escape), patterns()))
def test_a_narrowed_search_finds_what_opening_everything_finds(
    shelf: MemoryStore, pattern: str
) -> None:
    query = f"/{pattern}/"
    try:
        every = shelf.search(query, mode="literal", all=True, limit=32)
        narrowed = shelf.search(query, mode="literal", limit=32)
    except BadInputError as refusal:
        assume(refusal.parameter == "")
    assert {row.id for row in narrowed.rows} == {row.id for row in every.rows}


def test_more_matches_than_are_listed_are_told_and_all_lists_them(store: MemoryStore) -> None:
    text = "".join(f"weir {number}\n" for number in range(250))
    store.add_many([MemoryDraft(text, title="many"), MemoryDraft("weir 7", title="one")])
    answer = store.search(r"/weir \d+/", mode="literal")
    assert sorted(len(row.matches) for row in answer.rows) == [1, 200]
    (said,) = answer.degraded
    assert (
        "1 of these matches in more places than are listed: --all in a terminal lists them" in said
    )
    answer = store.search(r"/weir \d+/", mode="literal", all=True)
    (found,) = (row.matches for row in answer.rows if len(row.matches) > 1)
    assert [(one.line, one.column, one.text) for one in found] == [
        (number + 1, 1, f"weir {number}") for number in range(250)
    ]
    assert answer.degraded == ()


def test_a_vault_of_before_trigrams_opens_more_until_it_is_indexed_again(
    tmp_path: Path, tiny_model: Path
) -> None:
    with shelved(tmp_path, tiny_model, trigrams=False) as store:
        before = store.search("leas", mode="literal", limit=32)
        assert before.opened == store.stats()["memories"]
        store.add("Please wait")  # in a segment of its own, which has them
        after = store.search("leas", mode="literal", limit=32)
        assert (len(after.rows), after.opened) == (len(before.rows) + 1, before.opened + 1)
        assert store.search("/ leas.* in /", mode="literal").opened < before.opened  # a whole word
        store.reindex()
        again = store.search("leas", mode="literal", limit=32)
        assert {row.id for row in again.rows} == {row.id for row in after.rows}
        assert again.opened == len(again.rows)
        assert store.verify()["failures"] == []


def test_verify_says_where_trigrams_are_of_another_text(tmp_path: Path, tiny_model: Path) -> None:
    with shelved(tmp_path, tiny_model, trigrams=True) as store:
        with pytest.MonkeyPatch.context() as wrong:
            make = RECORDS[TRIGRAMS.name]
            wrong.setitem(
                RECORDS, TRIGRAMS.name, lambda one, *how: make(replace(one, text="other"), *how)
            )
            memory = store.add("The ferry leaves at seven")
        assert not store.search("ferry", mode="literal").rows
        (failure,) = store.verify()["failures"]
        assert memory.id in failure
        assert "trigrams" in failure
