"""Whether words occur, and which begin so, as JSON.

Boundary: :mod:`memory_store.access` settles what the asker may know. Terms may be posted, so that
they stand in no address.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from datasette import Response

from memory_store import access
from memory_store.access import Grants
from memory_store.errors import BadInputError
from memory_store.host import NO, YES, MemoryStore
from memory_store.records import (
    Existence,
    ExistsRequest,
    WordCount,
    WordsRequest,
    read_record,
)

from ..requests import questions
from ..requests.answers import answer
from ..vaults.vault import Vault
from . import forms
from .api import endpoint


@endpoint("GET", "HEAD", "POST")
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


@endpoint("GET", "HEAD", "POST")
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
    vault: Vault,
    grants: Grants,
    ask: Callable[[MemoryStore], Sequence[Existence] | Sequence[WordCount]],
) -> Response:
    found = await questions.in_turn(lambda: ask(vault.use(grants.search, readable=grants.decrypt)))
    return answer({"ok": True, "rows": [one.as_dict() for one in found]})


def _named(given: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters less those of Datasette's own, which begin with an underscore."""
    return {name: value for name, value in given.items() if not name.startswith("_")}
