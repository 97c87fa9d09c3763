"""``collections``: listed, made, set up, renamed; and what the other commands make of them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typing_commands import Vault


def names(vault: Vault) -> list[str]:
    return [row["name"] for row in vault.json("collections")]


def test_a_collection_is_made_renamed_and_listed(empty_vault: Vault) -> None:
    made = empty_vault.run("collections", "create", "work")
    assert made.exit_code == 0, made.output
    assert "work" in made.stdout
    assert empty_vault.run("collections", "rename", "work", "job").exit_code == 0
    assert names(empty_vault) == ["personal", "job"]
    row = empty_vault.json("collections")[1]
    assert (row["analyser"], row["embedder"], row["own_model"]) == ("auto", None, False)


def test_a_collection_of_code_finds_names_by_their_parts(
    empty_vault: Vault, tmp_path: Path
) -> None:
    source = tmp_path / "shop" / "order_list.py"
    source.parent.mkdir()
    source.write_text("def getUserById(user_id): ...\n")
    assert empty_vault.run("collections", "create", "shop", "--analyser", "code").exit_code == 0
    empty_vault.run(
        *("import", str(source.parent), "--glob", "*.py", "--collection", "shop", "--no-embed")
    )
    for query in ("getUserById", "user", "order"):
        assert len(empty_vault.json("search", query, "--mode", "keyword")["rows"]) == 1, query
    assert "analyser code" in empty_vault.run("collections").stdout


def test_changed_settings_are_named_until_reindexed(embedded: Vault) -> None:
    changed = embedded.run("collections", "set", "personal", "--analyser", "en")
    assert changed.exit_code == 0, changed.output
    assert "5 memories are stale: memory-store reindex" in changed.stderr
    degraded = embedded.json("search", "lease", "--no-rerank")["degraded"]
    assert any(line.startswith("collection 'personal'") for line in degraded)
    doctor = {check["name"]: check for check in embedded.json("doctor")}
    assert doctor["collection personal"]["state"] == "missing"
    assert embedded.run("reindex", "--collection", "personal").stdout.startswith("5 memories")
    assert embedded.json("search", "lease", "--no-rerank")["degraded"] == []
    doctor = {check["name"]: check for check in embedded.json("doctor")}
    assert doctor["collection personal"]["state"] == "ok"
    assert "analyser en" in doctor["collection personal"]["detail"]


def test_the_doctor_names_a_collection_whose_model_is_gone(
    embedded: Vault, second_model: Path, tmp_path: Path
) -> None:
    own = Path(shutil.copytree(second_model, tmp_path / "own" / "tiny-multilingual"))
    assert embedded.run("collections", "create", "job", "--embedder", str(own)).exit_code == 0
    added = embedded.run("add", "The fleet is leased", "--collection", "job")
    assert added.exit_code == 0, added.output
    assert added.stderr == ""
    listed = embedded.run("collections").stdout
    assert "model tiny-multilingual" in listed
    assert _doctor(embedded)["collection job"]["state"] == "ok"
    shutil.rmtree(own)
    check = _doctor(embedded)["collection job"]
    assert check["state"] == "missing"
    assert "tiny-multilingual" in check["detail"]
    assert check["remedy"]
    assert "degraded: " in embedded.run("add", "Another", "--collection", "job").stderr


def test_the_doctor_says_when_the_environment_names_another_model(
    embedded: Vault, second_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "environment" not in _doctor(embedded)
    monkeypatch.setenv("MEMORY_STORE_MODEL", str(second_model))
    check = _doctor(embedded)["environment"]
    assert "tiny-multilingual" in check["detail"]
    assert "tiny-embedder" in check["detail"]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("create",), "give one name"),
        (("rename", "personal"), "old name and the new one"),
        (("set", "personal"), "--embedder or --analyser"),
        (("rename", "personal", "own", "--analyser", "de"), "belongs to create and set"),
        (("create", "x", "--analyser", "klingon"), "no analyser 'klingon'"),
        (("drop", "personal"), "drop"),
        (("members",), "give one name"),
        (("members", "personal", "--add", "alice"), "ACTOR=ROLE expected"),
        (("members", "personal", "--add", "alice=king"), "owner, writer, reader, searcher"),
        (("members", "personal", "--add", "bob=reader"), "is its owner"),
        (("members", "personal", "--open", "--remove", "bob"), "goes alone"),
        (("create", "x", "--add", "alice=owner"), "--add belongs to members"),
        (("delete", "personal", "--yes"), "Error: personal is the personal collection, which"),
    ],
)
def test_what_makes_no_sense_exits_with_2(
    empty_vault: Vault, arguments: tuple[str, ...], complaint: str
) -> None:
    result = empty_vault.run("collections", *arguments)
    assert result.exit_code == 2
    assert complaint in result.output
    assert names(empty_vault) == ["personal"]


def test_members_are_let_in_listed_and_let_go(empty_vault: Vault) -> None:
    assert empty_vault.run("collections", "create", "team", "--owner", "alice").exit_code == 0
    let_in = empty_vault.run("collections", "members", "team", "--add", "b=b@example.org=reader")
    assert let_in.exit_code == 0, let_in.output
    assert let_in.stdout == "owner     alice\nreader    b=b@example.org\n"
    assert "(closed: 2 members)" in empty_vault.run("collections").stdout
    assert empty_vault.json("collections")[1]["members"] == {
        "alice": "owner",
        "b=b@example.org": "reader",
    }
    left = empty_vault.json("collections", "members", "team", "--remove", "b=b@example.org")
    assert left == [{"actor": "alice", "role": "owner"}]
    assert empty_vault.run("collections", "members", "team", "--remove", "alice").exit_code == 2
    opened = empty_vault.run("collections", "members", "team", "--open")
    assert opened.stdout == "open: it has no members\n"


def test_a_memory_is_published_in_another_collection(vault: Vault) -> None:
    vault.run("collections", "create", "team")
    original = vault.json("list")[0]
    copy = vault.json("publish", original["id"][:8], "team")
    assert (copy["collection"], copy["text"]) == ("team", original["text"])
    again = vault.run("publish", original["id"], "team")
    assert again.stdout == f"{copy['id']} in team\n"
    assert vault.run("publish", original["id"], "nowhere").exit_code == 1


def test_a_copy_is_recognised_in_another_vault(
    vault: Vault, make_vault: Callable[[str], Vault], tmp_path: Path
) -> None:
    vault.run("collections", "create", "team")
    original = vault.json("list")[0]
    copy = vault.json("publish", original["id"], "team")
    vault.run("export", str(tmp_path / "out"))
    other = make_vault("other.db")
    assert other.run("import", str(tmp_path / "out")).exit_code == 0
    assert other.json("publish", original["id"], "team")["id"] == copy["id"]


def test_a_collection_no_one_knows_exits_with_1(empty_vault: Vault) -> None:
    assert empty_vault.run("collections", "set", "work", "--analyser", "de").exit_code == 1


def _doctor(vault: Vault) -> dict[str, dict[str, str]]:
    return {check["name"]: check for check in vault.json("doctor")}
