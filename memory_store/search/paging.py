"""Paging: a short token is a place in one search, of the vault as the page before found it.

The token names the first memory that still waits: where it stands in the order, its score and a
tag of its id. As long as nothing changes, the next page starts there, and pages join to the whole
result. Where the vault changed, or what ranks it, the page goes on with that memory (were it gone,
at its place) or the first of a lower score, whichever stands higher: rather twice than not at all.
The answer says so.
A list by filters alone is ordered by time, which stands for the score.

Boundary: a token is sealed under the vault's key, for its search alone. Others can
neither read it nor make one; so it cannot ask for more work than a first page does.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict, astuple

from memory_store.errors import BadInputError, FormatError, TamperedError
from memory_store.records import SearchRequest
from memory_store.records.degraded import Code, Degraded

if TYPE_CHECKING:
    from memory_store.index.snapshot import Mask, Snapshot
    from memory_store.vault.page_keys import PageKeys

TOKEN = 99  # characters of a token
REACH = 72  # places after the first that waits, of which a token says whether they do
TAG_SHIFT = 32  # of an id's first 64 bits
CHANGED = Degraded(
    Code.CHANGED,
    "continue: the vault, or what ranks it, changed since the page before; this page goes on by "
    "score, so a memory may come twice or be left out. Search again for the whole",
)

MOST_CERTAIN = 0xFFFF  # results that a token counts

_PLACE = struct.Struct(">IHBIIId9s")

# What may differ between two pages of one search.
_FREE = frozenset({"query", "limit", "continue_", "explain", "why", "budget", "budget_ms"})

Order = Sequence[tuple[int, float]]
"""The ordinals of a result, best first, with what they are ordered by: the higher, the better."""


class Place(Struct, frozen=True):
    """Where a page begins, if not at the top.

    ``shown`` rows stood on the pages before, ``certain`` of them rather answers than not. The first
    page had at most ``limit``. The snapshot had this ``revision`` then. ``start``, ``tag`` and
    ``value`` are of the first memory that waits: its place in the order, from 0, a tag of its id,
    and what it is ordered by. Bit ``n`` of ``done`` says that the one ``n + 1`` places after it
    waits no more.
    """

    shown: int
    certain: int
    limit: int
    revision: int
    start: int
    tag: int
    value: float
    done: int = 0

    def waits(self, place: int) -> bool:
        """Whether what stands so many places after the first is still to come."""
        return place == 0 or not self.done >> (place - 1) & 1


def continue_place(keys: Callable[[], PageKeys], options: SearchRequest) -> Place | None:
    """Where this search goes on by its ``continue`` token; ``None`` at the top.

    Raises :class:`BadInputError` (parameter ``continue``) for a token that is damaged, or belongs
    to another query, other filters or another vault.
    """
    token = options.continue_
    if not token:
        return None
    refusal = BadInputError(
        "continue: this token is damaged or belongs to another search", parameter="continue"
    )
    if len(token) != TOKEN:
        raise refusal
    try:
        blob = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        return _unpacked(keys().unseal(_search(options), blob))
    except (binascii.Error, ValueError, struct.error, TamperedError, FormatError):
        raise refusal from None


def continue_token(keys: PageKeys, options: SearchRequest, place: Place) -> str:
    """The token that leads to ``place``."""
    sealed = keys.seal(_search(options), _packed(place))
    return base64.urlsafe_b64encode(sealed).decode().rstrip("=")


def coming(place: Place, snapshot: Snapshot, order: Order) -> tuple[list[int], bool]:
    """The places in ``order`` that are still to come, and whether nothing changed meanwhile."""
    same = place.revision == snapshot.revision and place.start < len(order)
    if same and id_tag(snapshot, order[place.start][0]) == place.tag:
        later = range(place.start, len(order))
        return [n for n in later if place.waits(n - place.start)], True
    here = _first(n for n, (one, _) in enumerate(order) if id_tag(snapshot, one) == place.tag)
    below = _first(n for n, (_, value) in enumerate(order) if value < place.value)
    start = place.start if here is None else here
    return list(range(start if below is None else min(start, below), len(order))), False


def not_yet_listed(place: Place, snapshot: Snapshot, mask: Mask) -> Mask:
    """``mask`` less what earlier pages of a list have shown, which is ordered by time and id."""
    left = mask & (snapshot.created <= place.value)
    ties = np.flatnonzero(left & (snapshot.created == place.value))
    left[ties[snapshot.id_words[ties, 0] >> TAG_SHIFT < place.tag]] = False
    return left


def id_tag(snapshot: Snapshot, ordinal: int) -> int:
    """The first 32 bits of a memory's id, which is random: they sort as ids do."""
    return int(snapshot.id_words[ordinal, 0]) >> TAG_SHIFT


def _first(places: Iterator[int]) -> int | None:
    return next(places, None)


def _packed(place: Place) -> bytes:
    """``place`` as bytes, always as many."""
    *numbers, done = astuple(place)
    return _PLACE.pack(*numbers, done.to_bytes(REACH // 8, "big"))


def _unpacked(content: bytes) -> Place:
    """The place that :func:`_packed` was given. Raises ``struct.error``."""
    shown, certain, limit, revision, start, tag, value, done = _PLACE.unpack(content)
    return Place(shown, certain, limit, revision, start, tag, value, int.from_bytes(done, "big"))


def _search(options: SearchRequest) -> str:
    """The name of a search: a digest of all that makes it another search. Never leaves here."""
    asked: Mapping[str, object] = {
        name: value for name, value in asdict(options).items() if name not in _FREE
    }
    text = json.dumps([options.query, asked], sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
