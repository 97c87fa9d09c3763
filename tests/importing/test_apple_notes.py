"""A copy of the notes that Apple keeps becomes memories, from its archive and from its folder.

Apple publishes no description of such a copy. The shape here is the one that users of it have
described: a folder a note with its text and attachments, tables with the times, and a folder of
deleted notes (https://github.com/streetwriters/notesnook-importer/issues/273).
"""

from __future__ import annotations

import json
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from reading_files import Outcome, read

from memory_store.store import MemoryStore

DETAILS = (
    "Title, Created On, Modified On, Pinned, Deleted, Drawing/Handwriting, ContentHash at Import\n"
    "Boat: to do,05-01-2024 12:00:00,05-02-2024 12:30:00,Yes,No,No,abc\n"
    "Twice,01-01-2023 08:00:00,01-02-2023 08:00:00,No,No,No,\n"
    "Twice,02-01-2023 08:00:00,02-02-2023 08:00:00,No,No,No,\n"
    "Old,01-01-2020 08:00:00,01-02-2020 08:00:00,No,Yes,No,\n"
)
FILES = {
    "Notes Details.csv": DETAILS,
    "Shared Notes Info.csv": "File Name, Shared On, Last Modified Date, Participants Details\n",
    "Notes/Home/Boat_ to do/Boat_ to do.txt": (
        "Boat: to do\n\t✓\tPaint the hull\n\t◦\tBuy a spare key #boat\n\ufffc\nCall Ada.\n"
    ),
    "Notes/Home/Boat_ to do/Attachment.md": "Bring the long rope.",
    "Notes/Home/Boat_ to do/Attachment-1.png": b"\x89PNG\x00",
    "Notes/Twice/Twice.txt": "Twice\nThe first of them.",
    "Notes/Twice/Twice-1.txt": "Twice\nThe second of them.",
    "Recently Deleted/Old/Old.txt": "Old\nGone.",
}
Put = Callable[[str, str | bytes], Path]


@pytest.fixture(params=["archive", "folder", "folder around", "parts"])
def outcome(request: pytest.FixtureRequest, here: Path, put: Put) -> Outcome:
    """What the copy becomes: as Apple packs it, unpacked, and where the import begins above it."""
    if request.param.startswith("folder"):
        for name, content in FILES.items():
            put(f"copy/iCloud Notes/{name}", content)
        return read("copy/iCloud Notes" if request.param == "folder" else "copy")
    packed(here / "copy.zip", "" if request.param == "parts" else "iCloud Notes/")
    return read("copy.zip")


def packed(path: Path, top: str = "iCloud Notes/") -> Path:
    with zipfile.ZipFile(path, "w") as made:
        for name, content in FILES.items():
            made.writestr(top + name, content)
    return path


def test_a_note_has_its_title_times_folder_boxes_and_topics(outcome: Outcome) -> None:
    boat = next(one for one in outcome.drafts if one.title == "Boat: to do")
    assert boat.text == "- [x] Paint the hull\n- [ ] Buy a spare key #boat\n\nCall Ada."
    assert (boat.created, boat.updated) == ("2024-05-01T12:00:00Z", "2024-05-02T12:30:00Z")
    assert boat.topics == ("boat",)
    assert sorted(boat.metadata.pop("attachments")) == ["Attachment-1.png", "Attachment.md"]
    assert boat.metadata == {"folder": "Home", "pinned": True}
    assert (boat.source, boat.ref) == ("Apple Notes", "Home/Boat_ to do/Boat_ to do.txt")


def test_an_attachment_is_read_as_what_it_is_and_says_what_it_is_attached_to(
    outcome: Outcome,
) -> None:
    rope = next(one for one in outcome.drafts if one.text == "Bring the long rope.")
    assert rope.title == "Attachment.md"
    assert rope.created == "2024-05-01T12:00:00Z"
    assert rope.metadata == {"folder": "Home", "attached_to": "Boat_ to do"}


def test_notes_of_one_title_are_kept_apart_and_get_the_times_of_neither(outcome: Outcome) -> None:
    twice = [one for one in outcome.drafts if one.title == "Twice"]
    assert sorted(one.text for one in twice) == ["The first of them.", "The second of them."]
    assert [one.created for one in twice] == [None, None]


def test_the_trash_the_tables_and_pictures_are_left_out_by_name(outcome: Outcome) -> None:
    assert outcome.failures == {}
    assert len(outcome.drafts) == 4
    why = {name.rpartition("/")[2]: reason for name, reason in outcome.skips.items()}
    assert why["Old.txt"] == "in the trash of Apple Notes"
    assert why["Notes Details.csv"] == why["Shared Notes Info.csv"]
    assert why["Attachment-1.png"] == "no reader for .png"


def test_a_broken_table_is_named_and_costs_no_note(here: Path) -> None:
    path = here / "copy.zip"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("iCloud Notes/Notes Details.csv", DETAILS + "cut,off\n")
        made.writestr("iCloud Notes/Notes/Home/A/A.txt", "A\nText.")
    found = read("copy.zip")
    assert [*found.failures] == ["copy.zip/iCloud Notes/Notes Details.csv:6"]
    assert [one.title for one in found.drafts] == ["A"]


def test_a_newer_copy_under_another_name_updates_the_notes(store: MemoryStore, here: Path) -> None:
    first = store.import_paths(packed(here / "one.zip"), embed=False)
    assert first.kinds == {"Apple Notes": 4}
    again = store.import_paths(packed(here / "two.zip"), embed=False)
    assert (again.imported, again.failed, store.stats()["memories"]) == (0, 0, 4)


def test_other_folders_of_these_names_are_plain_notes(put: Put, here: Path) -> None:
    put("Notes/Garden/Garden.txt", "Garden\nWater.")
    draft = read(".").only
    assert (draft.source, draft.text) == (None, "Garden\nWater.")


NOTE = "x-coredata://1B2C/ICNote/p12"
BODY = "<div><h1>Boat</h1></div><div>Paint the <b>hull</b></div><ul><li>red</li></ul>"


@pytest.mark.parametrize("kind", ["array", "lines", "table"])
def test_a_note_that_a_script_gave_as_html_is_one_by_its_address(
    here: Path, put: Put, kind: str
) -> None:
    """As apple-notes-to-sqlite and scripts in JavaScript write them."""
    pytest.importorskip("lxml", reason="the extra documents is not installed")
    said = {"id": NOTE, "title": "Boat", "body": BODY}
    if kind == "table":
        times = ("2024-05-01T12:00:00", "2024-05-02T12:30:00")
        with sqlite3.connect(here / "notes.db") as made:
            made.execute("create table notes (id text primary key, created, updated, title, body)")
            made.execute("insert into notes values (?, ?, ?, ?, ?)", (NOTE, *times, "Boat", BODY))
        found = read("notes.db")
    else:
        said |= {"created": "2024-05-01T12:00:00Z", "modified": "2024-05-02T12:30:00Z"}
        text = json.dumps([said]) if kind == "array" else f"{json.dumps(said)}\n" * 2
        found = read(put("notes.json" if kind == "array" else "notes.ndjson", text))
    boat = found.drafts[0]
    assert (boat.source, boat.ref, boat.title) == ("Apple Notes", NOTE, "Boat")
    assert boat.text == "# Boat\n\nPaint the **hull**\n\n- red"
    assert (boat.created, boat.updated) == ("2024-05-01T12:00:00Z", "2024-05-02T12:30:00Z")


def test_notes_read_from_the_database_of_apple_notes_keep_tables_and_say_what_is_locked(
    rows: Callable[[str, str], Outcome],
) -> None:
    """As apple_cloud_notes_parser writes them, and apple-notes-liberator."""
    note = {"note_id": 12, "uuid": "A-1", "title": "Boat", "plaintext": "Boat\n\ufffc\nCall Ada."}
    note |= {"creation_time": "2024-05-01 12:00:00 -0400", "modify_time": "", "folder": "Home"}
    note |= {"hashtags": ["#boat"], "is_pinned": True}
    cells = [["rope", "9 m"], ["paint", "2 l"]]
    locked = {"note_id": 13, "uuid": "A-2", "plaintext": "", "is_password_protected": True}
    tables = [{"table": cells}, {"url": "https://example.org"}]
    notes = {"12": {**note, "embedded_objects": tables}, "13": locked}
    found = rows("all_notes_1.json", json.dumps({"folders": {}, "html": "", "notes": notes}))
    (boat,) = found.drafts
    table = "| rope | 9 m |\n| --- | --- |\n| paint | 2 l |"
    assert boat.text == f"Boat\n\nCall Ada.\n\n{table}"
    assert (boat.ref, boat.created, boat.topics) == ("A-1", "2024-05-01T16:00:00Z", ("boat",))
    assert boat.metadata == {"folder": "Home", "pinned": True}
    assert list(found.skips.values()) == ["locked by a password in Apple Notes"]

    objects = [{"type": "TABLE", "data": cells}]
    free = [{"title": "Boat", "text": "Call Ada.", "embeddedObjects": objects}]
    assert rows("notes.json", json.dumps(free)).only.text == f"Call Ada.\n\n{table}"
