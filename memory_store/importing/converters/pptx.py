"""Presentations (PPTX): a slide is a section, with its tables and the speaker's notes."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from pptx import Presentation

from memory_store.importing.converters.document import (
    NO_TEXT,
    Document,
    LeftOutError,
    archive,
    authored,
    moment,
    table,
    tidy,
)
from memory_store.importing.converters.office import office_properties

KIND = "PPTX"
GROUP = 6  # MSO_SHAPE_TYPE.GROUP
UNTITLED = ("Presentation", "PowerPoint Presentation")  # as programs call what has no title


def convert(data: bytes) -> list[Document]:
    """The text of all slides."""
    with archive(data, KIND) as opened:
        about = office_properties(opened, KIND)
    slides = Presentation(io.BytesIO(data)).slides
    sections = [_section(slide, number) for number, slide in enumerate(slides, 1)]
    text = "\n\n".join(section for section in sections if section)
    if not text:
        raise LeftOutError(NO_TEXT)
    return [
        Document(
            text=text,
            title="" if about.get("title") in UNTITLED else about.get("title", ""),
            created=moment(about.get("created")),
            metadata={"slides": str(len(sections)), **authored(about.get("creator"))},
        )
    ]


def _section(slide: Any, number: int) -> str:
    title = slide.shapes.title
    heading = " ".join(title.text_frame.text.split()) if title is not None else ""
    parts = [one for one in _texts(slide.shapes, title) if one.strip()]
    if slide.has_notes_slide and (said := slide.notes_slide.notes_text_frame):
        parts += [f"Notes: {said.text}"] if said.text.strip() else []
    if not parts and not heading:
        return ""
    body = "\n\n".join(parts)
    return tidy(f"## Slide {number}{': ' if heading else ''}{heading}\n\n{body}")


def _texts(shapes: Any, title: Any) -> Iterator[str]:
    for shape in shapes:
        if title is not None and shape.shape_id == title.shape_id:
            continue
        if shape.shape_type == GROUP:
            yield from _texts(shape.shapes, None)
        elif shape.has_text_frame:
            paragraphs = shape.text_frame.paragraphs
            yield "\n".join("  " * one.level + f"- {one.text}" for one in paragraphs if one.text)
        elif getattr(shape, "has_table", False):
            yield table([cell.text for cell in row.cells] for row in shape.table.rows)
