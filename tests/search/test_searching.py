"""Searching a real vault: what is found, what is opened for it, and what is said about it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from expanded import refs
from msgspec.structs import replace

from memory_store.errors import BadInputError
from memory_store.models import embedder
from memory_store.models.embedder import Embedder
from memory_store.records import MemoryDraft, SearchRequest
from memory_store.search import degraded, pipeline
from memory_store.search.answer.previews import after_heading
from memory_store.store import MemoryStore
from memory_store.titles import shown_title


def test_a_note_is_found_by_name_and_by_meaning(notes: MemoryStore) -> None:
    assert refs(notes.search("Harper"))[0] == "5"
    by_meaning = notes.search("car", mode="vector").rows[0]
    assert (by_meaning.ref, by_meaning.keyword_rank, by_meaning.vector_rank) == ("0", None, 1)
    assert refs(notes.search("car"))[0] == "0"


def test_a_note_is_found_by_the_name_of_its_file(store: MemoryStore) -> None:
    store.add_many(
        [
            MemoryDraft(
                "Forty-one by torchlight.", title="Night shift", ref="a/2024-05-molluscs.md"
            ),
            MemoryDraft("The molluscs of the shore.", ref="b/shore.md"),
            MemoryDraft("Nothing of that.", ref="molluscs"),
        ]
    )
    assert refs(store.search("molluscs", mode="keyword")) == ["b/shore.md", "a/2024-05-molluscs.md"]
    assert refs(store.search("2024-05-molluscs.md"))[0] == "a/2024-05-molluscs.md"
    by_word, by_name = store.search("molluscs", mode="keyword").rows
    assert (by_word.passages[0].place, by_name.passages[0].place) == (None, "2024-05-molluscs.md")
    assert store.search("moluscs", mode="keyword").also_searched == {"moluscs": "molluscs"}
    assert store.verify(full=True)["failures"] == []


def test_any_word_is_enough_and_stop_words_find_nothing_by_themselves(notes: MemoryStore) -> None:
    response = notes.search("is the sourdough on a unicycle", mode="keyword")
    assert refs(response) == ["4"]


def test_stop_words_never_make_a_query_empty(notes: MemoryStore) -> None:
    response = notes.search("the and", mode="keyword")
    assert "3" in refs(response)


def test_the_keyword_mode_ranks_as_bm25_does(store: MemoryStore) -> None:
    from memory_store.sqlite import sqlite3

    texts = [("pear " * (n % 4) + "plum " * (n % 3) + "filler " * n).strip() for n in range(1, 40)]
    store.add_many([MemoryDraft(text, ref=str(n)) for n, text in enumerate(texts)])
    connection = sqlite3.connect(":memory:")
    connection.execute("create virtual table t using fts5(title, text, tokenize='porter')")
    titles = {row.ref: row.title for row in store.list(limit=100)}
    for number, text in enumerate(texts):
        row = (number, titles[str(number)], text)
        connection.execute("insert into t(rowid, title, text) values (?, ?, ?)", row)
    reference = dict(
        connection.execute("select rowid, bm25(t) from t where t match 'pear OR plum'").fetchall()
    )
    ranked = pipeline.rank(store.search_context(), SearchRequest("pear plum", mode="keyword"))
    found = [reference[int(store.get(id_).ref or "")] for id_, _ in ranked.results]
    assert len(found) == len(reference) > 20
    assert found == sorted(reference.values())


def test_a_refused_first_search_leaves_no_model_behind_that_is_being_loaded(
    store: MemoryStore, key_file: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python may end next, and what is imported meanwhile fails with a traceback."""
    store.add("The spare key is under the stone.")
    store.close()
    loaded, plain = threading.Event(), embedder.load_embedder

    def slowly(*given: Any) -> Any:
        time.sleep(0.5)
        model = plain(*given)
        loaded.set()
        return model

    monkeypatch.setattr(embedder, "load_embedder", slowly)
    with MemoryStore.open(store.path, key_file=key_file, embedder=str(tiny_model)) as opened:
        with pytest.raises(BadInputError, match="opinion"):
            opened.search("spare key", type="opinion")
        assert loaded.is_set()


@pytest.mark.parametrize("query", [None, 5, b"bytes", ["a", "list"]])
def test_a_first_query_that_is_no_text_is_refused_by_name(
    store: MemoryStore, query: object
) -> None:
    with pytest.raises(BadInputError) as refusal:
        store.search(query)  # type: ignore[arg-type]
    assert refusal.value.parameter == "q"


class TestConditions:
    def test_a_phrase_must_stand_as_quoted(self, notes: MemoryStore) -> None:
        assert sorted(refs(notes.search("spare key", mode="keyword"))) == ["1", "2"]
        assert refs(notes.search('"spare key"')) == ["1"]
        assert refs(notes.search('"key spare"')) == []

    @pytest.mark.parametrize("options", [{}, {"sealed": True}, {"explain": True}])
    def test_a_question_that_quotes_what_nothing_holds_is_searched_by_its_words(
        self, notes: MemoryStore, options: dict[str, Any]
    ) -> None:
        quoted = notes.search('who keeps the "key spare" for Mina', **options)
        assert refs(quoted)[0] == "1"
        assert quoted.degraded[0] == degraded.NOT_AS_QUOTED
        plain = notes.search("who keeps the key spare for Mina", **options)
        assert refs(quoted) == refs(plain)
        assert quoted.opened >= plain.opened

    def test_a_question_that_quotes_what_is_there_finds_that_alone(
        self, notes: MemoryStore
    ) -> None:
        found = notes.search('where does Mina keep the "spare key"')
        assert refs(found) == ["1"]
        assert degraded.NOT_AS_QUOTED not in found.degraded
        high = notes.search('where does Mina keep the "spare key"', min_score=0.999)
        assert refs(high) == []

    def test_a_phrase_and_one_word_are_conditions(self, notes: MemoryStore) -> None:
        assert refs(notes.search('Mina "key spare"')) == []

    def test_quotes_in_a_long_text_are_no_conditions(self, notes: MemoryStore) -> None:
        text = "The landlord wrote that he wants the deposit back by May, and that the report "
        text += 'of "our surveyor", a man from the town, says nothing about it at all'
        found = notes.search(text)
        assert {"3", "5"} <= set(refs(found))
        assert found.degraded[0] == degraded.QUOTES_OF_A_TEXT

    def test_sealed_search_matches_phrases_by_stems_and_says_so(self, notes: MemoryStore) -> None:
        response = notes.search('"spare key"', sealed=True)
        assert sorted(refs(response)) == ["1", "2"]
        assert any("spelling" in line for line in response.degraded)

    def test_a_minus_takes_out_every_form_of_a_word(self, notes: MemoryStore) -> None:
        assert refs(notes.search("spare -March", mode="keyword")) == ["1"]
        assert refs(notes.search('spare -"spare keys"', mode="keyword")) == []
        assert "2" not in refs(notes.search("spare -march", limit=32))

    def test_a_condition_holds_before_the_cap(self, make_store: Callable[..., MemoryStore]) -> None:
        store = make_store()
        drafts = [MemoryDraft(f"garden notes {n} on garden work", ref=str(n)) for n in range(150)]
        drafts.append(
            MemoryDraft("a long list of other things, then a garden gnome, " * 5, ref="x")
        )
        store.add_many(drafts)
        assert refs(store.search('garden "garden gnome"')) == ["x"]


class TestFilters:
    def test_prefixes_and_options_say_the_same(self, notes: MemoryStore) -> None:
        by_prefix = notes.search("key topic:house", limit=32)
        by_option = notes.search("key", topic=("house",), limit=32)
        assert refs(by_prefix) == refs(by_option)
        assert {row.topics for row in by_prefix.rows} == {("house",)}

    @pytest.mark.parametrize("day", ["2024-05-01", "1 May 2024", "Wed, May 1, 2024"])
    def test_dates_bound_what_is_found(self, notes: MemoryStore, day: str) -> None:
        notes.add("lease of the ferry", ref="noon", created="2024-05-01T12:00")
        words = "key lease sourdough boiler automobile"
        response = notes.search(words, since="2024-03-01", until=day, limit=32)
        assert sorted(refs(response)) == ["2", "3", "4", "noon"]

    def test_done_is_a_status(self, notes: MemoryStore) -> None:
        done = notes.add("return the spare key", type="task")
        notes.done(done.id)
        assert done.id in [row.id for row in notes.search("spare key").rows]
        open_ = notes.search("spare key", status="open", limit=32)
        assert done.id not in [row.id for row in open_.rows]
        assert [row.id for row in notes.search("spare key", status="done").rows] == [done.id]

    def test_filters_alone_list_the_newest_first(self, notes: MemoryStore) -> None:
        assert refs(notes.search("topic:house", limit=3)) == ["11", "9", "7"]

    def test_every_page_of_a_list_says_how_many_the_filters_let_through(
        self, notes: MemoryStore
    ) -> None:
        page = notes.search("topic:house", limit=4)
        rest = notes.search("topic:house", limit=4, continue_=page.next)
        assert [len(one.rows) for one in (page, rest)] == [4, 2]
        assert [one.totals["matched"] for one in (page, rest)] == [6, 6]

    def test_filters_alone_give_no_score_and_no_doubt(self, notes: MemoryStore) -> None:
        for listed in (notes.search("topic:house"), notes.search(topic="house")):
            assert {(row.score, row.band) for row in listed.rows} == {(0.0, None)}
            assert (listed.certain, listed.far) == (None, frozenset())
            assert listed.how_many(listed.found) == f"{listed.found} results"

    def test_metadata_is_looked_at_in_what_was_opened(self, notes: MemoryStore) -> None:
        notes.add("spare wheel", ref="wheel", metadata={"shelf": 3})
        assert refs(notes.search("spare", meta=(("shelf", "3"),))) == ["wheel"]

    @pytest.mark.parametrize(
        ("option", "value"),
        [
            ("collection", ("nowhere",)),
            ("type", ("poem",)),
            ("topic", ("#",)),
            ("status", "maybe"),
            ("since", "soon"),
            ("until", "05/06/2024"),
        ],
    )
    def test_a_filter_that_makes_no_sense_is_named(
        self, notes: MemoryStore, option: str, value: object
    ) -> None:
        with pytest.raises(BadInputError) as refusal:
            notes.search("key", **{option: value})
        assert refusal.value.parameter == option

    def test_a_period_that_ends_before_it_begins_is_named(self, notes: MemoryStore) -> None:
        for ask in (
            lambda: notes.search("key", since="2024-05", until="2024-04"),
            lambda: notes.search("key since:2024-05 until:2024-04"),
            lambda: notes.list(since="2024-05", until="2024-04"),
        ):
            with pytest.raises(BadInputError, match="until: 2024-04 is before since, 2024-05"):
                ask()
        assert notes.search("key", since="2024-05", until="2024-05").found >= 0


class TestOpening:
    def test_without_a_reranker_only_the_returned_rows_are_opened(self, notes: MemoryStore) -> None:
        response = notes.search("the spare key", limit=3)
        assert (len(response.rows), response.opened, response.total) == (3, 3, 12)

    def test_sealed_search_opens_exactly_what_it_returns(
        self, notes: MemoryStore, reranker: str
    ) -> None:
        response = notes.search("the spare key", limit=4, sealed=True)
        assert (len(response.rows), response.opened) == (4, 4)
        assert all(row.rerank_score is None and row.score <= 0.70 for row in response.rows)

    def test_a_reranker_reads_the_pool_and_never_more(
        self, make_store: Callable[..., MemoryStore], reranker: str
    ) -> None:
        store = make_store()
        store.add_many(MemoryDraft(f"winter garden {n}", ref=str(n)) for n in range(300))
        opened: list[int] = []
        context = store.search_context()

        def counting(ordinals):  # type: ignore[no-untyped-def]
            opened.extend(ordinals)
            return context.open_memories(ordinals)

        watched = replace(context, open_memories=counting)
        response = pipeline.run(watched, SearchRequest("winter garden", recipe="gnosis"))
        assert response.opened == len(opened) == len(set(opened)) == 64
        deep = pipeline.run(watched, SearchRequest("winter garden", recipe="gnosis", deep=True))
        assert deep.opened == 256

    def test_ranking_for_evaluation_opens_nothing(self, notes: MemoryStore) -> None:
        def refuse(ordinals):  # type: ignore[no-untyped-def]
            raise AssertionError("opened")

        context = replace(notes.search_context(), open_memories=refuse)
        for mode in ("keyword", "vector", "hybrid"):
            ranked = pipeline.rank(context, SearchRequest("spare key", mode=mode), 100).results
            assert ranked
            assert [score for _, score in ranked] == sorted(
                (score for _, score in ranked), reverse=True
            )


class TestReranking:
    def test_scores_are_calibrated_and_banded(self, notes: MemoryStore, reranker: str) -> None:
        response = notes.search("spare key")
        best = response.rows[0]
        assert best.ref == "1"
        assert best.rerank_score is not None
        assert best.band == "excellent"
        assert response.counts == f"Reranked 12 of 12, returned {len(response.rows)}"
        assert response.opened == 12
        assert response.degraded == ()

    def test_what_does_not_fit_at_all_is_not_returned(
        self, notes: MemoryStore, reranker: str
    ) -> None:
        response = notes.search("zqzq jxjx")
        assert response.rows == ()
        assert response.counts == "Reranked 12 of 12, returned 0"

    def test_a_name_is_never_buried(self, notes: MemoryStore, reranker: str) -> None:
        words = "Harper unicorn zeppelin quagmire"
        harper = next(row for row in notes.search(words).rows if row.ref == "5")
        assert harper.score >= 0.30 / 4

    def test_an_uncalibrated_model_is_scaled_per_query(
        self, notes: MemoryStore, reranker: str, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        from tiny_reranker import build

        folder = tmp_path_factory.mktemp("models") / "home-made"
        build(folder)
        response = notes.search("spare key", reranker=str(folder))
        assert response.rows[0].rerank_score == 1.0
        assert {row.band for row in response.rows} == {None}

    def test_without_a_model_fusion_s_order_stands_and_it_is_said(self, notes: MemoryStore) -> None:
        response = notes.search("spare key")
        fused = [row.fusion_score or 0 for row in response.rows]
        assert fused == sorted(fused, reverse=True)
        assert [row.score for row in response.rows] == fused  # a probability as it is
        assert all(row.band is not None for row in response.rows)
        assert response.certain == sum(row.score >= 0.5 for row in response.rows)
        gnosis = notes.search("spare key", recipe="gnosis")
        assert gnosis.certain is None
        assert all(row.score <= 0.70 and row.band is None for row in gnosis.rows)
        (line,) = response.degraded
        assert "memory-store models get" in line

    def test_not_wanting_a_reranker_is_no_lack(self, notes: MemoryStore, reranker: str) -> None:
        response = notes.search("spare key", rerank=False)
        assert response.degraded == ()
        assert response.counts.startswith("Reranked 0 of 12")


class TestModels:
    def test_without_an_embedder_words_go_on(
        self, notes: MemoryStore, private_folders: object
    ) -> None:
        from memory_store.errors import ModelUnavailableError

        def absent(collection: str | None = None) -> Embedder:
            raise ModelUnavailableError("No model here.", "pip install a-model")

        context = replace(notes.search_context(), embedder=absent)
        response = pipeline.run(context, SearchRequest("spare key", rerank=False))
        assert sorted(refs(response)) == ["1", "2"]
        assert response.degraded == ("No model here. Try: pip install a-model",)
        with pytest.raises(ModelUnavailableError):
            pipeline.run(context, SearchRequest("spare key", mode="vector"))

    def test_memories_without_vectors_are_still_found_by_word(self, store: MemoryStore) -> None:
        store.add_many([MemoryDraft("the spare key")], embed=False)
        response = store.search("spare", rerank=False)
        assert len(response.rows) == 1
        assert any("memory-store reindex" in line for line in response.degraded)


class TestCopies:
    def test_equal_contents_are_returned_once(self, notes: MemoryStore) -> None:
        notes.add_many(MemoryDraft("a copied remark on barometers") for _ in range(40))
        response = notes.search("barometers", limit=32)
        assert [row.preview for row in response.rows].count("a copied remark on barometers") == 1

    def test_copies_do_not_push_others_out(self, make_store: Callable[..., MemoryStore]) -> None:
        store = make_store()
        store.add_many(MemoryDraft("winter garden winter garden") for _ in range(400))
        store.add_many(MemoryDraft(f"winter garden plan {n}", ref=str(n)) for n in range(20))
        for mode in ("keyword", "vector", "hybrid"):
            response = store.search("winter garden", mode=mode, limit=21)
            assert len(response.rows) == 21, mode


class TestTopics:
    def test_a_query_s_words_meet_topics_of_up_to_three_words(self, notes: MemoryStore) -> None:
        notes.add("nothing of the kind", topics=("point of sale",), ref="three")
        notes.add("nothing of this sort", topics=("sale",), ref="one")
        response = notes.search("point of sale", recipe="gnosis", limit=32)
        ranks = {row.ref: row.topic_rank for row in response.rows if row.topic_rank}
        assert ranks == {"three": 1, "one": 2}

    def test_topics_come_by_rarity_then_the_newest(self, notes: MemoryStore) -> None:
        notes.add("x", topics=("boat",), ref="rare")
        response = notes.search("house boat", recipe="gnosis", limit=32)
        ranks = {row.topic_rank: row.ref for row in response.rows if row.topic_rank}
        assert [ranks[place] for place in (1, 2, 3)] == ["rare", "11", "9"]


class TestLimits:
    @pytest.mark.parametrize(
        ("options", "parameter"),
        [
            ({"limit": 33}, "limit"),
            ({"limit": 0}, "limit"),
            ({"limit": 101, "deep": True}, "limit"),
            ({"limit": True}, "limit"),
            ({"min_score": 1.5}, "min_score"),
            ({"budget": 0}, "budget"),
            ({"budget_ms": -1}, "budget_ms"),
            ({"recipe": "google"}, "recipe"),
            ({"mode": "psychic"}, "mode"),
            ({"language": "python"}, "language"),
            ({"mode": "\ud800"}, "mode"),  # half a character
            ({"status": "\ud800"}, "status"),
            ({"limit": "\ud800"}, "limit"),
            ({"sealed": "\ud800"}, "sealed"),
            ({"continue_": "not a token"}, "continue"),
            ({"sealed": True, "meta": (("a", "b"),)}, "meta"),
            ({"sealed": True, "mode": "literal"}, "sealed"),
        ],
    )
    def test_what_cannot_be_is_refused_by_name(
        self, notes: MemoryStore, options: dict[str, object], parameter: str
    ) -> None:
        with pytest.raises(BadInputError) as refusal:
            notes.search("spare key", **options)
        assert refusal.value.parameter == parameter
        assert str(refusal.value).startswith(parameter)

    def test_deep_search_wants_two_keywords(self, notes: MemoryStore) -> None:
        for query in ("key", "the key", "key KEY"):
            with pytest.raises(BadInputError, match="2 keywords"):
                notes.search(query, deep=True)
        assert len(notes.search("spare key", deep=True, limit=100).rows) == 12

    def test_the_asker_s_own_floor_holds(self, notes: MemoryStore) -> None:
        rows = notes.search("spare key", limit=32).rows
        least = rows[2].score
        kept = notes.search("spare key", limit=32, min_score=least).rows
        assert len(kept) < len(rows)
        assert min(row.score for row in kept) >= least - 1e-6


def test_a_topic_counts_by_how_much_of_the_query_it_is(notes: MemoryStore):
    """A tag that is the whole query says more than one that is a word of four."""

    def topic_strength(query: str) -> float:
        report = next(r for r in notes.search(query, explain=True).explain if r.stage == "adjust")
        parts = [part for one in report.details["results"] for part in one["contributions"]]
        return max(part["strength"] for part in parts if part["leg"] == "topic")

    assert topic_strength("house") == 1.0
    assert topic_strength("house boiler filter winter") == 0.25


def test_the_address_of_a_link_is_text_like_any_other(store: MemoryStore) -> None:
    link = "Paid the plumber, see [the bill](https://example.org/invoices?year=2024)"
    store.add(link)
    store.add("Nobody answers at the door")
    for query in ("invoices", "2024", '"example org"'):
        assert [row.preview for row in store.search(query, mode="keyword").rows] == [link], query


@pytest.mark.parametrize("question", ["forty coins of the lighthouse keeper", "lighthouse keeper"])
def test_a_preview_is_where_most_of_the_question_stands(store: MemoryStore, question: str) -> None:
    nearest_in_meaning = "Lighthouse, " * 400
    filler = " ".join(f"w{n}ord" for n in range(400))
    store.add(f"{nearest_in_meaning}\n\n{filler}\n\nThe keeper of the lighthouse has forty coins.")
    (row,) = store.search(question).rows
    assert "forty coins" in row.preview
    (row,) = store.search("lighthouse").rows
    assert row.preview.startswith("Lighthouse")


def test_a_preview_ends_after_a_sentence_or_an_item_not_with_a_number_or_a_heading(
    store: MemoryStore,
) -> None:
    begins = f"Ask the harbour master first. {'He keeps the books ' * 10}."
    rest = "the rest of what is due at the end of it all " * 5
    for shown, left in (("", "\n\n## Now pay\n\n"), ("\n1. Pay", "\n2. "), ("\n- Pay", "\n- ")):
        added = store.add(f"{begins}{shown}{left}{rest}")
        (row,) = store.search("harbour master", mode="keyword").rows
        assert row.preview == f"{begins}{shown}"
        store.delete(added.id, now=True)


def test_a_preview_of_a_table_begins_with_a_row(store: MemoryStore) -> None:
    rows = [f"| sign{number:02} | {'what it stands for ' * 2}|" for number in range(30)]
    rows[20] = "| sign20 | a lighthouse that no longer shines, beside the harbour |"
    store.add("Signs\n\n| Sign | Meaning |\n| --- | --- |\n" + "\n".join(rows))
    (row,) = store.search("lighthouse", mode="keyword").rows
    assert row.preview.startswith("| sign")
    assert "lighthouse" in row.preview


def test_a_preview_of_mail_begins_with_the_message_or_where_its_head_answers(
    store: MemoryStore,
) -> None:
    head = "From: Mina <mina@example.org>\nTo: me@example.org\nDate: Mon, 3 Mar 2025 09:12:00\n\n"
    store.add(f"{head}The trailer needs tyres. {'It is old and heavy. ' * 20}", type="message")
    (row,) = store.search("trailer tyres", mode="keyword").rows
    assert row.preview.startswith("The trailer needs tyres.")
    assert row.passages[0].place == "from Mina"
    (row,) = store.search("mina", mode="keyword").rows
    assert "Mina" in row.preview
    short = store.add(f"{head.replace('Mina <', '<')}The bill is paid.", type="message")
    (row,) = store.search("bill", mode="keyword").rows
    assert (row.preview, row.passages[0].place) == (short.text, "from mina@example.org")
    assert [after_heading(short.text, "", marks) for marks in ((), [(6, 9)])] == [
        short.text.index("The bill"),
        0,
    ]


@pytest.mark.parametrize(
    "first", ["# Spare key", "Spare key", "Spare key\n=========", "## Spare key ##"]
)
def test_a_first_line_that_repeats_the_title_is_passed_over(first: str) -> None:
    text = f"{first}\n\nHarper has it."
    assert text[after_heading(text, "Spare key") :] == "Harper has it."
    assert after_heading(text, "Spare") == 0


def test_words_that_stand_for_a_title_are_not_repeated_and_something_is_left() -> None:
    text = "Spare key\n\nHarper has it."
    assert text[after_heading(text, shown_title("", text)) :] == "Harper has it."
    assert after_heading("Spare key\n", "Spare key") == 0
