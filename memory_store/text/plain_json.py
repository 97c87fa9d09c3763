"""JSON from strangers, and JSON that can be sent: every string is Unicode, every number finite.

Boundary: data passes through; nothing is kept, and no error quotes it.

Python reads ``NaN`` and half a surrogate pair without a word, and stumbles when it has to write
them: one that is stored would break every later answer that holds it.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from memory_store.text.canonical import whole_characters

_ODD = re.compile(rb"\xed[\xa0-\xbf]|NaN|Infinity")  # half a pair in UTF-8, or no number


def read_json(content: str | bytes) -> Any:
    """The value that ``content`` is by RFC 8259, halves of surrogate pairs joined or replaced.

    Raises ``ValueError`` for anything else, ``NaN`` and numbers too large for a float among it,
    and ``RecursionError``.
    """
    return mended(json.loads(content, parse_constant=refuse_constant, parse_float=_finite))


def read_stored_json(content: bytes, *, verbatim: str) -> dict[str, Any]:
    """An object that was stored, whenever that was: what could not be sent is mended on the way.

    Not what stands under ``verbatim``.
    """
    value = dict(json.loads(content))
    if not _ODD.search(content):
        return value
    return {name: item if name == verbatim else mended(item) for name, item in value.items()}


def write_json(data: Any) -> str:
    """``data`` as JSON that can always be sent; other objects as their text."""
    try:
        text = json.dumps(data, ensure_ascii=False, default=str, allow_nan=False)
    except ValueError:
        text = json.dumps(mended(data), ensure_ascii=False, default=str)
    return whole_characters(text)


def mended(value: Any) -> Any:
    """``value`` with whole characters, and null for what is no number."""
    if isinstance(value, str):
        return whole_characters(value)
    if isinstance(value, dict):
        return {mended(key): mended(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [mended(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else refuse_constant("a number this large")


def refuse_constant(name: str) -> Any:
    """For ``NaN`` and the like, which Python reads and JSON does not have."""
    raise ValueError(f"{name} is not a JSON value")
