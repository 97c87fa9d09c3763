"""The measurements of code ranking and of patterns, on a repository of three files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from benchmarks import code_peers, code_quality, code_speed, pattern_search
from memory_store.search import recipes

FILES = {
    "src/sessions.py": "class SessionStore:\n    def sign_cookie(self, one):\n        return 1\n",
    "src/routes.py": "def add_route(path):\n    return SessionStore().sign_cookie(path)\n",
    "tests/test_sessions.py": (
        "def test_cookies():\n"
        "    store = SessionStore()\n    assert store.sign_cookie('some payload')  # payload\n"
    ),
}


@pytest.fixture
def tree(tmp_path: Path, private_folders: Path) -> Path:
    folder = tmp_path / "tree"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    (folder / ".git").mkdir()
    return folder


def test_recipe_and_rules_are_measured_on_labels(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recipes, "RECIPES", recipes.RECIPES)
    asked = {"query": "SessionStore", "category": "symbol"}
    relevant = [{"file": "src/sessions.py", "relevance": 3}]
    (tmp_path / "queries.json").write_text(
        json.dumps({"queries": [{**asked, "relevant": relevant}]}), "utf-8"
    )
    wanted = code_quality.labels(tmp_path / "queries.json")
    (tmp_path / "vaults").mkdir()
    files, every = code_quality.measured(tree, wanted, tmp_path)
    told = code_quality.figures(every, wanted)
    assert files == 3
    assert told["runs"]["code"] == 1.0
    assert set(told["runs"]) == {
        "code",
        "prx",
        *code_quality.ABLATIONS,
        code_quality.BESIDE,
        code_quality.AMONG,
    }
    assert told["categories"] == {"symbol": 1.0}
    assert "code-flask: 3 files" in next(code_quality.table(files, told))


def test_patterns_of_a_folder_open_what_may_match(tree: Path, tmp_path: Path) -> None:
    wanted = pattern_search.patterns(tree, 50)
    assert ("literal", "some payload") in wanted
    assert ("a call", r"\bsign_cookie\(") in wanted
    with pattern_search.imported(tree, tmp_path / "sealed") as store:
        found = {one.pattern: one for one in pattern_search.asked(store, wanted)}
    assert found[r"\bsign_cookie\("].found == set(FILES)
    assert found["(?i)SOME PAYLOAD"].found == {"tests/test_sessions.py"}
    assert found["(?i)SOME PAYLOAD"].opened == 1
    summed = pattern_search.summary(list(found.values()), len(FILES))
    assert 0 < summed["opened_median"] <= 1


def test_speed_is_measured_on_a_tree(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert code_speed.main(["--tree", str(tree), "--symbol", "Absent"]) == 0
    said = capsys.readouterr().out
    assert "symbols('sign_cookie')" in said
    assert "Absent" not in said
    assert "files: 3" in said
    assert f"search({code_speed.QUESTIONS[0]!r})" in said


def test_each_step_is_a_process_of_its_own_beside_others(
    tree: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert code_peers.main([str(tree)]) == 0
    said = capsys.readouterr().out
    assert "3 files" in said
    for step in (code_peers.INDEX, code_peers.AGAIN, code_peers.FIRST, code_peers.QUESTION):
        (line,) = (one for one in said.splitlines() if one.startswith(f"  ours      {step}"))
        assert float(line.split()[-2].replace(",", "")) > 0
