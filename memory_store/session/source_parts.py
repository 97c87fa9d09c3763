"""What the index takes from a file of source code before any key is used.

Boundary: opened text comes in; names, lines and stretches of it go out, plain until they are keyed
or sealed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Raw, Struct, msgpack
from msgspec.structs import replace

from memory_store.code.facts import facts
from memory_store.index.lexicon import Spelled
from memory_store.records import Memory
from memory_store.session.outlines import outline_of
from memory_store.text.canonical import whole_characters
from memory_store.text.grams import grams
from memory_store.text.identifiers import names_of
from memory_store.text.spelling import spelled_names

Names = Sequence[Sequence[str]]
"""The names in a memory's title, and those in its text."""


class SourceParts(Struct, frozen=True, array_like=True):
    """The records of a file's outline and of its names as spelled, encoded as they are kept; the
    numbers of its grams, uint64; and its facts, by kind."""

    outline: Raw
    spelled: Raw
    grams: bytes
    facts: Mapping[str, Sequence[str]]


def names_in(memory: Memory) -> Names:
    """The names that a memory holds, in order."""
    return [names_of(text) for text in (memory.title, memory.text)]


def source_parts(memory: Memory, names: Names) -> SourceParts:
    """The parts of a file whose :func:`names_in` are known."""
    whole = whole_memory(memory)
    return SourceParts(
        Raw(msgpack.encode(outline_of(whole))),
        Raw(msgpack.encode(Spelled([*spelled_names(name for part in names for name in part)]))),
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
