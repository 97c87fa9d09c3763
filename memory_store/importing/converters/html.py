"""Web pages, and what other converters give as HTML: as Markdown."""

from __future__ import annotations

import codecs
import re
from typing import Any

from bs4 import BeautifulSoup, Tag
from bs4.dammit import EncodingDetector
from bs4.element import Declaration, ProcessingInstruction
from markdownify import ATX, MarkdownConverter

from memory_store.importing.converters.document import NO_TEXT, Document, LeftOutError, tidy

NOT_TEXT = (
    *("script", "style", "noscript", "template", "svg", "math", "canvas", "iframe", "object"),
    *("embed", "audio", "video", "nav", "button", "select", "textarea", "input", "head"),
)
BLOCKS = (
    *("address", "aside", "details", "fieldset", "figure", "footer", "header", "legend", "main"),
    "summary",
)
SECTIONS = ("main", "article", "section", "aside", "blockquote")  # whose footer belongs to them
ENCODINGS = (
    *("utf-8", "utf-16", "cp1252", "latin-1", "iso8859-2", "iso8859-15", "cp1250", "cp1251"),
    *("koi8-r", "shift_jis", "cp932", "euc-jp", "iso2022-jp", "gb2312", "gbk", "gb18030"),
    *("big5", "euc-kr", "cp949", "cp1253", "cp1254", "cp1255", "cp1256", "iso8859-9"),
)
ROWS, CELLS = ("thead", "tbody", "tfoot", "tr"), ("td", "th")
WITHIN = ("body", "div", "table", *CELLS, "li", "dd", *SECTIONS, *BLOCKS)
CLOSES = {
    "p": (WITHIN, ("p",)),
    "li": (("ul", "ol", "menu"), ("li",)),
    **dict.fromkeys(("dt", "dd"), (("dl",), ("dt", "dd"))),
    **dict.fromkeys(CELLS, (("table",), CELLS)),
    "tr": (("table",), (*CELLS, "tr")),
    **dict.fromkeys(("thead", "tbody", "tfoot"), (("table",), (*CELLS, *ROWS))),
}
"""What ends with the beginning of a tag, where its own end may be left out, and what that is within
(https://html.spec.whatwg.org/multipage/syntax.html#optional-tags)."""
MOST_SPANNED = 1_000  # rows or columns of a cell
WITHIN_A_WORD = re.compile(r"(?<=[^\W_])\\_(?=[^\W_])")  # where an underscore is no mark
LINKS = ("http://", "https://", "mailto:")


class _Markdown(MarkdownConverter):
    """Markdown without pictures, and without links that lead nowhere from here."""

    def convert_img(self, el: Any, text: str, parent_tags: Any) -> str:
        return str(el.get("alt") or "")

    def convert_a(self, el: Any, text: str, parent_tags: Any) -> str:
        leads = str(el.get("href") or "").startswith(LINKS)
        return f"[{text}]({el['href']})" if leads and text.strip() else text


def convert(data: bytes) -> list[Document]:
    """The page's text, by its own title, without the footer of the whole page."""
    page = _parsed(data)
    for footer in page("footer"):
        if footer.find_parent(SECTIONS) is None:
            footer.decompose()
    title = page.title.get_text(" ", strip=True) if page.title else ""
    language = page.html.get("lang") if page.html else None
    text = _text(page)
    if not text:
        raise LeftOutError(NO_TEXT)
    author = page.find("meta", attrs={"name": "author"})
    by = {"author": str(author.get("content"))} if author and author.get("content") else {}
    lang = {"lang": str(language)} if language else {}
    return [Document(text=text, title=title, metadata={**by, **lang})]


def markdown(html: str | bytes) -> str:
    """HTML as Markdown."""
    return _text(_parsed(html))


def _parsed(html: str | bytes) -> BeautifulSoup:
    """The page. Bytes are in the encoding of their mark, or that they declare, or UTF-8, or else
    Windows'. None is guessed: of a few letters that gives others, and needs files of its own."""
    if isinstance(html, str):
        return BeautifulSoup(html, "html.parser")
    text, marked = EncodingDetector.strip_byte_order_mark(html)
    declared = EncodingDetector.find_declared_encoding(text, is_html=True)
    if declared and declared.startswith("utf-16"):  # in letters that are not
        declared = None
    for encoding in filter(None, (marked, declared, "utf-8", "cp1252")):
        try:
            return BeautifulSoup(text.decode(encoding), "html.parser")
        except (LookupError, ValueError, OSError):  # unknown, wrong, or not loaded in here
            continue
    return BeautifulSoup(text.decode("latin-1"), "html.parser")


def rehearse() -> None:
    """Load the encodings that pages are often in: later no file can be opened."""
    for encoding in ENCODINGS:
        codecs.lookup(encoding)


def _text(page: BeautifulSoup) -> str:
    for one in page(NOT_TEXT):
        one.decompose()
    for said in page(string=lambda text: isinstance(text, Declaration | ProcessingInstruction)):
        said.extract()  # such as <?xml … ?>, with which the chapters of books begin
    for one in page([*CLOSES]):
        _end_before(one)
    for block in page(BLOCKS):
        block.name = "div"
    for table in page("table"):
        _prepare(table)
    text = _Markdown(heading_style=ATX, bullets="-").convert_soup(page)
    return tidy(WITHIN_A_WORD.sub("_", text))


def _end_before(one: Any) -> None:
    """Take a tag that stands last out of those that its beginning ends: the parser leaves it in."""
    within, closed = CLOSES[one.name]
    ended, last = None, one
    for above in one.parents:
        behind = last.next_sibling
        while behind is not None and behind.name is None and not behind.strip():
            behind = behind.next_sibling
        if above.name in within or behind is not None:
            break
        if above.name in closed:
            ended = above
        last = above
    if ended is not None:
        ended.insert_after(one.extract())


def _prepare(table: Any) -> None:
    """Make of a table that only lays out others blocks of text, and of another one a grid: below a
    cell that spans rows there are empty ones."""
    own = [one for one in table([*ROWS, *CELLS]) if one.find_parent("table") is table]
    cells = [one for one in own if one.name in CELLS]
    if table.find("table") or len(cells) == 1:
        for one in (table, *own):
            one.name = "div"
        return
    for cell in cells:
        for said in cell(string=lambda text: "|" in text):
            said.replace_with(said.replace("|", "\\|"))
    if not any(one.has_attr("rowspan") for one in cells):
        return
    spanned: dict[int, int] = {}  # column → rows below that its cell takes
    for row in own:
        if row.name != "tr":
            continue
        column = 0
        for cell in [*row(CELLS, recursive=False), None]:
            while spanned.get(column):
                spanned[column] -= 1
                column += 1
                empty = Tag(name="td")
                row.append(empty) if cell is None else cell.insert_before(empty)
            if cell is not None:
                for _ in range(_span(cell, "colspan")):
                    spanned[column] = _span(cell, "rowspan") - 1
                    column += 1


def _span(cell: Any, name: str) -> int:
    said = cell.get(name, "")[:4]
    return max(1, min(MOST_SPANNED, int(said))) if said.isdecimal() else 1
