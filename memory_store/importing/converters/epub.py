"""Books (EPUB): the chapters in the order in which they are read.

A chapter is a section, so that a passage says in which chapter it stands, and under what in it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from urllib.parse import unquote

from memory_store.importing.converters import html
from memory_store.importing.converters.document import (
    NO_TEXT,
    Document,
    LeftOutError,
    UnreadableError,
    archive,
    authored,
    entry,
    moment,
)
from memory_store.importing.converters.office import elements

KIND = "EPUB"
PACKAGE = "{http://www.idpf.org/2007/opf}"
TERMS = "{http://purl.org/dc/elements/1.1/}"
CONTAINER = "{urn:oasis:names:tc:opendocument:xmlns:container}"
PAGES = ("application/xhtml+xml", "text/html")
HEADING = re.compile(r"(?P<level>#{1,6}) +(?P<words>.*\S)")
EMPHASIS = re.compile(r"(?<!\\)\*+")
PART = re.compile(r"(?:chapter|part|book|section|letter|act|canto) \S", re.IGNORECASE)
NUMBERED = re.compile(r"(?P<number>\d{1,3}|[IVXLC]{1,7})[.:)] +(?P<words>.+)")


def convert(data: bytes) -> list[Document]:
    """All chapters as one text."""
    with archive(data, KIND) as opened:
        names = set(opened.namelist())
        if "META-INF/encryption.xml" in names and "META-INF/rights.xml" in names:
            raise UnreadableError("protected against copying: its text is encrypted")
        container = elements(entry(opened, "META-INF/container.xml", KIND), KIND)
        root = container.find(f".//{CONTAINER}rootfile")
        path = "" if root is None else root.get("full-path", "")
        package = elements(entry(opened, path, KIND), KIND)
        files = {
            one.get("id"): posixpath.join(posixpath.dirname(path), unquote(one.get("href", "")))
            for one in package.iter(f"{PACKAGE}item")
            if one.get("media-type") in PAGES
        }
        order = [files.get(one.get("idref")) for one in package.iter(f"{PACKAGE}itemref")]
        chapters = [
            html.markdown(entry(opened, posixpath.normpath(name), KIND))
            for name in dict.fromkeys(order)
            if name is not None and posixpath.normpath(name) in names
        ]
    title, date = (package.findtext(f".//{TERMS}{name}") or "" for name in ("title", "date"))
    authors = [(one.text or "").strip() for one in package.iter(f"{TERMS}creator")]
    chapters = [chapter for chapter in chapters if chapter]
    text = "\n\n".join(_sections(chapters, title))
    if not text:
        raise LeftOutError(NO_TEXT)
    return [
        Document(
            text=text,
            title=title.strip(),
            created=moment(date),
            metadata={"chapters": str(len(chapters)), **authored(", ".join(filter(None, authors)))},
        )
    ]


def _sections(files: Sequence[str], book: str) -> list[str]:
    """The files of a book with a heading of the second level for each chapter, and lower ones for
    what is in it. A file without a heading goes on with the one before."""
    found, chapters = [], 0
    for file in files:
        lines, highest, in_code = [], 6, False
        for line in file.split("\n"):
            in_code ^= line.startswith("```")
            heading = None if in_code else HEADING.fullmatch(line)
            if heading is not None:
                level, words = len(heading["level"]), EMPHASIS.sub("", heading["words"]).strip()
                if words.casefold() == book.strip().casefold():
                    line = f"# {words}"
                elif level > highest:
                    line = f"{'##' + '#' * min(4, level - highest)} {words}"
                else:
                    highest, chapters = level, chapters + 1
                    line = f"## {_chapter(chapters, words)}"
            lines.append(line)
        found.append("\n".join(lines))
    if chapters:
        return found
    return [f"## Chapter {number}\n\n{file}" for number, file in enumerate(found, 1)]


def _chapter(number: int, words: str) -> str:
    """``Chapter 3 · The harvest``; by the book's own number, where it has one."""
    if PART.match(words):
        return words
    own = NUMBERED.fullmatch(words)
    return f"Chapter {own['number']} · {own['words']}" if own else f"Chapter {number} · {words}"
