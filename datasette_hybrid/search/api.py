"""The JSON API (and CSV): parse → grant → memory_store → render.

Boundary: text leaves only for askers with the decrypt grant; for others every sealed field is
null. Answers are never cached.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from functools import wraps
from typing import Any
from urllib.parse import parse_qsl, urlencode

from datasette import NotFound, Response

from memory_store import access
from memory_store.errors import BadInputError, named
from memory_store.host import whole_characters
from memory_store.records import RESULT_COLUMNS, SearchResponse

from ..requests import questions
from ..requests.answers import HEADERS, answer, refusal
from ..vaults.vault import Vault

COMPACT_KEYS = (
    "id",
    "title",
    "preview",
    "score",
    "vector_score",
    "rerank_score",
    "type",
    "created",
    "topics",
    "complete",
)
"""Gnosis, "Stage 7: Preview Generation", and the title."""

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""OWASP, "CSV Injection": a cell that begins with one of these may run as a formula."""

View = Callable[[Any, Any], Awaitable[Response]]


def endpoint(*methods: str, takes: Collection[str] | None = ()) -> Callable[[View], View]:
    """Make a view answer in JSON whatever happens, and only to the given methods.

    ``takes`` are the parameters that its address may have; None: the view refuses the others.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        async def answer(datasette: Any, request: Any) -> Response:
            if request.method not in methods:
                message = f"{request.method} is not possible here"
                return refusal(message, 405, headers={"Allow": ", ".join(methods)})
            try:
                if takes is not None:
                    questions.refuse_unknown(questions.arguments(request), *takes)
                return await view(datasette, request)
            except questions.REFUSALS as error:
                return refused(error)
            except Exception as error:  # noqa: BLE001 - see report_fault
                return refusal(questions.report_fault(error), 500)

        answer.methods = methods  # type: ignore[attr-defined]
        return answer

    return decorate


def refused(error: Exception) -> Response:
    """The JSON answer to a refusal."""
    extra: dict[str, Any] = {}
    if isinstance(error, BadInputError) and error.parameter:
        extra["parameter"] = "q" if error.parameter == "query" else error.parameter
        extra["errors"] = [named(name or "", said) for name, said in error.each]
    status, headers = questions.status_of(error), questions.retry_after(error)
    return refusal(str(error), status, extra, headers)


@endpoint("GET", "HEAD", "POST", takes=None)
async def search(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid.json``."""
    vault, grants = await questions.vault_for(datasette, request, "search")
    given = await questions.parameters(request)
    shape = _shape(given)
    asked = questions.question(given, strict=True)
    response = await questions.search(vault, grants, asked)
    if shape == "compact":
        return answer(compact(response, _rows(response, vault)))
    data = {**response.as_dict(), "rows": _rows(response, vault)}
    if shape == "array":
        return answer(data["rows"])
    # none for posted queries, which belong in no address
    following = None if request.method == "POST" else response.next
    data["next_url"] = following_url(datasette, request, "continue", following)
    return answer(data)


@endpoint("GET", "HEAD", "POST", takes=None)
async def search_csv(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid.csv``: the same rows with the SQL columns."""
    vault, grants = await questions.vault_for(datasette, request, "search")
    asked = questions.question(await questions.parameters(request), strict=True)
    response = await questions.search(vault, grants, asked)
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(RESULT_COLUMNS)
    for data in _rows(response, vault, titled=True):
        data["topics"] = ", ".join(data["topics"] or ())
        writer.writerow([safe_cell(data[name]) for name in RESULT_COLUMNS])
    headers = {**HEADERS, "Content-Disposition": 'attachment; filename="search.csv"'}
    text = whole_characters(out.getvalue())
    return Response(text, headers=headers, content_type="text/csv; charset=utf-8")


def safe_cell(value: Any) -> Any:
    """A value as a cell of CSV, with an apostrophe before what a spreadsheet would calculate."""
    if isinstance(value, str) and value.startswith(FORMULA_STARTS):
        return f"'{value}"
    return "" if value is None else value


def compact(response: SearchResponse, rows: Iterable[Mapping[str, Any]]) -> list[Any]:
    """Gnosis's table ``[results, counts, topics]``, scores 0–100, and the titles with it."""
    results = []
    for data in rows:
        short = {key: data[key] for key in COMPACT_KEYS}
        for key in ("score", "vector_score", "rerank_score"):
            short[key] = None if short[key] is None else round(short[key] * 100, 1)
        results.append(short)
    return [results, response.counts, [list(pair) for pair in response.topics.items()]]


@endpoint("GET", "HEAD", "POST", "PATCH", "DELETE", takes=None)
async def nowhere(datasette: Any, request: Any) -> Response:
    """Any other address below the search page that ends in ``.json``."""
    raise NotFound("there is no such address")


def absolute_url(datasette: Any, request: Any, path: str) -> str:
    """The whole address of a path; the path alone where the request's Host is no address."""
    try:
        return str(datasette.absolute_url(request, path))
    except ValueError:  # "[", as of an IPv6 address, that is never closed
        return path


def _rows(response: SearchResponse, vault: Vault, *, titled: bool = False) -> list[dict[str, Any]]:
    return [access.row_data(row, strict=vault.strict, titled=titled) for row in response.rows]


def _shape(given: Mapping[str, Any]) -> str:
    shape = given.get("_shape", "objects")
    shape = shape[-1] if isinstance(shape, list) and shape else shape
    if shape not in ("objects", "array", "compact"):
        raise BadInputError("_shape: objects, array or compact expected", "_shape")
    return str(shape)


def following_url(datasette: Any, request: Any, name: str, value: object) -> str | None:
    """The whole address of the page behind this one, which the parameter ``name`` says."""
    if value is None:
        return None
    given = parse_qsl(request.query_string, keep_blank_values=True)
    pairs = [*(pair for pair in given if pair[0] != name), (name, value)]
    base = str(datasette.setting("base_url"))  # which a proxy may have left in the path, or not
    path = request.path.removeprefix(base).removeprefix("/")
    return absolute_url(datasette, request, f"{datasette.urls.path(path)}?{urlencode(pairs)}")
