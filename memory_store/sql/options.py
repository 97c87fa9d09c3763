"""Search options from JSON or text: one reading for SQL, query strings and request bodies.

Only the *kinds* of values are settled here (is it a whole number, a yes or a no?); what a value
may be is the store's to say, so that every surface refuses the same things in the same words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memory_store.errors import BadInputError

YES = frozenset({"1", "true", "yes", "on"})
NO = frozenset({"0", "false", "no", "off", ""})


def search_options(values: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments for :meth:`MemoryStore.search` from option names and loose values.

    Values may be JSON values or the strings of a query string; names are the fields of
    :class:`SearchOptions`, with ``continue`` for ``continue_``. ``None``, empty text and
    empty lists mean "not said" and are left out.

    Raises :class:`BadInputError` naming the option that is unknown or of the wrong kind.
    """
    options: dict[str, Any] = {}
    for name, value in values.items():
        reader = _READERS.get(name)
        if reader is None:
            raise BadInputError(f"{name}: no such search option", name)
        if value is None or value in ("", [], (), [""]):
            continue
        field = "continue_" if name == "continue" else name
        options[field] = reader(name, value)
    return options


def _text(name: str, value: Any) -> str:
    value = _single(name, value)
    if not isinstance(value, str):
        raise BadInputError(f"{name}: text expected", name)
    return value


def _texts(name: str, value: Any) -> tuple[str, ...]:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, Sequence) or not all(isinstance(item, str) for item in items):
        raise BadInputError(f"{name}: text or a list of texts expected", name)
    return tuple(item for item in items if item)


def _whole(name: str, value: Any) -> int:
    value = _single(name, value)
    if isinstance(value, str) and value.strip().lstrip("-").isascii():
        text = value.strip()
        if text.lstrip("-").isdigit() and len(text) < 12:
            return int(text)
    elif isinstance(value, int) and not isinstance(value, bool):
        return value
    raise BadInputError(f"{name}: a whole number expected", name)


def _number(name: str, value: Any) -> float:
    value = _single(name, value)
    refusal = BadInputError(f"{name}: a number expected", name)
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise refusal
    try:
        return float(value)
    except (ValueError, OverflowError):
        raise refusal from None


def _flag(name: str, value: Any) -> bool:
    value = _single(name, value)
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text in YES | NO:
        return text in YES
    raise BadInputError(f"{name}: 1 or 0 expected", name)


def _pairs(name: str, value: Any) -> tuple[tuple[str, str], ...]:
    if isinstance(value, Mapping):
        return tuple((str(key), str(item)) for key, item in value.items())
    pairs = []
    for item in _texts(name, value):
        key, separator, rest = item.partition("=")
        if not (separator and key):
            raise BadInputError(f"{name}: KEY=VALUE expected", name)
        pairs.append((key, rest))
    return tuple(pairs)


def _single(name: str, value: Any) -> Any:
    """The last value of an option given several times, as HTML forms with a fallback do."""
    if isinstance(value, list | tuple):
        if not value:
            raise BadInputError(f"{name}: a value expected", name)
        return value[-1]
    return value


_READERS: Mapping[str, Callable[[str, Any], Any]] = {
    "mode": _text,
    "deep": _flag,
    "limit": _whole,
    "collection": _texts,
    "type": _texts,
    "topic": _texts,
    "status": _text,
    "meta": _pairs,
    "since": _text,
    "until": _text,
    "min_score": _number,
    "narrow": _texts,
    "recipe": _text,
    "reranker": _text,
    "rerank": _flag,
    "expander": _text,
    "expand": _flag,
    "sealed": _flag,
    "like": _text,
    "budget": _whole,
    "budget_ms": _whole,
    "continue": _text,
    "explain": _flag,
    "why": _text,
}

OPTION_NAMES = tuple(_READERS)
"""The names a request may use, in a fixed order."""
