"""What was done with Gemini, as Takeout exports it as a page: one document an exchange.

Of the page only its cells are the same in every language. In one stand what you asked, behind a
word and a blank that does not break; a line with the time; and the answer.
"""

from __future__ import annotations

import re
from typing import Any

from bs4 import BeautifulSoup

from memory_store.importing.converters import html
from memory_store.importing.converters.document import Document

PRODUCTS = ("gemini", "bard")
CANVAS = "Created Gemini Canvas"
WHEN = re.compile(r"(?=.*\b\d{4}(?!\d|:))(?=.*\d{1,2}[:.]\d\d[:.]\d\d(?!\d)).{12,60}", re.S)
CHAT = re.compile(r"gemini\.google\.com/app/(\w+)")
LABEL = re.compile(r"([^\n\xa0]{1,60})\xa0\s*")
COUNTED = re.compile(r"[^\n]*\d[^\n]*")  # "Attached 2 files.", above their names


def convert(data: bytes) -> list[Document]:
    """The exchanges, the oldest first: the page begins with the newest. None: another product's."""
    page = BeautifulSoup(data.decode("utf-8", "replace"), "html.parser")
    cells = page.find_all("div", class_="outer-cell")
    found = [one for cell in cells if (one := _exchange(cell)) is not None]
    return found[::-1]


def _exchange(cell: Any) -> Document | None:
    header = cell.find("div", class_="header-cell")
    body = cell.find("div", class_="content-cell")
    product = header.get_text(" ", strip=True).lower() if header else ""
    if body is None or not any(name in product for name in PRODUCTS):
        return None
    lines: list[str] = [""]
    files: list[str] = []
    when = answer = ""
    for part in list(body.children):
        name = getattr(part, "name", None)
        if name == "br":
            lines.append("")
        elif name is None and lines[1:] and WHEN.fullmatch(said := str(part).strip()):
            when = " ".join(said.split())
            answer = html.markdown("".join(str(one) for one in part.next_siblings))
            break
        elif name == "a" and "://" not in str(part.get("href")) and lines[-1].strip() == "-":
            if not files and len(lines) > 2 and COUNTED.fullmatch(lines[-2].strip()):
                del lines[-2]
            files.append(part.get_text(strip=True))
            lines[-1] = ""
        else:
            lines[-1] += part if name is None else part.get_text()
    asked = "\n".join(lines).strip()
    label = LABEL.match(asked)
    if asked.startswith(CANVAS):  # what was made stands in lines of its own
        asked, _, made = asked.partition("\n")
        answer = f"{made}\n\n{answer}".strip()
    elif label:
        asked = asked[label.end() :]
    chat = CHAT.search(cell.find_all("div", class_="content-cell")[-1].get_text(" "))
    return Document(
        answer,
        asked.replace("\xa0", " ").strip() if label or answer else "",
        metadata={
            "when": when,
            "chat": chat[1] if chat else "",
            "attachments": "\n".join(files),
        },
    )
