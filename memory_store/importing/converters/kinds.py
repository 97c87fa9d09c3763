"""Which kinds of documents there are, by what they are called, and what reads each."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import cast

from msgspec import Struct

from memory_store.importing.converters.document import Document

PACKAGE = "memory_store.importing.converters"
HTML = ("bs4", "markdownify")


class Kind(Struct, frozen=True):
    """``needs`` are packages of the extra ``documents``; ``module`` is its converter's name."""

    name: str
    suffixes: tuple[str, ...]
    module: str
    needs: tuple[str, ...] = ()

    @property
    def missing(self) -> bool:
        """Whether a package is not installed that this kind needs."""
        return not all(find_spec(one) for one in self.needs)


KINDS = (
    Kind("pdf", (".pdf",), "pdf", ("pypdfium2",)),
    Kind("docx", (".docx",), "docx", ("mammoth", "defusedxml", *HTML)),
    Kind("pptx", (".pptx",), "pptx", ("pptx", "defusedxml")),
    Kind("sheets", (".xlsx", ".xlsm", ".xls", ".ods"), "sheets", ("python_calamine",)),
    Kind("html", (".html", ".htm", ".xhtml"), "html", HTML),
    Kind("epub", (".epub",), "epub", ("defusedxml", *HTML)),
    Kind("ipynb", (".ipynb",), "notebook"),
    Kind("eml", (".eml",), "mail", HTML),
    Kind("bookmarks", (), "bookmarks"),
    Kind("gemini", (), "gemini", HTML),
    Kind("anki", (), "anki", HTML),
)


def kind_of(suffix: str) -> Kind | None:
    """The kind of documents that are called so."""
    return next((one for one in KINDS if suffix in one.suffixes), None)


def kind_named(name: str) -> Kind:
    """The kind of that name."""
    return next(one for one in KINDS if one.name == name)


@cache
def converter(name: str) -> Callable[[bytes], list[Document]]:
    """What reads documents of that kind, with all that it loads.

    Raises ImportError where a package is missing.
    """
    module = import_module(f"{PACKAGE}.{kind_named(name).module}")
    if hasattr(module, "rehearse"):
        module.rehearse()
    return cast(Callable[[bytes], list[Document]], module.convert)
