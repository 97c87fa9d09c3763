"""Word documents (DOCX): headings, lists, tables, footnotes and comments, by mammoth."""

from __future__ import annotations

import io
import re
import zipfile
from typing import Any

import mammoth

from memory_store.importing.converters import html
from memory_store.importing.converters.document import (
    NO_TEXT,
    Document,
    LeftOutError,
    UnreadableError,
    archive,
    authored,
    entry,
    moment,
)
from memory_store.importing.converters.office import office_properties

KIND = "DOCX"
WORDS = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
SMALLEST = {
    "[Content_Types].xml": "<Types xmlns='http://schemas.openxmlformats.org/package/2006/content-types'/>",
    "word/document.xml": f"<w:document xmlns:w='{WORDS}'><w:body><w:p><w:r><w:t>a</w:t></w:r></w:p>"
    "</w:body></w:document>",
}

LEFT_OUT = re.compile(rb"(?P<start></?)(?:w:fldSimple|m:(?P<name>\w+))\b")


def convert(data: bytes) -> list[Document]:
    """The document's text as Markdown."""
    with archive(data, KIND) as opened:
        about = office_properties(opened, KIND)
        if not any(name.startswith("word/document") for name in opened.namelist()):
            raise UnreadableError(f"broken, or no {KIND} file")
        readable = _with_fields(opened)
    found = mammoth.convert_to_html(
        readable,
        convert_image=mammoth.images.img_element(_no_picture),
        style_map="p[style-name='Title'] => h1:fresh",
    )
    text = html.markdown(found.value)
    if not text:
        raise LeftOutError(NO_TEXT)
    return [
        Document(
            text=text,
            title=about.get("title", ""),
            created=moment(about.get("created")),
            metadata=authored(about.get("creator")),
        )
    ]


def _with_fields(opened: zipfile.ZipFile) -> io.BytesIO:
    """The document without pictures, its fields and formulas as text: mammoth leaves them out."""

    def as_text(found: re.Match[bytes]) -> bytes:
        name = found["name"] if found["name"] in (b"r", b"t") else b"smartTag"
        return found["start"] + b"w:" + name

    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as writing:
        for name in set(opened.namelist()):
            if name.endswith((".xml", ".rels")):
                writing.writestr(name, LEFT_OUT.sub(as_text, entry(opened, name, KIND)))
    return made


def _no_picture(image: Any) -> dict[str, str]:
    return {"src": ""}


def rehearse() -> None:
    """Read a small document: mammoth loads parts of itself only then."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as writing:
        for name, content in SMALLEST.items():
            writing.writestr(name, content)
    convert(made.getvalue())
