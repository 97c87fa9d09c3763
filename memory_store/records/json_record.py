"""Records that are their fields in JSON."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, to_builtins


class JsonRecord(Struct, frozen=True):
    """A record that surfaces print as it is."""

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready data, keys in the order of the fields."""
        found: dict[str, Any] = to_builtins(self)
        return found
