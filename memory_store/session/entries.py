"""From memories to index entries: language, keyed terms, windows and their vectors.

Boundary: plain text comes in; what leaves holds keyed hashes, offsets and vectors, and the records
of extra kinds, which are plain until they are sealed. The words seen on the way are remembered
beside their hashes for one batch run at most (see :class:`TermHashes`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
import numpy.typing as npt
from msgspec import Raw, Struct, msgpack

from memory_store.crypto.blinding import Blinder
from memory_store.index.lexicon import LEXICON, Spelled
from memory_store.index.names import NAMES
from memory_store.index.outlines import OUTLINES
from memory_store.index.places import PLACES, place_in
from memory_store.index.segment import Hashes, IndexEntry, TermCounts
from memory_store.index.topic_parents import TOPIC_PARENTS, TopicParents, parents
from memory_store.index.trigrams import TRIGRAMS, Grams
from memory_store.records import Memory, base_type
from memory_store.session.names import names_of_memory
from memory_store.session.outlines import outline_of
from memory_store.session.source_parts import (
    PartsOf,
    SourceParts,
    gram_numbers,
    source_parts,
    whole_memory,
)
from memory_store.text.canonical import normalise_topic
from memory_store.text.chunks import Span, passages, windows
from memory_store.text.grams import distinct
from memory_store.text.identifiers import CODE, file_name, path_terms
from memory_store.text.language import detect_language
from memory_store.text.links import links, links_of_fields
from memory_store.text.spelling import entry
from memory_store.text.tokens import term
from memory_store.text.words import spellings
from memory_store.vault.keyring import VAULT_SCOPE, Keyring
from memory_store.vault.rows import content_tag, topic_tags
from memory_store.vault.settings import AUTO, CollectionSettings

if TYPE_CHECKING:
    from memory_store.models.embedder import Embedder

# Characters to detect a language by. At 600 detection takes a tenth of an import's time; of 2,620
# German and English texts none has another language than at 2,000.
LANGUAGE_SAMPLE = 600
LANGUAGE_SAMPLE_OF_CODE = 2_000  # code does not count: a text that begins with some needs more
EMBEDDED_AT_ONCE = 32  # windows, a quarter of a second's work: batches of the embedder, whole ones
MOST_TARGETS = 500  # distinct links of each kind that are kept of one memory
Made = TypeVar("Made")
REMEMBERED = 200_000  # words of one kind, about 30 MB, in an import; then it begins anew
TITLE_TOKENS = 32  # of a window's budget at most; longer titles are cut in front of the text

Vectors = npt.NDArray[np.float32]
Links = Mapping[str, Sequence[str]]
"""The targets of the links of a memory, by how they are written."""


class Analysed(Struct, frozen=True):
    """How a memory is analysed: by the words that it ``spelled``, as ``source``, where it is code,
    and with the targets of its ``links``."""

    spelled: Sequence[str]
    blinder: Blinder
    source: SourceParts | None = None
    links: Links = {}


def _outline(memory: Memory, analysed: Analysed) -> Struct | Raw:
    return analysed.source.outline if analysed.source is not None else outline_of(memory)


def _topic_parents(memory: Memory, analysed: Analysed) -> Struct | Raw:
    above = dict.fromkeys(parents(map(normalise_topic, memory.topics)))
    return TopicParents(b"".join(map(analysed.blinder.topic, above)))


def _grams(memory: Memory, analysed: Analysed) -> Struct | Raw:
    source = analysed.source
    numbers = gram_numbers(memory) if source is None else np.frombuffer(source.grams, np.uint64)
    return Grams(distinct(analysed.blinder.grams(numbers)).astype("<u4").tobytes())


Record = Callable[[Memory, Analysed], Struct | Raw]
"""Makes a kind's record of a memory, blinded where it can be; or gives it as it is encoded."""
RECORDS: dict[str, Record] = {
    LEXICON.name: lambda _, analysed: Spelled([*analysed.spelled]),
    NAMES.name: lambda memory, analysed: names_of_memory(memory, analysed.links),
    OUTLINES.name: _outline,
    PLACES.name: lambda memory, _: place_in(memory.source, memory.ref),
    TOPIC_PARENTS.name: _topic_parents,
    TRIGRAMS.name: _grams,
}
"""By the kinds of :data:`memory_store.index.kinds.KINDS`: what makes a document's record."""


class Windows(Struct, frozen=True):
    """The embedded windows of a content: character spans and one vector each (float [w, d])."""

    spans: tuple[tuple[int, int], ...]
    vectors: npt.NDArray[np.generic]


class Indexable(Struct, frozen=True):
    """A memory on its way into the index, with its keyed tags."""

    memory: Memory
    content_tag: bytes
    topics: tuple[bytes, ...]
    links: Links = {}


class Making(Struct, frozen=True):
    """What the entries of a collection are made with.

    The settings' ``analyser`` is ``auto`` (then ``language`` is for texts too short to show
    theirs), a language code, or ``code``, which memories of that type have anyhow.
    """

    embedder: Embedder | None
    hashes: TermHashes
    settings: CollectionSettings
    language: str = "en"


def indexable(keyring: Keyring, memory: Memory, links: Links | None = None) -> Indexable:
    """A memory with the tags that its keys give its content and topics."""
    tag = content_tag(keyring.of(VAULT_SCOPE), memory.title, memory.text)
    topics = topic_tags(keyring.of(memory.collection), memory.topics)
    return Indexable(memory, tag, tuple(topics), links or {})


def is_source(memory: Memory) -> bool:
    """Whether a memory is a file of source code."""
    return base_type(memory.type) == CODE


def link_targets(memory: Memory) -> dict[str, list[str]]:
    """The targets of the links that a memory holds, as they are written; source code has none."""
    if is_source(memory):
        return {}
    found: dict[str, dict[str, None]] = {}
    for link in (*links(memory.text), *links_of_fields(memory.metadata)):
        found.setdefault(link.kind, {})[link.target] = None
    return {kind: list(targets)[:MOST_TARGETS] for kind, targets in found.items()}


def text_windows(embedder: Embedder, title: str, text: str) -> list[Span]:
    """The spans of ``text`` to embed: each passage in windows that fit the model with the title."""
    title_tokens = min(embedder.count_tokens(title), TITLE_TOKENS) if title else 0
    spans: list[Span] = []
    for passage in passages(text):
        part = text[passage.start : passage.end]
        spans.extend(
            Span(passage.start + start, passage.start + end)
            for start, end in windows(
                part,
                embedder.token_offsets,
                max_tokens=embedder.max_tokens,
                title_tokens=title_tokens,
            )
        )
    return list(dict.fromkeys(spans)) or [Span(0, len(text))]


def embedded_text(title: str, part: str) -> str:
    """What the model reads for one window: the title for context, then the words themselves."""
    return f"{title}\n{part}" if title else part


def embed_contents(
    embedder: Embedder,
    contents: Mapping[bytes, tuple[str, str]],
    embedded: Callable[[int, int], None] | None = None,
) -> dict[bytes, Windows]:
    """Embed distinct contents (tag → title, text): every window of each.

    ``embedded`` is called again and again with how many windows are done, and how many there are.
    """
    spans = {tag: text_windows(embedder, *content) for tag, content in contents.items()}
    texts = [
        embedded_text(contents[tag][0], contents[tag][1][start:end])
        for tag, parts in spans.items()
        for start, end in parts
    ]
    vectors = _embed(embedder, texts, embedded or (lambda done, total: None))
    ends = np.cumsum([len(parts) for parts in spans.values()], dtype=np.intp)
    rows = np.split(vectors, ends[:-1])
    return {
        tag: Windows(tuple(parts), made)
        for (tag, parts), made in zip(spans.items(), rows, strict=False)
    }


def _embed(
    embedder: Embedder, texts: Sequence[str], embedded: Callable[[int, int], None]
) -> npt.NDArray[np.float32]:
    """Vectors of texts, some at a time. Long ones first, as the embedder does: so each of its
    batches holds what it would hold if all were given at once, and the vectors are the same."""
    distinct = sorted(set(texts), key=lambda text: (-len(text), text))
    made = np.empty((len(distinct), embedder.dimensions), np.float32)
    try:
        for start in range(0, len(distinct), EMBEDDED_AT_ONCE):
            embedded(start, len(distinct))
            some = embedder.embed(distinct[start : start + EMBEDDED_AT_ONCE])
            made[start : start + len(some)] = some
            some.fill(0)  # freed memory keeps what stood in it, past a lock
        if distinct:
            embedded(len(distinct), len(distinct))
        row = {text: i for i, text in enumerate(distinct)}
        in_order: npt.NDArray[np.float32] = made[[row[text] for text in texts]]
    finally:
        made.fill(0)
    return in_order


def index_entries(
    batch: Sequence[Indexable],
    making: Making,
    reuse: Callable[[bytes], Windows | None] = lambda tag: None,
    embedded: Callable[[int, int], None] | None = None,
    parts: PartsOf = source_parts,
) -> list[IndexEntry]:
    """The index entries of a batch. Equal contents are embedded once, known ones not at all.

    Without an embedder the entries hold the vectors that ``reuse`` knows, or none. ``parts`` gives
    those of a file of source code.
    """
    contents: dict[bytes, tuple[str, str]] = {}
    for item in batch:
        contents.setdefault(item.content_tag, (item.memory.title, item.memory.text))
    known = {tag: there for tag in contents if (there := reuse(tag)) is not None}
    if making.embedder is not None:
        missing = {tag: content for tag, content in contents.items() if tag not in known}
        known |= embed_contents(making.embedder, missing, embedded)
    none = Windows((), np.empty((0, making.settings.dimensions), np.float32))
    return [
        _entry(
            item,
            making.hashes,
            known.get(item.content_tag, none),
            _language(item.memory, making),
            parts,
        )
        for item in batch
    ]


def entry_of(
    item: Indexable, blinder: Blinder, language: str, *, kinds: Collection[str] | None = None
) -> IndexEntry:
    """The index entry of a memory, analysed as in ``language``, without vectors.

    ``kinds`` of facts are in that of source code (``None``: all), as it was made when there were no
    others; then the name of its file was not in that of a note either.
    """
    none = Windows((), np.empty((0, 0), np.float32))
    return _entry(item, TermHashes(blinder), none, language, source_parts, kinds=kinds)


def _language(memory: Memory, making: Making) -> str:
    """The language whose terms a memory is given."""
    if is_source(memory):
        return CODE
    if making.settings.analyser != AUTO:
        return making.settings.analyser
    start = memory.text[:LANGUAGE_SAMPLE]
    if "```" in start or "~~~" in start:
        start = memory.text[:LANGUAGE_SAMPLE_OF_CODE]
    return detect_language(f"{memory.title}\n{start}", fallback=making.language)


class _Remembered(dict[str, Made], Generic[Made]):
    """What is made of words: a hit is one look-up in a dictionary."""

    def __init__(self, make: Callable[[str], Made]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, word: str) -> Made:
        if len(self) >= REMEMBERED:
            self.clear()
        found = self[word] = self._make(word)
        return found


class TermHashes:
    """The keyed hashes of terms and pairs, and what a lexicon has for words. Each word is looked
    at once until they are wiped."""

    def __init__(self, blinder: Blinder) -> None:
        self.blinder = blinder
        self._terms: dict[str, _Remembered[int]] = {}
        self._words: dict[str, _Remembered[int]] = {}
        self._spelled = _Remembered(entry)

    def wipe(self) -> None:
        """Forget the words, and wipe the keys."""
        for known in (*self._terms.values(), *self._words.values()):
            known.clear()
        self._spelled.clear()
        self.blinder.wipe()

    def of(self, stems: Sequence[str], language: str) -> Hashes:
        """The keyed hashes of a text's terms, in order."""
        if language not in self._terms:
            self._terms[language] = _Remembered(partial(self.blinder.term, language))
        known = self._terms[language]
        return np.fromiter(map(known.__getitem__, stems), np.uint64, len(stems))

    def of_words(self, words: Sequence[str], language: str) -> Hashes:
        """The keyed hashes of the terms of words, in order. Not of those of source code."""
        if language not in self._words:
            self._words[language] = _Remembered(partial(self._of_word, language))
        known = self._words[language]
        return np.fromiter(map(known.__getitem__, words), np.uint64, len(words))

    def _of_word(self, language: str, word: str) -> int:
        return self.blinder.term(language, term(word, language))

    def spelled(self, words: Collection[str]) -> list[str]:
        """What a lexicon has for distinct words."""
        return [*filter(None, set(map(self._spelled.__getitem__, words)))]

    def pairs(self, terms: Hashes, in_title: int) -> Hashes:
        """The keyed hashes of all neighbours, given those of the terms of the title, which are so
        many, and then of the body: the distinct ones, ascending."""
        found = self.blinder.pairs(terms)
        if 0 < in_title < len(terms):
            found = np.delete(found, in_title - 1)  # its end and the body's start are none
        return distinct(found)


def _entry(
    item: Indexable,
    hashes: TermHashes,
    embedded: Windows,
    language: str,
    parts: PartsOf,
    *,
    kinds: Collection[str] | None = None,
) -> IndexEntry:
    memory = item.memory
    source: SourceParts | None = None
    if language == CODE:
        source = parts(memory)
        names = source.names
        known = hashes.of(names.terms, language)
        pairs = hashes.pairs(known[np.frombuffer(names.parts, np.uint32)], names.title_parts)
        title, body = (
            TermCounts(known, np.frombuffer(times, np.uint32).astype(np.int64)).there()
            for times in (names.titles, names.bodies)
        )
        body = body.and_once(hashes.of(path_terms(memory.source, memory.ref), language))
        spelled = names.terms[: names.spelled]
    else:
        in_title, in_text = spellings(memory.title), spellings(memory.text)
        words = [hashes.of_words(some, language) for some in (in_title, in_text)]
        there = np.concatenate(words)
        pairs = hashes.pairs(there, len(in_title))
        title, body = map(TermCounts.of, words)
        named = spellings(file_name(memory.ref))
        if kinds is None and named:
            in_name = distinct(hashes.of_words(named, language))
            only_there = [one for one in in_name if one not in there]
            body = body.and_once(np.array(only_there, np.uint64))
        spelled = hashes.spelled({*in_title, *in_text, *named})
    length = int(title.counts.sum() + body.counts.sum())
    for kind, facts in source.facts.items() if source is not None else ():
        if kinds is None or kind in kinds:
            body = body.and_once(hashes.of(facts, kind))  # no words: of no length
    whole, analysed = (
        whole_memory(memory),
        Analysed(spelled, hashes.blinder, source, item.links),
    )
    return IndexEntry(
        memory_id=memory.id,
        version=memory.version,
        collection=memory.collection,
        type=memory.type,
        language=language,
        created=epoch(memory.created),
        updated=epoch(memory.updated),
        content_tag=item.content_tag,
        topics=item.topics,
        title_terms=title,
        body_terms=body,
        length=length,
        pairs=pairs,
        windows=embedded.spans,
        vectors=embedded.vectors,
        valid_from=epoch(memory.valid_from) if memory.valid_from else -math.inf,
        valid_to=epoch(memory.valid_to) if memory.valid_to else math.inf,
        extras={kind: msgpack.encode(make(whole, analysed)) for kind, make in RECORDS.items()},
    )


def epoch(moment: str) -> float:
    """Seconds since 1970 of an ISO 8601 time as the store writes it."""
    return datetime.fromisoformat(moment).timestamp()
