"""Links between notes, as they are written: wiki links, embeds, and relative Markdown links.

Boundary: plain text goes in; targets and the words around them come out. Nothing is kept.

Blocks are those of ``markdown-it-py``, so that what stands in code is no link. Within a block one
pass over the brackets finds the links: its time grows with the text, whatever the text is.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from msgspec import Struct

from memory_store.text.link_names import MARKDOWN, WIKI

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

LONGEST_TEXT = 1_000_000  # characters; a longer text has no links
LONGEST_BLOCK = 20_000  # of one paragraph; a longer one was not written by hand, and shows as text
MOST_LINKS = 2_000  # of one text
LONGEST_TARGET = 500  # characters
SENTENCE = 240  # characters around a link, at most

WIKI_LINK = re.compile(rf"!?\[\[([^\[\]\n]{{1,{LONGEST_TARGET}}})\]\]")
_ALIAS = re.compile(r"\\?\|")  # in tables it is escaped
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)
_PUNCTUATION = r"[!-/:-@\[-`{-~]"
_UNESCAPED = re.compile(rf"\\({_PUNCTUATION})")
_MAYBE = re.compile(r"\[\[|\]\(|^ {0,3}\[[^\]\n]+\]:", re.MULTILINE)
_PARTS = re.compile(
    rf"""
      \\{_PUNCTUATION}
    | (?<!`)(?P<ticks>`+)(?!`)(?:.*?[^`])(?P=ticks)(?!`)
    | (?P<embed>!?)\[\[(?P<wiki>[^\[\]\n]{{1,{LONGEST_TARGET}}})\]\]
    | (?P<open>!?\[)
    | \]\([ \t\n]*
      (?: <(?P<angled>[^<>\n]{{0,{LONGEST_TARGET}}})>
        | (?P<bare>
            [^\s<>()]{{0,{LONGEST_TARGET}}}(?:\([^\s<>()]{{0,100}}\)[^\s<>()]{{0,100}}){{0,8}}
          )
      )
      (?:[ \t\n]+(?:"[^"]{{0,200}}"|'[^']{{0,200}}'|\([^()]{{0,200}}\)))?[ \t\n]*\)
    | (?P<close>\])
    """,
    re.VERBOSE | re.DOTALL,
)
_EMPHASIS = re.compile(r"(?<!\w)[*_~=]{1,3}(?=\S)|(?<=\S)[*_~=]{1,3}(?!\w)")
_ENDS = re.compile(r"(?<![.!?…。！？])[.!?…。！？]+[\"”’)\]]*\s+|\n")


class Link(Struct, frozen=True):
    """A link as it is written.

    ``target`` is the name or the path without its place; ``place`` a heading, or a block with
    ``^``. ``around`` is the sentence it stands in, without marks.
    """

    target: str
    kind: str = WIKI
    place: str = ""
    words: str = ""
    embed: bool = False
    around: str = ""


def links(text: str) -> list[Link]:
    """The links of a Markdown text to other notes and files, in order, each as often as it stands
    there. A link to a place in the same text is none."""
    if len(text) > LONGEST_TEXT or not _MAYBE.search(text):
        return []
    environment: dict[str, Any] = {}
    found: list[Link] = []
    for token in _blocks().parse(text, environment):
        if token.type == "inline" and len(token.content) <= LONGEST_BLOCK:
            found += _in_block(token.content)
            if len(found) >= MOST_LINKS:
                return found[:MOST_LINKS]
    for one in environment.get("references", {}).values():
        found += _of_address(one["href"], "", embed=False)
    return found[:MOST_LINKS]


def links_of_fields(fields: Mapping[str, Any]) -> list[Link]:
    """The wiki links among metadata: texts, and texts of lists."""
    return [
        link
        for value in fields.values()
        for text in (value if isinstance(value, list | tuple) else [value])
        if isinstance(text, str) and (whole := WIKI_LINK.fullmatch(text.strip()))
        for link in _of_wiki(whole[1], embed=False)
    ]


def wiki_link(inner: str, *, embed: bool = False) -> Link | None:
    """The link between ``[[`` and ``]]``; ``None`` where it leads nowhere else."""
    return next(iter(_of_wiki(inner, embed=embed)), None)


def markdown_link(address: str) -> Link | None:
    """The link to an address in a Markdown link; ``None`` for one of another site or place."""
    return next(iter(_of_address(address, "", embed=False)), None)


@cache
def _blocks() -> MarkdownIt:
    from markdown_it import MarkdownIt  # when a text is read for links: it takes 15 ms

    return MarkdownIt("commonmark", {"html": False}).enable("table").disable("inline")


def _of_wiki(inner: str, *, embed: bool) -> Iterable[Link]:
    target, *words = _ALIAS.split(inner, maxsplit=1)
    name, _, place = target.partition("#")
    name = name.strip().rstrip("\\").strip()
    if name and "://" not in name:
        yield Link(name, WIKI, place.strip(), words[0].strip() if words else "", embed)


def _of_address(address: str, words: str, *, embed: bool) -> Iterable[Link]:
    if _SCHEME.match(address):
        return
    path, _, place = unquote(_UNESCAPED.sub(r"\1", address)).partition("#")
    path = path.partition("?")[0].strip()
    if path and path.isprintable():
        yield Link(path[:LONGEST_TARGET], MARKDOWN, place.strip(), words, embed)


def _in_block(content: str) -> Iterator[Link]:
    """The links of one paragraph, heading, item or cell, each with the sentence around it."""
    plain: list[str] = []
    length = done = 0
    found: list[tuple[Link, int, int]] = []  # with where its words begin and end
    brackets: list[tuple[bool, int]] = []  # of those that are open: of a picture, and where
    for part in _PARTS.finditer(content):
        plain.append(content[done : part.start()])
        length += part.start() - done
        done = part.end()
        written = ""
        if part["wiki"] is not None:
            link = wiki_link(part["wiki"], embed=bool(part["embed"]))
            written = part["wiki"] if link is None else link.words or link.target
            found += [(link, length, length)] if link is not None else []
        elif part["open"] is not None:
            brackets.append((part["open"] != "[", length))
        elif part["close"] is not None:
            del brackets[-1:]
        elif part["angled"] is None and part["bare"] is None:  # an escape, or code
            written = part[0].removeprefix("\\").strip("`")
        elif brackets:
            picture, start = brackets.pop()
            address = part["angled"] if part["angled"] is not None else part["bare"]
            found += [(one, start, length) for one in _of_address(address, "", embed=picture)]
        plain.append(written)
        length += len(written)
    if not found:
        return
    text = "".join((*plain, content[done:]))
    ends = [0, *(end.end() for end in _ENDS.finditer(text)), len(text)]
    for link, start, end in found:
        words = link.words or text[start : min(end, start + SENTENCE)].strip()
        around = _sentence(text, start, ends)
        yield Link(link.target, link.kind, link.place, words, link.embed, around)


def sentence(text: str, place: int) -> str:
    """The sentence of a text that a place is in, without marks, cut to a length that one reads at a
    glance."""
    return _sentence(text, place, [0, *(end.end() for end in _ENDS.finditer(text)), len(text)])


def _sentence(text: str, place: int, ends: Sequence[int]) -> str:
    """The sentence of a text that a place is in, cut to a length that one reads at a glance."""
    number = bisect_right(ends, place, hi=len(ends) - 1)
    start, end = ends[max(0, number - 1)], ends[number]
    first, last = start, end
    if end - start > SENTENCE:
        first, last = max(start, place - SENTENCE // 2), min(end, place + SENTENCE // 2)
    words = " ".join(_EMPHASIS.sub("", text[first:last]).split())
    return ("… " if first > start else "") + words + (" …" if last < end else "")


def section(text: str, place: str) -> str:
    """The part of a text that a link's place names: from a heading to the next one as high, or the
    block that ends in ``^name``. The whole text where there is none."""
    if not place:
        return text
    lines = text.splitlines()
    tokens = _blocks().parse(text[:LONGEST_TEXT])
    if place.startswith("^"):
        for token in tokens:
            if token.type == "inline" and token.map and token.content.rstrip().endswith(place):
                return token.content.rstrip().removesuffix(place).rstrip()
        return text
    wanted = heading_name(place.rpartition("#")[2])
    start, level = None, 0
    for token, following in pairwise(tokens):
        if token.type != "heading_open" or not token.map:
            continue
        here = int(token.tag[1])
        if start is not None and here <= level:
            return "\n".join(lines[start : token.map[0]])
        if start is None and heading_name(following.content) == wanted:
            start, level = token.map[0], here
    return "\n".join(lines[start:]) if start is not None else text


def heading_name(heading: str) -> str:
    """A heading as links write it: without marks that a link cannot hold."""
    return " ".join(re.sub(r"[^\w\s]|_", " ", heading).casefold().split())
