"""Bookmarks: one memory an address, with its title, note, folder, tags and time.

As HTML of browsers, Pocket and Instapaper (parsed in a process of its own); as CSV of Pocket,
Instapaper and Raindrop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from memory_store.importing.readers import csv
from memory_store.importing.readers.documents import converted
from memory_store.importing.readers.export_fields import kept, moment, topics_of
from memory_store.importing.readers.rows import broken_row
from memory_store.importing.source_file import Broken, Item, Limits, Reader, Skip, SourceFile
from memory_store.records import MemoryDraft

TYPE = "bookmark"
BROWSER, POCKET, INSTAPAPER, RAINDROP = "Bookmarks", "Pocket", "Instapaper", "Raindrop"
PAGES = {
    b"netscape-bookmark-file-1": BROWSER,
    b"<title>pocket export": POCKET,
    b"<title>instapaper: export": INSTAPAPER,
}
"""What stands in the first bytes of an export as HTML, in lower case."""
TABLES = {
    POCKET: frozenset({"title", "url", "time_added", "tags", "status"}),
    INSTAPAPER: frozenset({"url", "title", "selection", "folder", "timestamp"}),
    RAINDROP: frozenset({"id", "title", "note", "excerpt", "url", "folder", "tags", "created"}),
}
"""The columns of an export as CSV, in lower case."""
READ = frozenset(
    {
        *("url", "title", "note", "excerpt", "selection", "folder", "tags", "status"),
        *("created", "time_added", "timestamp", "cursor", "id", "cover"),
    }
)


def page_source(head: bytes) -> str | None:
    """Which program's bookmarks a page is; ``None`` for another page."""
    small = head.lower()
    return next((source for mark, source in PAGES.items() if mark in small), None)


def table_source(head: bytes) -> str | None:
    """Which program's bookmarks a table is, by its first line; ``None`` for another table."""
    columns = csv.columns_of(head)
    return next((name for name, wanted in TABLES.items() if wanted <= columns), None)


def read_page(file: SourceFile, limits: Limits) -> Iterator[Item]:
    """The bookmarks of a page, each address once."""
    source = page_source(file.head()) or BROWSER
    for one in converted("bookmarks", file.data(limits), limits):
        about = one.metadata
        yield _draft(
            file,
            source,
            one.part,
            one.title,
            [one.text],
            topics=about.get("tags", "").split("\n"),
            folder=about.get("folder", ""),
            created=one.created,
            updated=about.get("updated"),
        )


def read_table(file: SourceFile, limits: Limits) -> Iterator[Item]:
    """The bookmarks of a table. Of an address that is there twice, the first counts."""
    source = table_source(file.head()) or POCKET
    seen: set[str] = set()
    for row in csv.records(file):
        if isinstance(row, Broken):
            yield broken_row(file, row)
            continue
        values = {name.lower(): value for name, value in row.values.items()}
        address = str(values.get("url") or "").strip()
        if not address or address in seen:
            why = "the same address again" if address else "without an address"
            yield Skip(f"{file.name}:{row.where}", why)
            continue
        seen.add(address)
        yield _of_row(file, source, address, values)


def _of_row(file: SourceFile, source: str, address: str, values: Mapping[str, Any]) -> MemoryDraft:
    mark = "|" if source == POCKET else ","
    tags = str(values.get("tags") or "").strip("[]")
    return _draft(
        file,
        source,
        address,
        values.get("title") or "",
        [values.get(name) or "" for name in ("note", "excerpt", "selection")],
        topics=[tag.strip(" \"'") for tag in tags.split(mark)],
        folder=values.get("folder") or values.get("status") or "",
        created=values.get("created") or values.get("time_added") or values.get("timestamp"),
        more={name: value for name, value in values.items() if name not in READ},
    )


def _draft(
    file: SourceFile,
    source: str,
    address: str,
    title: str,
    notes: list[str],
    *,
    topics: list[str],
    folder: str,
    created: Any = None,
    updated: Any = None,
    more: Mapping[str, Any] | None = None,
) -> MemoryDraft:
    said = dict.fromkeys(note.strip() for note in notes if note.strip())
    return MemoryDraft(
        "\n\n".join([*said, address]),
        title=" ".join(title.split()) or address,
        type=file.type or TYPE,
        topics=topics_of(topics),
        created=moment(created),
        updated=moment(updated),
        metadata=kept({"address": address, "folder": folder, **(more or {})}),
        source=source,
        ref=address,
    )


READERS = [
    Reader(
        "bookmarks",
        (),
        read_page,
        rows=True,
        within=("html",),
        of=lambda file: page_source(file.head()) is not None,
    ),
    Reader(
        "bookmark table",
        (),
        read_table,
        rows=True,
        streamed=True,
        within=("csv",),
        of=lambda file: table_source(file.head()) is not None,
    ),
]
