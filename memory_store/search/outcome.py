"""The outcome: what the stages hand to the answer.

Boundary: holds opened memories for as long as the search takes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from memory_store.records import explanation
from memory_store.search.adjustments import Scored

if TYPE_CHECKING:
    from memory_store.index.snapshot import Mask
    from memory_store.models.embedder import Embedder
    from memory_store.search.answer.previews import Marker

Why = Callable[[Collection[str]], explanation.Verdict]
"""From the ids of the rows that are shown to what became of the memory asked about."""


class Page(Struct, frozen=True):
    """Where this page stands among the pages of its search.

    ``waiting`` are the ordinals that earlier pages have left (``None``: this is the first page, or
    a list); ``tried`` counts the memories opened so far for what only texts can show; ``listed``
    (bool [documents]) is all of a list by filters alone; ``conditional`` says that opened text
    decides what is an answer.
    """

    waiting: frozenset[int] | None = None
    tried: int = 0
    listed: Mask | None = None
    conditional: bool = False


class Outcome(Struct, frozen=True):
    """What the stages hand to the answer.

    ``rows`` are the page's opened results; ``ranking`` is the whole order as far as it is known,
    sealed rows and those of earlier pages included; ``refused`` are the ordinals in it that were
    opened and are no answers. ``found`` counts all candidates, ``reranked`` those a model read,
    ``opened`` those decrypted, ``tried`` those of them that no page before had opened, ``holding``
    the memories that hold a word of the query (``None``: not counted). ``nearest`` is what to say
    of rows that no word of the query led to. ``marker`` gives the highlighter for a row.
    """

    rows: tuple[Scored, ...]
    marker: Callable[[Scored], Marker]
    ranking: tuple[Scored, ...] = ()
    refused: frozenset[int] = frozenset()
    tried: int = 0
    found: int = 0
    opened: int = 0
    holding: int | None = None
    reranked: int = 0
    calibrated: bool = False
    degraded: tuple[str, ...] = ()
    nearest: str | None = None
    embedder: Embedder | None = None
    why: Why | None = None
    page: Page = Page()

    def completed(
        self,
        *,
        found: int,
        opened: int,
        holding: int | None,
        degraded: Sequence[str],
        nearest: str | None,
        embedder: Embedder | None,
        why: Why | None,
        page: Page,
    ) -> Outcome:
        """The outcome with what the stages before knew."""
        return replace(
            self,
            found=found,
            opened=opened,
            holding=holding,
            degraded=(*degraded, *self.degraded),
            nearest=nearest,
            embedder=embedder,
            why=why,
            page=page,
        )
