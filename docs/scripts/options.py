"""Writes the table of search options of how-it-works/search.md from the record that holds them."""

from __future__ import annotations

from memory_store.records import OPTION_NAMES, OPTIONS

KINDS = {bool: "yes or no", int: "whole number", float: "number", str: "text"}


def table() -> str:
    """Each option: its values, its default, and what it does."""
    rows = ["| option | values | usual | |", "|---|---|---|---|"]
    for name in OPTION_NAMES:
        option = OPTIONS[name]
        rows.append(f"| `{name}` | {_values(name)} | {_usual(name)} | {option.description} |")
    return "\n".join(rows)


def _values(name: str) -> str:
    option = OPTIONS[name]
    if option.choices:
        return ", ".join(f"`{one}`" for one in option.choices)
    if option.value:
        return f"`{option.value}`"
    return "several texts" if option.several else KINDS[option.kind]


def _usual(name: str) -> str:
    option = OPTIONS[name]
    if option.kind is bool:
        return "yes" if option.default else "no"
    return f"`{option.default}`" if option.default not in (None, ()) else ""
