"""Paging: an opaque token holds what is still to come of a search, whatever is written meanwhile.

The first page settles which memories the search is about: its pool. The token names those that
still wait and those that were shown, so the pages after it show the ones that wait, best first.
A memory added in between is for the next search; one that was edited keeps waiting as long as
the filters and conditions let it through; one that was deleted is gone. A list by filters alone
has no pool: its token says how far down the list was read, and what was left out above.

Boundary: a token is sealed under the vault's key, for its search alone. Others can
neither read it nor make one; so it cannot ask for more work than a first page does.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import asdict

from memory_store.errors import BadInputError, FormatError, TamperedError
from memory_store.records import SearchRequest

if TYPE_CHECKING:
    from memory_store.index.snapshot import Mask, Snapshot
    from memory_store.vault.page_keys import PageKeys

MOST_MEMBERS = 1_024  # of a pool in a token. The usual 64 make 520 characters, 256 make 1,900
MOST_TOKEN = 8_192  # characters: a longer one is none of ours, and is not decoded

_VERSION = 3
_HEAD = struct.Struct(">BIIHH?")
_AFTER = struct.Struct(">dQQ")
_TAG_BYTES = 5  # 40 bits, see ID_TAG_BITS

# What may differ between two pages of one search.
_FREE = frozenset({"query", "limit", "continue_", "explain", "why", "budget", "budget_ms"})


class Place(Struct, frozen=True):
    """Where a page begins, if not at the top.

    ``shown`` rows stood on the pages before; ``tried`` memories were opened for them to look at
    what only text can show; of a pattern so many are still to be tried. ``waiting`` and ``done``
    are the 40-bit tags of the pool's memories; in a list, of what was left out above ``after``: the
    last one looked at, by what a list is sorted by (``created``, newest first, and the halves of
    the id).
    """

    shown: int
    tried: int = 0
    waiting: tuple[int, ...] = ()
    done: tuple[int, ...] = ()
    after: tuple[float, int, int] | None = None


class Members(Struct, frozen=True):
    """The memories of a place that are still there, as ordinals of the present snapshot."""

    waiting: frozenset[int]
    done: frozenset[int]


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
    if len(token) > MOST_TOKEN:
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


def members(
    place: Place, keys: PageKeys, snapshot: Snapshot, mask: Mask, likely: Sequence[int] = ()
) -> Members:
    """Those of ``place`` that ``mask`` (bool [documents]) lets through today.

    The ``likely`` ordinals are looked at first, and all others only when that is not enough.
    """
    wanted = {*place.waiting, *place.done}
    first = np.array([o for o in likely if mask[o]], dtype=np.intp)
    ordinals = _tagged(wanted, keys, snapshot, first)
    if len(ordinals) < len(wanted):
        ordinals |= _tagged(wanted - set(ordinals), keys, snapshot, np.flatnonzero(mask))
    return Members(
        frozenset(ordinals[tag] for tag in place.waiting if tag in ordinals),
        frozenset(ordinals[tag] for tag in place.done if tag in ordinals),
    )


def _tagged(
    wanted: set[int], keys: PageKeys, snapshot: Snapshot, among: npt.NDArray[np.intp]
) -> dict[int, int]:
    """Tag → ordinal ``among`` some, for the ``wanted`` tags."""
    if not wanted or not len(among):
        return {}
    sought = np.array(sorted(wanted), dtype=np.uint64)
    tags = keys.tags(snapshot.id_words[among])
    nearest = np.minimum(np.searchsorted(sought, tags), len(sought) - 1)
    found = sought[nearest] == tags
    return dict(zip(tags[found].tolist(), among[found].tolist(), strict=True))


def not_yet_listed(place: Place, keys: PageKeys, snapshot: Snapshot, mask: Mask) -> Mask:
    """``mask`` less what earlier pages of a list have shown."""
    left = np.zeros_like(mask)
    left[list(members(place, keys, snapshot, mask).waiting)] = True
    if place.after is not None:
        age, high, low = place.after
        ages, highs, lows = -snapshot.created, snapshot.id_words[:, 0], snapshot.id_words[:, 1]
        later_id = (highs > high) | ((highs == high) & (lows > low))
        left |= (ages > age) | ((ages == age) & later_id)
    return mask & left


def following(
    place: Place | None,
    keys: PageKeys,
    snapshot: Snapshot,
    *,
    shown: int,
    tried: int,
    pool: Sequence[int],
    waiting: Sequence[int],
    listing: bool,
    untried: int = 0,
) -> Place | None:
    """The place after a page that showed ``shown`` rows; ``None`` when nothing waits.

    ``pool`` are the ordinals of the page's search, best first, ``waiting`` those of them that are
    still to come. ``untried`` are the candidates of a pattern that later pages try. What does not
    fit a token (after :data:`MOST_MEMBERS`) is let go.
    """
    before = place.shown if place is not None else 0
    if not waiting:
        return Place(before + shown, untried) if untried else None
    still = set(waiting)
    if listing:
        looked_at = [_in_list(snapshot, o) for o in pool if o not in still]
        if place is not None and place.after is not None:
            looked_at.append(place.after)
        after = max(looked_at, default=None)
        above = [o for o in waiting if after is not None and _in_list(snapshot, o) < after]
        return Place(before + shown, tried, _tags(keys, snapshot, above), after=after)
    kept = list(waiting)[:MOST_MEMBERS]
    done = [o for o in pool if o not in still][: MOST_MEMBERS - len(kept)]
    tags = _tags(keys, snapshot, [*kept, *done])
    return Place(before + shown, untried or tried, tags[: len(kept)], tags[len(kept) :])


def _in_list(snapshot: Snapshot, ordinal: int) -> tuple[float, int, int]:
    """What a list, newest first, is sorted by."""
    high, low = snapshot.id_words[ordinal].tolist()
    return -float(snapshot.created[ordinal]), high, low


def _tags(keys: PageKeys, snapshot: Snapshot, ordinals: Sequence[int]) -> tuple[int, ...]:
    return tuple(keys.tags(snapshot.id_words[list(ordinals)]).tolist()) if ordinals else ()


def _packed(place: Place) -> bytes:
    """``place`` as bytes, the same number for a flag and five for a tag."""
    head = _HEAD.pack(
        _VERSION,
        place.shown,
        place.tried,
        len(place.waiting),
        len(place.done),
        place.after is not None,
    )
    after = _AFTER.pack(*place.after) if place.after is not None else b""
    tags = b"".join(tag.to_bytes(_TAG_BYTES, "big") for tag in (*place.waiting, *place.done))
    return head + after + tags


def _unpacked(content: bytes) -> Place:
    """The place that :func:`_packed` was given. Raises ``ValueError`` or ``struct.error``."""
    version, shown, tried, waiting, done, listing = _HEAD.unpack_from(content)
    if version != _VERSION:
        raise ValueError("a token of another version")
    rest = content[_HEAD.size :]
    after: tuple[float, int, int] | None = None
    if listing:
        after, rest = _AFTER.unpack_from(rest), rest[_AFTER.size :]
    if len(rest) != (waiting + done) * _TAG_BYTES:
        raise ValueError("a token of another length")
    tags = [
        int.from_bytes(rest[start : start + _TAG_BYTES], "big")
        for start in range(0, len(rest), _TAG_BYTES)
    ]
    return Place(shown, tried, tuple(tags[:waiting]), tuple(tags[waiting:]), after)


def _search(options: SearchRequest) -> str:
    """The name of a search: a digest of all that makes it another search. Never leaves here."""
    asked: Mapping[str, object] = {
        name: value for name, value in asdict(options).items() if name not in _FREE
    }
    text = json.dumps([options.query, asked], sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
