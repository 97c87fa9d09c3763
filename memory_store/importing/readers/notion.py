"""Pages and databases of Notion, exported as Markdown and CSV.

Notion ends each name with the page's id. It is the identity of the memory and is taken off its
title; links from page to page lead to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import unquote

from msgspec.structs import replace

from memory_store.importing.converters.document import table
from memory_store.importing.fields import split_topics
from memory_store.importing.readers import csv, markdown
from memory_store.importing.readers.export_fields import moment, topics_of
from memory_store.importing.readers.rows import broken_row
from memory_store.importing.source_file import Broken, Item, Limits, Reader, SourceFile
from memory_store.records import MemoryDraft

SOURCE = "Notion"
FRONT_MATTER = (b"---", b"+++")  # Notion writes none
NAMED = re.compile(r"(.*?)\s*\b([0-9a-f]{32})(?:_all)?")
_LINK = re.compile(r"(?<=\]\()([^()\s]{1,2000}?)(?=\))")
_PROPERTY = re.compile(r"([^:\n]{1,60}): (.*)")
TAGS = ("tags", "tag", "topics")
CREATED = ("created", "created time", "date created")
UPDATED = ("updated", "last edited time", "last edited")


def page_id(file: SourceFile) -> str | None:
    """The id in the name of a page or database of Notion; ``None`` for another file."""
    found = NAMED.fullmatch(file.path.stem)
    if found is None or file.head().startswith(FRONT_MATTER):  # a note of ours or of Obsidian
        return None
    return found[2]


def read(file: SourceFile, limits: Limits, *, rows: bool = False) -> Iterator[Item]:
    """The page; of a database, all its rows as one table: each is a page of its own, too."""
    found = NAMED.fullmatch(file.path.stem)
    assert found is not None
    title, name = found[1].strip(), found[2]
    plain = replace(file, path=Path(file.path.parent, f"{title or name}{file.path.suffix}"))
    for one in _table(plain, title) if rows else markdown.read(plain, limits):
        if isinstance(one, MemoryDraft):
            yield replace(_page(one), source=SOURCE, ref=f"{name}.md")
        else:
            yield one


def _page(draft: MemoryDraft) -> MemoryDraft:
    said = {key.strip().lower(): value.strip() for key, value in _properties(draft.text)}
    tags = next((said[key] for key in TAGS if key in said), "")
    created = next((time for key in CREATED if (time := moment(said.get(key)))), None)
    updated = next((time for key in UPDATED if (time := moment(said.get(key)))), None)
    return replace(
        draft,
        text=_LINK.sub(lambda link: _resolved(link[1]), draft.text),
        topics=topics_of((*draft.topics, *split_topics(f"{tags},"))) if tags else draft.topics,
        created=created or draft.created,
        updated=updated or (draft.updated if created is None else None),
    )


def _properties(text: str) -> list[tuple[str, str]]:
    """The properties of a page, which stand between its title and its text."""
    parts = text.split("\n\n", 2)
    block = parts[1].split("\n") if len(parts) > 1 and parts[0].startswith("# ") else []
    found = [_PROPERTY.fullmatch(line) for line in block]
    return [(one[1], one[2]) for one in found if one] if all(found) else []


def _resolved(target: str) -> str:
    path = unquote(target)
    stem, dot, suffix = path.rpartition("/")[2].rpartition(".")
    found = NAMED.fullmatch(stem) if dot and suffix in ("md", "csv") else None
    return f"{found[2]}.md" if found and "://" not in path else target


def _table(file: SourceFile, title: str) -> Iterator[Item]:
    header: dict[str, None] = {}
    rows: list[dict[str, str]] = []
    for row in csv.records(file):
        if isinstance(row, Broken):
            yield broken_row(file, row)
        else:
            rows.append(row.values)
            header |= dict.fromkeys(row.values)
    if rows:
        cells = [[str(row.get(name, "")) for name in header] for row in rows]
        yield MemoryDraft(table([[*header], *cells]), title=title or None)


READERS = [
    Reader("notion", (), read, within=("markdown",), of=lambda file: page_id(file) is not None),
    Reader(
        "notion table",
        (),
        partial(read, rows=True),
        rows=True,
        streamed=True,
        within=("csv",),
        of=lambda file: page_id(file) is not None,
    ),
]
