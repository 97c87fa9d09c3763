"""A query word that nothing holds is corrected by what the searched memories spell, and said so."""

from __future__ import annotations

import pytest

from memory_store import access
from memory_store.records import MemoryDraft, SearchResponse, read_request
from memory_store.scopes import NOTHING, Scope
from memory_store.store import MemoryStore

NOTES = (
    MemoryDraft("The accommodation by the weir has a boiler.", title="Cottage"),
    MemoryDraft("The boiler was serviced, and the boilers of the neighbours."),
    MemoryDraft("Die Größe der Dachkammer und ihre Schlüssel."),
    MemoryDraft("def reconcile_ledger(rows):\n    return sorted(rows)\n", type="code"),
    MemoryDraft("The broiler is for chicken.", collection="kitchen"),
)


@pytest.fixture(scope="module")
def filled(module_store: MemoryStore) -> MemoryStore:
    """A vault of a few notes and a function, with a collection of its own beside them."""
    module_store.add_many(NOTES)
    return module_store


def searched(store: MemoryStore, query: str, **options: object) -> SearchResponse:
    return store.search(query, **{"mode": "keyword", **options})


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("wier", "weir"),  # two letters exchanged
        ("boler", "boiler"),  # one left out; the word of most memories wins
        ("acomodation", "accommodation"),  # two left out of a long word
        ("schlüsel", "schlüssel"),
        ("Größse", "grösse"),  # ß is ss in a lexicon
        ("reconcyle", "reconcile"),  # a part of a name
        ("cottges", "cottages"),  # another form of it is held
    ],
)
def test_a_slip_finds_what_was_meant_and_the_answer_says_so(
    filled: MemoryStore, typed: str, meant: str
) -> None:
    found = searched(filled, typed)
    assert found.also_searched == {typed: meant}
    assert found.rows
    assert found.rows[0].passages
    assert found.remarks()[0] == f"also searched: {meant} (nothing holds {typed})"
    assert found.as_dict()["also_searched"] == {typed: meant}


def test_a_word_typed_without_its_accents_finds_it_whatever_its_stem(store: MemoryStore) -> None:
    french = store.add("La crème brûlée est déjà prête pour le dîner de ce soir.").id
    german = store.add("Wir trafen uns im Café am Markt und gingen dann nach Hause.").id
    for typed, meant, found in (
        ("cafe", "café", german),  # also a word of a dictionary
        ("deja", "déjà", french),
        ("brulee", "brûlée", french),  # two accents in a short word
    ):
        answer = searched(store, typed)
        assert ([row.id for row in answer.rows], answer.also_searched) == ([found], {typed: meant})


@pytest.mark.parametrize(
    "word", ["broiled", "grandfather", "serviced", "cotton", "Grüße", "BOILr", "wEIr", "wexr"]
)
def test_a_word_that_no_note_has_is_no_slip(filled: MemoryStore, word: str) -> None:
    assert searched(filled, f"{word} {word}").also_searched == {}


@pytest.mark.parametrize(
    "query",
    ["weir", "boilers", '"wier"', "-wier boiler", "xyzzyqw", "wer", "wier2", "/wier/", "type:fact"],
)
def test_nothing_else_is_corrected(filled: MemoryStore, query: str) -> None:
    """What is held, quoted, excluded, unlike every word, short, a number, a pattern, a filter."""
    assert searched(filled, query, mode="auto").also_searched == {}


def test_only_the_slip_of_several_words_is_corrected(filled: MemoryStore) -> None:
    found = filled.search("boiler by the wier")
    assert found.also_searched == {"wier": "weir"}
    assert found.rows[0].title == "Cottage"
    assert found.nearest is None


def test_a_question_in_a_language_of_no_note_finds_by_its_relatives(filled: MemoryStore) -> None:
    """Of a Spanish question, ``de`` and ``la`` are neither looked up nor taken for slips."""
    found = searched(filled, "¿Para qué es el broilero de la cocina?")
    assert found.also_searched == {"broilero": "broiler"}
    assert [row.collection for row in found.rows] == ["kitchen"]


@pytest.mark.parametrize(
    ("typed", "instead"),
    [
        ("ledgerboiler", "ledger boiler"),  # the blank was left out
        ("thecottage", None),  # a function word is no part
        ("Kammerschlüssel", "kammer schlüssel"),
        ("Kammernschlüssel", "kammer schlüssel"),  # with a letter that links them
        ("Dach", "dachkammer"),  # a part of a held word, whose other part is held, too
        ("Schloss", None),
    ],
)
def test_a_word_of_two_finds_both_and_a_part_finds_the_compound(
    filled: MemoryStore, typed: str, instead: str | None
) -> None:
    made = filled.add("Die Kammer unter dem Dachboden ist dunkel.", collection="kitchen")
    found = searched(filled, typed)
    assert found.also_searched == ({typed: instead} if instead else {})
    assert bool(found.rows) == bool(instead)
    filled.delete(made.id)


def test_meaning_reads_what_was_meant_and_a_compound_as_it_is(filled: MemoryStore) -> None:
    def nearness(query: str) -> list[float | None]:
        found = filled.search(query, mode="hybrid", limit=3)
        return [row.vector_score for row in found.rows]

    assert nearness("the accomodation, please") == nearness("the accommodation, please")
    assert nearness("ledgerboiler") == nearness("ledger boiler")
    filled.add("Die Kammer unter dem Dach ist dunkel.", collection="kitchen")
    assert nearness("Kammerschlüssel") != nearness("Kammer Schlüssel")


def test_meaning_reads_a_word_of_a_language_of_no_note_as_it_is(filled: MemoryStore) -> None:
    def nearness(word: str) -> list[float | None]:
        found = filled.search(f"¿Para qué es el {word} de la cocina?", limit=3)
        return [row.vector_score for row in found.rows]

    assert nearness("broilero") != nearness("broiler")


def test_words_come_from_the_collections_that_are_searched(filled: MemoryStore) -> None:
    assert searched(filled, "broler", collection="kitchen").also_searched == {"broler": "broiler"}
    assert searched(filled, "boler", collection="kitchen").also_searched == {}
    assert searched(filled, "boiler", collection="kitchen").also_searched == {}  # a word


def test_a_member_is_corrected_by_words_of_their_collections_alone(filled: MemoryStore) -> None:
    ids = {name: one for one, name in filled.collections.names().items()}
    kitchen = Scope.of([ids["kitchen"]])
    member = filled.limited_to(kitchen)
    assert searched(member, "wier").also_searched == {}
    assert searched(member, "broler").also_searched == {"broler": "broiler"}
    searching = filled.limited_to(kitchen, readable=NOTHING)
    for word in ("broler", "broilerchicken"):
        assert searched(member, word).also_searched
        assert searched(searching, word).also_searched == {}


def test_who_may_only_search_gets_neither_the_word_nor_what_it_finds(filled: MemoryStore) -> None:
    grants = access.Grants(search=Scope(None), decrypt=NOTHING)
    found = access.search(filled, grants, read_request({"q": "wier", "mode": "keyword"}))
    assert found.also_searched == {}
    assert found.rows == ()
    assert access.search(filled, grants, read_request({"q": "weir", "mode": "keyword"})).rows


def test_a_word_is_no_suggestion_once_its_memory_is_deleted_or_edited(
    filled: MemoryStore,
) -> None:
    made = filled.add("A zeppelin over the lake.")
    assert searched(filled, "zepelin").also_searched == {"zepelin": "zeppelin"}
    filled.edit(made.id, text="A balloon over the lake.")
    assert searched(filled, "zepelin").also_searched == {}
    assert searched(filled, "baloon").also_searched == {"baloon": "balloon"}
    filled.delete(made.id)
    assert searched(filled, "baloon").also_searched == {}
