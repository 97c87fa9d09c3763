"""Which library reads documents: the ones that were chosen beside others, on the same real files.

    pip install docx2txt html2text markitdown openpyxl pdfminer.six pdfplumber pymupdf pypdf
    python -m benchmarks.document_readers FOLDER

Prints a Markdown table. Each library reads all files of a kind in a process of its own: how many
gave text, the share of words kept, seconds of processor time and the most memory, with its licence.
Words are held against those that at least two of the libraries of different make find in a PDF, and
against the reference of ``benchmarks.documents`` for other kinds. A file may take 30 s. All work
without a network. What this project reads with is called ``ours``.
"""

from __future__ import annotations

import io
import resource
import signal
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from importlib.metadata import metadata
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.documents import reference, words
from memory_store.importing.converters.kinds import converter

SECONDS = 30.0  # of processor time for one file
SUFFIXES = {
    "pdf": (".pdf",),
    "docx": (".docx",),
    "pptx": (".pptx",),
    "sheets": (".xlsx", ".xlsm"),
    "html": (".html", ".htm", ".xhtml"),
}


def ours(kind: str) -> Callable[[bytes], str]:
    """What this project reads with."""
    convert = converter(kind)
    return lambda data: "\n".join(one.text for one in convert(data))


def _markitdown(kind: str) -> Callable[[bytes], str]:
    made = import_module("markitdown").MarkItDown()
    suffix = SUFFIXES[kind][0]
    return lambda data: str(
        made.convert_stream(io.BytesIO(data), file_extension=suffix).text_content
    )


def _pypdf(_: str) -> Callable[[bytes], str]:
    library = import_module("pypdf")

    def read(data: bytes) -> str:
        return "\n".join(page.extract_text() for page in library.PdfReader(io.BytesIO(data)).pages)

    return read


def _pdfminer(_: str) -> Callable[[bytes], str]:
    library = import_module("pdfminer.high_level")
    return lambda data: str(library.extract_text(io.BytesIO(data)))


def _pymupdf(_: str) -> Callable[[bytes], str]:
    library = import_module("pymupdf")

    def read(data: bytes) -> str:
        with library.open(stream=data, filetype="pdf") as opened:
            return "\n".join(page.get_text() for page in opened)

    return read


def _docx2txt(_: str) -> Callable[[bytes], str]:
    library = import_module("docx2txt")
    return lambda data: str(library.process(io.BytesIO(data)))


def _openpyxl(_: str) -> Callable[[bytes], str]:
    library = import_module("openpyxl")

    def read(data: bytes) -> str:
        book = library.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
        rows = (row for sheet in book for row in sheet.iter_rows(values_only=True))
        return "\n".join(" ".join(str(cell) for cell in row if cell is not None) for row in rows)

    return read


def _html2text(_: str) -> Callable[[bytes], str]:
    library = import_module("html2text")
    return lambda data: str(library.html2text(data.decode("utf-8", "replace")))


READERS: dict[str, dict[str, Callable[[str], Callable[[bytes], str]]]] = {
    "pdf": {
        "pypdfium2": ours,
        "pypdf": _pypdf,
        "pdfminer.six": _pdfminer,
        "PyMuPDF": _pymupdf,
        "markitdown": _markitdown,
    },
    "docx": {"mammoth": ours, "docx2txt": _docx2txt, "markitdown": _markitdown},
    "pptx": {"python-pptx": ours, "markitdown": _markitdown},
    "sheets": {"python-calamine": ours, "openpyxl": _openpyxl},
    "html": {"markdownify": ours, "html2text": _html2text, "markitdown": _markitdown},
}
BUILT_ON_ANOTHER = ("markitdown",)
"""What calls libraries that are in the comparison themselves."""


def _late(*_: Any) -> None:
    raise TimeoutError("takes too long")


def read(kind: str, name: str, paths: list[Path]) -> tuple[list[str | None], float, float]:
    """The text of each file, ``None`` where none came; seconds, and megabytes at most."""
    convert = READERS[kind][name](kind)
    signal.signal(signal.SIGPROF, _late)
    texts: list[str | None] = []
    data = [path.read_bytes() for path in paths]
    before = _seconds()
    for one in data:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            texts.append(convert(one) or None)
        except Exception:  # noqa: BLE001 - other programs' parsers raise anything
            texts.append(None)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    used = _seconds() - before
    return texts, used, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def agreed(texts: list[str | None]) -> Counter[str]:
    """The words of a file that at least two of the libraries find, each as often as they do."""
    counts = [words(text) for text in texts if text is not None]
    every = set().union(*counts)
    return Counter({one: sorted(count[one] for count in counts)[-2] for one in every if counts[1:]})


def licence(name: str) -> str:
    """The licence of a library, as its package says."""
    about = metadata(name)
    said = about.get("License-Expression") or about.get("License") or ""
    classed = [one for one in about.get_all("Classifier") or () if one.startswith("License ::")]
    return said.partition("\n")[0] or ", ".join(one.split(" :: ")[-1] for one in classed)


def main() -> None:
    """Compare on the folder that is named."""
    below = [path for path in sorted(Path(sys.argv[1]).rglob("*")) if path.is_file()]
    print("| kind | library | licence | files with text | words kept | s | MB |")
    print("|---|---|---|--:|--:|--:|--:|", flush=True)
    for kind, readers in READERS.items():
        paths = [path for path in below if path.suffix.lower() in SUFFIXES[kind]]
        found = {}
        for name in readers:
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                found[name] = pool.submit(read, kind, name, paths).result()
        if kind == "pdf":
            makes = [texts for name, (texts, *_) in found.items() if name not in BUILT_ON_ANOTHER]
            wanted = [agreed(list(of_file)) for of_file in zip(*makes, strict=True)]
        else:
            wanted = [
                words(reference(path.suffix.lower(), path.read_bytes()) or "") for path in paths
            ]
        expected = sum(one.total() for one in wanted)
        for name, (texts, seconds, most) in found.items():
            kept = sum(
                (one & words(text or "")).total() for one, text in zip(wanted, texts, strict=True)
            )
            given = sum(bool(text and words(text)) for text in texts)
            print(
                f"| {kind} | {name} | {licence(name)} | {given} of {len(paths)} | "
                f"{kept / expected:.1%} of {expected:,} | {seconds:.1f} | {most:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
