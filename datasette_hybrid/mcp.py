"""The tools of an assistant over HTTP: the MCP server of ``memory-store mcp``, for an actor.

Boundary: an assistant is an actor like any other, known by a token, and may do what the actor's
grants say: it finds where it may search, reads where it may decrypt, adds where it may write, and
changes what it may both write and decrypt. ``?access=`` and ``?collection=`` in the address allow
it less, never more; another parameter is refused, so that a slip in one of these is not taken for
none. From one request to the next is kept what a client subscribed to, for its actor alone. What a
browser sends for another site is refused. How much it asks is counted for each token on its own,
streams for each actor.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Awaitable, Callable, Sequence
from functools import partial, wraps
from typing import Any, cast, get_args

from datasette import NotFound, Response
from msgspec.structs import replace

from memory_store import errors, host
from memory_store.access import Grants
from memory_store.errors import BadInputError
from memory_store.host import Access, Assistant

from .audit.recorder import MCP, named
from .permissions.asker import asker
from .permissions.grants import may_see
from .permissions.session_cookies import identity
from .requests import questions
from .requests.admission import writing
from .requests.answers import HEADERS
from .requests.cross_site import ELSEWHERE, comes_from_elsewhere, is_rebound
from .requests.frame import hybrid_path
from .vaults.registry import vaults_of
from .vaults.vault import Vault
from .visits import Visit, Visits

BODY_LIMIT = 1024 * 1024  # bytes: fifty memories of 20 KB
SERVER_ERROR = -32000  # JSON-RPC 2.0: the first that is left to servers

_streams: weakref.WeakKeyDictionary[Any, host.Streams] = weakref.WeakKeyDictionary()
_visits: weakref.WeakKeyDictionary[Any, Visits] = weakref.WeakKeyDictionary()
_sessions: weakref.WeakKeyDictionary[Any, host.Sessions] = weakref.WeakKeyDictionary()
_allowances: weakref.WeakKeyDictionary[Any, host.Allowances] = weakref.WeakKeyDictionary()

METHODS = ("POST", "GET")
SESSION = "mcp-session-id"
View = Callable[..., Awaitable[None]]


def endpoint(view: View) -> Callable[..., Awaitable[Response | None]]:
    """Make a view answer every refusal as an error of the protocol, which clients show."""

    @wraps(view)
    async def answer(datasette: Any, request: Any, receive: Any, send: Any) -> Response | None:
        hears = request.method == "GET" and SESSION in request.headers
        if request.method != "POST" and not hears:
            said = "an MCP server: send it messages by POST; GET is for the notices of a session"
            return _error(said, 405, {"Allow": ", ".join(METHODS)})
        if comes_from_elsewhere(request) or is_rebound(request):
            return _error(ELSEWHERE, 403)
        begun = False

        async def sent(message: Any) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun, message = True, {**message, "headers": _headers(message["headers"])}
            await send(message)

        refused = None
        try:
            await view(datasette, request, receive, sent)
        except questions.REFUSALS as error:
            refused = _refused(datasette, error)
        except Exception as error:  # noqa: BLE001 - see report_fault
            refused = _error(questions.report_fault(error), 500)
        return None if begun else refused

    answer.methods = METHODS  # type: ignore[attr-defined]
    return answer


@endpoint
async def vault(datasette: Any, request: Any, receive: Any, send: Any) -> None:
    """``/{db}/-/hybrid/mcp``."""
    database = questions.database_named(datasette, request)
    await _answer(datasette, request, database, receive, send)


@endpoint
async def only_vault(datasette: Any, request: Any, receive: Any, send: Any) -> None:
    """``/-/hybrid/mcp``: the one vault that the asker may see, or of several that it may search."""
    vaults = await asyncio.to_thread(vaults_of(datasette).all)
    seen = [one for one in vaults if await may_see(datasette, request.actor, one.database)]
    searched = [one for one in seen if asker.get().on(one.database).search]
    found = searched if len(searched) == 1 else seen
    if not found:
        raise NotFound("there is no vault here that you may see")
    if len(found) > 1:
        addresses = ", ".join(f"{hybrid_path(datasette, one.database)}/mcp" for one in found)
        raise BadInputError(f"there are several vaults: connect to one of {addresses}")
    await _answer(datasette, request, found[0].database, receive, send)


async def _answer(datasette: Any, request: Any, database: str, receive: Any, send: Any) -> None:
    host.require_sdk()
    given = questions.arguments(request)
    questions.refuse_unknown(given, "access", "collection")
    await questions.vault_now(datasette, request, "search", database=database)
    sessions, who = _sessions.setdefault(datasette, host.Sessions()), _who(request)
    session = sessions.of(who, request.headers.get(SESSION, ""))
    if request.method != "POST" and session is None:
        raise NotFound("there is no such session: send initialize first")
    posted = request.method == "POST"
    body = await questions.read_body(request, BODY_LIMIT) if posted else None
    vault, grants = await questions.vault_for(datasette, request, "search", database=database)
    access, collections = _access(given.get("access", ())), given.get("collection", ())
    allowance = _allowances.setdefault(datasette, host.Allowances()).of(_caller(request))

    actor = asker.get().actor_id
    visits = _visits.setdefault(datasette, Visits())
    visit = visits.seen(database, actor) if actor else None

    async def made(vault: Vault, grants: Grants) -> Assistant:
        found = await questions.in_turn(lambda: _assistant(vault, grants, access, collections))
        came = partial(_came_before, vault, actor, visit)
        return replace(found, allowance=allowance, last_came=came)

    async def current() -> Assistant:
        """The asker as it is by now: a token may have been revoked, a grant withdrawn."""
        if again := asker.get().again:
            asker.set(await again())
        try:
            return await made(
                *await questions.vault_now(datasette, request, "search", database=database)
            )
        except errors.MemoryStoreError:  # who asks tells a busy moment from a refusal
            raise
        except questions.REFUSALS as error:
            raise host.RefusedError(str(error)) from None

    streams = _streams.setdefault(datasette, host.Streams())
    await host.answer_over_http(
        await made(vault, grants),
        *(database, _run, request.scope["headers"], body, receive, send, current),
        *(partial(streams.one, who), session, partial(sessions.begun, who)),
    )


def _headers(given: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers of an answer, and those that each of ours carries."""
    ours = {name.lower().encode(): value.encode() for name, value in HEADERS.items()}
    plain = {b"content-type": b"text/plain; charset=utf-8"}  # some refusals of the SDK have none
    return [*(plain | {name.lower(): value for name, value in given} | ours).items()]


def _caller(request: Any) -> str:
    """What stands for the caller: who it is and its token; of a visitor, where they come from.

    A token counts that made the actor. Beside a cookie, or from a visitor, it may be anything.
    """
    known = _who(request)
    if not identity(request.actor):
        return known
    token = "" if "ds_actor" in request.cookies else request.headers.get("authorization", "")
    return f"{known}\n{token}"


def _who(request: Any) -> str:
    """Who the caller is; of a visitor, where they come from."""
    return identity(request.actor) or str((request.scope.get("client") or ("",))[0])


def _assistant(vault: Vault, grants: Grants, access: Access, collections: Any) -> Assistant:
    """The asker as an assistant. Work for a thread: the keys may rest."""
    scope = grants.search | grants.decrypt | grants.write
    store = vault.use(scope, creating=grants.create, readable=grants.decrypt)
    if collections:
        store, grants = host.only(store, collections), replace(grants, create=False)
    least = host.least(access, host.access_of(grants))
    upkeep = vault.upkeep
    later = upkeep.embed_what_lacks if upkeep.embeds_later else None
    name = asker.get().actor_id or "assistant"
    into = host.sole(collections)
    return Assistant(store, least, name, grants, embed_later=later, into=into)


def _came_before(vault: Vault, actor: str | None, visit: Visit | None) -> str:
    """When an actor's assistant was here before this visit; empty where that is not known."""
    if visit is None:
        return ""
    if visit.came is None:
        own = (
            one.time
            for one in vault.use(host.EVERYTHING).trail.events()
            if one.surface == MCP and one.actor == named(actor) and one.time < visit.begun
        )
        visit.came = max(own, default="")
    return visit.came


def _access(given: Any) -> Access:
    """The most that the address allows."""
    said = given[-1] if given else "write"
    for one in get_args(Access):
        if said == one:
            return cast(Access, one)
    raise BadInputError("access: read, append or write expected", "access")


async def _run(work: Callable[[], Any], writes: bool) -> Any:
    return await (writing.run(work) if writes else questions.in_turn(work))


def _refused(datasette: Any, error: Exception) -> Response:
    status = questions.status_of(error)
    said = str(error)
    if isinstance(error, errors.LockedError):
        said += ": the user opens it in a browser, on the page of this database in Datasette"
    return _error(said, status, questions.retry_after(error))


def _error(message: str, status: int, headers: dict[str, str] | None = None) -> Response:
    data = {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": SERVER_ERROR, "message": message, "data": {"status": status}},
    }
    return Response.json(data, status=status, headers={**HEADERS, **(headers or {})})
