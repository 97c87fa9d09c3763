"""A command prints the same, to the byte, whether a keeper does it or it opens the vault itself."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from keeping_open import KeptOpen, by_itself, by_keeper, start, untimed
from own_process import ended

from memory_store.store import MemoryStore

READING = [
    ["search", "DB", "when does the lease end"],
    ["search", "DB", "lease", "--json", "--explain"],
    ["search", "DB", "lisbon", "--csv", "--mode", "keyword"],
    ["search", "DB", "lisbon", "--nl", "-n", "1", "--page", "2"],
    ["search", "DB", "-n", "1", "--table", "bread"],
    ["search", "DB", "no such word at all", "--mode", "keyword"],
    ["search", "DB", "--like", "ffffffff"],
    ["search", "DB", "lease", "--mode", "nonsense"],
    ["search", "DB", "lease", "--limit", "5000"],
    ["s", "DB", "lease", "--why", "ffffffff"],
    ["list", "DB"],
    ["list", "DB", "--json", "--topic", "home"],
    ["lis", "DB", "--table"],
    ["get", "DB", "ffffffff"],
    ["get", "DB"],
    ["topics", "DB", "--json"],
    ["exists", "DB", "lisbon", "nowhere"],
    ["review", "DB"],
    ["review", "DB", "--json"],
    ["collections", "DB"],
    ["sources", "DB", "--json"],
    ["stats", "DB"],
    ["audit", "DB", "--csv"],
    ["list", "DB", "--no-such-option"],
    ["add", "DB", "", "--json"],
    ["edit", "DB", "ffffffff", "--title", "Other"],
    ["links", "DB", "ffffffff"],
    ["trash", "list", "DB", "--json"],
    ["code", "outline", "DB", "no-such-file.py"],
]


@pytest.mark.parametrize("words", READING, ids=" ".join)
def test_what_is_printed(
    kept: KeptOpen, words: list[str], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    words = [str(kept.path) if word == "DB" else word for word in words]
    assert (asked := untimed(by_keeper(capfdbinary, *words)))[0] is not None
    assert asked == untimed(by_itself(capfdbinary, *words))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device here that is always full")
def test_what_cannot_be_written_to_a_full_disk(kept: KeptOpen) -> None:
    for here in ("", "--no-keeper"):
        command = f"{sys.executable} -m memory_store {here} list {kept.path} > /dev/full"
        done = ended("sh", "-c", command)
        assert (done.returncode, done.stderr) == (1, "Error: no space left on device\n")


def test_a_memory_as_it_was_written(
    kept: KeptOpen, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    listed = by_keeper(capfdbinary, "list", str(kept.path), "--json")
    words = ["get", str(kept.path), json.loads(listed[1])[0]["id"]]
    assert by_keeper(capfdbinary, *words) == by_itself(capfdbinary, *words)


def test_a_relative_path_and_the_usual_vault(
    kept: KeptOpen, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(kept.path.parent)
    for words in (["list", kept.path.name], ["search", f"./{kept.path.name}", "lease"]):
        assert untimed(by_keeper(capfdbinary, *words)) == untimed(by_itself(capfdbinary, *words))
    monkeypatch.setenv("MEMORY_STORE_DB", kept.path.name)
    for words in (["list"], ["search", "when does the lease end"]):
        asked = untimed(by_keeper(capfdbinary, *words))
        assert asked[0] == 0
        assert asked == untimed(by_itself(capfdbinary, *words))


def test_the_width_and_the_colours_of_the_caller(
    kept: KeptOpen, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["search", str(kept.path), "when does the lease end"]
    for columns in ("40", "100"):
        monkeypatch.setenv("COLUMNS", columns)
        asked = untimed(by_keeper(capfdbinary, *words))
        assert asked == untimed(by_itself(capfdbinary, *words))


def test_a_long_memory_goes_through_the_pager_of_the_caller(
    kept: KeptOpen, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    listed = by_keeper(capfdbinary, "list", str(kept.path), "--json")
    words = ["get", str(kept.path), json.loads(listed[1])[0]["id"]]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("PAGER", "sh -c 'cat; echo paged'")
    monkeypatch.setenv("LINES", "2")
    code, out, _ = by_keeper(capfdbinary, *words)
    assert code == 0
    assert out.endswith(b"paged\n")
    assert by_keeper(capfdbinary, "list", str(kept.path))[0] == 0  # it was not locked by that


def test_words_that_are_no_utf8_are_refused_the_same_way(
    kept: KeptOpen, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    words = ["search", str(kept.path), "caf\udce9"]
    asked = by_keeper(capfdbinary, *words)
    assert asked[0] == 2
    assert asked == by_itself(capfdbinary, *words)


def test_standard_input_is_handed_on(
    kept: KeptOpen, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["search", str(kept.path), "-", "--json"]
    printed = []
    for way in (by_keeper, by_itself):
        given = io.TextIOWrapper(io.BytesIO("Belém\n".encode()), "utf-8")
        monkeypatch.setattr(sys, "stdin", given)
        printed.append(untimed(way(capfdbinary, *words)))
    assert printed[0] == printed[1]
    assert '"query": "Belém"'.encode() in printed[0][1]


def test_what_a_keeper_writes_is_there_for_others_and_the_other_way_round(
    kept: KeptOpen, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    name = str(kept.path)
    code, out, _ = by_keeper(capfdbinary, "add", name, "The boiler is serviced in October")
    assert code == 0
    added = out.decode().strip()
    with MemoryStore.open(kept.path, key_file=kept.key_file) as store:
        assert store.get(added).text == "The boiler is serviced in October"
        other = store.add("The chimney sweep comes in March").id
    code, out, _ = by_keeper(capfdbinary, "search", name, "chimney", "--json", "--mode", "keyword")
    assert [row["id"] for row in json.loads(out)["rows"]] == [other]
    assert by_keeper(capfdbinary, "delete", name, added, other, "--yes")[0] == 0
    assert by_itself(capfdbinary, "get", name, added)[0] == 1


def test_keys_that_another_process_rotates_do_not_stop_a_keeper(
    vault: KeptOpen, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = tmp_path / "rotated.db"
    store, _ = MemoryStore.create(path, key_file=vault.key_file)
    with store:
        store.add("The lease ends in May")
        kept = start(path, vault.key_file)
        store.keys.rotate()
    try:
        found = by_keeper(capfdbinary, "search", str(path), "lease")
        assert found[0] == 0
        assert b"The lease ends in May" in found[1]
    finally:
        kept.lock()
