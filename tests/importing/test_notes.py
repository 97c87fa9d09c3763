"""Markdown notes of Obsidian, Zettlr, Hugo and Bear become memories; broken ones say where."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading_files import read

from memory_store.importing.front_matter import FrontMatterError, as_data, read_front_matter
from memory_store.importing.notes import first_heading, hashtags
from memory_store.records import MemoryDraft

Put = Callable[[str, "str | bytes"], Path]
Note = Callable[["str | bytes"], MemoryDraft]
ID = "0b0d5b76-6c43-4f3e-9c39-0a4a6a3c8a11"


def test_every_known_field_is_taken_and_the_rest_is_metadata(note: Note) -> None:
    draft = note(
        f"""---
title: Harbour walk
type: Decision
tags: [sea, "#walks/long"]
collection: trips
created: 2024-05-01
updated: 2024-05-02 10:00
valid_from: 2024-06-01
valid_to: 2025-06-01
parent: {ID}
supersedes: {ID.upper()}
id: {ID}
mood: calm
metadata: {{rating: 4, wet: false}}
---

We decided to go.
"""
    )
    assert draft.text == "We decided to go."
    assert (draft.title, draft.type, draft.collection) == ("Harbour walk", "decision", "trips")
    assert draft.topics == ("sea", "walks/long")
    assert draft.created == "2024-05-01T00:00:00Z"
    assert draft.updated == "2024-05-02T10:00:00Z"
    assert (draft.valid_from, draft.valid_to) == ("2024-06-01T00:00:00Z", "2025-06-01T00:00:00Z")
    assert draft.id == draft.parent == draft.supersedes == ID
    assert draft.ref == "a.md"
    assert draft.metadata == {"mood": "calm", "rating": 4, "wet": False}


def test_the_keywords_of_an_org_file_are_its_title_topics_and_day(put: Put) -> None:
    said = ":PROPERTIES:\n:ID: x\n:END:\n#+title: The Boat\n#+FILETAGS: :sea:walks:\n"
    text = f"{said}#+DATE: <2024-05-01 Wed>\n# a comment\n\n* Repairs\n#+TITLE: of no file\n"
    draft = read(put("boat.org", text)).only
    assert (draft.title, draft.topics, draft.created) == (
        *("The Boat", ("sea", "walks")),
        "2024-05-01T00:00:00Z",
    )
    assert read(put("bare.org", "# a comment\n\n* Repairs\n")).only.title == "bare"


SEA = {"topics": ("sea", "walks"), "metadata": {}}
MAY = {"created": "2024-05-01T00:00:00Z"}
RULES = (
    *("---\n\nProse under a rule.", "---\nProse between rules.\n---\nMore.", "---"),
    *("----\ntitle: no\n----\nwords", "words\n---\ntitle: no\n---"),
    *("--- # no fence\nwords", "+++\nplain prose\nwords"),
)


@pytest.mark.parametrize(
    ("content", "fields"),
    [
        ("---\ntags: [sea, walks]\n---\nwords", SEA),
        ("---\ntags:\n  - sea\n  - walks\n---\nwords", SEA),
        ("---\ntags:\n- '#sea'\n- walks\n---\nwords", SEA),
        ("---\ntags: sea walks\n---\nwords", SEA),
        ('---\ntags: "[sea, walks]"\n---\nwords', SEA),
        ("---\nKeywords: walks\ntopics: sea\n---\nwords", SEA),
        ("---\ntags: sea, long walks\n---\nwords", {"topics": ("sea", "long walks")}),
        ('---\ntags: "#sea #walks/long"\n---\nwords', {"topics": ("sea", "walks/long")}),
        ("---\ntags: [2024, no, 1.10]\n---\nwords", {"topics": ("2024", "no", "1.10")}),
        ("---\ntags: [sea, sea, '', ~]\n---\nwords", {"topics": ("sea",), "metadata": {}}),
        ("---\ntags:\n---\nwords", {"topics": (), "metadata": {}}),
        ("---\ntags: []\n---\nwords", {"topics": (), "metadata": {}}),
        ("---\ntags: 冬\n---\nwords", {"topics": ("冬",)}),
        ("---\ndate: 2024-05-01\n---\nwords", MAY),
        ("---\nDate: 2024-05-01T00:00:00\n---\nwords", MAY),
        ('---\ncreated: "2024-05-01"\n---\nwords', MAY),
        ("---\ndate created: 2024-05-01 00:00\n---\nwords", MAY),
        ("---\ncreation-date: Wednesday, 1 May 2024\n---\nwords", MAY),
        ("---\ndate: 20240501\n---\nwords", MAY),
        (  # of two dates the first named counts, and the other is kept
            "---\ndate: 2020-01-01\ncreated: 2024-05-01\n---\nwords",
            MAY | {"metadata": {"date": "2020-01-01"}},
        ),
        (  # fields of other programs stay metadata
            "---\ntype: post\nsource: https://example.org/a\nparent: '[[Index]]'\n"
            "id: 202405010930\ndraft: no\naliases: [Walk, 007]\nlength: 1.50\nweight: 3\n"
            "at: 12:30\n---\nwords\n",
            {
                **dict.fromkeys(("type", "source", "parent", "id")),
                "metadata": {
                    "type": "post",
                    "source": "https://example.org/a",
                    "parent": "[[Index]]",
                    "id": 202405010930,
                    "draft": "no",
                    "aliases": ["Walk", "007"],
                    "length": 1.5,
                    "weight": 3,
                    "at": "12:30",
                },
            },
        ),
        # a title is the front matter's, the heading's or the file's
        ("---\ntitle: 1984\n---\n# Heading\nwords\n", {"title": "1984"}),
        ("words\n\n```\n# comment\n```\n## Second\n# Heading #a #\n", {"title": "Heading #a"}),
        ("A Heading\n=========\nwords", {"title": "A Heading"}),
        ("#hashtag\n    # indented\nwords", {"title": "a"}),
        (  # byte order mark, newlines and dots of Windows editors
            b"\xef\xbb\xbf---\r\ntitle: Walk\r\ntags: sea\r\n...\r\n\r\nOne\r\nTwo\r\n",
            {"title": "Walk", "topics": ("sea",), "text": "One\nTwo"},
        ),
        ("größer\r\n".encode("utf-16"), {"text": "größer"}),
        (  # the TOML of Hugo
            '+++\ntitle = "Walk"\ndate = 2024-05-01T11:30:00+02:00\ntags = ["sea"]\n'
            "[params]\nday = 2024-05-01\n+++\n\nwords\n",
            {
                "title": "Walk",
                "topics": ("sea",),
                "text": "words",
                "created": "2024-05-01T09:30:00Z",
                "metadata": {"params": {"day": "2024-05-01"}},
            },
        ),
        *((text, {"text": text}) for text in RULES),  # no front matter, and no word is lost
        *(
            (f"---\n{block}---\nwords\n", {"text": "words"})
            for block in ("", "\n", "# a comment\n", "~\n", "{}\n")
        ),
        ("---\ntext: the words\n---\n", {"text": "the words"}),  # where the body is blank
        (
            "---\ntext: the words\n---\nthe body\n",
            {"text": "the body", "metadata": {"text": "the words"}},
        ),
    ],
)
def test_a_note_is_read_in_every_usual_spelling(
    note: Note, content: str | bytes, fields: dict[str, object]
) -> None:
    draft = note(content)
    assert {name: getattr(draft, name) for name in fields} == fields


def test_without_a_date_the_name_gives_it_or_else_the_time_stamp_that_of_a_change(put: Put) -> None:
    put("2024-05-01 Walk.md", "words")
    stamped = put("walk.md", "words")
    os.utime(stamped, (0, 1714555800))
    assert read("2024-05-01 Walk.md").only.created == "2024-05-01T00:00:00Z"
    undated = read("walk.md").only
    assert (undated.created, undated.updated) == (None, "2024-05-01T09:30:00Z")


def test_a_heading_that_is_a_paragraph_is_shortened(note: Note) -> None:
    assert len(note("# " + "long " * 100).title or "") <= 201


@pytest.mark.parametrize(
    ("heading", "title"),
    [
        ("# `spare-key` (`RUF039`)", "spare-key (RUF039)"),
        ("# The **north** [wall](https://example.org) and [[Notes/Pump|the pump]]", None),
        ("# Code blocks { #code-blocks }", "Code blocks"),
        ("# Code blocks {: #code .wide }", "Code blocks"),
        ("How to use ``shell``\n=====", "How to use shell"),
        ("# ***", "***"),
        ("# C# {a}", "C# {a}"),
    ],
)
def test_a_title_is_words_without_markdown(note: Note, heading: str, title: str | None) -> None:
    assert note(f"{heading}\n\ntext").title == (title or "The north wall and the pump")


def test_the_anchor_of_a_heading_is_no_topic(note: Note) -> None:
    text = "## Header { #header-1 }\n\n[a](b){.wide #there} {: #here} but #sea and {see #walks}"
    assert note(text).topics == ("sea", "walks")


HASHTAGS_AND_MORE = """\
# Heading #plan

Start #sea, (#walks/long) and #größe. #2024 is a year, #42 an issue, #y2k a topic; #Sea again.
Colours #fff #ff8800 #a1b2c3d4 but #decade; C#, a#b, \\#escaped, [anchor](#there), [[#Part]],
https://example.org/#frag <a href="#x"> `#code` ``#more `#code` `` #after-code #-trim- #🎉
| #cell |
> #quoted

```python
#include
```

~~~
#tilde
```
#still
~~~

    #indented

- item

    #nested in a list

#हिन्दी #日本語、#emoji🎉
"""


def test_hashtags_of_the_text_are_topics_but_code_links_and_colours_are_not(note: Note) -> None:
    assert note("---\ntags: [first, SEA]\n---\n" + HASHTAGS_AND_MORE).topics == (
        *("first", "SEA", "plan", "walks/long", "größe", "y2k", "decade", "after-code", "trim"),
        *("🎉", "cell", "quoted", "nested", "हिन्दी", "日本語", "emoji🎉"),
    )


def test_a_text_full_of_hashtags_gives_as_many_topics_as_a_memory_may_have(note: Note) -> None:
    draft = note(" ".join(f"#t{n}" for n in range(5_000)))
    assert len(draft.topics) == 200
    assert "#t4999" in draft.text


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("---\ntitle: a: b\n---\nwords", 2, "mapping values are not allowed"),
        ("---\ntitle: x\ntags: [a, b\n---\nwords", 4, ""),
        ("---\ntitle: 'x\n---\nwords", 3, ""),
        ("---\n\ttitle: x\n---\nwords", 2, ""),
        ("---\ntitle: x\nwords", 1, "never closed with --- or ..."),
        ("---\n- a\n- b\n---\nwords", 2, "a list, not key: value"),
        ("---\na: 1\nb: 2\na: 3\n---\nwords", 4, "'a' is there twice"),
        ("---\n? [a]\n: b\n---\nwords", 2, "a key must be text"),
        ("---\na: 1\ndate: 2023-02-30\n---\nwords", 3, "date: '2023-02-30' is not a date"),
        ("---\ndate: 05/06/2024\n---\nwords", 2, "day/month or month/day"),
        ("---\na: 1\n\ntags: {a: b}\n---\nwords", 4, "tags: topics are a list or text"),
        ('---\na: "\\ud800"\n---\nwords', 2, ""),
        ("---\na: \x07\n---\nwords", 2, ""),
        ("+++\na = 1\ntitle x\n+++\nwords", 3, "Expected '='"),
        ("+++\na = 1\nwords", 1, "never closed with +++"),
    ],
)
def test_broken_front_matter_keeps_the_note_and_a_warning_names_file_and_line(
    put: Put, text: str, line: int, reason: str
) -> None:
    put("good.md", "words")
    put("bad.md", text)
    outcome = read(".")
    assert outcome.refs == ["bad.md", "good.md"]
    assert not outcome.failures
    assert list(outcome.warnings) == [f"bad.md:{line}"]
    assert reason in outcome.warnings[f"bad.md:{line}"]
    assert "words" in outcome.drafts[0].text
    kept = f"{outcome.drafts[0].text} {outcome.drafts[0].metadata}"
    assert all(word in kept for word in re.findall(r"\w{3,}", text.replace("\\ud800", "")))


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("---\na: &x 1\nb: *x\n---\nwords", 2, "aliases and anchors"),
        ("---\na: !!python/object/apply:os.system [ls]\n---\nwords", 2, "tag"),
    ],
)
def test_front_matter_made_to_do_harm_is_refused_with_file_and_line(
    put: Put, text: str, line: int, reason: str
) -> None:
    put("good.md", "words")
    put("bad.md", text)
    outcome = read(".")
    assert outcome.refs == ["good.md"]
    assert list(outcome.failures) == [f"bad.md:{line}"]
    assert reason in outcome.failures[f"bad.md:{line}"]


def test_a_field_that_cannot_be_read_leaves_the_others_as_they_are(put: Put) -> None:
    put("a.md", "---\ntitle: Lease\ntags: [home]\ndate: 05/06/2024\n---\nwords")
    (draft,) = read("a.md").drafts
    assert (draft.title, draft.topics, draft.text) == ("Lease", ("home",), "words")
    assert draft.metadata == {"date": "05/06/2024"}


def test_a_star_before_a_title_or_a_template_is_a_slip_and_no_attack(put: Put) -> None:
    put("a.md", "---\ntitle: *Important* things\n---\nwords")
    put("b.md", "---\ntitle: {{title}}\n---\nwords")
    outcome = read(".")
    assert outcome.refs == ["a.md", "b.md"]
    assert list(outcome.warnings) == ["a.md:2", "b.md:2"]


@pytest.mark.parametrize("content", ["", " \n\t\n", "---\ntitle: x\n---\n\n", "\ufeff"])
def test_a_note_without_text_is_skipped_as_empty(put: Put, content: str) -> None:
    put("a.md", content)
    outcome = read("a.md")
    assert outcome.skips == {"a.md": "empty"}
    assert not outcome.failures


def test_binary_files_are_skipped_and_damaged_text_names_the_byte(put: Put) -> None:
    put("a.md", b"GIF89a\0\0\0")
    put("c.md", "\ufeff".encode() + b"caf\xe9")
    put("d.md", "words".encode("utf-16") + b"\x00")
    put("e.md", "Käse, Brühe".encode() + b", caf\xe9")
    put("f.md", b"\x7fELF\xe9")
    outcome = read(".")
    assert not outcome.drafts
    assert outcome.skips == {"a.md": "binary"}
    assert outcome.failures == {
        "c.md:1": "not UTF-8: byte 0xe9 at offset 6",
        "d.md:1": "not UTF-16: byte 0x00 at offset 12",
        "e.md:1": "not UTF-8: byte 0xe9 at offset 18",
        "f.md:1": "not UTF-8: byte 0xe9 at offset 4",
    }


@pytest.mark.parametrize("name", ["a.md", "a.txt"])
def test_latin_1_is_read_as_such_with_a_warning(put: Put, name: str) -> None:
    put(name, b"first\r\nna\xefve \x84words\x93")
    outcome = read(".")
    assert [draft.text for draft in outcome.drafts] == ["first\nnaïve „words“"]
    assert outcome.warnings[name].startswith("not UTF-8: byte 0xef at offset 9; read as Latin-1")


@pytest.mark.parametrize(
    "content",
    [b"{\\rtf1 words}", b"PK\x03\x04", b"\x1f\x8b\x08"],
)
def test_a_named_file_that_no_reader_knows_is_skipped_and_never_taken_as_bytes(
    put: Put, content: bytes
) -> None:
    put("a.xyz", content)
    assert read("a.xyz").skips == {"a.xyz": "no reader for .xyz"}


@pytest.mark.parametrize(
    ("name", "content", "other"),
    [("a.odt", b"PK\x03\x04\0", ".docx"), ("a.ppt", b"\xd0\xcf\x11\xe0\0", ".pptx")],
)
def test_of_a_document_that_is_not_read_is_said_as_what_to_save_it(
    put: Put, name: str, content: bytes, other: str
) -> None:
    put(f"in/{name}", content)
    said = f"no reader for {name[1:]}: save it as {other}"
    assert read("in").skips == {f"in/{name}": said}
    assert read(f"in/{name}").skips == {f"in/{name}": said}


@pytest.mark.parametrize("name", ["notes.key", "key.txt"])
def test_a_key_is_no_note_though_its_file_is_named(put: Put, name: str) -> None:
    put(name, base64.b64encode(bytes(range(32))) + b"\n")
    assert read(name).skips == {name: "a key file: a search would show the key"}


def test_text_of_rst_and_org_files_is_always_taken(put: Put) -> None:
    put("a.rst", "words")
    put("b.org", "words")
    assert read(".").refs == ["a.rst", "b.org"]


def test_plain_text_keeps_its_dashes_and_gives_its_hashtags(put: Put) -> None:
    put("a.txt", "---\ntitle: not read\n---\n#sea\n")
    draft = read("a.txt").only
    assert (draft.title, draft.topics) == ("a", ("sea",))
    assert draft.text.startswith("---\ntitle: not read")


KEYS = st.from_regex(r"[a-z][a-z_]{0,11}", fullmatch=True)
PRINTABLE = st.text(st.characters(codec="utf-8").filter(str.isprintable), max_size=20)
TEXTS = st.text(st.characters(codec="utf-8"))


@given(st.dictionaries(KEYS, PRINTABLE, max_size=6), TEXTS)
def test_quoted_values_and_the_body_come_back_to_the_letter(
    fields: dict[str, str], body: str
) -> None:
    block = "".join("{}: '{}'\n".format(k, v.replace("'", "''")) for k, v in fields.items())
    read = read_front_matter(f"---\n{block}---\n\n{body}")
    assert as_data(dict(read.fields)) == fields
    assert list(read.lines.values()) == list(range(2, 2 + len(fields)))
    assert read.body == body


@given(TEXTS, st.sampled_from(["---", "+++"]))
def test_whatever_a_block_holds_it_is_read_kept_or_refused(block: str, fence: str) -> None:
    text = f"{fence}\n{block}\n{fence}\nbody"
    try:
        read = read_front_matter(text)
    except FrontMatterError as error:
        refused_at: int | None = error.line
    else:
        refused_at = None
        assert read.body == text or text.endswith(read.body)
        json.dumps(as_data(dict(read.fields)), allow_nan=False)
    assert refused_at is None or 1 <= refused_at <= text.count("\n") + 2


@given(st.text("#`~->\n\t abc1/*_=\\[](){}|", max_size=200))
def test_no_markdown_whatever_breaks_titles_and_hashtags(text: str) -> None:
    assert all(topic and not topic.startswith("#") for topic in hashtags(text, 200))
    assert first_heading(text) != ""
