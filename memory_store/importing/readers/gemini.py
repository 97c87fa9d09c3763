"""Gemini, as Takeout exports what you did there (*My Activity*).

As JSON: one memory an exchange. The question is in the title, behind a word that says what you
did, and the answer is HTML. Which exchanges were one conversation it does not say. As a page: one
memory a conversation where the page says which it was, and else an exchange.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from msgspec.structs import replace

from memory_store.dates import format_time
from memory_store.importing.converters.document import Document
from memory_store.importing.converters.kinds import kind_named
from memory_store.importing.notes import shorten
from memory_store.importing.readers import documents
from memory_store.importing.readers.conversations import Turn, talk
from memory_store.importing.readers.documents import converted, page_text, require
from memory_store.importing.readers.export_fields import kept, moment, objects
from memory_store.importing.source_file import LIMITS, Item, Limits, Reader, Skip, SourceFile
from memory_store.records import MemoryDraft

GEMINI = "Gemini"
PRODUCTS = {"gemini apps", "gemini", "bard"}
PROMPTED = re.compile(r"(?:Prompted|Said)\s+")
CANVAS = "Created Gemini Canvas"
NOTHING_SAID = "Gemini was used, and nothing asked"
ACTIVITY = (b"material-design-lite", b"<title>my activity history", b'class="outer-cell')
"""What stands in the first bytes of an activity as a page, in lower case."""
ZONES = {
    name: hours
    for names, hours in (
        *(("PDT MST", -7), ("PST", -8), ("MDT", -6), ("EST CDT", -5), ("EDT", -4), ("BRT", -3)),
        *(("WEST BST CET MEZ", 1), ("CEST MESZ EET", 2), ("EEST MSK", 3), ("IST", 5.5)),
        *(("SGT HKT", 8), ("JST KST", 9), ("AEST", 10), ("AEDT", 11)),
    )
    for name in names.split()
}
"""Hours before or behind UTC, of the names that mean one zone to most."""
_MONTHS = (
    *("jan jän ene gen", "feb fév fev", "mar mär maa mrt", "apr abr avr", "may mai maj mei mag"),
    *("jun jui giu", "jul lug", "aug ago aoû", "sep set", "oct okt out ott", "nov"),
    "dec dez dic déc",
)
_CLOCK = re.compile(
    r"(?<![\d.:])(?P<h>\d{1,2})[:.](?P<m>\d\d)[:.](?P<s>\d\d)(?!\d)\s*(?:(?P<half>[ap])\.?m\.?\b)?\s*"
    r"(?:(?:GMT|UTC)?(?P<sign>[+-])(?P<oh>\d{1,2}):?(?P<om>\d\d)?|(?P<zone>[A-Z]+))?",
    re.I,
)


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
        lines = (one.get("name") for one in objects(values.get("subtitles")))
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


def _answer(parts: Any) -> str:
    pages = (one.get("html") for one in objects(parts))
    html = "\n".join(page for page in pages if isinstance(page, str))
    if not html.strip():
        return ""
    require("what Gemini answered", "html")
    return page_text(html, LIMITS).strip()


def is_activity(head: bytes) -> bool:
    """Whether a page may be what Takeout writes of what was done with a product of Google."""
    small = head.lower()
    return any(mark in small for mark in ACTIVITY)


def read_page(file: SourceFile, limits: Limits) -> Iterator[Item]:
    """The conversations of a page; of another product's page, its text."""
    require(f"{GEMINI}'s activity", "gemini")
    found = converted("gemini", file.data(limits), limits)
    if not found:
        yield from documents.read(file, limits, kind=kind_named("html"))
        return
    chats: dict[str, list[Document]] = {}
    for number, one in enumerate(found, 1):
        if not one.title:
            yield Skip(f"{file.name}: activity {number}", NOTHING_SAID)
            continue
        chats.setdefault(one.metadata["chat"] or one.metadata["when"], []).append(one)
    for ref, exchanges in chats.items():
        yield _of_page(file, ref, exchanges)


def _of_page(file: SourceFile, ref: str, exchanges: list[Document]) -> MemoryDraft:
    turns: list[Turn] = []
    for one in exchanges:
        turns.append(Turn("You", one.title, when(one.metadata["when"])))
        if one.text:
            turns.append(Turn(GEMINI, one.text))
    first = exchanges[0]
    times = [turn.when for turn in turns if turn.when]
    said = shorten(next(iter(first.title.splitlines()), ""))
    made = talk(
        GEMINI,
        turns,
        title=said,
        type=file.type or "conversation",
        created=min(times, default=None),
        updated=max(times, default=None),
        ref=ref,
    )
    names = [name for one in exchanges for name in one.metadata["attachments"].split("\n") if name]
    chat = first.metadata["chat"]
    address = f"https://gemini.google.com/app/{chat}" if chat else ""
    more = kept({"attachments": names, "address": address})
    return replace(made, metadata={**made.metadata, **more})


def when(line: str) -> str | None:
    """A time as Google writes it in English and many other languages, as ISO 8601; ``None`` for
    one in another language. A zone that is not known counts as UTC."""
    clock = _CLOCK.search(line)
    dated = line[: clock.start()] if clock else ""
    numbers = [int(one) for one in re.findall(r"\d+", dated)]
    names = [one.lower()[:3] for one in re.findall(r"[^\W\d_]+", dated)]
    month = next((at for at, some in enumerate(_MONTHS, 1) if set(names) & set(some.split())), 0)
    if re.search(r"\bjuil", dated, re.I):  # its first three letters are those of juin
        month = 7
    if clock is None or len(numbers) != (2 if month else 3):
        return None
    year = next((one for one in numbers if one >= 1_000), 0)
    if not month:  # by numbers alone: the year stands first, or the day with a dot behind it
        month = numbers[1] if numbers[0] == year or "." in dated else 0
    day = numbers[-1] if numbers[0] == year else numbers[0]
    hour = int(clock["h"])
    if half := clock["half"]:
        hour = hour % 12 + (12 if half.lower() == "p" else 0)
    sign = -1 if clock["sign"] == "-" else 1
    offset = timedelta(hours=int(clock["oh"] or 0), minutes=int(clock["om"] or 0)) * sign
    if clock["zone"]:
        offset = timedelta(hours=ZONES.get(clock["zone"].upper(), 0))
    try:
        zone = timezone(offset) if offset else UTC
        at = datetime(year, month, day, hour, int(clock["m"]), int(clock["s"]), tzinfo=zone)
        return format_time(at)
    except (ValueError, OverflowError):
        return None


READER = Reader(
    "gemini",
    (),
    read_page,
    within=("html",),
    of=lambda file: is_activity(file.head()),
    label=GEMINI,
)
