"""Each filter and hard condition by itself: what it alone lets through.

A search works with one mask for all of them; only an account of it asks which of them it was.

Boundary: sees the query's words and keyed hashes, like :mod:`memory_store.search.query.analysis`.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from msgspec import Struct

from memory_store.index.snapshot import Filters, Mask
from memory_store.records import SearchRequest
from memory_store.search.context import SearchContext
from memory_store.search.facets.selection import narrowing
from memory_store.search.query.analysis import Blinding, filters, holds
from memory_store.search.query.language import ParsedQuery, Phrase


class Restriction(Struct, frozen=True):
    """One filter or condition: its ``kind``, its ``name`` as one types it, its ``mask``."""

    kind: str
    name: str
    mask: Mask

    def refusal(self, context: SearchContext, ordinal: int) -> str:
        """Why it leaves a document out, in words about that document."""
        snapshot = context.snapshot
        if self.kind == "collection":
            id_ = snapshot.collection(ordinal)
            return f"it is in the collection {context.collection_names.get(id_, id_)}"
        if self.kind == "type":
            return f"its type is {snapshot.type(ordinal)}"
        if self.kind == "status":
            return f"it is {'done' if snapshot.done[ordinal] else 'open'}"
        if self.kind in ("since", "until"):
            return f"it is from {datetime.fromtimestamp(snapshot.created[ordinal], UTC):%Y-%m-%d}"
        return _LACKS[self.kind]


_LACKS = {
    "topic": "it does not carry this topic",
    "narrow": "it is nothing of that kind",
    "word": "it does not hold this word",
    "phrase": "it does not hold these words side by side",
    "excluded": "it holds what is excluded",
}


def restrictions(
    parsed: ParsedQuery, context: SearchContext, options: SearchRequest
) -> list[Restriction]:
    """The filters and conditions of a search, one by one, in the order they are listed in."""
    return list(_each(parsed, context, options))


def _each(
    parsed: ParsedQuery, context: SearchContext, options: SearchRequest
) -> Iterator[Restriction]:
    blinding = Blinding(context)
    asked = filters(parsed, context, options, blinding)
    mask = context.snapshot.mask
    if asked.collections is not None:
        name = f"in:{_any_of(parsed.collections)}"
        yield Restriction("collection", name, mask(Filters(collections=asked.collections)))
    if asked.types:
        yield Restriction("type", f"type:{_any_of(asked.types)}", mask(Filters(types=asked.types)))
    for name, group in zip(parsed.topics, asked.topics_any, strict=True):
        yield Restriction("topic", f"topic:{_quoted(name)}", mask(Filters(topics_any=(group,))))
    if asked.status != "all":
        yield Restriction("status", f"status:{asked.status}", mask(Filters(status=asked.status)))
    if asked.since is not None:
        yield Restriction("since", f"since:{parsed.since}", mask(Filters(since=asked.since)))
    if asked.until is not None:
        yield Restriction("until", f"until:{parsed.until}", mask(Filters(until=asked.until)))
    for name in options.narrow:
        kept = narrowing(context, (name,))
        if kept is not None:
            yield Restriction(
                "narrow", f"narrow={_quoted(name)}", kept.mask & context.snapshot.alive
            )
    for phrase in parsed.required:
        kind = "word" if len(phrase.words) == 1 else "phrase"
        held = holds(phrase, context, blinding) & context.snapshot.alive
        yield Restriction(kind, f'"{phrase.text}"', held)
    for phrase in parsed.excluded:
        held = holds(phrase, context, blinding)
        yield Restriction("excluded", _minus(phrase), ~held & context.snapshot.alive)


def _minus(phrase: Phrase) -> str:
    return f"-{_quoted(phrase.text)}"


def _any_of(names: tuple[str, ...]) -> str:
    return " or ".join(map(_quoted, names))


def _quoted(text: str) -> str:
    return f'"{text}"' if any(character.isspace() for character in text) else text
