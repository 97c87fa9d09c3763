"""Searching with expansion, and what the answer says of it."""

from __future__ import annotations

from typing import Any

from memory_store.records import SearchResponse
from memory_store.store import MemoryStore


def stage(response: SearchResponse, name: str = "expand") -> dict[str, Any]:
    return dict(next(report.details for report in response.explain if report.stage == name))


def lists(response: SearchResponse) -> list[tuple[str, str, int]]:
    found = stage(response, "fetch")["lists"]
    return [(one["leg"], one["kind"], one["found"]) for one in found if one["leg"] != "topic"]


def refs(response: SearchResponse) -> list[str | None]:
    return [row.ref for row in response.rows]


def asked(store: MemoryStore, query: str, **options: Any) -> SearchResponse:
    return store.search(query, **{"expander": "good", "explain": True, **options})
