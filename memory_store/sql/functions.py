"""SQL functions over a store: ``hybrid_search``, ``memory_text``, ``topic_hash``, ``rrf``.

Boundary: these functions can be called by anybody who may run SQL, from every connection they
are registered on. They hold no grant of their own: each call asks ``resolve`` what its caller may
do *now*, and without an answer returns nothing (``[]`` or NULL). What leaves without the decrypt
grant is settled in :mod:`memory_store.sql.permitted`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from memory_store.records import (
    BadInputError,
    LockedError,
    MemoryStoreError,
    NotAVaultError,
    NotFoundError,
    SearchResponse,
)
from memory_store.scopes import EVERYTHING, NOTHING, Scope
from memory_store.sql import permitted
from memory_store.sql.options import search_options

if TYPE_CHECKING:
    from memory_store.store import MemoryStore

NO_ROWS = "[]"
RRF_K = 60.0  # Cormack, Clarke & Büttcher, SIGIR 2009; also Gnosis and QMD


@dataclass(frozen=True, slots=True)
class Grants:
    """What a caller may do with one vault: in which collections find, read and change memories.

    ``audit`` is whether they may read the audit trail. ``models`` is whether they may choose the
    language model that their query is sent to: remote ones cost money, and see the query. Who only
    asks through somebody's server may not. ``create`` is whether they may make collections,
    ``manage`` whose members they choose.
    """

    search: Scope = NOTHING
    decrypt: Scope = NOTHING
    write: Scope = NOTHING
    audit: bool = False
    models: bool = False
    create: bool = False
    manage: Scope = NOTHING

    def __or__(self, other: Grants) -> Grants:
        return Grants(
            self.search | other.search,
            self.decrypt | other.decrypt,
            self.write | other.write,
            self.audit or other.audit,
            self.models or other.models,
            self.create or other.create,
            self.manage | other.manage,
        )

    def __bool__(self) -> bool:
        return bool(self.search or self.decrypt or self.write or self.audit)


NO_GRANTS = Grants()
ALL_GRANTS = Grants(
    search=EVERYTHING, decrypt=EVERYTHING, write=EVERYTHING, create=True, manage=EVERYTHING
)
KEY_HOLDER = replace(ALL_GRANTS, audit=True, models=True)
"""Whoever opened the vault with its key, on their own machine."""


@dataclass(frozen=True, slots=True)
class StoreAndGrants:
    """An open store (``None``: locked), what the caller may do, and how long a search may take."""

    store: MemoryStore | None
    grants: Grants
    budget_ms: int | None = None


Resolve = Callable[[str | None], StoreAndGrants]
"""From a database's name (``None``: the connection's own) to the store behind it.

Raises :class:`NotAVaultError` when there is none of that name.
"""


class Connection(Protocol):
    """The part of ``sqlite3.Connection`` used here; pysqlite3's is another class."""

    def create_function(
        self, name: str, narg: int, func: Callable[..., Any], /, *, deterministic: bool = False
    ) -> None: ...

    def create_aggregate(self, name: str, n_arg: int, aggregate_class: Any, /) -> None: ...


def register(connection: Connection, resolve: Resolve) -> None:
    """Add the functions to ``connection``. Cheap: nothing is opened or loaded before a call."""

    def hybrid_search(query: Any, second: Any = None) -> str | None:
        return _answered(lambda: _search(resolve, query, second, _rows))

    def hybrid_explain(query: Any, second: Any = None) -> str | None:
        return _answered(lambda: _search(resolve, query, second, _explanation))

    def memory_text(memory_id: Any) -> str | None:
        return _memory_text(resolve, memory_id)

    def topic_hash(text: Any, collection: Any = None) -> str | None:
        return _topic_hash(resolve, text, collection)

    for function, counts in (
        (hybrid_search, (1, 2)),
        (hybrid_explain, (1, 2)),
        (memory_text, (1,)),
        (topic_hash, (1, 2)),
    ):
        for count in counts:
            connection.create_function(function.__name__, count, function)
    for count in (1, 2, 3):
        connection.create_aggregate("rrf", count, ReciprocalRankFusion)


class ReciprocalRankFusion:
    """The aggregate ``rrf(rank [, k [, weight]])``: the sum of ``weight ÷ (k + rank)``.

    Ranks count from 1. A NULL rank (a list that missed the row) adds nothing; NULL when no list
    found it.
    """

    def __init__(self) -> None:
        self.score: float | None = None

    def step(self, rank: float | None, k: float | None = RRF_K, weight: float | None = 1.0) -> None:
        """Add one list's rank of the row."""
        if rank is None:
            return
        share = (1.0 if weight is None else weight) / ((RRF_K if k is None else k) + rank)
        self.score = share + (self.score or 0.0)

    def finalize(self) -> float | None:
        """The fused score of the row."""
        return self.score


def _search(
    resolve: Resolve,
    query: Any,
    second: Any,
    render: Callable[[SearchResponse, StoreAndGrants], list[dict[str, Any]]],
) -> str | None:
    if query is None:
        return None
    try:
        values = _second_argument(second)
        database = values.pop("database", None)
        if database is not None and not isinstance(database, str):
            raise BadInputError("database: a database's name expected", "database")
        options = search_options(values)
        found = resolve(database)
    except MemoryStoreError:
        if not _may_search(resolve):
            return NO_ROWS  # what is wrong is said to those who may ask
        raise
    if found.store is None or not found.grants.search:
        return NO_ROWS
    if found.budget_ms is not None:
        asked = options.get("budget_ms")
        options["budget_ms"] = min(found.budget_ms, asked) if asked else found.budget_ms
    options["explain"] = render is _explanation or bool(options.get("explain"))
    store = found.store.limited_to(found.grants.search)
    response = permitted.search(store, found.grants, str(query), options)
    return json.dumps(render(response, found), ensure_ascii=False)


def _may_search(resolve: Resolve) -> bool:
    """Whether the asker may search the connection's own vault (there being none hides nothing)."""
    try:
        found = resolve(None)
    except NotAVaultError:
        return True
    return found.store is not None and bool(found.grants.search)


def _second_argument(second: Any) -> dict[str, Any]:
    """The options of a call: a limit (a number, or its digits from a form field) or JSON."""
    if second is None or second == "":
        return {}
    if isinstance(second, int):
        return {"limit": second}
    text = second if isinstance(second, str) else ""
    if text.strip().isdigit():
        return {"limit": text}
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise BadInputError("the second argument is a limit or a JSON object of options", "options")
    return values


def _rows(response: SearchResponse, found: StoreAndGrants) -> list[dict[str, Any]]:
    strict = found.store is None or found.store.profile == permitted.STRICT
    return [permitted.row_data(row, strict=strict) for row in response.rows]


def _explanation(response: SearchResponse, _: StoreAndGrants) -> list[dict[str, Any]]:
    stages: list[dict[str, Any]] = replace(response, rows=()).as_dict().get("explain", [])
    if response.why is not None:
        stages.append({"stage": "why", "milliseconds": 0.0, "why": dict(response.why)})
    if response.degraded:
        stages.append({"stage": "degraded", "milliseconds": 0.0, "lines": [*response.degraded]})
    return stages


def _answered(call: Callable[[], str | None]) -> str | None:
    """The answer of ``call``; a refusal as an array of one object, since SQLite hides errors.

    (Every exception reaches the user as "user-defined function raised exception", and
    ``json_each()`` with ``value ->> 'error'`` must not stumble over the refusal.)
    """
    try:
        return call()
    except LockedError:
        return NO_ROWS
    except MemoryStoreError as error:
        message = str(error)
        status = 403 if isinstance(error, permitted.NotPermittedError) else 400
        refusal = {"ok": False, "error": message, "errors": [message], "status": status}
        return json.dumps([refusal], ensure_ascii=False)


def _memory_text(resolve: Resolve, memory_id: Any) -> str | None:
    if not isinstance(memory_id, str):
        return None
    try:
        found = resolve(None)
        if found.store is None or not found.grants.decrypt:
            return None
        return found.store.limited_to(found.grants.decrypt).get(memory_id, refs=False).text
    except (NotAVaultError, NotFoundError, BadInputError, LockedError):
        return None


def _topic_hash(resolve: Resolve, text: Any, collection: Any) -> str | None:
    if text is None:
        return None
    try:
        found = resolve(None)
        if found.store is None or not found.grants.search:
            return None
        store = found.store.limited_to(found.grants.search)
        return store.topic_hash(str(text), None if collection is None else str(collection))
    except (NotAVaultError, NotFoundError, BadInputError, LockedError):
        return None
