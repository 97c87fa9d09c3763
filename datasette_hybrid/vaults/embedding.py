"""What is said of memories that are being embedded in the background.

Boundary: counts and times alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from memory_store.host import NO_VECTORS, PARTLY, UNEMBEDDED

COMMAND = "memory-store reindex"
SOME_HAVE = PARTLY.partition("{")[0]
NONE_HAS = tuple(
    line.partition("Try:")[0].rpartition("{}")[2].rstrip() for line in (UNEMBEDDED, NO_VECTORS)
)


@dataclass(frozen=True)
class EmbeddingNow:
    """How many memories are still to be embedded, and for how many seconds (``None``: unknown)."""

    left: int
    seconds: float | None

    def __str__(self) -> str:
        """The same in plain words."""
        are = "1 memory is" if self.left == 1 else f"{self.left:,} memories are"
        them = "it" if self.left == 1 else "them"
        when = "soon" if self.seconds is None else f"in {_span(self.seconds)}"
        return f"{are} found by words only so far. A search by meaning finds {them} {when}."

    def mends(self, line: str) -> str:
        """A line about missing vectors, ending in what mends them now instead of in a command."""
        sentence = line.partition(COMMAND)[0].removesuffix("Try: ").rstrip()
        left = "" if self.seconds is None else f", {_span(self.seconds)} left"
        return f"{sentence} What is missing is being embedded now{left}."


def lacks_vectors(line: str) -> bool:
    """Whether a line for ``degraded`` says that memories have no vectors yet."""
    return line.startswith(SOME_HAVE) or any(says in line for says in NONE_HAS)


def _span(seconds: float) -> str:
    if seconds < 45:
        return "less than a minute"
    minutes = round(seconds / 60) or 1
    if minutes < 90:
        return f"about {minutes} minute{'' if minutes == 1 else 's'}"
    return f"about {round(seconds / 3600)} hours"
