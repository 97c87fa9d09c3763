"""A check: one line of what the doctor says."""

from __future__ import annotations

from importlib import metadata
from typing import Literal

from msgspec import Struct

State = Literal["ok", "missing", "off"]


class Check(Struct, frozen=True):
    """One line of the report. ``missing`` degrades the search; ``off`` is a choice or an extra.

    ``effect`` says what does not work, ``remedy`` is a command; both are empty when all is well.
    """

    name: str
    state: State
    detail: str
    effect: str = ""
    remedy: str = ""


def installed(package: str) -> bool:
    """Whether a distribution of that name is installed."""
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return False
    return True
