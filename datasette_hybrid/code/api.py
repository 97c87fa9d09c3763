"""What ``memory-store code`` answers, as JSON: outline, symbols, references, impact, context, read.

Boundary: names of files, symbols and imports are sealed like the text. So each of these needs the
decrypt grant, and answers as if there were no other collections than those that the asker may read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from datasette import Response
from msgspec import to_builtins

from memory_store.errors import BadInputError
from memory_store.host import NO, YES, MemoryStore

from ..requests import questions
from ..requests.admission import work
from ..requests.answers import answer
from ..search.api import endpoint
from ..search.forms import whole_number

MOST_ROWS = 1_000
ROWS = 100
Given = dict[str, Any]


@endpoint("GET", "HEAD")
async def outline(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/code/outline.json?file=``."""
    given = _given(request, "file", "collection", needs="file")
    return await _answered(datasette, request, lambda store: store.code.outline(**given))


@endpoint("GET", "HEAD")
async def symbols(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/code/symbols.json?name=``."""
    given = {"limit": ROWS, **_given(request, "name", "collection", "limit", needs="name")}
    return await _answered(datasette, request, lambda store: store.code.symbols(**given))


@endpoint("GET", "HEAD")
async def references(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/code/references.json?name=``: the lines that use a name, one a row."""
    given = {"limit": ROWS, **_given(request, "name", "collection", "limit", needs="name")}
    return await _answered(datasette, request, lambda store: store.code.references(**given))


@endpoint("GET", "HEAD")
async def impact(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/code/impact.json?of=``: of a file or a symbol."""
    given = _given(request, "of", "collection", "hops", needs="of")
    return await _answered(datasette, request, lambda store: store.code.impact(**given))


@endpoint("GET", "HEAD")
async def context(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/code/context.json``."""
    given = _given(request, "collection", "budget")
    return await _answered(datasette, request, lambda store: store.code.context(**given))


@endpoint("GET", "HEAD")
async def read(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/code/read.json?file=src/app.py:40-80``."""
    names = ("file", "collection", "budget", "skeleton", "snap", "if_changed")
    given = _given(request, *names, needs="file")
    return await _answered(datasette, request, lambda store: store.code.read(**given))


async def _answered(datasette: Any, request: Any, ask: Callable[[MemoryStore], Any]) -> Response:
    vault, grants = await questions.vault_for(datasette, request, "decrypt")
    found = await work.run(lambda: ask(vault.use(grants.decrypt)))
    return answer({"ok": True, **to_builtins(found)})


def _given(request: Any, *names: str, needs: str = "") -> Given:
    """The parameters of a question by name. Raises BadInputError naming the one that is wrong."""
    given: Given = {}
    for name, values in questions.arguments(request).items():
        if name.startswith("_") or not values[-1]:
            continue
        if name not in names:
            known = ", ".join(names)
            raise BadInputError(f"{name}: there is no such parameter here. There are {known}", name)
        given[name] = values if name == "collection" else _read(name, values[-1].strip())
    if needs and needs not in given:
        raise BadInputError(f"{needs}: {NEEDED[needs]} expected", needs)
    return given


NEEDED = {
    "file": "a path, the end of one, or an id",
    "name": "the name of a symbol",
    "of": "a file or the name of a symbol",
}


def _read(name: str, text: str) -> Any:
    if name == "skeleton":
        if text.lower() not in YES | NO:
            raise BadInputError(f"{name}: 1 or 0 expected", name)
        return text.lower() in YES
    if name not in ("limit", "budget", "hops"):
        return text
    number = whole_number(text)
    if not number:
        raise BadInputError(f"{name}: a whole number of at least 1 expected", name)
    if name == "limit" and number > MOST_ROWS:
        raise BadInputError(f"{name}: at most {MOST_ROWS:,}", name)
    return number
