"""More like this: a stored memory is the question, and nothing is opened to find others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from typing_commands import run

from memory_store import access
from memory_store.access import Grants
from memory_store.errors import BadInputError
from memory_store.index.documents import terms_of, topics_of
from memory_store.records import MemoryDraft, SearchResponse, search_request
from memory_store.scopes import EVERYTHING
from memory_store.search.query.more_like_this import MOST_TERMS, spread, telling_terms
from memory_store.search.recipes import RECIPES
from memory_store.store import MemoryStore

NO_ASKER = "00000000-0000-4000-8000-000000000000"
GARDEN = "Slugs eat the lettuce in the raised bed when the night is wet"
NOTES = (
    ("slugs", GARDEN, ("garden", "pests")),
    ("copper", "Copper tape around the raised bed keeps slugs from the lettuce", ("garden",)),
    ("snails", "Snails come out on a wet night and climb the garden wall", ("pests",)),
    ("beans", "Runner beans want poles two metres high", ("garden",)),
    ("boiler", "The boiler was serviced and its filter replaced", ("house",)),
    ("lease", "The lease ends in May, the landlord wants the deposit settled", ("house",)),
    ("ferry", "The ferry to the islands leaves at seven", ("travel",)),
    ("bread", "Sourdough wants a warm corner and a day of patience", ("kitchen",)),
)


@pytest.fixture
def garden(store: MemoryStore) -> MemoryStore:
    """Eight notes; two of them on slugs and lettuce."""
    store.add_many(
        MemoryDraft(text, title=ref, ref=ref, topics=topics, created=f"2024-{n:02}-01")
        for n, (ref, text, topics) in enumerate(NOTES, 1)
    )
    return store


def id_of(store: MemoryStore, ref: str) -> str:
    return store.find_id(ref)


def refs(response: SearchResponse) -> list[str]:
    return [row.ref or "" for row in response.rows]


def alike(store: MemoryStore, ref: str, query: str = "", **options: Any) -> SearchResponse:
    return store.search(query, like=id_of(store, ref), **options)


class TestWhatIsFound:
    @pytest.mark.parametrize("mode", ["hybrid", "keyword", "vector"])
    def test_the_nearest_comes_first_and_the_memory_itself_never(
        self, garden: MemoryStore, mode: str
    ) -> None:
        found = refs(alike(garden, "slugs", mode=mode))
        assert found[0] == "copper"
        assert "slugs" not in found

    @pytest.mark.parametrize("mode", ["hybrid", "keyword", "vector"])
    def test_exact_copies_never_appear(self, garden: MemoryStore, mode: str) -> None:
        garden.add(GARDEN, title="slugs", ref="a copy", collection="shared")
        found = refs(alike(garden, "slugs", mode=mode, limit=32))
        assert {"a copy", "slugs"}.isdisjoint(found)
        assert "slugs" not in refs(alike(garden, "a copy", mode=mode, limit=32))

    def test_shared_topics_count_where_words_do_not(self, garden: MemoryStore) -> None:
        ranks = {row.ref: (row.keyword_rank, row.topic_rank) for row in alike(garden, "bread").rows}
        assert not any(topic for _, topic in ranks.values())
        ranks = {row.ref: row.topic_rank for row in alike(garden, "lease").rows[:3]}
        assert ranks["boiler"] == 1

    def test_a_rare_topic_counts_more_than_a_common_one(self, store: MemoryStore) -> None:
        store.add("Alpha", ref="asked", topics=("work", "mooring"))
        store.add_many(MemoryDraft(f"Word{n}", ref=str(n), topics=("work",)) for n in range(60))
        store.add("Omega", ref="rare", topics=("mooring",))
        ranks = {row.ref: row.topic_rank for row in alike(store, "asked").rows}
        assert ranks["rare"] == 1

    def test_each_leg_stands_alone_in_its_mode(self, garden: MemoryStore) -> None:
        for mode, other in (("keyword", "vector_rank"), ("vector", "keyword_rank")):
            rows = alike(garden, "slugs", mode=mode).rows
            assert all(getattr(row, f"{mode}_rank") for row in rows)
            assert not any(getattr(row, other) for row in rows)
            assert not any(row.topic_rank for row in rows)

    def test_a_long_memory_is_found_by_its_best_window(self, store: MemoryStore) -> None:
        text = "wheelbarrow " * 900 + "bowline knots of harbour pilots " * 90
        store.add(text, ref="long")
        store.add("bowline knots of harbour pilots", ref="knots")
        store.add_many(MemoryDraft(f"weather of day {n}", ref=str(n)) for n in range(40))
        assert refs(alike(store, "long", mode="vector"))[0] == "knots"
        assert refs(alike(store, "knots", mode="vector"))[0] == "long"

    def test_other_collections_are_compared_by_meaning(self, garden: MemoryStore) -> None:
        garden.add("Lettuce, slugs and a raised bed", ref="theirs", collection="shared")
        found = {row.ref: row for row in alike(garden, "slugs").rows}
        assert found["theirs"].vector_rank is not None
        assert found["theirs"].keyword_rank is None

    def test_what_is_nearer_elsewhere_comes_before_what_is_further_at_home(
        self, garden: MemoryStore
    ) -> None:
        garden.add("Lettuce in a raised bed", ref="asked")
        garden.add("Lettuce in the raised bed", ref="theirs", collection="shared")
        answer = alike(garden, "asked", explain=True)
        assert refs(answer)[0] == "theirs"
        assert set(refs(answer)[1:3]) == {"copper", "slugs"}
        adjusted = next(one for one in answer.explain if one.stage == "adjust")
        for row, account in zip(answer.rows, adjusted.details["results"], strict=True):
            points = sum(part["points"] for part in account["contributions"])
            assert points == pytest.approx(row.fusion_score, abs=0.001)
            assert points <= 1

    @pytest.mark.parametrize("recipe", sorted(RECIPES))
    def test_every_recipe_takes_it(self, garden: MemoryStore, recipe: str) -> None:
        found = refs(alike(garden, "slugs", recipe=recipe))
        assert "copper" in found[:2]
        assert "slugs" not in found

    def test_a_memory_without_words_that_others_share_is_an_answer_too(
        self, store: MemoryStore
    ) -> None:
        store.add("Quixotic", ref="alone")
        assert alike(store, "alone").rows == ()
        assert alike(store, "alone", mode="keyword").rows == ()


class TestWithAQuery:
    def test_both_count(self, garden: MemoryStore) -> None:
        found = refs(alike(garden, "slugs", "boiler filter", limit=3))
        assert {"copper", "boiler"} <= set(found)

    def test_conditions_of_the_query_hold(self, garden: MemoryStore) -> None:
        assert refs(alike(garden, "slugs", "-copper"))[0] == "snails"
        assert set(refs(alike(garden, "slugs", "topic:house"))) == {"boiler", "lease"}
        assert refs(alike(garden, "slugs", '"wet night"')) == ["snails"]

    def test_without_either_there_is_nothing_to_search_for(self, garden: MemoryStore) -> None:
        for like in (None, ""):
            with pytest.raises(BadInputError, match="q: the query is empty"):
                garden.search("", like=like)


class TestOptions:
    def test_filters_act_before_candidates_are_chosen(self, garden: MemoryStore) -> None:
        for mode in ("hybrid", "vector"):
            found = alike(garden, "slugs", topic="house", mode=mode)
            assert set(refs(found)) == {"boiler", "lease"}
        assert set(refs(alike(garden, "slugs", since="2024-07"))) == {"ferry", "bread"}

    def test_pages_show_everything_once_and_their_token_is_for_this_memory(
        self, garden: MemoryStore
    ) -> None:
        whole = refs(alike(garden, "slugs"))
        seen, token = [], None
        while True:
            page = alike(garden, "slugs", limit=2, **({"continue_": token} if token else {}))
            seen += refs(page)
            token = page.next
            if token is None:
                break
        assert seen == whole
        token = alike(garden, "slugs", limit=2).next
        with pytest.raises(BadInputError, match="continue"):
            alike(garden, "copper", limit=2, continue_=token)

    def test_the_beginning_of_an_id_and_a_ref_name_the_same_search(
        self, garden: MemoryStore
    ) -> None:
        whole = id_of(garden, "slugs")
        token = garden.search("", like=whole, limit=2).next
        rest = [
            refs(garden.search("", like=name, limit=2, continue_=token))
            for name in (whole, whole[:8], "slugs")
        ]
        assert rest[0] == rest[1] == rest[2] != []

    def test_min_score_deep_budget_and_facets_work(self, garden: MemoryStore) -> None:
        every = alike(garden, "slugs", deep=True)
        least = every.rows[2].score
        assert len(alike(garden, "slugs", min_score=least - 0.001).rows) == 3
        assert every.facets["topic"]["garden"] == 2
        short = alike(garden, "slugs", budget=25)
        assert short.budget is not None
        assert 0 < len(short.rows) < len(every.rows)

    def test_a_literal_search_refuses_it(self, garden: MemoryStore) -> None:
        with pytest.raises(BadInputError, match="like: this mode is for a pattern"):
            alike(garden, "slugs", "slugs", mode="literal")

    def test_an_unknown_memory_is_refused_by_the_name_of_the_option(
        self, garden: MemoryStore
    ) -> None:
        for name in (NO_ASKER, "0000", "no such ref"):
            with pytest.raises(BadInputError, match="like: there is no memory") as refusal:
                garden.search("", like=name)
            assert refusal.value.parameter == "like"


class TestSealed:
    @pytest.mark.parametrize("options", [{}, {"sealed": True}, {"recipe": "gnosis"}])
    def test_exactly_the_returned_rows_are_opened(
        self, garden: MemoryStore, options: dict[str, Any]
    ) -> None:
        answer = alike(garden, "slugs", limit=2, **options)
        assert (answer.opened, len(answer.rows)) == (2, 2)
        assert answer.degraded == ()

    def test_no_model_is_loaded(self, garden: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object) -> None:
            raise AssertionError("a model was asked for")

        monkeypatch.setattr(garden, "embedder", refuse)
        assert refs(alike(garden, "slugs"))[0] == "copper"

    def test_a_reranker_that_is_there_reads_nothing(
        self, garden: MemoryStore, reranker: str
    ) -> None:
        answer = alike(garden, "slugs", "lettuce", explain=True)
        assert answer.counts.startswith("Reranked 0")

    def test_a_searcher_names_it_by_id_alone_and_sees_no_text(self, garden: MemoryStore) -> None:
        searcher, whole = Grants(search=EVERYTHING), id_of(garden, "slugs")
        answers = [
            access.search(garden, searcher, search_request("", like=n)) for n in (whole, whole[:8])
        ]
        by_places = garden.search_by_places(search_request(like=whole, sealed=True))
        expected = [row.id for row in by_places.rows]
        for answer in answers:
            assert [row.id for row in answer.rows] == expected
            assert not any(row.title or row.preview or row.ref for row in answer.rows)
        with pytest.raises(BadInputError, match="like: there is no memory 'slugs'"):
            access.search(garden, searcher, search_request("", like="slugs"))


class TestWithoutVectors:
    def test_words_and_topics_alone_and_it_is_said(self, store: MemoryStore) -> None:
        store.add_many(
            [MemoryDraft(text, ref=ref, topics=topics) for ref, text, topics in NOTES],
            embed=False,
        )
        answer = alike(store, "slugs")
        assert refs(answer)[0] == "copper"
        assert any("meaning is not searched" in line for line in answer.degraded)

    def test_a_memory_without_a_vector_among_others_that_have_one(
        self, garden: MemoryStore
    ) -> None:
        late = MemoryDraft("Slugs and lettuce", ref="late", topics=("pests",))
        garden.add_many([late], embed=False)
        answer = alike(garden, "late")
        assert refs(answer)[0] == "slugs"
        assert "copper" in refs(answer)
        assert any("like: this memory has no vector yet" in line for line in answer.degraded)

    def test_vectors_of_another_model_are_not_compared(
        self, garden: MemoryStore, second_model: Any
    ) -> None:
        garden.collections.create("abroad", embedder=str(second_model))
        garden.add("Lettuce and slugs", ref="theirs", collection="abroad")
        answer = alike(garden, "slugs")
        assert "theirs" not in refs(answer)
        assert any("abroad" in line and "another model" in line for line in answer.degraded)


class TestWhyAndExplain:
    def test_the_memory_itself_and_its_copies_say_what_they_are(self, garden: MemoryStore) -> None:
        garden.add(GARDEN, title="slugs", ref="copy")
        itself = alike(garden, "slugs", why="slugs").why
        copy = alike(garden, "slugs", why="copy").why
        assert itself is not None
        assert copy is not None
        assert (itself["stage"], itself["returned"]) == ("like", False)
        assert copy["reason"].endswith("or has the same content")

    def test_a_result_has_its_places_and_one_that_is_far_its_reason(
        self, garden: MemoryStore
    ) -> None:
        near = alike(garden, "slugs", why="copper").why
        assert near is not None
        assert (near["stage"], near["rank"]) == ("returned", 1)
        far = alike(garden, "slugs", mode="keyword", why="ferry").why
        assert far is not None
        assert "it holds none of the words" in far["reason"]

    def test_the_stages_show_what_was_searched_for(self, garden: MemoryStore) -> None:
        stages = {one.stage: one.details for one in alike(garden, "slugs", explain=True).explain}
        assert stages["analyse"]["like"]["topics"] == 2
        assert {one["kind"] for one in stages["fetch"]["lists"]} == {"like"}
        assert "whole memory" in stages["rerank"]["skipped"]


class TestTellingTerms:
    def test_a_document_knows_its_words_and_topics(self, garden: MemoryStore) -> None:
        snapshot = garden.search_context().snapshot
        ordinal = snapshot.ordinal_of(id_of(garden, "slugs"))
        assert ordinal is not None
        held = terms_of(snapshot, ordinal)
        assert held.titles.sum() + held.bodies.sum() == snapshot.lengths[ordinal]
        assert len(topics_of(snapshot, ordinal)) == 2

    def test_words_of_one_memory_or_of_most_are_left_out_and_there_are_few(
        self, store: MemoryStore
    ) -> None:
        words = [f"term{n}" for n in range(60)]
        store.add(" ".join([*words, "common", "hapax"]), ref="asked")
        store.add_many(MemoryDraft(f"common {word}") for word in words)
        snapshot = store.search_context().snapshot
        ordinal = snapshot.ordinal_of(id_of(store, "asked"))
        assert ordinal is not None
        chosen = telling_terms(snapshot, ordinal)
        assert len(set(chosen)) == MOST_TERMS
        blinder = store.search_context().blinder(snapshot.collection(ordinal))
        left_out = {blinder.term("en", word) for word in ("common", "hapax")}
        assert left_out.isdisjoint(chosen)

    @pytest.mark.parametrize(("rows", "chosen"), [(3, [0, 1, 2]), (9, [0, 2, 5, 8])])
    def test_windows_are_spread_over_the_memory(self, rows: int, chosen: Sequence[int]) -> None:
        vectors = np.arange(rows, dtype=np.float32)[:, None]
        assert spread(vectors, 4)[:, 0].tolist() == chosen


class TestSurfaces:
    def test_the_command_takes_an_id_without_a_query(
        self, garden: MemoryStore, key_file: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        arguments = ["search", str(garden.path), "--key-file", str(key_file), "--json", "--like"]
        answer = run(*arguments, id_of(garden, "slugs")[:8])
        assert answer.exit_code == 0, answer.output
        assert json.loads(answer.stdout)["rows"][0]["ref"] == "copper"
        unknown = run(*arguments, NO_ASKER)
        assert unknown.exit_code == 2
        assert "like: there is no memory" in unknown.output
