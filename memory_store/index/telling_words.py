"""Telling words: frequent in some documents, and rare in the others.

Boundary: reads lexicons, which hold words in plain. What comes out are numbers: where a word stands
in which lexicon, so that what is kept of it is wiped with the lexicon.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from memory_store.index.lexicon import Lexicon
from memory_store.index.meanings import lowest
from memory_store.index.snapshot import Part, Snapshot
from memory_store.text.tokens import is_stop_word, term

SAMPLE = 200  # documents of a group that are looked at
LEAST, LEAST_SHARE = 2, 0.08  # documents that hold a telling word, and of how many
SHORTEST = 3  # letters
LOOKED_AT = 8  # times as many words as are wanted: some say the same, or nothing

WordPlace = tuple[int, int]
"""The number of a lexicon, and the place of the word in it."""


def telling_words(
    snapshot: Snapshot,
    lexicons: Sequence[tuple[Part, Lexicon]],
    groups: Sequence[npt.NDArray[np.intp]],
    most: int,
) -> list[tuple[WordPlace, ...]]:
    """At most so many words for each group of documents, the most telling first.

    By how much each adds to the difference between a group and all groups: p × log(p ÷ q), where p
    is the share of the group's documents that hold it, q that of all groups'.
    """
    sampled = [lowest(snapshot, group, SAMPLE) for group in groups]
    label = np.full(snapshot.size, -1, np.intp)
    for number, some in enumerate(sampled):
        label[some] = number
    words, counts = _counted(lexicons, label, len(groups))
    sizes = np.array([len(some) for some in sampled], dtype=float)
    weights = np.array([len(group) for group in groups], dtype=float)
    share = counts / np.maximum(1, sizes)
    usual = share @ weights / max(1.0, weights.sum())
    with np.errstate(divide="ignore", invalid="ignore"):
        telling = np.where(counts > 0, share * np.log(share / usual[:, None]), 0.0)
    telling[counts < np.maximum(LEAST, LEAST_SHARE * sizes)] = 0
    found = []
    for number, some in enumerate(sampled):
        scores = telling[:, number]
        order = np.argsort(-scores, kind="stable")[: LOOKED_AT * most]
        language = _language(snapshot, some)
        found.append(_distinct(words, order[scores[order] > 0], language, most, lexicons))
    words.fill(b"")
    return found


def word_at(lexicons: Sequence[tuple[Part, Lexicon]], place: WordPlace) -> str:
    """The word that stands there."""
    number, at = place
    return bytes(lexicons[number][1].words[at]).decode("utf-8", "replace")


def _counted(
    lexicons: Sequence[tuple[Part, Lexicon]], label: npt.NDArray[np.intp], groups: int
) -> tuple[npt.NDArray[np.bytes_], npt.NDArray[np.float64]]:
    """The words of labelled documents, ascending, and how many of each group hold them."""
    names = [np.array([], dtype="S1")]
    rows = [np.zeros((0, groups))]
    for part, lexicon in lexicons:
        held = label[part.span][lexicon.docs]
        owners = np.repeat(np.arange(len(lexicon.words)), np.diff(lexicon.offsets))
        chosen = held >= 0
        present, places = np.unique(owners[chosen], return_inverse=True)
        pairs = np.bincount(places * groups + held[chosen], minlength=len(present) * groups)
        names.append(lexicon.words[present])
        rows.append(pairs.reshape(len(present), groups).astype(float))
    joined = np.concatenate(names)
    words, places = np.unique(joined, return_inverse=True)
    joined.fill(b"")
    counts = np.zeros((len(words), groups))
    np.add.at(counts, places, np.concatenate(rows))
    return words, counts


def _language(snapshot: Snapshot, ordinals: npt.NDArray[np.intp]) -> str:
    codes = np.bincount(snapshot.language_codes[ordinals])
    return snapshot.languages[int(codes.argmax())] if len(codes) else ""


def _distinct(
    words: npt.NDArray[np.bytes_],
    order: npt.NDArray[np.intp],
    language: str,
    most: int,
    lexicons: Sequence[tuple[Part, Lexicon]],
) -> tuple[WordPlace, ...]:
    """Of words in an order the first that say something, one of each stem."""
    stems: set[str] = set()
    found = []
    for word in words[order].tolist():
        spelled = word.decode("utf-8", "replace")
        stem = term(spelled, language)
        says = len(spelled) >= SHORTEST and not any(map(str.isdigit, spelled))
        if not says or stem in stems or is_stop_word(spelled, language):
            continue
        stems.add(stem)
        found.append(
            next(
                (number, place)
                for number, (_, lexicon) in enumerate(lexicons)
                if (place := lexicon.place(word)) is not None
            )
        )
        if len(found) == most:
            break
    return tuple(found)
