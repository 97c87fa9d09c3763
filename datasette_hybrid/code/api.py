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
from ..search.api import View, endpoint
from ..search.forms import whole_number

MOST_ROWS = 1_000
ROWS = 100
Given = dict[str, Any]


def _asks(
    ask: Callable[[MemoryStore], Callable[..., Any]], *names: str, needs: str = "", **usual: int
) -> View:
    """An endpoint for one of the questions about code, with parameters of these ``names``."""

    @endpoint("GET", "HEAD", takes=names)
    async def asked(datasette: Any, request: Any) -> Response:
        given = {**usual, **_given(request, *names, needs=needs)}
        vault, grants = await questions.vault_for(datasette, request, "decrypt")
        found = await work.run(lambda: ask(vault.use(grants.decrypt))(**given))
        return answer({"ok": True, **to_builtins(found)})

    return asked


def _given(request: Any, *names: str, needs: str = "") -> Given:
    """The parameters of a question by name. Raises BadInputError naming the one that is wrong."""
    given: Given = {}
    sent = {name: said for name, said in questions.arguments(request).items() if said[-1]}
    for name in names:
        if said := sent.get(name):
            given[name] = said if name == "collection" else _read(name, said[-1].strip())
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


NAMED = ("name", "collection", "limit")
READ = ("file", "collection", "budget", "skeleton", "snap", "if_changed")

outline = _asks(lambda store: store.code.outline, "file", "collection", needs="file")
symbols = _asks(lambda store: store.code.symbols, *NAMED, needs="name", limit=ROWS)
references = _asks(lambda store: store.code.references, *NAMED, needs="name", limit=ROWS)
impact = _asks(lambda store: store.code.impact, "of", "collection", "hops", needs="of")
context = _asks(lambda store: store.code.context, "collection", "budget")
read = _asks(lambda store: store.code.read, *READ, needs="file")
