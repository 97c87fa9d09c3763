"""The memories that an import wrote, as its page lists them.

Boundary: opens heads (and of memories without a title, texts) of a page of a list, for a caller
who may read them. What they may not read is counted, and so is what is there no longer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from memory_store.host import Scope, shown_title

from ..search.forms import last
from ..vaults.vault import Vault

AT_ONCE = 100  # on one page; to open their heads takes about 10 ms


@dataclass(frozen=True)
class Listed:
    """A page of the list: ids and titles from the ``first`` on, which is counted from 1.

    ``missing`` of them are gone, or not the reader's. ``known`` is how many ids there are in all
    pages; ``before`` and ``behind`` are the first numbers of the pages next to this one.
    """

    first: int
    memories: Sequence[tuple[str, str]]
    missing: int
    known: int

    @property
    def before(self) -> int | None:
        return max(1, self.first - AT_ONCE) if self.first > 1 else None

    @property
    def behind(self) -> int | None:
        behind = self.first + AT_ONCE
        return behind if behind <= self.known else None


def place_in(given: Mapping[str, Any]) -> int:
    """The number to begin with: ``from`` in the address, and 1 where that is no number."""
    said = last(given, "from")
    return int(said) if said.isascii() and said.isdigit() and 0 < len(said) < 7 else 1


def listed(vault: Vault, scope: Scope, ids: Sequence[str], first: int) -> Listed:
    """A page of the memories of those ids that are in ``scope``. Work for a thread."""
    page = ids[first - 1 : first - 1 + AT_ONCE]
    store = vault.use(scope)
    heads = store.heads(page)
    untitled = [head.content for head in heads.values() if not head.title.strip()]
    texts = store.texts(untitled) if untitled else {}
    memories = []
    for id_ in page:
        if id_ in heads:
            _, text = texts.get(heads[id_].content, ("", ""))
            memories.append((id_, shown_title(heads[id_].title, text) or "Untitled"))
    return Listed(first, memories, len(page) - len(memories), len(ids))
