"""What may want putting in order, as a page and as JSON, and what is decided of it.

Boundary: shows titles, beginnings of texts and topics of what the asker may read; changes what they
may read and write, and nothing else. Each decision is one change of the trash, which the page shown
next offers to undo.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from datasette import Response

from memory_store.errors import BadInputError
from memory_store.host import MemoryStore
from memory_store.records import Decision, MemoryChange, Review, read_record

from .memories import undo
from .memories.addresses import seeing_other
from .requests import questions
from .requests.admission import work, writing
from .requests.answers import answer
from .requests.frame import hybrid_path, page, render
from .search import forms
from .search.api import endpoint
from .vaults.vault import Vault

PAIRS = ("keep", "merge", "supersede")
SHOWN = 10  # of each kind on the page
SAID = {
    "keep": "Both are kept.",
    "merge": "Merged; the older is in the trash.",
    "supersede": "The newer took its place.",
    "delete": "It is in the trash.",
    "valid": "It is valid again.",
    "topics": "Topics added.",
}


@page("GET", "HEAD", "POST")
async def review_page(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/review``; ``POST`` decides on a pair, or on one memory."""
    if request.method == "POST":
        return await _decide(datasette, request)
    vault, grants = await questions.vault_for(datasette, request, "decrypt")

    def look() -> tuple[Review, frozenset[str]]:
        found = vault.use(grants.decrypt).review.list(limit=SHOWN)
        scope = grants.decrypt & grants.write
        return found, vault.use(scope).present(_ids(found)) if scope else frozenset()

    found, writable = await work.run(look)
    context = {
        "review": found,
        "writable": writable,
        "undo": undo.group_in(request) if grants.decrypt & grants.write else "",
    }
    return await render(datasette, request, "hybrid_review.html", context, vault=vault)


def _ids(found: Review) -> list[str]:
    pairs = [
        one
        for pair in (*found.conflicts, *found.same, *found.apart)
        for one in (pair.newer, pair.older)
    ]
    return list(dict.fromkeys(one.id for one in (*pairs, *found.over, *found.untagged)))


async def _decide(datasette: Any, request: Any) -> Response:
    given = await questions.parameters(request)
    named = {name: forms.last(given, name) for name in ("do", "newer", "older", "id")}
    said = [one.strip() for text in forms.values(given, "topics") for one in text.split(",")]
    decision = _decision({**named, "topics": [one for one in said if one]})
    vault, group = await _decided(datasette, request, decision)
    path = f"{hybrid_path(datasette, vault.database)}/review"
    place = forms.last(given, "at")
    here = f"#case-{place}" if place.isascii() and place.isdecimal() else ""
    address = path + (f"?undo={group}" if group else "") + here
    return seeing_other(datasette, request, address, SAID[decision.do])


@endpoint("GET", "HEAD", "POST", takes=("limit",))
async def review_json(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/review.json``; ``POST`` of ``{"do": …}`` decides."""
    if request.method == "POST":
        given = questions.json_object(await questions.read_body(request))
        _, group = await _decided(datasette, request, _decision(given))
        return answer({"ok": True, "group": group})
    vault, grants = await questions.vault_for(datasette, request, "decrypt")
    limit = forms.whole(questions.arguments(request), "limit", SHOWN)
    found = await work.run(lambda: vault.use(grants.decrypt).review.list(limit=limit))
    return answer({"ok": True, **found.as_dict()})


async def _decided(datasette: Any, request: Any, decision: Decision) -> tuple[Vault, str]:
    """The vault, and what the trash calls the change; empty where it keeps nothing."""
    vault, _, scope = await questions.readable_and_writable(datasette, request)
    group = undo.new_group()

    def done() -> int:
        store = vault.use(scope)
        _carry_out(store, decision, group)
        return store.trash.days()

    return vault, group if await writing.run(done) else ""


def _decision(given: Mapping[str, Any]) -> Decision:
    """What is to be done. Raises BadInputError."""
    if given.get("do") not in [*SAID]:
        raise BadInputError(f"do: one of {', '.join(SAID)} expected", "do")
    decision = read_record(Decision, given)
    needed = ("newer", "older") if decision.do in PAIRS else ("id",)
    for name in needed:
        if not getattr(decision, name):
            raise BadInputError(f"{name}: the id of a memory expected", name)
    if decision.do == "topics" and not any(one.strip() for one in decision.topics):
        raise BadInputError("topics: write the topics to add", "topics")
    return decision


def _carry_out(store: MemoryStore, decision: Decision, group: str) -> None:
    """Do what was decided, as one change of the trash."""
    newer, older, one = decision.newer, decision.older, decision.id
    match decision.do:
        case "keep":
            store.review.keep(newer, older, group=group)
        case "merge":
            store.review.merge(newer, older, group=group)
        case "supersede":
            store.review.supersede(older, newer, group=group)
        case "delete":
            store.delete_many([one], refs=False, group=group)
        case "valid":
            store.edit_many([MemoryChange(one, valid_to="")], refs=False, group=group)
        case "topics":
            change = MemoryChange(one, add_topics=decision.topics)
            store.edit_many([change], refs=False, group=group)
