"""A stolen file cannot be guessed at: its passphrase opens it together with a device key alone.

The thief has the file and, since people choose weak ones, the right passphrase. What he has is
tried with an independent reader, which was written from the documents, and with the program itself
on a machine of his own. The owner must not be locked out by the same: he has a recovery code, a
copy of the device key, or a key file.
"""

from __future__ import annotations

import json
import shutil
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from plugin.conftest import PASSPHRASE
from private import private_below
from thieves import change, read, refusal, slots, vault_id

sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))

from typing_commands import run

from memory_store import open_store
from memory_store.crypto import keys
from memory_store.errors import (
    BadInputError,
    DeviceKeyError,
    FormatError,
    NotFoundError,
    TamperedError,
    WrongKeyError,
)
from memory_store.store import MemoryStore

SECRET = "The spare key is under the fern."
OTHER = "another passphrase of four herons"
Machine = Callable[[str], Path]


@pytest.fixture
def machine(tmp_path: Path, private_folders: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Go to another machine: one that has other folders. Returns its state folder."""

    def go(name: str) -> Path:
        monkeypatch.setenv("MEMORY_STORE_STATE", str(tmp_path / name / "state"))
        return tmp_path / name / "state"

    go("own")
    return go


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A vault that a passphrase opens, locked, and its recovery code; made once."""
    folder = tmp_path_factory.mktemp("first")
    (folder / "vaults").mkdir()
    with private_below(folder):
        store, code = MemoryStore.create(folder / "vaults" / "notes.db", passphrase=PASSPHRASE)
        with store:
            store.add(SECRET)
    return store.path, code


@pytest.fixture
def made(first: tuple[Path, str], machine: Machine, tmp_path: Path) -> tuple[Path, str]:
    """This test's own copy of it, and of its device key on the test's own machine."""
    path, code = first
    shutil.copytree(path.parent, tmp_path / "vaults")
    shutil.copytree(path.parents[1] / "state", machine("own"), dirs_exist_ok=True)
    return tmp_path / "vaults" / path.name, code


def device_code(path: Path) -> str:
    """The device key of the vault as it lies on this machine."""
    (one,) = MemoryStore.device_keys(path)
    return Path(one.path).read_text()


def texts(path: Path, **secret: str) -> list[str]:
    with MemoryStore.open(path, **secret) as store:  # type: ignore[arg-type]
        return [memory.text for memory in store.list()]


# -- the thief ------------------------------------------------------------------------------


def test_the_file_and_the_right_passphrase_open_nothing(
    made: tuple[Path, str], machine: Machine
) -> None:
    path, code = made
    device = device_code(path)
    machine("thief")
    assert refusal(path, "passphrase", PASSPHRASE) == "missing device key"
    with pytest.raises(DeviceKeyError, match=r"keys device import .*recovery code"):
        MemoryStore.open(path, passphrase=PASSPHRASE)
    assert read(path, "passphrase", PASSPHRASE, device) == [SECRET]  # the reader can, with both
    assert read(path, "recovery", code) == [SECRET]


def test_a_right_guess_looks_like_a_wrong_one_without_the_device_key(
    made: tuple[Path, str], machine: Machine
) -> None:
    """Whatever he computes from the file and a guess, there is nothing to hold it against."""
    path, _ = made
    (slot,) = [one for one in slots(path) if one.kind == "passphrase"]
    alone = keys.key_from_passphrase(PASSPHRASE, slot.salt, keys.Argon2Parameters())
    assert bytes(alone.derive("commitment").buffer) != slot.commitment
    for device in (bytes(32), b"\xff" * 32, bytes.fromhex(json.loads(slot.parameters)["device"])):
        guessed = keys.key_from_both(
            keys.key_from_passphrase(PASSPHRASE, slot.salt, keys.Argon2Parameters()),
            keys.SecretKey(device.ljust(32, b"\0")),
            slot.salt,
        )
        assert bytes(guessed.derive("commitment").buffer) != slot.commitment


def test_no_byte_of_the_device_key_stands_in_the_file(made: tuple[Path, str]) -> None:
    path, _ = made
    code = device_code(path)
    key = keys.decode_device_key(code)
    assert key is not None
    content = b"".join(file.read_bytes() for file in path.parent.iterdir())
    for form in (bytes(key.buffer), bytes(key.buffer).hex().encode(), code.strip().encode()):
        assert form[:12] not in content


def test_a_device_key_that_is_stripped_from_the_slot_makes_the_passphrase_wrong(
    made: tuple[Path, str], machine: Machine
) -> None:
    """The owner types it on his own machine: it opens nothing, and nothing is written back."""
    path, code = made
    stripped = '{"memory_kib":65536,"iterations":3,"lanes":4}'
    change(path, "update vault_slots set parameters = ? where kind = 'passphrase'", stripped)
    before = slots(path)
    with pytest.raises(WrongKeyError, match="wrong passphrase"):
        MemoryStore.open(path, passphrase=PASSPHRASE)
    assert refusal(path, "passphrase", PASSPHRASE) == "wrong secret"
    assert slots(path) == before
    machine("thief")
    with pytest.raises(WrongKeyError):
        MemoryStore.open(path, passphrase=PASSPHRASE)
    assert texts(path, recovery_code=code) == [SECRET]


def test_the_device_key_of_another_vault_opens_nothing(
    made: tuple[Path, str], tmp_path: Path, machine: Machine
) -> None:
    path, _ = made
    state = machine("own")
    other, _ = MemoryStore.create(tmp_path / "vaults" / "other.db", passphrase=PASSPHRASE)
    other.close()
    parameters = next(one.parameters for one in slots(other.path) if one.kind == "passphrase")
    change(path, "update vault_slots set parameters = ? where kind = 'passphrase'", parameters)
    with pytest.raises(DeviceKeyError):
        MemoryStore.open(path, passphrase=PASSPHRASE)
    (theirs,) = MemoryStore.device_keys(other.path)
    folder = state / "device-keys" / vault_id(path).hex()
    shutil.copy(theirs.path, folder / theirs.id)  # even where it lies under that name
    with pytest.raises(DeviceKeyError, match="damaged"):
        MemoryStore.open(path, passphrase=PASSPHRASE)


@pytest.mark.parametrize("named", ["", "00" * 16, "../../../secret", "x" * 400])
def test_another_id_in_the_slot_opens_nothing(made: tuple[Path, str], named: str) -> None:
    path, _ = made
    (slot,) = [one for one in slots(path) if one.kind == "passphrase"]
    reported = json.dumps({**json.loads(slot.parameters), "device": named})
    change(path, "update vault_slots set parameters = ? where kind = 'passphrase'", reported)
    with pytest.raises((WrongKeyError, FormatError), match="passphrase"):
        MemoryStore.open(path, passphrase=PASSPHRASE)
    assert MemoryStore.device_keys(path) == [] or named == "00" * 16


def test_a_stolen_device_key_alone_opens_nothing(made: tuple[Path, str]) -> None:
    path, _ = made
    for kind in ("key-file", "recovery", "passphrase"):
        assert refusal(path, kind, device_code(path), device_code(path)) != "opens"


def test_a_member_s_passphrase_cannot_be_guessed_from_the_file_or_the_introduction(
    made: tuple[Path, str], machine: Machine
) -> None:
    path, code = made
    with MemoryStore.open(path, recovery_code=code) as owner:
        owner.keys.identity()
        owner.collections.create("work")
        owner.add("For both of us.", collection="work")
        machine("alice")
        introduction, _, _ = MemoryStore.introduce(path, "Alice", passphrase=OTHER)
        (named,) = [
            json.loads(s["parameters"])["device"] for s in json.loads(introduction)["slots"]
        ]
        owner.keys.share("work", introduction)
    machine("thief")
    assert refusal(path, "passphrase", OTHER) == "missing device key"
    with pytest.raises(DeviceKeyError):
        MemoryStore.open(path, passphrase=OTHER)
    machine("alice")
    assert texts(path, passphrase=OTHER) == ["For both of us."]
    (hers,) = [one for one in MemoryStore.device_keys(path) if not one.owner]
    assert (hers.id, hers.here) == (named, True)
    assert read(path, "passphrase", OTHER, Path(hers.path).read_text()) == ["For both of us."]


# -- the owner ------------------------------------------------------------------------------


def test_the_recovery_code_alone_brings_the_passphrase_to_a_fresh_machine(
    made: tuple[Path, str], machine: Machine
) -> None:
    path, code = made
    before = device_code(path)
    machine("fresh")
    assert texts(path, recovery_code=code) == [SECRET]
    with MemoryStore.open(path, recovery_code=code) as store:
        assert store.keys.lacks_device()
        (restored,) = store.keys.restore_device()
        assert (restored.here, store.keys.lacks_device()) == (True, False)
    assert device_code(path) == before
    assert texts(path, passphrase=PASSPHRASE) == [SECRET]
    assert stat.S_IMODE(Path(restored.path).stat().st_mode) == 0o600
    assert stat.S_IMODE(Path(restored.path).parent.stat().st_mode) == 0o700


def test_an_independent_reader_finds_the_device_key_by_the_recovery_code(
    made: tuple[Path, str],
) -> None:
    path, code = made
    found = {one.kind: one for one in slots(path)}
    root = found["recovery"].root(vault_id(path), "recovery", code)
    device = found["passphrase"].device_key(vault_id(path), root)
    known = keys.decode_device_key(device_code(path))
    assert known is not None
    assert device == bytes(known.buffer)


def test_a_copy_of_the_device_key_brings_the_passphrase_to_another_machine(
    made: tuple[Path, str], machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = made
    sent = tmp_path / "usb" / "notes.device"
    monkeypatch.setenv("MEMORY_STORE_PASSPHRASE", PASSPHRASE)
    assert run("keys", "device", "export", str(path), str(sent)).exit_code == 0
    assert stat.S_IMODE(sent.stat().st_mode) == 0o600
    machine("laptop")
    monkeypatch.setenv("MEMORY_STORE_PASSPHRASE", PASSPHRASE)
    refused = run("list", str(path))
    assert (refused.exit_code, "keys device import" in refused.output) == (3, True)
    assert run("keys", "device", "import", str(path), str(sent)).exit_code == 0
    monkeypatch.setenv("MEMORY_STORE_PASSPHRASE", PASSPHRASE)
    assert run("list", str(path)).exit_code == 0
    assert "here" in run("keys", "device", "list", str(path)).output


def test_exporting_needs_a_key_of_the_vault(made: tuple[Path, str], tmp_path: Path) -> None:
    path, _ = made
    refused = run("keys", "device", "export", str(path))
    assert (refused.exit_code, device_code(path).strip() in refused.output) == (3, False)


@pytest.mark.parametrize("code", ["", "no device key", "A" * 52, "AAAA-" * 13])
def test_what_is_no_device_key_of_the_vault_is_not_imported(
    made: tuple[Path, str], code: str
) -> None:
    with pytest.raises(BadInputError, match="device key"):
        MemoryStore.import_device_key(made[0], code)


def test_a_device_key_that_others_can_read_is_refused(made: tuple[Path, str]) -> None:
    path, _ = made
    (one,) = MemoryStore.device_keys(path)
    Path(one.path).chmod(0o644)
    with pytest.raises(DeviceKeyError, match="chmod 600"):
        MemoryStore.open(path, passphrase=PASSPHRASE)


def test_a_device_key_is_not_kept_where_a_copy_of_the_vault_would_take_it_along(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "vaults"
    folder.mkdir()
    monkeypatch.setenv("MEMORY_STORE_STATE", str(folder))
    with pytest.raises(BadInputError, match="MEMORY_STORE_STATE"):
        MemoryStore.create(folder / "notes.db", passphrase=PASSPHRASE)
    assert not (folder / "notes.db").exists()
    path = folder / "alone.db"
    MemoryStore.create(path, passphrase=PASSPHRASE, device_key=False)[0].close()
    assert texts(path, passphrase=PASSPHRASE) == []


def test_without_a_device_key_the_passphrase_opens_the_vault_anywhere(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "plain.db"
    monkeypatch.setenv("MEMORY_STORE_PASSPHRASE", PASSPHRASE)
    made = run("init", str(path), "--passphrase", "--no-device-key", "--json")
    assert json.loads(made.stdout)["device_key"] is None
    machine("another")
    assert texts(path, passphrase=PASSPHRASE) == []
    with MemoryStore.open(path, passphrase=PASSPHRASE) as store:
        assert store.keys.add(passphrase=OTHER).device == ""  # as the owner chose
        with pytest.raises(NotFoundError):
            store.keys.export_device()
        assert store.keys.add(passphrase=OTHER + "s", device_key=True).device


def test_what_the_owner_chose_is_not_read_from_rows_that_others_may_write(
    made: tuple[Path, str],
) -> None:
    """A thief plants a passphrase slot without a device key: the next one still has one."""
    path, code = made
    change(path, "delete from vault_slots where kind = 'passphrase'")
    change(
        path,
        "insert into vault_slots values ('planted', 0, 'passphrase', ?, zeroblob(16), "
        "zeroblob(32), zeroblob(98), '2020-01-01')",
        '{"memory_kib":65536,"iterations":3,"lanes":4}',
    )
    with MemoryStore.open(path, recovery_code=code) as store:
        assert store.keys.add(passphrase=OTHER).device


def test_an_older_passphrase_is_given_a_device_key_on_request(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "older.db"
    store, code = MemoryStore.create(path, passphrase=PASSPHRASE, device_key=False)
    store.close()
    old = [one for one in slots(path) if one.kind == "passphrase"]
    monkeypatch.setenv("MEMORY_STORE_PASSPHRASE", PASSPHRASE)
    added = run("keys", "device", "add", str(path))
    assert added.exit_code == 0, added.output
    assert texts(path, passphrase=PASSPHRASE) == []
    machine("thief")
    assert refusal(path, "passphrase", PASSPHRASE) == "missing device key"
    change(  # the old row, which the passphrase alone opens, is put back
        path,
        "insert into vault_slots values (?, ?, ?, ?, ?, ?, ?, '')",
        *(getattr(old[0], name) for name in old[0].__dataclass_fields__),
    )
    with pytest.raises(TamperedError, match="put back"):
        MemoryStore.open(path, passphrase=PASSPHRASE)
    assert texts(path, recovery_code=code) == []


def test_a_new_root_key_keeps_the_passphrase_its_device_key_and_the_way_to_it(
    made: tuple[Path, str], machine: Machine
) -> None:
    path, _ = made
    with MemoryStore.open(path, passphrase=PASSPHRASE) as store:
        _, code = store.keys.rotate_root()
    assert texts(path, passphrase=PASSPHRASE) == [SECRET]
    machine("fresh")
    assert refusal(path, "passphrase", PASSPHRASE) == "missing device key"
    with MemoryStore.open(path, recovery_code=code) as store:
        store.keys.restore_device()
    assert texts(path, passphrase=PASSPHRASE) == [SECRET]


def test_a_lookup_without_the_device_key_says_so_before_it_asks(
    made: tuple[Path, str], machine: Machine
) -> None:
    path, code = made
    machine("fresh")
    from memory_store.actions.key_devices import passphrase_refused

    assert "device key" in (passphrase_refused(path) or "")
    with open_store(path, ask_passphrase=lambda: code) as store:
        assert len(store.list()) == 1
    machine("own")
    assert passphrase_refused(path) is None


def test_a_backup_and_the_doctor_say_what_the_passphrase_needs(
    made: tuple[Path, str], machine: Machine, tmp_path: Path
) -> None:
    path, _ = made
    said = run("backup", str(path), str(tmp_path / "backup.db"))
    assert "recovery code" in said.output
    assert "device export" in said.output
    assert "device key" in run("doctor", str(path)).output
    machine("fresh")
    checks = {one["name"]: one for one in json.loads(run("doctor", str(path), "--json").stdout)}
    assert checks["device key"]["state"] == "missing"
    assert "keys device restore" in checks["device key"]["remedy"]


def test_init_says_where_the_device_key_is_and_what_its_loss_means(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_STORE_PASSPHRASE", PASSPHRASE)
    said = run("init", str(tmp_path / "new.db"), "--passphrase").output
    (one,) = MemoryStore.device_keys(tmp_path / "new.db")
    assert one.path in said
    assert "if that file is lost, the recovery code opens the vault" in said


# -- the cost -------------------------------------------------------------------------------


@pytest.fixture
def cheap(made: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The vault as a version would have made it whose Argon2id cost less."""
    path, code = made
    with MemoryStore.open(path, recovery_code=code) as store, monkeypatch.context() as earlier:
        present = next(one for one in store.keys.list() if one.kind == "passphrase")
        earlier.setattr("memory_store.vault.slots.Argon2Parameters", earlier_cost)
        store.keys.add(passphrase=PASSPHRASE)
        store.keys.remove(present.id)
    return path


def earlier_cost() -> keys.Argon2Parameters:
    return keys.Argon2Parameters(19_456, 2, 1)


def cost(path: Path) -> dict[str, int]:
    (slot,) = [one for one in slots(path) if one.kind == "passphrase"]
    reported: dict[str, int] = json.loads(slot.parameters)
    return reported


def test_a_cheap_slot_is_wrapped_anew_at_the_next_unlock_and_needs_the_same_device_key(
    cheap: Path, machine: Machine
) -> None:
    before = next(one for one in slots(cheap) if one.kind == "passphrase")
    assert cost(cheap)["memory_kib"] == 19_456
    assert texts(cheap, passphrase=PASSPHRASE) == [SECRET]
    after = next(one for one in slots(cheap) if one.kind == "passphrase")
    assert cost(cheap)["memory_kib"] == 65_536
    assert (after.id, after.salt == before.salt) == (before.id, False)
    assert cost(cheap)["device"] == json.loads(before.parameters)["device"]
    assert texts(cheap, passphrase=PASSPHRASE) == [SECRET]
    files = b"".join(file.read_bytes() for file in cheap.parent.iterdir())
    assert before.wrapped not in files
    machine("thief")
    assert refusal(cheap, "passphrase", PASSPHRASE) == "missing device key"


def test_a_cheap_slot_of_a_file_that_cannot_be_written_opens_as_it_is(cheap: Path) -> None:
    from memory_store.sqlite import connect

    writer = connect(cheap)
    writer.execute("begin immediate")  # a person writes all the time
    assert texts(cheap, passphrase=PASSPHRASE) == [SECRET]
    writer.execute("rollback")
    writer.close()
    assert cost(cheap)["memory_kib"] == 19_456


def test_a_program_that_opened_a_cheap_slot_can_still_replace_the_root_key(cheap: Path) -> None:
    with MemoryStore.open(cheap, passphrase=PASSPHRASE) as store:
        store.keys.rotate_root()
    assert texts(cheap, passphrase=PASSPHRASE) == [SECRET]
