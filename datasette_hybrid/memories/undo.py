"""The way back from a change: its name in the trash, which the page shown next offers to undo.

Boundary: the name stands in an address. It is random, says nothing, and does nothing for an asker
who may not read and write what was changed.
"""

from __future__ import annotations

import re
import secrets
from typing import Any

from datasette import Response

from ..requests import questions
from ..requests.frame import hybrid_path
from ..search import forms
from ..vaults.vault import Vault
from .addresses import kept, seeing_other

GROUP = re.compile(r"[0-9a-f]{16}")


def new_group() -> str:
    """A name for a change."""
    return secrets.token_hex(8)


def offered(datasette: Any, request: Any, vault: Vault, group: str, message: str) -> Response:
    """Back to the search, which says what was done, and offers to undo it (not without a name)."""
    address = hybrid_path(datasette, vault.database) + kept(request)
    if group:
        address += f"{'&' if '?' in address else '?'}undo={group}"
    return seeing_other(datasette, request, address, message)


def group_in(request: Any) -> str:
    """The change that a page is to offer to undo; empty where none is named."""
    named = forms.last(questions.arguments(request), "undo")
    return named if GROUP.fullmatch(named) else ""
