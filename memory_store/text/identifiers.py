"""Identifier terms: what keyword search counts in code.

Boundary: works on plain text. The names that it has taken apart are kept until a vault is locked
(:func:`forget_names`), as the words of other texts are.

Code is no prose: ``initialize`` and ``initial`` are two things, and ``getHTTPResponse`` is one name
made of three words. So nothing is stemmed and no accent is removed; a name counts whole and by its
parts, in lower case: ``gethttpresponse, get, http, response`` (prx, "Compound identifier
tokenization"). Where prx leaves it open: digits belong to the letters before them (``utf8``,
``sha256Sum`` → ``sha256``, ``sum``), a plural of capitals is one part (``parseURLs`` → ``urls``),
and a hyphen ends a name, as it does in most programming languages.

Measured on the files of Flask (45 queries of the prx benchmark, keywords alone, nDCG@10): as prose
.470, as names .470; queries for a symbol .436 and .454, for a meaning .544 and .535.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from itertools import chain, pairwise
from pathlib import PurePosixPath

from memory_store.text.canonical import folded
from memory_store.text.words import Word, marks_inside, unspaced_letter, words

CODE = "code"
"""The pseudo-language of code: it stands where the others have their ISO 639-1 code."""

FILE_STEM_TIMES = 2  # prx, "Content enrichment": "The file stem, repeated twice"
DIRECTORIES = 3  # and "The last 3 directory components of the file path"

_CACHE_LIMIT = 100_000  # distinct names, about 30 MB: those of a large repository

_ASCII_PART = re.compile(  # as _begins_part has it
    r"(?<=[^A-Z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z](?:[a-rt-z]|s[a-z]))"
)
_ASCII_RUN = re.compile(r"\w+", re.ASCII)
_ASCII_NAME = re.compile(r"(?<!\w)_*[A-Za-z0-9]\w*", re.ASCII)  # no name begins inside a run


def identifiers(text: str) -> list[Word]:
    """The names in ``text`` in order, spelled as they are: letters, digits and ``_`` in a row.

    A run that holds letters of a script without spaces gives the words of that script instead.
    """
    if text.isascii():
        return [Word(match[0], *match.span()) for match in _ASCII_NAME.finditer(text)]
    found: list[Word] = []
    for match in _name_pattern().finditer(text):
        if unspaced_letter().search(match[0]):
            start = match.start()
            found.extend(Word(w.text, start + w.start, start + w.end) for w in words(match[0]))
        elif match[0].strip("_"):
            found.append(Word(match[0], *match.span()))
    return found


@cache
def _name_pattern() -> re.Pattern[str]:
    return re.compile(rf"\w[\w{marks_inside()}]*")


def names_of(text: str) -> list[str]:
    """The :func:`identifiers` as they are spelled."""
    if text.isascii():
        return [run for run in _ASCII_RUN.findall(text) if run.strip("_")]
    runs = _name_pattern().findall(text)
    names = {run: [name.text for name in identifiers(run)] for run in set(runs)}
    return [name for run in runs for name in names[run]]


@lru_cache(_CACHE_LIMIT)
def name_terms(name: str) -> tuple[str, ...]:
    """A name in lower case, followed by its parts if it has any but itself.

    Of a name in both spellings, ``test_getUser``, what stands between ``_`` counts too: elsewhere
    that is a word, and a pattern may ask for it.
    """
    return tuple(taken_apart(name)[0])


def name_parts(name: str) -> tuple[str, ...]:
    """The words that a name is made of, in lower case: split at ``_`` and where case changes."""
    return tuple(taken_apart(name)[1])


def taken_apart(name: str) -> tuple[list[str], list[str]]:
    """The :func:`name_terms` and the :func:`name_parts` of a name, of which it remembers nothing.
    Each part is one of the terms."""
    if name.islower() and name.isascii():  # most are: case changes nowhere
        pieces = [*filter(None, name.split("_"))]
        return ([name] if pieces == [name] else [name, *pieces]), pieces
    whole = folded(name)
    terms, every = [whole], []
    for piece in filter(None, name.split("_")):
        parts = [folded(part) for part in _camel_parts(piece)]
        if len(parts) > 1 and (inner := folded(piece)) != whole:
            terms.append(inner)
        if parts != [whole]:
            terms += parts
        every += parts
    return terms, every


forget_names = name_terms.cache_clear
"""Empties the cache that holds names of opened texts."""


def whole_name(word: str) -> str:
    """The term of a word of a query: a name in lower case, of ``user's`` the longest one."""
    return folded(max(names_of(word), key=len, default=word))


def code_terms(text: str) -> list[str]:
    """The terms of ``text`` in order: every name, followed by its parts. Nothing is left out."""
    return [*chain.from_iterable(map(name_terms, names_of(text)))]


def code_words(text: str) -> list[str]:
    """The parts of all names in order, without the names: what decides a quoted phrase."""
    return [*chain.from_iterable(map(name_parts, names_of(text)))]


def file_name(ref: str | None) -> str:
    """The name of the file that a record is named after, without its folders; empty where ``ref``
    is no path of a file: an id, a row, an address."""
    path, _, _ = (ref or "").replace("\\", "/").partition("#")
    name = PurePosixPath(path)
    return name.name if name.suffix[1:].isalnum() and "://" not in path else ""


def path_terms(source: str | None, ref: str | None) -> list[str]:
    """What a file's place says of its content: its stem twice, its last three folders once.

    ``ref`` is the record's name in ``source``, its path within the imported folder; ``[]``
    without one.
    """
    if not ref:
        return []
    path = PurePosixPath((source or "").replace("\\", "/"), ref.replace("\\", "/"))
    folders = [name for name in path.parts[:-1] if name.strip("/.")][-DIRECTORIES:]
    return [
        term for name in (*[path.stem] * FILE_STEM_TIMES, *folders) for term in code_terms(name)
    ]


def _camel_parts(piece: str) -> list[str]:
    if piece.islower() or (piece.isupper() and piece.isalpha()):
        return [piece]
    if piece.isascii():
        return _ASCII_PART.split(piece)
    cuts = [i for i in range(1, len(piece)) if _begins_part(piece, i)]
    return [piece[a:b] for a, b in pairwise([0, *cuts, len(piece)])]


def _begins_part(piece: str, i: int) -> bool:
    """Whether a part begins at ``i``: a capital after none, or before small letters of its own."""
    if not piece[i].isupper():
        return False
    if not piece[i - 1].isupper():
        return True
    after = piece[i + 1 : i + 3]
    plural = after[:1] == "s" and not after[1:].islower()  # URLs, parseIDsOf
    return after[:1].islower() and not plural
