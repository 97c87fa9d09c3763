"""The measurement of very many vaults, on a few."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import many_vaults


def test_a_search_among_others_is_held_against_one_alone(
    tmp_path: Path,
    tiny_model: Path,
    private_folders: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("MEMORY_STORE_MODEL", str(tiny_model))
    monkeypatch.setattr(many_vaults, "NOTES", 12)
    monkeypatch.setattr(many_vaults, "ALLOWED", 1_000.0)
    figures = tmp_path / "figures.json"
    assert many_vaults.main(["--vaults", "3", "--turns", "4", "--json", str(figures)]) == 0
    told = json.loads(figures.read_text())
    assert (told["alone"]["vaults"], told["among"]["vaults"]) == (1, 3)
    assert told["ratio"] == pytest.approx(
        told["among"]["search"] / told["alone"]["search"], rel=0.01
    )
    assert told["first"] > 0
    assert "3 vaults" in capsys.readouterr().out
