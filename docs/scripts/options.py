"""Writes the tables of options of how-it-works/search.md and reference/json-api.md from the records
that hold them."""

from __future__ import annotations

from msgspec.structs import fields

from memory_store.records import OPTION_NAMES, OPTIONS, MemoryChange, MemoryDraft


def table() -> str:
    """Each option with what it takes, its default, and what it does."""
    rows = ["| option | usual | |", "|---|---|---|"]
    for name in OPTION_NAMES:
        option = OPTIONS[name]
        value = f"`{name}` {option.value or ''}".rstrip()
        choices = f": {', '.join(f'`{one}`' for one in option.choices)}" if option.choices else ""
        several = " (repeatable)" if option.several else ""
        rows.append(f"| {value} | {_usual(name)} | {option.description}{choices}{several} |")
    return "\n".join(rows)


def _usual(name: str) -> str:
    option = OPTIONS[name]
    if option.kind is bool:
        return "yes" if option.default else "no"
    return f"`{option.default}`" if option.default not in (None, ()) else ""


def memory_fields() -> str:
    """What a new memory takes, and what a change to one."""
    rows = ["| | takes |", "|---|---|"]
    for what, record in (("a new memory", MemoryDraft), ("a change", MemoryChange)):
        rows.append(f"| {what} | {', '.join(f'`{one.encode_name}`' for one in fields(record))} |")
    return "\n".join(rows)
