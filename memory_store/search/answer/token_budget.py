"""The token budget: a ceiling on the text of a page, kept by leaving results out, never by cutting.

A result that no longer fits is skipped and comes first on the next page. One that is larger than
the whole budget could never be shown: it is named with its size and does not come again, so that
following ``next`` always ends.

Boundary: reads what would be shown and counts it; keeps nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from memory_store.models.embedder import Embedder

ESTIMATE = "length / 4"
CHARACTERS_A_TOKEN = 4  # prx, "Budget Enforcement": its estimate where no tokenizer is loaded


class Spending(Struct, frozen=True):
    """What a budget buys of the results in order, as their indexes.

    ``taken`` together cost ``spent``; ``skipped`` do not fit beside them; ``too_large`` cost more
    than the whole budget.
    """

    taken: tuple[int, ...]
    skipped: tuple[int, ...] = ()
    too_large: tuple[int, ...] = ()
    spent: int = 0


def spend(costs: Sequence[int], budget: int | None) -> Spending:
    """Take results in order as long as they fit, passing over those that do not (prx)."""
    if budget is None:
        return Spending(tuple(range(len(costs))))
    taken, skipped, too_large = [], [], []
    spent = 0
    for index, cost in enumerate(costs):
        if cost > budget:
            too_large.append(index)
        elif spent + cost > budget:
            skipped.append(index)
        else:
            taken.append(index)
            spent += cost
    return Spending(tuple(taken), tuple(skipped), tuple(too_large), spent)


def token_counter(embedder: Embedder | None) -> tuple[str, Callable[[str], int]]:
    """How tokens are counted, and by what name: the loaded model's tokenizer, else by length."""
    if embedder is None:
        return ESTIMATE, estimated_tokens
    return embedder.name, embedder.count_tokens


def estimated_tokens(text: str) -> int:
    """Length ÷ 4, rounded up."""
    return -(-len(text) // CHARACTERS_A_TOKEN)
