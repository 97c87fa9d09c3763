"""Every public action says which event of the audit trail it is, or that it is none."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from pathlib import Path
from typing import Any

import pytest

from memory_store.actions.action import Declared, action
from memory_store.addresses import is_address
from memory_store.errors import MemoryStoreError, ReadOnlyError
from memory_store.importing.job import ImportJob, ImportRequest
from memory_store.records import MemoryChange, MemoryDraft, search_request
from memory_store.session import unlock
from memory_store.sqlite import FileAccess
from memory_store.store import Code, Collections, Keys, MemoryStore, Review, Searches, Trail, Trash
from memory_store.vault.audit_events import ACTIONS, FAILED_UNLOCK, IMPORT, LOCK, UNLOCK
from memory_store.vault.storage.file_access import file_access

PASSPHRASE = "seven words that stand in no dictionary"

PARTS = (MemoryStore, Code, Collections, Keys, Review, Searches, Trail, Trash)
PREFIXES = ("", "code.", "collections.", "keys.", "review.", "searches.", "trail.", "trash.")

NO_ACTIONS = {
    *("create", "in_memory", "open", "join", "open_copy"),  # the caller's events: it knows why
    *("lock", "close"),
    *("introduce", "device_keys", "import_device_key"),  # need no key of the vault
    *(
        "apart",
        "limited_to",
        "on_behalf_of",
        "report_to",
        "embedded_by",
        "search_through",
    ),  # make no use of the vault
    *("lend", "serve_shard"),  # to processes of our own, which are asked in the name of a search
    "ask",  # made of a search, and of `found_again` for what it found
}
"""Methods of the store that are no actions, each for its reason."""

BY_ITS_CALLER = {UNLOCK, FAILED_UNLOCK, LOCK, IMPORT}


def methods(part: type) -> dict[str, Any]:
    public = [name for name in dir(part) if not name.startswith("_")]
    found = {name: getattr(part, name) for name in public}
    return {name: one for name, one in found.items() if callable(one)}


def declarations(part: type) -> dict[str, Declared]:
    kept = {name: one for name, one in methods(part).items() if name not in _exempt(part)}
    return {name: one.declared for name, one in kept.items()}


def _exempt(part: type) -> set[str]:
    return NO_ACTIONS if part is MemoryStore else set()


@pytest.mark.parametrize("part", PARTS)
def test_every_public_action_names_its_event_or_says_that_it_has_none(part: type) -> None:
    undeclared = {name for name, one in methods(part).items() if not hasattr(one, "declared")}
    assert undeclared == _exempt(part)
    assert {one.event for one in declarations(part).values()} <= {None, *ACTIONS}


def test_every_event_comes_from_an_action_or_from_a_caller_who_knows_more() -> None:
    named = {one.event for part in PARTS for one in declarations(part).values()}
    assert named - {None} == set(ACTIONS) - BY_ITS_CALLER


def test_what_writes_memories_or_members_has_an_event() -> None:
    silent = {
        name
        for part in (MemoryStore, Collections, Trash)
        for name, one in declarations(part).items()
        if one.writes and one.event is None
    }
    assert silent == {
        "import_paths",
        "run_import",
        "edit_source",
        "forget_source",
        "watch",
        "embed_missing",
        "change_model",
        "reindex",
        "set_ranking",
        "set_topics",
    }


def test_an_action_says_both() -> None:
    for missing in ({}, {"event": None}, {"writes": True}):
        with pytest.raises(TypeError):
            action(**missing)  # type: ignore[arg-type]


def test_the_trail_learns_of_an_action_under_any_name(store: MemoryStore) -> None:
    heard: list[tuple[str, int, int]] = []

    class Renamed(MemoryStore):
        fetch = MemoryStore.get

    kept = store.add("The spare key is under the stone.")
    renamed = Renamed.__new__(Renamed)
    renamed._opened = store._opened
    store.report_to(lambda *event: heard.append(event))
    assert renamed.fetch(kept.id) == store.get(kept.id)
    assert heard == [("read", 1, 1)] * 2


def test_a_refused_action_is_no_event(store: MemoryStore) -> None:
    heard: list[object] = []
    store.report_to(lambda *event: heard.append(event))
    with pytest.raises(MemoryStoreError):
        store.get("no such memory")
    assert heard == []


def calls(store: MemoryStore, ids: dict[str, str], path: Path) -> dict[str, Callable[[], Any]]:
    """A call for every action that writes, each of which has something to write there."""
    draft, edit = MemoryDraft("The weir is closed."), MemoryChange(ids["note"], title="Other")
    shared, keys = store.collections, store.keys
    return {
        "add": lambda: store.add("more"),
        "add_many": lambda: store.add_many([draft]),
        "add_once": lambda: store.add_once([draft]),
        "edit": lambda: store.edit(ids["note"], title="Other"),
        "edit_many": lambda: store.edit_many([edit]),
        "supersede": lambda: store.supersede(ids["note"], "The weir is open."),
        "done": lambda: store.done(ids["task"]),
        "reopen": lambda: store.reopen(ids["task_done"]),
        "publish": lambda: store.publish(ids["note"], "work"),
        "delete": lambda: store.delete(ids["note"]),
        "delete_many": lambda: store.delete_many([ids["note"]]),
        "import_paths": lambda: store.import_paths(path),
        "run_import": lambda: store.run_import(ImportJob(request=ImportRequest.of_paths(path))),
        "forget_source": lambda: store.forget_source(str(path.parent / "source")),
        "edit_source": lambda: store.edit_source(str(path.parent / "source"), glob=["*.md"]),
        "watch": lambda: store.watch(path),
        "embed_missing": store.embed_missing,
        "change_model": store.change_model,
        "reindex": lambda: store.reindex(whole=True),
        "set_topics": lambda: store.set_topics("memory"),
        "set_ranking": lambda: store.set_ranking(None),
        "set_trash": lambda: store.set_trash(7),
        "undo": store.undo,
        "undo_all_of": lambda: store.undo_all_of("helper"),
        "searches.save": lambda: store.searches.save("root", "more", search_request("weir")),
        "searches.rename": lambda: store.searches.rename("root", "kept", "weirs"),
        "searches.make_feed": lambda: store.searches.make_feed("root", "kept"),
        "searches.end_feed": lambda: store.searches.end_feed("root", "kept"),
        "searches.remove": lambda: store.searches.remove("root", "kept"),
        "collections.create": lambda: shared.create("mill"),
        "collections.set": lambda: shared.set("work", analyser="de"),
        "collections.rename": lambda: shared.rename("work", "job"),
        "collections.delete": lambda: shared.delete("work"),
        "collections.change_members": lambda: shared.change_members("work", {"ada": "owner"}),
        "collections.open": lambda: shared.open("work"),
        "keys.add": lambda: keys.add(key_file=path.parent / "more" / "a.key"),
        "keys.add_recovery_code": keys.add_recovery_code,
        "keys.add_device": lambda: keys.add_device(PASSPHRASE),
        "keys.identity": keys.identity,
        "keys.remove": lambda: keys.remove(keys.list()[-1].id),
        "keys.revoke": lambda: keys.revoke("Grace"),
        "keys.rotate": keys.rotate,
        "keys.rotate_root": keys.rotate_root,
        "keys.share": lambda: keys.share("work", "Grace"),
        "trail.keep": lambda: store.trail.keep([], days=0, most=1),
        "review.keep": lambda: store.review.keep(ids["note"], ids["task"]),
        "review.merge": lambda: store.review.merge(ids["note"], ids["task"]),
        "review.supersede": lambda: store.review.supersede(ids["note"], ids["task"]),
        "sync_with_folder": lambda: store.sync_with_folder(path.parent),
        "sync_with_copy": lambda: store.sync_with_copy(store),
        "trash.restore": lambda: store.trash.restore(store.trash.list()[0].id),
        "trash.empty": store.trash.empty,
    }


@pytest.fixture
def unwritable(
    store: MemoryStore, key_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> MemoryStore:
    """A vault in which every action has something to do, opened for reading alone."""
    store.collections.create("work")
    for kind in ("note", "task", "task_done"):
        store.add(f"About a {kind}.", type=kind, topics=["weir"])
    store.add("def open_weir(): pass", type="code", ref="weir.py")
    store.delete(store.add("About what is gone.").id)
    store.add("About what an assistant found.", metadata={"by": "helper"})
    source = tmp_path / "source"
    source.mkdir()
    (source / "mill.md").write_text("The mill stands still.")
    store.import_paths(source)
    store.searches.save("root", "kept", search_request("weir"))
    store.keys.add(passphrase=PASSPHRASE, device_key=False)
    store.keys.identity()
    greeting, *_ = MemoryStore.introduce(store.path, "Grace", key_file=tmp_path / "k" / "g.key")
    store.keys.share("work", greeting)
    store.lock()
    for_reading = file_access(store.path, immutable=True)
    if is_address(store.path):
        for_reading = FileAccess("its server is a standby")
    monkeypatch.setattr(unlock, "check_is_vault", lambda path, access: for_reading)
    return MemoryStore.open(store.path, key_file=key_file)


def test_what_writes_is_refused_where_nothing_can_be_written(
    unwritable: MemoryStore, tmp_path: Path
) -> None:
    note = tmp_path / "note.md"
    note.write_text("The lock keeper has the key.")
    ids = {memory.type: memory.id for memory in unwritable.list()}
    made = calls(unwritable, ids, note)
    writers = {
        f"{prefix}{name}"
        for part, prefix in zip(PARTS, PREFIXES, strict=True)
        for name, one in declarations(part).items()
        if one.writes
    }
    assert made.keys() == writers
    del made["keys.identity"]  # writes where the owner's keys are not in the file yet
    for name, call in made.items():
        with pytest.raises(ReadOnlyError):
            pytest.fail(f"{name} returned {call()}")


@pytest.mark.in_a_file
def test_what_does_not_write_works_where_nothing_can_be_written(unwritable: MemoryStore) -> None:
    before = unwritable.path.read_bytes()
    store = unwritable
    parts = [store, store.code, store.collections, store.keys, store.trail, store.trash]
    for part in parts:
        for name, one in declarations(type(part)).items():
            call = getattr(part, name)
            needed = [p for p in signature(call).parameters.values() if p.default is p.empty]
            if one.writes or any(p.kind is not Parameter.VAR_KEYWORD for p in needed):
                continue
            try:
                call()
            except ReadOnlyError:
                raise
            except MemoryStoreError:
                pass  # there is no device key, and no model
    assert unwritable.path.read_bytes() == before
