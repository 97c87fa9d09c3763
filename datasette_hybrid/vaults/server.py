"""Whether the server that keeps a vault answers. One in a file has none: it always answers."""

from __future__ import annotations

from collections.abc import Callable

from memory_store.errors import StorageError


class AwayError(StorageError):
    """The server that keeps the vault does not answer (HTTP 503): try again in a moment."""


class Server:
    """What is known of it. While it is away the clock alone asks it, and no request waits."""

    def __init__(self, database: str, log: Callable[[str], None]) -> None:
        self._database, self._log = database, log
        self._away: str | None = None

    @property
    def answers(self) -> bool:
        """Whether it does, as far as is known."""
        return self._away is None

    def check(self) -> None:
        """Raise :class:`AwayError` while it does not answer. Never waits."""
        away = self._away
        if away is not None:
            raise AwayError(away)

    def note_away(self, error: StorageError) -> None:
        """It did not answer, for this reason."""
        if self._away is None:
            self._log(str(error).removeprefix(f"{self._database}: "))
        self._away = str(error)

    def note_back(self) -> None:
        """It answered."""
        if self._away is not None:
            self._away = None
            self._log("its server answers again")
