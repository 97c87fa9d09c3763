"""Books (EPUB): the chapters in the order in which they are read."""

from __future__ import annotations

import posixpath
from urllib.parse import unquote

from memory_store.importing.converters import html
from memory_store.importing.converters.document import (
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
    said = {
        name: package.findtext(f".//{TERMS}{name}") or "" for name in ("title", "creator", "date")
    }
    text = "\n\n".join(chapter for chapter in chapters if chapter)
    if not text:
        raise LeftOutError("empty")
    return [
        Document(
            text=text,
            title=said["title"].strip(),
            created=moment(said["date"]),
            metadata={"chapters": str(len(chapters)), **authored(said["creator"])},
        )
    ]
