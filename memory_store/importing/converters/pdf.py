"""PDF, by PDFium: a page is a section, so that a passage says on which page it stands."""

from __future__ import annotations

import re

import pypdfium2

from memory_store.importing.converters.document import (
    NEEDS_A_PASSWORD,
    Document,
    LeftOutError,
    UnreadableError,
    authored,
    moment,
    tidy,
)

MOST_PAGES = 10_000
PASSWORD = 4  # FPDF_ERR_PASSWORD
SPLIT_WORD = re.compile("[\ufffe\u00ad\x02]\\s*")  # how PDFium gives a hyphen at the end of a line
MARKUP = re.compile(r"^(?=#{1,6}[ \t]|```|~~~)", re.MULTILINE)  # that the page does not mean
DATE = re.compile(r"D:(\d{8})(\d{6})(?:Z|([+-])(\d\d)'?(\d\d)?)?")
FROM_A_PROGRAM = re.compile(
    r"^(?:Microsoft \w+ - |untitled)|\.(?:docx?|pdf|tex|dvi|indd|qxd|rtf)$", re.I
)


def convert(data: bytes) -> list[Document]:
    """The text of all pages. A scan has none, and is left out."""
    try:
        opened = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        locked = getattr(error, "err_code", None) == PASSWORD
        said = NEEDS_A_PASSWORD if locked else "broken, or no PDF file"
        raise UnreadableError(said) from None
    if len(opened) > MOST_PAGES:
        raise UnreadableError(f"more than {MOST_PAGES:,} pages")
    pages = [_text(opened, number) for number in range(len(opened))]
    if not any(pages):
        raise LeftOutError("a scan: its pages are pictures without text")
    about = opened.get_metadata_dict()
    sections = [f"## Page {number}\n\n{text}" for number, text in enumerate(pages, 1) if text]
    title = about.get("Title", "").strip()
    return [
        Document(
            text="\n\n".join(sections),
            title="" if FROM_A_PROGRAM.search(title) else title,
            created=_moment(about.get("CreationDate", "")),
            metadata={"pages": str(len(pages)), **authored(about.get("Author"))},
        )
    ]


def _text(opened: pypdfium2.PdfDocument, number: int) -> str:
    try:
        page = opened[number]
        text = page.get_textpage().get_text_bounded()
        page.close()
    except pypdfium2.PdfiumError:  # this page is damaged: the others are not
        return ""
    text = SPLIT_WORD.sub("", text.replace("\r\n", "\n").replace("\x00", ""))
    return tidy(MARKUP.sub(r"\\", text))


def _moment(said: str) -> str | None:
    """A date as PDF writes it (ISO 32000-1, 7.9.4)."""
    found = DATE.match(said)
    if found is None:
        return None
    day, time, sign, hours, minutes = found.groups()
    return moment(f"{day}T{time}{sign or '+'}{hours or '00'}{minutes or '00'}")
