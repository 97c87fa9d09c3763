"""What a search goes without, as lines for ``degraded`` that end in what mends it.

Boundary: counts, and names of collections and models. A caller who may not read names gets
:func:`for_searchers`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from msgspec import Struct

from memory_store.errors import ModelError
from memory_store.records.degraded import TRY, Code, Degraded, from_text

if TYPE_CHECKING:
    from memory_store.index.snapshot import Mask, Snapshot
    from memory_store.models.embedder import Embedder
    from memory_store.search.candidates import Scope
    from memory_store.search.context import SearchContext

REINDEX = "memory-store reindex"
NO_VECTORS = "no memory has a vector yet, meaning is not searched."
NO_VECTOR = "like: this memory has no vector yet, so others are compared by words and topics."
CHANGING = "{}: {:,} of {:,} memories are compared by {} by now, the others still by {}."
LEFT_BEHIND = (
    "{}: {:,} of {:,} memories have vectors of {} alone, and are found by words till then."
)
STALE = "{} is indexed with earlier settings in part (memories: {:,})."
UNEMBEDDED = "{} has no vectors, meaning is not searched there."
UNREAD = "{}: {} does not read {}, so these memories are found by words, hardly by meaning."
UNSUITED = "{}: {} was not made for {}, so it finds less by meaning than it could."
UNREAD_QUERY = "meaning: {} does not read this query."
PARTLY = "meaning: {:,} of {:,} memories. The others are found by words."
A_PATH = re.compile(r"(?<![\w/:.])(~|[A-Za-z]:)?[/\\].*", re.DOTALL)
NO_RERANKER = "no reranker, "
HIDDEN = "in part of the collections meaning is not searched as it should be; see doctor"
SEALED = "sealed: "  # how a line begins that a sealed search brings with it, and how it ends
WITHOUT_SEALED = "Search without sealed"
NOT_AS_QUOTED = Degraded(
    Code.QUOTES, "quotes: nothing holds what is quoted as typed, so its words were searched for"
)
QUOTES_OF_A_TEXT = Degraded(
    Code.QUOTES, "quotes: in a text this long they are no condition; its words were searched for"
)
PAIRS_DECIDE = Degraded(
    Code.SEALED,
    f"{SEALED}phrases were matched by their stems, not their spelling. {WITHOUT_SEALED}",
)
FILES_ARE_SEALED = Degraded(
    Code.SEALED,
    f"{SEALED}the recipe's rules for files were left out, for names of files are sealed. "
    f"{WITHOUT_SEALED}",
)
TO_READERS = "This needs the permission hybrid-decrypt"
BY_PLACES = Degraded(
    Code.PERMISSION, f"order and scores show which is nearer, not how near. {TO_READERS}"
)
NOT_READ = Degraded(
    Code.PERMISSION, f"results keep the order of fusion, for a reranker reads texts. {TO_READERS}"
)


class EmbeddingNow(Struct, frozen=True):
    """How many memories are still to be embedded, and for how many seconds (``None``: unknown)."""

    left: int
    seconds: float | None

    def __str__(self) -> str:
        """The same in plain words."""
        are = "1 memory is" if self.left == 1 else f"{self.left:,} memories are"
        them = "it" if self.left == 1 else "them"
        when = "soon" if self.seconds is None else f"in {span(self.seconds)}"
        return f"{are} found by words only so far. A search by meaning finds {them} {when}."

    def mends(self, line: Degraded) -> Degraded:
        """A line about missing vectors, ending in what mends them now instead of in a command."""
        left = "" if self.seconds is None else f", {span(self.seconds)} left"
        now = f"What is missing is being embedded now{left}."
        return line.with_parts(f"{line.sentence} {now}", command="")


def span(seconds: float) -> str:
    """``less than a minute``, ``about 3 minutes``."""
    if seconds < 45:
        return "less than a minute"
    minutes = round(seconds / 60) or 1
    if minutes < 90:
        return f"about {minutes} minute{'' if minutes == 1 else 's'}"
    return f"about {round(seconds / 3600)} hours"


def missing_model(error: ModelError, scope: Scope, context: SearchContext) -> Degraded:
    """The line for ``degraded`` when queries cannot be embedded by the model of a scope."""
    text = _mended(error)
    if scope.whole and scope.chooser is None:
        return from_text(Code.MODEL, text)
    model = context.indexed_with[scope.collections[0]].embedder
    named = named_collections(scope.collections, context)
    text = f"{named} cannot be searched by meaning without {model}: {text}"
    return from_text(Code.MODEL, text, names=True)


def other_model(scope: Scope, context: SearchContext) -> Degraded:
    """The line for ``degraded`` where a memory's vectors cannot be compared with others."""
    named = named_collections(scope.collections, context)
    why = f"{named} cannot be compared by meaning, for its vectors come from another model"
    return Degraded(Code.MODEL, why, names=True)


def _mended(error: ModelError) -> str:
    """That a model is missing, ending in what mends it."""
    message = str(error).rstrip(".")
    return message if error.remedy in message else f"{message}. {TRY}{error.remedy}"


def missing_reranker(error: ModelError) -> Degraded:
    """The line for ``degraded`` when there is no reranker, ending in what mends it."""
    text = f"{NO_RERANKER}results keep the order of fusion: {_mended(error)}"
    return from_text(Code.NO_RERANKER, text)


def unread_by_reranker(model: str) -> Degraded:
    """The line for ``degraded`` when a reranker does not read the letters of a query."""
    said = f"{model} does not read this query: results keep the order of fusion"
    return Degraded(Code.NOT_RERANKED, said)


def without_reranker(recipe: str, mode: str) -> Degraded:
    """The line for ``degraded`` when a reranker was asked for where none reads."""
    where = f"the recipe {recipe}" if mode == "hybrid" else f"a {mode} search"
    return Degraded(Code.NOT_RERANKED, f"reranker: {where} ranks without one")


def out_of_time(candidates: int) -> Degraded:
    """The line for ``degraded`` when the time limit was over before anything could be read."""
    return Degraded(Code.TIME, f"budget_ms: no time to rerank any of {candidates} candidates")


def shortfall(read: int, candidates: int) -> Degraded:
    """The line for ``degraded`` when the time limit let only some be read."""
    said = f"budget_ms: reranked {read} of {candidates} candidates in time"
    return Degraded(Code.TIME, said)


def cut_texts(cut: int, characters: int) -> Degraded:
    """The line for ``degraded`` when a reranker reads whole memories, and some are longer."""
    which = "1 memory is" if cut == 1 else f"{cut:,} memories are"
    said = f"the reranker read the first {characters:,} characters: {which} longer"
    return Degraded(Code.CUT_TEXTS, said)


def stale_lines(mask: Mask, context: SearchContext) -> tuple[Degraded, ...]:
    """What is to be said of searched collections whose settings changed since they were indexed."""
    snapshot = context.snapshot
    stale = snapshot.stale & mask & ~_changing(snapshot)
    if not stale.any():
        return ()
    reindex = f"{REINDEX}{context.typed_vault()}"
    return tuple(
        Degraded(
            Code.STALE,
            STALE.format(named_collections([collection], context), count),
            reindex,
            names=True,
        )
        for collection, count in _counted(stale, snapshot).items()
    )


def changing_lines(
    mask: Mask, context: SearchContext, asked: Collection[str]
) -> tuple[Degraded, ...]:
    """What is to be said of searched memories that still have vectors of an earlier model.

    ``asked`` are the fingerprints of the models that embedded the query.
    """
    snapshot = context.snapshot
    if not snapshot.earlier_models:
        return ()
    reindex, totals = f"{REINDEX}{context.typed_vault()}", _counted(mask, snapshot)
    lines = []
    for model in snapshot.earlier_models:
        held = snapshot.with_vectors_of(model)
        left = mask & ~held.worked_out("unembedded", held.unembedded)
        name = context.earlier_models.get(model, "an earlier model")
        for collection, count in _counted(left, snapshot).items():
            named, total = named_collections([collection], context), totals[collection]
            now = context.indexed_with[collection].embedder
            said = CHANGING.format(named, total - count, total, now, name)
            if model not in asked:
                said = LEFT_BEHIND.format(named, count, total, name)
            lines.append(Degraded(Code.NOT_EMBEDDED, said, reindex, names=True))
    return tuple(lines)


def unembedded_lines(mask: Mask, context: SearchContext) -> tuple[Degraded, ...]:
    """What is to be said of searched memories that have no vectors, and of whole collections.

    Nothing of those that are stale: that is said already.
    """
    snapshot = context.snapshot
    lacking = mask & ~snapshot.stale & snapshot.worked_out("unembedded", snapshot.unembedded)
    if not lacking.any():
        return ()
    embedded = {part.collection for part in snapshot.parts if part.segment.windows}
    counts = _counted(lacking, snapshot)
    reindex = f"{REINDEX}{context.typed_vault()}"
    lines = [
        Degraded(
            Code.NOT_EMBEDDED,
            UNEMBEDDED.format(named_collections([collection], context)),
            reindex,
            names=True,
        )
        for collection in counts
        if collection not in embedded
    ]
    if not embedded.isdisjoint(counts):
        total = int(mask.sum())
        have = total - int((mask & snapshot.worked_out("unembedded", snapshot.unembedded)).sum())
        lines.append(Degraded(Code.NOT_EMBEDDED, PARTLY.format(have, total), reindex))
    return tuple(lines)


def read_it(database: str, collections: Iterable[str] = ()) -> str:
    """The command that gives the multilingual model to ``collections`` (their names), or to all
    where none is named."""
    named = "".join(f" --collection {shlex.quote(one)}" for one in collections)
    return f"{REINDEX}{database}{named} --embedder multilingual --get"


def unread_line(model: str, named: str, languages: Iterable[str], command: str) -> Degraded:
    """What is to be said where the model of that name does not read ``languages`` (in English).

    ``named`` is what :func:`named_collections` makes of the collections that hold them, ``command``
    what mends it (:func:`read_it`).
    """
    said = UNREAD.format(named, model, " or ".join(languages))
    return Degraded(Code.UNREAD, said, command, names=True)


def unread_query(embedder: Embedder, command: str) -> Degraded:
    """What is to be said where a model does not read the letters of a query."""
    return Degraded(Code.UNREAD, UNREAD_QUERY.format(embedder.name), command)


def unsuited_line(
    embedder: Embedder, named: str, languages: Iterable[str], command: str
) -> Degraded:
    """The same where it reads the letters of ``languages``, and was made for others."""
    said = UNSUITED.format(named, embedder.name, " or ".join(languages))
    return Degraded(Code.UNREAD, said, command, names=True)


def named_collections(collections: Iterable[str], context: SearchContext) -> str:
    """``collection 'a'``, or ``collection 'a', 'b'``."""
    names = (repr(context.collection_names.get(one, one)) for one in collections)
    return f"collection {', '.join(names)}"


def for_searchers(lines: Iterable[Degraded]) -> tuple[Degraded, ...]:
    """Lines of ``degraded`` for those who may not read, whose searches are sealed ones."""
    return tuple(dict.fromkeys(map(_for_searchers, lines)))


def _for_searchers(line: Degraded) -> Degraded:
    """A line without names of collections, and without an advice that is not for such a caller."""
    if line.names:
        return Degraded(line.code, HIDDEN)
    if line.code is Code.SEALED:
        said = line.sentence.removeprefix(SEALED).replace(WITHOUT_SEALED, TO_READERS)
        return line.with_parts(said)
    return line


def without_commands(lines: Iterable[Degraded]) -> tuple[Degraded, ...]:
    """Lines of ``degraded`` for those who run no command here: no command, and no path."""
    shown = (line.with_parts(A_PATH.sub("…", line.sentence), command="") for line in lines)
    return tuple(dict.fromkeys(shown))


def _changing(snapshot: Snapshot) -> Mask:
    """Which documents have vectors of an earlier model, of which :func:`changing_lines` tells."""
    import numpy as np

    changing = np.zeros(snapshot.size, dtype=np.bool_)
    for model in snapshot.earlier_models:
        held = snapshot.with_vectors_of(model)
        changing |= ~held.worked_out("unembedded", held.unembedded)
    return changing


def _counted(mask: Mask, snapshot: Snapshot) -> dict[str, int]:
    import numpy as np  # the command line shows these lines and needs none of it

    counts = np.bincount(snapshot.collection_codes[mask], minlength=len(snapshot.collections))
    return {name: int(n) for name, n in zip(snapshot.collections, counts, strict=True) if n}
