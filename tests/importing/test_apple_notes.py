"""A copy of the notes that Apple keeps becomes memories, from its archive and from its folder.

Apple publishes no description of such a copy. The shape here is the one that users of it have
described: a folder a note with its text and attachments, tables with the times, and a folder of
deleted notes (https://github.com/streetwriters/notesnook-importer/issues/273).
"""

from __future__ import annotations

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
