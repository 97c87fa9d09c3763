"""The nouns of the store: plain frozen records that travel between the stages.

Boundary: instances of :class:`Memory`, :class:`SearchResult` and :class:`Passage` hold opened
(plain) text. They live for one call, are never cached by this package and never logged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from memory_store.titles import shown_title

TYPES = (
    "fact",
    "note",
    "preference",
    "decision",
    "task",
    "path",
    "summary",
    "result",
    "code",
)
"""The kinds of memory. Each also exists as ``<type>_done``, for completed ones."""

DONE_SUFFIX = "_done"
MODES = ("hybrid", "keyword", "vector", "literal", "structural", "auto")
STATUSES = ("open", "done", "all")

LIMIT_STANDARD = 32  # Gnosis, "Two Search Modes": up to 32 results
LIMIT_DEEP = 100  # Gnosis, "Two Search Modes": up to 100 results
DEFAULT_LIMIT = 10
ANSWER_SOURCES = 8  # memories for an answer: it is in the first few, or was not found
ANSWER_BUDGET = 6_000  # tokens of them: with instructions and answer they fit a window of 8,192
MAX_QUERY_CHARACTERS = 8_192  # a longer query is an error: it is a document, not a question


@dataclass(frozen=True, slots=True)
class MemoryDraft:
    """What a caller or an importer knows of a memory before the store has it.

    ``None`` means "not said": the store fills in an id, times, a type and a collection.
    Times are ISO 8601 text. ``ref`` is the record's name in its source, ``source`` the source root.
    """

    text: str
    title: str | None = None
    type: str | None = None
    topics: tuple[str, ...] = ()
    collection: str | None = None
    id: str | None = None
    ref: str | None = None
    source: str | None = None
    created: str | None = None
    updated: str | None = None
    valid_from: str | None = None
    valid_to: str | None = None
    supersedes: str | None = None
    parent: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MemoryEdit:
    """A change to one memory: what is ``None`` stays as it was.

    ``valid_from`` and ``valid_to`` are taken away by an empty text. ``add_topics`` and
    ``remove_topics`` change the topics that are there, after ``topics`` has replaced them. With
    ``expected_version`` the change is refused when the memory has another version by then.
    """

    id: str
    text: str | None = None
    title: str | None = None
    type: str | None = None
    topics: tuple[str, ...] | None = None
    add_topics: tuple[str, ...] = ()
    remove_topics: tuple[str, ...] = ()
    metadata: Mapping[str, Any] | None = None
    valid_from: str | None = None
    valid_to: str | None = None
    collection: str | None = None
    expected_version: int | None = None


@dataclass(frozen=True, slots=True)
class Memory:
    """One opened memory. Times are ISO 8601 UTC; ``version`` grows by one with every edit."""

    id: str
    collection: str
    type: str
    title: str
    text: str
    topics: tuple[str, ...]
    created: str
    updated: str
    version: int = 1
    ref: str | None = None
    source: str | None = None
    valid_from: str | None = None
    valid_to: str | None = None
    supersedes: str | None = None
    parent: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The memory as JSON-ready data, keys in a fixed order."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {**values, "topics": list(self.topics), "metadata": dict(self.metadata)}


@dataclass(frozen=True, slots=True)
class SealedMemory(Memory):
    """A memory that was not opened: its id, collection and version, and the type and the times
    where the file has them in clear. All else is empty, and nothing was held against the seals."""


@dataclass(frozen=True, slots=True)
class MemoryHead:
    """What can be said of a memory without opening its body.

    ``content`` is the id of its body. ``topics`` pairs each topic's keyed hash (hex, as in the
    table ``memory_topics``) with the topic.
    """

    id: str
    collection: str
    title: str
    content: str
    topics: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Addition:
    """A memory that was to be added; ``unchanged`` when it was there already, just as given."""

    memory: Memory
    unchanged: bool = False


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Everything a search can be asked for: the CLI's options with underscores.

    ``since``/``until`` are ISO 8601 dates or spans such as ``7d``, ``3w``; ``meta`` holds
    ``(key, value)`` pairs; ``min_score`` is 0–1; ``budget`` is in tokens, ``budget_ms`` in
    milliseconds. ``continue_`` is the ``next`` token of an earlier response. ``expander`` names
    the language model that may word the query in other ways; it is then sent the query's words.
    ``narrow`` holds ``FACET:VALUE`` texts: what of the result is shown, by its facets.
    ``like`` is the id of a memory (or its beginning): others like it are wanted, by themselves or
    together with the query.
    """

    mode: str = "hybrid"
    deep: bool = False
    limit: int = DEFAULT_LIMIT
    collection: tuple[str, ...] = ()
    type: tuple[str, ...] = ()
    topic: tuple[str, ...] = ()
    status: str = "all"
    meta: tuple[tuple[str, str], ...] = ()
    since: str | None = None
    until: str | None = None
    min_score: float | None = None
    narrow: tuple[str, ...] = ()
    recipe: str = "default"
    reranker: str | None = None
    rerank: bool = True
    expander: str | None = None
    expand: bool = True
    sealed: bool = False
    like: str | None = None
    budget: int | None = None
    budget_ms: int | None = None
    continue_: str | None = None
    explain: bool = False
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of an opened memory: character offsets ``start``–``end`` and the text between.

    ``highlights`` are ``(start, end)`` character offsets *within* ``text`` of matching words.
    """

    start: int
    end: int
    text: str
    highlights: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class SearchResult:
    """One row of an answer. Scores are 0–1; ranks count from 1; ``None`` where a leg missed.

    ``title_highlights`` are as a passage's, in the title as :func:`memory_store.titles.shown_title`
    shows it. They are for a surface that marks them, and no column.
    """

    rank: int
    id: str
    ref: str | None
    score: float
    band: str | None
    collection: str
    type: str
    created: str
    topics: tuple[str, ...]
    title: str
    preview: str
    complete: bool
    keyword_rank: int | None = None
    topic_rank: int | None = None
    vector_rank: int | None = None
    vector_score: float | None = None
    fusion_score: float | None = None
    rerank_score: float | None = None
    passages: tuple[Passage, ...] = ()
    title_highlights: tuple[tuple[int, int], ...] = ()

    @property
    def shown_title(self) -> str:
        """The title, or the first words of what is shown of the text; empty without either."""
        return shown_title(self.title, self.preview, self.passages[0].start if self.passages else 0)

    def as_dict(self) -> dict[str, Any]:
        """The row as JSON-ready data, keys in the order of the SQL columns, then passages."""
        values = {name: getattr(self, name) for name in RESULT_COLUMNS}
        values["topics"] = list(self.topics)
        values["passages"] = [
            {
                "start": p.start,
                "end": p.end,
                "text": p.text,
                "highlights": [*map(list, p.highlights)],
            }
            for p in self.passages
        ]
        return values


RESULT_COLUMNS = tuple(
    f.name for f in fields(SearchResult) if f.name not in ("passages", "title_highlights")
)


@dataclass(frozen=True, slots=True)
class StageReport:
    """What one stage of the pipeline did: its name, wall milliseconds, and details as data.

    ``cpu_milliseconds`` is what the whole process spent meanwhile, other searches included.
    """

    stage: str
    milliseconds: float
    details: Mapping[str, Any] = field(default_factory=dict)
    cpu_milliseconds: float = 0.0

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON-ready data."""
        return {
            "stage": self.stage,
            "milliseconds": round(self.milliseconds, 3),
            "cpu_milliseconds": round(self.cpu_milliseconds, 3),
            **self.details,
        }


@dataclass(frozen=True, slots=True)
class SearchResponse:
    """The whole answer to a search.

    ``opened`` is how many memories were decrypted for it, ``total`` how many were searchable.
    ``topics`` counts topic names over the returned rows, ``types`` likewise; ``facets`` counts
    values of ``type``, ``status``, ``collection``, ``topic`` and ``created`` (months or years) over
    the whole result. ``budget`` says what a token budget was spent on (``None``: there was none).
    ``degraded`` lists what was missing, each line ending in the command that mends it.
    ``explain`` holds one report per stage, in order (empty unless asked for). ``holding`` is how
    many memories hold a word of the query, where more than words decides what is an answer, too;
    ``None`` where that was not counted. It is for a page that says so, and not in the JSON.
    """

    query: str
    mode: str
    rows: tuple[SearchResult, ...]
    counts: str
    opened: int
    total: int
    topics: Mapping[str, int] = field(default_factory=dict)
    types: Mapping[str, int] = field(default_factory=dict)
    facets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    budget: Mapping[str, Any] | None = None
    next: str | None = None
    truncated: bool = False
    degraded: tuple[str, ...] = ()
    milliseconds: float = 0.0
    explain: tuple[StageReport, ...] = ()
    why: Mapping[str, Any] | None = None
    holding: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """The response as the JSON API's object (without ``next_url``, which needs a server)."""
        answer: dict[str, Any] = {
            "ok": True,
            "query": self.query,
            "mode": self.mode,
            "rows": [row.as_dict() for row in self.rows],
            "counts": self.counts,
            "opened": self.opened,
            "total": self.total,
            "topics": dict(self.topics),
            "types": dict(self.types),
            "facets": {name: dict(counts) for name, counts in self.facets.items()},
            "next": self.next,
            "truncated": self.truncated,
            "degraded": list(self.degraded),
            "milliseconds": round(self.milliseconds, 3),
        }
        if self.explain:
            answer["explain"] = [report.as_dict() for report in self.explain]
        if self.budget is not None:
            answer["budget"] = dict(self.budget)
        if self.why is not None:
            answer["why"] = dict(self.why)
        return answer

    def _repr_html_(self) -> str:
        from memory_store.notebook import response_table

        return response_table(self)


@dataclass(frozen=True, slots=True)
class Ranking:
    """The order that a search comes to, for evaluation: ``(id, score 0–1)`` pairs, best first.

    ``pool`` is how many memories might have been opened, ``opened`` how many were, ``reranked``
    how many a model read.
    """

    results: tuple[tuple[str, float], ...]
    pool: int
    opened: int
    reranked: int = 0
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reference:
    """What a judgement may call a memory: its ``id``, and its ``ref`` in its source.

    Memories of equal ``content`` (a number) hold the same text: a search returns one of them.
    """

    id: str
    ref: str | None
    content: int


@dataclass(frozen=True, slots=True)
class Citation:
    """A memory that an answer was written from, under the number by which the answer cites it."""

    number: int
    id: str
    ref: str | None
    title: str
    created: str


@dataclass(frozen=True, slots=True)
class Answer:
    """A language model's answer to a question, out of what ``search`` found.

    ``text`` and ``model`` are ``None`` when nothing was found, and no model was called.
    ``sources`` are the memories that the model was given, ``cited`` the numbers of those its text
    names; ``removed`` counts citations of sources that it was not given, which were taken out.
    """

    question: str
    search: SearchResponse
    text: str | None = None
    model: str | None = None
    sources: tuple[Citation, ...] = ()
    cited: tuple[int, ...] = ()
    removed: int = 0

    @property
    def citations(self) -> tuple[Citation, ...]:
        """The memories that the text cites, by number."""
        return tuple(source for source in self.sources if source.number in self.cited)

    def as_dict(self) -> dict[str, Any]:
        """The answer as JSON-ready data; the memories that were given, with whether it cites them.

        Of the search it has the counts and what was missing, not the rows.
        """
        return {
            "ok": True,
            "question": self.question,
            "answer": self.text,
            "model": self.model,
            "sources": [
                {**asdict(source), "cited": source.number in self.cited} for source in self.sources
            ],
            "removed_citations": self.removed,
            "opened": self.search.opened,
            "total": self.search.total,
            "degraded": list(self.search.degraded),
        }


@dataclass(frozen=True, slots=True)
class CollectionInfo:
    """A collection the opened principal can read: random ``id``, opened ``name``, ``memories``.

    ``analyser`` is ``auto``, a language code or ``code``; ``embedder`` the name of the model of its
    vectors, its own or the vault's (``None`` before the first vector), as ``own_model`` says.
    """

    id: str
    name: str
    memories: int
    created: str
    analyser: str = "auto"
    embedder: str | None = None
    own_model: bool = False


LISTED_IDS = 1_000
"""Of one import: 36 KB of JSON, and more than anybody looks through one by one."""


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The outcome of an import. ``failures`` and ``skips`` pair a name with its reason.

    ``ids`` are those of the memories that were written, new or replaced, in the order in which
    they were: the first :data:`LISTED_IDS` of them.
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

    def summary(self) -> str:
        """``imported N, unchanged N, replaced N, skipped N, failed N`` (and pruned, if any)."""
        line = (
            f"imported {self.imported}, unchanged {self.unchanged}, replaced {self.replaced}, "
            f"skipped {self.skipped}, failed {self.failed}"
        )
        return f"{line}, pruned {self.pruned}" if self.pruned else line
