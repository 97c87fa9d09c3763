"""Notes of Apple Notes, as Apple's *Request a copy of your data* gives them: one memory a note.

A note has a folder of its own with its text and its attachments::

    iCloud Notes/Notes/[folder/…]title/title.txt
    iCloud Notes/Recently Deleted/title/title.txt
    iCloud Notes/Notes Details.csv     Title, Created On, Modified On, Pinned, Deleted, …

The table says when notes were made, by their titles: where two notes share one, it says nothing of
either. Apple describes none of this; it is what those who have such a copy say of it. Tables and
pictures in a note are one sign each, and are not in the text.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from memory_store.dates import format_time
from memory_store.importing.drafts import TITLE_LIMIT, with_text_topics
from memory_store.importing.readers import csv
from memory_store.importing.readers.apple_export import ATTACHED, SOURCE
from memory_store.importing.readers.export_fields import kept, moment
from memory_store.importing.readers.markdown import completed
from memory_store.importing.readers.rows import broken_row
from memory_store.importing.source_file import (
    Beside,
    Broken,
    Found,
    Item,
    Limits,
    Reader,
    Remark,
    Skip,
    SourceFile,
)
from memory_store.records import MemoryDraft

EXPORT, NOTES, DELETED = "iCloud Notes", "Notes", "Recently Deleted"
DETAILS = "Notes Details.csv"
TABLES = frozenset({DETAILS, "Shared Notes Info.csv", "Subscribed Notes Info.csv"})
NO_NOTE, TRASHED = "it says when notes were made, and by whom", "in the trash of Apple Notes"
SUFFIX = ".txt"
_BOX = re.compile(r"^[ \t]*\t([◦✓])\t[ \t]*", re.M)
_AGAIN = re.compile(r"-\d+$")  # of a second note, or attachment, of one name
_TIME = "%m-%d-%Y %H:%M:%S"

Parts = tuple[str, ...]


class _Place(Struct, frozen=True):
    """Where a file is in an export: by the names below its folder ``top``."""

    top: str
    names: Parts


def told(found: Iterable[Found]) -> list[Found]:
    """The files of a folder or an archive. Those of an export get what it says of them; its tables
    and its trash are left out by name."""
    files = [*found]
    details = [one.name for one in files if one.name.endswith(DETAILS)]
    exports = {PurePosixPath(one).parent for one in details if PurePosixPath(one).name == DETAILS}
    places = [_place(one, exports) for one in files]
    named = [one.names for one in places if one is not None and one.top == NOTES]
    if not any(places):
        return files
    notes = _notes(named)
    times, arranged = _times(files, places)
    inside = defaultdict(list)
    for names in named:
        folder = _folder(names, notes)
        if folder and names not in notes[folder]:
            inside[folder].append("/".join(names[len(folder) :]))
    for one, place in zip(files, places, strict=True):
        folder = _folder(place.names, notes) if place else None
        if _name(one) in TABLES and PurePosixPath(one.name).parent in exports:
            arranged.append(Skip(one.name, NO_NOTE))
        elif place and place.top == DELETED:
            arranged.append(Skip(one.name, TRASHED))
        elif place and folder and isinstance(one, SourceFile):
            said = replace(times.get(_key(folder[-1]), Beside(SOURCE)), ref="/".join(place.names))
            about = {**said.metadata, "folder": "/".join(folder[:-1])}
            if place.names in notes[folder]:
                about["attachments"] = inside[folder]
            else:
                about |= {"attached_to": folder[-1], "pinned": None}
                said = replace(said, title="/".join(place.names[len(folder) :]))
            arranged.append(replace(one, beside=replace(said, metadata=kept(about))))
        else:
            arranged.append(one)
    return arranged


def _name(one: Found) -> str:
    return PurePosixPath(one.name).name


def _place(one: Found, exports: set[PurePosixPath]) -> _Place | None:
    """The place of a file in an export: below a folder of Apple's name, or beside its table."""
    if NOTES not in one.name and DELETED not in one.name:
        return None
    parts = PurePosixPath(one.name).parts
    for at, part in enumerate(parts[:-2]):
        of_apple = at > 0 and parts[at - 1].startswith(EXPORT)
        if part in (NOTES, DELETED) and (of_apple or PurePosixPath(*parts[:at]) in exports):
            return _Place(part, parts[at + 1 :])
    return None


def _notes(named: Iterable[Parts]) -> dict[Parts, set[Parts]]:
    """The folders of notes, each with its notes: texts called as the folder, or alone in it."""
    texts = defaultdict(list)
    for names in named:
        if names[-1].lower().endswith(SUFFIX):
            texts[names[:-1]].append(names)
    found = {}
    for folder, there in texts.items():
        called = {one for one in there if _AGAIN.sub("", _stem(one)) == _AGAIN.sub("", folder[-1])}
        if called or len(there) == 1:
            found[folder] = called or {*there}
    return found


def _stem(names: Parts) -> str:
    return names[-1][: -len(SUFFIX)]


def _folder(names: Parts, notes: Mapping[Parts, set[Parts]]) -> Parts | None:
    """The folder of the note that a file is, or is attached to."""
    above = (names[:length] for length in range(len(names) - 1, 0, -1))
    return next((folder for folder in above if folder in notes), None)


def _key(title: str) -> str:
    """A title as it is compared: the name of a folder has no signs that a file system refuses."""
    return "".join(one for one in title.casefold() if one.isalnum())


def _times(
    files: list[Found], places: list[_Place | None]
) -> tuple[dict[str, Beside], list[Found]]:
    """What the tables of the exports say, by the keys of titles; and the rows that are broken."""
    said, broken = defaultdict(list), list[Found]()
    for table in _tables(files, places):
        for row in csv.records(table):
            if isinstance(row, Broken):
                broken.append(broken_row(table, row))
                continue
            values = {name.lower(): str(value).strip() for name, value in row.values.items()}
            if values.get("deleted", "").lower() != "yes":
                said[_key(values.get("title", ""))].append(
                    Beside(
                        SOURCE,
                        created=_time(values.get("created on", "")),
                        updated=_time(values.get("modified on", "")),
                        metadata={"pinned": values.get("pinned", "").lower() == "yes" or None},
                    )
                )
    return {title: rows[0] for title, rows in said.items() if len(rows) == 1}, broken


def _tables(files: list[Found], places: list[_Place | None]) -> Iterator[SourceFile]:
    """The tables: in an archive among the files; on this disk beside the folder of notes."""
    tables = {one.name: one for one in files if _name(one) == DETAILS}
    yield from (one for one in tables.values() if isinstance(one, SourceFile))
    for one, place in zip(files, places, strict=True):
        if place is None or not isinstance(one, SourceFile) or one.content is not None:
            continue
        above = len(place.names) + 1
        name = str(PurePosixPath(*PurePosixPath(one.name).parts[:-above], DETAILS))
        if isinstance(tables.pop(name, None), Skip):  # as all tables in a folder
            path = one.path.parents[above - 1] / DETAILS
            yield SourceFile(path, one.root, DETAILS, "csv", name)


def _time(said: str) -> str | None:
    try:
        return format_time(datetime.strptime(said, _TIME).replace(tzinfo=UTC))
    except ValueError:
        return moment(said)


def read(file: SourceFile, limits: Limits) -> Iterator[Item]:
    """The note: its first line is the title, its boxes to tick are those of Markdown."""
    decoded = file.decoded(limits)
    text = _BOX.sub(lambda box: f"- [{'x' if box[1] == '✓' else ' '}] ", decoded.text)
    text = text.replace(ATTACHED, "").strip()
    title, _, rest = text.partition("\n")
    title = title.strip()
    if not 0 < len(title) <= TITLE_LIMIT or title.startswith("- ["):
        title, rest = "", text
    draft = MemoryDraft(rest.strip() or title, title=title or None)
    yield completed(file, with_text_topics(draft))
    if decoded.remark:
        yield Remark(file.name, decoded.remark)


READER = Reader(
    "apple notes",
    (),
    read,
    within=("text",),
    of=lambda file: file.beside is not None and file.beside.source == SOURCE,
)
