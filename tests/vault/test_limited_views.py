"""A view of some collections is closed by default: what it allows is written down, and why."""

from __future__ import annotations

import pytest

from memory_store.errors import BadInputError, OutsideLimitsError
from memory_store.scopes import Scope
from memory_store.session.whole_vault import WholeVault
from memory_store.store import MemoryStore
from memory_store.vault.keyring import WholeKeyring

PUBLIC = "the same for every caller, and nothing about a collection"
ITS_OWN = "made of its own collections alone"
CHECKED = "done by the whole vault, for its own collections alone"
SEALED = "rows and tags that only a key opens"
LIMITS = "says what is limited"

OPEN_OF_A_VAULT = {
    "path": PUBLIC,
    "access": PUBLIC,
    "vault": PUBLIC,
    "older": PUBLIC,
    "first_warning": PUBLIC,
    "index_loaded": PUBLIC,
    "gate": "counts threads: a lock waits for this view, too",
    "expansions": "answers to questions, found by the whole question; no memory is in them",
    "kept_vectors": "vectors of what is deleted, on their way into the sealed trash",
    "trashed": "keyed tags of contents, looked up in collections that may be opened alone",
    "likenesses": "ids and cosines, kept apart for each choice of collections that may be opened",
    "keyring": ITS_OWN,
    "settings": ITS_OWN,
    "settings_in": ITS_OWN,
    "refresh_settings": ITS_OWN,
    "follow_settings": ITS_OWN,
    "collections": ITS_OWN,
    "snapshot": ITS_OWN,
    "link_graph": ITS_OWN,
    "moment": "sealed rows, and row tags of all of them: opening one needs its key",
    "looked_at": "as at a moment: sealed rows, and row tags of the snapshot that it is given",
    "reader": SEALED,
    "writing": SEALED,
    "row_tags": SEALED,
    "adopt_model": "the model that a writer of these collections brings, where there is none yet",
    "forget_earlier_models": "names of models that no vector comes from any more",
    "add_collection": "a new collection, which is in this view from then on",
    "edit_collection": CHECKED,
    "limited_to": "a view of fewer collections",
    "whole_vault": "refused, in words",
    "limits": LIMITS,
    "limited": LIMITS,
    "creating": LIMITS,
    "asker": LIMITS,
    "unnamed": LIMITS,
    "discloses": LIMITS,
    "lock": "does nothing: the vault is locked where it was opened",
}

OPEN_OF_A_KEYRING = {
    "vault": PUBLIC,
    "principal": PUBLIC,
    "is_owner": PUBLIC,
    "strict": PUBLIC,
    "locked": PUBLIC,
    "check_open": PUBLIC,
    "counter": "counts what was decrypted, in this view and elsewhere; opens nothing",
    "collections": ITS_OWN,
    "of": ITS_OWN,
    "readable": ITS_OWN,
    "openable": ITS_OWN,
    "catch_up": "the whole keyring looks at the file; this one takes its own of that",
    "follow": ITS_OWN,
    "extend": "a collection that was made through this view",
    "discloses": LIMITS,
}


@pytest.fixture
def view(store: MemoryStore) -> MemoryStore:
    for name in ("work", "diary"):
        store.add(f"the pump of {name}", collection=name)
    return store.limited_to(Scope.of([store.collections.find("work")]))


def test_what_a_limited_view_allows_is_listed(store: MemoryStore, view: MemoryStore) -> None:
    assert _public(view._opened.vault) == set(OPEN_OF_A_VAULT)
    assert _public(store._opened.vault) > set(OPEN_OF_A_VAULT)
    assert _public(view._opened.vault.keyring) == set(OPEN_OF_A_KEYRING)


def test_what_is_new_in_the_whole_is_refused_by_a_view(
    view: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = view._opened.vault
    for whole, limited in ((WholeVault, vault), (WholeKeyring, vault.keyring)):
        monkeypatch.setattr(whole, "everything", lambda self: "all of it", raising=False)
        monkeypatch.setattr(whole, "a_value", "all of it", raising=False)
        for name in ("everything", "a_value"):
            with pytest.raises(OutsideLimitsError, match=r"some (of its )?collections"):
                getattr(limited, name)


def test_what_is_of_the_whole_vault_is_refused_by_a_view(
    store: MemoryStore, view: MemoryStore
) -> None:
    whole, limited = store._opened.vault, view._opened.vault
    closed = _public(whole) - set(OPEN_OF_A_VAULT)
    assert {"index", "change_settings", "stored_settings", "keep_audit", "accept_older"} <= closed
    closed_keys = _public(whole.keyring) - set(OPEN_OF_A_KEYRING)
    assert {"root", "slot_key", "wrapped", "replace_root", "wipe", "admit"} <= closed_keys
    for one, names in ((limited, closed), (limited.keyring, closed_keys)):
        for name in names:
            with pytest.raises(BadInputError):
                getattr(one, name)


def _public(one: object) -> set[str]:
    """The names of a class, or of an object and its class, that are for others to use."""
    kind = one if isinstance(one, type) else type(one)
    names = {*vars(kind), *(getattr(one, "__dict__", {}) if one is not kind else ())}
    return {name for name in names if not name.startswith("_")}
