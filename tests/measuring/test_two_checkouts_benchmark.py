"""The measurement of two checkouts, of this one beside itself."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks import two_checkouts

ROOT = Path(__file__).parents[2]


def test_the_same_code_takes_about_as_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = tmp_path / "figures.json"
    words = ["two_checkouts", str(ROOT), str(ROOT), "--notes", "12", "--turns", "3"]
    monkeypatch.setattr(sys, "argv", [*words, "--json", str(figures)])
    two_checkouts.main()
    told = json.loads(figures.read_text())
    assert {one["work"] for one in told} >= {
        "search, by words",
        "unlock and first search",
        "import",
    }
    said = capsys.readouterr().out
    for one in told:
        assert 0.2 < one["ratio"] < 5, one
        assert f"{one['work']}: {one['ratio']:.3f}" in said
