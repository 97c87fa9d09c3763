"""Searching an opened vault: what a search runs on, its models loaded late.

Boundary: the context hands out what opens memories; only :mod:`memory_store.search.opening` and
what names a memory to explain use it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from msgspec.structs import replace

from memory_store.actions.reads import open_all, resolve
from memory_store.errors import ModelUnavailableError, NotFoundError, SupersededError
from memory_store.records import Memory, Ranking, SearchRequest, SearchResponse
from memory_store.search.legs.more_like_this import unknown
from memory_store.search.query.language import resolve_mode
from memory_store.session.held_vectors import HeldVectors
from memory_store.session.opened_vault import OpenVault
from memory_store.vault.page_keys import PageKeys

if TYPE_CHECKING:
    from memory_store.models.embedder import Embedder
    from memory_store.models.reranker import Reranker
    from memory_store.search.context import SearchContext
    from memory_store.session.embedders import Embedders

MOST_BEGINNINGS = 8  # of one search: between two of them somebody has to write a whole segment
T = TypeVar("T")


def search(
    vault: OpenVault,
    embedders: Embedders,
    context: Callable[[], SearchContext],
    wanted: SearchRequest,
) -> SearchResponse:
    """One search. Raises BadInputError naming the parameter, LockedError after a lock.

    The first search of all needs the index and the model: each is loaded beside the other.
    """
    started = monotonic()  # a time limit counts the loading of the index and of the models
    _check_reranker(wanted.reranker)
    if wanted.why is not None:
        with contextlib.suppress(NotFoundError):  # the answer itself says so
            wanted = replace(wanted, why=resolve(vault, wanted.why))
    wanted = _with_whole_id(vault, wanted)
    first = not vault.index_loaded and _is_embedded(wanted)
    with embedders.loading_ahead() if first else contextlib.nullcontext():
        from memory_store.search.pipeline import run

        response = _on_newest(context, lambda one: run(one, wanted, started=started))
    return replace(response, degraded=_runnable(response.degraded, vault))


def _is_embedded(request: SearchRequest) -> bool:
    return bool(request.query.strip()) and resolve_mode(request) in ("hybrid", "vector")


def rank(
    vault: OpenVault,
    context: Callable[[], SearchContext],
    wanted: SearchRequest,
    depth: int,
) -> Ranking:
    """The order of the same search to ``depth``. Raises as :func:`search`."""
    from memory_store.search.pipeline import rank as ranked

    _check_reranker(wanted.reranker)
    wanted = _with_whole_id(vault, wanted)
    ranking = _on_newest(context, lambda one: ranked(one, wanted, depth))
    return replace(ranking, degraded=_runnable(ranking.degraded, vault))


def _on_newest(context: Callable[[], SearchContext], search: Callable[[SearchContext], T]) -> T:
    """What a search finds; begun anew where what it was about to read was replaced meanwhile."""
    for _ in range(MOST_BEGINNINGS - 1):
        with contextlib.suppress(SupersededError):
            return search(context())
    return search(context())


def search_context(
    vault: OpenVault,
    vectors: HeldVectors,
    embedder: Callable[..., Embedder],
    expander: str | None,
    model: str | None = None,
) -> SearchContext:
    """One consistent view of the vault for one search. ``embedder`` loads a collection's model,
    ``expander`` names the language model that was chosen, ``model`` the vault's usual one."""
    from memory_store.models.expander import chosen_expander
    from memory_store.models.places import absent_command
    from memory_store.search.context import SearchContext

    snapshot, settings = vault.snapshot(), vault.settings
    keyring, expansions = vault.keyring, vault.expansions

    def open_ordinals(ordinals: Sequence[int]) -> list[Memory]:
        return open_all(vault, snapshot.ids(ordinals))

    return SearchContext(
        snapshot=snapshot,
        vector_index=vectors.late_index(snapshot) if snapshot.vectors else None,
        blinder=lambda collection: keyring.of(collection).blinder,
        embedder=embedder,
        reranker=_load_reranker,
        open_memories=open_ordinals,
        collection_names=vault.collections.names(),
        page_keys=lambda: PageKeys.of(keyring, vault.limits),
        unnamed=vault.unnamed,
        indexed_with={c: settings.of(c) for c in snapshot.collections},
        own_models=frozenset(one.collection for one in settings.choices if one.embedder),
        find_expansion=lambda *question: expansions.find(vault.reader(), *question),
        keep_expansion=expansions.keep,
        expander=chosen_expander(expander),
        database=str(vault.path),
        fetch_model="" if snapshot.vectors else absent_command(model),
        strict=vault.strict,
    )


def _with_whole_id(vault: OpenVault, options: SearchRequest) -> SearchRequest:
    """The options with the whole id of the memory that others should be like."""
    if options.like is None:
        return options
    try:
        return replace(options, like=resolve(vault, options.like))
    except NotFoundError:
        raise unknown(options.like) from None


def _check_reranker(name: str | None) -> None:
    """Raise BadInputError for a name that no model has. A merely absent one degrades the search."""
    if name is None:
        return
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


def _runnable(lines: Sequence[str], vault: OpenVault) -> tuple[str, ...]:
    """Lines of ``degraded`` whose commands can be run as they stand."""
    command = "memory-store doctor"
    return tuple(line.replace(f"{command} DB", f"{command} {vault.path}") for line in lines)
