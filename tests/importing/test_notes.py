"""Markdown notes of Obsidian, Zettlr, Hugo and Bear become memories; broken ones say where."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reading_files import read

from memory_store.importing.front_matter import FrontMatterError, as_data, read_front_matter
from memory_store.importing.notes import first_heading, hashtags

Put = Callable[[str, "str | bytes"], Path]
ID = "0b0d5b76-6c43-4f3e-9c39-0a4a6a3c8a11"


def test_every_known_field_is_taken_and_the_rest_is_metadata(put: Put) -> None:
    put(
        "a.md",
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
""",
    )
    draft = read("a.md").only
    assert draft.text == "We decided to go."
    assert (draft.title, draft.type, draft.collection) == ("Harbour walk", "decision", "trips")
    assert draft.topics == ("sea", "walks/long")
    assert draft.created == "2024-05-01T00:00:00Z"
    assert draft.updated == "2024-05-02T10:00:00Z"
    assert (draft.valid_from, draft.valid_to) == ("2024-06-01T00:00:00Z", "2025-06-01T00:00:00Z")
    assert draft.id == draft.parent == draft.supersedes == ID
    assert draft.ref == "a.md"
    assert draft.metadata == {"mood": "calm", "rating": 4, "wet": False}


@pytest.mark.parametrize(
    ("written", "topics"),
    [
        ("tags: [sea, walks]", ("sea", "walks")),
        ("tags:\n  - sea\n  - walks", ("sea", "walks")),
        ("tags:\n- '#sea'\n- walks", ("sea", "walks")),
        ("tags: sea walks", ("sea", "walks")),
        ("tags: sea, long walks", ("sea", "long walks")),
        ('tags: "#sea #walks/long"', ("sea", "walks/long")),
        ('tags: "[sea, walks]"', ("sea", "walks")),
        ("Keywords: sea\ntopics: walks", ("walks", "sea")),
        ("tags: [2024, no, 1.10, yes]", ("2024", "no", "1.10", "yes")),
        ("tags: [sea, sea, '', ~]", ("sea",)),
        ("tags:", ()),
        ("tags: []", ()),
        ("tags: 冬", ("冬",)),
    ],
)
def test_tags_are_read_in_every_usual_spelling(
    put: Put, written: str, topics: tuple[str, ...]
) -> None:
    put("a.md", f"---\n{written}\n---\nwords\n")
    draft = read("a.md").only
    assert draft.topics == topics
    assert draft.metadata == {}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("date", "2024-05-01"),
        ("Date", "2024-05-01T00:00:00"),
        ("created", '"2024-05-01"'),
        ("date created", "2024-05-01 00:00"),
        ("creation-date", "Wednesday, 1 May 2024"),
        ("date", "20240501"),
    ],
)
def test_the_date_of_a_note_under_its_usual_keys(put: Put, key: str, value: str) -> None:
    put("a.md", f"---\n{key}: {value}\n---\nwords\n")
    assert read("a.md").only.created == "2024-05-01T00:00:00Z"


def test_of_two_dates_the_first_named_counts_and_the_other_is_kept(put: Put) -> None:
    put("a.md", "---\ndate: 2020-01-01\ncreated: 2024-05-01\n---\nwords\n")
    draft = read("a.md").only
    assert draft.created == "2024-05-01T00:00:00Z"
    assert draft.metadata == {"date": "2020-01-01"}


def test_without_a_date_the_name_gives_it_or_else_the_time_stamp_that_of_a_change(put: Put) -> None:
    put("2024-05-01 Walk.md", "words")
    stamped = put("walk.md", "words")
    os.utime(stamped, (0, 1714555800))
    assert read("2024-05-01 Walk.md").only.created == "2024-05-01T00:00:00Z"
    undated = read("walk.md").only
    assert (undated.created, undated.updated) == (None, "2024-05-01T09:30:00Z")


def test_fields_of_other_programs_stay_metadata(put: Put) -> None:
    put(
        "a.md",
        "---\ntype: post\nsource: https://example.org/a\nparent: '[[Index]]'\nid: 202405010930\n"
        "draft: no\naliases: [Walk, 007]\nlength: 1.50\nweight: 3\nat: 12:30\n---\nwords\n",
    )
    draft = read("a.md").only
    assert (draft.type, draft.source, draft.parent, draft.id) == (None, None, None, None)
    assert draft.metadata == {
        "type": "post",
        "source": "https://example.org/a",
        "parent": "[[Index]]",
        "id": 202405010930,
        "draft": "no",
        "aliases": ["Walk", "007"],
        "length": 1.5,
        "weight": 3,
        "at": "12:30",
    }


def test_a_title_is_the_front_matters_the_headings_or_the_files(put: Put) -> None:
    put("a.md", "---\ntitle: 1984\n---\n# Heading\nwords\n")
    put("b.md", "words\n\n```\n# comment\n```\n## Second\n# Heading #work #\n")
    put("c.md", "A Heading\n=========\nwords")
    put("d.md", "#hashtag\n    # indented\nwords")
    put("e.md", "# " + "long " * 100)
    assert read("a.md").only.title == "1984"
    assert read("b.md").only.title == "Heading #work"
    assert read("c.md").only.title == "A Heading"
    assert read("d.md").only.title == "d"
    assert len(read("e.md").only.title or "") <= 201


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


def test_hashtags_of_the_text_are_topics_but_code_links_and_colours_are_not(put: Put) -> None:
    put("a.md", "---\ntags: [first, SEA]\n---\n" + HASHTAGS_AND_MORE)
    assert read("a.md").only.topics == (
        *("first", "SEA", "plan", "walks/long", "größe", "y2k", "decade", "after-code", "trim"),
        *("🎉", "cell", "quoted", "nested", "हिन्दी", "日本語", "emoji🎉"),
    )


def test_a_text_full_of_hashtags_gives_as_many_topics_as_a_memory_may_have(put: Put) -> None:
    put("a.md", " ".join(f"#t{n}" for n in range(5_000)))
    draft = read("a.md").only
    assert len(draft.topics) == 200
    assert "#t4999" in draft.text


def test_byte_order_mark_windows_newlines_and_dots_are_understood(put: Put) -> None:
    put("a.md", b"\xef\xbb\xbf---\r\ntitle: Walk\r\ntags: sea\r\n...\r\n\r\nOne\r\nTwo\r\n")
    draft = read("a.md").only
    assert (draft.title, draft.topics, draft.text) == ("Walk", ("sea",), "One\nTwo")


def test_utf16_of_old_windows_editors_is_understood(put: Put) -> None:
    put("a.txt", "größer\r\n".encode("utf-16"))
    assert read("a.txt").only.text == "größer"


def test_toml_front_matter_of_hugo_is_understood(put: Put) -> None:
    put(
        "a.md",
        '+++\ntitle = "Walk"\ndate = 2024-05-01T11:30:00+02:00\ntags = ["sea"]\n'
        "[params]\nday = 2024-05-01\n+++\n\nwords\n",
    )
    draft = read("a.md").only
    assert (draft.title, draft.topics, draft.text) == ("Walk", ("sea",), "words")
    assert draft.created == "2024-05-01T09:30:00Z"
    assert draft.metadata == {"params": {"day": "2024-05-01"}}


@pytest.mark.parametrize(
    "text",
    [
        "---\n\nProse under a rule.\n",
        "---\nProse between rules.\n---\nMore.\n",
        "---",
        "----\ntitle: no\n----\nwords",
        "words\n---\ntitle: no\n---",
        "--- # no fence\nwords",
        "+++\nplain prose\nwords",
    ],
)
def test_a_rule_is_not_front_matter_and_no_word_is_lost(put: Put, text: str) -> None:
    put("a.md", text)
    assert read("a.md").only.text == text.removesuffix("\n")


@pytest.mark.parametrize("block", ["", "\n", "# a comment\n", "~\n", "{}\n"])
def test_empty_front_matter_is_no_trouble(put: Put, block: str) -> None:
    put("a.md", f"---\n{block}---\nwords\n")
    assert read("a.md").only.text == "words"


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
        ("---\na: &x 1\nb: *x\n---\nwords", 2, "aliases and anchors"),
        ("---\na: !!python/object/apply:os.system [ls]\n---\nwords", 2, "tag"),
        ('---\na: "\\ud800"\n---\nwords', 2, ""),
        ("---\na: \x07\n---\nwords", 2, ""),
        ("+++\na = 1\ntitle x\n+++\nwords", 3, "Expected '='"),
        ("+++\na = 1\nwords", 1, "never closed with +++"),
    ],
)
def test_broken_front_matter_names_file_and_line(
    put: Put, text: str, line: int, reason: str
) -> None:
    put("good.md", "words")
    put("bad.md", text)
    outcome = read(".")
    assert outcome.refs == ["good.md"]
    assert list(outcome.failures) == [f"bad.md:{line}"]
    assert reason in outcome.failures[f"bad.md:{line}"]


@pytest.mark.parametrize("content", ["", " \n\t\n", "---\ntitle: x\n---\n\n", "\ufeff"])
def test_a_note_without_text_is_skipped_as_empty(put: Put, content: str) -> None:
    put("a.md", content)
    outcome = read("a.md")
    assert outcome.skips == {"a.md": "empty"}
    assert not outcome.failures


def test_a_text_in_the_front_matter_counts_where_the_body_is_blank(put: Put) -> None:
    put("a.md", "---\ntext: the words\n---\n")
    put("b.md", "---\ntext: the words\n---\nthe body\n")
    assert read("a.md").only.text == "the words"
    assert read("b.md").only.text == "the body"
    assert read("b.md").only.metadata == {"text": "the words"}


def test_binary_files_are_skipped_and_wrong_encodings_name_the_byte(put: Put) -> None:
    put("a.md", b"GIF89a\0\0\0")
    put("b.md", b"first\nna\xefve")
    put("c.md", "\ufeff".encode() + b"caf\xe9")
    put("d.md", "words".encode("utf-16") + b"\x00")
    outcome = read(".")
    assert outcome.skips == {"a.md": "binary"}
    assert outcome.failures == {
        "b.md:2": "not UTF-8: byte 0xef at offset 8",
        "c.md:1": "not UTF-8: byte 0xe9 at offset 6",
        "d.md:1": "not UTF-16: byte 0x00 at offset 12",
    }


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
