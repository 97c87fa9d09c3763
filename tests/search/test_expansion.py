"""Expansion in a search: what variants find, what they may say, and that nothing stops a search."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from expanded import asked, lists, refs, stage

from memory_store.errors import LockedError
from memory_store.records import MemoryDraft, SearchRequest
from memory_store.search import pipeline
from memory_store.search.explain.words import stage_words
from memory_store.sqlite import connect
from memory_store.store import MemoryStore

if TYPE_CHECKING:
    from language_models import LanguageModels


class TestVariants:
    def test_a_note_without_any_word_of_the_query_is_found(
        self, notes: MemoryStore, language_models: LanguageModels
    ) -> None:
        query = "my vehicle"
        assert notes.search(query, mode="keyword").rows == ()
        response = asked(notes, query)
        assert refs(response)[0] == "0"
        assert response.rows[0].keyword_rank == 1
        typed = notes.search(query)
        assert response.degraded == typed.degraded
        assert (response.nearest, bool(typed.nearest)) == (None, True)

    def test_explain_says_what_was_searched_for(
        self, notes: MemoryStore, language_models: LanguageModels
    ) -> None:
        response = asked(notes, "my vehicle")
        reported = stage(response)
        assert reported == {
            "model": "good",
            "cached": False,
            "sent": "Question: my vehicle",
            "lines": 4,
            "variants": [
                "lex: automobile garage",
                "vec: where the automobile is kept",
                "hyde: The automobile needs new brake pads, said the garage.",
            ],
            "dropped": 0,
            "dropped_for": {},
        }
        assert [(leg, kind) for leg, kind, _ in lists(response)] == [
            *(("keyword", kind) for kind in ("original", "lex")),
            *(("vector", kind) for kind in ("original", "vec", "hyde")),
        ]
        stages = [report.stage for report in response.explain]
        assert stages[:3] == ["analyse", "expand", "fetch"]

    def test_a_model_gets_the_words_alone(
        self, notes: MemoryStore, language_models: LanguageModels
    ) -> None:
        asked(notes, 'my "old vehicle" -secretword topic:house since:2020\nintent: to sell it')
        ((_, prompt),) = language_models.given("good")
        assert prompt == "Question: my old vehicle\nWhat is meant: to sell it"

    def test_the_query_counts_for_more_than_its_variants(
        self, notes: MemoryStore, language_models: LanguageModels
    ) -> None:
        language_models.add("distracted", "lex: sourdough\n")
        response = asked(notes, "spare key", expander="distracted", recipe="gno")
        assert refs(response).index("1") < refs(response).index("4")

    def test_evaluation_ranks_what_a_search_would(
        self, notes: MemoryStore, language_models: LanguageModels
    ) -> None:
        options = SearchRequest("my vehicle", expander="good")
        ranked = pipeline.rank(notes.search_context(), options).results
        assert ranked[0][0] == asked(notes, "my vehicle").rows[0].id

    @pytest.mark.parametrize(
        ("recipe", "original", "variant"), [("gno", 6, 3), ("qmd", 20, 20), ("default", 30, 30)]
    )
    def test_lists_are_as_long_as_the_recipe_says(
        self,
        make_store: Callable[..., MemoryStore],
        language_models: LanguageModels,
        recipe: str,
        original: int,
        variant: int,
    ) -> None:
        store = make_store()
        store.add_many(MemoryDraft(f"the boat and the barge {n}") for n in range(30))
        language_models.add("ships", "lex: barge\nvec: a barge\n")
        found = lists(asked(store, "boat", expander="ships", recipe=recipe, limit=3))
        assert found == [
            ("keyword", "original", original),
            ("keyword", "lex", variant),
            ("vector", "original", original),
            ("vector", "vec", variant),
        ]


class TestWhoDecides:
    def test_nothing_is_sent_unless_a_model_was_chosen(
        self, notes: MemoryStore, language_models: LanguageModels
    ) -> None:
        language_models.folder.mkdir(exist_ok=True)
        (language_models.folder / "default_model.txt").write_text("good")
        response = asked(notes, "my vehicle", expander=None)
        assert stage(response) == {"skipped": "no model chosen"}
        assert language_models.given("good") == []

    def test_the_environment_chooses_and_the_asker_switches_off(
        self,
        notes: MemoryStore,
        language_models: LanguageModels,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setenv("MEMORY_STORE_EXPANDER", "good")
        assert stage(notes.search("my vehicle", explain=True))["model"] == "good"
        off = notes.search("another vehicle", explain=True, expand=False)
        assert stage(off) == {"skipped": "switched off"}
        assert len(language_models.given("good")) == 1

    @pytest.mark.parametrize(
        ("query", "options", "why"),
        [
            ("vehicle", {"recipe": "gnosis"}, "the recipe gnosis does not expand"),
            ("vehicle", {"recipe": "prx"}, "the recipe prx does not expand"),
            ("vehicle", {"mode": "keyword"}, "keyword mode searches for the words as they are"),
            ("vehicle", {"mode": "vector"}, "vector mode searches for the words as they are"),
            ("vehicle\nlex: truck", {}, "the query brings its own variants"),
            ("topic:house", {}, "no words to expand"),
            ("long " * 201, {}, "a query this long needs no other wording"),
        ],
    )
    def test_some_searches_are_never_expanded(
        self,
        notes: MemoryStore,
        language_models: LanguageModels,
        query: str,
        options: dict[str, Any],
        why: str,
    ) -> None:
        assert stage(asked(notes, query, **options)) == {"skipped": why}
        assert language_models.given("good") == []

    @pytest.mark.parametrize("recipe", ["gno", "qmd"])
    def test_a_recipe_that_expects_a_model_says_that_none_is_chosen(
        self, notes: MemoryStore, language_models: LanguageModels, recipe: str
    ) -> None:
        response = asked(notes, "my vehicle", expander=None, recipe=recipe)
        assert stage(response) == {"skipped": "no model chosen"}
        (line,) = [line for line in response.degraded if "expansion" in line]
        assert f"the recipe {recipe} expects" in line
        assert "Try: MEMORY_STORE_EXPANDER=MODEL" in line
        quiet = asked(notes, "my vehicle", expander=None, recipe=recipe, expand=False)
        assert not any("expansion" in line for line in quiet.degraded)

    @pytest.mark.parametrize("recipe", ["default", "gno", "qmd"])
    def test_a_confident_keyword_match_needs_no_expansion(
        self, make_store: Callable[..., MemoryStore], language_models: LanguageModels, recipe: str
    ) -> None:
        store = make_store()
        store.add_many(MemoryDraft(f"nothing but filler text, number {n}") for n in range(60))
        wanted = "the unmistakable zanzibar ledger of marigold quarterstaff"
        store.add(wanted)
        store.add(wanted, collection="copies")  # the same content twice is no rival
        response = asked(store, "unmistakable zanzibar ledger marigold", recipe=recipe)
        assert stage(response) == {"model": "good", "skipped": "confident keyword match"}
        assert language_models.given("good") == []
        store.add("a zanzibar ledger that is unmistakable, of marigold too")
        assert "variants" in stage(
            asked(store, "unmistakable zanzibar ledger marigold", recipe=recipe)
        )


class TestTrouble:
    @pytest.mark.parametrize(
        ("model", "reason"),
        [
            ("raises", "ValueError"),
            ("nobody", "no language model"),
        ],
    )
    def test_a_search_goes_on_without_its_model(
        self, notes: MemoryStore, language_models: LanguageModels, model: str, reason: str
    ) -> None:
        response = asked(notes, "my private vehicle", expander=model)
        plain = notes.search("my private vehicle")
        assert refs(response) == refs(plain)
        (line,) = set(response.degraded) - set(plain.degraded)
        assert reason in line
        assert "Try: " in line
        assert "sk-secret" not in line
        assert "private" not in line
        assert reason in stage(response)["skipped"]
        assert ("sent" in stage(response)) is (model == "raises")

    def test_a_model_that_writes_nothing_usable_was_called(
        self, notes: MemoryStore, language_models: LanguageModels
    ) -> None:
        response = asked(notes, "my private vehicle", expander="junk")
        assert stage(response) == {
            "model": "junk",
            "cached": False,
            "sent": "Question: my private vehicle",
            "lines": 3,
        }
        (line,) = set(response.degraded) - set(notes.search("my private vehicle").degraded)
        assert "no usable line came from the language model junk. Try: another" in line
        told_of = stage_words(next(one for one in response.explain if one.stage == "expand"))
        assert told_of.milliseconds > 0
        assert told_of.figures == (
            ("model", "junk"),
            ("called", "3 lines, none usable"),
            ("sent", "“Question: my private vehicle”"),
        )

    def test_a_time_limit_holds_for_the_model_too(
        self, notes: MemoryStore, language_models: LanguageModels
    ) -> None:
        start = time.monotonic()
        response = asked(notes, "my vehicle", expander="hangs", budget_ms=1_500)
        assert time.monotonic() - start < 20
        late = re.compile(r"did not answer within [\d.e-]+ seconds")
        assert any(late.search(line) for line in response.degraded)
        assert response.rows

    def test_what_was_junk_is_asked_again(
        self, notes: MemoryStore, language_models: LanguageModels
    ) -> None:
        for _ in range(2):
            asked(notes, "my vehicle", expander="junk")
        assert len(language_models.given("junk")) == 2


class TestCache:
    def test_the_same_question_is_sent_once(
        self, notes: MemoryStore, language_models: LanguageModels
    ) -> None:
        first = asked(notes, "my vehicle", limit=3)
        again = asked(notes, "my vehicle topic:house -boat", recipe="gno")
        assert (stage(first)["cached"], stage(again)["cached"]) == (False, True)
        assert stage(again)["variants"] == stage(first)["variants"]
        for query in ("my other vehicle", "my vehicle\nintent: to sell it"):
            assert not stage(asked(notes, query))["cached"]
        assert len(language_models.given("good")) == 3

    def test_another_model_is_asked_for_itself(
        self, notes: MemoryStore, language_models: LanguageModels
    ) -> None:
        language_models.add("other", "lex: truck\n")
        asked(notes, "my vehicle")
        assert stage(asked(notes, "my vehicle", expander="other"))["variants"] == ["lex: truck"]

    def test_it_outlives_a_lock_and_needs_no_model_then(
        self, notes: MemoryStore, key_file: Any, tiny_model: Any, language_models: LanguageModels
    ) -> None:
        wanted = stage(asked(notes, "my vehicle"))["variants"]
        notes.lock()
        with pytest.raises(LockedError):
            asked(notes, "my vehicle")
        with MemoryStore.open(notes.path, key_file=key_file, embedder=str(tiny_model)) as opened:
            reported = stage(asked(opened, "my vehicle"))
            assert (reported["cached"], reported["variants"]) == (True, wanted)
            assert opened.verify()["failures"] == []
        assert len(language_models.given("good")) == 1

    def test_guardrails_hold_for_what_was_kept(
        self, notes: MemoryStore, language_models: LanguageModels
    ) -> None:
        asked(notes, "my vehicle")
        reported = stage(asked(notes, "my vehicle -garage"))
        assert reported["cached"]
        assert reported["variants"] == ["vec: where the automobile is kept"]

    @pytest.mark.in_a_file
    def test_a_locked_file_does_not_stop_a_search(
        self, notes: MemoryStore, language_models: LanguageModels
    ) -> None:
        other = connect(notes.path)
        other.execute("begin immediate")
        for cached in (False, True):
            assert stage(asked(notes, "my vehicle"))["cached"] is cached
        other.execute("rollback")
        other.close()

    def test_keeping_an_answer_leaves_the_index_as_it_is(
        self, notes: MemoryStore, language_models: LanguageModels
    ) -> None:
        before = notes.search_context().snapshot
        asked(notes, "my vehicle")
        assert notes.search_context().snapshot is before
        notes.add("the boat")
        assert notes.search_context().snapshot is not before

    @pytest.mark.in_a_file
    def test_a_strict_vault_shows_no_trace_of_it(
        self, make_store: Callable[..., MemoryStore], language_models: LanguageModels
    ) -> None:
        store = make_store("strict.db", profile="strict")
        store.add("The automobile is here")
        for cached in (False, True):
            assert stage(asked(store, "my vehicle"))["cached"] is cached
        rows = connect(store.path).execute("select count(*) from vault_expansions").fetchone()
        assert rows == (0,)


def test_language_decides_the_prompt(
    make_store: Callable[..., MemoryStore], language_models: LanguageModels
) -> None:
    store = make_store()
    store.add("Der Schlüssel hängt bei den Nachbarn im Flur, und zwar seit dem letzten Winter.")
    asked(store, "wo ist der Schlüssel")
    ((system, prompt),) = language_models.given("good")
    assert "Schreibe deutsch" in system
    assert prompt == "Frage: wo ist der Schlüssel"
