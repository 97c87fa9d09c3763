"""The table ``vault_settings``: the sealed settings, and the few that stand in clear.

Boundary: the sealed value passes as it is; nothing in clear is believed by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memory_store.vault.storage.table import Table

_PUT = """
    insert into vault_settings (name, value) values (?, ?)
    on conflict (name) do update set value = excluded.value
"""


class SettingsTable(Table):
    """Settings by name: a value in clear, a sealed one, or both."""

    __slots__ = ()

    def clear(self, name: str) -> Any:
        """A value in clear; None where there is none."""
        found = self._first("select value from vault_settings where name = ?", (name,))
        return None if found is None else found[0]

    def number(self, name: str) -> int | None:
        """A number in clear; None where there is no such setting."""
        found = self._first(
            "select cast(value as integer) from vault_settings where name = ?", (name,)
        )
        return None if found is None else found[0]

    def revision(self) -> int:
        """The revision of the sealed settings, as it stands in clear; 0 where there are none."""
        found = self._first(
            "select cast(value as integer) from vault_settings where name = 'settings'"
        )
        return 0 if found is None else int(found[0])

    def write_clear(self, values: Mapping[str, str]) -> None:
        """Replace values in clear."""
        self._run_all(_PUT, values.items())

    def delete(self, name: str) -> None:
        """Take a setting away."""
        self._run("delete from vault_settings where name = ?", (name,))

    def sealed(self) -> tuple[int, bytes] | None:
        """The sealed settings, and their revision as it stands in clear."""
        found: tuple[int, bytes] | None = self._first(
            "select cast(value as integer), sealed from vault_settings where name = 'settings'"
        )
        return found

    def write_sealed(self, revision: int, sealed: bytes) -> None:
        """Replace the sealed settings."""
        self._run(
            """
            insert into vault_settings (name, value, sealed) values ('settings', ?, ?)
            on conflict (name) do update set value = excluded.value, sealed = excluded.sealed
            """,
            (str(revision), sealed),
        )
