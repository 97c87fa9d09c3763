"""The collections of a vault and their members, as a page and as JSON.

Boundary: shows collections that the asker may use and no others; names only to those who may read
them, members only to those who choose them: owners, and a browser that unlocked it. No text of any
memory is opened here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from datasette import Forbidden, Response
from datasette.utils import tilde_decode
from msgspec import Struct
from msgspec.structs import asdict

from memory_store.access import Grants
from memory_store.errors import BadInputError, LockedError, NotFoundError
from memory_store.host import EVERYTHING, OWNER_ROLE, ROLES
from memory_store.records import CollectionInfo

from . import compat
from .permissions.asker import asker
from .permissions.membership import Membership
from .requests import questions
from .requests.admission import work, writing
from .requests.answers import answer
from .requests.frame import hybrid_path, page, render
from .search.api import endpoint
from .vaults.vault import Vault

NO_STORE = {"Cache-Control": "no-store"}


class CollectionView(Struct, frozen=True):
    """A collection as one asker sees it.

    ``name`` is null for those who may not read, ``memories`` for those who
    may only write; ``role`` is the asker's in a closed collection;
    ``permissions`` what they may do there; ``members`` (actor → role) is for those who choose them.
    """

    id: str
    name: str | None
    memories: int | None
    created: str
    open: bool
    role: str | None
    permissions: tuple[str, ...]
    members: Mapping[str, str] | None


@dataclass(frozen=True)
class Visit:
    """An open vault, and who has come to look at its collections or to change them."""

    vault: Vault
    grants: Grants
    actor_id: str | None
    on_database: frozenset[str]

    def views(self) -> list[CollectionView]:
        """The collections that the asker may use, in the order they were made."""
        seen = self.grants.search | self.grants.decrypt | self.grants.write
        membership = self.membership()
        found = self.vault.use(seen).collections.list()
        return [self.view(one, membership) for one in found if one.id in membership.collections]

    def view(self, info: CollectionInfo, membership: Membership) -> CollectionView:
        """One collection as the asker sees it."""
        held = {action: getattr(self.grants, action.removeprefix("hybrid-")) for action in ACTIONS}
        return CollectionView(
            id=info.id,
            name=info.name if info.id in self.grants.decrypt else None,
            memories=info.memories if info.id in self.grants.search | self.grants.decrypt else None,
            created=info.created,
            open=info.id in membership.open,
            role=membership.role(info.id, self.actor_id),
            permissions=tuple(action for action in ACTIONS if info.id in held[action]),
            members=dict(membership.members[info.id]) if info.id in self.grants.manage else None,
        )

    def membership(self) -> Membership:
        """Who is a member of what, as of now. Raises LockedError."""
        known = self.vault.membership()
        if known is None and self.vault.is_open:  # by a key that does not say who is a member
            known = Membership(self.vault.use(self.grants.search).collections.membership())
        if known is None:
            raise LockedError(f"{self.vault.database} is locked: unlock it first")
        return known

    def one(self, collection: str) -> CollectionView:
        """A collection by its id. Raises NotFoundError for one that the asker may not use."""
        for view in self.views():
            if view.id == collection:
                return view
        raise NotFoundError(f"no collection {collection}")

    def create(self, name: Any, *, private: bool) -> CollectionView:
        """A new collection, the asker's own if ``private``. Raises Forbidden, BadInputError."""
        if not self.grants.create:
            raise Forbidden("making a collection needs the permission hybrid-write on the database")
        if private and self.actor_id is None:
            raise BadInputError(
                "private: sign in first, so that the collection has an owner", "private"
            )
        store = self.vault.use(self.grants.write | self.grants.decrypt, creating=True)
        owner = self.actor_id if private else None
        made = store.collections.create(_name(name), owner=owner)
        members = {owner: OWNER_ROLE} if owner is not None else None
        return CollectionView(
            id=made.id,
            name=made.name,
            memories=0,
            created=made.created,
            open=not private,
            role=OWNER_ROLE if private else None,
            permissions=tuple(one for one in ACTIONS if private or one in self.on_database),
            members=members,
        )

    def rename(self, collection: str, name: Any) -> None:
        """Give a collection another name: an owner's right; where it is open, a writer's."""
        view = self.one(collection)
        may = view.members is not None or (
            view.open and self.grants.create and compat.WRITE in view.permissions
        )
        if not may:
            raise Forbidden("only its owners rename this collection")
        self.vault.use(self.grants.write).collections.rename(collection, _name(name))

    def change_members(
        self, collection: str, roles: Mapping[str, Any], new_name: str | None = None
    ) -> None:
        """Give actors their roles; a role of None takes an actor's away. All or nothing."""
        self._check_manages(collection)
        removed = [actor for actor, role in roles.items() if role is None]
        added = {actor: role for actor, role in roles.items() if role is not None}
        store = self.vault.use(self.grants.manage)
        store.collections.change_members(
            collection, added, removed, by=self._owner(), new_name=new_name
        )

    def open(self, collection: str, new_name: str | None = None) -> None:
        """Take away all members: the permissions on the database decide again."""
        self._check_manages(collection)
        store = self.vault.use(self.grants.manage)
        store.collections.open(collection, by=self._owner(), new_name=new_name)

    def _owner(self) -> str | None:
        """Who must still be an owner when it is written; ``None`` where the vault was unlocked."""
        return None if self.grants.manage.covers(EVERYTHING) else self.actor_id

    def _check_manages(self, collection: str) -> None:
        if self.one(collection).members is None:
            raise Forbidden("only its owners choose the members of this collection")


ACTIONS = compat.ON_COLLECTIONS


async def _visit(datasette: Any, request: Any) -> Visit:
    """The vault in the address, for an actor who may use some collection in it."""
    anything = ("search", "decrypt", "write")
    vault, grants = await questions.vault_for(datasette, request, *anything, any_of=True)
    known = asker.get()
    return Visit(vault, grants, known.actor_id, known.at(vault.database))


# -- the page ---------------------------------------------------------------------------


@page("GET", "HEAD", "POST")
async def collections_page(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/collections``: what there is, and forms for those who may change it."""
    visit = await _visit(datasette, request)
    path = f"{hybrid_path(datasette, visit.vault.database)}/collections"
    given, refusal, status = _single(questions.arguments(request)), None, 200
    if request.method == "POST":
        given = _single(await questions.parameters(request))
    try:
        if question := await work.run(lambda: _question(visit, given)):
            return await _ask(datasette, request, visit, given, question)
        if request.method == "POST":
            done, shown = await writing.run(lambda: _carry_out(visit, given))
            datasette.add_message(request, done)
            # which one is managed stays to be seen, with what has become of it
            kept = f"?manage={shown}#c-{shown}" if shown else ""
            return Response.redirect(path + kept, status=303, headers=NO_STORE)
    except (Forbidden, BadInputError, NotFoundError) as error:
        refusal, status = str(error), questions.status_of(error)
    context = {
        "database": visit.vault.database,
        "path": hybrid_path(datasette, visit.vault.database),
        "collections": await work.run(visit.views),
        "roles": tuple(ROLES),
        "may_create": visit.grants.create,
        "actor_id": visit.actor_id,
        "refusal": refusal,
        "given": given,
        "managed": given.get("manage") or given.get("collection"),
    }
    return await render(datasette, request, "hybrid_collections.html", context, status)


def _single(given: Mapping[str, Any]) -> Mapping[str, str]:
    """The last value of each field that has one."""
    return {name: value[-1] for name, value in given.items() if isinstance(value, list) and value}


def _question(visit: Visit, given: Mapping[str, str]) -> CollectionView | None:
    """The collection to ask about first: one to open to everybody, or to leave oneself."""
    what = given.get("do", "")
    leaving = what == "remove" and given.get("actor", "").strip() == visit.actor_id
    if given.get("sure") or not (what == "open" or leaving):
        return None
    view = visit.one(given.get("collection", "").strip())
    if not view.members:
        return None  # nothing to give away; or not theirs to do, which is refused
    others = {role for actor, role in view.members.items() if actor != visit.actor_id}
    return view if what == "open" or OWNER_ROLE in others else None


async def _ask(
    datasette: Any, request: Any, visit: Visit, given: Mapping[str, str], view: CollectionView
) -> Response:
    """What would happen, and to whom, with a button that does it."""
    context = {
        "database": visit.vault.database,
        "path": hybrid_path(datasette, visit.vault.database),
        "one": view,
        "what": given["do"],
        "actor_id": visit.actor_id,
    }
    return await render(datasette, request, "hybrid_collection_sure.html", context)


def _carry_out(visit: Visit, given: Mapping[str, str]) -> tuple[str, str]:
    """Do what one of the page's forms asks for: a sentence without names, and the collection."""
    what, collection, actor = (
        given.get(name, "").strip() for name in ("do", "collection", "actor")
    )
    if what == "create":
        made = visit.create(given.get("name"), private=given.get("access") == "private")
        return "The collection is made.", made.id
    if what == "rename":
        visit.rename(collection, given.get("name"))
        return "Renamed.", collection
    if what == "set":
        visit.change_members(collection, {actor: given.get("role", "")})
        return "Members saved.", collection
    if what == "remove":
        visit.change_members(collection, {actor: None})
        return "Removed: no way in any more.", "" if actor == visit.actor_id else collection
    if what == "open":
        visit.open(collection)
        return "The collection is open to everybody with permissions on this database.", collection
    raise BadInputError("do: create, rename, set, remove or open expected", "do")


# -- JSON -------------------------------------------------------------------------------


@endpoint("GET", "HEAD", "POST")
async def collections_json(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/collections.json``: those the asker may use; POST makes one."""
    visit = await _visit(datasette, request)
    if request.method == "POST":
        given = await questions.json_fields(request, "name", "private")
        private = given.get("private", False)
        if not isinstance(private, bool):
            raise BadInputError("private: true or false expected", "private")
        made = await writing.run(lambda: visit.create(given.get("name"), private=private))
        return answer({"ok": True, "rows": [asdict(made)]}, status=201)
    views = await work.run(visit.views)
    return answer({"ok": True, "rows": [asdict(view) for view in views]})


@endpoint("GET", "HEAD", "PATCH")
async def collection_json(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/collections/{id}.json``; PATCH takes ``name`` and ``members``.

    ``members`` maps actors to roles, and to null those who go; null for the whole opens it.
    """
    visit = await _visit(datasette, request)
    collection = tilde_decode(request.url_vars["id"])
    if request.method == "PATCH":
        given = await questions.json_fields(request, "name", "members")
        if not given:
            raise BadInputError("body: nothing to change", "body")
        await writing.run(lambda: _patch(visit, collection, given))
    view = await work.run(lambda: visit.one(collection))
    return answer({"ok": True, "rows": [asdict(view)]})


@endpoint("PUT", "DELETE")
async def member_json(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/collections/{id}/members/{actor}.json``: PUT ``{"role": …}``, DELETE."""
    visit = await _visit(datasette, request)
    collection, actor = (tilde_decode(request.url_vars[name]) for name in ("id", "actor"))
    role: Any = None
    if request.method == "PUT":
        role = _role((await questions.json_fields(request, "role")).get("role"))
    await writing.run(lambda: visit.change_members(collection, {actor: role}))
    return answer({"ok": True, "actor": actor, "role": role})


def _patch(visit: Visit, collection: str, given: Mapping[str, Any]) -> None:
    name = _name(given["name"]) if "name" in given else None
    if "members" not in given:
        visit.rename(collection, name)
    elif given["members"] is None:
        visit.open(collection, name)
    elif isinstance(given["members"], dict) and given["members"]:
        roles = given["members"]
        kept = {actor: role if role is None else _role(role) for actor, role in roles.items()}
        visit.change_members(collection, kept, name)
    else:
        raise BadInputError("members: an object of roles by actor expected, or null", "members")


def _role(value: Any) -> str:
    if not isinstance(value, str):
        raise BadInputError(f"role: {', '.join(ROLES)} expected", "role")
    return value


def _name(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise BadInputError("name: a collection needs a name", "name")
    return value.strip()
