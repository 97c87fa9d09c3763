"""Judged collections as folders: what is searched, what is asked, and what should be found.

A folder holds ``corpus.jsonl``, ``queries.jsonl`` and ``qrels.tsv``. BEIR's layout (Thakur and
others, "BEIR: A Heterogeneous Benchmark for Zero-shot Evaluation of Information Retrieval Models",
2021) is read as it is: ``_id`` for ``id``, and ``qrels/test.tsv`` with a line of headings.

Boundary: documents and queries pass through in clear. An error names the file and the line, and
quotes neither.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from memory_store.errors import BadInputError
from memory_store.evaluation.judgements import read_judgements, read_queries, read_rows
from memory_store.records import MemoryDraft

CORPUS, QUERIES = "corpus.jsonl", "queries.jsonl"
QRELS = ("qrels.tsv", "qrels/test.tsv", "qrels/dev.tsv", "qrels/train.tsv")
"""Where judgements may be: the first of these that is there."""
SHUFFLED_BY = 1_966  # any number: the order is always the same one


class EvaluationFolder(Struct, frozen=True):
    """One folder of documents, queries and judgements. Its files are read when you ask for them."""

    path: Path
    qrels: Path

    @property
    def name(self) -> str:
        """What the set is called: its folder's name."""
        return self.path.resolve().name

    def documents(self, *, shuffled: bool = True) -> tuple[MemoryDraft, ...]:
        """The documents as memories, their ids as refs; those without any text are left out.

        They have no dates, so the order in which they are imported would count as the order in
        which they were written: they are ``shuffled``, always alike, or left as the file has them.
        Raises BadInputError naming the file and the line.
        """
        drafts = tuple(_drafts(self.path / CORPUS))
        return tuple(random.Random(SHUFFLED_BY).sample(drafts, len(drafts))) if shuffled else drafts

    def queries(self) -> dict[str, str]:
        """Query id → text. Raises BadInputError."""
        return read_queries(self.path / QUERIES)

    def judgements(self) -> dict[str, dict[str, int]]:
        """Query id → document id → grade. Raises BadInputError."""
        return read_judgements(self.qrels)


def evaluation_folder(path: Path) -> EvaluationFolder | None:
    """The set in that folder, if its three files are there."""
    qrels = next((path / name for name in QRELS if (path / name).is_file()), None)
    if qrels is None or not all((path / name).is_file() for name in (CORPUS, QUERIES)):
        return None
    return EvaluationFolder(path, qrels)


def evaluation_folders(path: Path) -> tuple[EvaluationFolder, ...]:
    """The set in that folder, or else those in its folders, by name."""
    own = evaluation_folder(path)
    inner = sorted(one for one in path.iterdir() if one.is_dir()) if own is None else ()
    found = (own, *map(evaluation_folder, inner))
    return tuple(one for one in found if one is not None)


def one_evaluation_folder(path: Path) -> EvaluationFolder:
    """The only set in a folder. Raises BadInputError where there is none, or several."""
    found = evaluation_folders(path)
    if not found:
        files = f"{CORPUS}, {QUERIES} and {QRELS[0]} (or {QRELS[1]})"
        raise BadInputError(f"folder: {path} does not hold {files}", "folder")
    if len(found) > 1:
        names = ", ".join(one.name for one in found)
        raise BadInputError(
            f"folder: {path} holds several sets: {names}. Name one of them, and a vault for each",
            "folder",
        )
    return found[0]


def _drafts(path: Path) -> Iterator[MemoryDraft]:
    seen: set[str] = set()
    for name, row, where in read_rows(path, "corpus"):
        if name in seen:
            raise BadInputError(f"{where}: a second document with the id {name!r}", "corpus")
        seen.add(name)
        text, title = row.get("text") or "", row.get("title") or ""
        if not isinstance(text, str) or not isinstance(title, str):
            raise BadInputError(f"{where}: title and text must be texts", "corpus")
        if text.strip() or title.strip():
            yield MemoryDraft(text, title=title, ref=name)
