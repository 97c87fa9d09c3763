"""What is in quotes is found as it is spelled, in every script, and nothing else is."""

from __future__ import annotations

import pytest

from memory_store.store import MemoryStore


@pytest.mark.parametrize(
    ("quoted", "holds_it", "is_another"),
    [
        ("किताब", "मेरी किताब मेज पर है और यह बहुत अच्छी है", "मेरी किताबें मेज पर हैं और यह बहुत अच्छी हैं"),
        ("किताबें", "मेरी किताबें मेज पर हैं और यह बहुत अच्छी हैं", "मेरी किताब मेज पर है और यह बहुत अच्छी है"),
        (
            "straße",
            "DIE STRASSE ZUM BAHNHOF IST GESPERRT",
            "Alle Straßen zum Bahnhof sind gesperrt",
        ),
        ("서울", "저는 서울에 살아요", "저는 부산에 살아요"),
        ("file", "The \ufb01le of the tenants", "The files of the tenants"),
        ("coastline", "A walk along the coast\u00adline", "Two coastlines"),
        ("user id", "Set user_id in the settings", "The id of a user"),
        ("rock 'n' roll", "Rock n roll in the harbour", "Rock and roll in the harbour"),
    ],
)
def test_a_phrase_is_found_as_it_is_spelled(
    store: MemoryStore, quoted: str, holds_it: str, is_another: str
) -> None:
    store.add(holds_it, ref="holds it")
    store.add(is_another, ref="another")
    assert [row.ref for row in store.search(f'"{quoted}"').rows] == ["holds it"]
    (found,) = store.exists(quoted, exact=True)
    assert found.exists


@pytest.mark.parametrize(
    ("word", "text"), [("京", "我昨天在北京买了一本书"), ("spare key", "The spare-key box")]
)
def test_what_a_phrase_finds_exists_exactly(store: MemoryStore, word: str, text: str) -> None:
    store.add(text)
    assert store.search(f'"{word}"').rows
    assert store.exists(word, exact=True)[0].exists
