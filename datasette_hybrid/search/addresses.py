"""The addresses of searches: the same one with something more, something less, or something else.

Boundary: repeats what the asker asked. In a vault with private queries nothing of that goes into
an address; there, callers give nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import quote_plus, urlencode

from .forms import values


@dataclass(frozen=True)
class Asked:
    """A search as asked: at the search page's address ``base``, with the parameters ``given``.

    A page of ten results has a hundred addresses of nearly the same search: what they have in
    common is encoded once.
    """

    base: str
    given: Mapping[str, Any]
    _switched: dict[tuple[str, str], str] = field(default_factory=dict)

    @cached_property
    def pairs(self) -> list[tuple[str, str]]:
        """The search from its first page, as pairs of parameters."""
        return pairs_of(self.given, without=("continue",))

    @cached_property
    def _first_page(self) -> str:
        return urlencode(self.pairs)

    @cached_property
    def _memory(self) -> str:
        pairs = urlencode(pairs_of(self.given))
        return f"?{pairs}" if pairs else ""

    def memory(self, id_: str) -> str:
        """The page of a memory, which leads back here."""
        return f"{self.base}/memories/{id_}{self._memory}"

    def like(self, id_: str) -> str:
        """The search for others like one memory."""
        return f"{self.base}?like={quote_plus(id_)}"

    def switched(self, name: str, value: str) -> str:
        """The same search with one value of a parameter added or taken away."""
        pair = (name, value)
        if pair in self._switched:
            return self._switched[pair]
        if pair in self.pairs:
            there = address(self.base, [kept for kept in self.pairs if kept != pair])
        else:
            before = f"{self._first_page}&" if self.pairs else ""
            # a facet:value in two pieces, since a plain word takes a third as long
            quoted = "%3A".join(map(quote_plus, value.split(":")))
            there = f"{self.base}?{before}{quote_plus(name)}={quoted}"
        self._switched[pair] = there
        return there


def changed(given: Mapping[str, Any], path: str, **changes: str | None) -> str:
    """The address of the same search with parameters replaced, or removed (``None``)."""
    names = {name.rstrip("_"): value for name, value in changes.items()}
    pairs = pairs_of(given, without=tuple(names))
    pairs += [(name, value) for name, value in names.items() if value is not None]
    return address(path, pairs)


def address(path: str, pairs: Sequence[tuple[str, str]]) -> str:
    """A path with parameters, if there are any."""
    return f"{path}?{urlencode(pairs)}" if pairs else path


def pairs_of(given: Mapping[str, Any], without: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Parameters as name and value pairs, empty ones left out."""
    return [
        (name, value)
        for name in given
        if name not in without
        for value in values(given, name)
        if value
    ]
