"""The search form: its fields, their choices, and what of an address has no field of its own.

Boundary: names of collections are offered only to those who may read them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from memory_store.access import UNREAD_MODES, Grants
from memory_store.errors import BadInputError
from memory_store.host import RECIPES, YES
from memory_store.records import MODES, OPTION_NAMES, TYPES

PLAIN = ("since", "until", "as_of", "by", "limit", "why")
BOXES = ("deep", "superseded", "sealed", "explain")
FIELDS = frozenset({"q", "mode", "recipe", "status", "collection", "type", "topic", *PLAIN, *BOXES})
"""What the form has a field for."""

LABELS = {
    "limit": "Results",
    "recipe": "Ranking",
    "by": "Written by",
    "as_of": "As of",
    "why": "Why not",
}
"""Fields that the form calls by another name than their parameter's."""

SEALED = frozenset({"as_of", "superseded", "by"})
"""What every vault seals."""

SEALED_WHERE_STRICT = frozenset({"type", "status", "since", "until"})
"""What a strict vault seals: those who may not read get no field for what would be refused."""

SHOWN_ELSEWHERE = ("narrow", "like")
"""Chosen beside the results, shown and taken away above them."""

FOLDED = ("recipe", "type", "topic", "since", "until", "as_of", "by", "limit", "why")
"""Fields that are folded away, and count as an option in use when they say something."""

WITHOUT = "without"
"""A button's ``name=value``: the parameter to leave out. So a filter leaves a posted search."""

MODE_NAMES = {
    "hybrid": "Words and meaning",
    "keyword": "Words only",
    "vector": "Meaning only",
    "literal": "Exact text or pattern",
    "structural": "Code with holes ($NAME)",
    "auto": "Decide by the query",
}
BEST_FOR = {
    "hybrid": ("a question, or what you remember in part", "who has the spare key"),
    "keyword": ("names, numbers and words that are surely in there", "Harper"),
    "vector": ("what you can only describe", "keeping the house warm"),
    "literal": ("letters as they stand, parts of words, regular expressions", r"SLT-\d+"),
    "structural": ("source code by its shape, whatever the names in it", "print($WHAT)"),
    "auto": ("all of these: code and /…/ as exact text, else words and meaning", "user_id"),
}
"""Mode → what it finds best, and a query to try."""
STATUS_NAMES = {"all": "Open and done", "open": "Open only", "done": "Done only"}

Choice = tuple[str, str, bool]
"""Of a select: the value (empty for the default), the label, whether it is chosen."""


def in_labels(refusal: Exception) -> str:
    """What a refusal says, its fields called as the form calls them."""
    each = refusal.each if isinstance(refusal, BadInputError) else ((None, str(refusal)),)
    return "; ".join(
        f"{LABELS[name]}{said.removeprefix(name)}"
        if name in LABELS and said.startswith(f"{name}: ")
        else said
        for name, said in each
    )


def form(
    given: Mapping[str, Any],
    grants: Grants,
    *,
    collections: Sequence[str] = (),
    strict: bool = False,
) -> dict[str, Any]:
    """What the form for a search as asked shows besides the query, in a vault that is ``strict``.

    ``plain`` fields show what was typed, also where that was refused; ``ticked`` names boxes.
    ``others`` are options without a field, each a box to untick; ``hidden`` is chosen elsewhere on
    the page. ``collections`` is empty where the names may not be read: a text field then; ``types``
    and ``statuses`` where they would be refused, as ``dated`` says of times. ``in_use`` counts the
    options that are folded away.
    """
    refused: frozenset[str] = frozenset()
    if not grants.decrypt:
        refused = SEALED | SEALED_WHERE_STRICT if strict else SEALED
    several = {name: values(given, name) for name in ("collection", "type", "topic")}
    first = {name: (chosen or [""])[0] for name, chosen in several.items()}
    shown = {*FIELDS, *SHOWN_ELSEWHERE} - refused
    others = [(name, one) for name in several if name in shown for one in several[name][1:]]
    others += [pair for pair in carried(given) if pair[0] not in shown]
    ticked = [name for name in BOXES if last(given, name).lower() in YES]
    folded = sum(bool(values(given, name)) for name in FOLDED if name not in refused)
    modes = MODES if grants.decrypt else UNREAD_MODES
    statuses = _choices(STATUS_NAMES, last(given, "status"), "all", STATUS_NAMES)
    return {
        "modes": _choices(modes, last(given, "mode"), "hybrid", MODE_NAMES),
        "recipes": _choices(RECIPES, last(given, "recipe"), "default", {"default": "Default"}),
        "statuses": [] if "status" in refused else statuses,
        "types": [] if "type" in refused else _any_of(TYPES, first["type"], "Any"),
        "collections": _any_of(collections, first["collection"], "All"),
        "collection": first["collection"],
        "topic": first["topic"],
        "plain": {name: last(given, name) for name in PLAIN},
        "ticked": ticked,
        "others": others,
        "hidden": [(name, value) for name in SHOWN_ELSEWHERE for value in values(given, name)],
        "in_use": folded + len(others) + len({"deep", "superseded", "sealed"}.intersection(ticked)),
        "dated": "since" not in refused,
        "reads": bool(grants.decrypt),
    }


def understood(given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters a search knows, less what a button takes away.

    Others are ignored, as on Datasette's own pages.
    """
    kept = {name: value for name, value in given.items() if name in OPTION_NAMES}
    for name, _, value in (pair.partition("=") for pair in values(given, WITHOUT)):
        if name in kept:
            kept[name] = [one for one in values(kept, name) if value and one != value]
    query = given.get("q", given.get("query"))
    return kept if query is None else {"q": query, **kept}


def carried(given: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The options of a search as pairs, for a form that has a field for the query only."""
    names = [name for name in given if name in OPTION_NAMES and name != "continue"]
    return [(name, value) for name in names for value in values(given, name)]


def values(given: Mapping[str, Any], name: str) -> list[str]:
    """What was said of a parameter, as texts; nothing empty."""
    value = given.get(name)
    if isinstance(value, Mapping):  # `meta` in a JSON object
        return [f"{key}={item}" for key, item in value.items()]
    if isinstance(value, bool):
        return [str(int(value))]
    several = value if isinstance(value, list | tuple) else [value]
    return [str(item) for item in several if item is not None and item != ""]


def last(given: Mapping[str, Any], name: str) -> str:
    """The value of a parameter that counts when it was said several times; empty if never."""
    return (values(given, name) or [""])[-1]


def whole_number(said: str) -> int | None:
    """The whole number that a text says; None for anything else, and for more than nine digits."""
    return int(said) if said.isascii() and said.isdigit() and len(said) < 10 else None


def whole(
    given: Mapping[str, Any], name: str, usual: int, *, least: int = 0, most: int | None = None
) -> int:
    """A whole number that was said, else the ``usual`` one. Raises BadInputError."""
    said = last(given, name)
    number = whole_number(said) if said else usual
    if number is None or number < least or (most is not None and number > most):
        bounds = "a whole number" if most is None else f"{least} to {most:,}"
        raise BadInputError(f"{name}: {bounds} expected", name)
    return number


def _choices(
    offered: Iterable[str], chosen: str, default: str, names: Mapping[str, str]
) -> list[Choice]:
    chosen = chosen or default
    return [("" if one == default else one, names.get(one, one), one == chosen) for one in offered]


def _any_of(names: Sequence[str], chosen: str, every: str) -> list[Choice]:
    """All of them, then each by name; also one that was asked for by another name."""
    if not names:
        return []
    asked = [chosen] if chosen and chosen not in names else []
    return [("", every, not chosen), *((name, name, name == chosen) for name in [*names, *asked])]
