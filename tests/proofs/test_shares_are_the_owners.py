"""A member reads what the vault's owner wrote for her last: no other person makes a share.

Every member has the key that a share is sealed under, and a holder of the file can put back a row
that was there before. Neither makes the next member write in clear what is sealed in a strict
vault, load a model from a folder, or take another collection for this one.
"""

from __future__ import annotations

import json
import lzma
import os
import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hostile_members import SHARED, Two, made
from typing_commands import run

from memory_store.errors import FormatError, MemoryStoreError, TamperedError
from memory_store.store import MemoryStore
from memory_store.vault.shares import read_share, write_share
from memory_store.vault.storage import Storage

FORMATS = Path(__file__).parents[1] / "formats"


@pytest.fixture
def two(
    make_store: Callable[..., MemoryStore],
    tmp_path: Path,
    tiny_model: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Two:
    def strict(**options: Any) -> MemoryStore:
        return make_store(profile="strict", **options)

    two = made(strict, tmp_path, tiny_model, monkeypatch)
    with two.owner() as store:
        greeting, _, _ = MemoryStore.introduce(
            two.path, "Ada", key_file=tmp_path / "keys" / "ada.key"
        )
        store.keys.share(SHARED, greeting)
    return two


def ada(two: Two) -> MemoryStore:
    key = two.hers.with_name("ada.key")
    return MemoryStore.open(two.path, key_file=key, embedder=str(two.model))


def forge(two: Two, change: Callable[[bytes], bytes]) -> None:
    """Mallory seals another share in the place of the owner's, by the key of every reader."""
    with two.keys_of_mallory() as (connection, keys):
        place = keys.place("vault_shares", "sealed", keys.collection)
        ((sealed,),) = connection.execute("select sealed from vault_shares").fetchall()
        reported = bytes(keys.unseal("share", place, sealed))
        content = change(reported)
        assert content != reported
        connection.execute(
            "update vault_shares set sealed = ?", (keys.seal("share", place, content),)
        )


def of_format_2(content: bytes) -> bytes:
    reported = json.loads(content[65:])
    kept = {name: reported[name] for name in reported if name not in ("name", "revision", "format")}
    return json.dumps({**kept, "profile": "default"}).encode()


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.replace(b'"strict"', b'"default"'),
        lambda content: content.replace(b'"embedder":"', b'"embedder":"/tmp/hers/'),
        lambda content: content.replace(b'"analyser":', b'"analyser":9'),
        lambda content: re.sub(rb'("dedupe":")....', rb"\1AAAA", content),
        lambda content: content.replace(b'"name":"work"', b'"name":"diary"'),
        lambda content: content.replace(b'"choice":{}', b'"choice":{"folder":"/tmp/hers"}'),
        of_format_2,
    ],
    ids=["profile", "embedder", "analyser", "dedupe", "name", "folder", "format 2"],
)
def test_a_member_cannot_change_what_another_reads(
    two: Two, change: Callable[[bytes], bytes]
) -> None:
    before = two.rows("memories")
    forge(two, change)
    with pytest.raises((TamperedError, FormatError)):
        ada(two).add("In clear?", topics=["hers"])
    assert two.rows("memories") == before
    assert two.run("add", "Hers, too.", "--collection", SHARED, key=two.hers).exit_code == 1
    verified = two.run("verify")
    assert verified.exit_code == 1
    assert "share of collection" in verified.output
    assert two.run("add", "The owner writes, and it is mended.").exit_code == 0
    assert two.run("verify").exit_code == 0
    with ada(two) as store:
        store.add("Sealed, as ever.", topics=["hers"])
    assert {row["type"] for row in two.rows("memories")} == {None}
    assert two.rows("memory_topics") == []


def test_a_number_that_a_stranger_writes_into_the_file_keeps_no_open_vault_from_what_is_shared(
    two: Two,
) -> None:
    """How often the settings changed stands in clear: who took it for the newest would go on with
    the names and the keys of before, those of a member with whom nothing is shared any more too."""
    change = "update vault_settings set value = :to where name = 'settings'"
    (before,) = [row["value"] for row in two.rows("vault_settings") if row["name"] == "settings"]
    with ada(two) as store:
        assert set(store.collections.names().values()) == {SHARED}
        two.with_the_file(change, to="1000000")
        assert set(store.collections.names().values()) == {SHARED}
        two.with_the_file(change, to=before)
        with two.owner() as owner:
            owner.collections.rename(SHARED, "renamed")
        assert set(store.collections.names().values()) == {"renamed"}


def test_a_share_that_a_member_signs_herself_is_refused(two: Two) -> None:
    with two.mallory() as store, closing(Storage.open(two.path)) as storage:
        keyring = store._opened.vault.keyring
        keys = keyring.of(*keyring.readable())
        reported = read_share(storage, keys, keyring.owner_identity(storage))
        with storage.transaction():
            write_share(storage, keys, reported, keyring.root)
    with pytest.raises(TamperedError, match="not signed by"):
        ada(two)


def test_a_share_that_was_taken_away_is_missed_and_said_again(two: Two) -> None:
    two.with_the_file("delete from vault_shares")
    with pytest.raises(TamperedError, match="is missing"):
        ada(two)
    assert "share of collection" in two.run("verify").output
    with two.owner() as store:
        store.add("Anything.")
        with ada(two) as other:
            assert other.list()


def test_an_older_share_is_refused_by_a_caller_who_saw_a_newer_one_and_on_a_fresh_machine(
    two: Two, tmp_path: Path
) -> None:
    older = two.rows("vault_shares")
    assert two.run("collections", "rename", SHARED, "workshop").exit_code == 0
    with ada(two) as store:
        assert [one.name for one in store.collections.list()] == ["workshop"]
    two.put_back("vault_shares", older)
    with pytest.raises(TamperedError, match="older"):
        ada(two)
    with two.on_another_machine(tmp_path / "fresh"), pytest.raises(TamperedError, match="older"):
        ada(two)


def test_an_older_share_with_an_older_account_is_refused_by_a_caller_who_saw_a_newer_one(
    two: Two, tmp_path: Path
) -> None:
    older = two.rows("vault_shares")
    assert two.run("collections", "rename", SHARED, "workshop").exit_code == 0
    ada(two).close()
    two.put_back("vault_shares", older)
    with two.keys_of_mallory_on(tmp_path / "hers") as (connection, keys):
        from memory_store.vault.manifest import note_revision

        note_revision(Storage(connection), keys, 1)
    with pytest.raises(TamperedError, match="older than the one last seen on this machine"):
        ada(two)
    with two.on_another_machine(tmp_path / "fresh"):
        ada(two).close()  # as the documents say: signed by the owner, and nothing newer was seen
    assert "share of collection" in two.run("verify").output
    assert two.run("add", "Mended.").exit_code == 0
    with ada(two) as store:
        assert [one.name for one in store.collections.list()] == ["workshop"]


def test_after_a_backup_was_put_back_a_member_accepts_what_it_tells(
    two: Two, tmp_path: Path
) -> None:
    backup = ["backup", str(two.path), str(tmp_path / "backup.db")]
    assert run(*backup).exit_code == 0
    assert two.run("collections", "rename", SHARED, "workshop").exit_code == 0
    hers = two.hers.with_name("ada.key")
    assert two.run("list", key=hers).exit_code == 0
    for suffix in ("", "-wal", "-shm"):
        two.path.with_name(two.path.name + suffix).unlink(missing_ok=True)
    two.path.write_bytes((tmp_path / "backup.db").read_bytes())
    refused = two.run("list", key=hers)
    assert (refused.exit_code, "--accept-older" in refused.output) == (1, True)
    assert two.run("verify", "--accept-older", key=hers).exit_code == 0
    assert two.run("list", key=hers).exit_code == 0


def test_a_model_that_could_be_a_path_is_not_loaded_for_a_member(
    two: Two, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even where it is the owner who turns against her, and signs it."""
    from msgspec.structs import replace

    folder = tmp_path / "here"
    (folder / "poisoned").mkdir(parents=True)
    monkeypatch.chdir(folder)
    key = two.hers.with_name("ada.key")
    for name in ("/tmp/hers", "~/hers", "..", "C:\\hers", "poisoned", "\\\\server\\hers", "./x"):
        with two.owner() as store:
            vault = store._opened.vault
            with vault.writing() as connection, connection.transaction(vault.keyring):
                known = vault.stored_settings(connection)
                vault.change_settings(connection, present=replace(known, embedder=name))
        with MemoryStore.open(two.path, key_file=key) as store:
            with pytest.raises(MemoryStoreError, match="could be a path"):
                store.embedder_name()
            assert store.add("Without vectors.").text == "Without vectors."
            assert "could be a path" in " ".join(store.model_state().degraded)
        with ada(two) as store:
            assert store.embedder_name() == str(two.model)  # her own choice


# -- the settings of an owner who shares everything that he looks at --------------------------


def test_who_shares_the_personal_collection_cannot_put_the_owners_older_settings_back(
    two: Two, tmp_path: Path
) -> None:
    from memory_store.vault.manifest import note_revision

    assert two.run("collections", "create", "diary").exit_code == 0
    older = two.rows("vault_settings")
    with two.owner() as store:
        store.keys.share("personal", "Mallory")
    with two.keys_of_mallory_on(tmp_path / "hers", "personal") as (connection, keys):
        note_revision(Storage(connection), keys, 1)
    assert two.run("list").exit_code == 0  # her number alone does no harm
    two.put_back("vault_settings", older)
    refused = two.run("list")
    assert refused.exit_code == 1
    assert "vault_settings.sealed of settings: an older version was put back" in refused.output


def test_a_number_that_a_former_member_wrote_does_not_lock_the_owner_out(
    two: Two, tmp_path: Path
) -> None:
    from memory_store.vault.manifest import note_revision

    with two.keys_of_mallory_on(tmp_path / "hers", SHARED) as (connection, keys):
        note_revision(Storage(connection), keys, 10**12)
    with pytest.raises(TamperedError, match="older"):
        ada(two)
    with two.owner() as store:
        store.add("Written, and so mended.")
        ada(two).close()
        with two.keys_of_mallory_on(tmp_path / "hers", SHARED) as (connection, keys):
            note_revision(Storage(connection), keys, 10**12)
        store.keys.revoke("Mallory")
        store.keys.revoke("Ada")
    assert two.run("verify").exit_code == 0


# -- a vault of format 2 that was attacked before its owner came ---------------------------------


@pytest.fixture
def old(tmp_path: Path, private_folders: Path, monkeypatch: pytest.MonkeyPatch) -> Two:
    """``mill`` is shared with Grace; she has both of the published keys' files beside it."""
    path = tmp_path / "vaults" / "old.db"
    path.parent.mkdir()
    path.write_bytes(lzma.decompress((FORMATS / "format-2-shared-default.db.xz").read_bytes()))
    (tmp_path / "keys").mkdir()
    for name in ("formats.key", "formats.member.key"):
        kept = tmp_path / "keys" / name
        kept.write_bytes((FORMATS / name).read_bytes())
        kept.chmod(0o600)
    keys = tmp_path / "keys"
    return Two(path, keys / "formats.key", keys / "formats.member.key", tmp_path, monkeypatch)


def test_a_vault_of_format_2_that_was_attacked_before_is_upgraded_and_steers_no_one(
    old: Two, tmp_path: Path
) -> None:
    private = tmp_path / "private"
    private.mkdir()
    (private / "secret.md").write_text("The combination is 4711.")
    with old.keys_of_mallory_on(tmp_path / "hers") as (connection, keys):
        mill = keys.collection
        (mine,) = connection.execute(
            "select id from memories where collection != ? limit 1", (mill,)
        ).fetchone()
        reported = {"path": str(private), "options": {}}
        source = "00000000-0000-4000-8000-000000000000"
        connection.execute(
            "insert into vault_sources values (?, ?, ?, ?)",
            (
                source,
                mill,
                b"t" * 16,
                keys.seal(
                    "head",
                    keys.place("vault_sources", "head", source),
                    json.dumps(reported).encode(),
                ),
            ),
        )
        origin = keys.source.tag(b"record", os.fsencode(private), b"secret.md")
        connection.execute("delete from memory_sources where memory = ?", (mine,))
        connection.execute(
            "insert into memory_sources values (?, ?, ?, ?)", (mine, origin, None, b"f" * 16)
        )
        connection.execute(
            "update collections set name = ? where id = ?",
            (keys.seal("name", keys.place("collections", "name", mill), b"personal"), mill),
        )
    given = ["--key-file", str(old.key_file)]
    first = run("collections", str(old.path), *given)
    assert "Look whether the names are yours" in first.output
    assert "will not be read again" in first.output
    refused = old.run("add", "For me alone.", "--collection", "personal")
    assert (refused.exit_code, mill in refused.output) == (2, True)
    assert old.run("add", "For me alone.").exit_code == 0
    assert old.run("import").exit_code == 2
    with MemoryStore.open(old.path, key_file=old.key_file) as store:
        before = store.get(mine)
        assert store.import_paths([private], collection=mill, prune=True, embed=False).imported == 1
        assert store.get(mine) == before
        shared = [one.text for one in store.list(collection=mill, limit=1_000)]
        assert "For me alone." not in shared
        store.collections.rename(mill, "mill")
        assert store.verify()["failures"] == []
    with MemoryStore.open(old.path, key_file=old.hers) as store:
        assert [one.name for one in store.collections.list()] == ["mill"]


def test_who_exchanges_anothers_public_keys_is_revoked_all_the_same(two: Two) -> None:
    """Nothing is wrapped for keys that are not Ada's; how it goes on without her is said."""
    with two.owner() as store:
        (other,) = (one.principal for one in store.keys.holders() if one.name == "Ada")
        exchange = "update vault_identities set public = (select public from vault_identities "
        exchange += "where principal not in (0, :other)) where principal = :other"
        two.with_the_file(exchange, other=other)
        with pytest.raises(TamperedError, match=r"keys of another person, .* revoke 'Ada' first"):
            store.keys.revoke("Mallory")
        store.keys.revoke("Ada")
        store.keys.revoke("Mallory")
        assert store.keys.holders() == []
    with pytest.raises(MemoryStoreError):
        two.mallory()


def test_a_new_root_key_ends_all_sharing_whatever_public_keys_are_in_the_file(two: Two) -> None:
    with two.owner() as store:
        two.with_the_file("update vault_identities set public = x'01' where principal != 0")
        for name in ("Mallory", "Ada"):
            with pytest.raises(TamperedError, match="rotate --root"):
                store.keys.revoke(name)
        store.keys.rotate_root()
        store.keys.rotate()
        assert store.keys.holders() == []
    with pytest.raises(MemoryStoreError):
        two.mallory()
