"""JSON schemas of what the API takes and answers, made from the records themselves.

A field that is added to a record is in the description of the API from then on. A record here adds
to one of the store's what only a server knows.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from memory_store import host
from memory_store.host import (
    NO,
    RECIPES,
    ROLES,
    YES,
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
    shown_to_searchers,
)
from memory_store.records import (
    LISTED_IDS,
    Decision,
    Existence,
    ExistsRequest,
    Landscape,
    Memory,
    MemoryChange,
    MemoryDraft,
    MemoryLinks,
    Related,
    Review,
    SearchRequest,
    SearchResponse,
    SearchResult,
    SuggestedTopic,
    TrashEntry,
    WordCount,
    WordsRequest,
)

from ..collections import ACTIONS, CollectionView
from ..memories.posted import MANY
from ..search.api import COMPACT_KEYS
from ..uploads.jobs import STATES

Schema = dict[str, Any]
What = Any
"""A record, or a tuple of records of which it is one."""

Ok = Annotated[bool, Meta(extra_json_schema={"const": True})]
Role = Annotated[str, Meta(extra_json_schema={"enum": list(ROLES)})]
Name = Annotated[str, Meta(min_length=1, max_length=200)]
Count = Annotated[int, Meta(ge=0)]
Rows = Meta(min_length=1, max_length=MANY)
Drafts = Annotated[tuple[MemoryDraft, ...], Rows]


# -- requests -----------------------------------------------------------------------------


class NewMemories(Struct, forbid_unknown_fields=True):
    """Many new memories."""

    memories: Drafts


class NamedMemoryChange(MemoryChange, frozen=True, forbid_unknown_fields=True):
    """A change, and the memory that it is for."""


class MemoryChanges(Struct, forbid_unknown_fields=True):
    """Changes to many memories."""

    memories: Annotated[tuple[NamedMemoryChange, ...], Rows]


class Ids(Struct, forbid_unknown_fields=True):
    """Memories by their ids."""

    ids: Annotated[tuple[str, ...], Rows]


class Restoration(Struct):
    """What is put back: memories by their ids, or all of one change by its ``group``."""

    ids: Annotated[tuple[str, ...], Rows] | UnsetType = UNSET
    group: str | UnsetType = UNSET


class TrashIds(Struct):
    """Memories whose versions in the trash are erased; without ``ids``: all of it."""

    ids: Annotated[tuple[str, ...], Rows] | UnsetType = UNSET


class SearchName(Struct):
    """The name of a saved search."""

    name: Annotated[str, Meta(min_length=1, max_length=100)]


class NewSearch(SearchName):
    """A search that is saved under a name."""

    search: SearchRequest


class Publication(Struct):
    """Where a memory is copied to: a collection's name or id."""

    collection: Annotated[str, Meta(min_length=1)]


class NewCollection(Struct, forbid_unknown_fields=True):
    """A new collection, open or the asker's own."""

    name: Name
    private: bool | UnsetType = UNSET


class CollectionChange(Struct, forbid_unknown_fields=True):
    """Another name, other members."""

    name: Name | UnsetType = UNSET
    members: Annotated[
        Annotated[Mapping[str, Role | None], Meta(min_length=1)] | UnsetType | None,
        Meta(description="Roles by actor, null for those who go; null opens the collection"),
    ] = UNSET


class RoleChange(Struct, forbid_unknown_fields=True):
    """A member's role."""

    role: Role


# -- answers ------------------------------------------------------------------------------


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
    explain: InPart[tuple[Stages, ...]] = ()
    why: InPart[Verdict | None] = None


class CompactRow(Row, frozen=True):
    """A result as a language model is given it, scores 0–100."""


class CompactAnswer(Struct, array_like=True, forbid_unknown_fields=True):
    """Results, counts and topics."""

    rows: tuple[CompactRow, ...]
    counts: str
    topics: tuple[tuple[str, int], ...]


class Memories(Struct):
    """Memories. Null is what their asker may not see."""

    ok: Ok
    rows: tuple[Memory, ...]


class Links(MemoryLinks, frozen=True, kw_only=True):
    """What a memory links to, what links to it, and what is not there."""

    ok: Ok


class RelatedMemories(Struct):
    """The memories nearest to one, nearest first."""

    ok: Ok
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


class AddedMemories(Struct):
    """What was added."""

    ok: Ok
    rows: tuple[AddedMemory, ...]


class Done(Struct):
    """It is done."""

    ok: Ok


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


class Collections(Struct):
    """Collections."""

    ok: Ok
    rows: tuple[Collection, ...]


class Member(Struct):
    """An actor's role in a collection; null: none any more."""

    ok: Ok
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


class AuditPage(Struct):
    """A page of the audit trail, and the totals of all of it."""

    ok: Ok
    rows: tuple[AuditEvent, ...]
    totals: tuple[AuditTotal, ...]
    next: int | None
    next_url: str | None
    truncated: bool


class ImportJob(Struct):
    """How far an import is."""

    ok: Ok
    job: str
    state: Annotated[str, Meta(extra_json_schema={"enum": list(STATES)})]
    done: Count
    total: Count
    imported: Count
    replaced: Count
    unchanged: Count
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


# -- schemas ------------------------------------------------------------------------------

REQUESTS = {
    one.__name__
    for one in (
        *(SearchRequest, MemoryDraft, MemoryChange, NamedMemoryChange),
        *(Decision, ExistsRequest, WordsRequest),
    )
}
"""Records in which null is "not said"."""

WITHHELD = (Row, CompactRow, Memory, AddedMemory)
"""Records in which null is what their asker may not see."""

SOMETIMES = {"SearchAnswer": {"explain", "why", "budget"}}
LEFT_OUT = {
    "Row": {"title_highlights"},
    "CompactRow": {*SearchResult.__struct_fields__} - {*COMPACT_KEYS},
    "SearchAnswer": {"holding"},
    "MemoryChange": {"id"},
}
"""Fields of a record that its JSON may lack, and those that it never has."""

MEANT: Mapping[str, Schema] = {
    "meta": {"type": "object", "additionalProperties": {"type": "string"}},
    "recipe": {"enum": list(RECIPES)},
}
IN_QUERY: Mapping[str, Schema] = {
    "meta": {"type": "array", "items": {"type": "string", "pattern": "^[^=]+="}},
    "narrow": {"items": {"type": "string", "pattern": "^[a-z]+:"}},
}
"""Options of a search that a JSON body and a query string spell in their own way."""


class Described:
    """The schemas of records, and of what they hold: ``components`` by name."""

    def __init__(self, whats: Iterable[What]) -> None:
        records = [one for what in whats for one in _alternatives(what)]
        found, self.components = msgspec.json.schema_components(
            records, ref_template="#/components/schemas/{name}"
        )
        self._schemas = dict(zip(records, found, strict=True))
        for name, schema in self.components.items():
            schema.pop("title", None)
            schema["description"] = _plain(schema["description"])
            if "properties" in schema:
                _as_sent(name, schema)
        for record in WITHHELD:
            properties = self.components[record.__name__]["properties"]
            for name in properties.keys() - shown_to_searchers(record, strict=True):
                properties[name] = nullable(properties[name])

    def of(self, what: What) -> Schema:
        """The schema of a record, or of one of several."""
        (first, *more) = (self._schemas[one] for one in _alternatives(what))
        return {"anyOf": [first, *more]} if more else first


def _alternatives(what: What) -> Sequence[Any]:
    return what if isinstance(what, tuple) else (what,)


def _as_sent(name: str, schema: Schema) -> None:
    """Say of a record's fields which are always there, and where null may stand."""
    properties, required = schema["properties"], {*schema.get("required", ())}
    for left_out in LEFT_OUT.get(name, ()):
        properties.pop(left_out, None)
    for field, one in properties.items():
        if "default" not in one:
            continue
        del one["default"]
        if name in REQUESTS and field != "q":
            properties[field] = nullable({**one, **MEANT.get(field, {})})
        elif name not in REQUESTS:
            required.add(field)
    kept = [one for one in properties if one in required - SOMETIMES.get(name, set())]
    schema["required"] = kept


def _plain(docstring: str) -> str:
    return inspect.cleandoc(docstring).replace("``None``", "null").replace("``", "`")


def nullable(schema: Schema) -> Schema:
    """The schema, or null."""
    if "anyOf" not in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    null = {"type": "null"}
    return {**schema, "anyOf": [*(one for one in schema["anyOf"] if one != null), null]}


def parameter(name: str, schema: Schema, description: str) -> Schema:
    """A parameter in an address."""
    return {"name": name, "in": "query", "description": description, "schema": schema}


def options(*names: str) -> tuple[Schema, ...]:
    """Options of a search as parameters."""
    (_,), found = msgspec.json.schema_components([SearchRequest])
    made = []
    for name in names:
        schema = found["SearchRequest"]["properties"][name]
        description = schema.pop("description")
        del schema["default"]
        schema = schema.get("anyOf", [schema])[0]
        if schema.get("type") == "boolean":
            schema = {"enum": sorted((YES | NO) - {""})}
        schema |= {**MEANT, **IN_QUERY}.get(name, {})
        made.append(parameter(name, schema, description))
    return tuple(made)
