"""Bookmarks as HTML: of browsers (the Netscape format), Pocket and Instapaper."""

from __future__ import annotations

import codecs
from html.parser import HTMLParser

from memory_store.importing.converters.document import Document, LeftOutError

MACHINE_MADE = ("place:",)  # searches that Firefox keeps among the bookmarks
HEADINGS = ("h1", "h3")


class Bookmark:
    """A bookmark while it is read."""

    def __init__(self, address: str, attributes: dict[str, str]) -> None:
        self.address = address
        self.title = self.note = ""
        self.created = attributes.get("add_date") or attributes.get("time_added") or ""
        self.updated = attributes.get("last_modified") or ""
        self.tags = [one.strip() for one in attributes.get("tags", "").split(",") if one.strip()]
        self.folders: list[str] = []


class _Reader(HTMLParser):
    """Folders are headings with a list behind; a note is what stands behind a bookmark."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: dict[str, Bookmark] = {}
        self.path: list[str] = []
        self.heading = ""
        self.text: list[str] = []
        self.inside = ""
        self.last: Bookmark | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ended()
        self.text = []
        given = {name: value or "" for name, value in attrs}
        if tag == "a" and given.get("href") and not given["href"].startswith(MACHINE_MADE):
            self.inside = tag
            address = given["href"].strip()
            new = Bookmark(address, given)
            self.last = self.found.setdefault(address, new)
            self.last.tags += [one for one in new.tags if one not in self.last.tags]
            folder = "/".join(one for one in self.path if one)
            if folder and folder not in self.last.folders:
                self.last.folders.append(folder)
        elif tag in (*HEADINGS, "dd"):
            self.inside = tag
        elif tag in ("dl", "ul", "ol"):
            self.path.append(self.heading)
            self.heading = ""

    def handle_endtag(self, tag: str) -> None:
        self.ended()
        if tag in ("dl", "ul", "ol") and self.path:
            self.path.pop()

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.text.append(data)

    def ended(self) -> None:
        """Put the text to what it belongs to."""
        said = " ".join("".join(self.text).split())
        if self.inside == "h1":  # the name of the whole, or a section of Pocket
            self.heading = "" if said.startswith("Bookmarks") else said
        elif self.inside == "h3":
            self.heading = said
        elif self.inside == "a" and self.last is not None:
            self.last.title = self.last.title or said
        elif self.inside == "dd" and self.last is not None and said not in self.last.note:
            self.last.note = f"{self.last.note}\n\n{said}".strip()
        self.inside, self.text = "", []


def convert(data: bytes) -> list[Document]:
    """The bookmarks of a file, each address once."""
    reader = _Reader()
    reader.feed(data.removeprefix(codecs.BOM_UTF8).decode("utf-8", "replace"))
    reader.close()
    reader.ended()
    if not reader.found:
        raise LeftOutError("holds no bookmark")
    return [
        Document(
            one.note,
            one.title,
            one.created or None,
            {
                "updated": one.updated,
                "folder": ", ".join(one.folders),
                "tags": "\n".join(one.tags),
            },
            one.address,
        )
        for one in reader.found.values()
    ]
