"""What every page shares: how it is rendered, protected, and answers a refusal.

Boundary: these pages may show opened text, so they are never stored by a browser or a proxy, send
no referrer, sit in no frame, and run no script but those of files and templates (``policy.py``).
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from datasette import Forbidden, Response
from jinja2 import Environment, pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from memory_store.errors import (
    DeletedError,
    FormatError,
    LockedError,
    NotAVaultError,
    NotFoundError,
    TamperedError,
)
from memory_store.host import whole_characters

from .. import compat
from ..permissions.asker import asker
from ..unlock.errands import Errand, errand_of
from ..unlock.lock_bar import lockbar
from ..vaults.vault import Vault
from . import questions
from .answers import HEADERS
from .cross_site import SAFE_METHODS, comes_from_elsewhere
from .policy import content_policy
from .turns import let_others_go_first

NAMED = re.compile(r"[\w.-]+: ")
TITLES = {
    400: "This cannot be done",
    404: "Nothing here",
    413: "Too long",
    429: "A moment, please",
    503: "Not now",
}
TEMPLATES = Path(__file__).parent.parent / "templates"

_at_once: WeakKeyDictionary[Environment, Environment | None] = WeakKeyDictionary()

View = Callable[[Any, Any], Awaitable[Response]]


def page(*methods: str) -> Callable[[View], View]:
    """Make a view answer every refusal with a page that says what to do.

    Nothing that another site posted is read at all: not to be done, and not to be shown again with
    a button that would do it.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        async def answer(datasette: Any, request: Any) -> Response:
            if request.method not in methods:
                return await message(datasette, request, "Not possible here", "", 405)
            if request.method not in SAFE_METHODS and comes_from_elsewhere(request):
                text = "This form was sent by another site, so nothing was done."
                return await message(datasette, request, "Not from here", text, 403)
            try:
                return await view(datasette, request)
            except questions.REFUSALS as error:
                return await refused(datasette, request, error)
            except Exception as error:  # noqa: BLE001 - see report_fault
                text = questions.report_fault(error)
                return await message(datasette, request, "This did not work", text, 500)

        answer.methods = methods  # type: ignore[attr-defined]
        return answer

    return decorate


async def refused(datasette: Any, request: Any, error: Exception) -> Response:
    """The page for a refusal: the way to unlock where that helps, else a message."""
    status = questions.status_of(error)
    if isinstance(error, LockedError | Forbidden) and "database" in request.url_vars:
        try:
            vault = await questions.visible_vault(datasette, request)
        except questions.REFUSALS:
            return await message(datasette, request, "Not allowed", str(error), status)
        reason = str(error).removeprefix(f"{vault.database}: ") if status == 403 else ""
        return await unlock_page(datasette, request, vault, status, refusal=reason)
    title, hint, way = TITLES.get(status, "This did not work"), "", None
    if isinstance(error, NotAVaultError) and status == 404:
        title = "No vault in this database"
        hint = "Make one in a terminal: memory-store init notes.db --key-file ~/keys/notes.key"
    elif isinstance(error, DeletedError):
        title = "In the trash"
        trash = f"{hybrid_path(datasette, request.url_vars['database'])}/trash"
        way = f"{trash}?memory={error.memory_id}", "See it in the trash, and put it back"
    elif isinstance(error, NotFoundError):
        title = "No such memory"
        hint = "It may have been deleted, or live in another collection."
    elif isinstance(error, TamperedError | FormatError):
        title = "This cannot be read"
        hint = "In a terminal, memory-store verify names all that is damaged, and what to do."
        if "id" in request.url_vars:
            here = f"{hybrid_path(datasette, request.url_vars['database'])}/memories"
            way = f"{here}/{request.url_vars['id']}/delete", "Delete it"
    headers = questions.retry_after(error)
    return await message(datasette, request, title, str(error), status, hint, headers, way)


async def message(
    datasette: Any,
    request: Any,
    title: str,
    text: str,
    status: int,
    hint: str = "",
    headers: dict[str, str] | None = None,
    way: tuple[str, str] | None = None,
) -> Response:
    """A page with a heading, a sentence, and what to do next; ``way`` is a link and its words."""
    # too many at once: the same address again, where the question stands in it
    again = f"?{request.query_string}" if status == 429 and request.method == "GET" else None
    context = {"title": title, "text": sentence(text), "hint": hint, "again": again, "way": way}
    context |= await _search_here(datasette, request)
    return await render(datasette, request, "hybrid_message.html", context, status, headers)


async def _search_here(datasette: Any, request: Any) -> dict[str, Any]:
    """The search of the database in the address, for those who may search it."""
    if "database" not in (request.url_vars or {}):
        return {}
    try:
        vault = await questions.visible_vault(datasette, request)
    except questions.REFUSALS:
        return {}
    if vault.locked or not asker.get().on(vault.database).search:
        return {}
    return {"database": vault.database, "search": hybrid_path(datasette, vault.database)}


async def unlock_page(
    datasette: Any,
    request: Any,
    vault: Vault,
    status: int = 200,
    problem: str = "",
    headers: dict[str, str] | None = None,
    errand: Errand | None = None,
    refusal: str = "",
) -> Response:
    """The form, saying whether the vault is locked or open to others only.

    ``refusal`` is what is missing for the request; what its asker may do instead is linked. It
    carries what the request was about, or another ``errand``.
    """
    grants = vault.offered(asker.get().on(vault.database))
    path = hybrid_path(datasette, vault.database)
    errand = errand or await errand_of(request, path)
    audits = compat.AUDIT in asker.get().at(vault.database)
    offered = [
        ("Search", path, grants.search),
        ("Landscape", f"{path}/landscape", grants.decrypt),
        ("New memory", f"{path}/new", grants.write),
        ("Audit trail", f"{path}/audit", grants.audit),
    ]
    context = {
        "locked": vault.locked,
        "refusal": sentence(refusal),
        "ways": [] if vault.locked else [(label, href) for label, href, may in offered if may],
        "actor_known": request.actor is not None,
        "problem": problem,
        "opening_problem": vault.problem if audits else None,
        "carried": errand.fields(),
    }
    return await render(
        datasette, request, "hybrid_unlock.html", context, status, headers, vault=vault
    )


def sentence(text: str) -> str:
    """A message with a capital and a full stop; one that names a parameter first begins with it."""
    text = text.strip()
    if not NAMED.match(text):
        text = text[:1].upper() + text[1:]
    return text if not text or text[-1] in ".!?…" else f"{text}."


async def render(
    datasette: Any,
    request: Any,
    template: str,
    context: dict[str, Any],
    status: int = 200,
    headers: dict[str, str] | None = None,
    *,
    vault: Vault | None = None,
) -> Response:
    """One of our templates, with the headers all of our pages carry; of a ``vault``, its database
    and the ``path`` of its search page."""
    shown = {"lockbar": lockbar(datasette, request), "part": part, **context}
    if vault is not None:
        path = hybrid_path(datasette, vault.database)
        shown = {"database": vault.database, "path": path, **shown}
    await let_others_go_first()
    body = whole_characters(await datasette.render_template(template, shown, request=request))
    # for screen readers: the base template of Datasette 0.65 names no language
    body = body.replace("<html>", '<html lang="en">', 1)
    protective = {
        **HEADERS,
        "X-Frame-Options": "DENY",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Content-Security-Policy": content_policy(),
    }
    return Response.html(body, status=status, headers={**protective, **(headers or {})})


@pass_context
def part(context: Context, name: str) -> Any:
    """What ``{% include name %}`` would be, for the top of a template: of variables that it sets
    itself only those at its top level are known to the part.

    Datasette renders its templates a step at a time, so that they may wait for something in
    between. None of our parts does, and the steps cost more than the rendering: 8 ms of 12 for a
    page of ten results (measured). So where every part is ours, they are rendered without. Where a
    site's own template takes the place of one, what it calls may be worth waiting for: there they
    are rendered as everything else is.
    """
    environment = _without_waiting(context.environment)
    if environment is not None:
        return Markup(environment.get_template(name).render(context.get_all()))
    waiting = context.environment.get_template(name).render_async(context.get_all())
    return _markup(waiting)


async def _markup(rendered: Awaitable[str]) -> Markup:
    return Markup(await rendered)


def _without_waiting(environment: Environment) -> Environment | None:
    """One like Datasette's that renders in one go; ``None`` where a part is not ours.

    Nor for an overlay, which may be made anew for each request: it would not be worth it.
    """
    if environment.overlayed:
        return None
    if environment not in _at_once:
        assert environment.loader is not None, "Datasette has one"
        parts = (path.name for path in TEMPLATES.glob("_hybrid_*.html"))
        paths = [environment.loader.get_source(environment, name)[1] for name in parts]
        ours = all(path and Path(path).parent.samefile(TEMPLATES) for path in paths)
        # files of an installed package do not change: none is looked at again
        at_once = environment.overlay(enable_async=False, auto_reload=False) if ours else None
        _at_once[environment] = at_once
    return _at_once[environment]


def hybrid_path(datasette: Any, database: str) -> str:
    """The address of a database's search page."""
    return f"{datasette.urls.database(database)}/-/hybrid"
