"""What a harness is, and bytes as text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Parser:
    """A harness, and inputs to begin with."""

    take: Callable[[bytes], None]
    seeds: Callable[[], list[bytes]]


def text_of(data: bytes) -> str:
    """Any bytes as text; what is no UTF-8 becomes lone surrogates, as in names of files."""
    return data.decode("utf-8", "surrogateescape")
