"""Which language a text is in, said only when it is clear; and that each one's stemmer works."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from own_process import python
from Stemmer import algorithms

from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore
from memory_store.text.language import (
    LANGUAGES,
    STEMMED_LANGUAGES,
    detect_language,
    plainly_another,
)

EXAMPLES = json.loads(Path(__file__).with_name("languages.json").read_text("utf-8"))
SENTENCES = {code: one["sentence"] for code, one in EXAMPLES.items()}
NEAR_OTHERS = {code: one["shared_words"] for code, one in EXAMPLES.items() if "shared_words" in one}
FORMS = {code: (one["base"], one["inflected"]) for code, one in EXAMPLES.items() if "base" in one}


def test_every_language_has_a_sentence() -> None:
    assert set(SENTENCES) == set(LANGUAGES)


def test_pointed_hebrew_is_no_yiddish() -> None:
    assert detect_language("בְּרֵאשִׁית בָּרָא אֱלֹהִים אֵת הַשָּׁמַיִם וְאֵת הָאָרֶץ") == "he"


@pytest.mark.parametrize("language", SENTENCES)
def test_a_sentence_is_enough(language: str) -> None:
    assert detect_language(SENTENCES[language], fallback="none") == language


@pytest.mark.parametrize(
    "text", ["", "Buy milk", "ok", "12:30 – 14:00", "🙂🙂", "pip install x", "\x00\n", "TODO"]
)
def test_too_little_text_is_left_to_the_fallback(text: str) -> None:
    assert detect_language(text) == "en"
    assert detect_language(text, fallback="de") == "de"


@pytest.mark.parametrize(
    ("text", "language"),
    [("猫", "zh"), ("ねこ", "ja"), ("고양이", "ko"), ("γάτα", "el"), ("แมว", "th"), ("кот", "ru")],
)
def test_a_script_can_be_enough(text: str, language: str) -> None:
    assert detect_language(text) == language


def test_candidates_limit_the_answer() -> None:
    assert detect_language(SENTENCES["nl"], ["de", "en"], fallback="en") in ("de", "en")
    assert detect_language(SENTENCES["ja"], ["de", "en"], fallback="de") == "de"
    assert detect_language("東京", ["ja", "en"]) == "ja"
    assert detect_language("Gartenarbeit", ["de"]) == "de"
    assert detect_language("Gartenarbeit", [], fallback="fr") == "fr"


def test_code_links_and_addresses_do_not_count() -> None:
    code = "import the_module_for_this_and_that\n" * 40
    note = f"```python\n{code}```\n{SENTENCES['de']}"
    assert detect_language(note) == "de"
    assert detect_language(f"https://example.com/{'the-and-of-' * 20} {SENTENCES['fr']}") == "fr"


def test_known_languages_and_many_function_words_need_no_model() -> None:
    notes = [
        "Yesterday we watered all of the garden and then had coffee together before it rained.",
        "Gestern haben wir den Garten gegossen und dann mit ihr Kaffee getrunken, bevor es kam.",
    ]
    program = (
        "import sys; from memory_store.text.language import plainly_another, detect_language as d;"
        "print(d('Wie funktioniert die Verschlüsselung?', ['en', 'de']),"
        " d('how does the encryption work', ['en', 'de']),"
        f" *[d(note, fallback='none') for note in {notes!r}], 'py3langid' in sys.modules)"
    )
    run = python("-c", program, check=True)
    assert run.stdout.split() == ["de", "en", "en", "de", "False"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("¿Qué normandos ayudaron a los bizantinos en la batalla?", "es"),
        ("Wer hat den Schlüssel für das Haus?", "de"),
        ("Which of the keys is for the house", None),
        ("was it to die for in the end", None),  # words that German has, too
        ("La La Land", None),
        ("spare key", None),
    ],
)
def test_a_question_is_of_another_language_only_where_its_function_words_are(
    text: str, told: str | None
) -> None:
    assert plainly_another(text, "en") == told


@pytest.mark.parametrize("language", NEAR_OTHERS)
def test_words_that_neighbours_share_do_not_decide(language: str) -> None:
    assert detect_language(NEAR_OTHERS[language], fallback="none") == language


def test_a_note_in_one_language_that_quotes_another_is_its_own() -> None:
    quoted = "He wrote to me that it was all the same to him, and that we should go on as before."
    note = f"{SENTENCES['ja'] * 6} „{quoted}“"
    assert detect_language(note, fallback="none") == "ja"


def test_threads_may_ask_at_once() -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(detect_language, list(SENTENCES.values()) * 3))
    assert found == [detect_language(text) for text in SENTENCES.values()] * 3


@given(st.text(), st.lists(st.sampled_from(LANGUAGES), max_size=4))
def test_any_text_gets_a_candidate_or_the_fallback(text: str, candidates: list[str]) -> None:
    assert detect_language(text, candidates, fallback="??") in {*candidates, "??"}


def test_every_stemmer_there_is_serves_a_language_but_for_two_older_variants() -> None:
    assert set(algorithms()) - set(STEMMED_LANGUAGES.values()) == {"porter", "dutch_porter"}
    assert FORMS.keys() == STEMMED_LANGUAGES.keys()


def test_a_base_form_finds_an_inflected_one_in_every_language(store: MemoryStore) -> None:
    for language in FORMS:
        store.collections.create(language, analyser=language)
    store.add_many(
        (MemoryDraft(inflected, collection=code) for code, (_, inflected) in FORMS.items()),
        embed=False,
    )
    found = {
        code: [row.preview for row in store.search(base, mode="keyword", collection=code).rows]
        for code, (base, _) in FORMS.items()
    }
    assert found == {code: [inflected] for code, (_, inflected) in FORMS.items()}
