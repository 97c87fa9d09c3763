"""Writes the addresses and errors of the JSON API from the tables that openapi.json is made of."""

from __future__ import annotations

import json
import re

from datasette_hybrid.openapi.description import ERRORS
from datasette_hybrid.openapi.operations import BASE, OPERATIONS, Operation

ID = re.compile(r'"[0-9a-f]{8}-[0-9a-f-]{27}"')


def addresses(*tags: str) -> str:
    """Of these parts of the API: method and address, what it does, and the permission it needs."""
    rows = ["| address | what it does | needs |", "|---|---|---|"]
    return "\n".join([*rows, *(_row(one) for one in OPERATIONS if one.tag in tags)])


def errors() -> str:
    """Each status of a refusal, and what it means."""
    return "\n".join(f"* **{status}**: {meaning}" for status, meaning in ERRORS.items())


def _row(one: Operation) -> str:
    path = re.sub(r"\{(\w+)\}", lambda name: name[1].upper(), one.path.removeprefix(BASE))
    asked = [name for name in (_name(parameter) for parameter in one.parameters) if name]
    does = one.summary + (f"; takes {', '.join(f'`{name}`' for name in asked)}" if asked else "")
    if one.example:
        does += f": `{ID.sub('ID', json.dumps(one.example))}`"
    return f"| `{one.method} {path}` | {does} | {one.needs.replace('hybrid-', '')} |"


def _name(parameter: dict[str, object]) -> str:
    return str(parameter["name"]) if parameter.get("in") == "query" else ""
