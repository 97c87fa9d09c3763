"""Settings on several devices: what was chosen last counts.

Boundary: they travel sealed, as memories do. What one copy alone can answer for stays with it: its
models, which another machine may not have; its key slots, and with whom collections are shared;
whether its file holds hashes of topics; and feeds, whose addresses are those of one server.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from msgspec import MsgspecError, msgpack
from msgspec.structs import replace

from memory_store.actions.sync.copy import Copy
from memory_store.errors import FormatError
from memory_store.records import SavedSearch
from memory_store.records.fusion import FittedFusion
from memory_store.vault.settings import Settings
from memory_store.vault.sync_state import Chosen, not_ahead
from memory_store.vault.trash import KEPT_DAYS

TRASH, SEARCH, RANKING = "trash", "search", "ranking"
"""What the name of a setting begins with; behind it whose it is, and of what."""


def agree_settings(copy: Copy, sent: Mapping[str, Chosen] = {}) -> None:
    """Notice what was chosen here since the last time, and take what was chosen later elsewhere.

    Raises FormatError for what is no such setting; nothing is taken then.
    """
    vault, now = copy.vault, time.time_ns() // 1_000_000
    sent = {name: not_ahead(one, now) for name, one in sent.items()}
    with vault.writing() as storage, storage.transaction(vault.keyring):
        known = vault.stored_settings(storage)
        noted = _noted(known, copy.state.settings)
        agreed = {
            name: max(noted.get(name, Chosen()), sent.get(name, Chosen()), key=lambda one: one.rank)
            for name in sorted(noted.keys() | sent.keys())
        }
        state = replace(copy.state, settings=agreed)
        if state == copy.state:
            return
        changes = {
            name: value
            for name, value in _changes(known, agreed).items()
            if getattr(known, name) != value
        }
        if changes:
            vault.change_settings(storage, present=known, **changes)
        copy.write(storage, state)
    copy.wrote(state)


def _noted(settings: Settings, before: Mapping[str, Chosen]) -> dict[str, Chosen]:
    """What is known of each setting, once what stands here is."""
    here, now = _values(settings), time.time_ns() // 1_000_000
    noted = dict(before)
    for name in before.keys() | here.keys():
        was, value = before.get(name, Chosen()), here.get(name, b"")
        if value != was.value:
            noted[name] = Chosen(value, max(now, was.time + 1))
    return noted


def _values(settings: Settings) -> dict[str, bytes]:
    """Name → value of what was chosen; what stands as it does in a new vault was not."""
    found = {_name(one): msgpack.encode(replace(one, feed="")) for one in settings.searches}
    found |= {_name(one): msgpack.encode(one) for one in settings.rankings}
    if settings.trash != KEPT_DAYS:
        found[TRASH] = msgpack.encode(settings.trash)
    return found


def _name(one: SavedSearch | FittedFusion) -> str:
    said = [RANKING, one.model] if isinstance(one, FittedFusion) else [SEARCH, one.owner, one.name]
    return "\0".join(said)


def _changes(settings: Settings, agreed: Mapping[str, Chosen]) -> dict[str, Any]:
    """The settings that follow from what was agreed on."""
    feeds = {_name(one): one.feed for one in settings.searches}
    searches, rankings, days = dict[str, SavedSearch](), list[FittedFusion](), KEPT_DAYS
    for name, one in sorted(agreed.items(), key=lambda each: each[1].rank):
        if not one.value:
            continue
        kind = name.partition("\0")[0]
        if kind == TRASH:
            days = _read(name, one.value, int)
        elif kind == SEARCH:
            search = _read(name, one.value, SavedSearch)  # the later one, where two renamed it
            searches[search.id] = replace(search, feed=feeds.get(name, ""))
        elif kind == RANKING:
            rankings.append(_read(name, one.value, FittedFusion))
    return {
        "trash": days,
        "searches": tuple(sorted(searches.values(), key=lambda one: one.created)),
        "rankings": tuple(sorted(rankings, key=lambda one: one.day)),
    }


def _read(name: str, value: bytes, kind: type[Any]) -> Any:
    try:
        found = msgpack.decode(value, type=kind)
    except MsgspecError:
        found = None
    right = found >= 0 if kind is int and found is not None else found and _name(found) == name
    if not right:
        raise FormatError("a setting came that is nothing this version reads")
    return found
