"""``memory-store eval``: one command says which ranking is best for one's own notes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import tiny_reranker
from typing_commands import Vault

QUERIES = {
    "q1": "when does the lease end",
    "q2": "Steuererklärung",
    "q3": "restic snapshots",
    "q4": "travel",
    "q5": "dwelling",
}
QRELS = (
    ("q1", "lease.md", 3),
    ("q2", "steuer.md", 2),
    ("q3", "backup.txt", 1),
    ("q4", "travel/lisbon.md", 2),
    ("q4", "gone.md", 1),
    ("q5", "bread.md", 1),
)


@pytest.fixture
def judged(tmp_path: Path) -> tuple[str, ...]:
    """The options that name a file of queries and one of judgements."""
    queries, qrels = tmp_path / "queries.jsonl", tmp_path / "qrels.tsv"
    lines = [json.dumps({"id": name, "text": text}) for name, text in QUERIES.items()]
    queries.write_text("\n".join(lines), "utf-8")
    qrels.write_text("".join(f"{q}\t{ref}\t{grade}\n" for q, ref, grade in QRELS), "utf-8")
    return ("--queries", str(queries), "--qrels", str(qrels))


def test_the_default_ranking_is_held_against_keywords_and_vectors(
    embedded: Vault, judged: tuple[str, ...]
) -> None:
    result = embedded.run("eval", *judged)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("5 judged queries, 5 memories, ranked to depth 100\n")
    for name in ("default", "keyword", "vector"):
        interval = r"\d?\.\d+ \[\d?\.\d+, \d?\.\d+\]"
        assert re.search(rf"^{name} +({interval} +){{4}}\d$", result.stdout, re.M)
    assert re.search(r"^vector +[+-]\.\d+ \[.+\] +(< )?\.?\d+ +\d +\d$", result.stdout, re.M)
    assert "To rank, 0 memories were opened" in result.stdout
    assert "note: 1 judged ref is not in this vault: gone.md" in result.stdout
    assert max(len(line) for line in result.stdout.splitlines()[:12]) <= 100


def test_a_folder_is_measured_in_a_vault_made_for_it(
    empty_vault: Vault, judged: tuple[str, ...], tmp_path: Path
) -> None:
    folder = ("--folder", str(tmp_path), "--mode", "keyword")
    refs = ("lease.md", "steuer.md", "backup.txt")
    corpus = [json.dumps({"_id": ref, "title": ref, "text": f"When? {ref}"}) for ref in refs]
    (tmp_path / "corpus.jsonl").write_text("\n".join(corpus), "utf-8")
    refused = empty_vault.run("eval", *folder)
    assert refused.exit_code != 0
    assert "lacks 3 of the 3 documents" in refused.output
    added = empty_vault.json("eval", *folder, "--add")
    assert (added["memories"], added["queries"]) == (3, 5)
    assert empty_vault.json("eval", *folder)["runs"] == added["runs"], "nothing is added twice"
    both = empty_vault.run("eval", *folder, *judged)
    assert both.exit_code != 0
    assert "give either --queries and --qrels, or --folder" in both.output


@pytest.mark.usefixtures("judged")
def test_documents_to_measure_are_not_mixed_with_notes(vault: Vault, tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text('{"_id": "d1", "text": "an abstract"}', "utf-8")
    refused = vault.run("eval", "--folder", str(tmp_path), "--add")
    assert refused.exit_code != 0
    assert "add: the vault holds other memories" in refused.output


def test_a_run_is_called_after_its_reranker(embedded: Vault, judged: tuple[str, ...]) -> None:
    runs = ("--recipe", "default", "--recipe", "gnosis", "--mode", "keyword")
    reported = embedded.json("eval", *judged, *runs, "--reranker", "maxsim")
    assert [run["name"] for run in reported["runs"]] == [
        "default+maxsim",
        "gnosis+maxsim",
        "keyword",
    ]
    reported = embedded.json("eval", *judged, *runs, "--reranker", "maxsim", "--no-rerank")
    assert reported["runs"][0]["name"] == "default"


def test_without_a_model_the_vector_run_is_left_out_and_named(
    vault: Vault, judged: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MEMORY_STORE_MODEL", str(tmp_path / "no-model"))
    result = vault.run("eval", *judged)
    assert result.exit_code == 0, result.output
    assert re.search(r"^keyword ", result.stdout, re.M)
    assert not re.search(r"^vector ", result.stdout, re.M)
    assert "note: vector is not measured: no vectors" in result.stdout


def test_recipes_and_modes_are_runs_in_the_order_given(
    vault: Vault, judged: tuple[str, ...]
) -> None:
    runs = ("--mode", "keyword", "--recipe", "gno", "--recipe", "default", "--mode", "hybrid")
    report = vault.json("eval", *judged, *runs)
    assert [(run["name"], run["mode"], run["recipe"]) for run in report["runs"]] == [
        ("gno", "hybrid", "gno"),
        ("default", "hybrid", "default"),
        ("keyword", "keyword", "default"),
    ]
    assert report["baseline"] == "gno"
    assert report["runs"][0]["against_baseline"] is None
    assert report["runs"][1]["against_baseline"]["ndcg@10"].keys() == {
        *("difference", "low", "high", "p", "better", "worse"),
    }


def test_json_holds_every_figure(vault: Vault, judged: tuple[str, ...]) -> None:
    report = vault.json("eval", *judged, "--mode", "keyword")
    (run,) = report["runs"]
    assert set(run["measures"]) == {"ndcg@10", "recall@10", "recall@100", "mrr@10"}
    assert run["per_query"]["q2"]["mrr@10"] == 1.0
    assert run["per_query"]["q4"]["recall@10"] == 0.5
    mean = sum(values["ndcg@10"] for values in run["per_query"].values()) / 5
    assert run["measures"]["ndcg@10"]["mean"] == pytest.approx(mean, abs=1e-5)
    assert run["measures"]["ndcg@10"]["low"] <= mean <= run["measures"]["ndcg@10"]["high"]
    assert (report["queries"], report["memories"], report["depth"]) == (5, 5, 100)
    assert (run["opened"], run["reranked"]) == (0, 0)
    assert report["unknown_refs"] == ["gone.md"]


def test_losses_name_the_queries_where_a_run_is_worse(
    embedded: Vault, judged: tuple[str, ...]
) -> None:
    words = ("eval", *judged, "--mode", "vector", "--mode", "keyword", "--losses", "1")
    report = embedded.json(*words)
    (loss,) = report["runs"][1]["losses"]
    assert loss["value"] < loss["baseline"]
    assert (loss["query"], loss["text"]) == ("q5", "dwelling")
    shown = embedded.run(*words).stdout
    assert "Where keyword loses most against vector (nDCG@10):" in shown
    assert re.search(r"^  \d\.\d{3} → 0\.000  q5  dwelling$", shown, re.M)


def test_a_run_file_ranks_as_the_search_does(
    vault: Vault, judged: tuple[str, ...], tmp_path: Path
) -> None:
    target = tmp_path / "run.tsv"
    result = vault.run("eval", *judged, "--mode", "keyword", "--run-out", str(target))
    assert result.exit_code == 0, result.output
    lines = [line.split("\t") for line in target.read_text("utf-8").splitlines()]
    assert {query for query, *_ in lines} == set(QUERIES) - {"q5"}  # found nothing
    rows = vault.json("search", QUERIES["q1"], "--mode", "keyword")["rows"]
    ranked = [(ref, int(rank)) for query, ref, rank, _ in lines if query == "q1"]
    assert ranked == [(row["ref"], row["rank"]) for row in rows]
    assert target.stat().st_mode & 0o777 == 0o600


def test_several_runs_write_a_file_each_into_a_folder_that_is_there(
    vault: Vault, judged: tuple[str, ...], tmp_path: Path
) -> None:
    runs = ("eval", *judged, "--recipe", "default", "--mode", "keyword", "--run-out")
    result = vault.run(*runs, str(tmp_path / "run.tsv"))
    assert result.exit_code == 0, result.output
    written = {file.name for file in tmp_path.glob("run*.tsv")}
    assert written == {"run-default.tsv", "run-keyword.tsv"}
    nowhere = vault.run(*runs, str(tmp_path / "no" / "run.tsv"))
    assert (nowhere.exit_code, "--run-out: the folder" in nowhere.stderr) == (2, True)


def test_a_run_file_never_takes_the_place_of_what_it_is_made_from(
    vault: Vault, judged: tuple[str, ...]
) -> None:
    qrels = Path(judged[3]).rename(Path(judged[3]).with_name("run-keyword.tsv"))
    options = (*judged[:3], str(qrels), "--mode", "keyword", "--mode", "hybrid")
    for precious in (judged[1], str(vault.path), str(qrels)):
        before = Path(precious).read_bytes()
        result = vault.run("eval", *options, "--run-out", precious.replace("-keyword", ""))
        assert result.exit_code == 2
        assert "--run-out" in result.stderr
        assert Path(precious).read_bytes() == before


def test_judgements_may_come_from_standard_input(vault: Vault, judged: tuple[str, ...]) -> None:
    given, text = ("eval", *judged[:3], "-", "--mode", "keyword"), "q1\tlease.md\t2\n"
    assert vault.run(*given, input=text).stdout.startswith("1 judged query, 5 memories, ")
    broken = vault.run(*given, input=f"{text}q1\tlease.md\n")
    assert (broken.exit_code, broken.stderr.startswith("Error: -:2: ")) == (2, True)
    both = vault.run("eval", "--queries", "-", "--qrels", "-", input=text)
    assert both.exit_code == 2
    assert "--qrels" in both.stderr


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (("--recipe", "soup"), "--recipe: 'soup' is not one of default"),
        (("--recipe", "../x", "--mode", "keyword", "--run-out", "r.tsv"), "--recipe: '../x'"),
        (("--mode", "literal"), "'literal' is not one of"),
        (("--depth", "3"), "--depth: must be from 10"),
        (("--reranker", "no-such-model"), "no-such-model"),
    ],
)
def test_odd_options_are_refused(
    vault: Vault, judged: tuple[str, ...], words: tuple[str, ...], reported: str
) -> None:
    result = vault.run("eval", *judged, *words)
    assert result.exit_code == 2
    assert reported in result.stderr


class TestWithAReranker:
    @pytest.fixture(autouse=True)
    def _reranker(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        tiny_reranker.chosen(tmp_path / "rerankers", monkeypatch)

    def test_the_figures_are_those_of_its_reading(
        self, embedded: Vault, judged: tuple[str, ...]
    ) -> None:
        report = embedded.json("eval", *judged, "--mode", "hybrid")
        (run,) = report["runs"]
        assert run["reranked"] == run["opened"] == 5 * 5

    def test_no_rerank_measures_the_fusion(self, embedded: Vault, judged: tuple[str, ...]) -> None:
        report = embedded.json("eval", *judged, "--mode", "hybrid", "--no-rerank")
        assert report["runs"][0]["opened"] == 0
