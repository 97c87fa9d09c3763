"""Markdown as safe HTML, for reading one memory.

Boundary: memories hold text from anywhere (imports, assistants, web pages). ``markdown-it-py``
parses it with raw HTML off, and ``nh3`` lets out only the tags, attributes and addresses listed
here: either alone keeps scripts out. Raw HTML shows as the text it is; a picture becomes a link,
so none is loaded; links leave without a referrer and only for http, https and mailto.

Read as GitHub and Obsidian do: CommonMark with tables, task lists, footnotes, callouts and bare
addresses. Wiki links and relative links lead to the memories that they mean, where ``notes`` are
given; a link to one that is not there looks like one. An embedded note shows as a box, one deep.
Without ``notes`` they stay the text they are. A text of a file ``.rst`` or ``.org``, and one of a
``.txt`` that has marks of reStructuredText, is turned into Markdown first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import chain, pairwise
from typing import Any

import nh3
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markupsafe import Markup
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.gfm_autolink import gfm_autolink_plugin
from msgspec import Struct

from memory_store.host import (
    ATTRIBUTE_LIST,
    BLOCK_NAME,
    WIKI_LINK,
    Link,
    heading_name,
    heading_words,
    markdown_link,
    plain_text,
    section,
    whole_characters,
    wiki_link,
)

from ..marks import Spans, marked

SCHEMES = {"http", "https", "mailto"}
ADDRESS = re.compile(r"(?:https?://|mailto:)[^\s]", re.IGNORECASE)
FOOTNOTE = "note"  # in the ids of footnotes, which are on a page with other ids
MEMORY = re.compile(
    r"(?:/[\w~.%-]+)+/-/hybrid/memories/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
)
PLACE_ID = re.compile(r"#?(?:fn(?:ref)?-note-[\d:]+|heading-\d+)")
CALLOUT = re.compile(r"\[!(\w[\w-]{0,30})\]([+-]?)[ \t]*([^\n]*)(?:\n|$)")
"""The first line of a callout: https://help.obsidian.md/callouts"""
CALLOUTS = {
    "info": {"note", "info", "abstract", "summary", "tldr", "todo", "example", "quote", "cite"},
    "good": {"tip", "hint", "success", "check", "done", "important"},
    "care": {"warning", "caution", "attention", "question", "help", "faq"},
    "bad": {"danger", "error", "bug", "failure", "fail", "missing"},
}
"""The four looks of a callout, and the types that have them."""
HIGHLIGHT = re.compile(
    r"(?<![\w=])==(?=[^\s=])((?:[^=`\n]|`[^`\n]{1,80}`){1,400})(?<=\S)==(?![\w=])"
)
"""``==words==``, as Obsidian reads them; within a word they are a comparison."""
COMMENT = re.compile(r"(?<!%)%%(?!%)\s*([^%]{1,2000}?)\s*%%(?!%)")
"""``%%words%%``, which Obsidian shows to the writer alone. You may have searched for them."""
QUOTE_BEGINS = ["blockquote_open", "paragraph_open"]
BLOCK_LIMIT = 20_000  # characters of one paragraph, heading or cell; a longer one shows as text
TRIED = 10_000_000
"""What is tried as a link, over all blocks: pairs of brackets in one block, and tens of characters
before each colon of a line. A second or two of work. Blocks after that show as text."""
RENDERED_LIMIT = 400_000  # characters; beyond it a memory shows as plain text
EXPANDED = 4_000_000
"""Characters that the addresses and titles of ``[name]: address "title"`` may be in all the places
that could name them: one that is longer than its share is none. Many short names of one very long
address would be gigabytes."""

TAGS = {"p", "br", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "span", "pre", "code", "hr"}
TAGS |= {"blockquote", "div", "section", "table", "thead", "tbody", "tr", "th", "td"}
TAGS |= {"a", "strong", "em", "s", "sup", "details", "summary", "mark"}
ATTRIBUTES = {
    "a": {"href", "id"},
    "div": {"tabindex"},
    "li": {"id"},
    **{f"h{level}": {"id"} for level in range(2, 7)},
    "ol": {"start"},
    "details": {"open"},
    "span": {"role", "aria-label"},
}
EMBEDDED_LIMIT = 20_000  # characters; of a longer note a link is shown
CLASSES = {
    "li": {"task", "footnote-item"},
    "p": {"title"},
    "summary": {"title"},
    "details": {"callout", *CALLOUTS},
    "div": {"wide", "callout", "embed", *CALLOUTS},
    "span": {"missing", "highlight", "comment"},
    "th": {"center", "right"},
    "td": {"center", "right"},
    "section": {"footnotes"},
}
REL = "noreferrer noopener nofollow ugc"


class Notes(Struct, frozen=True):
    """What the links of a text mean: (kind, target) → id, and id → title and text of what it may
    embed, with the notes of that. ``address`` is that of a memory's page, by its id."""

    address: Callable[[str], str]
    targets: Mapping[tuple[str, str], str]
    embedded: Mapping[str, tuple[str, str, Notes]] = {}

    def found(self, link: Link) -> str | None:
        """The address that a link leads to; ``None``: it is not there."""
        target = self.targets.get((link.kind, link.target))
        return self.address(target) if target is not None else None


class Spent(Struct):
    """What a page has cost so far, its boxes included: tried links, and embedded characters."""

    tried: int = 0
    embedded: int = 0


def readable(
    text: str,
    *,
    title: str = "",
    notes: Notes | None = None,
    ref: str = "",
    spans: Spans = lambda _: (),
) -> Markup:
    """``text`` as HTML. A first heading that repeats ``title`` is left out.

    The end of ``ref``, a file's name, says which markup it is. ``spans`` finds what to mark.
    """
    markdown = _as_markdown(text, ref.lower()) if len(text) <= RENDERED_LIMIT else text
    if len(markdown) > RENDERED_LIMIT:
        return Markup('<pre tabindex="0">{}</pre>').format(marked(text, spans(text)))
    html = _parser().render(markdown, {**_environment(title, notes, Spent()), "spans": spans})
    return Markup(_cleaner().clean(whole_characters(html)).strip())


def _as_markdown(text: str, ref: str) -> str:
    if ref.endswith((".rst", ".txt")):
        from . import rst

        return rst.as_markdown(text) if ref.endswith(".rst") or rst.looks_like(text) else text
    if ref.endswith(".org"):
        from .org import as_markdown

        return as_markdown(text)
    return text


def _environment(title: str, notes: Notes | None, spent: Spent) -> dict[str, Any]:
    named = {"title": title.strip().casefold(), "notes": notes}
    return {"docId": FOOTNOTE, **named, "spent": spent}


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "tasklists": True, "xhtmlOut": False})
    parser.enable(["table", "strikethrough"])
    parser.use(gfm_autolink_plugin).use(footnote_plugin)
    parser.validateLink = _is_link  # type: ignore[method-assign]
    parser.inline.ruler.before("link", "wiki_link", _read_wiki_link)
    parser.inline.ruler.before("link", "highlight", _read_highlight)
    parser.inline.ruler.before("link", "comment", _read_comment)
    parser.core.ruler.after("block", "anchors", _leave_out_anchors)
    parser.core.ruler.after("anchors", "title", _leave_out_title)
    parser.core.ruler.after("title", "callouts", _mark_callouts)
    parser.core.ruler.after("callouts", "block_names", _leave_out_block_names)
    parser.core.ruler.after("block_names", "limits", _keep_limits)
    parser.core.ruler.push("layout", _lay_out)
    parser.core.ruler.push("headings", _link_headings)
    parser.core.ruler.push("notes", _link_notes)
    for name, rule in {
        "image": _picture,
        "text": _text,
        "code_inline": _code,
        "code_block": _code,
        "fence": _code,
        "softbreak": _line_break,
        "list_item_open": _item,
        "wiki_link": _wiki_link,
        "highlight_open": lambda *_: '<span class="highlight">',
        "highlight_close": lambda *_: "</span>",
        "comment": lambda _, tokens, index, __, env: _comment(tokens[index].content, env),
        "footnote_block_open": lambda *_: '<section class="footnotes"><ol>',
        "footnote_block_close": lambda *_: "</ol></section>",
    }.items():
        parser.add_render_rule(name, rule)
    return parser


@cache
def _cleaner() -> nh3.Cleaner:
    return nh3.Cleaner(
        tags=TAGS,
        attributes=ATTRIBUTES,
        allowed_classes=CLASSES,
        set_tag_attribute_values={"pre": {"tabindex": "0"}},  # what scrolls, scrolls by keys
        attribute_filter=_attribute,
        url_schemes=SCHEMES,
        link_rel=REL,
    )


def _marked(words: str, env: Any) -> Markup:
    return marked(words, env["spans"](words))


def _text(_: Any, tokens: Sequence[Token], index: int, __: Any, env: Any) -> str:
    return _marked(tokens[index].content, env)


def _code(_: Any, tokens: Sequence[Token], index: int, __: Any, env: Any) -> str:
    token = tokens[index]
    code = Markup("<code>{}</code>").format(_marked(token.content, env))
    return code if token.type == "code_inline" else Markup("<pre>{}</pre>\n").format(code)


def _attribute(tag: str, name: str, value: str) -> str | None:
    """An attribute's value, or ``None`` to drop it. nh3 has checked the scheme of an address."""
    if name == "href" and MEMORY.fullmatch(value):
        return value
    if name == "id" or (name == "href" and not ADDRESS.match(value)):
        return value if PLACE_ID.fullmatch(value) else None
    if name == "tabindex":
        return "0"
    return value


def _is_link(url: str) -> bool:
    """Whether an address makes a link: one of the web, or of a note, which is looked up."""
    return bool(ADDRESS.match(url)) or markdown_link(url) is not None


def _read_wiki_link(state: StateInline, silent: bool) -> bool:
    """``[[Note]]`` and ``![[Note]]``, where notes are given; in a link's words it is text."""
    if state.env.get("notes") is None or state.src[state.pos] not in "![":
        return False
    found = WIKI_LINK.match(state.src, state.pos)
    link = (wiki_link(found[1], embed=found[0][0] == "!") or _here(found[1])) if found else None
    if found is None or link is None or found.end() > state.posMax:
        return False
    if not silent:
        if state.linkLevel:
            state.push("text", "", 0).content = _words(link)
        else:
            state.push("wiki_link", "", 0).meta = {"link": link}
    state.pos = found.end()
    return True


def _read_highlight(state: StateInline, silent: bool) -> bool:
    """``==words==``, and what is marked within."""
    found = HIGHLIGHT.match(state.src, state.pos)
    if found is None or found.end() > state.posMax:
        return False
    if not silent:
        after = state.posMax
        state.push("highlight_open", "span", 1)
        state.pos, state.posMax = found.span(1)
        state.md.inline.tokenize(state)
        state.posMax = after
        state.push("highlight_close", "span", -1)
    state.pos = found.end()
    return True


def _read_comment(state: StateInline, silent: bool) -> bool:
    """``%%words%%``, and no marks within."""
    found = COMMENT.match(state.src, state.pos)
    if found is None or found.end() > state.posMax:
        return False
    if not silent:
        state.push("comment", "", 0).content = found[1]
    state.pos = found.end()
    return True


def _comment(words: str, env: Any) -> str:
    return Markup('<span class="comment">{}</span>').format(_marked(words, env))


def _here(inner: str) -> Link | None:
    """The link to a heading of the same text, if that has words; it has no target."""
    place, _, words = inner.partition("|")
    if not place.startswith("#") or not heading_name(place.rpartition("#")[2]):
        return None
    return Link("", place=place[1:].strip(), words=words.strip())


def _words(link: Link) -> str:
    """What a wiki link shows; behind a picture's name stands its width."""
    if link.words and not link.words.replace("x", "").isdigit():
        return link.words
    return " › ".join(part for part in (link.target, link.place.lstrip("^#")) if part)


def _wiki_link(_: Any, tokens: Sequence[Token], index: int, __: Any, env: Any) -> str:
    link: Link = tokens[index].meta["link"]
    if link.target:
        return _linked(env["notes"].found(link), _marked(_words(link), env))
    place, words = tokens[index].meta.get("place"), _marked(_words(link), env)
    return _linked(f"#{place}", words) if place else words


def _linked(address: str | None, words: str) -> Markup:
    if address is None:
        return Markup('<span class="missing">{}</span>').format(words)
    return Markup('<a href="{}">{}</a>').format(address, words)


def _link_notes(state: StateCore) -> None:
    """Relative links lead to memories; a note that is embedded on its own shows as a box."""
    notes: Notes | None = state.env.get("notes")
    for token in state.tokens:
        if token.type == "inline":
            _link_relative(token.children or [], notes)
    if notes is None or not notes.embedded:
        return
    shown: list[Token] = []
    for token in state.tokens:
        shown.append(token)
        ends = token.type == "paragraph_close"
        box = _box_of(state.md, shown[-2], notes, state.env["spent"]) if ends else None
        if box is not None and shown[-3].type == "paragraph_open":
            shown[-3:] = box
    state.tokens = shown


def _link_headings(state: StateCore) -> None:
    """``[[#Heading]]`` leads to that heading, which gets an id; in a box to none, for another box
    may have the same."""
    if state.env.get("box"):
        return
    inside = (token.children or () for token in state.tokens if token.type == "inline")
    here = [
        one for one in chain(*inside) if one.type == "wiki_link" and not one.meta["link"].target
    ]
    named = {heading_name(one.meta["link"].place.rpartition("#")[2]) for one in here}
    places: dict[str, str] = {}
    for token, words in pairwise(state.tokens if here else ()):
        name = heading_name(words.content) if token.type == "heading_open" else ""
        if name in named and name not in places:
            places[name] = token.attrs["id"] = f"heading-{len(places) + 1}"
    for one in here:
        one.meta["place"] = places.get(heading_name(one.meta["link"].place.rpartition("#")[2]))


def _link_relative(children: Sequence[Token], notes: Notes | None) -> None:
    ends: list[Token] = []
    for token in children:
        if token.type == "link_open":
            _lead(token, notes)
            ends.append(token)
        elif token.type == "link_close" and ends:
            token.tag = ends.pop().tag


def _lead(token: Token, notes: Notes | None) -> None:
    """Give a relative link the address of its memory, or make it look like one to nothing."""
    address = str(token.attrs.get("href", ""))
    link = None if ADDRESS.match(address) else markdown_link(address)
    if link is None:
        return
    found = notes.found(link) if notes is not None else None
    if found is None:
        token.tag, token.attrs = "span", {"class": "missing"}
    else:
        token.attrs = {"href": found}


def _box_of(parser: MarkdownIt, inline: Token, notes: Notes, spent: Spent) -> list[Token] | None:
    """The box of a paragraph that is one embed; ``None`` for any other, and when all boxes of the
    page would be longer than what is rendered of a memory."""
    links = [one for one in inline.children or () if one.type != "text" or one.content.strip()]
    if len(links) != 1 or links[0].type != "wiki_link" or not links[0].meta["link"].embed:
        return None
    link: Link = links[0].meta["link"]
    target = notes.targets.get((link.kind, link.target))
    if target is None or target not in notes.embedded:
        return None
    title, text, inside = notes.embedded[target]
    part = section(text, link.place)
    if len(part) > EMBEDDED_LIMIT or spent.embedded + len(part) > RENDERED_LIMIT:
        return None
    spent.embedded += len(part)
    heading = Token("inline", "", 0, children=[links[0]], content=link.target)
    within = {**_environment(title, inside, spent), "box": True}
    return [
        Token("embed", "div", 1, attrs={"class": "embed"}, block=True),
        Token("paragraph_open", "p", 1, attrs={"class": "title"}, block=True),
        heading,
        Token("paragraph_close", "p", -1, block=True),
        *_without_footnotes(parser.parse(part, within)),
        Token("embed", "div", -1, block=True),
    ]


def _without_footnotes(tokens: Sequence[Token]) -> list[Token]:
    """A box has none: they would have the numbers of those of the page."""
    kept: list[Token] = []
    for token in tokens:
        if token.type == "footnote_block_open":
            break  # they come last
        token.children = [one for one in token.children or () if one.type != "footnote_ref"]
        kept.append(token)
    return kept


def _leave_out_anchors(state: StateCore) -> None:
    """A heading's ``{ #anchor .class }`` at its end is for programs."""
    for token, words in pairwise(state.tokens):
        begins = words.content.rfind("{") if token.type == "heading_open" else 0
        if begins > 0 and ATTRIBUTE_LIST.fullmatch(words.content[begins:]):
            words.content = words.content[:begins].rstrip()


def _leave_out_block_names(state: StateCore) -> None:
    """A ``^name`` at the end of a block is for links; a paragraph of it alone is none."""
    shown: list[Token] = []
    for token in state.tokens:
        shown.append(token)
        if token.type == "inline":
            last = token.content.rfind("\n") + 1
            if named := BLOCK_NAME.search(token.content, last):
                token.content = token.content[: named.start()].rstrip()
        elif token.type == "paragraph_close" and not shown[-2].content:
            del shown[-3:]
    state.tokens = shown


def _leave_out_title(state: StateCore) -> None:
    heading = [token.type for token in state.tokens[:1]] == ["heading_open"]
    said = state.tokens[1].content.strip() if heading else ""
    if heading and state.env["title"] in (said.casefold(), heading_words(said).casefold()):
        del state.tokens[:3]


def _mark_callouts(state: StateCore) -> None:
    """``> [!note] Title`` at the beginning of a quote: a box with a title. With ``-`` or ``+``
    after the bracket it folds, and is closed or open at first."""
    marked: list[Token] = []
    boxes: list[str] = []  # of the quotes around a token: the element of a callout, or none
    ends_itself = False  # the next paragraph is a title alone, whose end stands already
    for token in state.tokens:
        marked.append(token)
        if token.type == "blockquote_open":
            boxes.append("")
        elif token.type == "blockquote_close":
            token.tag = boxes.pop() or token.tag
        elif token.type == "inline" and [one.type for one in marked[-3:-1]] == QUOTE_BEGINS:
            found = CALLOUT.match(token.content)
            if found:
                quote, paragraph, _ = marked[-3:]
                kind, fold = found[1].lower(), found[2]
                look = next((look for look, kinds in CALLOUTS.items() if kind in kinds), "info")
                boxes[-1] = quote.tag = "details" if fold else "div"
                quote.attrs = {"class": f"callout {look}"}
                if fold == "+":
                    quote.attrs["open"] = ""
                paragraph.tag, paragraph.attrs = "summary" if fold else "p", {"class": "title"}
                rest = token.content[found.end() :]
                token.content = found[3].strip() or found[1].capitalize()
                marked.append(Token("paragraph_close", paragraph.tag, -1, block=True))
                if rest:
                    marked += [
                        Token("paragraph_open", "p", 1, block=True),
                        Token("inline", "", 0, content=rest, children=[], block=True),
                    ]
                ends_itself = not rest
        elif token.type == "paragraph_close" and ends_itself:
            marked.pop()
            ends_itself = False
    state.tokens = marked


def _keep_limits(state: StateCore) -> None:
    """What was not written by hand, and takes long to parse, shows as text."""
    spent: Spent = state.env["spent"]
    for token in state.tokens:
        if token.type == "inline":
            spent.tried += token.content.count("[") ** 2
            spent.tried += sum(one.count(":") * len(one) for one in token.content.split("\n")) // 10
            if spent.tried > TRIED or len(token.content) > BLOCK_LIMIT:
                token.type = "text"
    named = state.env.get("references", {})
    share = EXPANDED // (1 + state.src.count("["))
    for name in [name for name, one in named.items() if len(one["href"] + one["title"]) > share]:
        del named[name]


def _lay_out(state: StateCore) -> None:
    """Headings below the page's own, none of which leaves a level out, for who hears them; tables
    that scroll, classes instead of styles."""
    above: list[str] = []
    for token in state.tokens:
        if token.type == "heading_open":
            above = [*(tag for tag in above if tag < token.tag), token.tag]
        if token.type in ("heading_open", "heading_close"):
            token.tag = f"h{min(len(above) + 1, 6)}"
        elif token.type in ("th_open", "td_open"):
            aligned = str(token.attrs.pop("style", "")).removeprefix("text-align:")
            token.attrs = {"class": aligned} if aligned else {}
        elif token.type in ("bullet_list_open", "fence"):
            token.attrs, token.info = {}, ""
    state.tokens = [
        part
        for token in state.tokens
        for part in {
            "table_open": (_box("div", 1), token),
            "table_close": (token, _box("div", -1)),
        }.get(token.type, (token,))
    ]


def _box(tag: str, nesting: Any) -> Token:
    return Token(
        "wide", tag, nesting, attrs={"class": "wide", "tabindex": "0"} if nesting > 0 else {}
    )


def _picture(_: Any, tokens: Sequence[Token], index: int, __: Any, env: Any) -> str:
    """A link to it: nothing is loaded for who only reads."""
    picture = tokens[index]
    link = (
        None
        if ADDRESS.match(str(picture.attrs["src"]))
        else markdown_link(str(picture.attrs["src"]))
    )
    if link is not None:
        notes: Notes | None = env.get("notes")
        words = _marked(picture.content or link.target, env)
        return _linked(notes.found(link) if notes else None, words)
    address = str(picture.attrs["src"])
    return _linked(address, _marked(picture.content or address, env))


def _line_break(_: Any, tokens: Sequence[Token], index: int, *__: Any) -> str:
    """A long line was cut by an editor, not by its author; short lines (verse) stay."""
    length = 0
    while index and tokens[index - 1].type not in ("softbreak", "hardbreak"):
        index -= 1
        length += len(tokens[index].content)
    return "\n" if length >= plain_text.WRAPPED else "<br>\n"


def _item(_: Any, tokens: Sequence[Token], index: int, *__: Any) -> str:
    """An item of a list, with its box where it is a task."""
    if "checked" not in tokens[index].meta:
        return "<li>"
    sign, label = ("☑", "done") if tokens[index].meta["checked"] else ("☐", "open")
    return f'<li class="task"><span role="img" aria-label="{label}">{sign}</span> '
