"""Every language that Snowball can stem finds an inflected word by its base form, in a vault."""

from __future__ import annotations

import Stemmer

from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore
from memory_store.text.language import STEMMED_LANGUAGES

FORMS = {  # language: base form, inflected form
    "ar": ("معلم", "معلمون"),
    "ca": ("gat", "gats"),
    "cs": ("kniha", "knihy"),
    "da": ("have", "haverne"),
    "de": ("Garten", "Gartens"),
    "el": ("κήπος", "κήπου"),
    "en": ("garden", "gardens"),
    "eo": ("floro", "florojn"),
    "es": ("flor", "flores"),
    "et": ("raamat", "raamatud"),
    "eu": ("mendi", "mendiak"),
    "fa": ("کتاب", "کتاب‌ها"),
    "fi": ("talo", "talossa"),
    "fr": ("cheval", "chevaux"),
    "ga": ("bád", "bhád"),
    "hi": ("किताब", "किताबें"),
    "hu": ("ház", "házak"),
    "hy": ("քաղաք", "քաղաքներ"),
    "id": ("buku", "bukunya"),
    "it": ("libro", "libri"),
    "lt": ("knyga", "knygos"),
    "ne": ("किताब", "किताबहरू"),
    "nl": ("tuin", "tuinen"),
    "no": ("hage", "hagene"),
    "pl": ("książka", "książki"),
    "pt": ("casa", "casas"),
    "ro": ("grădină", "grădini"),
    "ru": ("книга", "книги"),
    "sr": ("књига", "књиге"),
    "st": ("motho", "batho"),
    "sv": ("hund", "hundarna"),
    "ta": ("வீடு", "வீடுகள்"),
    "tr": ("ev", "evlerden"),
    "yi": ("קינד", "קינדער"),
}


def test_every_stemmer_there_is_serves_a_language_but_for_two_older_variants() -> None:
    assert set(Stemmer.algorithms()) - set(STEMMED_LANGUAGES.values()) == {"porter", "dutch_porter"}
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
