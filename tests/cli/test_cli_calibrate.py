"""``memory-store calibrate``: a reranker's scores come to mean how likely a memory is relevant."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from statistics import mean

import pytest
from tiny_reranker import build
from typing_commands import Vault

FIRST = ("copper", "oyster", "velvet", "marble", "walnut", "saffron", "linen", "cedar")
SECOND = ("kettle", "lantern", "ladder", "saddle", "mirror", "anchor", "basket", "candle")


@pytest.fixture
def attic(make_vault: Callable[[str], Vault], tmp_path: Path) -> Vault:
    """One note on each pair of a material and a thing, without vectors."""
    folder = tmp_path / "attic"
    folder.mkdir()
    for first in FIRST:
        for second in SECOND:
            text = f"The {first} one in the attic is a {second}, wrapped in paper.\n"
            (folder / f"{first}-{second}.md").write_text(text, "utf-8")
    vault = make_vault("attic.db")
    result = vault.run("import", str(folder), "--no-embed")
    assert result.exit_code == 0, result.output
    return vault


@pytest.fixture
def judged(tmp_path: Path) -> tuple[str, ...]:
    """Eight questions for both words; relevant is the note that holds them."""
    queries, qrels = tmp_path / "queries.jsonl", tmp_path / "qrels.tsv"
    pairs = list(zip(FIRST, SECOND, strict=True))
    queries.write_text(
        "\n".join(json.dumps({"id": f"q{n}", "text": f"{a} {b}"}) for n, (a, b) in enumerate(pairs))
    )
    lines = [f"q{n}\t{a}-{b}.md\t1" for n, (a, b) in enumerate(pairs)]
    lines += [f"q{n}\t{a}-{SECOND[n - 1]}.md\t0" for n, (a, _) in enumerate(pairs)]
    qrels.write_text("\n".join([*lines, "q0\tgone.md\t1"]))
    return ("--queries", str(queries), "--qrels", str(qrels))


@pytest.fixture
def home_made(tmp_path: Path) -> str:
    """A cross-encoder under a name without a calibration."""
    return str(build(tmp_path / "home-made", words=(*FIRST, *SECOND)))


def scores(vault: Vault, reranker: str) -> list[tuple[float, str | None, str]]:
    found = vault.run("search", "marble saddle", "--reranker", reranker, "--json", "-n", "20")
    assert found.exit_code == 0, found.output
    rows = json.loads(found.stdout)["rows"]
    return [(row["rerank_score"], row["band"], row["ref"]) for row in rows]


def test_what_was_fitted_is_used_from_then_on_and_gives_bands(
    attic: Vault, judged: tuple[str, ...], home_made: str, tmp_path: Path
) -> None:
    trial = attic.run("calibrate", *judged, "--reranker", home_made, "--dry-run")
    assert trial.exit_code == 0, trial.output
    assert "Nothing stored." in trial.stdout
    assert {band for _, band, _ in scores(attic, home_made)} == {None}
    assert not list(tmp_path.rglob("calibrations.json"))
    result = attic.run("calibrate", *judged, "--reranker", home_made)
    assert result.exit_code == 0, result.output
    best, *others = scores(attic, home_made)
    assert best[1:] == ("excellent", "marble-saddle.md")
    assert best[0] > 0.5 > mean(score for score, _, _ in others)
    (stored,) = tmp_path.rglob("calibrations.json")
    content = stored.read_text("utf-8")
    assert not any(word in content for word in (*FIRST, *SECOND, "attic"))


def test_the_report_says_what_the_fit_is_worth(
    attic: Vault, judged: tuple[str, ...], home_made: str
) -> None:
    result = attic.run("calibrate", *judged, "--reranker", home_made)
    for said in (
        *("home-made: ", "8 queries, 8 relevant; 16 judged", "until now: none"),
        *("1 judged ref is not in this vault", "calibrations.json"),
    ):
        assert said in result.stdout
    report = attic.json("calibrate", *judged, "--reranker", home_made)
    fitted, bins = report["fitted"], report["bins"]
    assert report["before"] is not None
    assert (fitted["model"], fitted["slope"] > 0, report["loss"] < 0.3) == ("home-made", True, True)
    assert sum(one["pairs"] for one in bins) == fitted["pairs"]
    assert bins[0]["relevant"] < 0.1
    assert bins[-1]["relevant"] > 0.5


def test_what_cannot_be_calibrated_is_said(
    attic: Vault, judged: tuple[str, ...], home_made: str, tmp_path: Path
) -> None:
    late = attic.run("calibrate", *judged, "--reranker", "maxsim")
    assert late.exit_code == 2
    assert "maxsim has no score that could be calibrated" in late.stderr
    absent = attic.run("calibrate", *judged)
    assert absent.exit_code == 1
    assert "memory-store models get" in absent.stderr
    (tmp_path / "few.tsv").write_text("q0\tcopper-kettle.md\t1\n")
    few = attic.run(
        "calibrate", *judged[:2], "--qrels", str(tmp_path / "few.tsv"), "--reranker", home_made
    )
    assert few.exit_code == 2
    assert "too few" in few.stderr


def test_the_doctor_says_what_a_model_s_scores_rest_on(
    attic: Vault, judged: tuple[str, ...], home_made: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def said() -> str:
        (check,) = [c for c in attic.json("doctor") if c["name"] == "reranking model"]
        return str(check["detail"])

    preset = build(Path(home_made).parent / "ms-marco-TinyBERT-L-2-v2")
    monkeypatch.setenv("MEMORY_STORE_RERANKER", str(preset))
    assert "preset, not fitted: memory-store calibrate" in said()
    monkeypatch.setenv("MEMORY_STORE_RERANKER", home_made)
    assert "not calibrated" in said()
    attic.run("calibrate", *judged)
    assert "pairs of yours" in said()
    monkeypatch.setenv("MEMORY_STORE_RERANKER", "maxsim")
    assert "late interaction" in said()


def test_late_interaction_is_an_option_like_any_reranker(
    attic: Vault, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_STORE_MODEL", str(tiny_model))
    read = attic.json("search", "marble attic", "--reranker", "maxsim")
    assert read["counts"].startswith("Reranked 16 of")
    assert read["rows"][0]["rerank_score"] is not None
