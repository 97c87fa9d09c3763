"""How well a model reads a language, by its own tokens."""

import pytest

from memory_store.models.embedder import load_embedder
from memory_store.models.readability import knows, readability, readability_in, readability_of


@pytest.mark.parametrize("language", ["en", "de", "es", "pl", "vi"])
def test_the_usual_model_reads_latin_letters(embedder, language):
    assert readability_of(embedder, language) == 1.0


def test_what_a_tokenizer_cuts_into_single_letters_is_not_read():
    class Spelling:
        fingerprint = "spelling"

        def unread_tokens(self, text):
            return len(text), len(text)

    assert readability(Spelling(), "привет") == 0.0
    assert readability_in(Spelling(), {"ru": 1, "en": 3}) == 0.75


def test_a_model_that_shows_no_tokens_is_taken_to_read_everything():
    class Silent:
        fingerprint = "silent"

    assert readability(Silent(), "привет") == 1.0
    assert readability_in(Silent(), {}) == 1.0


@pytest.mark.parametrize(("unread", "expected"), [(30, 1.0), (50, 0.5), (70, 0.0), (90, 0.0)])
def test_readability_falls_from_30_to_70_percent(unread, expected):
    class Model:
        fingerprint = "model"

        def unread_tokens(self, _text):
            return unread, 100

    assert readability(Model(), "text") == pytest.approx(expected)


def test_minilm_reads_german_and_no_chinese(minilm):
    model = load_embedder(str(minilm["int8"]))
    assert readability(model, "Wie viele Punkte gab die Verteidigung ab?") == 1.0
    assert readability(model, "黑豹队的防守丢了多少分？") == 0.0
    assert readability_of(model, "ru") == readability_of(model, "ar") == 0.0
    assert readability(model, "B. F. Skinner") == 1.0


@pytest.mark.parametrize("noise", ["prluzgdtx", "vwlpxlvfd bmdzp", "SLT-4471-KX"])
def test_of_words_in_crumbs_vectors_say_nothing(minilm, noise):
    assert readability(load_embedder(str(minilm["int8"])), noise) == 0.0


@pytest.mark.parametrize("word", ["boiler", "thunderstorm", "lighthouse"])
def test_minilm_knows_a_word_of_english(minilm, word):
    assert load_embedder(str(minilm["int8"])).knows(word)


@pytest.mark.parametrize("word", ["rurapeki", "dizotica", "Schornsteinfeger"])
def test_minilm_does_not_know_a_word_that_it_reads_in_short_pieces(minilm, word):
    assert not load_embedder(str(minilm["int8"])).knows(word)


def test_a_model_that_shows_no_tokens_may_know_any_word():
    assert knows(object(), "rurapeki")
