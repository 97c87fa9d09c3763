"""One import, in one record: made where the caller's request arrives, and handed on as it is.

Boundary: holds names of files and, of an upload, the files themselves; no key.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any

from msgspec import Struct, field
from msgspec.structs import force_setattr

from memory_store.code.blame import BLAME
from memory_store.errors import BadInputError
from memory_store.importing.drafts import checked_type, clean_topics
from memory_store.importing.source_file import Failure, Found, Remark, Skip, SourceFile
from memory_store.records import (
    LISTED_IDS,
    Embedded,
    Embedding,
    ImportReport,
    PoorlyRead,
    Progress,
    unheard,
)
from memory_store.scopes import EVERYTHING, Scope
from memory_store.text.tokens import ANALYSER_VERSION

KEEP, REPLACE, ADD = "keep", "replace", "add"
DIFFERING = (KEEP, REPLACE, ADD)
"""What to do with an uploaded file that says something else than its note from a folder: keep that
note and name the file, write the file as the note's next version, or add one more memory."""

ORIGINALS = "originals"
KEPT_WITH_A_SOURCE = (
    *("collection", "type", "topics", "glob", "exclude", "all_files", "blame"),
    *("table", "text_column", "keep_originals"),
)


class ImportRequest(Struct, frozen=True, kw_only=True):
    """What to import, and what it becomes. The fields are checked when the request is made.

    Without ``paths``, and where no files are at hand, every known source is imported again with
    the options of its last import. ``all_files`` takes source code from every folder, and of a Git
    work tree also what is ignored, generated or large;
    ``prune`` forgets what left its source, or (False) nothing; where that is not said, what left a
    Git work tree with the commit that was imported, if there is a trash.
    ``blame`` asks Git who changed each part of it last. ``keep_originals`` seals each file as it
    is, too, but none with many records. ``differing`` is one of :data:`DIFFERING`.
    Raises BadInputError naming the field.
    """

    paths: tuple[str, ...] = ()
    collection: str | None = None
    type: str | None = None
    topics: Sequence[str] = ()
    glob: Sequence[str] = ()
    exclude: Sequence[str] = ()
    all_files: bool = False
    blame: bool = False
    keep_originals: bool = False
    table: str | None = None
    text_column: str | None = None
    dry_run: bool = False
    prune: bool | None = None
    embed: bool = True
    differing: str = KEEP

    def __post_init__(self) -> None:
        if self.differing not in DIFFERING:
            raise BadInputError(f"differing: one of {', '.join(DIFFERING)} expected", "differing")
        force_setattr(self, "type", checked_type(self.type) if self.type else None)
        force_setattr(self, "topics", clean_topics(self.topics))
        force_setattr(self, "glob", tuple(self.glob))
        force_setattr(self, "exclude", tuple(self.exclude))

    @classmethod
    def of_paths(cls, paths: str | Path | Sequence[str | Path], **options: Any) -> ImportRequest:
        """The request for one path or several; ``options`` are the other fields."""
        named = [paths] if isinstance(paths, str | Path) else paths
        return cls(paths=tuple(map(str, named)), **options)

    def kept(self) -> dict[str, Any]:
        """The options that are sealed with a source, for the next import without a path."""
        return {name: getattr(self, name) for name in KEPT_WITH_A_SOURCE}

    def again(self, path: str, kept: dict[str, Any]) -> ImportRequest:
        """This request for a known source, with the options kept for it."""
        options = {name: kept[name] for name in KEPT_WITH_A_SOURCE if name in kept}
        options |= {"dry_run": self.dry_run, "prune": self.prune, "embed": self.embed}
        return type(self)(paths=(path,), **options)

    def shaping(self) -> bytes:
        """All that changes what a file's records become, besides the file itself."""
        shape = (self.type, self.topics, self.table, self.text_column, ANALYSER_VERSION)
        also = [BLAME] if self.blame else []
        also += [ORIGINALS] if self.keep_originals else []
        return json.dumps((*shape, *also)).encode()


class ImportJob(Struct, frozen=True, kw_only=True):
    """A request, the files where they are at hand, and the calls made while it runs.

    ``readable``: the collections in which the caller may learn that a note is there already.
    ``written`` is called with the report so far, after each batch. ``stopped`` says whether to end:
    it is called between files at hand and before each batch, where an error it raises ends the
    import.

    ``words_first``: words and topics of all files are written before the first of them is embedded;
    ``in_words`` is then called with the report, for from there on all of it can be searched, and
    ``embedding`` with how far the rest is. In between, ``poorly_read`` is called with each
    collection whose model was not made for its languages; it may choose another one.
    ``embedded_later``: the words and topics alone are written, where there is a model. The caller
    embeds afterwards (``MemoryStore.embed_missing``).

    Of the files that are found, those that have not ``changed`` count as there and are not opened.
    ``gone``: whether to look for what has left its source. ``stdin`` is what ``-`` is read from
    (``None``: this process's own standard input).
    """

    request: ImportRequest
    files: Sequence[Found] | None = None
    readable: Scope = EVERYTHING
    progress: Progress = unheard
    embedded: Embedded = unheard
    written: Callable[[ImportReport], None] = unheard
    stopped: Callable[[], bool] = lambda: False
    words_first: bool = False
    in_words: Callable[[ImportReport], None] = unheard
    poorly_read: Callable[[PoorlyRead], None] = unheard
    embedding: Callable[[Embedding], None] = unheard
    embedded_later: bool = False
    changed: Callable[[SourceFile], bool] = lambda _: True
    gone: bool = True
    stdin: IO[str] | None = None


class Counts(Struct):
    """What an import has done so far.

    ``forgotten`` names memories that were pruned, ``followed`` counts those of them that left a Git
    work tree, and ``vanished`` names those whose records are gone.
    ``kinds`` counts what was imported or replaced, by kind. ``hints`` say what
    would make more of what was imported.
    """

    imported: int = 0
    unchanged: int = 0
    replaced: int = 0
    forgotten: list[str] = field(default_factory=list)
    followed: int = 0
    vanished: list[str] = field(default_factory=list)
    moved: list[tuple[str, str]] = field(default_factory=list)
    warnings: list[tuple[str, str]] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)
    _failures: list[tuple[str, str]] = field(default_factory=list)
    _skips: list[tuple[str, str]] = field(default_factory=list)
    _ids: list[str] = field(default_factory=list)

    def fail(self, name: str, reason: str) -> None:
        self._failures.append((name, reason))

    def leave_out(self, what: Skip | Failure | Remark) -> None:
        """Count a file or record that was not read, for the reason it says, or a warning."""
        if isinstance(what, Remark):
            self.warnings.append((what.name, what.reason))
            return
        kind = self._skips if isinstance(what, Skip) else self._failures
        kind.append((what.name, what.reason))

    def list_ids(self, ids: Sequence[str]) -> None:
        """Add to the ids of the report, which lists the first few of them."""
        self._ids += ids[: LISTED_IDS - len(self._ids)]

    def report(self, degraded: Sequence[str] = ()) -> ImportReport:
        return ImportReport(
            imported=self.imported,
            unchanged=self.unchanged,
            replaced=self.replaced,
            skipped=len(self._skips),
            failed=len(self._failures),
            pruned=len(self.forgotten),
            failures=tuple(self._failures),
            skips=tuple(self._skips),
            degraded=(*dict.fromkeys(self.hints), *degraded),
            ids=tuple(self._ids),
            forgotten=tuple(self.forgotten),
            followed=self.followed,
            vanished=tuple(self.vanished),
            moved=tuple(self.moved),
            warnings=tuple(self.warnings),
            kinds=dict(self.kinds.most_common()),
        )
