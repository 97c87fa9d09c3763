"""Web pages, and what other converters give as HTML: as Markdown."""

from __future__ import annotations

from typing import Any

from bs4 import BeautifulSoup
from markdownify import ATX, MarkdownConverter

from memory_store.importing.converters.document import Document, LeftOutError, tidy

NOT_TEXT = (
    *("script", "style", "noscript", "template", "svg", "math", "canvas", "iframe", "object"),
    *("embed", "audio", "video", "nav", "button", "select", "textarea", "input", "head"),
)
LINKS = ("http://", "https://", "mailto:")


class _Markdown(MarkdownConverter):
    """Markdown without pictures, and without links that lead nowhere from here."""

    def convert_img(self, el: Any, text: str, parent_tags: Any) -> str:
        return str(el.get("alt") or "")

    def convert_a(self, el: Any, text: str, parent_tags: Any) -> str:
        leads = str(el.get("href") or "").startswith(LINKS)
        return f"[{text}]({el['href']})" if leads and text.strip() else text


def convert(data: bytes) -> list[Document]:
    """The page's text, by its own title."""
    page = BeautifulSoup(data, "html.parser")
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
    return _text(BeautifulSoup(html, "html.parser"))


def _text(page: BeautifulSoup) -> str:
    for one in page(NOT_TEXT):
        one.decompose()
    return tidy(_Markdown(heading_style=ATX, bullets="-").convert_soup(page))
