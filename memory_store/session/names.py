"""What the memories of an opened vault are called, and which others they name.

Boundary: titles, paths and the targets of links, of the collections that the view may open. They
come from the index; the head of a memory is opened where the index does not have its names yet.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from memory_store.index.names import NAMES, Named
from memory_store.records import Memory
from memory_store.session.extras import rows
from memory_store.session.opened_vault import OpenVault
from memory_store.text.canonical import whole_characters
from memory_store.text.link_names import MARKDOWN, WIKI
from memory_store.vault.rows import open_head
from memory_store.vault.storage.table import parts

READ_AT_ONCE = 256  # heads
SAID = ("title", "source", "ref", "parent", "supersedes")
KINDS = (WIKI, MARKDOWN)
ALIASES = ("aliases", "alias")
MESSAGE_ID, REPLY_TO, ATTACHED_TO = "message_id", "reply_to", "attached_to"


def names_of_memory(memory: Memory, links: Mapping[str, Sequence[str]]) -> Named:
    """The names of a memory that holds those links."""
    said = {name: getattr(memory, name) for name in (*SAID, "metadata")}
    return _named({**said, "links": links})


def names_in(vault: OpenVault, collections: Collection[str]) -> Iterator[tuple[str, Named]]:
    """Id and names of every memory of some collections that the view may open.

    Raises TamperedError.
    """
    with vault.moment() as (_, known):
        openable = set(vault.keyring.openable()).intersection(collections)
        among = known.snapshot.visible(openable)
        ordinals = among.nonzero()[0]
        ids = dict(zip(ordinals.tolist(), known.snapshot.ids(ordinals), strict=True))
        for ordinal, one in names_among(vault, among):
            yield ids[ordinal], one


def names_among(vault: OpenVault, among: npt.NDArray[np.bool_]) -> Iterator[tuple[int, Named]]:
    """The same by document, of those ``among`` (bool [size]) the documents of the moment."""
    left = among.copy()
    with vault.moment() as (storage, known):
        for ordinal, one in rows(vault, known.snapshot, NAMES, among=among):
            left[ordinal] = False
            yield ordinal, one
        for some in parts(left.nonzero()[0].tolist(), READ_AT_ONCE):
            places = dict(zip(known.snapshot.ids(some), some, strict=True))
            for memory, row in storage.memories.rows([*places]).items():
                yield places[memory], _named(open_head(vault.keyring, row, known))


def _named(head: Mapping[str, Any]) -> Named:
    fields, links = head["metadata"], head.get("links") or {}
    return Named(
        **{name: whole_characters(head[name] or "") for name in SAID},
        aliases=[*map(whole_characters, aliases(fields))],
        links={
            kind: [*map(whole_characters, _texts(links[kind]))] for kind in KINDS if kind in links
        },
        message=_text(fields, MESSAGE_ID),
        answers=_text(fields, REPLY_TO),
        attached=_text(fields, ATTACHED_TO),
    )


def aliases(metadata: Mapping[str, Any]) -> Iterable[str]:
    """The other names that a note gives itself in its front matter."""
    for name in ALIASES:
        value = metadata.get(name)
        yield from _texts([value] if isinstance(value, str) else value)


def _texts(values: Any) -> list[str]:
    """The texts of a list: under the collection's key any member may have written it."""
    return [one for one in values if isinstance(one, str)] if isinstance(values, list) else []


def _text(fields: Mapping[str, Any], name: str) -> str:
    """A field that is a text; empty where it is none."""
    value = fields.get(name)
    return whole_characters(value.strip()) if isinstance(value, str) else ""
