"""What the index takes from a file of source code before any key is used.

Boundary: opened text comes in; names, lines and stretches of it go out, plain until they are keyed
or sealed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Raw, Struct, msgpack
from msgspec.structs import replace

from memory_store.code.facts import facts
from memory_store.records import Memory
from memory_store.session.outlines import outline_of
from memory_store.text.canonical import whole_characters
from memory_store.text.grams import grams
from memory_store.text.name_counts import NameCounter, NameCounts


class SourceParts(Struct, frozen=True, array_like=True):
    """The record of a file's outline, encoded as it is kept; the names in it; the numbers of its
    grams, uint64; and its facts, by kind."""

    outline: Raw
    names: NameCounts
    grams: bytes
    facts: Mapping[str, Sequence[str]]


PartsOf = Callable[[Memory], SourceParts]


def source_parts(memory: Memory, counter: NameCounter | None = None) -> SourceParts:
    """The parts of a file. A ``counter`` knows the names of the files before."""
    whole = whole_memory(memory)
    return SourceParts(
        Raw(msgpack.encode(outline_of(whole))),
        (counter or NameCounter()).count(memory.title, memory.text),
        gram_numbers(whole).tobytes(),
        facts(memory.text, memory.ref),
    )


def whole_memory(memory: Memory) -> Memory:
    """The memory as records are made of it: earlier versions let halves of surrogate pairs in."""
    said = {
        name: whole_characters(text)
        for name in ("title", "text", "source", "ref")
        if (text := getattr(memory, name))
    }
    return replace(memory, **said)


def gram_numbers(memory: Memory) -> npt.NDArray[np.uint64]:
    """The grams of its title, and those of its text."""
    return np.concatenate([grams(memory.title), grams(memory.text)])
