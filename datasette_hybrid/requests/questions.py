"""From a request to a vault and a question: the first half of every page and endpoint.

Boundary: nothing here opens a memory. :func:`vault_for` is where a request without a grant ends;
it gives no grants before the request has arrived in full, since they may change meanwhile.
"""

from __future__ import annotations

import asyncio
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar
from urllib.parse import parse_qs

from datasette import Forbidden, NotFound
from datasette.utils import tilde_decode

from memory_store import access, errors
from memory_store.access import Grants
from memory_store.errors import BadInputError
from memory_store.host import Scope, read_json
from memory_store.records import OPTION_NAMES, SearchRequest, SearchResponse, read_request

from .. import compat
from ..permissions.asker import asker
from ..permissions.grants import may_see
from ..vaults.registry import WATCH_SECONDS, UnreadableVaultError, vaults_of
from ..vaults.server import AwayError
from ..vaults.vault import Vault
from .admission import QueueFullError, TooManyAttemptsError, work
from .turns import let_others_go_first, turn_to_search

FIELD_LIMIT = 200  # parameters of one request
BODY_LIMIT = 8 * 1024 * 1024  # bytes: memories posted in bulk; a query has its own, lower limit
BODY_SECONDS = 30.0  # for a body to arrive: 8 MiB at 2.2 Mbit/s
WITHOUT_BODY = frozenset({"GET", "HEAD"})
BODY_KEPT = "datasette-hybrid body"  # in the request's scope
QUESTION_KEPT = "datasette-hybrid question"  # there, too: what a name in the address stands for

Answer = TypeVar("Answer")


class TooLargeError(BadInputError):
    """The request's body is longer than anything this server is meant to read (HTTP 413)."""


class TooSlowError(BadInputError):
    """The request's body did not arrive in time (HTTP 408)."""


STATUS: tuple[tuple[type[Exception], int], ...] = (
    (UnreadableVaultError, 503),
    (TooLargeError, 413),
    (TooSlowError, 408),
    (BadInputError, 400),
    (errors.NotFoundError, 404),
    (errors.NotAVaultError, 404),
    (NotFound, 404),
    (errors.WrongKeyError, 403),
    (errors.ReadOnlyError, 403),
    (Forbidden, 403),
    (access.NotPermittedError, 403),
    (errors.ConflictError, 409),
    (errors.FormatError, 409),
    (errors.LockedError, 423),
    (QueueFullError, 429),
    (TooManyAttemptsError, 429),
    (errors.ModelMismatchError, 409),
    (errors.ModelUnavailableError, 503),
    (errors.ExtraMissingError, 501),
    (errors.StorageError, 503),
    (errors.MemoryStoreError, 500),
)
"""What a refusal is in HTTP; the first class that fits."""

REFUSALS = tuple(kind for kind, _ in STATUS)


def status_of(error: Exception) -> int:
    """The HTTP status of a refusal."""
    return next(status for kind, status in STATUS if isinstance(error, kind))


def retry_after(error: Exception) -> dict[str, str]:
    """The header that says when a refused request may be sent again, where that is known."""
    if isinstance(error, TooManyAttemptsError):
        return {"Retry-After": str(error.seconds)}
    if isinstance(error, AwayError):
        return {"Retry-After": str(round(WATCH_SECONDS))}
    return {"Retry-After": "1"} if isinstance(error, QueueFullError) else {}


async def vault_for(
    datasette: Any,
    request: Any,
    *needed: str,
    any_of: bool = False,
    database: str | None = None,
) -> tuple[Vault, Grants]:
    """The vault of ``database``, usually the one named in the URL, and the asker's grants on it.

    ``needed`` are fields of :class:`Grants`; all of them, or with ``any_of`` one, must be held.
    They are those of now, when the request has arrived in full: its body is read here, once it is
    known that its sender has these grants. Raises ``NotFound``, ``Forbidden``,
    :class:`NotAVaultError` or :class:`LockedError`. A locked vault says so to everybody who may see
    the database, since the way out is to unlock it.
    """
    if request.method not in WITHOUT_BODY and BODY_KEPT not in request.scope:
        await vault_now(datasette, request, *needed, any_of=any_of, database=database)
        await read_body(request)
    return await vault_now(datasette, request, *needed, any_of=any_of, database=database)


async def vault_now(
    datasette: Any,
    request: Any,
    *needed: str,
    any_of: bool = False,
    database: str | None = None,
) -> tuple[Vault, Grants]:
    """What :func:`vault_for` returns or raises, before any of the body is read."""
    vault = await visible_vault(datasette, request, database)
    vault.server.check()
    grants = asker.get().on(vault.database)
    if vault.locked:
        raise errors.LockedError(f"{vault.database} is locked: unlock it first")
    held = [getattr(grants, name) for name in needed]
    if not (any(held) if any_of else all(held)):
        missing = [name for name in needed if not getattr(grants, name)]
        actions = (" or " if any_of else " and ").join(f"hybrid-{name}" for name in missing)
        raise Forbidden(f"{vault.database}: this needs the permission {actions}")
    return vault, grants


async def readable_and_writable(datasette: Any, request: Any) -> tuple[Vault, Grants, Scope]:
    """The vault, the grants, and what the asker may both read and write. Raises ``Forbidden``."""
    vault, grants = await vault_for(datasette, request, "decrypt", "write")
    scope = grants.decrypt & grants.write
    if not scope:
        raise Forbidden(f"{vault.database}: no collection here is yours to read and write")
    return vault, grants, scope


async def visible_vault(datasette: Any, request: Any, database: str | None = None) -> Vault:
    """The vault named in the URL, or another one, for an actor who may see that database."""
    database = database_named(datasette, request) if database is None else database
    if not await may_see(datasette, request.actor, database):
        raise Forbidden(f"{database}: permission denied")
    return vaults_of(datasette).of(database)


def database_named(datasette: Any, request: Any) -> str:
    """The name of the database in the URL. Raises ``NotFound``."""
    try:
        route = tilde_decode(request.url_vars["database"])
        return str(datasette.get_database(route=route).name)
    except KeyError:
        raise NotFound("no such database") from None


async def parameters(request: Any) -> dict[str, Any]:
    """The request's parameters: query string, HTML form or JSON object, each name to its values.

    Raises :class:`BadInputError`, also for too many of them.
    """
    if request.method != "POST":
        return {**arguments(request), **request.scope.get(QUESTION_KEPT, {})}
    body = await read_body(request)
    if is_json(request):
        return {**arguments(request), **json_object(body)}
    fields = _fields(_decoded(body))
    fields.pop("csrftoken", None)
    return {**arguments(request), **fields}


def is_json(request: Any) -> bool:
    """Whether the request's parameters are a JSON object: its values are of their own types."""
    kind: str = request.headers.get("content-type", "")
    return request.method == "POST" and kind.startswith("application/json")


def arguments(request: Any) -> dict[str, list[str]]:
    """The parameters in the request's address. Raises :class:`BadInputError` for too many."""
    return _fields(request.query_string)


def refuse_unknown(given: Iterable[str], *known: str) -> None:
    """Raise :class:`BadInputError` for a parameter that is not ``known``: a name that is misspelled
    is never taken for one that was left out. One with an underscore in front is Datasette's."""
    for name in given:
        if name not in known and not name.startswith("_"):
            names = f"; known: {', '.join(known)}" if known else ""
            raise BadInputError(f"{name}: there is no such parameter here{names}", name)


async def form_fields(request: Any, limit: int) -> dict[str, list[str]]:
    """The fields of a form of at most ``limit`` bytes, its token among them.

    Raises :class:`BadInputError`.
    """
    return _fields(_decoded(await read_body(request, limit)))


async def json_body(request: Any) -> Any:
    """The JSON value in the request's body. Raises :class:`BadInputError`."""
    return _json(await read_body(request))


async def read_body(request: Any, limit: int = BODY_LIMIT) -> bytes:
    """The request's body, which a refusal may ask for again.

    Raises :class:`TooLargeError`, :class:`TooSlowError`.
    """
    kept: bytes | None = request.scope.get(BODY_KEPT)
    if kept is not None:
        return kept
    try:
        async with asyncio.timeout(BODY_SECONDS):  # in this task: who is asking is settled anew
            body = await compat.body(request, limit)
    except TimeoutError:
        raise TooSlowError(f"the request took longer than {BODY_SECONDS:.0f} seconds") from None
    if body is None:
        raise TooLargeError(f"the request is longer than {limit:,} bytes", "body")
    request.scope[BODY_KEPT] = body
    return body


def leave_body(request: Any) -> None:
    """Say that the view reads the body by itself, as it arrives; no other reader waits for it."""
    request.scope[BODY_KEPT] = b""


async def json_fields(request: Any, *known: str) -> dict[str, Any]:
    """The JSON object in the request's body, with nothing but the ``known`` fields: a name that is
    misspelled is never taken for one that was left out. Raises :class:`BadInputError`.
    """
    value = json_object(await read_body(request))
    if unknown := [name for name in value if name not in known]:
        names = ", ".join(unknown)
        raise BadInputError(f"{names}: no such field; there are {', '.join(known)}", unknown[0])
    return value


def json_object(body: bytes) -> dict[str, Any]:
    """``body`` as a JSON object. Raises :class:`BadInputError`."""
    value = _json(body)
    if not isinstance(value, dict):
        raise BadInputError("body: a JSON object expected", "body")
    return value


def question(given: Mapping[str, Any], *, strict: bool) -> SearchRequest:
    """The search that parameters ask for. ``strict`` refuses names that mean nothing.

    Names that start with an underscore are Datasette's and the endpoint's own.
    """
    named = {name: value for name, value in given.items() if not name.startswith("_")}
    query = named.pop("q", named.pop("query", ""))
    if isinstance(query, list):
        query = query[-1] if query else ""
    if not strict:
        # a form sends its empty fields too
        named = {
            name: [item for item in value if item] if isinstance(value, list) else value
            for name, value in named.items()
            if name in OPTION_NAMES
        }
    return read_request({**named, "q": query})


async def search(vault: Vault, grants: Grants, asked: SearchRequest) -> SearchResponse:
    """The answer as the asker may see it, worked out in our own threads.

    Raises :class:`NotPermittedError`, and what the store raises.
    """
    return await in_turn(lambda: answer(vault, grants, asked))


async def in_turn(call: Callable[[], Answer]) -> Answer:
    """What ``call`` finds, in one of our own threads. Raises :class:`QueueFullError`.

    To show it takes the server's thread for milliseconds: others go first.
    """
    found = await work.run(call, turn_to_search(work.workers))
    await let_others_go_first()
    return found


def answer(vault: Vault, grants: Grants, asked: SearchRequest) -> SearchResponse:
    """The answer as the asker may see it, for :func:`in_turn`."""
    store = vault.use(grants.search, readable=grants.decrypt)
    return access.search(store, grants, asked)


def report_fault(error: Exception) -> str:
    """Say on standard error where something broke, and return the sentence for the user.

    Left alone, Datasette 0.65 prints the local variables of every frame (where ``rich`` is
    installed), opened text and pasted secrets among them. The exception's own words stay out for
    the same reason.
    """
    where = "".join(traceback.format_tb(error.__traceback__))
    print(f"datasette-hybrid: {type(error).__name__}\n{where}", file=sys.stderr)
    return "something broke here; the server's log says where"


def _fields(encoded: str) -> dict[str, list[str]]:
    try:
        return parse_qs(encoded, keep_blank_values=True, max_num_fields=FIELD_LIMIT)
    except ValueError:
        raise BadInputError(f"the request has more than {FIELD_LIMIT} parameters") from None


def _json(body: bytes) -> Any:
    try:
        return read_json(body)
    except (ValueError, RecursionError):
        raise BadInputError("body: this is not JSON", "body") from None


def _decoded(body: bytes) -> str:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        raise BadInputError("body: this is not UTF-8", "body") from None
