"""Reads files as an import does, and sorts what comes back; writes folders of notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import IO

from msgspec.structs import replace

from memory_store.importing.readers import read_file
from memory_store.importing.source_file import Failure, Remark, Skip, SourceFile
from memory_store.importing.walker import walk
from memory_store.records import MemoryDraft


@dataclass
class Outcome:
    """Drafts in order, and reasons by name."""

    drafts: list[MemoryDraft] = field(default_factory=list)
    skips: dict[str, str] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    warnings: dict[str, str] = field(default_factory=dict)

    @property
    def refs(self) -> list[str | None]:
        return [draft.ref for draft in self.drafts]

    @property
    def only(self) -> MemoryDraft:
        """The one memory there is, where nothing was skipped or failed."""
        assert not self.skips, self.skips
        assert not self.failures, self.failures
        assert len(self.drafts) == 1, self.drafts
        return self.drafts[0]


def read(
    *paths: str | Path,
    glob: Sequence[str] = (),
    exclude: Sequence[str] = (),
    table: str | None = None,
    text_column: str | None = None,
    stdin: IO[str] | None = None,
) -> Outcome:
    """Everything an import of ``paths`` would take, skip and refuse."""
    outcome = Outcome()
    seen: set[Path] = set()
    each = (walk(path, glob, exclude, seen=seen, stdin=stdin) for path in paths)
    for found in chain.from_iterable(each):
        items = (
            read_file(replace(found, table=table, text_column=text_column))
            if isinstance(found, SourceFile)
            else [found]
        )
        for item in items:
            if isinstance(item, Skip):
                outcome.skips[item.name] = item.reason
            elif isinstance(item, Failure):
                outcome.failures[item.name] = item.reason
            elif isinstance(item, Remark):
                outcome.warnings[item.name] = item.reason
            else:
                outcome.drafts.append(item)
    return outcome


def write(folder: Path, **files: str) -> Path:
    """The folder, with a Markdown note of each of these names."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    return folder
