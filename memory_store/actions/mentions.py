"""Unlinked mentions: memories whose text names another one by its title, without a link to it.

Boundary: candidates are found by keyed hashes of the title's words, as a phrase in quotes is, among
the collections that the key may read. Of them a bounded number is opened, the newest first; a
mention is what such a text says. Any member may have written names and texts: a name is of bounded
length, and the time to look for it grows with the length of a text alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import islice

import numpy as np
from msgspec import Struct

from memory_store.actions.action import Opened
from memory_store.actions.reads import open_all, shown
from memory_store.records import Linked, Memory, base_type
from memory_store.records.links import MENTION
from memory_store.session.names import aliases
from memory_store.text.identifiers import CODE
from memory_store.text.links import WIKI_LINK, sentence
from memory_store.text.tokens import is_stop_word
from memory_store.text.words import query_words
from memory_store.titles import shown_title

MOST_OPENED = 24  # candidates
MOST_NAMES = 6  # the title, and aliases
LONGEST = 1_000  # characters of a name, as of a title
SHORTEST = 4  # letters of a name of one word: a shorter one is said everywhere, and means nothing
WORD, BEHIND = re.compile(r"\S+"), re.compile(r"\w+|\W", re.DOTALL)


class Mentions(Struct, frozen=True):
    """Those that name it. How many were ``opened`` to see, and how many candidates ``left``."""

    found: tuple[Linked, ...] = ()
    opened: int = 0
    left: int = 0


def mentions(opened: Opened, memory: Memory, linked: Collection[str]) -> Mentions:
    """The memories that name ``memory`` in their text; those ``linked`` to it do so anyway."""
    from memory_store.actions.searches import context
    from memory_store.search.query.analysis import Blinding, holds
    from memory_store.search.query.language import Phrase

    vault = opened.vault
    names = {name: words for name in _names(memory) if (words := _words(name))}
    if not names:
        return Mentions()
    view = context(opened)
    snapshot, blinding = view.snapshot, Blinding(view)
    held = np.zeros(snapshot.size, np.bool_)
    for name, words in names.items():
        held |= holds(Phrase(name, words), view, blinding)
    held &= snapshot.visible(tuple(vault.keyring.openable()))
    codes = [n for n, one in enumerate(snapshot.types) if base_type(one) == CODE]
    ordinals = np.flatnonzero(held & ~np.isin(snapshot.type_codes, codes))
    ordinals = ordinals[np.argsort(-snapshot.created[ordinals], kind="stable")]
    ids = [one for one in snapshot.ids(ordinals) if one != memory.id and one not in linked]
    texts = shown(vault, open_all(vault, ids[:MOST_OPENED]))
    found = []
    for one in texts:
        if said := _said(names, one.text):
            title = shown_title(one.title, one.text)
            found.append(Linked(one.id, title, one.type, one.collection, MENTION, around=said))
    return Mentions(tuple(found), len(texts), max(0, len(ids) - MOST_OPENED))


def _names(memory: Memory) -> Iterator[str]:
    names = [memory.title, *aliases(memory.metadata)]
    named = (" ".join(name.split()) for name in names[:MOST_NAMES])
    yield from dict.fromkeys(name for name in named if 0 < len(name) <= LONGEST)


def _words(name: str) -> tuple[str, ...]:
    """The words of a name that may be looked for; none where it says too little."""
    words = tuple(word.text for word in query_words(name))
    if len(words) == 1 and (len(words[0]) < SHORTEST or is_stop_word(words[0], "en")):
        return ()
    return words


def _said(names: Collection[str], text: str) -> str:
    """The sentence that holds one of the names outside of any wiki link; empty where none does."""
    plain = WIKI_LINK.sub(lambda link: " " * len(link[0]), text)
    flat = _flat(plain)
    places = [place for name in names if (place := _place(_flat(name), flat)) is not None]
    if not places:
        return ""
    word = next(islice(WORD.finditer(plain), flat.count(" ", 0, min(places)), None))
    return sentence(text, word.start())


def _flat(text: str) -> str:
    return " ".join(text.split()).casefold()


def _place(name: str, text: str) -> int | None:
    """Where a name first stands as words of its own. Takes as long as the text, whatever they are:
    a search goes on behind the word that it began in."""
    place = text.find(name)
    while place >= 0:
        end = place + len(name)
        if not (_is_letter(text[place - 1 : place]) or _is_letter(text[end : end + 1])):
            return place
        place = text.find(name, BEHIND.match(text, place).end())  # type: ignore[union-attr]
    return None


def _is_letter(sign: str) -> bool:
    return sign.isalnum() or sign == "_"
