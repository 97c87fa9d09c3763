"""Search options from keywords, as Python callers write them.

Everything odd is refused by name here; what the values mean is checked where they are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memory_store.errors import BadInputError
from memory_store.records import SearchOptions

_OPTION_NAMES = set(SearchOptions.__struct_fields__)
_LISTED_OPTIONS = ("collection", "type", "topic", "narrow")


def search_options(**options: Any) -> SearchOptions:
    """Options from keywords: a single string will do where several may stand.

    The command's own spellings ``continue``, ``no_rerank`` and ``no_expand`` are taken too.
    """
    if "continue" in options:
        options["continue_"] = options.pop("continue")
    for name in ("rerank", "expand"):
        if f"no_{name}" in options:
            options[name] = not options.pop(f"no_{name}")
    unknown = sorted(set(options) - _OPTION_NAMES)
    if unknown:
        raise BadInputError(f"no search option {unknown[0]!r}", unknown[0])
    for name in _LISTED_OPTIONS:
        if name in options:
            options[name] = several(options[name])
    if isinstance(options.get("meta"), dict):
        options["meta"] = tuple((str(k), str(v)) for k, v in options["meta"].items())
    elif options.get("meta"):
        options["meta"] = tuple(map(_key_and_value, options["meta"]))
    if not options.get("like", True):
        options["like"] = None
    return SearchOptions(**options)


def _key_and_value(given: Any) -> tuple[str, str]:
    if isinstance(given, str):
        key, equals, value = given.partition("=")
        if key and equals:
            return key, value
    elif isinstance(given, tuple | list) and len(given) == 2:
        return str(given[0]), str(given[1])
    raise BadInputError(f"meta: {given!r} is not KEY=VALUE", "meta")


def several(given: str | Sequence[str] | None) -> tuple[str, ...]:
    """What was given as a tuple: nothing, one string, or many."""
    if given is None:
        return ()
    return (given,) if isinstance(given, str) else tuple(given)
