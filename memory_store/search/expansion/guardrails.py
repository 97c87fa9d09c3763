"""Guardrails of expansion: which of a language model's wordings may be searched for at all.

A wording must not hold what the query excludes, must keep the query's names, identifiers and
numbers, and must stay negated where the query is: or it would find what was not asked for. What
was dropped is counted by reason.

Boundary: works on the query's words and the model's lines; opens nothing, keeps nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

from msgspec import Struct, field

from memory_store.models.expander import TypedLine
from memory_store.search.query.analysis import without_stop_words
from memory_store.search.query.language import ParsedQuery, Variant, is_symbol_like
from memory_store.text.canonical import canonical_text, folded
from memory_store.text.language import STOP_WORDS
from memory_store.text.tokens import is_stop_word, term
from memory_store.text.words import query_words, words

NOUNS_CAPITALISED = frozenset({"de", "lb"})  # languages where a capital does not make a name
NEGATIONS = {
    "en": re.compile(
        "not|cannot|without|no|never|none|nobody|nothing|neither|nor|except|excluding|.*n't"
    ),
    "de": re.compile("nicht|ohne|nie|niemals|niemand|nichts|weder|ausser|ausgenommen|kein.*"),
}
"""Words that turn a question round, by language."""
REQUESTS: Mapping[str, frozenset[str]] = {
    "en": frozenset(["find", "get", "give", "list", "look", "open", "search", "show", "tell"]),
    "de": frozenset(["finde", "gib", "liste", "nenne", "such", "suche", "zeig", "zeige"]),
}
"""Words that queries begin with and that name nothing, besides the stop words."""

REPEATED, EXCLUDED, NAME, NEGATION = "repeated", "excluded word", "name missing", "negation missing"

_SENTENCE_END = re.compile(r"[.!?:][\"'”’)\]]*$")
_WHOLE_SENTENCE = re.compile(r"[.!?][\"'”’)\]]*$")
_EDGES = "\"'“”„‘’«»()[]{}<>,;:.!?…"
_I = re.compile(r"I(?:['’]\w+)?")


class Guarded(Struct, frozen=True):
    """The wordings that may be searched for, and how many others were dropped, by reason."""

    kept: tuple[Variant, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)


class _Word(Struct, frozen=True):
    """A word of a query as typed. ``first``: in its sentence; ``whole``: that sentence ends in a
    full stop or the like; ``joined``: nothing stands between it and the next word."""

    text: str
    first: bool
    whole: bool
    joined: bool

    @property
    def capitalised(self) -> bool:
        return self.text[0].isupper()


def guarded(lines: Sequence[TypedLine], parsed: ParsedQuery, language: str) -> Guarded:
    """The lines that may be searched for, as variants: nothing twice, nothing against the query."""
    kept: list[Variant] = []
    dropped: Counter[str] = Counter()
    seen = {("lex", _stems(parsed.text, language)), ("vec", folded(parsed.text))}
    for line in lines:
        variant = Variant(line.kind, " ".join(canonical_text(line.text).split()))
        said = _stems(variant.text, language) if variant.kind == "lex" else folded(variant.text)
        if not said or (variant.kind, said) in seen:
            dropped[REPEATED] += 1
        elif contradicts(variant, parsed, language):
            dropped[EXCLUDED] += 1
        elif not keeps_names(variant.text, parsed.text, language):
            dropped[NAME] += 1
        elif not keeps_negation(variant.text, parsed.text, language):
            dropped[NEGATION] += 1
        else:
            seen.add((variant.kind, said))
            kept.append(variant)
    return Guarded(tuple(kept), dict(dropped))


def contradicts(variant: Variant, parsed: ParsedQuery, language: str) -> bool:
    """Whether a variant holds a word or phrase that the query excludes, in any form."""
    said = [term(word.text, language) for word in words(variant.text)]
    for phrase in parsed.excluded:
        barred = [term(word, language) for word in phrase.words]
        starts = range(len(said) - len(barred) + 1)
        if any(said[start : start + len(barred)] == barred for start in starts):
            return True
    return False


def keeps_names(variant: str, query: str, language: str) -> bool:
    """Whether every name, identifier and number of ``query`` stands in ``variant``, in any form."""
    said = {term(word.text, language) for word in words(variant)}
    return all(
        term(word.text, language) in said for name in names(query, language) for word in words(name)
    )


def keeps_negation(variant: str, query: str, language: str) -> bool:
    """Whether ``variant`` is negated if ``query`` is; true where we know no negations."""
    return not negated(query, language) or negated(variant, language)


def negated(text: str, language: str) -> bool:
    """Whether a word of ``text`` negates (:data:`NEGATIONS`)."""
    known = NEGATIONS.get(language)
    said = (word.text.casefold().replace("’", "'") for word in words(text))
    return known is not None and any(map(known.fullmatch, said))


def names(query: str, language: str) -> list[str]:
    """The words of a query that no other word can stand for.

    Numbers and identifiers (a digit, ``_``, ``::``, camelCase, several capitals), and capitalised
    words. The first word of a sentence counts unless it is a stop word or a request
    (:data:`REQUESTS`), or the sentence is a whole one with its full stop, where any word may
    stand there; so it does where we have no list of stop words.

    Where every noun has a capital, two capitalised words in a row are a name ("Anna Schmidt"),
    provided the query has a word in small letters as well: a row of keywords is all nouns. Where
    all letters are capitals, a capital says nothing.
    """
    shouting = query == query.upper()
    typed = _typed(query)
    capitalised = set[int]() if shouting else _capitalised_names(typed, language)
    return [
        word.text
        for place, word in enumerate(typed)
        if place in capitalised or _is_identifier(word.text, shouting)
    ]


def _capitalised_names(typed: Sequence[_Word], language: str) -> set[int]:
    """The places of words that a capital makes a name."""
    own = [word.capitalised and not _is_common(word, language) for word in typed]
    if language not in NOUNS_CAPITALISED:
        return {place for place, is_one in enumerate(own) if is_one}
    if not any(word.text[0].islower() for word in typed):
        return set()
    rows = [
        (n, n + 1) for n, (one, two) in enumerate(pairwise(own)) if one and two and typed[n].joined
    ]
    return {place for row in rows for place in row}


def _is_common(word: _Word, language: str) -> bool:
    """Whether a capitalised word has its capital for another reason than being a name."""
    if language == "en" and _I.fullmatch(word.text):
        return True
    nouns = language in NOUNS_CAPITALISED
    if not word.first:
        return nouns and is_stop_word(word.text, language)
    asks = word.text.casefold() in REQUESTS.get(language, frozenset())
    unsure = not nouns and (word.whole or language not in STOP_WORDS)
    return asks or unsure or is_stop_word(word.text, language)


def _typed(query: str) -> list[_Word]:
    """The words of a query between blanks, without what surrounds them."""
    found: list[_Word] = []
    sentence: list[str] = []
    tokens = query.split()
    for place, token in enumerate(tokens, start=1):
        sentence.append(token)
        if _SENTENCE_END.search(token) or place == len(tokens):
            whole = _WHOLE_SENTENCE.search(token) is not None
            stripped = [(one.strip(_EDGES), one) for one in sentence]
            said = [(word, one) for word, one in stripped if word]
            for number, (word, one) in enumerate(said):
                found.append(_Word(word, not number, whole, one.endswith(word)))
            sentence = []
    return found


def _is_identifier(word: str, shouting: bool) -> bool:
    several_capitals = sum(map(str.isupper, word)) > 1 and not shouting
    return any(map(str.isdigit, word)) or several_capitals or is_symbol_like(word)


def _stems(text: str, language: str) -> frozenset[str]:
    spelled = without_stop_words([word.text for word in query_words(text)], language)
    return frozenset(term(word, language) for word in spelled)
