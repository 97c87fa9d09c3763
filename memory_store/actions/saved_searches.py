"""Searches that are kept under a name, each of one actor, and the tokens of their feeds.

Boundary: names and queries are plain text here, and sealed in the vault's settings, which the owner
of the vault alone writes. Of a feed's token only the SHA-256 is kept: it is shown once, and opens
that feed alone. Who may ask for whose searches is decided before.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from memory_store.actions.action import Opened, action
from memory_store.dates import format_time
from memory_store.errors import BadInputError, ConflictError, NotFoundError
from memory_store.records import HOLDER, SavedSearch, SearchRequest
from memory_store.session.whole_vault import WholeVault
from memory_store.text.canonical import canonical_text

MOST_OF_ONE = 50
MOST = 500  # of one vault: its settings are read each time it is opened
SHARE = 8  # an actor may have one for every eight places left, so that a few leave room for all
LONGEST_NAME = 100  # characters
LONGEST = 4_096  # bytes of one search as JSON
TOKEN_BYTES = 32
OF_ONE_ANSWER = ("continue", "explain", "why")
"""What a search is asked once, and is not kept."""


@action(None, writes=False)
def listed(opened: Opened, owner: str | None = None) -> list[SavedSearch]:
    """An actor's saved searches by name; without an ``owner`` those of all.

    Raises BadInputError for a part of a vault or a key that is not the owner's.
    """
    found = [one for one in _all(opened) if owner in (None, one.owner)]
    return sorted(found, key=lambda one: (one.name.casefold(), one.owner))


@action(None, writes=False)
def find(opened: Opened, owner: str, named: str) -> SavedSearch:
    """An actor's saved search by its name or id. Raises NotFoundError."""
    return _found(_all(opened), owner, named)


@action(None, writes=True)
def save(opened: Opened, owner: str, name: str, request: SearchRequest) -> SavedSearch:
    """Keep a search under a name that the actor has for no other.

    Raises BadInputError for a name or a search that cannot be kept, ConflictError for a name that
    is taken, ReadOnlyError.
    """
    if not request.asks:
        raise BadInputError("search: it asks for nothing: give a query or a filter", "search")
    search = {
        key: value
        for key, value in to_builtins(request).items()
        if key not in OF_ONE_ANSWER and value != _USUAL[key]
    }
    if request.meta:
        search["meta"] = [f"{key}={value}" for key, value in request.meta]
    if len(json.dumps(search)) > LONGEST:
        raise BadInputError(f"search: longer than {LONGEST:,} bytes; it cannot be saved", "search")
    created = format_time(datetime.now(UTC))
    made = SavedSearch(str(uuid.uuid4()), _name(name), owner, search, created)

    def added(present: tuple[SavedSearch, ...]) -> tuple[SavedSearch, ...]:
        _refuse_taken(present, made)
        _refuse_more(owner, [one.owner for one in present])
        return (*present, made)

    _change(opened, added)
    return made


@action(None, writes=True)
def rename(opened: Opened, owner: str, named: str, name: str) -> SavedSearch:
    """Give a saved search another name. Raises NotFoundError, and what saving raises."""
    return _edit(opened, owner, named, name=_name(name))


@action(None, writes=True)
def remove(opened: Opened, owner: str, named: str) -> SavedSearch:
    """Forget a saved search; its feed ends. Raises NotFoundError, ReadOnlyError."""
    gone: list[SavedSearch] = []

    def without(present: tuple[SavedSearch, ...]) -> tuple[SavedSearch, ...]:
        gone[:] = [_found(present, owner, named)]
        return tuple(one for one in present if one.id != gone[0].id)

    _change(opened, without)
    return gone[0]


@action(None, writes=True)
def make_feed(opened: Opened, owner: str, named: str) -> tuple[SavedSearch, str]:
    """A new token for the feed of a saved search; the one before ends.

    It is returned this once. Raises NotFoundError, ReadOnlyError.
    """
    token = secrets.token_urlsafe(TOKEN_BYTES)
    return _edit(opened, owner, named, feed=_digest(token)), token


@action(None, writes=True)
def end_feed(opened: Opened, owner: str, named: str) -> SavedSearch:
    """End the feed of a saved search. Raises NotFoundError, ReadOnlyError."""
    return _edit(opened, owner, named, feed="")


@action(None, writes=False)
def of_feed(opened: Opened, id: str, token: str) -> SavedSearch | None:
    """The saved search whose feed a token opens; ``None`` where it opens none of that id."""
    for one in _all(opened):
        if one.id == id and is_token(one.feed, token):
            return one
    return None


@action(None, writes=False)
def feeds(opened: Opened) -> dict[str, str]:
    """What is kept of each feed's token, by the id of its search: see :func:`is_token`."""
    return {one.id: one.feed for one in _all(opened) if one.feed}


def is_token(kept: str, token: str) -> bool:
    """Whether a token is the one of which this is ``kept``; none is where nothing is."""
    return bool(kept) and hmac.compare_digest(kept, _digest(token))


_USUAL = to_builtins(SearchRequest())


def _all(opened: Opened) -> tuple[SavedSearch, ...]:
    vault = opened.vault.whole_vault()
    vault.keyring.check_owner()
    vault.follow_settings()
    return vault.settings.searches


def _edit(opened: Opened, owner: str, named: str, **changes: Any) -> SavedSearch:
    edited: list[SavedSearch] = []

    def changed(present: tuple[SavedSearch, ...]) -> tuple[SavedSearch, ...]:
        found = _found(present, owner, named)
        edited[:] = [replace(found, **changes)]
        _refuse_taken([one for one in present if one.id != found.id], edited[0])
        return tuple(edited[0] if one.id == found.id else one for one in present)

    _change(opened, changed)
    return edited[0]


def _change(opened: Opened, change: Any) -> None:
    vault: WholeVault = opened.vault.whole_vault()
    vault.keyring.check_owner()
    with vault.writing() as storage, storage.transaction(vault.keyring):
        known = vault.stored_settings(storage)
        vault.change_settings(storage, present=known, searches=change(known.searches))


def _found(present: Any, owner: str, named: str) -> SavedSearch:
    for one in present:
        if one.owner == owner and named in (one.id, one.name):
            return one  # type: ignore[no-any-return]
    raise NotFoundError(f"no saved search {named!r}")


def _refuse_more(owner: str, owners: Sequence[str]) -> None:
    """Raises BadInputError where an actor has as many as they may. The key holder has a place for
    each of their own, however many others have."""
    own, most = owners.count(owner), MOST_OF_ONE
    if owner != HOLDER:
        left = MOST - MOST_OF_ONE - (len(owners) - owners.count(HOLDER))
        most = min(MOST_OF_ONE, max(left // SHARE, int(left > 0)))
    if own >= most:
        crowd = "" if most == MOST_OF_ONE else ", for this vault keeps many of other people"
        raise BadInputError(
            f"you may keep {max(own, most)} saved searches{crowd}: remove one first"
            if own
            else f"this vault keeps {MOST - MOST_OF_ONE} saved searches, and no more",
            "name",
        )


def _refuse_taken(present: Any, wanted: SavedSearch) -> None:
    if any((one.owner, one.name) == (wanted.owner, wanted.name) for one in present):
        raise ConflictError(f"name: there is a saved search {wanted.name!r} already")


def _name(given: str) -> str:
    name = " ".join(canonical_text(given).split())
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        raise BadInputError(f"name: 1 to {LONGEST_NAME} characters expected", "name")
    return name


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
