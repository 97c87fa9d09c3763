"""Which language a text is in, said only when it is clear.

Boundary: reads plain text, keeps none of it. The model is a file of `py3langid`;
nothing is fetched.

The decision goes from cheap to dear: too little text, a script that only one candidate uses,
function words (many of them, unless the caller named the candidates), then naive Bayes over byte
n-grams. So a query against a vault of known languages costs microseconds, not the 0.5 s of loading
the model, and most notes of an import a tenth of what the model takes.

Measured on 5,855 German (XQuAD) and English texts (SciFact, Cranfield, LoCoMo): none was put in a
wrong language. Left to the fallback: 2.5 % of German questions, 6 % of claims, 11 % of titles,
1 % of chat turns, no paragraph. Many function words decide 82 % of them, paragraphs nearly all,
and never said what the model does not (3 words would, four times).
"""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Collection, Sequence
from functools import cache
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec import Struct

from memory_store.errors import StorageError


class _Language(Struct):
    """What ``languages.json`` says of a language: its Snowball algorithm, its function words, and
    its name where the algorithm does not say it."""

    stemmer: str | None = None
    name: str | None = None
    stop_words: list[str] = []


_LANGUAGES = msgspec.json.decode(
    Path(__file__).with_name("languages.json").read_bytes(), type=dict[str, _Language]
)

STEMMED_LANGUAGES = {code: one.stemmer for code, one in _LANGUAGES.items() if one.stemmer}
"""ISO 639-1 code → Snowball algorithm: every one that PyStemmer has, but for two variants.

``porter`` and ``dutch_porter`` are the older stemmers of languages that have a better one, and are
left out on purpose.
English is Porter 2 (``english``), not ``porter``. Measured, BM25 k1 1.2, b .75, nDCG@10:
SciFact .688 and .688, Cranfield .362 and .361.
"""

UNSTEMMED_LANGUAGES = tuple(code for code, one in _LANGUAGES.items() if not one.stemmer)
"""Languages that are recognised but have no stemmer: their words are only folded."""

LANGUAGE_NAMES = {
    code: one.name or (one.stemmer or code).capitalize() for code, one in _LANGUAGES.items()
}
"""What a language is called in English."""

LANGUAGES = tuple(_LANGUAGES)
"""Every language :func:`detect_language` may answer with by itself."""

STOP_WORDS = {
    code: " ".join(one.stop_words).split() for code, one in _LANGUAGES.items() if one.stop_words
}
"""Function words by language: the words a query may lose without losing its meaning.

The lists are our own and short on purpose: only closed classes (articles, pronouns, prepositions,
conjunctions, auxiliaries, question words), written as they are spelled, accents included. The
packaged collections were looked at and left: `stopwordsiso` 0.7 and `stop-words` 2025.11 list
1,300 English words, "computer", "system" and "problem" among them. Documents keep every word, so a
list can change without a new index.

Measured, plain BM25, nDCG@10 with no list, ours, the larger of theirs: SciFact .689, .688, .691;
Cranfield .357, .362, .359; XQuAD-de .938, .941, .942. Shorter lists: docs/trust/quality.md.
"""

CONFIDENT = 0.70  # share of the probability among the candidates
NEGLIGIBLE = 1e-9  # a probability that decides nothing
SHORTEST = 12  # letters: below, the model guesses ("Buy milk" → Malagasy)
SAMPLE = 2_000  # characters the model reads, 0.2 ms; more changes no answer
LEAST_VOTES = 2  # function words that decide without the model …
VOTE_RATIO = 2  # … when the next language has at most half as many
MANY_VOTES = 6  # as many decide among all languages
PLAINLY_TOLD = frozenset({"de", "en", "es", "fr", "it"})
"""What many function words may decide: every language near enough to share them has a list too."""

# Each script, its letters, and the candidates that write in it.
_SCRIPTS = {
    "kana": ("\u3041-\u30ff", ("ja",)),
    "hangul": ("\uac00-\ud7a3\u1100-\u11ff", ("ko",)),
    "han": ("\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff", ("zh", "ja")),
    "thai": ("\u0e01-\u0e4e", ("th",)),
    "greek": ("\u0370-\u03ff\u1f00-\u1fff", ("el",)),
    "hebrew": ("\u05d0-\u05ea", ("he", "yi")),
    "armenian": ("\u0531-\u0587", ("hy",)),
    "georgian": ("\u10a0-\u10ff", ("ka",)),
    "tamil": ("\u0b80-\u0bff", ("ta",)),
    "bengali": ("\u0980-\u09ff", ("bn",)),
    "devanagari": ("\u0900-\u097f", ("hi", "ne")),
    "arabic": ("\u0621-\u06d3", ("ar", "fa", "ur")),
    "cyrillic": ("\u0400-\u04ff", ("ru", "uk", "be", "bg", "mk", "sr")),
}
_NOT_PROSE = re.compile(
    r"^(```|~~~).*?(?:^\1|\Z)|`[^`\n]*`|\b\w+://\S+|(?<![\w.+-])[\w.+-]+@[\w.-]+", re.M | re.S
)
_MARKS = ("`", "~~~", "://", "@")  # one of them is in all that is no prose
_LETTERS = re.compile(r"[^\W\d_]+")
_NEVER_LATIN = {code for _, codes in _SCRIPTS.values() for code in codes if code != "sr"}

# Yiddish writes digraphs of its own, and vowel points on alef and double yod alone; pointed Hebrew
# has others too: sheva, the hatafs, tsere, segol, holam, qubuts.
_YIDDISH = re.compile("[\u05f0-\u05f2]|\u05d0[\u05b7\u05b8]")
_POINTED = re.compile("[\u05b0-\u05b3\u05b5\u05b6\u05b9\u05bb]")

_NO_LANGUAGE = "zxx"  # the model's label for numbers, code and the like
# Labels of the model that share a stemmer, or the absence of one, with a candidate.
_SAME = {"nn": "no", "nb": "no", "bs": "hr", "ary": "ar", "arz": "ar", "wuu": "zh", "yue": "zh"}


class _Identifier(Protocol):
    def rank(self, text: str) -> list[tuple[str, float]]: ...


def detect_language(
    text: str, candidates: Sequence[str] | None = None, fallback: str = "en"
) -> str:
    """The ISO 639-1 code of the language of ``text``, or ``fallback`` unless that is clear.

    ``candidates`` are the languages to choose among, such as those a vault already holds (default:
    :data:`LANGUAGES`; a single one is the answer to any text in its script). Code, links and
    addresses do not count, and only the first 2,000 characters of prose do. Any thread may call.
    """
    chosen = LANGUAGES if candidates is None else tuple(dict.fromkeys(candidates))
    prose = _prose(text)
    spelled = _LETTERS.findall(prose)
    letters = sum(map(len, spelled))
    foreign = 0 if prose.isascii() else len(_not_latin().findall(prose))
    if 2 * foreign <= letters:
        if candidates is None:
            plain = _by_function_words(spelled, STOP_WORDS, MANY_VOTES)
            if plain in PLAINLY_TOLD:
                return plain
        possible = tuple(code for code in chosen if code not in _NEVER_LATIN)
    else:
        possible = tuple(code for code in _writers(prose) if code in chosen)
        if possible and fallback not in possible:
            fallback = possible[0]  # a script's most common language beats one of another script
    if not possible or not letters:
        return fallback
    if len(possible) == 1:
        return possible[0]
    if set(possible) == {"he", "yi"}:  # the model knows no Yiddish
        return "yi" if _YIDDISH.search(prose) and not _POINTED.search(prose) else "he"
    if candidates is not None and STOP_WORDS.keys() >= set(possible):
        voted = _by_function_words(spelled, possible, LEAST_VOTES)
        if voted:
            return voted
    return (letters >= SHORTEST and _by_model(prose, possible)) or fallback


def plainly_another(text: str, language: str) -> str | None:
    """The language whose function words ``text`` has, and has at least twice as many of as of
    ``language``; ``None`` where it may be ``language``.

    Measured: 1,167 of 1,190 Spanish questions are taken for Spanish, and 640 of 641 English
    questions for English.
    """
    spelled = _LETTERS.findall(_prose(text))
    votes = _votes(spelled)
    own, most = votes.pop(language, 0), max(votes.values(), default=0)
    if most < max(LEAST_VOTES, VOTE_RATIO * own):
        return None
    best = [code for code, count in votes.items() if count == most]
    return best[0] if len(best) == 1 else _by_model(" ".join(spelled), best)


def shows_a_language(text: str) -> bool:
    """Whether ``text`` has a function word of any language, or is in another script than Latin."""
    return bool(_votes(_LETTERS.findall(text)) or _not_latin().search(text))


def _prose(text: str) -> str:
    """The start of ``text`` without code, links and addresses."""
    start = text[: 2 * SAMPLE]
    if any(mark in start for mark in _MARKS):  # looking through it takes a third of the whole
        start = _NOT_PROSE.sub(" ", start)
    return start[:SAMPLE]


def _writers(prose: str) -> tuple[str, ...]:
    """The languages of the script that most of ``prose`` is in, the most common first."""
    counts = {name: len(re.findall(f"[{s}]", prose)) for name, (s, _) in _SCRIPTS.items()}
    if counts["kana"]:
        counts["kana"] += counts["han"]  # Japanese mixes both; Chinese has no kana
    script = max(counts, key=lambda name: counts[name])
    return _SCRIPTS[script][1] if counts[script] else ()


def _by_function_words(spelled: Sequence[str], among: Collection[str], least: int) -> str | None:
    """The language ``among`` these whose function words occur, unless another's do too."""
    votes = Counter({code: n for code, n in _votes(spelled).items() if code in among})
    (best, most), (_, second) = [*votes.most_common(2), ("", 0), ("", 0)][:2]
    return best if most >= max(least, VOTE_RATIO * second) else None


def _votes(spelled: Sequence[str]) -> Counter[str]:
    """By language, how many of its function words occur."""
    languages_of = _function_words()
    found = languages_of.keys() & {word.lower() for word in spelled}
    return Counter(code for word in found for code in languages_of[word])


@cache
def _not_latin() -> re.Pattern[str]:
    return re.compile(  # 3 ms, for which plain ASCII need not wait
        "[\u0370-\u1dff\u1f00-\u1fff\u2e80-\uabff\uac00-\ufaff\U00010000-\U0003ffff]"
    )


@cache
def _function_words() -> dict[str, list[str]]:
    """Every function word with the languages it belongs to."""
    found: dict[str, list[str]] = {}
    for code, listed in STOP_WORDS.items():
        for word in listed:
            found.setdefault(word, []).append(code)
    return found


def _by_model(prose: str, candidates: Collection[str]) -> str | None:
    """The candidate the model gives most of the probability among them."""
    shares = dict.fromkeys(candidates, 0.0)
    ranking = _identifier().rank(prose)
    if ranking[0][0] == _NO_LANGUAGE:
        return None
    for label, probability in ranking:  # best first: a hundred labels that are next to nothing
        if probability < NEGLIGIBLE:
            break
        code = _SAME.get(label, label)
        if code in shares:
            shares[code] += probability
    best = max(shares, key=lambda code: shares[code])
    return best if shares[best] >= CONFIDENT * sum(shares.values()) > 0 else None


_loading = threading.Lock()


def _identifier() -> _Identifier:
    with _loading:  # two threads at once would both read the 4.5 MB model
        return _load_identifier()


@cache
def _load_identifier() -> _Identifier:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    # Its own instance: `py3langid.set_languages` on the shared one would change our answers.
    try:
        identifier: _Identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    except OSError as error:  # it is unpacked in a file without a name
        import tempfile

        place = f"{tempfile.gettempdir()}, where the model that tells languages is unpacked"
        raise StorageError(f"{place}: {error.strerror}") from error
    return identifier
