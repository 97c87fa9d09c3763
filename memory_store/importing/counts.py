"""The counts of an import at work: how many of each, and what was left out and why."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from memory_store.importing.source_file import Failure, Skip
from memory_store.records import LISTED_IDS, ImportReport


class Counts(Struct):
    """The counts of one import at work. ``forgotten`` names memories whose records are gone."""

    imported: int = 0
    unchanged: int = 0
    replaced: int = 0
    forgotten: list[str] = field(default_factory=list)
    _failures: list[tuple[str, str]] = field(default_factory=list)
    _skips: list[tuple[str, str]] = field(default_factory=list)
    _ids: list[str] = field(default_factory=list)

    def fail(self, name: str, reason: str) -> None:
        self._failures.append((name, reason))

    def leave_out(self, what: Skip | Failure) -> None:
        """Count a file or record that was not read, for the reason it says."""
        kind = self._skips if isinstance(what, Skip) else self._failures
        kind.append((what.name, what.reason))

    def list_ids(self, ids: Sequence[str]) -> None:
        """Add to the ids of the report, which lists the first few of them."""
        self._ids += ids[: LISTED_IDS - len(self._ids)]

    def report(self) -> ImportReport:
        return ImportReport(
            imported=self.imported,
            unchanged=self.unchanged,
            replaced=self.replaced,
            skipped=len(self._skips),
            failed=len(self._failures),
            pruned=len(self.forgotten),
            failures=tuple(self._failures),
            skips=tuple(self._skips),
            ids=tuple(self._ids),
            forgotten=tuple(self.forgotten),
        )
