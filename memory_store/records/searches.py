"""What a search answers.

Boundary: results and passages hold opened (plain) text. They live for one call, are never cached by
this package and never logged.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict

from memory_store.records.degraded import Degraded
from memory_store.records.explanation import Stage, Verdict
from memory_store.records.visibility import ForSearchers, InPart, UnlessStrict
from memory_store.titles import shown_title

WEAK = "weak"  # the band below the others: where scores are probabilities, less than one half
UNLIKELY = 0.1  # a probability below which the best result is merely the nearest
FAR = 1 / 8  # of the best score: what is below that, and holds no word asked for, is far
NIL = 0.005  # what is below that is shown as 0


class Passage(Struct, frozen=True):
    """A part of an opened memory: character offsets ``start``–``end`` and the text between.

    ``highlights`` are ``(start, end)`` character offsets *within* ``text`` of matching words.
    ``place`` is the heading that most of them stand under: of a document a page or a sheet, of a
    conversation a turn; or the name of the file, where that alone matches. Of source code, ``line``
    and ``end_line`` are its lines, counted from 1, and ``symbol`` is the definition around it.
    """

    start: int
    end: int
    text: str
    highlights: tuple[tuple[int, int], ...] = ()
    place: str | None = None
    line: int | None = None
    end_line: int | None = None
    symbol: str | None = None


class Match(Struct, frozen=True):
    """What a pattern matched: where it begins (``line`` and ``column`` count from 1), the matched
    text, what the holes of a structural pattern stand for, and the line it begins in, as it is
    written (``context``, at most 200 characters around it)."""

    line: int
    column: int
    text: str
    captures: Mapping[str, str] = field(default_factory=dict)
    context: str = ""


class SearchResult(Struct, frozen=True):
    """One row of an answer. Scores are 0–1; ranks count from 1; ``None`` where a leg missed.

    Of source code, ``passages`` are the best that hold anything asked for, at most 3, the best
    first (with a token budget that one alone), and ``line``, ``end_line`` and ``symbol`` are the
    first one's; ``None`` for a note. ``last_author`` and ``last_changed`` (a day) are those of its
    last change, where it was imported with ``--blame``.
    ``matches`` are those of a pattern (literal and structural searches), at most 200, with ``all``
    10,000.
    ``superseded_by`` is the id of the memory that replaced it, ``by`` the assistant that wrote it.
    ``title_highlights`` are as a passage's, in the title as :func:`memory_store.titles.shown_title`
    shows it. They are for a surface that marks them, and no column.
    """

    rank: ForSearchers[int]
    id: ForSearchers[str]
    ref: str | None
    score: ForSearchers[float]
    band: ForSearchers[str | None]
    collection: str
    type: UnlessStrict[str]
    created: UnlessStrict[str]
    topics: tuple[str, ...]
    title: str
    preview: str
    complete: bool
    keyword_rank: ForSearchers[int | None] = None
    topic_rank: ForSearchers[int | None] = None
    vector_rank: ForSearchers[int | None] = None
    vector_score: float | None = None
    fusion_score: ForSearchers[float | None] = None
    rerank_score: float | None = None
    line: int | None = None
    end_line: int | None = None
    symbol: str | None = None
    last_author: str | None = None
    last_changed: str | None = None
    superseded_by: str | None = None
    by: str | None = None
    passages: tuple[Passage, ...] = ()
    matches: tuple[Match, ...] = ()
    title_highlights: tuple[tuple[int, int], ...] = ()

    @property
    def shown_title(self) -> str:
        """The title, or the first words of what is shown of the text; empty without either."""
        return shown_title(self.title, self.preview, self.passages[0].start if self.passages else 0)

    def as_dict(self) -> dict[str, Any]:
        """The row as JSON-ready data: the SQL columns, then passages and matches."""
        values = {name: getattr(self, name) for name in RESULT_COLUMNS}
        passages = [
            asdict(one) | {"highlights": [*map(list, one.highlights)]} for one in self.passages
        ]
        matches = [asdict(one) | {"captures": dict(one.captures)} for one in self.matches]
        return values | {"topics": list(self.topics), "passages": passages, "matches": matches}


RESULT_COLUMNS = tuple(
    name
    for name in SearchResult.__struct_fields__
    if name not in ("passages", "matches", "title_highlights")
)


class SearchResponse(Struct, frozen=True):
    """The whole answer to a search.

    ``opened`` is how many memories were decrypted for it, ``total`` how many were searchable.
    ``topics`` counts topic names over the returned rows, ``types`` likewise; ``facets`` counts
    values of ``type``, ``status``, ``collection``, ``topic`` and ``created`` (months or years) over
    the whole result. ``budget`` says what a token budget was spent on (``None``: there was none).
    ``nearest`` is a sentence where no memory holds a word of the query: the rows are merely near.
    ``also_searched`` maps words of the query that no memory holds to the word that was searched
    instead. ``degraded`` lists what was missing, each line ending in the command that mends it; a
    line is a string with a ``code``, by which a program decides.
    ``explain`` holds what each stage did, in order, ``why`` what became of one memory (where asked
    for).
    ``holding`` is how many memories hold a word of the query, where more than words decides what is
    an answer, too; ``None`` where that was not counted. It is for a page, and not in the JSON.
    ``totals`` are ``matched`` (found by any leg), ``certain`` (results of all pages that are rather
    answers than not; ``None`` where scores are no probabilities), ``reranked``, ``returned``,
    ``opened`` and ``total``.
    """

    query: ForSearchers[str]
    mode: ForSearchers[str]
    rows: InPart[tuple[SearchResult, ...]]
    counts: ForSearchers[str]
    opened: ForSearchers[int]
    total: ForSearchers[int]
    topics: Mapping[str, int] = field(default_factory=dict)
    types: UnlessStrict[Mapping[str, int]] = field(default_factory=dict)
    facets: InPart[Mapping[str, Mapping[str, int]]] = field(default_factory=dict)
    budget: Mapping[str, Any] | None = None
    next: ForSearchers[str | None] = None
    truncated: ForSearchers[bool] = False
    nearest: ForSearchers[str | None] = None
    also_searched: Mapping[str, str] = field(default_factory=dict)
    degraded: InPart[tuple[Degraded, ...]] = ()
    milliseconds: ForSearchers[float] = 0.0
    explain: InPart[tuple[Stage, ...]] = ()
    why: InPart[Verdict | None] = None
    holding: int | None = None
    totals: ForSearchers[Mapping[str, int | None]] = field(default_factory=dict)

    @property
    def certain(self) -> int | None:
        """How many results, of all pages, are rather answers than not."""
        return self.totals.get("certain")

    @property
    def found(self) -> int:
        """How many results there are, of all pages: facets count what the others keep."""
        return sum(self.facets.get("status", {}).values())

    @property
    def in_part(self) -> bool:
        """Whether only the rows of the page were counted, and there are more."""
        return self.next is not None and self.found <= len(self.rows)

    @property
    def far(self) -> frozenset[str]:
        """Ids of results that people see folded: far less likely than the best one, and found by
        neither word nor topic, or shown as 0; all, where even the best is merely the nearest.

        None on a later page: who goes on wants to see them. None where scores are no probabilities.
        """
        if self.certain is None or not self.rows or self.rows[0].rank > 1:
            return frozenset()
        best = max(row.score for row in self.rows)
        return frozenset(
            row.id
            for row in self.rows
            if best < UNLIKELY
            or row.score < NIL
            or (row.score < best * FAR and row.keyword_rank is None and row.topic_rank is None)
        )

    def how_many(self, found: int) -> str:
        """How many results there are in plain words: ``3 certain; 61 may fit``."""
        certain, more = self.certain, "+" if self.in_part else ""
        if certain is None or not (found or more):
            return f"{found:,}{more} result{'' if f'{found}{more}' == '1' else 's'}"
        if certain:
            others = f"{found - certain:,}{more}" if found > certain else more and "more"
            return f"{certain:,} certain{f'; {others} may fit' if others else ''}"
        if self.rows and max(row.score for row in self.rows) < UNLIKELY:
            come = "comes" if f"{found}{more}" == "1" else "come"
            return f"Nothing seems to fit; {found:,}{more} {come} nearest"
        return f"Nothing certain; {found:,}{more} may fit"

    def as_dict(self) -> dict[str, Any]:
        """The response as the JSON API's object (without ``next_url``, which needs a server)."""
        answer: dict[str, Any] = {"ok": True}
        answer |= {
            name: getattr(self, name) for name in self.__struct_fields__ if name != "holding"
        }
        answer["rows"] = [row.as_dict() for row in self.rows]
        answer["facets"] = {name: dict(counts) for name, counts in self.facets.items()}
        answer["also_searched"] = dict(self.also_searched)
        answer["degraded"] = [str(line) for line in self.degraded]
        answer["degraded_codes"] = [str(line.code) for line in self.degraded]
        answer["milliseconds"] = round(self.milliseconds, 3)
        answer["explain"] = [stage.as_dict() for stage in self.explain]
        answer["why"] = None if self.why is None else self.why.as_dict()
        for name in ("explain", "why", "budget"):
            if not answer[name]:
                del answer[name]
        return answer

    @property
    def corrections(self) -> list[str]:
        """One line that says what was searched besides what was typed; none where nothing was."""
        if not self.also_searched:
            return []
        said = [f"{word} (nothing holds {typed})" for typed, word in self.also_searched.items()]
        return [f"also searched: {', '.join(said)}"]

    def remarks(self, usual: Collection[str] = ()) -> list[str]:
        """Lines for people: what the answer rests on, and what was missing but for ``usual``."""
        nearest = [self.nearest] if self.nearest else []
        missing = [f"degraded: {line}" for line in self.degraded if line not in usual]
        return [*self.corrections, *nearest, *missing]

    def _repr_html_(self) -> str:
        from memory_store.notebook import response_table

        return response_table(self)


class Ranking(Struct, frozen=True):
    """The order that a search comes to, of which no answer is made: ``(id, score 0–1)`` pairs, best
    first.

    ``cosines`` say how near each is in meaning (``None``: it was not found by that).
    ``pool`` is how many memories might have been opened, ``opened`` how many were, ``reranked``
    how many a model read.
    """

    results: tuple[tuple[str, float], ...]
    pool: int
    opened: int
    reranked: int = 0
    degraded: tuple[Degraded, ...] = ()
    cosines: tuple[float | None, ...] = ()
