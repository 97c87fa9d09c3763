"""Searching an opened vault: what a search runs on, its models loaded late.

Boundary: the context hands out what opens memories; only :mod:`memory_store.search.opening` and
what names a memory to explain use it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from memory_store.actions.action import Opened, action
from memory_store.actions.reads import open_all, resolve
from memory_store.actions.vaults import embedded
from memory_store.configuration import typed_vault
from memory_store.errors import ModelUnavailableError, NotFoundError
from memory_store.records import Memory, Ranking, SearchRequest, SearchResponse, search_request
from memory_store.records.degraded import Code, Degraded, from_text
from memory_store.search.degraded import EmbeddingNow
from memory_store.search.query.language import resolve_mode
from memory_store.search.query.more_like_this import unknown
from memory_store.session.code_files import descriptions_at, outlined_files, symbols_at
from memory_store.session.extras import folders, lexicons, sources, trigrams
from memory_store.session.opened_vault import OpenVault
from memory_store.vault.audit_events import SEARCH
from memory_store.vault.page_keys import PageKeys

if TYPE_CHECKING:
    from memory_store.index.snapshot import Snapshot
    from memory_store.index.vectors import VectorIndex
    from memory_store.models.reranker import Reranker
    from memory_store.search.answer.previews import Marker
    from memory_store.search.context import SearchContext
    from memory_store.search.query.language import ParsedQuery


def _counted(found: SearchResponse) -> tuple[int, int]:
    return found.opened, len(found.rows)


@action(SEARCH, writes=False, counts=_counted)
def search(opened: Opened, /, query: str | SearchRequest = "", **options: Any) -> SearchResponse:
    """Search. Keywords are the fields of :class:`SearchRequest`, or it is given whole.

    Raises BadInputError naming the parameter, LockedError after a lock.
    """
    request = search_request(query, **options)
    found = _with_time_left(opened, _elsewhere(opened, "search", request) or _here(opened, request))
    warning = opened.vault.first_warning()
    if not warning:
        return found
    return replace(found, degraded=(from_text(Code.FILE, warning), *found.degraded))


@action(SEARCH, writes=False, counts=_counted)
def search_by_places(
    opened: Opened, request: SearchRequest, parsed: ParsedQuery | None = None
) -> SearchResponse:
    """The same for a caller who may not read: order and scores follow from places alone.

    From how near a memory is to chosen queries one can compute its vector, and from that its gist.
    The similarities themselves are still in the response. ``parsed`` is the request's query, where
    the caller had to take it apart. Raises as :func:`search`.
    """
    found = _elsewhere(opened, "search_by_places", request)
    found = found or _here(opened, request, by_places=True, parsed=parsed)
    return _with_time_left(opened, found)


def _with_time_left(opened: Opened, found: SearchResponse) -> SearchResponse:
    """The answer that says of missing vectors when they will be there, if they are being made."""
    background = opened.background
    if background is None or not any(map(_lacks_vectors, found.degraded)):
        return found
    background.look()
    lacking = embedded(opened)
    if not background.running or not lacking.left:
        return found
    now = EmbeddingNow(lacking.left, background.seconds_left(lacking.words_left))
    lines = [now.mends(line) if _lacks_vectors(line) else line for line in found.degraded]
    return replace(found, degraded=tuple(lines))


def _lacks_vectors(line: Degraded) -> bool:
    return line.code is Code.NOT_EMBEDDED


def _elsewhere(opened: Opened, method: str, request: SearchRequest) -> SearchResponse | None:
    return None if opened.elsewhere is None else opened.elsewhere(opened.views, method, request)


def _here(opened: Opened, request: SearchRequest, **known: Any) -> SearchResponse:
    """One search in this process.

    ``known`` are the fields of its context that the caller knows. The first search of all needs
    the index and the model: each is loaded beside the other.
    """
    started = monotonic()  # a time limit counts the loading of the index and of the models
    vault, wanted = opened.vault, _checked(opened.vault, request)
    if wanted.why is not None:
        with contextlib.suppress(NotFoundError):  # the answer itself says so
            wanted = replace(wanted, why=resolve(vault, wanted.why))
    first = not vault.index_loaded and _is_embedded(wanted)
    with opened.embedders.loading_ahead() if first else contextlib.nullcontext():
        from memory_store.search.pipeline import run

        response = run(replace(context(opened), **known), wanted, started=started)
    return replace(response, degraded=_runnable(response.degraded, vault))


def _is_embedded(request: SearchRequest) -> bool:
    return bool(request.query.strip()) and resolve_mode(request) in ("hybrid", "vector")


@action(None, writes=False)
def rank(
    opened: Opened, /, query: str | SearchRequest, *, depth: int = 100, **options: Any
) -> Ranking:
    """The order of the same search to ``depth``, for evaluation. Raises as :func:`search`."""
    from memory_store.search.pipeline import rank as ranked

    wanted = _checked(opened.vault, search_request(query, **options))
    ranking = ranked(context(opened), wanted, depth)
    return replace(ranking, degraded=_runnable(ranking.degraded, opened.vault))


@action(None, writes=False)
def resembling(
    opened: Opened, text: str, title: str = "", *, most: int = 5
) -> list[tuple[str, float]]:
    """The memories that say nearly the same as a text, by id, with the share of shingles (two
    neighbouring words) that both hold, the nearest first. Opens nothing."""
    from memory_store.search.resemblance import resembling as found_in

    view = context(opened)
    return [(view.snapshot.id(place), share) for place, share in found_in(view, title, text, most)]


@action(None, writes=False)
def marker(opened: Opened, request: SearchRequest, memory: Memory) -> Marker:
    """What finds in parts of a memory's text what a search marks there. Nothing is searched.

    Raises BadInputError naming the parameter.
    """
    from memory_store.search.answer.marks import marker as found

    return found(context(opened), request, memory)


@action(None, writes=False)
def search_context(opened: Opened) -> SearchContext:
    """One consistent view of the vault for one search."""
    return context(opened)


@action(None, writes=False)
def vector_index(opened: Opened, snapshot: Snapshot | None = None) -> VectorIndex:
    """The vector index over a snapshot (the newest unless given), made once for each."""
    return opened.vectors.index(snapshot or opened.vault.snapshot())


def context(opened: Opened) -> SearchContext:
    """One consistent view of the vault, and what loads its models."""
    from memory_store.models.expander import chosen_expander
    from memory_store.search.context import SearchContext

    vault = opened.vault
    snapshot, settings = vault.snapshot(late=opened.late), vault.settings
    keyring, expansions = vault.keyring, vault.expansions
    mine = (vault.asker,) if vault.asker else ()

    def open_ordinals(ordinals: Sequence[int]) -> list[Memory]:
        return open_all(vault, snapshot.ids(ordinals), snapshot)

    return SearchContext(
        snapshot=snapshot,
        vector_index=opened.vectors.late_index(snapshot) if snapshot.vectors else None,
        blinder=lambda collection: keyring.of(collection).blinder,
        embedder=opened.embedders.load,
        earlier_embedder=opened.embedders.load_earlier,
        earlier_models={one.fingerprint: one.embedder for one in settings.earlier},
        reranker=_load_reranker,
        open_memories=open_ordinals,
        collection_names=vault.collections.known_names(),
        page_keys=lambda: PageKeys.of(keyring, vault.limits),
        unnamed=vault.unnamed,
        indexed_with={c: settings.of(c) for c in snapshot.collections},
        own_models=frozenset(one.collection for one in settings.choices if one.embedder),
        fitted={one.model: one.numbers for one in settings.rankings},
        find_expansion=lambda *asked: expansions.find(vault.reader(), *mine, *asked),
        keep_expansion=lambda content, *asked: expansions.keep(content, *mine, *asked),
        fetch_model=lambda: _fetch_command(opened),
        expander=chosen_expander(opened.expander),
        typed_vault=lambda: typed_vault(vault.path),
        strict=settings.strict,
        lexicon=lambda wanted: lexicons(vault, snapshot, wanted),
        trigrams=lambda: trigrams(vault, snapshot),
        code_files=lambda: outlined_files(vault, snapshot),
        symbols=lambda ordinal: symbols_at(vault, snapshot, ordinal),
        descriptions=lambda ordinal: descriptions_at(vault, snapshot, ordinal),
        sources=lambda wanted: sources(vault, snapshot, wanted),
        folders=lambda: folders(vault, snapshot),
    )


def _fetch_command(opened: Opened) -> str:
    """The command that puts the vault's model on this machine; empty where it is."""
    from memory_store.models.places import absent_command

    return absent_command(opened.embedders.name())


def _checked(vault: OpenVault, request: SearchRequest) -> SearchRequest:
    """The request, its models known, with the whole id of the memory that others should be like."""
    if request.reranker is not None:
        _check_reranker(request.reranker)
    if request.like is None:
        return request
    try:
        return replace(request, like=resolve(vault, request.like))
    except NotFoundError:
        raise unknown(request.like) from None


def _check_reranker(name: str) -> None:
    """Raise BadInputError for a name that no model has. A merely absent one degrades the search."""
    from memory_store.models.maxsim import NAME as MAXSIM
    from memory_store.models.reranker import locate_reranker

    if name == MAXSIM:  # runs on the embedding model
        return
    with contextlib.suppress(ModelUnavailableError):
        locate_reranker(name)


def _load_reranker(name: str | None) -> Reranker:
    """Imported when first asked for: a keyword search need not wait for it."""
    from memory_store.models.reranker import load_reranker

    return load_reranker(name)


def _runnable(lines: Sequence[Degraded], vault: OpenVault) -> tuple[Degraded, ...]:
    """Lines of ``degraded`` whose commands can be run as they stand."""
    doctor = "memory-store doctor"
    unnamed = f"{doctor} DB"

    def whole(text: str) -> str:
        typed = typed_vault(vault.path) if unnamed in text else ""
        return text.replace(unnamed, f"{doctor}{typed}")

    return tuple(line.with_parts(whole(line.sentence), whole(line.command)) for line in lines)
