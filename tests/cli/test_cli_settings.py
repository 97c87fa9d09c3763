"""Settings of a vault: shown, and the one that can be changed."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from typing_commands import Vault, run

from memory_store.sqlite import connect


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
    for words, told in (
        (("profile", "strict"), "only topics"),
        (("topics",), "table or memory"),
        (("topics", "disk"), "there is: table, memory"),
    ):
        refused = vault.run("settings", *words)
        assert (refused.exit_code, refused.stdout) == (2, "")
        assert told in refused.stderr


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
