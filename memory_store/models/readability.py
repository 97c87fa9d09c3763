"""Readability: how well an embedding model reads a language, from 0 (not at all) to 1.

A model cuts what it was never taught to read into single letters, or calls it unknown; its vectors
then say little, and search should go by words. Of MiniLM's tokens of Chinese, Arabic, Hindi and
Russian .95-.99 are such, of English and German next to none.

A collection holds sealed text, so its languages (found when each memory was imported) are looked
at, each by a few common words of it. A query is looked at itself.

Boundary: reads the caller's query and fixed words; opens nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memory_store.models.embedder import Embedder
    from memory_store.models.reranker import Reranker

READ = 0.30  # share of tokens that are single letters or unknown: below, the text is read
UNREAD = 0.70  # from here on it is not
SEEN = 2_000  # characters of a text that are looked at

COMMON_WORDS: Mapping[str, str] = {
    "am": "ሰው ቤት ውሃ ቀን ልጅ ከተማ መንገድ መጽሐፍ ትምህርት",
    "ar": "هذا البيت الكبير على النهر في المدينة كان الناس يكتبون الكتاب كل يوم مع بعضهم",
    "bn": "এই বাড়িটা নদীর পাশে আছে এবং মানুষ প্রতিদিন বই পড়ে",
    "el": "το σπίτι είναι κοντά στο ποτάμι και οι άνθρωποι διαβάζουν κάθε μέρα ένα βιβλίο",
    "fa": "این خانه کنار رودخانه است و مردم هر روز کتاب می‌خوانند",
    "he": "הבית הזה עומד ליד הנהר והאנשים קוראים ספר כל יום",
    "hi": "यह घर नदी के पास है और लोग हर दिन किताब पढ़ते हैं",
    "hy": "տունը գետի մոտ է և մարդիկ ամեն օր գիրք են կարդում",
    "ja": "この家は川のそばにあり、人々は毎日本を読んでいる",
    "ka": "სახლი მდინარესთან დგას და ხალხი ყოველდღე წიგნს კითხულობს",
    "ko": "이 집은 강 옆에 있고 사람들은 매일 책을 읽는다",
    "ru": "этот дом стоит у реки и люди каждый день читают там книгу о городе",
    "ta": "இந்த வீடு ஆற்றின் அருகில் உள்ளது மக்கள் தினமும் புத்தகம் படிக்கிறார்கள்",
    "th": "บ้านหลังนี้อยู่ใกล้แม่น้ำและผู้คนอ่านหนังสือทุกวัน",
    "ur": "یہ گھر دریا کے پاس ہے اور لوگ ہر روز کتاب پڑھتے ہیں",
    "yi": "דאָס הויז שטייט בײַ דעם טײַך און מענטשן לייענען יעדן טאָג אַ בוך",
    "zh": "这座房子在河边，人们每天都在那里读书，孩子们去学校学习",
}
"""Common words of languages that are not written in Latin letters, which every model cuts into more
than single letters. One stands for all that share its letters (:data:`LIKE`)."""
LIKE = {"be": "ru", "bg": "ru", "kk": "ru", "mk": "ru", "mn": "ru", "sr": "ru", "uk": "ru"} | {
    "mr": "hi",
    "ne": "hi",
    "ps": "fa",
}


NAMES: Mapping[str, str] = {
    "am": "Amharic",
    "ar": "Arabic",
    "be": "Belarusian",
    "bg": "Bulgarian",
    "bn": "Bengali",
    "el": "Greek",
    "fa": "Persian",
    "he": "Hebrew",
    "hi": "Hindi",
    "hy": "Armenian",
    "ja": "Japanese",
    "ka": "Georgian",
    "kk": "Kazakh",
    "ko": "Korean",
    "mk": "Macedonian",
    "mn": "Mongolian",
    "mr": "Marathi",
    "ne": "Nepali",
    "ps": "Pashto",
    "ru": "Russian",
    "sr": "Serbian",
    "ta": "Tamil",
    "th": "Thai",
    "uk": "Ukrainian",
    "ur": "Urdu",
    "yi": "Yiddish",
    "zh": "Chinese",
}
FIRST_GREEK = "\u0370"  # the letters before it are Latin
WORTH_SAYING = 0.1  # share of a collection's memories in a language


def readability(embedder: Embedder | Reranker, text: str) -> float:
    """How well a model reads ``text`` (0-1). What has no tokens is read."""
    unread = unread_share(embedder, text)
    return min(1.0, max(0.0, (UNREAD - unread) / (UNREAD - READ)))


def is_read(embedder: Embedder | Reranker, query: str) -> bool:
    """Whether a model reads a query; of Latin letters alone it may be noise, which is read."""
    return all(one < FIRST_GREEK or not one.isalpha() for one in query) or (
        readability(embedder, query) >= 0.5
    )


def unread_share(embedder: Embedder | Reranker, text: str) -> float:
    """The share (0-1) of the model's tokens that are single letters or unknown to it."""
    counted = getattr(embedder, "unread_tokens", None)
    if counted is None:  # a model that does not show its tokens
        return 0.0
    unread, tokens = counted(text[:SEEN])
    return unread / tokens if tokens else 0.0


def knows(embedder: Embedder, word: str) -> bool:
    """Whether ``embedder`` knows a word. A model that does not show its tokens may."""
    known = getattr(embedder, "knows", None)
    return known is None or known(word)


def readability_of(embedder: Embedder, language: str) -> float:
    """How well ``embedder`` reads a language (ISO 639-1), by its common words."""
    known: dict[str, float] = _known.setdefault(embedder.fingerprint, {})
    if language not in known:
        words = COMMON_WORDS.get(LIKE.get(language, language), "")
        known[language] = readability(embedder, words) if words else 1.0
    return known[language]


def readability_in(embedder: Embedder, languages: Mapping[str, int]) -> float:
    """How well ``embedder`` reads memories in some ``languages`` (language → how many of them)."""
    total = sum(languages.values())
    if not total:
        return 1.0
    return sum(readability_of(embedder, one) * n for one, n in languages.items()) / total


def unread_languages(embedder: Embedder, languages: Mapping[str, int]) -> tuple[str, ...]:
    """The English names of ``languages`` that ``embedder`` does not read, most frequent first.

    ``languages`` says how many memories are in each; of those that few are in nothing is said.
    """
    least = WORTH_SAYING * sum(languages.values())
    return tuple(
        NAMES.get(one, one)
        for one, count in sorted(languages.items(), key=lambda item: -item[1])
        if count >= least and not reads(embedder, one)
    )


def reads(embedder: Embedder, language: str) -> bool:
    """Whether ``embedder`` reads a language at all: its letters, if not its words."""
    return readability_of(embedder, language) >= 0.5


def is_foreign(model: str, language: str) -> bool:
    """Whether a model was made, by its name, for others than a language in letters of its own."""
    from memory_store.models.embedder import languages_by_name

    made_for = languages_by_name(model)
    lettered = language in COMMON_WORDS or language in LIKE
    return lettered and bool(made_for) and language not in made_for


def unsuited_languages(embedder: Embedder, languages: Mapping[str, int]) -> tuple[str, ...]:
    """Those of ``languages`` (ISO 639-1) that ``embedder`` does not read, or reads by its letters
    alone, for it was made for others; most frequent first."""
    from memory_store.models.embedder import languages_of

    made_for, least = languages_of(embedder), WORTH_SAYING * sum(languages.values())
    return tuple(
        one
        for one, count in sorted(languages.items(), key=lambda item: -item[1])
        if count >= least and ((made_for and one not in made_for) or not reads(embedder, one))
    )


_known: dict[str, dict[str, float]] = {}
