"""``memory-store eval --fit``: the default ranking learns from judgements, if that helps."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typing_commands import Vault

from memory_store.search.fusion.learned import USUAL, numbers_for

FIRST = ("copper", "oyster", "velvet", "marble", "walnut")
SECOND = ("kettle", "lantern", "ladder", "saddle", "mirror")
PAIRS = [(first, second) for first in FIRST for second in SECOND]
"""25 things. Of each there is a note that is filed under it, and one that names it in passing."""
FILED, NAMED = "{:.3}{:.3}.md", "luck-{:.3}{:.3}.md"  # whose names are no words of questions


@pytest.fixture
def attic(make_vault: Callable[[str], Vault], tmp_path: Path) -> Vault:
    """Two notes on each thing, without vectors."""
    folder = tmp_path / "attic"
    folder.mkdir()
    for first, second in PAIRS:
        filed = f"---\ntitle: Filed\ntags: [{first}, {second}]\n---\nThis {second} is upstairs.\n"
        (folder / FILED.format(first, second)).write_text(filed, "utf-8")
        named = f"---\ntitle: Luck\n---\nWe had the {first} and then the {second}, and no luck.\n"
        (folder / NAMED.format(first, second)).write_text(named, "utf-8")
    vault = make_vault("attic.db")
    result = vault.run("import", str(folder), "--no-embed")
    assert result.exit_code == 0, result.output
    return vault


def judged(folder: Path, answer: str, count: int = len(PAIRS)) -> tuple[str, ...]:
    """Questions for things; relevant is the note that ``answer`` names with both words."""
    queries, qrels = folder / "queries.jsonl", folder / "qrels.tsv"
    asked = PAIRS[:count]
    lines = [json.dumps({"id": f"q{n}", "text": f"{a} {b}"}) for n, (a, b) in enumerate(asked)]
    queries.write_text("\n".join(lines), "utf-8")
    lines = [f"q{n}\t{answer.format(a, b)}\t1" for n, (a, b) in enumerate(asked)]
    qrels.write_text("\n".join(lines), "utf-8")
    return ("--queries", str(queries), "--qrels", str(qrels))


def fit(vault: Vault, files: tuple[str, ...], *options: str) -> dict[str, Any]:
    found: dict[str, Any] = vault.json("eval", *files, "--fit", *options)
    return found


def first_ref(vault: Vault) -> str:
    return str(vault.json("search", "copper kettle")["rows"][0]["ref"])


def test_a_fit_that_helps_is_kept_until_it_is_taken_back(attic: Vault, tmp_path: Path) -> None:
    files = judged(tmp_path, NAMED)
    assert first_ref(attic) == "copket.md", "topics count for more than words"
    tried = fit(attic, files, "--dry-run")
    assert tried["order_helps"]
    assert not tried["kept"]
    assert attic.json("settings")["rankings"] == [], "a trial keeps nothing"
    kept = fit(attic, files)
    assert kept["kept"]
    assert kept["after"]["mean"] > kept["before"]["mean"] + 0.1
    (own,) = attic.json("settings")["rankings"]
    assert own["queries"] == len(PAIRS)
    assert "fitted to 25 of your queries" in attic.run("settings").stdout
    assert first_ref(attic) == "luck-copket.md"
    assert attic.run("settings", "ranking", "general").exit_code == 0
    assert attic.json("settings")["rankings"] == []
    assert first_ref(attic) == "copket.md"


def test_an_order_that_is_right_already_is_left_as_it_is(attic: Vault, tmp_path: Path) -> None:
    found = fit(attic, judged(tmp_path, FILED))
    assert not found["order_helps"]
    if found["fitted"] is not None:  # what the scores mean may still be fitted
        assert found["fitted"]["numbers"]["weights"] == numbers_for(USUAL).weights
    assert first_ref(attic) == "copket.md"


def test_a_few_judgements_are_refused(attic: Vault, tmp_path: Path) -> None:
    refused = attic.run("eval", *judged(tmp_path, FILED, count=7), "--fit")
    assert refused.exit_code == 2
    assert "7 can be used, and 20 are needed" in refused.stderr
    assert attic.json("settings")["rankings"] == []


def test_what_a_fit_does_not_take_is_named(attic: Vault, tmp_path: Path) -> None:
    files = judged(tmp_path, FILED)
    for words, reported in (
        (("--fit", "--recipe", "qmd"), "goes with queries and judgements alone"),
        (("--dry-run",), "only with --fit"),
    ):
        refused = attic.run("eval", *files, *words)
        assert refused.exit_code == 2
        assert reported in refused.stderr
