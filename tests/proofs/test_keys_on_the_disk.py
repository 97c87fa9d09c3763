"""A new key is on the disk before anything is sealed with it, and never there by half; and so is
what a machine keeps of a vault."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from own_process import ended
from tracing import traced

CREATE = """
import resource, sys
from memory_store.store import MemoryStore
if len(sys.argv) > 3:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]),) * 2)
store, _ = MemoryStore.create(sys.argv[1], key_file=sys.argv[2], passphrase="eight or more")
store.lock()
"""
SYNCED = re.compile(r"\d+ +(?:fsync|fdatasync)\(\d+<([^>]+)>\) += 0")


@pytest.mark.once
def test_a_key_and_its_name_are_on_the_disk_before_the_vault(
    tmp_path: Path, private_folders: Path
) -> None:
    vault, key = tmp_path / "vaults" / "notes.db", tmp_path / "made" / "keys" / "notes.key"
    vault.parent.mkdir()
    script = ("-c", CREATE, str(vault), str(key))
    calls = traced(tmp_path / "calls", script, ["fsync", "fdatasync"], "-y").calls
    synced = [Path(met[1]) for line in calls if (met := SYNCED.match(line))]
    first = next(n for n, one in enumerate(synced) if one.parent == vault.parent)
    assert synced.index(key) < synced.index(key.parent) < first
    assert {key.parent.parent, tmp_path} <= {*synced[:first]}
    (device,) = (
        one
        for one in private_folders.rglob("*")
        if "device-keys" in str(one.parent.parent) and one.is_file()
    )
    assert device.parent in synced[:first]


@pytest.mark.once
def test_a_key_that_cannot_be_written_whole_leaves_no_file(
    tmp_path: Path, private_folders: Path
) -> None:
    vault, key = tmp_path / "notes.db", tmp_path / "keys" / "notes.key"
    words = [sys.executable, "-c", CREATE, str(vault), str(key)]
    done = ended(*words, "10")
    assert f"key file {key}: File too large" in done.stderr
    assert not key.exists()
    subprocess.run(words, check=True)
    assert key.exists()


@pytest.mark.once
def test_what_was_last_seen_is_on_the_disk_before_it_takes_its_name(
    tmp_path: Path, private_folders: Path
) -> None:
    """Else a power cut would leave an empty file, by which every older vault is new."""
    vault, key = tmp_path / "vaults" / "notes.db", tmp_path / "keys" / "notes.key"
    vault.parent.mkdir()
    script = ("-c", CREATE, str(vault), str(key))
    calls = traced(tmp_path / "calls", script, ["fsync", "rename", "renameat2"], "-y").calls
    (renamed,) = (n for n, line in enumerate(calls) if "last-seen" in line and "rename" in line)
    found = re.search(r'"([^"]+)"', calls[renamed])
    assert found
    synced = [Path(met[1]) for line in calls[:renamed] if (met := SYNCED.match(line))]
    assert Path(found[1]) in synced
