"""Analysis: a parsed query meets the index as keyed hashes, one mask and a few facts.

The mask is every filter and hard condition at once: it goes into each leg, so nothing is filtered
after candidates were chosen.

Boundary: the last place that sees the query's words together with the keys that blind them. What
it hands on to the legs are hashes; the words stay for the embedder, the reranker and previews.
"""

from __future__ import annotations

import string
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from memory_store.dates import period, validity
from memory_store.errors import BadInputError
from memory_store.index.snapshot import Filters, HashGroup, Mask, Snapshot
from memory_store.index.terms import has_pair, has_term
from memory_store.index.topics import TopicGroup
from memory_store.records import SearchRequest, base_type, check_types
from memory_store.records.collections import several_of_that_name
from memory_store.search.context import SearchContext
from memory_store.search.query.language import ParsedQuery, Phrase, Variant, is_symbol_like, parse
from memory_store.search.query.more_like_this import Likeness, likeness
from memory_store.search.query.spelling import Instead, corrections
from memory_store.search.recipes import LEGS
from memory_store.text.canonical import folded, normalise_topic
from memory_store.text.identifiers import CODE, code_words, identifiers, name_terms
from memory_store.text.language import detect_language, plainly_another
from memory_store.text.tokens import is_stop_word, term
from memory_store.text.words import query_words
from memory_store.text.words import words as words_of

if TYPE_CHECKING:
    from memory_store.crypto.blinding import Blinder
    from memory_store.index.snapshot import Snapshot

FALLBACK_LANGUAGE = "en"
RARE = 0.01
"""Of the memories: languages of fewer are, as a rule, a list or a short note that was taken for
them, and telling them apart loads a model, half a second of a command's first search."""
LONGEST_TOPIC = 3  # words: query keywords are matched to topics as n-grams of one to three
MOST_PAIRS = 64  # likewise of neighbouring words
MOST_TOPIC_WORDS = 64  # of a query: the first ones; a longer query is not a list of tags
_TRIMMED = string.punctuation.replace("#", "").replace("+", "") + "…“”„«»‚‘’"


class Analysis(Struct, frozen=True):
    """What the legs need to know of a query.

    ``keywords`` are its words without stop words (with them, if there is nothing else), repeats
    kept; ``groups`` the same as keyed hashes. ``topics`` has one group per query word: the hashes
    of every topic of one to three words that the word is part of, so that the groups a memory
    matches count the words matched. ``corrected`` are the words that nothing holds, with what is
    looked up instead. ``mask`` (bool [documents]) is what may be an answer. ``like`` is the memory
    that others should be like. ``pairs`` stand for each two neighbouring keywords, where more than
    one leg is asked.
    """

    parsed: ParsedQuery
    language: str
    keywords: tuple[str, ...]
    groups: tuple[HashGroup, ...]
    variant_groups: tuple[tuple[HashGroup, ...], ...]
    topics: tuple[TopicGroup, ...]
    mask: Mask
    symbol_like: bool
    like: Likeness | None = None
    pairs: tuple[HashGroup, ...] = ()
    corrected: Mapping[str, str] = {}

    @property
    def asks(self) -> bool:
        """Whether the search is for anything, rather than a list of what filters let through."""
        return bool(self.parsed.reading or self.like)


class Blinding:
    """Words to keyed hashes, in every collection and every language that the snapshot has."""

    def __init__(self, context: SearchContext) -> None:
        languages = context.snapshot.languages_in
        self._each = [
            (c, [*languages(c)], context.blinder(c)) for c in context.snapshot.collections
        ]
        self._with_code = [(c, blinder) for c, known, blinder in self._each if CODE in known]

    def term(self, word: str) -> HashGroup:
        """What stands for a word."""
        return {
            collection: [blinder.term(language, term(word, language)) for language in languages]
            for collection, languages, blinder in self._each
        }

    def pair(self, first: str, second: str) -> HashGroup:
        """What stands for two adjacent words."""

        def hashed(language: str, blinder: Blinder) -> int:
            terms = _neighbours(first, second, language)
            return blinder.pair(*(blinder.term(language, one) for one in terms))

        return {
            collection: [hashed(language, blinder) for language in languages]
            for collection, languages, blinder in self._each
        }

    def neighbours(self, words: int, groups: Sequence[HashGroup]) -> tuple[HashGroup, ...]:
        """What stands for each two of the first ``words`` groups of a query side by side."""
        first = groups[: min(words, MOST_PAIRS + 1)]
        pairs: list[dict[str, list[int]]] = [{} for _ in first[1:]]
        for collection, languages, blinder in self._each:
            for number in range(len(languages)):
                hashed = blinder.pairs([group[collection][number] for group in first]).tolist()
                for pair, value in zip(pairs, hashed, strict=True):
                    pair.setdefault(collection, []).append(value)
        return tuple(pairs)

    def names(self, text: str, known: Sequence[str]) -> list[HashGroup]:
        """What stands for the names in a text where code is searched, each whole and by its parts.

        Nothing is looked up for what the ``known`` words stand for already, nor in collections
        without code.
        """
        if not self._with_code:
            return []
        terms_of_names = map(name_terms, dict.fromkeys(name.text for name in identifiers(text)))
        wanted = dict.fromkeys(t for found in terms_of_names if len(found) > 1 for t in found)
        looked_up = set(map(folded, known))
        return [
            {collection: [blinder.term(CODE, t)] for collection, blinder in self._with_code}
            for t in wanted
            if t not in looked_up
        ]

    def fact(self, kind: str, word: str) -> HashGroup:
        """What stands for a fact of source files (:mod:`memory_store.code.facts`)."""
        return self.any_fact([(kind, word)])

    def any_fact(self, known: Iterable[tuple[str, str]]) -> HashGroup:
        """What stands for any of some facts, each of its kind."""
        pairs = list(known)
        return {c: [blinder.term(*pair) for pair in pairs] for c, blinder in self._with_code}

    def topics(self, normalised: Iterable[str]) -> TopicGroup:
        """What stands for any of some normalised topics."""
        names = list(normalised)
        return {c: [blinder.topic(name) for name in names] for c, _, blinder in self._each}


def analyse(
    parsed: ParsedQuery,
    context: SearchContext,
    options: SearchRequest,
    legs: Collection[str] = LEGS,
) -> Analysis:
    """Blind the query's words as ``legs`` look them up, and apply its filters and conditions.

    The mask is what the filters let through, less what lacks a required phrase or holds an excluded
    one, by stems in a row.
    Raises :class:`BadInputError` naming the filter that makes no sense.
    """
    blinding, snapshot = Blinding(context), context.snapshot
    language = query_language(parsed.reading, context)
    keywords = without_stop_words(parsed.words, language)
    wanted = filters(parsed, context, options, blinding)
    mask = snapshot.mask(wanted)
    like = likeness(snapshot, options.like) if options.like else None
    if like is not None:
        mask &= ~context.copies_of(like.ordinal)
    for phrase in parsed.required:
        mask = mask & holds(phrase, context, blinding)
    for phrase in parsed.excluded:
        mask = mask & ~holds(phrase, context, blinding)
    groups = _word_groups(parsed.text, keywords, blinding)
    corrected: dict[str, Instead] = {}
    if "keyword" in legs:
        corrected = corrections(
            parsed,
            keywords,
            groups,
            context,
            wanted.collections,
            language=language,
            hashed=blinding.term,
        )
    if corrected:
        keywords = tuple(
            one
            for word in keywords
            for one in (_words_of(corrected[word]) if word in corrected else [word])
        )
        parsed = replace(parsed, text=_reworded(parsed.text, corrected))
        groups = _word_groups(parsed.text, keywords, blinding)
    fused = "keyword" in legs and len(legs) > 1
    return Analysis(
        parsed=parsed,
        language=language,
        keywords=keywords,
        groups=groups,
        corrected={word: one.words for word, one in corrected.items()},
        variant_groups=_variant_groups(parsed.variants, language, blinding),
        topics=_topics(parsed.text, language, blinding, snapshot) if "topic" in legs else (),
        mask=mask,
        symbol_like=is_symbol_like(parsed.text),
        like=like,
        pairs=blinding.neighbours(len(keywords), groups) if fused else (),
    )


def _words_of(instead: Instead) -> list[str]:
    return [word.text for word in words_of(instead.words)]


def _reworded(text: str, corrected: Mapping[str, Instead]) -> str:
    """A text with what was meant instead of its slips."""
    said, at = [], 0
    for word in query_words(text):
        other = corrected.get(word.text)
        if other is not None and other.meant:
            said += [text[at : word.start], other.words]
            at = word.end
    return "".join([*said, text[at:]])


def _topics(
    text: str, language: str, blinding: Blinding, snapshot: Snapshot
) -> tuple[TopicGroup, ...]:
    """What stands for the topics of a text: a group for each word. Each is hashed once, though
    one of several words is in the groups of them all. Where nothing has a topic, none is."""
    if not any(len(part.segment.topics.keys) for part in snapshot.parts):
        return ({},) if any(topic_names(word, language) for word in text.split()) else ()
    groups = topic_names(text, language)
    hashed = blinding.topics(names := dict.fromkeys(name for group in groups for name in group))
    known = {collection: dict(zip(names, tags, strict=True)) for collection, tags in hashed.items()}
    return tuple(
        {collection: [tags[name] for name in group] for collection, tags in known.items()}
        for group in groups
    )


def with_variants(
    analysis: Analysis, variants: Sequence[Variant], context: SearchContext
) -> Analysis:
    """The same query with further wordings, blinded like its own."""
    groups = _variant_groups(variants, analysis.language, Blinding(context))
    parsed = replace(analysis.parsed, variants=(*analysis.parsed.variants, *variants))
    return replace(analysis, parsed=parsed, variant_groups=(*analysis.variant_groups, *groups))


def _word_groups(text: str, keywords: Sequence[str], blinding: Blinding) -> tuple[HashGroup, ...]:
    """What is looked up for a text: its words less stop words, and in code also its names."""
    return (*map(blinding.term, keywords), *blinding.names(text, keywords))


def _variant_groups(
    variants: Sequence[Variant], language: str, blinding: Blinding
) -> tuple[tuple[HashGroup, ...], ...]:
    """What is looked up for each wording that is of words."""
    return tuple(
        _word_groups(text, without_stop_words(words, language), blinding)
        for text, words in _wordings(variants)
    )


def _wordings(variants: Sequence[Variant]) -> list[tuple[str, list[str]]]:
    texts = [variant.text for variant in variants if variant.kind == "lex"]
    return [(text, [word.text for word in query_words(text)]) for text in texts]


def query_language(text: str, context: SearchContext) -> str:
    """The query's language: among those of the vault that are not rare there, unless it is plainly
    another. Short or unclear: the vault's usual one."""
    counts = context.snapshot.language_counts.copy()
    counts.pop(CODE, None)  # code is written among texts of every language
    usual = known = max(counts, key=lambda code: counts[code], default=FALLBACK_LANGUAGE)
    spoken = [code for code, count in counts.items() if count >= RARE * sum(counts.values())]
    if len(spoken) > 1:
        known = detect_language(text, candidates=spoken, fallback=usual)
    return plainly_another(text, known) or known


def without_stop_words(words: Sequence[str], language: str) -> tuple[str, ...]:
    """The words that say something; all of them when none does (``to be or not to be``)."""
    kept = tuple(word for word in words if not is_stop_word(word, language))
    return kept or tuple(words)


def leaves_out_words(analysis: Analysis) -> bool:
    """Whether some words, typed or of another wording, are not looked up: function words."""
    parsed = analysis.parsed
    listed = [parsed.words, *(words for _, words in _wordings(parsed.variants))]
    return any(len(without_stop_words(words, analysis.language)) < len(words) for words in listed)


def topic_names(text: str, language: str) -> list[set[str]]:
    """For each word of a query, the normalised topics of one to three words it may be part of.

    Words are taken as typed between blanks (``c++``, ``work/garden``) and as the tokenizer cuts
    them. N-grams of nothing but stop words are no topics.
    """
    typed = [word.strip(_TRIMMED) for word in text.split()]
    typed = [word for word in typed if word][:MOST_TOPIC_WORDS]
    empty = [is_stop_word(word, language) for word in typed]
    plain = [word.isascii() and word.isalnum() for word in typed]  # what is normalised by lower()
    names: list[set[str]] = [set() for _ in typed]
    for length in range(1, LONGEST_TOPIC + 1):
        for start in range(len(typed) - length + 1):
            these = slice(start, start + length)
            if all(empty[these]):
                continue
            said = "-".join(typed[these])
            name = said.lower() if all(plain[these]) else normalise_topic(said)
            for group in names[these]:
                group.add(name)
    for group, word, whole in zip(names, typed, plain, strict=True):
        if not whole:
            parts = (part.text for part in words_of(word))
            kept = (part for part in parts if not is_stop_word(part, language))
            group.update(map(normalise_topic, kept))
    unique = {frozenset(group - {""}): None for group in names}
    return [set(group) for group in unique if group]


def filters(
    parsed: ParsedQuery, context: SearchContext, options: SearchRequest, blinding: Blinding
) -> Filters:
    """The filters of query and options, looked up. Every named topic must be carried."""
    now = time.time()
    named = tuple(_collection(name, context.collection_names) for name in parsed.collections)
    check_types(parsed.types, context.snapshot.types)
    topics = [normalise_topic(name) for name in parsed.topics]
    if "" in topics:
        raise BadInputError(f"topic: {parsed.topics[topics.index('')]!r} is no topic", "topic")
    return Filters(
        collections=named or None,
        types=parsed.types,
        topics_any=tuple(blinding.topics([topic]) for topic in topics),
        status=options.status,
        **period(parsed.since, parsed.until, now),
        **validity(options.as_of, options.superseded, now),
    )


def searches_code(context: SearchContext, options: SearchRequest) -> bool:
    """Whether a search is among source code: by its type, or where there is nothing else.

    Raises :class:`BadInputError` for a collection that there is not.
    """
    snapshot = context.snapshot
    if CODE not in snapshot.languages:
        return False
    parsed = context.parsed or parse(options)
    if parsed.types:
        return all(base_type(name) == CODE for name in parsed.types)
    named = [_collection(name, context.collection_names) for name in parsed.collections]
    searched, code = snapshot.visible(named or None) & snapshot.alive, ranked_as_code(context)
    return code is not None and bool(searched.any()) and bool(code[searched].all())


def ranked_as_code(context: SearchContext) -> Mask | None:
    """bool [documents]: source code, and what else came with it from a source that is mostly source
    code: the prose of a repository. ``None`` where there is no code.

    In a collection, what came from no source is taken together as if it came from one.
    """
    snapshot = context.snapshot
    if CODE not in snapshot.languages:
        return None

    def found() -> Mask:
        language = np.array([one == CODE for one in snapshot.languages], dtype=np.bool_)
        code, living = language[snapshot.language_codes], snapshot.alive
        groups = snapshot.collection_codes.astype(np.int64) << 32
        if context.sources is not None:
            groups |= context.sources(_with_code_and_prose(snapshot))
        _, group = np.unique(groups, return_inverse=True)
        there = np.bincount(group[living], minlength=int(group.max(initial=0)) + 1)
        of_code = np.bincount(group[living & code], minlength=len(there))
        mask: Mask = code | (2 * of_code > there)[group]
        return mask

    made: Mask = snapshot.worked_out(f"as code {sorted(context.unnamed)}", found)
    return made


def _with_code_and_prose(snapshot: Snapshot) -> list[str]:
    """The collections in which sources differ in what they are."""
    languages = ((one, snapshot.languages_in(one)) for one in snapshot.collections)
    return [one for one, known in languages if CODE in known and len(known) > 1]


def holds(phrase: Phrase, context: SearchContext, blinding: Blinding) -> Mask:
    """bool [documents]: those that hold a phrase's words side by side, by their stems."""
    if len(phrase.words) == 1:
        return has_term(context.snapshot, blinding.term(phrase.words[0]))
    held = np.ones(context.snapshot.size, dtype=np.bool_)
    for first, second in zip(phrase.words, phrase.words[1:], strict=False):
        held &= has_pair(context.snapshot, blinding.pair(first, second))
    return held


def _neighbours(first: str, second: str, language: str) -> tuple[str, str]:
    """The terms that stand side by side where two words do: in code, the parts that meet there."""
    if language == CODE and (before := code_words(first)) and (after := code_words(second)):
        return before[-1], after[0]
    return term(first, language), term(second, language)


def _collection(given: str, names: Mapping[str, str]) -> str:
    """The id of a collection, given or of that name: in that case, or else in any."""
    if given.casefold() in names:
        return given.casefold()
    found = [id_ for id_, name in names.items() if name == given]
    found = found or [id_ for id_, name in names.items() if name.casefold() == given.casefold()]
    if not found:
        raise BadInputError(f"collection: there is none named {given!r}", parameter="collection")
    if len(found) > 1:
        raise BadInputError(several_of_that_name(given, found), parameter="collection")
    return found[0]
