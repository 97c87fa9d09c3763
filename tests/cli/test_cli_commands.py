"""Every command, typed as a person would, on a real vault."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import sqlite3
import stat
from pathlib import Path

import pytest
from typing_commands import Vault, run


def test_init_prints_the_recovery_code_once_and_how_to_open(tmp_path: Path) -> None:
    key_file = tmp_path / "keys" / "notes.key"
    result = run("init", str(tmp_path / "notes.db"), "--key-file", str(key_file))
    assert result.exit_code == 0, result.output
    assert result.stdout.count("Recovery code") == 1
    assert f"MEMORY_STORE_KEY_FILE={key_file}" in result.stdout
    assert stat.S_IMODE(key_file.stat().st_mode) == 0o600


def test_init_without_a_key_and_without_a_terminal_is_bad_usage(tmp_path: Path) -> None:
    result = run("init", str(tmp_path / "notes.db"))
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--key-file" in result.stderr
    assert not (tmp_path / "notes.db").exists()


def test_init_never_touches_an_existing_file(tmp_path: Path, vault: Vault) -> None:
    before = vault.path.read_bytes()
    result = run("init", str(vault.path), "--key-file", str(tmp_path / "keys" / "other.key"))
    assert result.exit_code == 2
    assert str(vault.path) in result.stderr
    assert vault.path.read_bytes() == before


def test_add_prints_the_id_that_get_takes(empty_vault: Vault) -> None:
    added = empty_vault.run("add", "The lease ends in May", "--topic", "home", "--type", "fact")
    assert added.exit_code == 0, added.output
    memory = empty_vault.json("get", added.stdout.strip()[:8])
    assert memory["text"] == "The lease ends in May"
    assert (memory["type"], memory["topics"]) == ("fact", ["home"])


def test_get_shows_what_stood_in_a_memorys_place_on_a_day(empty_vault: Vault) -> None:
    begun = ("--valid-from", "2024-02-01")
    first = empty_vault.run("add", "Ends in May", *begun).stdout.strip()
    second = empty_vault.run("add", "Ends in June", "--supersedes", first).stdout.strip()
    assert empty_vault.json("get", second, "--as-of", "2024-03")["id"] == first
    assert empty_vault.json("get", first[:8], "--as-of", "now")["id"] == second
    before = empty_vault.run("get", first, "--as-of", "2023")
    assert (before.exit_code, before.stdout) == (1, "")
    assert f"nothing stood in place of '{first}' on 2023" in before.stderr


def test_a_list_of_nothing_says_so_and_an_unknown_type_is_named(empty_vault: Vault) -> None:
    assert empty_vault.run("list", "--topic", "nowhere").stdout == "no memories\n"
    assert empty_vault.json("list", "--topic", "nowhere") == []
    wrong = empty_vault.run("list", "--type", "opinion")
    assert wrong.exit_code == 2
    assert wrong.stderr.startswith("Error: --type: 'opinion' is not one of fact, note, ")
    assert empty_vault.run("list", "--type", "task_done").exit_code == 0


def test_an_end_before_the_beginning_is_named_as_it_is_typed(empty_vault: Vault) -> None:
    days = ("--valid-from", "2024-05-01", "--valid-to", "2024-04-01")
    one = empty_vault.run("add", "The lease", *days[:2]).stdout.strip()
    said = "Error: --valid-to: 2024-04-01T00:00:00Z is before --valid-from, 2024-05-01T00:00:00Z\n"
    for words in (("add", "The lease", *days), ("edit", one, *days[2:])):
        refused = empty_vault.run(*words)
        assert (refused.exit_code, refused.stderr) == (2, said)


def test_add_takes_the_beginning_of_its_parents_id_and_refuses_one_that_is_not_there(
    empty_vault: Vault,
) -> None:
    parent = empty_vault.run("add", "Oil the gate", "--type", "task").stdout.strip()
    child = empty_vault.run("add", "Took an hour", "--type", "result", "--parent", parent[:8])
    assert empty_vault.json("get", child.stdout.strip())["parent"] == parent
    lost = empty_vault.run("add", "Lost", "--parent", "nothere1")
    assert (lost.exit_code, lost.stdout) == (1, "")
    assert "no memory 'nothere1'" in lost.stderr


def test_get_takes_a_title_or_the_name_of_a_file_that_one_memory_alone_has(
    empty_vault: Vault, tmp_path: Path
) -> None:
    (deep := tmp_path / "notes" / "home").mkdir(parents=True)
    (deep / "lease.md").write_text("# The lease\n\nIt ends in May.\n")
    empty_vault.run("import", str(tmp_path / "notes"), "--no-embed")
    for named in ("home/lease.md", "lease.md", "The lease", "the LEASE"):
        assert "ends in May" in empty_vault.json("get", named)["text"]
    empty_vault.run("add", "Another", "--title", "The lease")
    assert (
        "2 memories are called 'The lease'; use an id" in empty_vault.run("get", "The lease").stderr
    )
    assert "by its id, its path as imported, or its title" in empty_vault.run("get", "rent").stderr


def test_a_date_that_is_none_is_answered_with_spans_too(empty_vault: Vault) -> None:
    refused = empty_vault.run("search", "lease", "--since", "someday")
    assert refused.exit_code == 2
    assert "--since: 'someday' is not a date; write it like 2024-05-01, 7d" in refused.stderr


def test_add_takes_standard_input_and_metadata(empty_vault: Vault) -> None:
    added = empty_vault.run("add", "-", "--meta", "source=phone", "--json", input="from a pipe\n")
    memory = json.loads(added.stdout)
    assert (memory["text"], memory["metadata"]) == ("from a pipe", {"source": "phone"})


def test_search_shows_results_and_how_many_were_opened(vault: Vault) -> None:
    result = vault.run("search", "lease deposit", "--mode", "keyword")
    assert result.exit_code == 0, result.output
    assert "Lease of the flat" in result.stdout
    assert " of 5 memories opened · " in result.stdout
    assert "\x1b" not in result.stdout


def test_search_json_is_the_object_of_the_api(vault: Vault) -> None:
    answer = vault.json("search", "lease", "--mode", "keyword", "--limit", "1")
    assert answer["ok"] is True
    assert [row["title"] for row in answer["rows"]] == ["Lease of the flat"]
    assert answer["total"] == 5


@pytest.mark.parametrize("form", ["--nl", "--csv", "--table"])
def test_search_prints_rows_in_other_forms(vault: Vault, form: str) -> None:
    result = vault.run("search", "Lisbon", "--mode", "keyword", form)
    assert result.exit_code == 0, result.output
    titles = {"Lease of the flat", "Three days in Lisbon"}
    if form == "--nl":
        assert {json.loads(line)["title"] for line in result.stdout.splitlines()} == titles
    elif form == "--csv":
        assert {row["title"] for row in csv.DictReader(io.StringIO(result.stdout))} == titles
    else:
        assert all(title in result.stdout for title in titles)


def test_a_query_may_begin_with_a_minus_and_find_nothing(vault: Vault) -> None:
    answer = vault.json("search", "-lease Lisbon", "--mode", "keyword")
    assert [row["title"] for row in answer["rows"]] == ["Three days in Lisbon"]
    nothing = vault.run("search", "zyzzyva", "--mode", "keyword")
    assert nothing.exit_code == 0
    assert "Nothing found." in nothing.stdout
    assert " of 5 memories opened" in nothing.stdout


def test_a_search_that_a_filter_leaves_nothing_of_says_which_one_it_is(vault: Vault) -> None:
    words = ("search", "lease", "--mode", "keyword")
    mistyped = vault.run(*words, "--topic", "no-such-topic", "--since", "2001-01-01").stdout
    assert "Without --topic there are results." in mistyped
    assert "Without" not in vault.run("search", "zyzzyva", "--mode", "keyword").stdout
    assert "Without" not in vault.run(*words, "--since", "2001-01-01").stdout


def test_search_explains_itself(vault: Vault) -> None:
    bread = vault.json("list", "--topic", "baking")[0]["id"]
    result = vault.run("search", "lease", "--mode", "keyword", "--explain", "--why", bread)
    assert result.exit_code == 0, result.output
    assert f"why {bread[:8]}: " in result.stdout
    way, _, table = result.stdout.partition("\nstage ")
    assert "words 1" in way
    stages = [line.split()[0] for line in table.splitlines()]
    assert {"analyse", "fetch", "open", "preview"} <= set(stages)


def test_two_output_forms_at_once_are_refused(vault: Vault) -> None:
    result = vault.run("search", "lease", "--json", "--csv")
    assert result.exit_code == 2
    assert "--json and --csv" in result.stderr


def test_hostile_text_reaches_no_terminal(empty_vault: Vault) -> None:
    hostile = "lease \x1b]52;c;b3duZWQ=\x07 \x9b2J end"
    added = empty_vault.run("add", hostile, "--title", "evil \x1b[2J title")
    assert added.exit_code == 0, added.output
    for words in (("search", "lease", "--mode", "keyword"), ("list",), ("get", added.stdout[:8])):
        shown = empty_vault.run(*words)
        assert shown.exit_code == 0, shown.output
        assert "evil" in shown.stdout
        assert not {"\x1b", "\x07", "\x9b"} & set(shown.stdout)
    assert empty_vault.json("get", added.stdout[:8])["title"] == "evil \x1b[2J title"


def test_list_filters_and_orders(vault: Vault) -> None:
    assert len(vault.json("list")) == 5
    assert [m["title"] for m in vault.json("list", "--type", "fact")] == ["Lease of the flat"]
    homes = {m["title"] for m in vault.json("list", "--topic", "home")}
    assert homes == {"Lease of the flat", "Rye bread"}
    assert vault.json("list", "--until", "2024-12-31")[0]["title"] == "Lease of the flat"
    assert len(vault.json("list", "--limit", "2", "--offset", "4")) == 1


def test_edit_changes_what_is_named_and_nothing_else(vault: Vault) -> None:
    before = vault.json("list", "--type", "fact")[0]
    edit = ("edit", before["id"])
    after = vault.json(*edit, "--title", "Lease, signed")
    assert {key for key in before if before[key] != after[key]} == {"title", "version", "updated"}
    assert (after["title"], after["version"]) == ("Lease, signed", before["version"] + 1)
    assert vault.run(*edit, "--title", "Lost", "--if-version", "1").exit_code == 1
    assert vault.json("get", before["id"])["title"] == "Lease, signed"
    added = vault.json(*edit, "--add-topic", "signed", "--remove-topic", "home")
    assert added["topics"] == [*(one for one in before["topics"] if one != "home"), "signed"]
    assert vault.run(*edit).exit_code == 2, "nothing to change"


def test_done_completes_a_task(empty_vault: Vault) -> None:
    added = empty_vault.run("add", "Call the landlord", "--type", "task").stdout.strip()
    assert [m["type"] for m in empty_vault.json("done", added)] == ["task_done"]
    assert empty_vault.json("list", "--status", "open") == []
    assert [m["id"] for m in empty_vault.json("list", "--status", "done")] == [added]
    assert [m["type"] for m in empty_vault.json("reopen", added)] == ["task"]
    assert empty_vault.json("list", "--status", "done") == []


def test_deleted_memories_are_gone_everywhere_once_all_are_found(vault: Vault) -> None:
    memory = vault.json("list", "--type", "fact")[0]
    assert vault.run("delete", memory["id"], "no-such-memory", "--yes").exit_code == 1
    assert vault.json("get", memory["id"])["id"] == memory["id"]
    assert vault.run("delete", memory["id"], "--yes").exit_code == 0
    gone = vault.run("get", memory["id"])
    assert (gone.exit_code, memory["id"] in gone.stderr) == (1, True)
    assert vault.json("search", "deposit", "--mode", "keyword")["rows"] == []


def test_everything_is_counted_and_verified(vault: Vault) -> None:
    assert [c["memories"] for c in vault.json("collections")] == [5]
    topics = {row["topic"]: row["memories"] for row in vault.json("topics")}
    assert (topics["home"], topics["travel"]) == (2, 1)
    assert vault.json("stats")["memories"] == 5
    verified = vault.run("verify")
    assert (verified.exit_code, "0 failed" in verified.stdout) == (0, True)


def test_an_older_file_is_said_by_every_command_until_it_is_accepted(
    vault: Vault, tmp_path: Path
) -> None:
    backup, newer = tmp_path / "backup.db", tmp_path / "newer.db"
    run("backup", str(vault.path), str(backup))
    vault.run("add", "Written after the backup")
    run("backup", str(vault.path), str(newer))
    elsewhere = Vault(backup, vault.key_file, vault.recovery_code)
    assert "older than the one last used" in elsewhere.run("stats").stderr
    assert "older" not in vault.run("stats").stderr

    shutil.copy(backup, vault.path)
    for command in ("stats", "list", "verify"):
        reported = vault.run(command)
        assert reported.stderr.count("older than the one last used") == 1
        assert f"memory-store verify {vault.path} --accept-older" in reported.stderr
        assert reported.exit_code == 0, "an older file is whole"
    assert "0 failed, but the file is an older one" in reported.stdout
    assert json.loads(vault.run("verify", "--json").stdout)["older"]
    assert vault.run("verify", "--accept-older").exit_code == 0
    assert vault.run("verify").stderr == ""


def test_verify_finds_a_changed_record(vault: Vault) -> None:
    connection = sqlite3.connect(vault.path)
    with connection:
        id, body = connection.execute("select id, body from memory_bodies limit 1").fetchone()
        flipped = bytes([*body[:-1], body[-1] ^ 1])
        connection.execute("update memory_bodies set body = ? where id = ?", (flipped, id))
    connection.close()
    result = vault.run("verify")
    assert result.exit_code == 1
    assert result.stderr.startswith(("failed: ", "Error: "))


BAD = [
    (("search", "x", "--limit", "33"), "limit"),
    (("search", "x", "--limit", "0"), "limit"),
    (("search", "word", "--deep"), "deep"),
    (("search", ""), "say what you look for"),
    (("search", "   "), "say what you look for"),
    (("search", "x" * 1_000_000), "query"),
    (("search", "x", "--mode", "psychic"), "mode"),
    (("search", "x", "--recipe", "nobody"), "recipe"),
    (("search", "x", "--since", "yesteryear"), "--since"),
    (("search", "x", "--type", "poem"), "type"),
    (("search", "x", "--min-score", "7"), "--min-score"),
    (("search", "x", "--meta", "colour"), "meta"),
    (("search", "x", "--status", "maybe"), "status"),
    (("search", "x", "--continue", "rubbish"), "continue"),
    (("list", "--since", "yesteryear"), "since"),
    (("list", "--limit", "0"), "limit"),
    (("add", "x", "--type", "poem"), "type"),
    (("add", ""), "text"),
    (("search", "caf\udce9"), "query"),
    (("get", "caf\udce9"), "id"),
    (("add", "x", "--topic", "caf\udce9"), "--topic"),
]


@pytest.mark.parametrize(("words", "culprit"), BAD, ids=[ascii(" ".join(w))[:30] for w, _ in BAD])
def test_bad_input_is_one_line_that_names_the_culprit(
    vault: Vault, words: tuple[str, ...], culprit: str
) -> None:
    result = vault.run(*words)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert culprit in result.stderr.lower()
    assert len(result.stderr) < 500


def test_what_is_not_there_is_said(vault: Vault, tmp_path: Path) -> None:
    for words in (("get", "no-such-memory"), ("import", str(tmp_path / "nowhere"))):
        result = vault.run(*words)
        assert result.exit_code == 1, result.output
        assert Path(words[1]).name in result.stderr


def test_a_binary_on_standard_input_is_refused(vault: Vault) -> None:
    result = vault.run("add", "-", input=b"\x89PNG\xff\xfe\x00")
    assert result.exit_code == 2
    assert "UTF-8" in result.stderr
    assert vault.run("import", "-", "--no-embed", input=b"\x89PNG\xff\xfe\x00").exit_code in (0, 1)
    assert vault.json("stats")["memories"] == 5


def test_a_failure_of_the_database_is_said_plainly_and_a_defect_of_ours_is_not() -> None:
    from memory_store.cli.failures import EXIT_FAILED, exit_code_of, said_plainly
    from memory_store.sqlite import sqlite3 as chosen

    error = chosen.OperationalError("database is locked")
    assert said_plainly(error) == "the database refused: database is locked"
    assert exit_code_of(error) == EXIT_FAILED
    assert said_plainly(KeyError("rows")) is None


def test_an_unwritable_vault_is_an_error_and_not_a_traceback(vault: Vault) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    vault.path.chmod(0o400)
    result = vault.run("add", "x")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")


def test_what_one_assistant_wrote_is_deleted_as_a_whole(empty_vault: Vault) -> None:
    for by in ("codex", "codex", "claude-code"):
        empty_vault.run("add", f"The gate squeaks, says {by}", "--meta", f"by={by}")
    id_ = empty_vault.json("list", "--by", "claude-code")[0]["id"]
    for shown in (["list"], ["search", "squeaks"], ["get", id_]):
        assert " by claude-code" in empty_vault.run(*shown).stdout, shown
    assert empty_vault.run("delete", "--by", "codex", "--yes").stdout.count("deleted") == 2
    assert [one["metadata"]["by"] for one in empty_vault.json("list")] == ["claude-code"]
    assert len(empty_vault.json("list", "--by", "claude-code")) == 1
    nothing = empty_vault.run("delete", "--by", "codex", "--yes")
    assert (nothing.exit_code, "wrote nothing" in nothing.stderr) == (2, True)
    assert empty_vault.run("delete", "--yes").exit_code == 2
