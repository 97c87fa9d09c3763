"""The pages to write on: a new memory, a change to one, and what to do when two change the same.

Boundary: the edit form opens one memory, for an actor who may read and write it. What was typed is
shown again to its sender, and to no other, for every failure to save it: wrong fields,
a vault that was locked meanwhile, a session that has ended, a memory that another user changed or
deleted. It travels in forms, never in an address, and is kept nowhere in between.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from memory_store.host import canonical_text
from memory_store.records import DONE_SUFFIX, TYPES, CollectionInfo, Memory

from ..permissions.asker import asker
from ..requests import cross_site, questions
from ..requests.admission import QueueFullError, work, writing
from ..requests.frame import hybrid_path, page, render
from ..vaults.registry import vaults_of
from ..vaults.vault import Vault
from . import comparison, memory_form
from .addresses import kept, memory_path, seeing_other
from .memory_form import Typed
from .page import SUGGESTED_FROM, collection_of, is_readable

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
    problems: Mapping[str, str] = field(default_factory=dict)
    unlock: bool = False


@dataclass(frozen=True)
class Desk:
    """A request to write: for the memory that is ``edited``, or for a new one."""

    datasette: Any
    request: Any
    database: str
    edited: str | None

    @property
    def keep(self) -> str:
        """The search that the user came from; a new memory's address fills in its form instead."""
        return "" if self.edited is None else kept(self.request)

    def context(self, form: Typed, choices: Choices, trouble: Trouble) -> dict[str, Any]:
        """What the form shows."""
        path = hybrid_path(self.datasette, self.database)
        here, action = path, f"{path}/new"
        if self.edited is not None:
            here = memory_path(self.datasette, self.database, self.edited)
            action = f"{here}/edit{self.keep}"
        return {
            "database": self.database,
            "path": path,
            "here": here + self.keep,
            "action": action,
            "edited": self.edited,
            "form": form,
            "kinds": [*TYPES, *([form.type] if form.type.endswith(DONE_SUFFIX) else [])],
            "collections": choices.collections,
            "suggested_topics": choices.topics,
            "text_limit": memory_form.TEXT_LIMIT,
            "problems": trouble.problems,
            "notice": trouble.notice,
            "unlock_href": f"{path}/unlock" if trouble.unlock else None,
        }

    async def show(
        self, form: Typed, choices: Choices, trouble: Trouble = Trouble(200)
    ) -> Response:
        """The form, and what was wrong with it."""
        context = self.context(form, choices, trouble)
        return await render(
            self.datasette, self.request, "hybrid_edit.html", context, trouble.status
        )

    def leave(self, address: str, message: str) -> Response:
        """To another page, once it is saved."""
        return seeing_other(self.datasette, self.request, address, message)


@page("GET", "HEAD", "POST")
async def new(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/new``: the form for a new memory."""
    if request.method == "POST":
        return await _save(datasette, request, None)
    vault, grants = await questions.vault_for(datasette, request, "write")
    choices = await work.run(lambda: _choices(vault, grants))
    form = _placed(memory_form.blank(questions.arguments(request)), choices)
    desk = Desk(datasette, request, vault.database, None)
    return await desk.show(form, choices, Trouble(200, vault.read_only))


@page("GET", "HEAD", "POST")
async def edit(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/memories/{id}/edit``: the form for a memory that is there."""
    given = str(tilde_decode(request.url_vars["id"]))
    if request.method == "POST":
        return await _save(datasette, request, given)
    vault, grants = await questions.vault_for(datasette, request, "decrypt", "write")
    _, form, choices = await work.run(lambda: _kept(vault, grants, given))
    desk = Desk(datasette, request, vault.database, form.id)
    return await desk.show(form, choices, Trouble(200, vault.read_only))


def _kept(vault: Vault, grants: Grants, memory_id: str) -> tuple[Memory, Typed, Choices]:
    """A memory as it is, and as the form shows it. Work for a thread."""
    scope = grants.decrypt & grants.write
    found = vault.use(scope).get(memory_id, refs=False)
    form = memory_form.typed_of(found, collection_of(vault, scope, found))
    return found, form, _choices(vault, grants)


async def _save(datasette: Any, request: Any, edited: str | None) -> Response:
    """Save what was typed, or show it again with what was wrong with it."""
    fields = await questions.form_fields(request, memory_form.FORM_LIMIT)
    form = memory_form.typed(fields)
    desk = Desk(datasette, request, questions.database_named(datasette, request), edited)
    try:
        await questions.visible_vault(datasette, request)
        if cross_site.is_forged(request, (fields.get("csrftoken") or [""])[-1]):
            raise _ForgedError
        needed = ("write",) if edited is None else ("decrypt", "write")
        vault, grants = await questions.vault_for(datasette, request, *needed)
        return await _saved(desk, vault, grants, form)
    except NotFoundError:
        if edited is None:
            raise
        trouble, desk = Trouble(404, GONE), replace(desk, edited=None)
        form = replace(form, id=str(uuid.uuid4()), version="")
    except questions.REFUSALS as error:
        trouble = _trouble(error)
    except Exception as error:  # noqa: BLE001 - see report_fault
        trouble = Trouble(500, f"This did not work: {questions.report_fault(error)}.")
    choices = Choices()
    if trouble.status in (400, 404):  # nothing is in the way of asking what the form offers
        vault, grants = vaults_of(datasette).of(desk.database), asker.get().on(desk.database)
        if grants.write:
            choices = await work.run(lambda: _choices(vault, grants))
    return await desk.show(form, choices, trouble)


class _ForgedError(MemoryStoreError):
    """A form whose token does not fit: from another site, or from before a restart."""


def _trouble(error: Exception) -> Trouble:
    """What to say about a refusal."""
    match error:
        case _ForgedError():
            return Trouble(403, FORGED)
        case LockedError():
            return Trouble(423, LOCKED, unlock=True)
        case ReadOnlyError():
            return Trouble(403, f"{memory_form.sentence(error)} Nothing was saved.")
        case Forbidden():
            return Trouble(403, NOT_ALLOWED, unlock=True)
        case QueueFullError():
            return Trouble(429, BUSY)
        case BadInputError(parameter=str(name)) if name in memory_form.FIELDS:
            return Trouble(400, problems={name: memory_form.sentence(error)})
    return Trouble(questions.status_of(error), memory_form.sentence(error))


async def _saved(desk: Desk, vault: Vault, grants: Grants, form: Typed) -> Response:
    """The way on after saving; the form again for wrong fields, both versions for a conflict."""
    checked, edited = memory_form.checked(form), desk.edited
    if checked.problems:
        choices = await work.run(lambda: _choices(vault, grants))
        return await desk.show(form, choices, Trouble(400, problems=checked.problems))
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
        return await _conflict(desk, vault, grants, form, error)
    address = f"{hybrid_path(desk.datasette, vault.database)}/new"
    if await work.run(lambda: is_readable(vault, grants, memory.id)):
        address = memory_path(desk.datasette, vault.database, memory.id) + desk.keep
    return desk.leave(address, "Added." if edited is None else "Saved.")


async def _conflict(
    desk: Desk, vault: Vault, grants: Grants, form: Typed, error: ConflictError
) -> Response:
    """Both versions beside each other, and the ways on: theirs, mine, or both in one.

    A form that was sent twice is no conflict, and neither is one that says what is there already.
    An actor who may not read what is there gets the same answer in both cases.
    """
    scope = grants.decrypt & grants.write
    taken = error.ids[0] if error.ids else form.id
    if not await work.run(lambda: bool(scope) and bool(vault.use(scope).heads([taken]))):
        raise ConflictError(TAKEN, error.ids)
    found, theirs, choices = await work.run(lambda: _kept(vault, grants, taken))
    desk = replace(desk, edited=found.id)
    if memory_form.same(form, found, theirs.collection):
        here = memory_path(desk.datasette, vault.database, found.id)
        return desk.leave(here + desk.keep, "Saved.")
    mine = replace(form, id=found.id, version=str(found.version))

    def compared() -> tuple[list[comparison.Pair], str]:
        text = canonical_text(form.text)
        return comparison.side_by_side(theirs.text, text), comparison.both(theirs.text, text)

    pairs, merged = await work.run(compared)
    names = {one.id: one.name for one in choices.collections}
    context = {
        **desk.context(replace(mine, text=merged), choices, Trouble(409)),
        "mine": mine,
        "theirs": theirs,
        "pairs": pairs if mine.text != theirs.text else [],
        "differing_fields": memory_form.differences(theirs, mine, names),
        "updated": found.updated,
    }
    return await render(desk.datasette, desk.request, "hybrid_conflict.html", context, 409)


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
