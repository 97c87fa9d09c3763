"""Gemini, as Takeout exports what you did there (*My Activity*, as JSON): one memory an exchange.

Takeout has the question in the title, behind a word that says what you did, and the answer as HTML.
Which exchanges were one conversation it does not say.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from memory_store.importing.notes import shorten
from memory_store.importing.readers.conversations import Turn, talk
from memory_store.importing.readers.documents import converted, require
from memory_store.importing.readers.export_fields import kept, moment
from memory_store.importing.source_file import LIMITS
from memory_store.records import MemoryDraft

GEMINI = "Gemini"
PRODUCTS = {"gemini apps", "gemini", "bard"}
PROMPTED = re.compile(r"(?:Prompted|Said)\s+")
CANVAS = "Created Gemini Canvas"
NOTHING_SAID = "Gemini was used, and nothing asked"


def gemini_exchange(values: Mapping[str, Any]) -> MemoryDraft | str | None:
    """The exchange that an exported object is, or why it is left out; ``None`` for another object.
    Raises LeftOutError where the extra that reads HTML is missing."""
    title, when, products = (values.get(name) for name in ("title", "time", "products"))
    named = [values.get("header"), *(products if isinstance(products, list) else ())]
    if not isinstance(title, str) or not isinstance(when, str):
        return None
    if not PRODUCTS.intersection(str(one).lower() for one in named):
        return None
    question = PROMPTED.sub("", title, count=1).strip()
    answer = _answer(values.get("safeHtmlItem"))
    if title.startswith(CANVAS):  # what was made stands in lines of its own
        lines = (one.get("name") for one in _objects(values.get("subtitles")))
        answer = "\n\n".join(filter(None, [answer, *(str(line) for line in lines if line)]))
    if not answer and question == title.strip():
        return NOTHING_SAID
    at = moment(when)
    turns = [Turn("You", question, at), *([Turn(GEMINI, answer)] if answer else [])]
    said = shorten(next(iter(question.splitlines()), ""))
    found = talk(GEMINI, turns, title=said, created=at, ref=when)
    attached = values.get("attachedFiles")
    names = [str(one) for one in attached] if isinstance(attached, list) else []
    return replace(found, metadata={**found.metadata, **kept({"attachments": names})})


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _answer(parts: Any) -> str:
    pages = (one.get("html") for one in _objects(parts))
    html = "\n".join(page for page in pages if isinstance(page, str))
    if not html.strip():
        return ""
    require("what Gemini answered", "html")
    page = codecs.BOM_UTF8 + html.encode("utf-8", "replace")
    return "\n\n".join(one.text for one in converted("html", page, LIMITS)).strip()
