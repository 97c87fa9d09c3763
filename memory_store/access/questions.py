"""What an asker may ask of a vault: decided here, once for a request.

Boundary: every search for an asker who is not the key's holder goes through :func:`search`: pages,
JSON, CSV, table filters and SQL. Without the decrypt grant it refuses the questions that only
opened text can answer (a regular expression reads a text letter by letter), and of the answer it
returns what :mod:`memory_store.access.answers` lets through. What words, phrases and topics confirm
is the search grant's own.

What is shown must not follow from opened text either: an order or a score by the name of a file, by
a phrase's spelling or by a reranker's reading would confirm guesses bit by bit. So without the
decrypt grant every search is a sealed one; ``degraded`` says what it goes without. Of what it
returns only those rows are opened that the asker may read: the view that it searches has no key for
the others.

Nor may it follow from similarities: those to a thousand queries are a vector's coordinates, from
which its text can be guessed word by word. An asker who may not read gets places, never
similarities: the whole search is ordered and scored by places in the legs' lists.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from memory_store.access.answers import (
    COUNTED_UNLESS_STRICT,
    model_error_shown,
    shown_to_readers,
    shown_unread,
)
from memory_store.access.grants import Grants, NotPermittedError
from memory_store.errors import BadInputError, ModelError, NotFoundError
from memory_store.models.expander import chosen_expander
from memory_store.records import SearchRequest, SearchResponse
from memory_store.records.degraded import Degraded
from memory_store.scopes import Scope
from memory_store.search.degraded import BY_PLACES, NOT_READ
from memory_store.search.query.language import ParsedQuery, parse, refuse_nothing, resolve_mode
from memory_store.search.query.more_like_this import unknown
from memory_store.search.recipes import recipe_named

if TYPE_CHECKING:
    from memory_store.store import MemoryStore

STRICT = "strict"  # the profile that seals types and times as well
UNREAD_MODES = ("hybrid", "keyword", "vector")
"""Modes whose answer follows from keyed hashes and vectors, so that they need no reader."""


def search(store: MemoryStore, grants: Grants, request: SearchRequest) -> SearchResponse:
    """The answer to a search as an asker with ``grants`` may see it.

    The option ``why`` takes an id or its beginning (looking for a ref opens every memory's head);
    whatever else it names is as unknown as what the asker may not read, and what cannot be an id is
    answered so whether or not there is such a ref.
    Raises :class:`NotPermittedError` naming the missing permission, and what the store raises.
    """
    if not grants.search:
        raise NotPermittedError("searching needs the permission hybrid-search")
    refuse_nothing(request)
    strict = store.profile == STRICT
    readable = grants.search & grants.decrypt
    unread = None if grants.decrypt.covers(grants.search) else _Unread.of(request)
    if unread is not None and grants.decrypt.covers(_asked(store, grants, unread)):
        unread = None
    wanted = request
    if unread is not None:
        narrow_to = store.limited_to(readable).collections.names() if readable else {}
        _refuse_to_read(unread, strict=strict, narrow_to=[*narrow_to.values()])
        wanted = replace(wanted, sealed=True)
    inside = store.limited_to(
        readable if unread is None else grants.search, readable=grants.decrypt
    )
    _refuse_folders(wanted.reranker)
    if request.all_ and not grants.models:
        raise NotPermittedError("all: opening whatever it takes is for the holder of the key")
    if not grants.models:
        _refuse_other_models(store, wanted.expander)
        wanted = replace(wanted, expander=None)
    if wanted.like:
        wanted = replace(wanted, like=_whole_id(inside, wanted.like))
    about = wanted.why
    if about is not None:
        wanted = replace(wanted, why=None)
        with contextlib.suppress(NotFoundError):
            wanted = replace(wanted, why=inside.find_id(about, refs=False))
    try:
        if unread is None:
            response = inside.search(wanted)
        else:
            response = inside.search_by_places(wanted, unread.parsed)
    except ModelError as error:
        raise model_error_shown(error, owner=grants.audit) from None
    if about is not None and wanted.why is None:
        from memory_store.search.explain.verdict import no_id

        response = replace(response, why=no_id(about))
    if unread is None:
        return shown_to_readers(response, owner=grants.audit)
    shown = store.limited_to(readable).present([row.id for row in response.rows])
    response = replace(response, degraded=(*response.degraded, *unread.left_out))
    return shown_unread(response, strict=strict, readable=shown)


class _Unread(Struct, frozen=True):
    """A request of an asker who may not read all that may be searched, taken apart once.

    ``parsed`` is ``None`` in a mode that only a reader may use.
    """

    request: SearchRequest
    mode: str
    parsed: ParsedQuery | None

    @classmethod
    def of(cls, request: SearchRequest) -> _Unread:
        """Raises :class:`BadInputError` for a query that says nothing."""
        mode = resolve_mode(request)
        return cls(request, mode, parse(request) if mode in UNREAD_MODES else None)

    @property
    def collections(self) -> tuple[str, ...]:
        """The collections that it names."""
        return self.request.collection if self.parsed is None else self.parsed.collections

    @property
    def left_out(self) -> list[Degraded]:
        """What a search goes without that opens nothing for its asker, as lines."""
        asked, words = self.request, bool(self.parsed and self.parsed.reading)
        lines = [BY_PLACES] if asked.like or words else []
        wanted = asked.rerank and not (asked.sealed or asked.like) and self.mode == "hybrid"
        if wanted and words and recipe_named(asked.recipe).rerank:
            lines.append(NOT_READ)
        return lines


def _asked(store: MemoryStore, grants: Grants, unread: _Unread) -> Scope:
    """The collections that a search is about: all that may be searched, or those that it names.

    By their ids, and where the asker may read them by their names. What names none of them is
    left to the search to refuse.
    """
    names = store.limited_to(grants.search, readable=grants.decrypt).collections.names()
    if not unread.collections:
        return Scope.of(names)
    wanted = {one.casefold() for one in unread.collections}
    return Scope.of(one for one, name in names.items() if wanted & {one, name.casefold()})


def _whole_id(store: MemoryStore, like: str) -> str:
    """The id of the memory that others should be like: by its id or the id's beginning alone."""
    try:
        return store.find_id(like, refs=False)
    except NotFoundError:
        raise unknown(like) from None


def _refuse_folders(reranker: str | None) -> None:
    """A model's name will do: an asker over HTTP or SQL must not load files of their choice."""
    if reranker and (set(reranker) & {"/", "\\"} or reranker.startswith((".", "~"))):
        raise BadInputError("reranker: a model's name expected, not a folder", "reranker")


def _refuse_other_models(store: MemoryStore, expander: str | None) -> None:
    """The server's own language model, or none: a query is not sent wherever its asker likes."""
    if expander is not None and expander != chosen_expander(store.expander):
        raise NotPermittedError(
            "expander: the language model is chosen in this server's configuration; expand=0 "
            "searches without it"
        )


def _refuse_to_read(unread: _Unread, *, strict: bool, narrow_to: Sequence[str]) -> None:
    """Refuse what only opened text can answer; ``narrow_to`` names the collections with such."""
    refused = _only_readers(unread, strict=strict)
    if refused is None:
        return
    parameter, reason = refused
    names = " or ".join(map(repr, sorted(narrow_to)))
    way_out = f", or a search of the collection {names} alone" if names else ""
    raise NotPermittedError(
        f"{parameter}: {reason}; this needs the permission hybrid-decrypt{way_out}"
    )


def _only_readers(unread: _Unread, *, strict: bool) -> tuple[str, str] | None:
    """The parameter that only opened text can answer, and why; ``None`` if there is none."""
    asked, parsed = unread.request, unread.parsed
    if parsed is None:
        return "mode", f"a {unread.mode} search reads the text of memories"
    if asked.conditions:
        return ("meta" if asked.meta else "by"), "metadata is sealed"
    if asked.as_of or asked.superseded:
        return ("as_of" if asked.as_of else "superseded"), "how long a memory is valid is sealed"
    if asked.budget is not None:
        return "budget", "the length of texts is sealed"
    if not strict:
        return None
    narrowed = {one.partition(":")[0] for one in asked.narrow}
    by_status = asked.status != "all" or bool(narrowed & COUNTED_UNLESS_STRICT)
    if parsed.types or parsed.since or parsed.until or by_status:
        return "type, status, since, until", "types and times are sealed in a strict vault"
    return None
