"""The terms of files of code, counted: each distinct name is taken apart once for many files.

Boundary: works on plain text. A :class:`NameCounter` keeps the names that it has met in memory. Its
owner drops it when the files are read.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from memory_store.text.grams import distinct
from memory_store.text.identifiers import names_of, taken_apart
from memory_store.text.spelling import is_spelled

REMEMBERED = 200_000  # names, about 60 MB with what they are made of; then it begins anew

Numbers = npt.NDArray[np.uint32]
Places = npt.NDArray[np.intp]


class NameCounts(Struct, frozen=True, array_like=True):
    """The distinct ``terms`` of the names in a title and a text; the first ``spelled`` of them are
    words of a lexicon.

    ``titles`` and ``bodies`` say how often each is there. ``parts`` are the terms that the names
    are made of, in order, by their places; the first ``title_parts`` of them in the title. All
    three are uint32, as bytes.
    """

    terms: list[str]
    spelled: int
    titles: bytes
    bodies: bytes
    parts: bytes
    title_parts: int


class NameCounter:
    """Counts the names of one file after the other."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Forget all names."""
        self._names = _Numbered(self._take_apart)
        self._terms = _Numbered(self._take_term)
        self._spellings: list[str] = []
        self._is_spelled = bytearray()
        self._terms_of, self._parts_of = _Lists(), _Lists()
        self._place = np.empty(0, np.uint32)

    def _take_apart(self, name: str) -> None:
        terms, parts = taken_apart(name)
        self._terms_of.append([*map(self._terms.__getitem__, terms)])
        self._parts_of.append([*map(self._terms.__getitem__, parts)])

    def _take_term(self, term: str) -> None:
        self._spellings.append(term)
        self._is_spelled.append(is_spelled(term))

    def count(self, title: str, text: str) -> NameCounts:
        """The terms of a title's names, and of a text's."""
        if len(self._names) > REMEMBERED:
            self.forget()
        in_title, in_text = names_of(title), names_of(text)
        every, first = [*in_title, *in_text], len(in_title)
        names = np.fromiter(map(self._names.__getitem__, every), np.intp, len(every))
        terms, ends = self._terms_of.of(names)
        parts, part_ends = self._parts_of.of(names)
        there = distinct(terms)
        spelled = np.frombuffer(self._is_spelled, np.bool_)[there]
        there = np.concatenate((there[spelled], there[~spelled]))
        if len(self._place) < len(self._spellings):
            self._place = np.empty(2 * len(self._spellings), np.uint32)
        self._place[there] = np.arange(len(there))
        places, middle = self._place[terms], int(ends[first])
        titles, bodies = (
            np.bincount(some, minlength=len(there)).astype(np.uint32)
            for some in (places[:middle], places[middle:])
        )
        return NameCounts(
            [*map(self._spellings.__getitem__, there.tolist())],
            int(spelled.sum()),
            titles.tobytes(),
            bodies.tobytes(),
            self._place[parts].tobytes(),
            int(part_ends[first]),
        )


class _Numbered(dict[str, int]):
    """Texts numbered in the order in which they are first asked for; ``add`` is called for each."""

    def __init__(self, add: Callable[[str], None]) -> None:
        super().__init__()
        self._add = add

    def __missing__(self, text: str) -> int:
        self._add(text)
        number = self[text] = len(self)
        return number


class _Lists:
    """Lists of numbers, one behind the other."""

    def __init__(self) -> None:
        self._numbers, self._ends = array("I"), array("I", [0])

    def append(self, numbers: Sequence[int]) -> None:
        self._numbers.extend(numbers)
        self._ends.append(len(self._numbers))

    def of(self, which: Places) -> tuple[Numbers, Places]:
        """The numbers of some lists, one behind the other; and where each list begins, with the
        end of the last."""
        ends = np.frombuffer(self._ends, np.uint32)
        starts = ends[which].astype(np.intp)
        lengths = ends[which + 1] - starts
        begins = np.append(0, np.cumsum(lengths))
        places = np.repeat(starts - begins[:-1], lengths) + np.arange(begins[-1])
        return np.frombuffer(self._numbers, np.uint32)[places], begins
