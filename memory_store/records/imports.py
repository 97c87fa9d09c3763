"""What an import did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct, field

LISTED_IDS = 1_000
"""Ids in one report: 36 KB of JSON, and more than a reader looks through one by one."""

Progress = Callable[[str, int, int | None], None]
"""Called with a name, how many are done, and how many there are, where that is known."""
Embedded = Callable[[int, int], None]
"""Called with how many windows of a batch have vectors, and how many windows the batch has."""


class Embedding(Struct, frozen=True):
    """How many memories have vectors, of how many; and how many words, for the time that is left.

    A long memory takes longer than a short one, so the time left is counted by words.
    """

    done: int = 0
    total: int = 0
    words_done: int = 0
    words: int = 0

    @property
    def left(self) -> int:
        """How many memories have no vectors yet."""
        return self.total - self.done

    @property
    def words_left(self) -> int:
        """How many words those memories have."""
        return self.words - self.words_done


class PoorlyRead(Struct, frozen=True):
    """A collection (its ``id`` and name) whose ``model`` was not made for some ``languages`` (their
    English names) of its memories; how many ``words`` it has in all."""

    id: str
    collection: str
    model: str
    languages: tuple[str, ...]
    words: int


def unheard(*_: Any) -> None:
    """The listener of an import that reports to none."""


class ImportReport(Struct, frozen=True):
    """The outcome of an import. ``failures`` and ``skips`` pair a name with its reason.

    ``ids`` are those of the memories that were written, new or replaced, in the order in which
    they were: the first :data:`LISTED_IDS` of them. ``forgotten`` says of each pruned memory where
    its source had it, ``followed`` how many of them left a Git work tree with the commit that was
    imported, ``vanished`` the same of those that are gone there and kept here. ``moved``
    pairs the old with the new name of a file that was renamed; its memories count as replaced.
    ``warnings`` pair the name of what was imported all the same with what is wrong with it.
    ``kinds`` counts what was imported or replaced by what it was: a format (``Markdown``, ``PDF``),
    or the program that exported it (``ChatGPT``).
    """

    imported: int = 0
    unchanged: int = 0
    replaced: int = 0
    skipped: int = 0
    failed: int = 0
    pruned: int = 0
    failures: Sequence[tuple[str, str]] = ()
    skips: Sequence[tuple[str, str]] = ()
    degraded: Sequence[str] = ()
    ids: Sequence[str] = ()
    forgotten: Sequence[str] = ()
    followed: int = 0
    vanished: Sequence[str] = ()
    moved: Sequence[tuple[str, str]] = ()
    warnings: Sequence[tuple[str, str]] = ()
    kinds: Mapping[str, int] = field(default_factory=dict)

    def by_kind(self) -> str:
        """``Markdown 3, PDF 1``, the most first; empty where nothing was imported or replaced."""
        return ", ".join(f"{kind} {count:,}" for kind, count in self.kinds.items())

    def why_skipped(self) -> dict[str, int]:
        """How many files or records were skipped for each reason, the most first."""
        return dict(Counter(reason for _, reason in self.skips).most_common())

    def holds_nothing(self) -> bool:
        """Whether there was not a file or record to look at, nor one that is gone."""
        counts = self.imported + self.unchanged + self.replaced + self.skipped + self.failed
        return not (counts + self.pruned or self.vanished)

    def summary(self) -> str:
        """``imported N, unchanged N, replaced N, skipped N, failed N`` (and pruned, if any)."""
        line = (
            f"imported {self.imported}, unchanged {self.unchanged}, replaced {self.replaced}, "
            f"skipped {self.skipped}, failed {self.failed}"
        )
        return f"{line}, pruned {self.pruned}" if self.pruned else line


class SourceInfo(Struct, frozen=True):
    """A path that was imported: into which collection, with which options, and what came of it.

    ``time`` is when an import of it last came to its end, ``failed`` how many files or records
    failed then, ``failures`` the first of them with their reasons. ``left_out`` says why an import
    without a path does not read it again; ``None`` where it does. Of a Git work tree ``commit`` is
    what was checked out then, and ``behind`` says how far it has gone on since, if it has.
    """

    path: str
    collection: str
    memories: int
    options: dict[str, Any]
    time: str | None = None
    failed: int = 0
    failures: Sequence[tuple[str, str]] = ()
    left_out: str | None = None
    commit: str | None = None
    behind: str | None = None
