"""Development sets: what is searched, what is asked, what ought to be found, and the gates."""

from __future__ import annotations

import importlib.util
import tempfile
from argparse import ArgumentParser
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from hashlib import blake2b
from pathlib import Path

import msgspec
from msgspec import Struct, field

from memory_store.evaluation import (
    EvaluationFolder,
    evaluation_folders,
    read_judgements,
    read_queries,
)
from memory_store.importing.readers import read_file
from memory_store.importing.source_file import SourceFile
from memory_store.importing.walker import walk
from memory_store.models.embedder import load_embedder
from memory_store.records import MemoryDraft

DEMO = Path(__file__).resolve().parent.parent / "demo"
LOCOMO_CATEGORIES = (1, 2, 3, 4)  # the fifth asks for what was never said


class Part(Struct, frozen=True):
    """One searchable corpus: its records in the order of import, and its judged queries.

    ``shuffled`` says that the order is none of its own.
    """

    records: tuple[MemoryDraft, ...]
    queries: Mapping[str, str]
    judgements: Mapping[str, Mapping[str, int]]
    shuffled: bool = False

    @property
    def mark(self) -> str:
        """A short name for the records in their order, and for the model that embeds them."""
        digest = blake2b(load_embedder().fingerprint.encode(), digest_size=8)
        for record in self.records:
            digest.update(msgspec.json.encode(record))
        return digest.hexdigest()


class Gate(Struct, frozen=True):
    """What the default ranking must reach: a figure, and its best leg less ``slack``.

    ``aim`` is what better rankings reach: printed, not enforced.
    """

    least: float | None = None
    aim: float | None = None
    slack: float = 0.005


class DevelopmentSet(Struct, frozen=True):
    """A set, the measure it is known by, and its gate.

    ``as_filed`` are the parts once more, their records in the order of the file: what stood side by
    side there may say something, which is measured apart. ``rerankers`` are held against fusion in
    every run. ``elsewhere`` are other systems' figures on it, each with its name. They were
    measured apart, and are printed to compare with.
    """

    name: str
    parts: tuple[Part, ...]
    measure: str = "ndcg@10"
    gate: Gate = field(default_factory=Gate)
    elsewhere: Mapping[str, str] = field(default_factory=dict)
    as_filed: tuple[Part, ...] = ()
    rerankers: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """How many memories there are."""
        return sum(len(part.records) for part in self.parts)

    def vault(self, folder: Path, number: int, part: Part) -> Path:
        """Where in ``folder`` the vault of a part is: one for its texts and the usual model."""
        order = "-shuffled" if part.shuffled else ""
        return folder / f"{self.name}{order}-{number}-{part.mark}.db"


GATES = {
    "demo": Gate(slack=0.0),
    "scifact": Gate(0.720, 0.74),
    "cranfield": Gate(0.410, 0.44),
    "xquad-de": Gate(slack=0.0),
    "locomo": Gate(0.700),
}
ELSEWHERE = {
    # FTS5: bm25() with the words OR-ed; MiniLM: cosine of whole documents in float32.
    # QMD's own keyword search requires every word of a question; hence its figures.
    "scifact": {"FTS5": ".687", "MiniLM": ".648", "equal RRF": ".720", "QMD by keyword": ".047"},
    "cranfield": {"FTS5": ".359", "MiniLM": ".378", "equal RRF": ".411", "QMD by keyword": ".015"},
    "xquad-de": {"FTS5": ".925", "MiniLM": ".72", "equal RRF": ".86"},
    "locomo": {"FTS5": ".612", "MiniLM": ".437", "equal RRF": ".559"},
}


def sets_parser(description: str | None) -> ArgumentParser:
    """Reads which sets a benchmark is for, and where their sealed vaults are kept."""
    parser = ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("--evals", type=Path, help="folder of development sets")
    parser.add_argument("--only", action="append", help="a set's name (repeatable)")
    parser.add_argument("--keep", type=Path, help="keep the sealed vaults here, for the next run")
    return parser


@contextmanager
def vault_folder(kept: Path | None) -> Iterator[Path]:
    """The folder of the sealed vaults: where they are kept, else one that is gone in the end."""
    with tempfile.TemporaryDirectory() as passing:
        folder = kept or Path(passing)
        folder.mkdir(parents=True, exist_ok=True)
        yield folder


IN_FILE_ORDER = ("cranfield", "xquad-de")  # their files keep neighbouring texts together


def set_names(evals: Path | None) -> list[str]:
    """The names of all sets there are: the demo's own, and those of ``evals``."""
    return list(_sources(evals))


def development_sets(
    evals: Path | None, only: Collection[str] | None = None
) -> Iterator[DevelopmentSet]:
    """The demo's own set, and those of ``evals``: a folder of documents, queries and judgements,
    or a folder of such folders. With ``only``, those of these names; the others are not read.
    """
    for name, make in _sources(evals).items():
        if not only or name in only:
            yield make()


def _sources(evals: Path | None) -> dict[str, Callable[[], DevelopmentSet]]:
    """What makes the set of each name."""
    sources: dict[str, Callable[[], DevelopmentSet]] = {"demo": demo}
    if evals is not None:
        found = evaluation_folders(evals)
        sources.update({folder.name: partial(judged, folder) for folder in found})
        if (evals / "locomo" / "load.py").exists():
            sources["locomo"] = partial(conversations, evals / "locomo")
    return sources


def demo() -> DevelopmentSet:
    """The demo's notes, also with late interaction."""
    return DevelopmentSet("demo", (demo_notes(),), gate=GATES["demo"], rerankers=("maxsim",))


def judged(folder: EvaluationFolder) -> DevelopmentSet:
    """The set in a folder, with the gate of its name or the one that every set must pass."""
    name = folder.name
    return DevelopmentSet(
        name,
        (tidy(folder),),
        gate=GATES.get(name, Gate()),
        elsewhere=ELSEWHERE.get(name, {}),
        as_filed=(tidy(folder, shuffled=False),) if name in IN_FILE_ORDER else (),
    )


def conversations(folder: Path) -> DevelopmentSet:
    """LoCoMo."""
    return DevelopmentSet(
        "locomo",
        tuple(locomo(folder)),
        measure="recall@10",
        gate=GATES["locomo"],
        elsewhere=ELSEWHERE["locomo"],
    )


def tidy(folder: EvaluationFolder, *, shuffled: bool = True) -> Part:
    """The documents of a folder, ``shuffled`` or as the file has them, and its queries."""
    records = folder.documents(shuffled=shuffled)
    return Part(records, folder.queries(), folder.judgements(), shuffled)


def locomo(folder: Path) -> Iterator[Part]:
    """LoCoMo, one part a conversation: turns as memories, with the speaker's name in front."""
    spec = importlib.util.spec_from_file_location("locomo_load", folder / "load.py")
    assert spec is not None
    assert spec.loader is not None
    loader = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loader)
    for _, memories, questions in loader.load():
        asked = {
            str(number): (question, evidence)
            for number, (question, evidence, category) in enumerate(questions)
            if evidence and category in LOCOMO_CATEGORIES
        }
        yield Part(
            tuple(
                MemoryDraft(f"{speaker}: {text}", ref=reference, created=when)
                for reference, text, when, speaker in memories
            ),
            {number: question for number, (question, _) in asked.items()},
            {number: dict.fromkeys(evidence, 1) for number, (_, evidence) in asked.items()},
        )


def demo_notes() -> Part:
    """The demo notes with their own judgements (references are paths)."""
    records = {}
    for found in walk(DEMO / "notes"):
        if isinstance(found, SourceFile):
            for draft in read_file(found):
                if isinstance(draft, MemoryDraft):
                    records[draft.ref or found.ref] = draft
    return Part(
        tuple(records.values()),
        read_queries(DEMO / "queries.jsonl"),
        read_judgements(DEMO / "qrels.tsv"),
    )
