"""Opening: the one place where a search turns candidates into text, and counts them.

Boundary: everything before this module knows hashes, ranks and vectors only; nothing after it
opens anything. What is opened lives as long as the search and is never cached or logged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from memory_store.records import Memory, SealedMemory
from memory_store.search.candidates import Candidate, Scored
from memory_store.search.context import SearchContext
from memory_store.search.query.language import ParsedQuery
from memory_store.search.query.word_matcher import spelled
from memory_store.search.trace import Trace

BATCH = 32  # memories opened at a time when it is not known how many will be needed


class Opening:
    """Opens candidates of one search, each at most once. ``opened`` is how many so far.

    Those that the caller may not read stay sealed, and do not count.
    """

    def __init__(self, context: SearchContext) -> None:
        snapshot = context.snapshot
        self._open_memories = context.open_memories
        self._window = snapshot.any_window if snapshot.earlier_models else snapshot.window
        self._held: dict[int, Memory] = {}
        self._sealed = 0
        self._let_go = 0

    @property
    def opened(self) -> int:
        return len(self._held) + self._let_go - self._sealed

    def open(self, candidates: Sequence[Candidate]) -> list[Scored]:
        """``candidates`` in their order, less those deleted since the search began."""
        sealed = [c for c in candidates if c.ordinal not in self._held]
        if sealed:
            ordinals = {candidate.id: candidate.ordinal for candidate in sealed}
            memories = self._open_memories(list(ordinals.values()))
            self._held |= {ordinals[memory.id]: memory for memory in memories}
            self._sealed += sum(isinstance(memory, SealedMemory) for memory in memories)
        held = self._held
        return [
            Scored(c, c.share, held[c.ordinal], passage=self._nearest(c))
            for c in candidates
            if c.ordinal in held
        ]

    def _nearest(self, one: Candidate) -> tuple[int, int] | None:
        return None if one.window is None else self._window(one.ordinal, one.window)

    def close_all_but(self, kept: Iterable[int]) -> None:
        """Let go of the texts of all but those ordinals; what was opened is counted still."""
        wanted = set(kept)
        self._let_go += sum(ordinal not in wanted for ordinal in self._held)
        self._held = {n: memory for n, memory in self._held.items() if n in wanted}

    def open_until(
        self, candidates: Sequence[Candidate], keep: Callable[[Memory], bool], wanted: int
    ) -> Iterator[Scored]:
        """The first ``wanted`` candidates that ``keep`` accepts, opening no more than it takes."""
        position = 0
        while wanted > 0 and position < len(candidates):
            batch = candidates[position : position + min(wanted, BATCH)]
            position += len(batch)
            for one in self.open(batch):
                if keep(one.opened):
                    wanted -= 1
                    yield one


def conditions(
    parsed: ParsedQuery, meta: Sequence[tuple[str, str]], trace: Trace
) -> Callable[[Memory], bool] | None:
    """What only the text can show: exact spelling of phrases, and metadata.

    Keyed pairs have already kept the memories whose *stems* stand side by side. ``None`` when
    the query asks for nothing of the kind. ``trace`` notes what a memory failed.
    """
    required = [(phrase.text, spelled(phrase.text)) for phrase in parsed.required]
    excluded = [(phrase.text, spelled(phrase.text)) for phrase in parsed.excluded]
    if not required and not excluded and not meta:
        return None

    def refusal(memory: Memory) -> str | None:
        texts = (memory.title, memory.text)
        for phrase, is_in in required:
            if not any(map(is_in, texts)):
                return f'"{phrase}" is spelled otherwise there'
        for phrase, is_in in excluded:
            if any(map(is_in, texts)):
                return f"it holds {phrase!r}, which is excluded"
        for key, value in meta:
            if not _meta_matches(memory.metadata.get(key), value):
                return f"its metadata does not say {key}={value}"
        return None

    def keep(memory: Memory) -> bool:
        reason = refusal(memory)
        if reason is not None:
            trace.drop(memory.id, reason)
        return reason is None

    return keep


def _meta_matches(found: object, wanted: str) -> bool:
    """Whether a metadata value reads as ``wanted``; a list matches by any of its items."""
    if isinstance(found, (list, tuple)):
        return any(_meta_matches(item, wanted) for item in found)
    if isinstance(found, bool):
        return wanted.casefold() == str(found).casefold()
    return found is not None and str(found).casefold() == wanted.casefold()
