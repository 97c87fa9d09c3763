"""What the JSON API answers: the store's records, each with what only a server knows.

Their docstrings are descriptions of the API, from which its schemas are made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from memory_store import host
from memory_store.host import (
    Code,
    CodeContext,
    CodeImpact,
    CodeOutline,
    CodeReferences,
    CodeText,
    ForSearchers,
    InPart,
    Stages,
    SymbolAnswer,
    Total,
    Verdict,
)
from memory_store.records import (
    LISTED_IDS,
    Existence,
    Landscape,
    Memory,
    MemoryLinks,
    Related,
    Review,
    SearchResponse,
    SearchResult,
    SuggestedTopic,
    TrashEntry,
    WordCount,
)

from ..collections import ACTIONS, CollectionView
from ..uploads.jobs import STATES
from .requests import Role

Ok = Annotated[bool, Meta(extra_json_schema={"const": True})]
Count = Annotated[int, Meta(ge=0)]


class Done(Struct):
    """It is done."""

    ok: Ok


class Error(Struct):
    """Why a request was refused. ``current`` and ``yours`` are of a conflict."""

    ok: Annotated[bool, Meta(extra_json_schema={"const": False})]
    error: str
    errors: Annotated[tuple[str, ...], Meta(min_length=1)]
    status: Annotated[int, Meta(ge=400, le=599)]
    parameter: Annotated[str | UnsetType, Meta(description="What was wrong")] = UNSET
    current: Annotated[
        dict[str, Any] | UnsetType | None, Meta(description="The memory as it is now")
    ] = UNSET
    yours: Annotated[Any, Meta(description="What was sent")] = UNSET
    conflicts: tuple[dict[str, Any], ...] | UnsetType = UNSET


class Row(SearchResult, frozen=True):
    """A result of a search. Null is what its asker may not see."""


class SearchAnswer(SearchResponse, frozen=True, kw_only=True):
    """The answer to a search."""

    ok: Ok
    rows: InPart[tuple[Row, ...]]
    next_url: str | None
    degraded_codes: tuple[Code, ...] = ()
    explain: InPart[tuple[Stages, ...]] = ()
    why: InPart[Verdict | None] = None


class CompactRow(Row, frozen=True):
    """A result as a language model is given it, scores 0–100."""


class CompactAnswer(Struct, array_like=True, forbid_unknown_fields=True):
    """Results, counts and topics."""

    rows: tuple[CompactRow, ...]
    counts: str
    topics: tuple[tuple[str, int], ...]


class Memories(Done):
    """Memories. Null is what their asker may not see."""

    rows: tuple[Memory, ...]


class Links(MemoryLinks, frozen=True, kw_only=True):
    """What a memory links to, what links to it, and what is not there."""

    ok: Ok


class RelatedMemories(Done):
    """The memories nearest to one, nearest first."""

    rows: tuple[Related, ...]


class MemoryPage(Memories):
    """A page of a list."""

    next: str | None
    next_url: str | None
    truncated: bool


class AddedMemory(Memory, frozen=True, kw_only=True):
    """A memory that was to be added."""

    unchanged: Annotated[
        ForSearchers[bool], Meta(description="It was there already, as it was sent")
    ]


class AddedMemories(Done):
    """What was added."""

    rows: tuple[AddedMemory, ...]


class Deleted(Done):
    """How many are gone."""

    deleted: int


class Erased(Done):
    """How many rows of the trash are gone."""

    erased: int


class TrashList(Done):
    """What is in the trash."""

    rows: tuple[TrashEntry, ...]
    truncated: bool


class SavedSearch(Struct):
    """A search of the asker under a name."""

    id: str
    name: str
    owner: str
    search: Annotated[
        Mapping[str, Any], Meta(description="Fields of a search, only those that were said")
    ]
    created: str
    feed: Annotated[bool, Meta(description="It has a feed")]
    url: Annotated[str | None, Meta(description="Where it is asked; null with private queries")]


class SavedSearches(Done):
    """Saved searches by name."""

    rows: tuple[SavedSearch, ...]


class NewFeed(Done):
    """Where a feed is, and its token: the password of HTTP's Basic scheme."""

    atom: str
    json: str
    token: str


class Collection(CollectionView, frozen=True):
    """A collection as its asker sees it."""

    permissions: tuple[Annotated[str, Meta(extra_json_schema={"enum": list(ACTIONS)})], ...]


class Collections(Done):
    """Collections."""

    rows: tuple[Collection, ...]


class Member(Done):
    """An actor's role in a collection; null: none any more."""

    actor: str
    role: Role | None


class AuditEvent(host.AuditEvent, frozen=True, kw_only=True):
    """An event of the audit trail."""

    who: Annotated[  # type: ignore[assignment]  # the store works it out
        str, Meta(description="The actor, or what stands for one")
    ]
    times: Annotated[
        int,
        Meta(
            ge=1,
            description="Alike uses within a minute that this event stands for, the first at its "
            "time",
        ),
    ]


class AuditTotal(Total, frozen=True):
    """What one actor did."""


class LandscapeAnswer(Landscape, frozen=True, kw_only=True):
    """Regions of topics, the largest first."""

    ok: Ok


class Existences(Done):
    """Whether each term is there: false is certain, and null: not all was opened to see it."""

    rows: tuple[Existence, ...]


class Words(Done):
    """Words, those that most memories hold first."""

    rows: tuple[WordCount, ...]


class SuggestedTopics(Done):
    """Topics that memories near to one have, and it has not."""

    rows: tuple[SuggestedTopic, ...]


class CodeContextAnswer(CodeContext, frozen=True, kw_only=True):
    """What a repository is: languages, folders, where it begins, what is used most."""

    ok: Ok


class ReviewAnswer(Review, frozen=True, kw_only=True):
    """Pairs and memories to look at, at most so many of each kind."""

    ok: Ok


class CodeOutlineAnswer(CodeOutline, frozen=True, kw_only=True):
    """The definitions of a file in order, what it imports, and what imports it."""

    ok: Ok


class CodeSymbolsAnswer(SymbolAnswer, frozen=True, kw_only=True):
    """Where a name is defined and used."""

    ok: Ok


class CodeReferencesAnswer(CodeReferences, frozen=True, kw_only=True):
    """The first lines that use a name, by file, and how many do."""

    ok: Ok


class CodeImpactAnswer(CodeImpact, frozen=True, kw_only=True):
    """Who depends on a file or a symbol, the nearest first."""

    ok: Ok


class CodeTextAnswer(CodeText, frozen=True, kw_only=True):
    """Lines of a file, and the hash of all of it."""

    ok: Ok


class Decided(Done):
    """A decision that was carried out. The trash calls it ``group``; empty: it keeps nothing."""

    group: str


class AuditPage(Done):
    """A page of the audit trail, and the totals of all of it."""

    rows: tuple[AuditEvent, ...]
    totals: tuple[AuditTotal, ...]
    next: int | None
    next_url: str | None
    truncated: bool


class ImportJob(Done):
    """How far an import is."""

    job: str
    state: Annotated[str, Meta(extra_json_schema={"enum": list(STATES)})]
    done: Count
    total: Count
    imported: Count
    replaced: Count
    unchanged: Count
    kinds: Annotated[
        dict[str, int],
        Meta(description="How many were imported or replaced, by format or exporting program"),
    ]
    embedding: Annotated[
        tuple[int, ...] | None,
        Meta(description="Of the batch at work: passages that are embedded, and how many it has"),
    ]
    to_embed: Annotated[
        int | None,
        Meta(
            description="How many memories you may search are still to be embedded in the "
            "background; null where none is"
        ),
    ]
    embed_seconds: Annotated[
        float | None, Meta(description="How long that takes, about; null while it is not known")
    ]
    meaning: Annotated[str | None, Meta(description="The same in words")]
    dry_run: bool
    error: str | None
    summary: str | None
    failures: tuple[tuple[str, ...], ...]
    skips: tuple[tuple[str, ...], ...]
    warnings: tuple[tuple[str, ...], ...]
    degraded: tuple[str, ...]
    ids: Annotated[tuple[str, ...], Meta(max_length=LISTED_IDS)]
    job_url: str | UnsetType = UNSET
