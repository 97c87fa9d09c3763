"""A vault: its file, and once it is open what it holds, by collection.

Boundary: shows counts and the names of collections to the holder of a key, never a text.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from memory_store.addresses import is_address
from memory_store.configuration import typed_vault
from memory_store.doctor.installation import Check, State
from memory_store.errors import MemoryStoreError, ModelError, ModelUnavailableError
from memory_store.key_lookup import has_passphrase
from memory_store.search.degraded import read_it
from memory_store.text.identifiers import CODE

if TYPE_CHECKING:
    from memory_store.actions.key_devices import DeviceKey
    from memory_store.records import CollectionInfo
    from memory_store.store import MemoryStore


def vault(path: Path, store: MemoryStore | None, key: Check | None = None) -> list[Check]:
    """The file, and the opened store behind it when there is one; ``key`` says what was given."""
    from memory_store.vault.storage.schema import check_is_vault

    try:
        check_is_vault(path)
    except MemoryStoreError as error:
        remedy = f"memory-store init{typed_vault(path)}" if not path.exists() else ""
        return [Check("vault", "missing", str(error), "nothing to search", remedy)]
    mode = () if is_address(path) else (_file_mode(path),)
    checks = [Check("vault", "ok", str(path.resolve())), *mode, *_device_keys(path)]
    if store is not None:
        return [*checks, *_opened(path, store)]
    return [*checks, _locked(path, key)]


def _locked(path: Path, key: Check | None) -> Check:
    """A passphrase that was not given is nothing that is missing."""
    effect = "what the vault holds was not examined"
    if not has_passphrase(path):
        return Check("unlocked", "missing", "no key fits", effect, "give --key-file PATH")
    remedy = f"memory-store doctor{typed_vault(path)} --passphrase"
    if key is not None and key.state == "ok":
        return Check("unlocked", "missing", "the key given does not fit", effect, remedy)
    return Check("unlocked", "off", "no passphrase was given", effect, remedy)


def _file_mode(path: Path) -> Check:
    mode = path.stat().st_mode & 0o777
    if os.name == "posix" and mode & 0o022:
        detail = f"{mode:04o}: others may write to the vault"
        effect = "changes are detected, destruction is not prevented"
        return Check("file mode", "missing", detail, effect, f"chmod go-w {path}")
    return Check("file mode", "ok", f"{mode:04o}")


def _device_keys(path: Path) -> list[Check]:
    """Whether this machine has the device keys that passphrases need, and another way to them."""
    from memory_store.store import MemoryStore

    try:
        return [_device_key(path, one) for one in MemoryStore.device_keys(path)]
    except MemoryStoreError as error:
        return [Check("device key", "missing", str(error), "passphrases may not open it here")]


def _device_key(path: Path, one: DeviceKey) -> Check:
    whose = "the owner's" if one.owner else "a member's"
    name, detail = "device key", f"{whose}, {one.id[:8]}"
    if not one.here:
        state: State = "missing" if one.owner else "off"
        effect = f"{whose} passphrase opens nothing on this machine"
        vault = typed_vault(path)
        remedy = f"memory-store keys device import{vault} FILE, or keys device restore{vault}"
        return Check(name, state, f"{detail}: not on this machine", effect, remedy)
    if not one.otherwise:
        effect = "if this machine is lost, and you exported it nowhere, so is the vault"
        remedy = f"memory-store keys add{typed_vault(path)} --recovery"
        return Check(name, "missing", f"{detail}: no other key leads to it", effect, remedy)
    return Check(name, "ok", f"{detail}, in {one.path}")


def _opened(path: Path, store: MemoryStore) -> list[Check]:
    stats = store.stats()
    memories, vectors = stats["memories"], stats["vectors"]
    counted = (
        f"{store.profile} profile, memories: {memories:,}, collections: {stats['collections']:,}"
    )
    checks = [
        Check("unlocked", "ok", counted),
        _topics(store),
        _lexicon(store),
        Check("vector index", "ok", str(stats["vector_index"])),
        *_environment_model(stats["model"], path),
    ]
    stale = store.collections.stale()
    collections = store.collections.list()
    for info in collections:
        checks.append(_collection(store, info, stale.get(info.name, 0)))
    if vectors < memories:
        lacking = "no memory has" if not vectors else "some memories have not"
        effect = "not found by meaning"
        remedy = f"memory-store reindex{typed_vault(path)}"
        checks.append(Check("vectors", "missing", f"{lacking} been embedded", effect, remedy))
    elif memories:
        made_by = dict.fromkeys(info.embedder for info in collections if info.memories)
        names = " and ".join(filter(None, made_by))
        checks.append(Check("vectors", "ok", f"{vectors:,}, made with {names}"))
    else:
        checks.append(Check("vectors", "ok", "none needed yet"))
    return [*checks, *_languages(store, collections)]


def _languages(store: MemoryStore, collections: Iterable[CollectionInfo]) -> list[Check]:
    """Whether the model of each collection reads what its memories are written in."""
    from memory_store.models.readability import reads, unread_languages, unsuited_languages
    from memory_store.text.language import LANGUAGE_NAMES

    written, checks, read = store.collections.languages(), [], Counter[str]()
    for info in collections:
        try:
            model = store.embedder(info.id)
        except ModelError:
            continue  # said beside the model
        counts = written[info.id]
        prose = {one: count for one, count in counts.items() if one != CODE}
        unread, unsuited = unread_languages(model, counts), unsuited_languages(model, prose)
        read.update({one: count for one, count in counts.items() if one not in unsuited})
        if not (unread or unsuited):
            continue
        remedy = read_it(typed_vault(store.path), [info.name] if len(written) > 1 else [])
        if unread:
            detail = f"collection {info.name}: {model.name} does not read {' or '.join(unread)}"
            effect = "found by words, hardly by meaning"
            checks.append(Check("languages", "missing", detail, effect, remedy))
        partly = [LANGUAGE_NAMES.get(one, one) for one in unsuited if reads(model, one)]
        if partly:
            detail = f"collection {info.name}: {model.name} was not made for {' or '.join(partly)}"
            effect = "less of it is found by meaning than could be"
            checks.append(Check("languages", "off", detail, effect, remedy))
    if checks or not read:
        return checks
    spoken = " ".join(language for language, _ in read.most_common())
    return [Check("languages", "ok", f"read by the embedding model: {spoken}")]


def _lexicon(store: MemoryStore) -> Check:
    """Whether the words of every memory are there as spelled."""
    lacking = store.incomplete("lexicon")
    if not lacking:
        return Check("lexicon", "ok", "the words of every memory, as spelled")
    detail = f"memories of before there was one: {lacking:,}"
    effect = "a slip is not corrected to their words, and those are not offered while you type"
    remedy = f"memory-store reindex{typed_vault(store.path)}, or unlock: it is added meanwhile"
    return Check("lexicon", "missing", detail, effect, remedy)


def _topics(store: MemoryStore) -> Check:
    """Where topics are kept, and whether a change of that is on its way."""
    found = store.settings()
    kept = {"table": "hashed in the file", "memory": "in memory"}[found.topics]
    if not found.topics_unfinished:
        return Check("topics", "ok", kept)
    effect = {"table": "topic_hash() is null", "memory": "the file still holds hashes of topics"}
    remedy = f"memory-store settings{typed_vault(store.path)} topics {found.topics}"
    return Check("topics", "missing", f"not yet all {kept}", effect[found.topics], remedy)


def _environment_model(kept: str | None, path: Path) -> list[Check]:
    """Whether the environment names another model than this vault's vectors come from."""
    from memory_store.configuration import chosen
    from memory_store.models.places import chosen_embedder, locate_embedder
    from memory_store.paths import MODEL_VARIABLE

    named = chosen(MODEL_VARIABLE)
    if not named or not kept:
        return []
    try:
        place = locate_embedder(named)
    except ModelUnavailableError:
        place = None
    name = place.name if place is not None else chosen_embedder(named)
    if name == kept:
        return []
    detail = f"{MODEL_VARIABLE} names {name}; the vectors of this vault come from {kept}"
    effect = f"{kept} is used; reindex would make {name} the vault's model"
    remedy = f"unset {MODEL_VARIABLE}, or memory-store reindex{typed_vault(path)}"
    return [Check("environment", "off", detail, effect, remedy)]


def _collection(store: MemoryStore, info: CollectionInfo, stale: int) -> Check:
    """A collection's model and analyser, whether the model loads, and what is stale."""
    name = f"collection {info.name}"
    model = info.embedder or "none yet"
    whose = "its own" if info.own_model else "the vault's"
    detail = f"analyser {info.analyser}, model {model} ({whose}), memories: {info.memories:,}"
    if info.own_model and (missing := _missing_model(store, info)):
        effect = "this collection is not searched by meaning"
        remedy = f"set MEMORY_STORE_MODEL to the folder of {model}, or copy it into models/"
        return Check(name, "missing", f"{detail}; {missing}", effect, remedy)
    if stale:
        effect = f"{stale:,} of its memories are indexed with earlier settings"
        remedy = f"memory-store reindex{typed_vault(store.path)}"
        return Check(name, "missing", detail, effect, remedy)
    return Check(name, "ok", detail)


def _missing_model(store: MemoryStore, info: CollectionInfo) -> str:
    """Why a collection's own model does not load; empty when it does."""
    from memory_store.models.offline import can_build
    from memory_store.models.places import chosen_embedder, locate_embedder

    try:
        wanted = store.embedder_name(info.id)
        place = locate_embedder(wanted)  # before it is loaded: loading may build or fetch it
    except ModelUnavailableError as error:
        return str(error)
    if place is None:
        buildable = can_build(chosen_embedder(wanted))
        return "" if buildable else f"{wanted} is not on this machine"
    return "; ".join(store.model_state(info.id).degraded)
