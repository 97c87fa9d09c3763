"""What a language model answers to a question, and from which memories.

Boundary: an answer quotes opened text. It lives for one call, is never cached by this package and
never logged.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from memory_store.records.searches import SearchResponse

ANSWER_SOURCES = 8  # memories for an answer: it is in the first few, or was not found

ANSWER_BUDGET = 6_000  # tokens of them: with instructions and answer they fit a window of 8,192


class Citation(Struct, frozen=True):
    """A memory that an answer was written from, under the number by which the answer cites it."""

    number: int
    id: str
    ref: str | None
    title: str
    created: str


class Answer(Struct, frozen=True):
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
            "nearest": self.search.nearest,
            "degraded": [str(line) for line in self.search.degraded],
            "degraded_codes": [str(line.code) for line in self.search.degraded],
        }
