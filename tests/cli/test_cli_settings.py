"""settings doctor audit: what a vault is, what is wrong with it, and who opened it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typing_commands import Vault, run

from memory_store.sqlite import connect
from memory_store.store import MemoryStore
from memory_store.vault.audit_events import AuditEvent


def hashes(path: Path) -> int:
    with closing(connect(path, read_only=True)) as connection:
        (count,) = connection.execute("select count(*) from memory_topics").fetchone()
        return int(count)


def test_settings_are_shown_in_words_and_as_json(vault: Vault) -> None:
    shown = vault.run("settings").stdout
    for words in ("profile      default", "topics       table", "collections"):
        assert words in shown
    assert vault.json("settings")["topics"] == "table"


def test_topics_are_taken_out_of_the_file_and_put_back(vault: Vault) -> None:
    before, topics = hashes(vault.path), vault.json("topics")
    counted = vault.json("stats")["topics"]
    assert counted == len(topics)
    assert before
    assert "topics       memory" in vault.run("settings", "topics", "memory").stdout
    assert hashes(vault.path) == 0
    assert vault.json("settings")["topics"] == "memory"
    assert vault.json("topics") == topics
    assert vault.json("stats")["topics"] == counted, "the index counts them"
    assert vault.run("settings", "topics", "table").exit_code == 0
    assert hashes(vault.path) == before
    assert vault.run("verify").exit_code == 0


def test_what_cannot_be_set_is_named_with_what_can(vault: Vault) -> None:
    for words, reported in (
        (("profile", "strict"), "topics, trash and ranking"),
        (("ranking", "mine"), "say general"),
        (("trash", "soon"), "for how many days"),
        (("topics",), "table or memory"),
        (("topics", "disk"), "there is: table, memory"),
    ):
        refused = vault.run("settings", *words)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert reported in refused.stderr


def test_init_says_what_the_choice_means_and_takes_it(tmp_path: Path) -> None:
    def made(name: str, *options: str) -> str:
        key_file = str(tmp_path / "keys" / f"{name}.key")
        return run("init", str(tmp_path / f"{name}.db"), "--key-file", key_file, *options).output

    assert f"memory-store settings {tmp_path}/usual.db topics memory" in made("usual")
    assert "no hashes of topics" in made("chosen", "--topics", "memory")
    assert "no hashes of topics" in made("strict", "--profile", "strict")
    assert '"topics": "memory"' in made("json", "--topics", "memory", "--json")
    assert "strict vault" in made("refused", "--profile", "strict", "--topics", "table")
    assert not (tmp_path / "refused.db").exists()


def test_a_strict_vault_has_no_table_to_go_back_to(tmp_path: Path) -> None:
    path, key_file = str(tmp_path / "strict.db"), str(tmp_path / "keys" / "strict.key")
    run("init", path, "--key-file", key_file, "--profile", "strict")
    shown = run("settings", path, "--key-file", key_file)
    assert "topics       memory" in shown.stdout
    refused = run("settings", path, "topics", "table", "--key-file", key_file)
    assert refused.exit_code == 2
    assert "a strict vault keeps them in memory" in refused.stderr


def test_the_setting_is_the_owners(vault: Vault, tmp_path: Path) -> None:
    from memory_store import MemoryStore

    hers = str(tmp_path / "keys" / "hers.key")
    with MemoryStore.open(vault.path, key_file=vault.key_file) as store:
        store.collections.create("mill")
        store.keys.share("mill", MemoryStore.introduce(vault.path, "Alice", key_file=hers)[0])
    assert "topics       table" in run("settings", str(vault.path), "--key-file", hers).stdout
    refused = run("settings", str(vault.path), "topics", "memory", "--key-file", hers)
    assert refused.exit_code == 2
    assert "only the owner" in refused.stderr
    assert hashes(vault.path)


def test_doctor_names_a_remedy_for_whatever_is_missing(vault: Vault) -> None:
    checks = vault.json("doctor")
    names = {c["name"] for c in checks}
    assert {"vault", "unlocked", "vector index", "sqlite-vec", "table function"} <= names
    missing = [c for c in checks if c["state"] == "missing"]
    assert missing, "this vault has no vectors, which the doctor must see"
    assert all(c["effect"] for c in missing)
    assert vault.run("doctor", "--strict").exit_code == 1


def test_doctor_names_the_first_key_that_is_given(
    vault: Vault, make_vault: Callable[[str], Vault], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_vault("other.db").key_file

    def key(*words: str) -> str:
        result = run("doctor", str(vault.path), *words, "--json")
        assert result.exit_code == 0, result.output
        return str({c["name"]: c["detail"] for c in json.loads(result.stdout)}["first key given"])

    monkeypatch.setenv("MEMORY_STORE_PASSPHRASE", "of another vault")
    assert key() == "MEMORY_STORE_PASSPHRASE is set"
    monkeypatch.setenv("MEMORY_STORE_KEY_FILE", str(other))
    assert key() == f"MEMORY_STORE_KEY_FILE names {other}"
    assert key("--key-file", str(vault.key_file)) == f"--key-file names {vault.key_file}"


def test_doctor_looks_at_a_vault_without_its_key(vault: Vault) -> None:
    result = run("doctor", str(vault.path), "--json")
    assert result.exit_code == 0, result.output
    states = {c["name"]: c["state"] for c in json.loads(result.stdout)}
    assert states["unlocked"] == "missing"


def test_a_passphrase_that_doctor_was_not_given_is_not_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "spoken.db")
    monkeypatch.setenv("MEMORY_STORE_PASSPHRASE", "a long spoken sentence")
    assert run("init", path, "--passphrase").exit_code == 0

    def unlocked() -> dict[str, str]:
        checks = json.loads(run("doctor", path, "--json").stdout)
        return next(one for one in checks if one["name"] == "unlocked")

    monkeypatch.setenv("MEMORY_STORE_PASSPHRASE", "a long spoken sentence")
    assert unlocked()["state"] == "ok"
    monkeypatch.setenv("MEMORY_STORE_PASSPHRASE", "another sentence")
    refused = unlocked()
    assert (refused["state"], refused["detail"]) == ("missing", "the key given does not fit")
    assert unlocked() == {
        "name": "unlocked",
        "state": "off",
        "detail": "no passphrase was given",
        "effect": "what the vault holds was not examined",
        "remedy": f"memory-store doctor {path} --passphrase",
    }


def test_doctor_without_a_vault_examines_the_installation() -> None:
    result = run("doctor", "--json")
    assert result.exit_code == 0, result.output
    assert "versions" in {c["name"] for c in json.loads(result.stdout)}


def test_doctor_makes_nothing_and_says_which_folder_cannot_be_made(
    private_folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (private_folders.parent / "a file").touch()
    monkeypatch.setenv("MEMORY_STORE_STATE", str(private_folders.parent / "a file" / "state"))
    checks = {c["name"]: c for c in json.loads(run("doctor", "--json").stdout)}
    assert checks["cache folder"]["detail"].endswith("cache (made when it is needed)")
    assert not private_folders.exists()
    assert checks["state folder"]["state"] == "missing"
    assert "nothing can be written in" in checks["state folder"]["detail"]


def event(actor: str | None, surface: str, opened: int, days: float) -> AuditEvent:
    time = (datetime.now(UTC) - timedelta(days=days)).isoformat(timespec="seconds")
    return AuditEvent(time, actor, False, surface, "search", opened, opened)


@pytest.fixture
def audited(empty_vault: Vault) -> Vault:
    events = [event("alice", "page", 5, 30), event("bob", "json", 2, 1), event(None, "sql", 0, 0)]
    with MemoryStore.open(empty_vault.path, key_file=empty_vault.key_file) as store:
        store.trail.keep(events, days=400, most=1_000)
    return empty_vault


def test_the_trail_is_a_table_json_or_csv(audited: Vault) -> None:
    table = audited.run("audit").stdout
    assert all(who in table for who in ("alice", "bob", "anonymous"))
    rows = audited.json("audit")
    assert [(row["who"], row["surface"], row["opened"]) for row in rows] == [
        ("alice", "page", 5),
        ("bob", "json", 2),
        ("anonymous", "sql", 0),
    ]
    read = csv.DictReader(io.StringIO(audited.run("audit", "--csv").stdout))
    assert [row["who"] for row in read] == ["alice", "bob", "anonymous"]


def test_the_trail_is_narrowed_by_time_actor_and_surface(audited: Vault) -> None:
    for words, named in (
        (("--since", "7d"), ["bob", "anonymous"]),
        (("--until", "7d"), ["alice"]),
        (("--who", "bob", "--surface", "json"), ["bob"]),
    ):
        assert [row["who"] for row in audited.json("audit", *words)] == named
    totals = audited.json("audit", "--totals")
    assert (totals[0]["who"], totals[0]["opened"]) == ("alice", 5)


def test_a_missing_batch_fails_the_verification(audited: Vault) -> None:
    whole = audited.run("verify")
    assert (whole.exit_code, "audit" in whole.output) == (0, False)
    connect(audited.path).execute("delete from vault_audit where sequence = 1")
    result = audited.run("verify")
    assert (result.exit_code, "audit trail" in result.output) == (1, True)
