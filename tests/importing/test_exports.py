"""What other programs export becomes memories: each kind in the shape that its program writes."""

from __future__ import annotations

import base64
import csv
import hashlib
import html
import io
import json
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reading_files import Outcome, read

from memory_store.dates import epoch
from memory_store.importing.readers import READERS, read_file, reader_named
from memory_store.importing.source_file import SourceFile
from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore

pytest.importorskip("markdownify", reason="the extra documents is not installed")

Rows = Callable[[str, str | bytes], Outcome]
KEEP = {
    "isTrashed": False,
    "isPinned": True,
    "title": "Shopping",
    "listContent": [{"text": "milk", "isChecked": True}, {"text": "bread", "isChecked": False}],
    "labels": [{"name": "home"}],
    "createdTimestampUsec": 1714564800000000,
    "userEditedTimestampUsec": 1714568400000000,
}
NETSCAPE = """<!DOCTYPE NETSCAPE-Bookmark-file-1>
<TITLE>Bookmarks</TITLE>
<H1>Bookmarks</H1>
<DL><p>
    <DT><H3 ADD_DATE="1714564800">Garden</H3>
    <DL><p>
        <DT><A HREF="https://example.org/tomato" ADD_DATE="1714564800" TAGS="food,green">Tomato</A>
        <DD>Water them daily
        <DT><H3>Old</H3>
        <DL><p>
            <DT><A HREF="https://example.org/kale">Kale &amp; co</A>
        </DL><p>
    </DL><p>
    <DT><A HREF="https://example.org/tomato">Tomatoes again</A>
</DL><p>
"""
CLIPPINGS = """\ufeffThe Garden (Ada Green)
- Your Highlight on page 12 | Location 170-171 | Added on Wednesday, May 1, 2024 12:00:00 PM

Water them
==========
The Garden (Ada Green)
- Your Highlight on page 12 | Location 170-172 | Added on Wednesday, May 1, 2024 12:01:00 PM

Water them daily
==========
The Garden (Ada Green)
- Your Note on page 12 | Location 172 | Added on Wednesday, May 1, 2024 12:02:00 PM

Try this
==========
Walden
- Your Bookmark on Location 9 | Added on Wednesday, May 1, 2024 12:03:00 PM


==========
"""
READWISE = (
    "Highlight,Book Title,Book Author,Amazon Book ID,Note,Color,Tags,Location Type,Location,"
    "Highlighted at,Document tags\n"
    '"Water, daily",The Garden,Ada Green,B00X,Try,yellow,food,page,12,2024-05-01 12:00:00,garden\n'
    "Rest,The Garden,Ada Green,B00X,,yellow,,page,14,2024-05-02 12:00:00,\n"
)
ANKI = (
    "#separator:tab\n#html:true\n#guid column:1\n#notetype column:2\n#deck column:3\n"
    "#tags column:6\n"
    "g-1\tBasic\tGarden\tWhen to <b>water</b>?\tDaily &amp; early[sound:a.mp3]\tfood plant::herb\n"
    'g-2\tCloze\tGarden\t"The {{c1::sun::star}}\nrises"\t\t\n'
)
PAGE, BASE = "0123456789abcdef0123456789abcdef", "f" * 32
PICTURE = b"# Seeds\n\nFrom Ada"
ENEX = f"""<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE en-export SYSTEM "http://xml.evernote.com/pub/evernote-export4.dtd">
<en-export export-date="20240601T120000Z" application="Evernote">
<note><title>Garden</title><created>20240501T120000Z</created><updated>20240502T120000Z</updated>
<tag>food</tag><note-attributes><author>Ada</author></note-attributes>
<content><![CDATA[<?xml version="1.0"?><!DOCTYPE en-note SYSTEM "x.dtd"><en-note>
<div>Water them <b>daily</b></div><div><en-todo checked="true"/>seeds</div>
<div><en-todo/>soil</div>
<en-media type="text/markdown" hash="{hashlib.md5(PICTURE).hexdigest()}"/></en-note>]]></content>
<resource><data encoding="base64">{base64.b64encode(PICTURE).decode()}</data>
<mime>text/markdown</mime><resource-attributes><file-name>seeds.md</file-name></resource-attributes>
</resource></note>
<note><title>Second</title><content><![CDATA[<en-note>two</en-note>]]></content></note>
</en-export>
"""


def test_a_list_of_google_keep_is_a_task_list_and_its_trash_is_counted(rows: Rows) -> None:
    draft = rows("Shopping.json", json.dumps(KEEP)).only
    assert draft.text == "- [x] milk\n- [ ] bread"
    assert (draft.title, draft.topics, draft.ref) == ("Shopping", ("home",), "1714564800000000")
    assert (draft.created, draft.updated) == ("2024-05-01T12:00:00Z", "2024-05-01T13:00:00Z")
    trashed = rows("Gone.json", json.dumps({**KEEP, "isTrashed": True}))
    assert [*trashed.skips.values()] == ["in the trash of Google Keep"]


def test_a_takeout_gives_each_note_of_keep_once(here: Path) -> None:
    with zipfile.ZipFile(here / "takeout.zip", "w") as made:
        made.writestr("Takeout/Keep/Shopping.json", json.dumps(KEEP))
        made.writestr("Takeout/Keep/Shopping.html", "<p>milk</p>")
        made.writestr("Takeout/Keep/Labels.txt", "home\n")
        made.writestr("Takeout/archive_browser.html", "<p>Your archive</p>")
    found = read("takeout.zip")
    assert [one.title for one in found.drafts] == ["Shopping"]
    about = "it says what is in the Takeout"
    assert sorted(found.skips.values()) == [about, about, "the same note as its .json"]


GEMINI = {
    "header": "Gemini Apps",
    "title": "Prompted How often do I water tomatoes?",
    "time": "2024-05-01T12:00:00.250Z",
    "products": ["Gemini Apps"],
    "safeHtmlItem": [{"html": "<p>Every <b>second</b> day.</p><h2>In summer</h2><p>Daily.</p>"}],
}


def test_a_question_to_gemini_and_its_answer_are_turns_of_a_conversation(rows: Rows) -> None:
    used = {**GEMINI, "title": "Used Gemini Apps", "time": "2024-05-02T12:00:00Z"}
    del used["safeHtmlItem"]
    other = {**GEMINI, "header": "Search", "title": "Searched for kale", "products": ["Search"]}
    found = rows("MyActivity.json", json.dumps([GEMINI, used, other]))
    (draft,) = found.drafts
    assert draft.text == (
        "## 1. You, 2024-05-01 12:00\n\nHow often do I water tomatoes?\n\n"
        "## 2. Gemini\n\nEvery **second** day.\n\n#### In summer\n\nDaily."
    )
    assert (draft.title, draft.type) == ("How often do I water tomatoes?", "conversation")
    assert (draft.source, draft.ref) == ("Gemini", GEMINI["time"])
    assert draft.created.startswith("2024-05-01T12:00:00")
    assert [*found.skips.values()] == ["Gemini was used, and nothing asked"]
    assert len(found.failures) == 1
    canvas = {"title": "Created Gemini Canvas titled Beds", "subtitles": [{"name": "North: kale"}]}
    made = rows("MyActivity.json", json.dumps([{**used, **canvas, "attachedFiles": ["a.png"]}]))
    assert "North: kale" in made.only.text
    assert made.only.metadata["attachments"] == ["a.png"]
    broken = [{**GEMINI, "safeHtmlItem": said} for said in (None, 5, [5], [{"html": []}], [])]
    assert len(rows("MyActivity.json", json.dumps(broken)).drafts) == len(broken)


def activity(
    said: str, at: str, answer: str = "", chat: str = "", product: str = "Gemini Apps"
) -> str:
    """One cell of a page of *My Activity*."""
    link = f"https://gemini.google.com/app/{chat}"
    details = f'<b>Details:</b><br>&emsp;<a href="{link}">{link}</a><br>' if chat else ""
    body = "content-cell mdl-cell mdl-cell--6-col mdl-typography--body-1"
    return (
        '<div class="outer-cell mdl-cell mdl-cell--12-col mdl-shadow--2dp"><div class="mdl-grid">'
        '<div class="header-cell mdl-cell mdl-cell--12-col">'
        f'<p class="mdl-typography--title">{product}<br></p></div>'
        f'<div class="{body}">{said}<br>{at}<br>{answer}</div>'
        f'<div class="{body} mdl-typography--text-right"></div>'
        '<div class="content-cell mdl-cell mdl-cell--12-col mdl-typography--caption">'
        f"<b>Products:</b><br>&emsp;{product}<br>{details}</div></div></div>"
    )


def activities(*cells: str) -> str:
    return (
        "<html><head><title>My Activity History</title></head>"
        f"<body><div class='mdl-grid'>{''.join(cells)}</div></body></html>"
    )


def test_a_page_of_gemini_is_a_memory_a_conversation_the_oldest_turn_first(here: Path) -> None:
    later = "May 3, 2024, 2:00:00\u202fPM CEST"
    page = activities(
        activity("Prompted&nbsp;And kale?", later, "<p>Weekly.</p>", "c0ffee"),
        activity("Used an Assistant feature", later),
        activity(
            "Prompted&nbsp;What is <b>this</b>?<br>Attached 1 file.<br>"
            '-  <a href="a-1.png">a.png</a>',
            "10 de mai. de 2024, 03:46:09 BRT",
            "<h2>A seed</h2><p>Of kale.</p>",
        ),
        activity("Created Gemini Canvas titled&nbsp;Beds<br>North: kale", later),
        activity(
            "Prompted&nbsp;Tomatoes?", "May 1, 2024, 12:00:00 PM UTC", "<p>Daily.</p>", "c0ffee"
        ),
        activity("Watched&nbsp;Kale", later, product="YouTube"),
    )
    with zipfile.ZipFile(here / "takeout.zip", "w") as made:
        made.writestr("Takeout/My Activity/Gemini Apps/MyActivity.html", page)
    found = read("takeout.zip")
    assert not found.failures
    assert [*found.skips.values()] == ["Gemini was used, and nothing asked"]
    chat, canvas, seed = found.drafts
    assert chat.text == (
        "## 1. You, 2024-05-01 12:00\n\nTomatoes?\n\n## 2. Gemini\n\nDaily.\n\n"
        "## 3. You, 2024-05-03 12:00\n\nAnd kale?\n\n## 4. Gemini\n\nWeekly."
    )
    assert (chat.title, chat.type, chat.source, chat.ref) == (
        *("Tomatoes?", "conversation", "Gemini", "c0ffee"),
    )
    assert (chat.created, chat.updated) == ("2024-05-01T12:00:00Z", "2024-05-03T12:00:00Z")
    assert "North: kale" in canvas.text
    assert (seed.title, seed.created) == ("What is this?", "2024-05-10T06:46:09Z")
    assert seed.text.endswith("What is this?\n\n## 2. Gemini\n\n#### A seed\n\nOf kale.")
    assert seed.metadata["attachments"] == ["a.png"]


@pytest.mark.parametrize(
    ("said", "created"),
    [
        ("5. nov. 2025, 01:34:47 CEST", "2025-11-04T23:34:47Z"),
        ("May 19, 2026, 7:07:02\u202fPM GMT-03:00", "2026-05-19T22:07:02Z"),
        ("18 Sept 2025, 12:02:52 CET", "2025-09-18T11:02:52Z"),
        ("4 juli 2026 09:15:00 CEST", "2026-07-04T07:15:00Z"),
        ("14 juil. 2026, 00:15:00 UTC", "2026-07-14T00:15:00Z"),
        ("01.05.2024, 12:00:00 MESZ", "2024-05-01T10:00:00Z"),
        ("2026年6月19日 12:23:08 JST", "2026-06-19T03:23:08Z"),
        ("19 Ιουν 2026, 12:23:08 EET", None),
        ("99 May 2026, 12:23:08 UTC", None),
    ],
)
def test_times_of_gemini_are_read_in_many_languages(
    rows: Rows, said: str, created: str | None
) -> None:
    page = activities(activity("Poslali ste:&nbsp;Kale?", said, "<p>Yes.</p>"))
    draft = rows("MyActivity.html", page).only
    assert (draft.title, draft.created) == ("Kale?", created)
    assert draft.text.endswith("Gemini\n\nYes.")


def test_a_page_of_another_product_is_a_page(rows: Rows) -> None:
    watched = activity("Watched&nbsp;Kale", "May 1, 2024, 1:00:00 PM UTC", product="YouTube")
    draft = rows("MyActivity.html", activities(watched)).only
    assert (draft.type, draft.title) == ("document", "My Activity History")


def test_bookmarks_of_a_browser_keep_folder_tags_note_and_time(rows: Rows) -> None:
    tomato, kale = rows("bookmarks.html", NETSCAPE).drafts
    assert tomato.text == "Water them daily\n\nhttps://example.org/tomato"
    assert (tomato.title, tomato.topics) == ("Tomato", ("food", "green"))
    assert (tomato.created, tomato.ref) == ("2024-05-01T12:00:00Z", "https://example.org/tomato")
    assert (kale.title, kale.metadata["folder"]) == ("Kale & co", "Garden/Old")


@pytest.mark.parametrize("number", ["0", "1", "1000", "20240", "631151999"])
def test_a_number_too_small_for_a_time_is_left_out(rows: Rows, number: str) -> None:
    marked = NETSCAPE.replace('"1714564800" TAGS', f'"{number}" TAGS')
    tomato, _ = rows("bookmarks.html", marked).drafts
    assert tomato.created is None


@pytest.mark.parametrize(
    ("name", "content", "source", "topics"),
    [
        (
            "ril_export.html",
            "<!DOCTYPE html><title>Pocket Export</title><h1>Unread</h1><ul><li>"
            '<a href="https://example.org/" time_added="1714564800" tags="food,green">Garden</a>'
            "</li></ul>",
            "Pocket",
            ("food", "green"),
        ),
        (
            "part_000000.csv",
            "title,url,time_added,tags,status\n"
            "Garden,https://example.org/,1714564800,a b|c,Unread\n",
            "Pocket",
            ("a b", "c"),
        ),
        (
            "instapaper.csv",
            "URL,Title,Selection,Folder,Timestamp\n"
            "https://example.org/,Garden,,Unread,1714564800\n",
            "Instapaper",
            (),
        ),
        (
            "raindrop.csv",
            "id,title,note,excerpt,url,folder,tags,created,cover,highlights,favorite\n"
            '1,Garden,,,https://example.org/,Unread,"a, b",2024-05-01T12:00:00.000Z,,,false\n',
            "Raindrop",
            ("a", "b"),
        ),
    ],
)
def test_reading_lists_are_one_memory_an_address(
    rows: Rows, name: str, content: str, source: str, topics: tuple[str, ...]
) -> None:
    draft = rows(name, content).only
    assert (draft.title, draft.text, draft.ref) == ("Garden", *["https://example.org/"] * 2)
    assert (draft.source, draft.topics, draft.metadata["folder"]) == (source, topics, "Unread")
    assert (draft.created, draft.type) == ("2024-05-01T12:00:00Z", "bookmark")


def test_a_book_of_a_kindle_has_each_highlight_once_with_its_place(rows: Rows) -> None:
    draft = rows("My Clippings.txt", CLIPPINGS).only
    assert draft.text == (
        "## Highlight on page 12, Location 170-172\n\n> Water them daily\n\n"
        "## Note on page 12, Location 172\n\n> Try this"
    )
    assert (draft.title, draft.metadata["author"]) == ("The Garden", "Ada Green")
    assert (draft.created, draft.updated) == ("2024-05-01T12:00:00Z", "2024-05-01T12:02:00Z")


def test_clippings_that_are_cut_off_keep_what_is_whole(rows: Rows) -> None:
    found = rows("My Clippings.txt", CLIPPINGS[:280])
    assert [one.title for one in found.drafts] == ["The Garden"]
    assert [*found.failures.values()] == ["the last clipping is cut off"]


def test_readwise_is_one_memory_a_book(rows: Rows) -> None:
    draft = rows("readwise-data.csv", READWISE).only
    assert draft.text == "## Page 12\n\n> Water, daily\n\nTry\n\n## Page 14\n\n> Rest"
    assert (draft.ref, draft.topics) == ("B00X", ("food", "garden"))


def test_notes_of_anki_keep_fields_deck_and_tags(rows: Rows) -> None:
    card, cloze = rows("notes.txt", ANKI).drafts
    assert card.text == "When to **water**?\n\nDaily & early"
    assert (card.ref, card.metadata["deck"]) == ("g-1", "Garden")
    assert card.topics == ("food", "plant/herb")
    assert cloze.text == "The sun\nrises"


def test_memories_of_mem0_keep_id_categories_and_times(rows: Rows) -> None:
    memory = {
        "id": "m-1",
        "memory": "Likes tea",
        "categories": ["food"],
        "metadata": {"mood": "calm"},
        "user_id": "ada",
        "created_at": "2024-05-01T05:00:00-07:00",
    }
    for content in ({"results": [memory]}, [memory]):
        draft = rows("mem0.json", json.dumps(content)).only
        assert (draft.text, draft.ref, draft.topics) == ("Likes tea", "m-1", ("food",))
        assert draft.metadata == {"user_id": "ada", "mood": "calm"}
        assert draft.created == "2024-05-01T12:00:00Z"


def test_relations_of_basic_memory_are_links_and_its_tags_topics(here: Path) -> None:
    (here / "notes").mkdir()
    (here / "notes" / "Tea.md").write_text(
        "---\ntitle: Tea\ntype: note\npermalink: tea\ntags: [food]\n---\n# Tea\n\n"
        "## Observations\n- [method] Three minutes #brewing (green)\n\n"
        "## Relations\n- pairs_with [[Kale Cake]]\n"
    )
    (here / "notes" / "kale-cake.md").write_text("---\ntitle: Kale Cake\n---\nA cake")
    store, _ = MemoryStore.create(here / "notes.db", key_file=here.parent / "key")
    with store:
        store.import_paths(["notes"], embed=False)
        assert [one.title for one in store.links("Tea.md").out] == ["Kale Cake"]
        assert set(store.get("Tea.md").topics) == {"food", "brewing"}


def test_pages_of_notion_lose_their_ids_and_keep_their_links(here: Path) -> None:
    with zipfile.ZipFile(here / "notion.zip", "w") as made:
        made.writestr(
            f"Home {PAGE}.md",
            "# Home\n\nTags: food, green\nCreated: May 1, 2024\n\n"
            f"See [Plants](Home/Plants%20{BASE}.csv)",
        )
        made.writestr(f"Home/Plants {BASE}.csv", "Name,Water\nKale,daily\n")
        made.writestr(f"Home/Plants {BASE}_all.csv", "Name,Water\nKale,daily\nFig,no\n")
    found = read("notion.zip")
    home, plants = sorted(found.drafts, key=lambda one: one.title or "")
    assert (home.title, home.ref, home.topics) == ("Home", f"{PAGE}.md", ("food", "green"))
    assert f"[Plants]({BASE}.md)" in home.text
    assert (plants.title, plants.ref) == ("Plants", f"{BASE}.md")
    assert "| Fig | no |" in plants.text
    assert [*found.skips.values()] == ["the same table as the one of all its rows"]


def test_notes_of_evernote_keep_tags_times_boxes_and_attachments(rows: Rows) -> None:
    garden, seeds, second = rows("notes.enex", ENEX).drafts
    assert garden.text == "Water them **daily**\n\n- [x] seeds\n- [ ] soil\n\n[[seeds.md]]"
    assert (garden.title, garden.topics, garden.metadata["author"]) == ("Garden", ("food",), "Ada")
    assert (garden.created, garden.updated) == ("2024-05-01T12:00:00Z", "2024-05-02T12:00:00Z")
    assert (seeds.title, seeds.metadata["attached_to"]) == ("seeds.md", "Garden")
    assert seeds.text == PICTURE.decode()
    assert second.text == "two"


def test_an_enex_that_is_cut_off_or_declares_entities_is_named(rows: Rows) -> None:
    cut = rows("notes.enex", ENEX[: ENEX.index("<title>Second")])
    assert len(cut.drafts) == 2
    assert "cut off" in "".join(cut.failures.values())
    bomb = ENEX.replace('export4.dtd">', 'export4.dtd" [<!ENTITY a "aaaa">]>')
    assert "entities" in "".join(rows("notes.enex", bomb).failures.values())
    foreign = rows("notes.enex", '<?xml version="1.0" encoding="TF-8"?><en-export/>')
    assert "encoding that is not known" in "".join(foreign.failures.values())


def test_a_second_import_changes_nothing_and_a_newer_export_updates(here: Path) -> None:
    (here / "notes.enex").write_text(ENEX)
    (here / "bookmarks.html").write_text(NETSCAPE)
    store, _ = MemoryStore.create(here / "notes.db", key_file=here.parent / "key")
    with store:
        paths = ["notes.enex", "bookmarks.html"]
        assert store.import_paths(paths, embed=False).imported == 5
        again = store.import_paths(paths, embed=False)
        assert (again.imported, again.replaced, again.unchanged) == (0, 0, 5)
        (here / "newer.html").write_text(NETSCAPE.replace("Water them daily", "Water them twice"))
        newer = store.import_paths("newer.html", embed=False)
        assert (newer.imported, newer.replaced, newer.unchanged) == (0, 1, 1)


SAMPLES = {
    "kindle": CLIPPINGS,
    "enex": ENEX,
    "anki": ANKI,
    "bookmarks": NETSCAPE,
    **dict.fromkeys(("readwise", "bookmark table", "notion table", "notion"), READWISE),
}
WORDS = st.text(st.sampled_from("aZ9é漢ß-'&<>#"), min_size=1, max_size=12)
TOPICS = st.lists(
    st.text(st.sampled_from("abcé9"), min_size=1, max_size=8), max_size=3, unique=True
)
SECONDS = st.integers(1_000_000_000, 4_000_000_000)


def taken(kind: str, name: str, content: str) -> list[MemoryDraft]:
    """The memories of an export, all of which is read."""
    file = SourceFile(Path(name), Path(name), name, kind, content=content.encode)
    items = [*read_file(file)]
    assert all(isinstance(one, MemoryDraft) for one in items), items
    return [one for one in items if isinstance(one, MemoryDraft)]


@pytest.mark.parametrize("kind", SAMPLES)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_no_part_and_no_change_of_an_export_breaks_its_reader(
    kind: str, data: st.DataObject
) -> None:
    whole = SAMPLES[kind].encode()
    content = bytearray(whole[: data.draw(st.integers(0, len(whole)))])
    for at in data.draw(st.lists(st.integers(0, len(whole)), max_size=5)):
        content[at : at + 1] = data.draw(st.binary(max_size=4))
    name = f"Page {PAGE}.csv"
    here = Path(name)
    file = SourceFile(here, here, name, kind, content=lambda: bytes(content))
    assert reader_named(kind) in READERS
    for item in read_file(file):
        assert not isinstance(item, MemoryDraft) or item.ref


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(notes=st.lists(st.tuples(WORDS, WORDS, TOPICS, SECONDS), min_size=1, max_size=4))
def test_notes_of_evernote_come_back_as_they_were_written(
    notes: list[tuple[str, str, list[str], int]],
) -> None:
    def note(title: str, text: str, topics: list[str], seconds: int) -> str:
        when = f"{datetime.fromtimestamp(seconds, UTC):%Y%m%dT%H%M%SZ}"
        tags = "".join(f"<tag>{topic}</tag>" for topic in topics)
        body = html.escape(f"<en-note><div>x {html.escape(text)} y</div></en-note>")
        head = f"<title>{html.escape(title)}</title><created>{when}</created>"
        return f"<note>{head}{tags}<content>{body}</content></note>"

    made = "".join(note(*one) for one in notes)
    drafts = taken("enex", "notes.enex", f"<en-export>{made}</en-export>")
    assert [one.title for one in drafts] == [title for title, *_ in notes]
    assert [one.topics for one in drafts] == [tuple(topics) for *_, topics, _ in notes]
    assert [epoch(one.created) for one in drafts] == [seconds for *_, seconds in notes]
    said = [one.text.replace("\\", "") for one in drafts]
    assert said == [f"x {text} y" for _, text, *_ in notes]


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(notes=st.lists(st.tuples(WORDS, WORDS, TOPICS), min_size=1, max_size=6, unique_by=id))
def test_notes_of_anki_come_back_as_they_were_written(
    notes: list[tuple[str, str, list[str]]],
) -> None:
    made = io.StringIO("#separator:tab\n#html:false\n#guid column:1\n#tags column:4\n")
    made.seek(0, io.SEEK_END)
    rows = csv.writer(made, delimiter="\t", lineterminator="\n")
    for number, (front, back, topics) in enumerate(notes):
        rows.writerow([f"g-{number}", front, back, " ".join(topics)])
    drafts = taken("anki", "notes.txt", made.getvalue())
    assert [one.text for one in drafts] == [f"{front}\n\n{back}" for front, back, _ in notes]
    assert [one.topics for one in drafts] == [tuple(topics) for *_, topics in notes]
    assert [one.ref for one in drafts] == [f"g-{number}" for number in range(len(notes))]


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(marks=st.lists(st.tuples(WORDS, WORDS, TOPICS, SECONDS), min_size=1, max_size=6))
def test_bookmarks_come_back_as_they_were_written(
    marks: list[tuple[str, str, list[str], int]],
) -> None:
    made = "<!DOCTYPE NETSCAPE-Bookmark-file-1><DL><p>" + "".join(
        f'<DT><A HREF="https://example.org/{number}" ADD_DATE="{seconds}" '
        f'TAGS="{",".join(topics)}">{html.escape(title)}</A><DD>{html.escape(note)}\n'
        for number, (title, note, topics, seconds) in enumerate(marks)
    )
    drafts = taken("bookmarks", "bookmarks.html", f"{made}</DL>")
    assert [one.title for one in drafts] == [title for title, *_ in marks]
    assert [one.text.partition("\n\n")[0] for one in drafts] == [note for _, note, *_ in marks]
    assert [one.topics for one in drafts] == [tuple(topics) for *_, topics, _ in marks]
    assert [epoch(one.created) for one in drafts] == [seconds for *_, seconds in marks]
