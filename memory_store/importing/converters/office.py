"""What is inside archives of XML: office documents and books."""

from __future__ import annotations

import zipfile
from typing import Any

from defusedxml import DefusedXmlException, ElementTree

from memory_store.importing.converters.document import UnreadableError, entry


def elements(data: bytes, kind: str) -> Any:
    """The root of an XML document, without entities and external references."""
    try:
        return ElementTree.fromstring(data)
    except (ElementTree.ParseError, DefusedXmlException, ValueError, LookupError):
        raise UnreadableError(f"broken, or no {kind} file") from None


def office_properties(opened: zipfile.ZipFile, kind: str) -> dict[str, str]:
    """``title``, ``creator`` and ``created`` of an Office document, where it has them."""
    name = "docProps/core.xml"
    if name not in opened.namelist():
        return {}
    found = {}
    for one in elements(entry(opened, name, kind), kind):
        found[str(one.tag).rpartition("}")[2]] = (one.text or "").strip()
    return {key: found[key] for key in ("title", "creator", "created") if found.get(key)}
