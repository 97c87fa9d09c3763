"""PDF, office files, web pages, books, notebooks and mail become memories, or are named."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path

import psutil
import pytest
from made_documents import WORDS, book, docx, paragraph, pdf, sheets, slide
from reading_files import Outcome
from zip_files import zipped

from memory_store.actions.export import export_markdown
from memory_store.importing.converters import document, process
from memory_store.store import MemoryStore

pytest.importorskip("pypdfium2", reason="the extra documents is not installed")
pytest.importorskip("pptx", reason="the extra documents is not installed")

Rows = Callable[[str, bytes], Outcome]


OLE = b"\xd0\xcf\x11\xe0"  # begins office files of before 2007, and those with a password
LOCKED = OLE + "EncryptedPackage".encode("utf-16-le")


CORE = (
    "<c:coreProperties xmlns:c='http://schemas.openxmlformats.org/package/2006/metadata/"
    "core-properties' xmlns:dc='http://purl.org/dc/elements/1.1/' "
    "xmlns:t='http://purl.org/dc/terms/'><dc:title>The lease</dc:title>"
    "<dc:creator>Anna</dc:creator><t:created>2024-05-01T09:30:00Z</t:created></c:coreProperties>"
)


def message(subject: str = "The spare key", **attached: bytes) -> bytes:
    made = EmailMessage()
    made["From"], made["To"], made["Subject"] = (
        "Anna <anna@example.org>",
        "bob@example.org",
        subject,
    )
    made["Date"], made["Message-ID"] = (
        "Wed, 01 May 2024 11:30:00 +0200",
        f"<{subject[-1]}@example.org>",
    )
    made.set_content("It hangs behind the shed.\n")
    for name, content in attached.items():
        called = name.replace("_", ".")
        made.add_attachment(content, maintype="application", subtype="x", filename=called)
    return made.as_bytes()


def test_a_pdf_has_a_section_a_page_its_title_and_its_date(rows: Rows) -> None:
    draft = rows("lease.pdf", pdf("It ends in May", "", "The deposit is back")).only
    assert draft.text == "## Page 1\n\nIt ends in May\n\n## Page 3\n\nThe deposit is back"
    assert (draft.title, draft.created) == ("The lease", "2024-05-01T07:30:00Z")
    assert draft.metadata == {"pages": "3"}
    assert rows("scan.pdf", pdf("", "")).skips == {
        "scan.pdf": "a scan: its pages are pictures without text"
    }


def test_a_name_with_underscores_is_found_as_it_is_written(rows: Rows) -> None:
    page = rb"<p>Set bind_host_2, and *not* _this_ or a\_b.</p>"
    assert rows("page.html", page).only.text == (r"Set bind_host_2, and \*not\* \_this\_ or a\\_b.")


def test_the_date_in_its_name_counts_before_the_one_in_a_document(rows: Rows) -> None:
    named = rows("2023-02-01 lease.pdf", pdf("It ends in May")).only
    assert named.created is not None
    assert named.created.startswith("2023-02-01")
    assert rows("2023-02-01 key.eml", message()).only.created == "2024-05-01T09:30:00Z"


def test_a_pdf_is_known_by_its_first_bytes(rows: Rows) -> None:
    assert "It ends in May" in rows("lease", pdf("It ends in May")).only.text


def test_a_word_document_becomes_markdown(rows: Rows) -> None:
    cells = "".join(f"<w:tc>{paragraph(text)}</w:tc>" for text in ("rent", "900"))
    body = (
        paragraph("Ends", "Heading1")
        + paragraph("In May.")
        + f"<w:tbl><w:tr>{cells}</w:tr></w:tbl>"
    )
    draft = rows("lease.docx", docx(body, CORE)).only
    assert "In May." in draft.text
    assert "| rent | 900 |" in draft.text
    assert (draft.title, draft.created) == ("The lease", "2024-05-01T09:30:00Z")
    assert draft.metadata == {"author": "Anna"}


def test_a_word_document_keeps_the_text_of_fields_formulas_and_its_title(rows: Rows) -> None:
    field = "<w:fldSimple w:instr='SEQ'><w:r><w:t>7</w:t></w:r></w:fldSimple>"
    formula = "<m:oMath xmlns:m='m'><m:f><m:num><m:r><m:t>mc²</m:t></m:r></m:num></m:f></m:oMath>"
    body = f"<w:p><w:r><w:t>Figure </w:t></w:r>{field}</w:p><w:p>{formula}</w:p>"
    assert rows("a.docx", docx(body)).only.text == "Figure 7\n\nmc²"
    named = f"<w:styles xmlns:w='{WORDS}'><w:style w:type='paragraph' w:styleId='T'>" + (
        "<w:name w:val='Title'/></w:style></w:styles>"
    )
    said = docx(paragraph("The lease", "T") + paragraph("Rent", "Heading1"), styles=named)
    assert rows("a.docx", said).only.title == "The lease"


def test_a_word_document_is_read_whatever_its_main_part_is_called(rows: Rows) -> None:
    made = docx(paragraph("By a program on the web."), main="word/document2.xml")
    assert rows("a.docx", made).only.text == "By a program on the web."


def test_a_cell_that_spans_rows_or_holds_a_line_moves_no_other_cell(rows: Rows) -> None:
    page = """<table><tr><th>who</th><th>what</th></tr><tr><td rowspan="2">Ada</td><td>a|b</td></tr>
        <tr><td>keys</td></tr></table>"""
    assert rows("a.html", page.encode()).only.text == (
        "| who | what |\n| --- | --- |\n| Ada | a\\|b |\n|  | keys |"
    )


def test_a_table_that_only_lays_out_others_is_no_table(rows: Rows) -> None:
    inner = "<table><tr><td>Hello</td></tr></table>"
    page = f"<table><tr><td>{inner}</td><td><p>The rent is paid.</p></td></tr></table>"
    assert rows("a.html", page.encode()).only.text == "Hello\n\nThe rent is paid."


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<ul>" + "<li>key\n" * 600 + "</ul>", "\n".join(["- key"] * 600)),
        ("<p>rent " * 600, "\n\n".join(["rent"] * 600)),
        ("<table><tr><th>a<th>b<tr><td>c<td>d</table>", "| a | b |\n| --- | --- |\n| c | d |"),
        ("<dl><dt>key<dd>shed</dl>", "key\n:   shed"),
        ("<p>a<section><p>b</p>c</section>", "a\n\nb\n\nc"),
    ],
)
def test_a_page_may_leave_out_the_ends_that_html_lets_it(rows: Rows, page: str, text: str) -> None:
    assert rows("a.html", page.encode()).only.text == text


def test_words_of_neighbouring_blocks_are_not_run_together(rows: Rows) -> None:
    page = b"<header>Ada</header><details><summary>Keys</summary>shed</details><aside>rent</aside>"
    assert rows("a.html", page).only.text.split() == ["Ada", "Keys", "shed", "rent"]


def test_slides_keep_their_numbers_tables_and_the_speakers_notes(rows: Rows) -> None:
    made = slide("The garden", ["tomatoes", "12"], notes="Water every second day.")
    text = rows("talk.pptx", made).only.text
    assert text.startswith("## Slide 1: The garden\n")
    assert "| tomatoes | 12 |" in text
    assert "Notes: Water every second day." in text


def test_a_sheet_is_a_section_with_a_table(rows: Rows) -> None:
    made = sheets({"Rent": [["month", "paid"], ["May", 900]], "Empty": []})
    text = rows("rent.xlsx", made).only.text
    assert text == "## Rent\n\n| month | paid |\n| --- | --- |\n| May | 900 |"


def test_a_page_loses_its_scripts_and_pictures_and_keeps_its_links(rows: Rows) -> None:
    page = """<html lang=en><head><title>Keys</title><style>p {}</style></head><body>
        <nav>Home</nav><h1>The spare key</h1><p>Behind the <a href="https://example.org">shed</a>,
        not <a href="javascript:alert(1)">there</a>.<script>alert(1)</script>
        <img src="data:image/png;base64,AAAA" alt="a shed"></p></body></html>"""
    draft = rows("keys.html", page.encode()).only
    assert draft.text.startswith("# The spare key\n\nBehind the [shed](https://example.org)")
    for gone in ("alert", "Home", "base64", "javascript"):
        assert gone not in draft.text
    assert (draft.title, draft.metadata) == ("Keys", {"lang": "en"})


def test_a_page_loses_its_own_footer_and_keeps_those_of_its_sections(rows: Rows) -> None:
    page = """<body><div><article><p>The key.</p><footer>by Ada</footer></article>
        <footer>Terms and imprint</footer></div></body>"""
    draft = rows("keys.html", page.encode()).only
    assert draft.text == "The key.\n\nby Ada"


def test_a_book_is_read_in_its_own_order(rows: Rows) -> None:
    a = "<h1>Bees</h1><p>for Ada</p><h2>3. <em>The hive</em></h2><p>words</p><h3>Wax</h3>"
    b = "<p>and on</p><h2>Honey</h2><pre><code># jars\n</code></pre><h2>Part the last</h2>"
    draft = rows("bees.epub", book(a=a, b=b)).only
    assert draft.text.replace("\n\n", "\n").splitlines() == [
        *("# Bees", "for Ada", "## Chapter 3 · The hive", "words", "### Wax"),
        *("and on", "## Chapter 2 · Honey", "```", "# jars", "```", "## Part the last"),
    ]
    assert (draft.title, draft.metadata) == ("Bees", {"chapters": "2", "author": "Anna"})
    assert rows("bare.epub", book(a="<p>One.</p>", b="<p>Two.</p>")).only.text == (
        "## Chapter 1\n\nOne.\n\n## Chapter 2\n\nTwo."
    )


def test_a_book_has_its_authors_and_its_year_and_begins_with_no_line_of_markup(rows: Rows) -> None:
    begins = '<?xml version="1.0"?>'
    made = book(a="<p>One.</p>", nav="<nav>One</nav>", begins=begins, by="Bo", of="2003")
    draft = rows("bees.epub", made).only
    assert draft.text == "## Chapter 1\n\nOne."
    assert draft.metadata == {"chapters": "1", "author": "Anna, Bo"}
    assert draft.created == "2003-01-01T00:00:00Z"


def test_a_notebook_keeps_its_cells_and_what_they_printed(rows: Rows) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Bees\\n", "counted"]},
        {"cell_type": "code", "source": "1 + 1", "outputs": [{"data": {"text/plain": "2"}}]},
    ]
    about = {"kernelspec": {"language": "python"}}
    notebook = json.dumps({"cells": cells, "metadata": about}).replace("\\\\n", "\\n")
    draft = rows("bees.ipynb", notebook.encode()).only
    assert draft.text == "# Bees\ncounted\n\n```python\n1 + 1\n```\n\n```\n2\n```"
    assert draft.title == "Bees"


def test_a_message_says_who_wrote_and_its_attachments_are_memories(rows: Rows) -> None:
    found = rows("key.eml", message(lease_pdf=pdf("It ends in May"), photo_jpg=b"\xff\xd8"))
    mail, attached = found.drafts
    assert mail.text.startswith("From: Anna <anna@example.org>\nTo: bob@example.org\n")
    assert "It hangs behind the shed." in mail.text
    assert (mail.type, attached.type) == ("message", "document")
    assert (mail.title, mail.created) == ("The spare key", "2024-05-01T09:30:00Z")
    assert mail.metadata["message_id"] == "<y@example.org>"
    assert (attached.ref, attached.title) == ("key.eml#lease.pdf", "The lease")
    assert attached.metadata["attached_to"] == "The spare key"


def test_a_mailbox_is_a_memory_for_each_message(rows: Rows) -> None:
    sent = [b"From x Wed May 1\n" + message(f"Letter {n}") + b"\n>From here on\n\n" for n in "12"]
    found = rows("all.mbox", b"".join([*sent, b"From x Wed May 1\nnothing\n\n"]))
    assert [draft.title for draft in found.drafts] == ["Letter 1", "Letter 2"]
    assert [draft.ref for draft in found.drafts] == ["<1@example.org>", "<2@example.org>"]
    assert "\nFrom here on" in found.drafts[0].text
    assert found.failures == {"all.mbox: message 3": "broken, or no message"}


def test_of_messages_with_one_id_each_that_says_something_else_is_a_memory(rows: Rows) -> None:
    sent = [message("Letter 1"), message("Letter 1"), message("Not letter 1")]
    found = rows("all.mbox", b"".join(b"From x Wed May 1\n" + one + b"\n\n" for one in sent))
    assert [(one.title, one.ref) for one in found.drafts] == [
        ("Letter 1", "<1@example.org>"),
        ("Not letter 1", "message-3"),
    ]
    assert found.skips == {"all.mbox: message 2": "a copy of a message before it"}


@pytest.mark.parametrize("kind", ["plain", "plain; charset=x-none", "plain; charset=utf-8", "html"])
@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_a_message_is_read_whatever_it_says_of_its_encoding(
    rows: Rows, kind: str, encoding: str
) -> None:
    sent = f"From: a@example.org\nContent-Type: text/{kind}\n\nGrüße aus Köln\n".encode(encoding)
    assert rows("a.eml", sent).only.text.endswith("Grüße aus Köln")


def parts(kind: str, *said: tuple[str, str]) -> str:
    """A part of a message that holds others, by their headers and texts."""
    within = "".join(f"--{kind}\nContent-Type: {about}\n\n{text}\n" for about, text in said)
    return f"multipart/{kind}; boundary={kind}\n\n{within}--{kind}--"


def test_all_texts_of_a_message_are_its_text_and_all_attachments_are_read(rows: Rows) -> None:
    attached = ('text/csv; name="rent.csv"', "May,900")
    mixed = parts("mixed", ("text/html", "<p>first</p>"), attached, ("text/html", "<p>last</p>"))
    for content, text in (
        (mixed, "first\n\nlast"),
        (parts("alternative", ("text/plain", "all"), mixed.partition("\n\n")[::2]), "all"),
        (parts("related", mixed.partition("\n\n")[::2]), "first\n\nlast"),
    ):
        made = f"From: a@example.org\nContent-Type: {content}\n"
        mail, table = rows("a.eml", made.encode()).drafts
        assert mail.text == f"From: a@example.org\n\n{text}"
        assert (table.ref, table.text) == ("a.eml#rent.csv", "May,900")


def test_an_empty_plain_text_gives_way_to_the_page_beside_it(rows: Rows) -> None:
    content = parts("alternative", ("text/plain", ""), ("text/html", "<p>The rent</p>"))
    made = f"From: a@example.org\nContent-Type: {content}\n"
    assert rows("a.eml", made.encode()).only.text.endswith("\n\nThe rent")


def test_an_attachment_that_cannot_be_read_is_named(rows: Rows) -> None:
    found = rows("key.eml", message(lease_pdf=b"no such thing"))
    assert [one.title for one in found.drafts] == ["The spare key"]
    assert found.warnings == {
        "key.eml: lease.pdf": "attached, and not read: broken, or no PDF file"
    }


def nested(depth: int) -> bytes:
    made = message("Innermost 0")
    for number in range(1, depth):
        outer = EmailMessage()
        outer["From"], outer["Subject"] = "a@example.org", f"Around {number}"
        outer.set_content("see below")
        outer.add_attachment(made, maintype="application", subtype="x", filename="inner.eml")
        made = outer.as_bytes()
    return made


LAUGHS = "<!DOCTYPE a [<!ENTITY a 'ha'><!ENTITY b '&a;&a;&a;&a;'>]>"
BOMB: dict[str, str | bytes] = {"word/document.xml": b"<w>" + b" " * 30_000_000 + b"</w>"}


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.pdf", b"no such thing", "broken, or no PDF file"),
        ("a.docx", b"%PDF-1.4\nbut no more", "broken, or no PDF file"),
        ("a.docx", OLE + b"a document of 1997", "older than DOCX: save it as DOCX"),
        *((f"a.{kind}", LOCKED, "needs a password") for kind in ("docx", "pptx", "xlsx")),
        ("a.docx", zipped(BOMB), "expands too far"),
        ("a.docx", docx(paragraph("a"), LAUGHS + CORE), "broken, or no DOCX file"),
        ("a.xlsx", zipped({"a": "b"}), "broken, or no spreadsheet"),
        ("a.epub", zipped({"META-INF/container.xml": LAUGHS + "<a>&b;</a>"}), "broken, or no EPUB"),
        ("a.ipynb", b'{"cells": 3}', "broken, or no notebook"),
        ("a.ipynb", b"[" * 100_000, "nested too deeply"),
        ("a.html", b"<div>" * 100_000 + b"a", "nested too deeply"),
        ("a.eml", b"\0\1\2", "broken, or no message"),
    ],
)
def test_what_cannot_be_read_is_named(rows: Rows, name: str, content: bytes, said: str) -> None:
    (failed,) = rows(name, content).failures.items()
    assert failed[0] == name
    assert said in failed[1]


def test_a_document_with_the_suffix_of_another_kind_is_read_as_what_it_is(rows: Rows) -> None:
    assert rows("a.docx", pdf("It ends in May")).only.text == "## Page 1\n\nIt ends in May"
    assert rows("a.xlsx", docx(paragraph("It ends in May"))).only.text == "It ends in May"


def test_messages_within_messages_are_read_to_a_depth(rows: Rows) -> None:
    assert [one.title for one in rows("a.eml", nested(12)).drafts] == [
        f"Around {number}" for number in (11, 10, 9, 8)
    ]


@pytest.mark.parametrize("share", range(5, 100, 10))
def test_a_file_that_was_cut_off_is_read_or_named(rows: Rows, share: int) -> None:
    whole = {
        "a.pdf": pdf("It ends in May"),
        "a.docx": docx(paragraph("In May."), CORE),
        "a.eml": message(lease_pdf=pdf("May")),
        "a.html": b"<html><body><p>It ends in May</p></body></html>",
    }
    for name, content in whole.items():
        found = rows(name, content[: len(content) * share // 100])
        assert found.drafts or found.failures or found.skips, name


def test_one_that_takes_too_long_is_ended_and_the_next_is_read() -> None:
    assert process.convert("html", b"<p>first</p>")
    with pytest.raises(document.UnreadableError, match="takes more than"):
        process.convert("html", b"<p>word <b>word</b></p>" * 200_000, seconds=0.2)
    assert process.convert("html", b"<p>next</p>")[0].text == "next"


def readers_at_work() -> list[psutil.Process]:
    children = psutil.Process().children(recursive=True)
    return [one for one in children if "memory_store.importing.converters.child" in one.cmdline()]


@pytest.mark.skipif(sys.platform != "linux", reason="as Linux shows a process")
def test_a_reader_has_no_secret_opens_nothing_and_is_gone_after_the_import(
    store: MemoryStore, put: Callable[[str, bytes], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    process.close()
    monkeypatch.setenv("MEMORY_STORE_PASSPHRASE", "nothing that a reader may have")
    assert process.convert("html", b"<p>first</p>")
    (reader,) = readers_at_work()
    assert not [name for name in reader.environ() if name.startswith("MEMORY_STORE")]
    assert reader.rlimit(psutil.RLIMIT_NOFILE) == (3, 3)
    assert reader.rlimit(psutil.RLIMIT_FSIZE) == (0, 0)
    put("in/lease.docx", docx(paragraph("A canary called Pavarotti.")))
    report = store.import_paths(["in"])
    assert report.imported == 1
    assert readers_at_work() == []
    assert store.search("Pavarotti", mode="keyword").rows[0].title == "lease"
    for file in store.path.parent.iterdir():
        assert b"Pavarotti" not in file.read_bytes()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limits")
@pytest.mark.parametrize(
    "attempt",
    ["open('/etc/hostname')", "__import__('socket').socket()", "__import__('os').pipe()"],
)
def test_a_process_that_is_locked_in_opens_no_file_and_no_connection(attempt: str) -> None:
    script = f"""
import os, socket, sys
from memory_store.importing.converters.child import lock_in
lock_in()
try:
    {attempt}
except OSError as error:
    sys.exit(error.errno)
"""
    done = subprocess.run([sys.executable, "-c", script], check=False)
    assert done.returncode == 24  # EMFILE: no number is left


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limits")
@pytest.mark.parametrize(
    "attempt", ["os.fork()", "threading.Thread(target=print).start()", "os.posix_spawn(*program)"]
)
def test_a_process_that_is_locked_in_starts_no_other(attempt: str) -> None:
    script = f"""
import os, resource, sys, threading
from memory_store.importing.converters.child import lock_in
if not os.getuid():
    os.setuid(65_534)  # root may
program = ("/bin/true", ["/bin/true"], dict())
lock_in()
try:
    {attempt}
except (OSError, RuntimeError):
    os._exit(3)
"""
    done = subprocess.run([sys.executable, "-c", script], check=False)
    assert done.returncode == 3


def test_without_the_extra_a_document_is_left_out_and_the_extra_is_named(
    rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memory_store.importing.converters import kinds

    monkeypatch.setattr(kinds, "find_spec", lambda name: None)
    assert rows("lease.pdf", pdf("It ends in May")).skips == {
        "lease.pdf": ".pdf needs pip install 'datasette-hybrid[documents]'"
    }
    assert rows("bees.ipynb", b'{"cells": []}').skips == {"bees.ipynb": "empty"}  # this needs none


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("<p>ß漢é</p>".encode(), "ß漢é"),
        ("<p>naïve café</p>".encode("cp1252"), "naïve café"),
        ('<meta charset="koi8-r"><p>привет</p>'.encode("koi8-r"), "привет"),
        ('<meta charset="utf-16"><p>é!</p>'.encode(), "é!"),
        ('<meta charset="no-such"><p>é</p>'.encode(), "é"),
        ("<p>漢字</p>".encode("utf-16"), "漢字"),
    ],
)
def test_a_page_is_read_in_its_encoding_and_none_is_guessed(
    rows: Rows, content: bytes, text: str
) -> None:
    assert rows("page.html", content).only.text == text


def test_a_result_names_the_page_the_sheet_or_the_turn_that_its_words_stand_under(
    here: Path, put: Callable[[str, bytes], Path]
) -> None:
    long = "Nothing of the kind is said here. " * 20
    pages = (long[:80], "The notice period is three months.", "## Parrots", "Under a comment", "")
    put("in/lease.pdf", pdf(*pages, about=""))
    put(
        "in/long.md", f"# Boat\n\n{long}\n\n## `Engine` *room*\n\nThe spare key.\n\n{long}".encode()
    )
    said = "Sure.\n\n## Bands\n\nCopper bands.\n\n```r\n## tin only\n```\n\n```\nnot closed"
    turns = [("human", long), ("assistant", said), ("human", "And zinc?")]
    chat = {
        "uuid": "c-1",
        "chat_messages": [{"sender": sender, "text": text} for sender, text in turns],
    }
    put("in/conversations.json", json.dumps([chat]).encode())
    put("in/bees.epub", book(work=f"<h1>Work</h1><p>{long}</p><h2>Wax</h2><p>Combs, {long}</p>"))
    store, _ = MemoryStore.create(here / "notes.db", key_file=here.parent / "key")
    with store:
        store.import_paths(["in", "in/conversations.json"], embed=False)

        def place(query: str) -> str | None:
            return store.search(query, mode="keyword").rows[0].passages[0].place

        assert place("notice period") == "Page 2"
        assert place("comment") == "Page 4"
        assert place("spare key") == "Engine room"
        assert place("copper") == place("tin only") == "2. Claude"
        assert place("zinc") == "3. You"
        assert place("combs") == "Chapter 1 · Work › Wax"
        places = {word: place(word) for word in ("notice", "comment", "copper", "zinc", "combs")}
        export_markdown(store.every(), "out")
    again, _ = MemoryStore.create(here / "again.db", key_file=here.parent / "key")
    with again as store:
        store.import_paths("out", embed=False)
        assert {word: place(word) for word in places} == places
