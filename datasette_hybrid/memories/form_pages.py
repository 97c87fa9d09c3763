"""The pages to write on: a new memory, a change to one, and what to do when two change the same.

Boundary: the edit form opens one memory, for an actor who may read and write it. What was typed is
shown again to its sender, and to no other, for every failure to save it: wrong fields,
a vault that was locked meanwhile, a session that has ended, a memory that another user changed or
deleted. It travels in forms, never in an address, and is kept nowhere in between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from datasette import Forbidden, Response
from datasette.utils import tilde_decode

from memory_store.access import Grants
from memory_store.errors import (
    BadInputError,
    BadRowsError,
    ConflictError,
    LockedError,
    MemoryStoreError,
    NotFoundError,
    ReadOnlyError,
)
from memory_store.records import CollectionInfo, Memory

from ..permissions.asker import asker
from ..requests import cross_site, questions
from ..requests.admission import QueueFullError, work, writing
from ..requests.frame import hybrid_path, page, render
from ..vaults.registry import vaults_of
from ..vaults.vault import Vault
from . import comparison, memory_form
from .memory_form import Typed
from .page import SUGGESTED_FROM, collection_of, kept, memory_path, seeing_other

FORGED = (
    "This form was open for so long that Datasette no longer knows it. Nothing is lost: check what "
    "is here and save it once more."
)
LOCKED = (
    "The vault was locked meanwhile, so nothing was saved yet, and nothing is lost. Unlock it in "
    "another tab, then save here."
)
NOT_ALLOWED = (
    "You may not write here, or are not signed in any more, so nothing was saved yet, and nothing "
    "is lost. Sign in or unlock the vault in another tab, then save here."
)
TAKEN = "a memory of this id is there already: the form was sent twice, or the id is another's"
GONE = "This memory was deleted meanwhile. Saving makes a new one of what you have here."
BUSY = "Too much is going on at once. Nothing is lost: save it again in a moment."


@dataclass(frozen=True)
class Choices:
    """What the form offers: collections to write in, and topics that are in use."""

    collections: Sequence[CollectionInfo] = ()
    topics: Sequence[str] = ()
    creating: bool = False


@dataclass(frozen=True)
class Trouble:
    """Why a form was not saved: a sentence for all of it, or by field; and how HTTP says so."""

    status: int
    notice: str = ""
    problems: Mapping[str, str] | None = None
    unlock: bool = False


@page("GET", "HEAD", "POST")
async def new(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/new``: the form for a new memory."""
    if request.method == "POST":
        return await _save(datasette, request, None)
    vault, grants = await questions.vault_for(datasette, request, "write")
    choices = await work.run(lambda: _choices(vault, grants))
    form = _placed(memory_form.blank(questions.arguments(request)), choices)
    return await _form(datasette, request, vault.database, form, choices, None)


@page("GET", "HEAD", "POST")
async def edit(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/memories/{id}/edit``: the form for a memory that is there."""
    given = str(tilde_decode(request.url_vars["id"]))
    if request.method == "POST":
        return await _save(datasette, request, given)
    vault, grants = await questions.vault_for(datasette, request, "decrypt", "write")
    scope = grants.decrypt & grants.write

    def opened() -> tuple[Typed, Choices]:
        found = vault.use(scope).get(given, refs=False)
        form = memory_form.typed_of(found, collection_of(vault, scope, found))
        return form, _choices(vault, grants)

    form, choices = await work.run(opened)
    return await _form(datasette, request, vault.database, form, choices, form.id)


async def _save(datasette: Any, request: Any, edited: str | None) -> Response:
    """Save what was typed, or show it again with what was wrong with it."""
    fields = await questions.form_fields(request, memory_form.FORM_LIMIT)
    form = memory_form.typed(fields)
    database = questions.database_named(datasette, request)
    try:
        await questions.visible_vault(datasette, request)
        if cross_site.is_forged(request, (fields.get("csrftoken") or [""])[-1]):
            raise _ForgedError
        needed = ("write",) if edited is None else ("decrypt", "write")
        vault, grants = await questions.vault_for(datasette, request, *needed)
        return await _saved(datasette, request, vault, grants, form, edited)
    except NotFoundError:
        if edited is None:
            raise
        trouble, form, edited = Trouble(404, GONE), memory_form.renamed(form), None
    except questions.REFUSALS as error:
        trouble = _trouble(error)
    except Exception as error:  # noqa: BLE001 - see report_fault
        trouble = Trouble(500, f"This did not work: {questions.report_fault(error)}.")
    choices = await _choices_if_possible(datasette, database, trouble)
    return await _form(datasette, request, database, form, choices, edited, trouble)


async def _choices_if_possible(datasette: Any, database: str, trouble: Trouble) -> Choices:
    """What the form offers when it is shown again, where there is nothing in the way of asking."""
    if trouble.status not in (400, 404):
        return Choices()
    vault, grants = vaults_of(datasette).of(database), asker.get().on(database)
    return await work.run(lambda: _choices(vault, grants)) if grants.write else Choices()


class _ForgedError(MemoryStoreError):
    """A form whose token does not fit: from another site, or from before a restart."""


def _trouble(error: Exception) -> Trouble:
    """What to say about a refusal."""
    if isinstance(error, _ForgedError):
        return Trouble(403, FORGED)
    if isinstance(error, LockedError):
        return Trouble(423, LOCKED, unlock=True)
    if isinstance(error, ReadOnlyError):
        return Trouble(403, f"{error}. Nothing was saved.")
    if isinstance(error, Forbidden):
        return Trouble(403, NOT_ALLOWED, unlock=True)
    if isinstance(error, QueueFullError):
        return Trouble(429, BUSY)
    if isinstance(error, BadInputError) and error.parameter in memory_form.FIELDS:
        return Trouble(400, problems={error.parameter: memory_form.sentence(error)})
    return Trouble(questions.status_of(error), memory_form.sentence(error))


async def _saved(
    datasette: Any, request: Any, vault: Vault, grants: Grants, form: Typed, edited: str | None
) -> Response:
    """The way on after saving; the form again for wrong fields, both versions for a conflict."""
    checked = memory_form.checked(form)
    if checked.problems:
        choices = await work.run(lambda: _choices(vault, grants))
        trouble = Trouble(400, problems=checked.problems)
        return await _form(datasette, request, vault.database, form, choices, edited, trouble)
    scope = grants.write if edited is None else grants.decrypt & grants.write

    def write() -> Memory:
        store = vault.use(scope, creating=grants.create)
        if edited is None:
            return store.add_once([checked.draft(form.id)], readable=grants.decrypt)[0].memory
        version = memory_form.version(form)
        return store.edit_many([checked.edit(store.find_id(edited, refs=False), version)])[0]

    try:
        memory = await writing.run(write)
    except BadRowsError as error:
        raise BadInputError(str(error), error.parameter) from None
    except ConflictError as error:
        return await _conflict(datasette, request, vault, grants, form, error)
    message = "Added." if edited is None else "Saved."
    if not await work.run(lambda: _is_readable(vault, grants, memory.id)):
        address = f"{hybrid_path(datasette, vault.database)}/new"
        return seeing_other(datasette, request, address, message)
    address = memory_path(datasette, vault.database, memory.id) + _keep(request, edited)
    return seeing_other(datasette, request, address, message)


def _is_readable(vault: Vault, grants: Grants, memory_id: str) -> bool:
    return bool(grants.decrypt) and bool(vault.use(grants.decrypt).heads([memory_id]))


async def _conflict(
    datasette: Any, request: Any, vault: Vault, grants: Grants, form: Typed, error: ConflictError
) -> Response:
    """Both versions beside each other, and the ways on: theirs, mine, or both in one.

    A form that was sent twice is no conflict, and neither is one that says what is there already.
    An actor who may not read what is there gets the same answer in both cases.
    """
    scope = grants.decrypt & grants.write
    taken = error.ids[0] if error.ids else form.id
    if not await work.run(lambda: bool(scope) and bool(vault.use(scope).heads([taken]))):
        raise ConflictError(TAKEN, error.ids)

    def compared() -> tuple[Memory, Typed, Choices, list[comparison.Pair], str]:
        found = vault.use(scope).get(taken, refs=False)
        theirs = memory_form.typed_of(found, collection_of(vault, scope, found))
        pairs = comparison.side_by_side(theirs.text, memory_form.canonical(form.text))
        merged = comparison.both(theirs.text, memory_form.canonical(form.text))
        return found, theirs, _choices(vault, grants), pairs, merged

    found, theirs, choices, pairs, merged = await work.run(compared)
    here = memory_path(datasette, vault.database, found.id)
    if memory_form.same(form, found, theirs.collection):
        return seeing_other(datasette, request, here + _keep(request, found.id), "Saved.")
    mine = replace(form, id=found.id, version=str(found.version))
    context = {
        **_context(
            datasette, request, vault.database, replace(mine, text=merged), choices, found.id
        ),
        "mine": mine,
        "theirs": theirs,
        "pairs": pairs if mine.text != theirs.text else [],
        "differing_fields": memory_form.differences(theirs, mine, _names(choices)),
        "updated": found.updated,
    }
    return await render(datasette, request, "hybrid_conflict.html", context, 409)


def _names(choices: Choices) -> dict[str, str]:
    return {one.id: one.name for one in choices.collections}


def _choices(vault: Vault, grants: Grants) -> Choices:
    """Work for a thread. Names are sealed: only those of collections that may be read, too."""
    scope = grants.write & grants.decrypt
    if not scope:
        return Choices(creating=grants.create)
    store = vault.use(scope)
    return Choices(store.collections.list(), store.recent_topics(SUGGESTED_FROM), grants.create)


def _placed(form: Typed, choices: Choices) -> Typed:
    """The form with a collection that is offered: the one named in the address, or the first."""
    ids = [one.id for one in choices.collections]
    named = {one.name: one.id for one in reversed(choices.collections)}
    wanted = form.collection
    if wanted not in ids:  # ids first: a name must not lead away from the collection that is meant
        wanted = named.get(wanted, wanted)
    return replace(form, collection=wanted if wanted in ids else "".join(ids[:1]))


def _keep(request: Any, edited: str | None) -> str:
    """The search that the user came from; a new memory's address fills in its form instead."""
    return "" if edited is None else kept(request)


def _context(
    datasette: Any,
    request: Any,
    database: str,
    form: Typed,
    choices: Choices,
    edited: str | None,
) -> dict[str, Any]:
    path = hybrid_path(datasette, database)
    here = path if edited is None else memory_path(datasette, database, edited)
    keep = _keep(request, edited)
    return {
        "database": database,
        "path": path,
        "here": here + keep,
        "action": f"{path}/new" if edited is None else f"{here}/edit{keep}",
        "edited": edited,
        "form": form,
        "kinds": memory_form.kinds(form.type),
        "collections": choices.collections,
        "suggested_topics": choices.topics,
        "text_limit": memory_form.TEXT_LIMIT,
        "problems": {},
        "notice": "",
        "unlock_href": None,
    }


async def _form(
    datasette: Any,
    request: Any,
    database: str,
    form: Typed,
    choices: Choices,
    edited: str | None,
    trouble: Trouble | None = None,
) -> Response:
    context = _context(datasette, request, database, form, choices, edited)
    status = 200
    if trouble is not None:
        context["problems"] = trouble.problems or {}
        context["notice"] = trouble.notice
        context["unlock_href"] = f"{context['path']}/unlock" if trouble.unlock else None
        status = trouble.status
    return await render(datasette, request, "hybrid_edit.html", context, status)
