"""Grams: the stretches of three characters that a text holds, whatever their case.

Boundary: works on plain text and keeps none of it.

A text that holds another holds all of its grams. So the grams of what a pattern cannot do without
say which texts it may match (Cox 2012, "Regular Expression Matching with a Trigram Index").
Of scripts whose single characters say much, from Thai to Han, there are grams of one and of two
characters instead, for what people look for there is often no longer.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

DENSE = 0x0E00  # Thai; of what follows, a gram of one or two characters is seldom a common one
Number = TypeVar("Number", np.int32, np.uint32, np.uint64)
_BITS = np.uint64(21)  # of a character
_ASCII = np.uint64(0x7F)
FEW = 100  # characters that are replaced one after the other: a twentieth of the time


def fold(text: str) -> str:
    """``text`` in one case, character by character: what RE2 takes for the same letter, whatever
    its case, becomes the same character."""
    if text.isascii():
        return text.lower()
    folding = {c: f for c in set(text) if (f := _folded(c)) != c}
    if len(folding) > FEW:
        return text.translate({ord(c): f for c, f in folding.items()})
    for character, folded in folding.items():
        text = text.replace(character, folded)
    return text


def _folded(character: str) -> str:
    """Full case folding where it is one character, else the small letter (ẞ is ß)."""
    for folded in (character.casefold(), character.lower()):
        if len(folded) == 1:
            return folded
    return character


def distinct(numbers: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """The distinct numbers, ascending; sorting is the fastest way to them."""
    found = np.sort(numbers)
    new = np.ones(len(found), np.bool_)
    np.not_equal(found[1:], found[:-1], out=new[1:])
    kept: npt.NDArray[Number] = found[new]
    return kept


def _of_ascii(text: str) -> npt.NDArray[np.uint64]:
    """The same of letters of 7 bits: three fit into the numbers that are sorted fastest."""
    codes = np.frombuffer(text.encode(), np.uint8).astype(np.uint32)
    triples = (codes[:-2] << 14) | (codes[1:-1] << 7) | codes[2:]
    found = distinct(triples.astype(np.uint32)).astype(np.uint64)
    first, second, third = found >> np.uint64(14), (found >> np.uint64(7)) & _ASCII, found & _ASCII
    numbers: npt.NDArray[np.uint64] = (first << (_BITS + _BITS)) | (second << _BITS) | third
    return numbers


def grams(text: str) -> npt.NDArray[np.uint64]:
    """The distinct grams of a text as numbers: its characters, 21 bits each."""
    if text.isascii():
        return _of_ascii(text.lower())
    encoded = fold(text).encode("utf-32-le", "surrogatepass")
    codes = np.frombuffer(encoded, "<u4").astype(np.uint64)
    dense = codes >= DENSE
    pairs, both = (codes[:-1] << _BITS) | codes[1:], dense[:-1] & dense[1:]
    triples, all_three = (pairs[:-1] << _BITS) | codes[2:], both[:-1] & both[1:]
    return distinct(np.concatenate((codes[dense], pairs[both], triples[~all_three])))
