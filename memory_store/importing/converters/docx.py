"""Word documents (DOCX): headings, lists, tables, footnotes and comments, by mammoth."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import mammoth

from memory_store.importing.converters import html
from memory_store.importing.converters.document import (
    Document,
    LeftOutError,
    UnreadableError,
    archive,
    authored,
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


def convert(data: bytes) -> list[Document]:
    """The document's text as Markdown."""
    with archive(data, KIND) as opened:
        about = office_properties(opened, KIND)
        if "word/document.xml" not in opened.namelist():
            raise UnreadableError(f"broken, or no {KIND} file")
    found = mammoth.convert_to_html(
        io.BytesIO(data), convert_image=mammoth.images.img_element(_no_picture)
    )
    text = html.markdown(found.value)
    if not text:
        raise LeftOutError("empty")
    return [
        Document(
            text=text,
            title=about.get("title", ""),
            created=moment(about.get("created")),
            metadata=authored(about.get("creator")),
        )
    ]


def _no_picture(image: Any) -> dict[str, str]:
    return {"src": ""}


def rehearse() -> None:
    """Read a small document: mammoth loads parts of itself only then."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as writing:
        for name, content in SMALLEST.items():
            writing.writestr(name, content)
    convert(made.getvalue())
