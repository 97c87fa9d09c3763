"""Web pages, and what other converters give as HTML: as Markdown."""

from __future__ import annotations

import codecs
import re
from typing import Any

from bs4 import BeautifulSoup
from bs4.dammit import EncodingDetector
from markdownify import ATX, MarkdownConverter

from memory_store.importing.converters.document import Document, LeftOutError, tidy

NOT_TEXT = (
    *("script", "style", "noscript", "template", "svg", "math", "canvas", "iframe", "object"),
    *("embed", "audio", "video", "nav", "button", "select", "textarea", "input", "head"),
)
SECTIONS = ("main", "article", "section", "aside", "blockquote")  # whose footer belongs to them
ENCODINGS = (
    *("utf-8", "utf-16", "cp1252", "latin-1", "iso8859-2", "iso8859-15", "cp1250", "cp1251"),
    *("koi8-r", "shift_jis", "cp932", "euc-jp", "iso2022-jp", "gb2312", "gbk", "gb18030"),
    *("big5", "euc-kr", "cp949", "cp1253", "cp1254", "cp1255", "cp1256", "iso8859-9"),
)
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
        raise LeftOutError("empty")
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
    text = _Markdown(heading_style=ATX, bullets="-").convert_soup(page)
    return tidy(WITHIN_A_WORD.sub("_", text))
