"""Links in notes as they are written, and the names that they ask for."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_store.text.link_names import MARKDOWN, WIKI, keys_of_link, names_of
from memory_store.text.links import Link, links, links_of_fields, section, sentence


def targets(text: str) -> list[str]:
    return [link.target for link in links(text)]


@pytest.mark.parametrize(
    ("text", "link"),
    [
        ("[[Lease]]", Link("Lease")),
        ("[[Lease|the flat]]", Link("Lease", words="the flat")),
        ("[[home/Lease#Rent]]", Link("home/Lease", place="Rent")),
        ("[[Lease#^abc]]", Link("Lease", place="^abc")),
        ("![[Lease]]", Link("Lease", embed=True)),
        ("[flat](../My%20lease.md#Rent 'x')", Link("../My lease.md", MARKDOWN, "Rent", "flat")),
        ("[the flat](<My lease (2).md>)", Link("My lease (2).md", MARKDOWN)),
        ("[a](b(1).md)", Link("b(1).md", MARKDOWN)),
        ("![plan](plan.png)", Link("plan.png", MARKDOWN, embed=True)),
        ("[ref]\n\n[ref]: home/lease.md", Link("home/lease.md", MARKDOWN)),
    ],
)
def test_each_way_to_write_a_link(text: str, link: Link) -> None:
    (found,) = links(text)
    assert (found.target, found.kind, found.place) == (link.target, link.kind, link.place)
    assert found.embed == link.embed
    if link.words:
        assert found.words == link.words


@pytest.mark.parametrize(
    "text",
    [
        "`[[code]]`",
        "``a ` [[code]]``",
        "```\n[[fenced]]\n```",
        "~~~md\n[a](b.md)\n~~~",
        "    [[indented]]",
        r"\[[escaped]]",
        "[[]]",
        "[[#Here]]",
        "[here](#here)",
        "[site](https://example.org/a.md)",
        "[site](//example.org/a.md)",
        "[mail](mailto:a@example.org)",
        "[script](javascript:alert(1))",
        "[data](data:text/html,x)",
        "a](b.md)",
        "[[two\nlines]]",
    ],
)
def test_what_is_no_link_to_a_note(text: str) -> None:
    assert links(text) == []


def test_links_stand_in_tables_lists_quotes_and_headings() -> None:
    text = (
        "# About [[Heading]]\n\n> [!note] See [[Callout]]\n\n- [ ] do [[Task]]\n\n"
        "| a | b |\n|---|---|\n| [[Cell\\|words]] | [x](cell.md) |\n"
    )
    assert targets(text) == ["Heading", "Callout", "Task", "Cell", "cell.md"]


def test_a_picture_in_a_link_is_both() -> None:
    picture, page = links("[![plan](plan.png)](page.md)")
    assert (picture.target, picture.embed) == ("plan.png", True)
    assert (page.target, page.embed) == ("page.md", False)


def test_the_sentence_around_a_link_is_kept_without_marks() -> None:
    text = "It rained. The **lease** of [[Flat|the flat]] ends in *May*! Then we move."
    assert links(text)[0].around == "The lease of the flat ends in May!"
    long = links("word " * 200 + "[[Flat]]" + " word" * 200)[0].around
    assert "Flat" in long
    assert len(long) < 260
    assert long.startswith("… ")
    assert long.endswith(" …")


def test_fields_of_front_matter_link_too() -> None:
    found = links_of_fields({"up": "[[Home]]", "see": ["[[A|a]]", 3], "note": "not [[B]] alone"})
    assert [link.target for link in found] == ["Home", "A"]


def test_a_place_names_a_part_of_a_note() -> None:
    text = (
        "# Home\n\nAll.\n\n## Rent\n\nDue in May. ^due\n\n### Late\n\nA fine.\n\n## Key\n\nStone."
    )
    assert section(text, "Rent") == "## Rent\n\nDue in May. ^due\n\n### Late\n\nA fine.\n"
    assert section(text, "Home#Key") == "## Key\n\nStone."
    assert section(text, "^due") == "Due in May."
    assert section(text, "Nothing") == section(text, "") == text


def finds(
    target: str, kind: str, path: str, *, at: str = "Home.md", titles: tuple[str, ...] = ()
) -> bool:
    """Whether a link in the note ``at`` may mean the note at ``path``."""
    asked = keys_of_link(target, kind, "/notes", at)
    return not set(asked).isdisjoint(names_of("/notes", path, titles).keys)


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("Lease", "Lease.md"),
        ("lease.MD", "Lease.md"),
        ("Lease", "home/flat/Lease.md"),
        ("flat/Lease", "home/flat/Lease.md"),
        ("/home/flat/Lease", "home/flat/Lease.md"),
        ("./Lease", "Lease.md"),
        ("plan.png", "files/plan.png"),
        ("Caf\u0065\u0301", "Caf\u00e9.md"),
    ],
)
def test_a_wiki_link_finds_a_note_by_the_end_of_its_path(target: str, path: str) -> None:
    assert finds(target, WIKI, path)


def test_a_link_finds_no_note_of_another_name() -> None:
    assert not finds("ease", WIKI, "Lease.md")
    assert not finds("other/Lease", WIKI, "home/Lease.md")
    assert not finds("plan", WIKI, "files/plan.png")
    assert not finds("../Lease", WIKI, "deep/Lease.md", at="home/Flat.md")


def test_a_markdown_link_goes_from_the_folder_of_its_note() -> None:
    assert finds("../Lease.md", MARKDOWN, "Lease.md", at="home/Flat.md")
    assert finds("Rent.md", MARKDOWN, "home/Rent.md", at="home/Flat.md")
    assert not finds("../../../etc/passwd", MARKDOWN, "home/Rent.md", at="home/Flat.md")


def test_a_wiki_link_finds_a_note_by_alias_and_title() -> None:
    assert finds("the flat", WIKI, "home/Lease.md", titles=("Lease of the flat", "The  Flat"))
    assert not finds("the flat", MARKDOWN, "home/Lease.md", titles=("The Flat",))


HOSTILE = {
    "open brackets": "[[" * 200_000,
    "open links": "[a](" * 100_000,
    "open titles": '[x](a "' * 2_500 + "\n\n" + '[x](a "' * 2_500,
    "backticks": "".join("`" * count + " " for count in range(180)) + "[[x]]",
    "quotes": "> " * 20_000 + "[[x]]",
    "many": "[[a]]\n\n" * 10_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_costs_no_more_than_a_long_one(name: str) -> None:
    began = time.process_time()
    assert len(links(HOSTILE[name])) <= 2_000
    assert time.process_time() - began < 2


@given(st.text(alphabet="[]()!|#^`\\\n ab.*>-", max_size=120))
def test_any_text_has_links_that_can_be_resolved(text: str) -> None:
    for link in links(text):
        assert link.target.strip()
        assert keys_of_link(link.target, link.kind, "/notes", "a/b.md") is not None
        assert "[[" not in link.target


def test_a_sentence_among_many_exclamation_marks_is_found_at_once() -> None:
    began = time.process_time()
    assert sentence("The lease ends. " + "!" * 300_000, 4) == "The lease ends."
    assert time.process_time() - began < 5
