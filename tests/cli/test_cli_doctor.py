"""``memory-store doctor``: what is wrong with a vault or an installation, and the remedy."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from typing_commands import Vault, run


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


def test_doctor_without_a_vault_examines_the_installation() -> None:
    result = run("doctor", "--json")
    assert result.exit_code == 0, result.output
    assert "versions" in {c["name"] for c in json.loads(result.stdout)}
