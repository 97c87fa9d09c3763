"""Documents that tests make: PDF, Word, slides, sheets, books."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence

from zip_files import zipped

WORDS = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def pdf(
    *pages: str, about: str = "/Title (The lease) /CreationDate (D:20240501093000+02'00')"
) -> bytes:
    """A PDF whose pages show one line each; an empty one is a picture of nothing."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<</Type /Catalog /Pages 2 0 R>>",
        f"<</Type /Pages /Kids [{kids}] /Count {len(pages)}>>",
        "<</Type /Font /Subtype /Type1 /BaseFont /Helvetica>>",
    ]
    for number, text in enumerate(pages):
        shown = f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET" if text else ""
        font = "/Resources <</Font <</F1 3 0 R>>>> /MediaBox [0 0 400 200]"
        objects += [
            f"<</Type /Page /Parent 2 0 R {font} /Contents {5 + 2 * number} 0 R>>",
            f"<</Length {len(shown)}>>\nstream\n{shown}\nendstream",
        ]
    objects.append(f"<<{about}>>")
    out, places = "%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += f"{number} 0 obj\n{content}\nendobj\n"
    at = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n"
    out += "".join(f"{place:010} 00000 n \n" for place in places)
    out += f"trailer\n<</Size {len(objects) + 1} /Root 1 0 R /Info {len(objects)} 0 R>>\n"
    return (out + f"startxref\n{at}\n%%EOF\n").encode("latin-1")


def docx(body: str, core: str = "", *, styles: str = "", main: str = "word/document.xml") -> bytes:
    types = "http://schemas.openxmlformats.org/package/2006/content-types"
    related = "http://schemas.openxmlformats.org/package/2006/relationships"
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
    files = {
        "[Content_Types].xml": f"<Types xmlns='{types}'/>",
        "_rels/.rels": f"<Relationships xmlns='{related}'>"
        f"<Relationship Id='r' Type='{kind}' Target='{main}'/></Relationships>",
        main: f"<w:document xmlns:w='{WORDS}'><w:body>{body}</w:body></w:document>",
        "docProps/core.xml": core,
        "word/styles.xml": styles,
    }
    return zipped({name: content for name, content in files.items() if content})


def paragraph(text: str, style: str = "") -> str:
    named = f"<w:pPr><w:pStyle w:val='{style}'/></w:pPr>" if style else ""
    return f"<w:p>{named}<w:r><w:t>{text}</w:t></w:r></w:p>"


def slide(title: str, row: Sequence[str], *, notes: str) -> bytes:
    """A presentation of one slide, with a table of one row."""
    from pptx import Presentation
    from pptx.util import Inches

    shown = Presentation()
    made = shown.slides.add_slide(shown.slide_layouts[5])
    made.shapes.title.text = title
    table = made.shapes.add_table(1, len(row), Inches(1), Inches(1), Inches(4), Inches(1)).table
    for number, text in enumerate(row):
        table.cell(0, number).text = text
    made.notes_slide.notes_text_frame.text = notes
    written = io.BytesIO()
    shown.save(written)
    return written.getvalue()


def sheets(named: Mapping[str, Sequence[Sequence[object]]]) -> bytes:
    """A workbook with these rows by sheet."""
    from xlsxwriter import Workbook

    written = io.BytesIO()
    workbook = Workbook(written, {"in_memory": True})
    for name, rows in named.items():
        sheet = workbook.add_worksheet(name)
        for number, row in enumerate(rows):
            sheet.write_row(number, 0, row)
    workbook.close()
    return written.getvalue()


def book(*, begins: str = "", by: str = "", of: str = "", **bodies: str) -> bytes:
    """A book with a file for each chapter; they are listed in another order than they are read.
    Each ``begins`` so; it is ``by`` Anna, and another one, ``of`` a day or a year."""
    items = "".join(
        f'<item id="{name}" href="{name}.xhtml" media-type="application/xhtml+xml"/>'
        for name in reversed(bodies)
    )
    spine = "".join(f'<itemref idref="{name}"/>' for name in bodies)
    package = f"""<package xmlns="http://www.idpf.org/2007/opf"><metadata
        xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Bees</dc:title>
        <dc:creator>Anna</dc:creator><dc:creator>{by}</dc:creator>
        <dc:date>{of}</dc:date></metadata><manifest>{items}</manifest>
        <spine>{spine}</spine></package>"""
    container = """<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>
        <rootfile full-path="o/p.opf"/></rootfiles></container>"""
    chapters = {f"o/{name}.xhtml": f"{begins}<html>{body}</html>" for name, body in bodies.items()}
    return zipped({"META-INF/container.xml": container, "o/p.opf": package, **chapters})
