"""What the index keeps of a file of source code besides words: its outline.

Boundary: opened text comes in, names and lines go out. They are sealed with the segment.
"""

from __future__ import annotations

from memory_store.code.blame import changes_in
from memory_store.code.descriptions import descriptions
from memory_store.code.languages import language_of_name
from memory_store.code.symbols import symbols_of
from memory_store.index.outlines import Outline
from memory_store.records import Memory, base_type
from memory_store.text.canonical import whole_characters
from memory_store.text.identifiers import CODE


def outline_of(memory: Memory) -> Outline:
    """The outline of a memory: an empty one where it is no source code."""
    if base_type(memory.type) != CODE:
        return Outline()
    path = memory.ref or memory.title or memory.id
    said = whole_characters(str(memory.metadata.get("language") or ""))
    written_in = said or language_of_name(path) or "text"
    symbols, changes = symbols_of(memory.text, written_in), changes_in(memory.metadata)
    return Outline(
        path,
        memory.source or "",
        written_in,
        symbols,
        tuple(dict.fromkeys(one.author for one in changes)),
        max((one.date for one in changes), default=""),
        descriptions(memory.text, symbols.definitions),
    )
