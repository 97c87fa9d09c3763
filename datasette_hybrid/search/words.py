"""Whether words occur, as a page and as JSON, and which begin so.

Boundary: :mod:`memory_store.access` settles what the asker may know. Terms may be posted, so that
they stand in no address.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from datasette import Response

from memory_store import access
from memory_store.access import Grants
from memory_store.errors import BadInputError
from memory_store.host import NO, YES, MemoryStore, parse
from memory_store.records import (
    Existence,
    ExistsRequest,
    SearchRequest,
    WordCount,
    WordsRequest,
    read_record,
)

from ..requests import private_searches, questions
from ..requests.answers import answer
from ..requests.frame import hybrid_path, page, render, sentence
from ..vaults.vault import Vault
from . import forms
from .api import endpoint

Row = TypeVar("Row", Existence, WordCount)


@page("GET", "HEAD", "POST")
async def exists_page(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/exists``: of each word or quoted phrase in ``q`` whether it is there."""
    vault, grants = await questions.vault_for(datasette, request, "search")
    private = [vault] if vault.settings.private_queries else []
    here = f"{hybrid_path(datasette, vault.database)}/exists"
    away = await private_searches.led_away(datasette, request, here, private)
    if away is not None:
        return away
    q = forms.last(await questions.parameters(request), "q")
    context: dict[str, Any] = {"q": q, "private_queries": bool(private)}
    status = 200
    if q:
        try:
            asked = ExistsRequest(_terms(q))
            context["found"] = await _found(
                vault, grants, lambda store: access.exists(store, grants, asked)
            )
        except BadInputError as error:
            context["refusal"], status = sentence(str(error)), 400
    return await render(datasette, request, "hybrid_exists.html", context, status, vault=vault)


def _terms(query: str) -> tuple[str, ...]:
    """What a query asks for, each once: its phrases, and its other words; no filter."""
    parsed = parse(SearchRequest(query))
    quoted = {word for phrase in parsed.required for word in phrase.words}
    phrases = (phrase.text for phrase in (*parsed.required, *parsed.excluded))
    words = (word for word in parsed.words if word not in quoted)
    return tuple(dict.fromkeys((*phrases, *words)))


@endpoint("GET", "HEAD", "POST", takes=None)
async def exists(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/exists.json``: each ``term``, of a ``collection``, spelled ``exact``-ly."""
    vault, grants = await questions.vault_for(datasette, request, "search")
    given = _named(await questions.parameters(request))
    if not questions.is_json(request) and (exact := given.get("exact")):
        said = str(exact[-1]).lower()
        if said not in YES | NO:
            raise BadInputError("exact: 1 or 0 expected", "exact")
        given["exact"] = said in YES
    asked = read_record(ExistsRequest, given)
    return await _rows(vault, grants, lambda store: access.exists(store, grants, asked))


@endpoint("GET", "HEAD", "POST", takes=None)
async def words(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/words.json``: the words that begin with ``prefix``."""
    vault, grants = await questions.vault_for(datasette, request, "search", "decrypt")
    given = _named(await questions.parameters(request))
    spelled = not questions.is_json(request)  # texts, each name to its values
    if spelled and "prefix" in given:
        given["prefix"] = forms.last(given, "prefix")
    if spelled and "limit" in given:
        given["limit"] = forms.whole(given, "limit", 0)
    asked = read_record(WordsRequest, given)
    return await _rows(vault, grants, lambda store: access.words(store, grants, asked))


async def _rows(
    vault: Vault, grants: Grants, ask: Callable[[MemoryStore], Sequence[Row]]
) -> Response:
    found = await _found(vault, grants, ask)
    return answer({"ok": True, "rows": [one.as_dict() for one in found]})


async def _found(
    vault: Vault, grants: Grants, ask: Callable[[MemoryStore], Sequence[Row]]
) -> Sequence[Row]:
    return await questions.in_turn(lambda: ask(vault.use(grants.search, readable=grants.decrypt)))


def _named(given: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters less those of Datasette's own, which begin with an underscore."""
    return {name: value for name, value in given.items() if not name.startswith("_")}
