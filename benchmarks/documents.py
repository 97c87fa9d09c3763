"""How much of a folder of documents is read and kept, how fast, and in how much memory.

    pip install pypdf                           # the reference for PDF
    python -m benchmarks.documents FOLDER

Prints a Markdown table: files of each kind, how many gave text, how many have none to give (empty,
scans), how many could not be read, and why. *Kept* is the share of words, each as often as it
occurs, that a reference extraction of other make finds and ours keeps: pypdf for PDF, every text
node of the XML inside office files and books, Beautiful Soup for HTML, the standard library for
mail and notebooks. A mailbox, and an export of ChatGPT or Claude (``*.json``), is read as an
import reads it, and counts as read where it gave a memory. Each kind is read in a process of its
own: its seconds, and the memory that it and the process that parses took.
"""

from __future__ import annotations

import io
import json
import os
import re
import resource
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from email import message_from_bytes, policy
from email.message import EmailMessage
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path

from defusedxml.ElementTree import fromstring

from memory_store.importing.converters import process
from memory_store.importing.converters.document import LeftOutError, UnreadableError
from memory_store.importing.converters.kinds import KINDS
from memory_store.importing.readers import read_file
from memory_store.importing.source_file import Failure, Skip, SourceFile
from memory_store.importing.walker import walk

WORD = re.compile(r"\w{2,}")
PARTS = {
    ".docx": re.compile(r"word/document\.xml"),
    ".pptx": re.compile(r"ppt/(slides/slide|notesSlides/notesSlide)\d+\.xml"),
    ".ods": re.compile(r"content\.xml"),
    ".epub": re.compile(r".*\.x?html?"),
}
"""The members of an archive whose text nodes are its text."""
IN_RUNS = {".docx": "t", ".pptx": "t"}
"""The element that holds text, where others hold what is not shown."""
EXPORTS = {"mbox": (".mbox",), "conversations": (".json",)}
"""What holds many memories: read as an import does, where converters read one document."""


def reference(suffix: str, data: bytes) -> str | None:
    """The text of a file by other means; ``None`` where those find nothing or fail."""
    try:
        return " ".join(_reference(suffix, data)).strip() or None
    except Exception as error:  # noqa: BLE001 - other programs' parsers raise anything
        print(f"no reference for a {suffix}: {type(error).__name__}", file=sys.stderr)
        return None


def _reference(suffix: str, data: bytes) -> Iterator[str]:
    if suffix == ".pdf":
        pypdf = import_module("pypdf")  # which this project does not need otherwise
        yield from (page.extract_text() for page in pypdf.PdfReader(io.BytesIO(data)).pages)
    elif suffix in PARTS:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for name in filter(PARTS[suffix].fullmatch, archive.namelist()):
                yield from _texts(suffix, archive.read(name))
    elif suffix in (".xlsx", ".xlsm"):
        yield from _strings_of_cells(data)
    elif suffix in (".html", ".htm", ".xhtml"):
        yield from _html(data)
    elif suffix == ".ipynb":
        for cell in json.loads(data).get("cells", ()):
            yield "".join(cell["source"])
    elif suffix == ".eml":
        yield from _mail(message_from_bytes(data, policy=policy.default))
    elif suffix == ".mbox":
        for part in re.split(rb"^From .*\n", data, flags=re.MULTILINE)[1:]:
            yield from _mail(message_from_bytes(part, policy=policy.default))
    elif suffix == ".json":
        for one in json.loads(data):
            for said in one.get(
                "chat_messages", ()
            ):  # Claude; ChatGPT's branches have no reference
                yield from (part.get("text") or "" for part in said["content"])


def _strings_of_cells(data: bytes) -> Iterator[str]:
    """The shared strings that a sheet shows: programs leave others in the file."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        sheets = [
            name for name in archive.namelist() if re.match(r"xl/worksheets/[^/]+\.xml", name)
        ]
        if "xl/sharedStrings.xml" not in archive.namelist():
            return
        strings = fromstring(archive.read("xl/sharedStrings.xml")).iterfind("{*}si")
        texts = [" ".join(node.text or "" for node in one.iterfind(".//{*}t")) for one in strings]
        for sheet in sheets:
            for cell in fromstring(archive.read(sheet)).iterfind(".//{*}c"):
                if cell.get("t") == "s":
                    yield texts[int(cell.findtext("{*}v") or 0)]


def _mail(message: EmailMessage) -> Iterator[str]:
    body = message.get_body(("plain", "html"))
    if body is not None:
        content = body.get_content()
        html = body.get_content_subtype() == "html"
        yield from _html(content.encode()) if html else (content,)


def _imported(path: Path) -> str:
    """What an import reads of a file. Raises what a converter raises where that is nothing."""
    files = [one for one in walk(path, seen=set()) if isinstance(one, SourceFile)]
    items = [item for file in files for item in read_file(file)]
    texts = [one.text for one in items if not isinstance(one, Skip | Failure) and one.text]
    if not texts:
        reasons = [one.reason for one in items if isinstance(one, Skip | Failure)]
        raise LeftOutError(reasons[0] if reasons else "empty")
    return "\n".join(texts)


def _texts(suffix: str, part: bytes) -> Iterator[str]:
    if suffix == ".epub":
        yield from _html(part)
        return
    for node in fromstring(part).iter():
        name = node.tag.rpartition("}")[2] if isinstance(node.tag, str) else ""
        if name == IN_RUNS.get(suffix, name):
            yield node.text or ""
            yield "" if suffix in IN_RUNS else node.tail or ""
        elif name in ("p", "br", "tab"):
            yield " "


def _html(data: bytes) -> Iterator[str]:
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(data, "lxml")
    for one in soup(["script", "style", "head", "nav", "template", "noscript"]):
        one.decompose()
    yield soup.get_text(" ")


def words(text: str) -> Counter[str]:
    """The words of a text, and how often each occurs."""
    return Counter(WORD.findall(text.casefold()))


def measured(name: str, paths: list[Path]) -> tuple[str, Counter[str]]:
    """A row of the table, and how often each reason was given."""
    read = left_out = expected = kept = 0
    reasons: Counter[str] = Counter()
    data = [path.read_bytes() for path in paths]
    texts: list[str | None] = []
    began = _seconds()
    for path, content in zip(paths, data, strict=True):
        text = None
        try:
            if name in EXPORTS:
                text = _imported(path)
            else:
                text = "\n".join(one.text for one in process.convert(name, content))
            read += 1
        except LeftOutError as error:
            left_out += 1
            reasons[str(error)] += 1
        except UnreadableError as error:
            reasons[str(error)] += 1
        texts.append(text)
    process.close()
    seconds = _seconds() - began
    own, child = (
        resource.getrusage(who).ru_maxrss / 1024
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    for path, content, text in zip(paths, data, texts, strict=True):
        other = reference(path.suffix.lower(), content) if text is not None else None
        if text is not None and other is not None:
            wanted = words(other)
            expected += wanted.total()
            kept += (wanted & words(text)).total()
    share = f"{kept / expected:.1%} of {expected:,}" if expected else "–"
    size = sum(map(len, data)) / 1e6
    refused = len(paths) - read - left_out
    return (
        f"{len(paths)} | {size:.1f} | {read} | {left_out} | {refused} | {share} | {seconds:.1f} | "
        f"{child:.0f} + {own:.0f} |",
        reasons,
    )


def _seconds() -> float:
    """Processor time of this process, and of those that it started and that have ended."""
    return sum(os.times()[:4])


def main() -> None:
    """Measure the folder that is named."""
    below = [path for path in sorted(Path(sys.argv[1]).rglob("*")) if path.is_file()]
    print("| kind | files | MB | read | without text | not readable | words kept | s | MB memory |")
    print("|---|---|---|---|---|---|---|---|---|")
    reasons: dict[str, Counter[str]] = {}
    for name, suffixes in {**{kind.name: kind.suffixes for kind in KINDS}, **EXPORTS}.items():
        files = [path for path in below if path.suffix.lower() in suffixes]
        if files:
            print(_row(name, suffixes, files, reasons), flush=True)
    for name, counted in reasons.items():
        for reason, times in counted.most_common():
            print(f"\n{name}: {reason}: {times}", end="")
    print()


def _row(
    name: str, suffixes: tuple[str, ...], files: list[Path], reasons: dict[str, Counter[str]]
) -> str:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        row, reasons[name] = pool.submit(measured, name, files).result()
    return f"| {', '.join(f'`{suffix}`' for suffix in suffixes)} | {row}"


if __name__ == "__main__":
    main()
