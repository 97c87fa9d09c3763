"""Paging: an opaque token says where the next rows of the same search begin.

Boundary: a token holds a place and four bytes of a digest that ties it to its search; it names
no memory and, at 32 bits, confirms no query.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import struct

from memory_store.records import BadInputError, SearchOptions

_VERSION = 1
_LAYOUT = struct.Struct(">BI4s")
MAX_OFFSET = 100_000  # rows: nobody reads further, and a token cannot ask for endless work

# What may differ between two pages of one search.
_FREE = frozenset({"limit", "continue_", "explain", "why", "budget", "budget_ms"})


def continue_token(query: str, options: SearchOptions, offset: int) -> str | None:
    """The token for the rows from ``offset`` (counted from 0) on."""
    if offset > MAX_OFFSET:
        return None
    packed = _LAYOUT.pack(_VERSION, offset, _digest(query, options))
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def continue_offset(query: str, options: SearchOptions) -> int:
    """Where this search starts: 0, or what its ``continue`` token says.

    Raises :class:`BadInputError` (parameter ``continue``) for a token that is damaged or belongs
    to another query or other filters.
    """
    token = options.continue_
    if not token:
        return 0
    try:
        raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
        version, offset, digest = _LAYOUT.unpack(raw)
    except (binascii.Error, struct.error, ValueError):
        raise BadInputError("continue: this token is damaged", parameter="continue") from None
    if version != _VERSION or offset > MAX_OFFSET or digest != _digest(query, options):
        raise BadInputError("continue: this token belongs to another search", parameter="continue")
    return int(offset)


def _digest(query: str, options: SearchOptions) -> bytes:
    asked = {name: getattr(options, name) for name in SearchOptions.__slots__ if name not in _FREE}
    text = json.dumps([query, asked], sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:4]
