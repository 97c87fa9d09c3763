"""Writes that begin anew where another writer was quicker, and the older memories that end by them.

Boundary: opens an older memory only where the writer may read it; of others nothing is said.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TypeVar

from msgspec.structs import replace

from memory_store.actions.reads import open_all
from memory_store.errors import ConflictError
from memory_store.importing import drafts
from memory_store.records import Memory
from memory_store.session.opened_vault import OpenVault

TRIES = 32  # writers that may be quicker, one after another, before a change gives up
PAUSES = (0.004, 0.064)  # seconds before the second try at most, about what one takes, and later

Answer = TypeVar("Answer")


class SettledConflictError(ConflictError):
    """A conflict that trying again would not change."""


def again_if_overtaken(vault: OpenVault, attempt: Callable[[], Answer]) -> Answer:
    """Try again when another writer was quicker: on top of what it wrote, or to be refused.

    A writer that was overtaken keeps this process's other writers waiting until the next try is
    over, and begins it at a moment of its own: two in step would overtake each other for ever.
    """
    for tried in range(TRIES - 1):
        try:
            with vault.writing() if tried else nullcontext():
                return attempt()
        except SettledConflictError as error:
            raise ConflictError(str(error), error.ids) from None
        except ConflictError:
            first, longest = PAUSES
            time.sleep(random.uniform(0, min(longest, first * 2**tried)))
    with vault.writing():
        return attempt()


def with_succession(vault: OpenVault, memories: Sequence[Memory]) -> list[Memory]:
    """New memories, and behind them the next versions of those that they supersede.

    A superseded memory is valid until its successor begins, and names it. One that is not there,
    or that the writer may not read, stays as it is.
    """
    successors = {one.supersedes: one for one in memories if one.supersedes}
    if not successors:
        return [*memories]
    own = {one.id for one in memories}
    rows = vault.reader().memories.rows([one for one in successors if one not in own])
    openable = set(vault.keyring.openable())
    known = [
        one
        for one, row in rows.items()
        if row.collection in openable and vault.discloses(row.collection)
    ]
    new = [_ended(one, successors.get(one.id)) for one in memories]
    older = [(one, _ended(one, successors[one.id])) for one in open_all(vault, known)]
    return [*new, *(drafts.next_version(after) for before, after in older if after != before)]


def _ended(memory: Memory, successor: Memory | None) -> Memory:
    """A memory that its successor ends; as it is where it had ended by then, or has none."""
    if successor is None or successor.id == memory.id:
        return memory
    begins = successor.valid_from or successor.created
    ends = min(filter(None, (memory.valid_to, begins)))
    return replace(memory, valid_to=ends, superseded_by=successor.id)
