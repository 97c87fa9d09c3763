"""The feed of a saved search, as Atom and as JSON Feed.

Boundary: a feed reader proves itself by the feed's own token, as the password of HTTP's Basic
scheme: so no secret stands in an address. The token opens that feed and nothing else; what the feed
holds is what the actor whose search it is may see now, by the id alone. A locked vault answers
everybody alike, with no entry. Asking is no use of the vault: a reader that asks every few minutes
keeps no vault open, and a wrong token does not open one whose keys rest.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any
from xml.etree import ElementTree

from datasette import NotFound, Response
from msgspec.structs import replace

from memory_store import access
from memory_store.access import Grants
from memory_store.errors import BadInputError, LockedError, NotAVaultError, NotFoundError
from memory_store.host import EVERYTHING, plain_text, whole_characters, write_json
from memory_store.records import LIMIT_STANDARD, SavedSearch, SearchResult

from ..memories.addresses import memory_path
from ..permissions.asker import asker
from ..permissions.grants import may_see, resolve_some
from ..requests import questions
from ..requests.answers import HEADERS
from ..requests.frame import hybrid_path
from ..search.api import absolute_url, endpoint
from ..vaults.registry import vaults_of
from ..vaults.vault import Vault

ATOM = "http://www.w3.org/2005/Atom"
JSON_FEED = "https://jsonfeed.org/version/1.1"
LOCKED = "The vault is locked: unlock it to read this feed."
NO_LONGER = "The actor whose search this is may not search here any more."
NOT_ASKED = "This search cannot be asked as it is: open it in the browser to see why."
SEALED = "A memory that you may not read"
WEAK = "weak"
NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class Feed:
    """What a feed says, in whichever form: its entries, or why there are none."""

    def __init__(self, id: str, title: str, home: str, self_url: str) -> None:
        self.id, self.title, self.home, self.self_url = id, title, home, self_url
        self.entries: list[dict[str, Any]] = []
        self.reason, self.status, self.updated = "", 200, ""


@endpoint("GET", "HEAD", takes=None)
async def feed(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/feeds/{id}.atom`` and ``.json``."""
    token = _token(request)
    if token is None:
        return _unproven()
    try:
        return await _answered(datasette, request, token)
    except (NotFound, NotAVaultError, NotFoundError, LockedError):
        if await _is_shown(datasette, request):
            raise
        return _unproven()  # what a database is, or that there is none, is not this asker's to know


def _unproven() -> Response:
    headers = {**HEADERS, "WWW-Authenticate": 'Basic realm="feed", charset="UTF-8"'}
    return Response.text("This feed needs its token, as the password.", 401, headers)


async def _is_shown(datasette: Any, request: Any) -> bool:
    try:
        database = questions.database_named(datasette, request)
    except NotFound:
        return False
    return await may_see(datasette, request.actor, database)


async def _answered(datasette: Any, request: Any, token: str) -> Response:
    database = questions.database_named(datasette, request)
    vault = vaults_of(datasette).of(database)
    form, id = request.url_vars["form"], request.url_vars["id"]
    path = hybrid_path(datasette, database)
    found = Feed(
        id,
        "Saved search",
        absolute_url(datasette, request, path),
        absolute_url(datasette, request, f"{path}/feeds/{id}.{form}"),
    )
    try:
        saved = await questions.in_turn(lambda: _saved(vault, id, token))
        if saved is None:
            raise NotFoundError("no such feed, or it has ended")
        await _fill(datasette, request, vault, saved, found)
    except LockedError:
        if not await _is_shown(datasette, request):
            raise
        found.status, found.reason = 423, LOCKED
    content = _atom(found) if form == "atom" else _json(found)
    kind = "application/atom+xml" if form == "atom" else "application/feed+json"
    return Response(
        content,
        status=found.status,
        headers=dict(HEADERS),
        content_type=f"{kind}; charset=utf-8",
    )


def _saved(vault: Vault, id: str, token: str) -> SavedSearch | None:
    if not vault.may_be_feed(id, token):
        return None
    store = vault.use(EVERYTHING, counts=False)
    return store.searches.of_feed(id, token) if store.is_owner else None


async def _fill(
    datasette: Any, request: Any, vault: Vault, saved: SavedSearch, found: Feed
) -> None:
    """What the saver may see now; the rest of this request is done in their name."""
    found.title, found.updated = saved.name, saved.created
    known = await resolve_some(datasette, {"id": saved.owner}, [vault.database])
    grants = known.on(vault.database)
    if not grants.search:
        found.status, found.reason = 403, NO_LONGER
        return
    asker.set(known)
    try:
        rows = await questions.in_turn(lambda: _rows(vault, grants, saved))
    except LockedError:
        raise
    except (BadInputError, access.NotPermittedError):
        found.status, found.reason = 409, NOT_ASKED
        return
    for row in rows:
        url = absolute_url(datasette, request, memory_path(datasette, vault.database, row.id))
        found.entries.append(_entry(row, url))
    found.updated = max([saved.created, *(one["created"] or "" for one in found.entries)])


def _rows(vault: Vault, grants: Grants, saved: SavedSearch) -> list[SearchResult]:
    """The results, newest first, but those that are only near in meaning and weak."""
    asked = saved.request()
    if "limit" not in saved.search:
        asked = replace(asked, limit=LIMIT_STANDARD)
    store = vault.use(grants.search, readable=grants.decrypt, counts=False)
    found = access.search(store, grants, asked).rows
    rows = [one for one in found if one.band != WEAK or one.keyword_rank or one.topic_rank]
    return sorted(rows, key=lambda one: one.created or "", reverse=True)


def _entry(row: SearchResult, url: str) -> dict[str, Any]:
    text = row.preview
    if row.line is None:  # source code is shown as it is
        text = plain_text.without_marks(text, ())[0]
    return {
        "id": row.id,
        "url": url,
        "title": row.shown_title if row.collection else SEALED,
        "text": text,
        "created": row.created or None,  # sealed in a strict vault
        "topics": list(row.topics),
    }


def _token(request: Any) -> str | None:
    """The password that the request brings."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        return base64.b64decode(given, validate=True).decode().partition(":")[2]
    except (binascii.Error, ValueError):
        return None


def _atom(found: Feed) -> str:
    ElementTree.register_namespace("", ATOM)
    root = ElementTree.Element(f"{{{ATOM}}}feed")

    def add(parent: ElementTree.Element, name: str, text: str = "", **attributes: str) -> None:
        element = ElementTree.SubElement(parent, f"{{{ATOM}}}{name}", attributes)
        element.text = NOT_IN_XML.sub("", text) or None

    add(root, "id", f"urn:uuid:{found.id}")
    add(root, "title", found.title)
    add(root, "updated", found.updated or "1970-01-01T00:00:00Z")
    if found.reason:
        add(root, "subtitle", found.reason)
    add(root, "link", rel="self", href=found.self_url)
    add(root, "link", rel="alternate", href=found.home)
    author = ElementTree.SubElement(root, f"{{{ATOM}}}author")
    add(author, "name", "memory-store")
    for one in found.entries:
        entry = ElementTree.SubElement(root, f"{{{ATOM}}}entry")
        add(entry, "id", f"urn:uuid:{one['id']}")
        add(entry, "title", one["title"])
        add(entry, "updated", one["created"] or found.updated)
        add(entry, "link", rel="alternate", href=one["url"])
        for topic in one["topics"]:
            add(entry, "category", term=NOT_IN_XML.sub("", topic))
        add(entry, "summary", one["text"], type="text")
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True)


def _json(found: Feed) -> str:
    items = [
        {
            "id": f"urn:uuid:{one['id']}",
            "url": one["url"],
            "title": whole_characters(one["title"]),
            "content_text": whole_characters(one["text"]),
            "date_published": one["created"],
            "tags": one["topics"],
        }
        for one in found.entries
    ]
    data: dict[str, Any] = {
        "version": JSON_FEED,
        "title": found.title,
        "home_page_url": found.home,
        "feed_url": found.self_url,
        "items": items,
        "_memory_store": {"status": found.status, "reason": found.reason},
    }
    if found.reason:
        data["description"] = found.reason
    return write_json(data)
