"""``searches``: kept under a name, and run again."""

from __future__ import annotations

import json
import re

from click.testing import Result
from typing_commands import Vault, run

from memory_store.keeper.served import announced


def kept(vault: Vault, command: str, *words: str) -> Result:
    key = ("--key-file", str(vault.key_file))
    return run("searches", command, str(vault.path), *key, *words)


def test_a_search_is_saved_listed_run_renamed_and_removed(vault: Vault) -> None:
    saved = kept(vault, "save", "the lease", "lease", "--limit", "3", "--mode", "keyword")
    assert saved.exit_code == 0, saved.output
    (row,) = json.loads(kept(vault, "list", "--json").stdout)
    assert row["search"] == {"q": "lease", "mode": "keyword", "limit": 3}
    assert (row["name"], row["owner"], row["feed"]) == ("the lease", "root", False)
    ran = json.loads(kept(vault, "run", "the lease", "--json").stdout)
    asked = vault.run("search", "lease", "--limit", "3", "--mode", "keyword", "--json").stdout
    assert [one["id"] for one in ran["rows"]] == [one["id"] for one in json.loads(asked)["rows"]]
    assert ran["rows"]
    assert kept(vault, "rename", "the lease", "rent").exit_code == 0
    assert "rent: lease --mode keyword --limit 3" in kept(vault, "list").stdout
    assert kept(vault, "remove", "the lease").exit_code == 1
    assert kept(vault, "remove", "rent").exit_code == 0
    assert json.loads(kept(vault, "list", "--json").stdout) == []


def test_filters_alone_are_listed_without_a_score_or_a_doubt(vault: Vault) -> None:
    kept(vault, "save", "facts", "--type", "fact")
    shown = kept(vault, "run", "facts").stdout
    title = vault.json("list", "--type", "fact")[0]["title"]
    assert shown.startswith(f" 1  {title}\n")
    assert "Nothing" not in shown


def test_searches_alone_lists_them(vault: Vault) -> None:
    kept(vault, "save", "rent", "lease")
    key = ("--key-file", str(vault.key_file))
    assert run("searches", str(vault.path), *key).stdout == kept(vault, "list").stdout


def test_the_token_of_a_feed_is_printed_once_and_kept_nowhere(vault: Vault) -> None:
    kept(vault, "save", "rent", "lease")
    made = json.loads(kept(vault, "feed", "rent", "--json").stdout)
    assert made["atom"].endswith(f"/feeds/{made['id']}.atom")
    assert len(made["token"]) >= 43
    listed = kept(vault, "list", "--json").stdout
    assert made["token"] not in listed
    assert json.loads(listed)[0]["feed"] is True
    assert made["token"].encode() not in vault.path.read_bytes()
    assert kept(vault, "feed", "rent", "--end").exit_code == 0
    assert json.loads(kept(vault, "list", "--json").stdout)[0]["feed"] is False


def test_the_beginning_of_both_means_search(vault: Vault) -> None:
    whole, begun = (vault.json(name, "lease", "--mode", "keyword") for name in ("search", "sear"))
    assert begun["rows"] == whole["rows"]
    assert vault.run("se", "lease").exit_code == 2


def test_a_feed_has_whole_addresses_and_a_search_another_length(vault: Vault) -> None:
    assert kept(vault, "save", "rent", "lease").exit_code == 0
    said = kept(vault, "feed", "rent").stdout
    base = f"http://127.0.0.1:8001/{vault.path.stem}/-/hybrid/feeds/"
    assert re.search(rf"Atom: +{re.escape(base)}[\w-]+\.atom\nJSON Feed: {re.escape(base)}", said)
    with announced(str(vault.path), "http://127.0.0.1:8010/work"):
        assert "http://127.0.0.1:8010/work/-/hybrid/feeds/" in kept(vault, "feed", "rent").stdout
    found = json.loads(kept(vault, "run", "rent", "-n", "1", "--json").stdout)
    assert len(found["rows"]) == 1
