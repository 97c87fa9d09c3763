"""SQL functions over a store: ``hybrid_search``, ``memory_text``, ``memory_links`` and more.

Boundary: these functions can be called by every actor who may run SQL, from every connection they
are registered on. They hold no grant of their own: each call asks ``resolve`` what its caller may
do *now*, and without an answer returns nothing (``[]``, no rows, or NULL). What leaves without the
decrypt grant is settled in :mod:`memory_store.access`. SQLite puts none of it into a file.
"""

from __future__ import annotations

import contextlib
import operator
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from msgspec import Struct, json, to_builtins
from msgspec.structs import replace

from memory_store import access
from memory_store.access import Grants
from memory_store.actions.code_tables import OF_SYMBOLS, OF_USES, Rows
from memory_store.errors import (
    BadInputError,
    BusyError,
    LockedError,
    MemoryStoreError,
    NotAVaultError,
    NotFoundError,
    StorageError,
)
from memory_store.records import RESULT_COLUMNS, SearchResponse, read_request
from memory_store.records.code import CodeReference, CodeSymbol
from memory_store.records.words import ExistsRequest
from memory_store.sql.function_tables import CodeTable, FunctionTable
from memory_store.sql.garbage import nothing_collected
from memory_store.sql.table_function import Asked, TableFunctionUnavailable, add_table_function
from memory_store.sqlite import sqlite3
from memory_store.text.plain_json import read_json, write_json

if TYPE_CHECKING:
    from memory_store.store import Code, MemoryStore

RRF_K = 60.0  # Cormack, Clarke & Büttcher, SIGIR 2009; also Gnosis and QMD
STATUS: tuple[tuple[type[MemoryStoreError], int], ...] = (
    (access.NotPermittedError, 403),
    (BusyError, 429),
    (StorageError, 503),
)
"""What refusals and faults are in HTTP; the others are the caller's mistake, 400."""

NAME_ONE = """name the one to search, as in hybrid_search('…', '{"database": "notes"}')"""
NULL = (NotAVaultError, NotFoundError, BadInputError, LockedError)
"""Refusals of a function of one value that are NULL."""

T = TypeVar("T")

Answer = Callable[[], SearchResponse]


class StoreAndGrants(Struct, frozen=True):
    """An open store (``None``: locked), what the caller may do, and how long a search may take.

    ``run`` runs a search where and when there is room for it, or raises :class:`BusyError`.
    """

    store: MemoryStore | None
    grants: Grants
    budget_ms: int | None = None
    run: Callable[[Answer], SearchResponse] = operator.call

    def searched(self) -> MemoryStore | None:
        """What the caller may search, and read of it; ``None`` for one who may not, or not now."""
        if self.store is None or not self.grants.search:
            return None
        return self.store.limited_to(self.grants.search, readable=self.grants.decrypt)

    def read(self) -> MemoryStore | None:
        """What the caller may read; ``None`` for one who may not, or not now."""
        if self.store is None or not self.grants.decrypt:
            return None
        return self.store.limited_to(self.grants.decrypt)


class _Found(Struct, frozen=True):
    """An answer, and whether the vault is one that seals types and times."""

    response: SearchResponse
    strict: bool


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

    def execute(self, sql: str, /) -> Any: ...


def register(connection: Connection, resolve: Resolve, *, table: bool = True) -> None:
    """Add the functions over what ``resolve`` finds to one connection."""
    HybridFunctions(resolve, table=table).register(connection)


class HybridFunctions:
    """The functions over what ``resolve`` finds, for one connection or many.

    ``hybrid_search``, ``code_symbols`` and ``code_references`` are tables, too, unless ``table``
    says otherwise or this Python cannot have table functions: selecting from them is then SQLite's
    own error.
    """

    def __init__(self, resolve: Resolve, *, table: bool = True) -> None:
        self._resolve = resolve
        self._tables = (
            FunctionTable(
                "hybrid_search",
                RESULT_COLUMNS,
                {"query": "what to search for is missing", "options": None},
                self._found,
            ),
            CodeTable("code_symbols", CodeSymbol, OF_SYMBOLS, self._symbols),
            CodeTable("code_references", CodeReference, OF_USES, self._uses),
        )
        self._with_tables = table
        self._functions: tuple[tuple[str, Callable[..., Any], tuple[int, ...]], ...] = (
            ("hybrid_search", self.hybrid_search, (1, 2)),
            ("hybrid_explain", self.hybrid_explain, (1, 2)),
            ("memory_text", self.memory_text, (1,)),
            ("memory_links", self.memory_links, (1,)),
            ("code_symbols", self.code_symbols, (0, 1)),
            ("code_references", self.code_references, (0, 1)),
            ("topic_hash", self.topic_hash, (1, 2)),
            ("hybrid_exists", self.hybrid_exists, (1,)),
        )
        if FREED_WITHOUT_LOCK:
            _kept.append(self)

    def register(self, connection: Connection) -> None:
        """Add them to a connection. Cheap: nothing is opened or loaded before a call.

        What the connection sorts, groups or keeps for later stays in memory from now on: more than
        2 MB of texts SQLite would write to a file in the temporary folder, as they are.
        """
        connection.execute("pragma temp_store = memory")
        for name, function, counts in self._functions:
            for count in counts:
                connection.create_function(name, count, function)
        for count in (1, 2, 3):
            connection.create_aggregate("rrf", count, ReciprocalRankFusion)
        if self._with_tables:
            with contextlib.suppress(TableFunctionUnavailable):  # the doctor says why
                for one in self._tables:
                    add_table_function(connection, one)

    def hybrid_search(self, query: Any, second: Any = None) -> str | None:
        """The rows as a JSON array; a refusal as an array of one object."""
        if query is None:
            return None
        return _answered(lambda: _rows(self._search(query, second)))

    def _found(self, query: Any, options: Any) -> list[dict[str, Any]]:
        """A blank query without filters finds nothing: a form that is not filled in yet is no
        mistake."""
        if query is None:
            return []
        try:
            return _rows(self._search(query, options))
        except BadInputError as error:
            if error.parameter == "q" and not str(query).strip():
                return []
            raise

    def hybrid_explain(self, query: Any, second: Any = None) -> str | None:
        """What each stage did, as a JSON array; a refusal as an array of one object."""
        if query is None:
            return None
        return _answered(lambda: _explanation(self._search(query, second, explain=True)))

    def memory_text(self, memory_id: Any) -> str | None:
        """The whole text of a memory that the caller may read."""
        return self._of_memory(memory_id, lambda store, one: store.get(one, refs=False).text)

    def memory_links(self, memory_id: Any) -> str | None:
        """What a memory links to and what links to it, as JSON, of what the caller may read."""
        return self._of_memory(
            memory_id, lambda store, one: write_json(store.links(one, refs=False).as_dict())
        )

    def _of_memory(self, memory_id: Any, ask: Callable[[MemoryStore, str], str]) -> str | None:
        with contextlib.suppress(*NULL):
            store = self._resolve(None).read() if isinstance(memory_id, str) else None
            return None if store is None else ask(store, memory_id)
        return None

    def code_symbols(self, name: Any = None) -> str | None:
        """The definitions of source code that the caller may read, all or those of a name, as a
        JSON array; NULL for one who may not read."""
        return _json_or_null(lambda: self._symbols(name, Asked()))

    def code_references(self, name: Any = None) -> str | None:
        """The lines that use a name which is defined in source code, likewise."""
        return _json_or_null(lambda: self._uses(name, Asked()))

    def _symbols(self, name: Any, asked: Asked) -> Rows[CodeSymbol] | None:
        """``None`` for a caller who may not read, as in :meth:`_uses`."""
        columns = {column for column, _ in asked.order} | asked.columns
        counted = not columns or "references" in columns
        return self._of_code(
            lambda code: code.every_symbol(
                name=name, equal=asked.equal, order=asked.order, counted=counted
            )
        )

    def _uses(self, name: Any, asked: Asked) -> Rows[CodeReference] | None:
        return self._of_code(
            lambda code: code.every_use(name=name, equal=asked.equal, order=asked.order)
        )

    @nothing_collected()
    def _of_code(self, rows: Callable[[Code], Rows[T]]) -> Rows[T] | None:
        store = self._resolve(None).read()
        return None if store is None else rows(store.code)

    def topic_hash(self, text: Any, collection: Any = None) -> str | None:
        """The keyed hash under which the vault files a topic."""
        with contextlib.suppress(*NULL):
            if text is not None and (store := self._resolve(None).searched()) is not None:
                return store.topic_hash(str(text), None if collection is None else str(collection))
        return None

    @nothing_collected()
    def hybrid_exists(self, term: Any) -> int | None:
        """1 where a memory that the caller may search holds the term, 0 where none does."""
        with contextlib.suppress(*NULL):
            found = self._resolve(None)
            if term is not None and (store := found.searched()) is not None:
                (one,) = access.exists(store, found.grants, ExistsRequest((str(term),)))
                return int(bool(one.exists))
        return None

    @nothing_collected()
    def _search(self, query: Any, second: Any, *, explain: bool = False) -> _Found | None:
        """The answer as the caller may see it; ``None`` for one who may not search, or not now."""
        begun = time.monotonic()
        try:
            values = _second_argument(second)
            database = values.pop("database", None)
            if database is not None and not isinstance(database, str):
                raise BadInputError("database: a database's name expected", "database")
            request = read_request({**values, "q": str(query)})
            found = self._resolve(database)
        except MemoryStoreError as error:
            try:
                may_search = self._resolve(None).searched() is not None
            except NotAVaultError:
                may_search = True  # there being no vault hides nothing
            if not may_search:
                return None  # what is wrong is said to those who may ask
            if type(error) is NotAVaultError and database is None:
                raise NotAVaultError(f"{error}: {NAME_ONE}") from None
            raise
        store = found.searched()
        if store is None:
            return None
        request = replace(request, explain=explain or request.explain)

        def answer() -> SearchResponse:
            within = _budget(found.budget_ms, request.budget_ms, time.monotonic() - begun)
            return access.search(store, found.grants, replace(request, budget_ms=within))

        return _Found(found.run(answer), store.profile == access.STRICT)


def _json_or_null(call: Callable[[], Iterable[Struct] | None]) -> str | None:
    with contextlib.suppress(*NULL):
        found = call()
        if found is None:
            return None
        rows = [*found]
        try:
            return json.encode(rows).decode()
        except UnicodeEncodeError:  # half a pair, which cannot be sent
            return write_json(to_builtins(rows))
    return None


FREED_WITHOUT_LOCK = sqlite3.__name__ == "pysqlite3"
"""pysqlite3 lets go of functions without the interpreter's lock when a statement outlives its
connection, as one in a traceback does: freeing the last reference there ends the process."""

_kept: list[HybridFunctions] = []  # so that no reference of SQLite's is the last one


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


def _budget(allowed: int | None, asked: int | None, waited: float) -> int | None:
    """Milliseconds for a search that has waited for some seconds of those it may take."""
    if allowed is None:
        return asked
    left = max(1, allowed - int(waited * 1_000))
    return min(left, asked) if asked else left


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
        values = read_json(text)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise BadInputError("the second argument is a limit or a JSON object of options", "options")
    return values


def _rows(found: _Found | None) -> list[dict[str, Any]]:
    if found is None:
        return []
    return [access.row_data(row, strict=found.strict, titled=True) for row in found.response.rows]


def _explanation(found: _Found | None) -> list[dict[str, Any]]:
    if found is None:
        return []
    response = found.response
    stages: list[dict[str, Any]] = replace(response, rows=()).as_dict().get("explain", [])
    if response.why is not None:
        stages.append({"stage": "why", "milliseconds": 0.0, "why": response.why.as_dict()})
    if response.nearest:
        stages.append({"stage": "nearest", "milliseconds": 0.0, "lines": [response.nearest]})
    if response.also_searched:
        lines = response.corrections
        stages.append({"stage": "also_searched", "milliseconds": 0.0, "lines": lines})
    if response.degraded:
        stages.append({"stage": "degraded", "milliseconds": 0.0, "lines": [*response.degraded]})
    return stages


def _answered(call: Callable[[], list[dict[str, Any]]]) -> str:
    """The answer of ``call``; a refusal as an array of one object, since SQLite hides errors.

    (Every exception of a function of one value reaches the user as "user-defined function raised
    exception", and ``json_each()`` with ``value ->> 'error'`` must not stumble over the refusal.)
    """
    try:
        answer = call()
    except LockedError:
        answer = []
    except MemoryStoreError as error:
        message = str(error)
        status = next((status for kind, status in STATUS if isinstance(error, kind)), 400)
        answer = [{"ok": False, "error": message, "errors": [message], "status": status}]
    return write_json(answer)
