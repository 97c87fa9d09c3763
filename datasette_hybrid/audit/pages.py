"""The audit trail as a page, as JSON and as CSV, for those with the permission hybrid-audit.

Boundary: shows who opened how many memories; there is no query, text, title or id in the trail.
An actor who may read it may read all of it, not only of the collections they may use.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from datasette import Response

from memory_store.errors import BadInputError
from memory_store.host import (
    ACTIONS,
    COLUMNS,
    EVERYTHING,
    SERVER,
    AuditEvent,
    Total,
    Wanted,
    totals,
)

from ..requests import questions
from ..requests.admission import work
from ..requests.answers import HEADERS, answer
from ..requests.frame import hybrid_path, page, render
from ..search.api import endpoint, following_url, safe_cell
from ..search.forms import last, whole
from ..vaults.vault import Vault
from .recorder import SURFACES

PER_PAGE = 100
MOST = 1_000  # rows of one JSON answer
FILTERS = ("who", "surface", "action", "since", "until")


@dataclass(frozen=True)
class Trail:
    """The events that were asked for, oldest first, and who else is in the trail."""

    events: list[AuditEvent]
    known: tuple[str, ...]
    totals: list[Total]

    def page(self, before: int | None, size: int) -> tuple[list[AuditEvent], int | None]:
        """Some events, newest first, and where the next ones end; ``None`` behind the oldest."""
        end = len(self.events) if before is None else min(before, len(self.events))
        start = max(0, end - size)
        return self.events[start:end][::-1], start or None


@page("GET", "HEAD")
async def audit_page(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/audit``."""
    vault, _ = await questions.vault_for(datasette, request, "audit")
    given = questions.arguments(request)
    path = hybrid_path(datasette, vault.database)
    context: dict[str, Any] = {
        "given": {name: last(given, name) for name in FILTERS},
        "surfaces": (*SURFACES, SERVER),
        "actions": ACTIONS,
        "kept": vault.audit.kept,
        "days": vault.settings.audit.days,
        "most": vault.settings.audit.events,
        "read_only": vault.access.read_only,
        "refusal": None,
        "trail": None,
    }
    status = 200
    try:
        trail = await _trail(vault, given)
        rows, following = trail.page(_before(given), PER_PAGE)
        context.update(trail=trail, rows=rows, **_links(given, f"{path}/audit", following))
    except BadInputError as error:
        status, context["refusal"] = 400, str(error)
    return await render(datasette, request, "hybrid_audit.html", context, status, vault=vault)


@endpoint("GET", "HEAD", takes=(*FILTERS, "limit", "before"))
async def audit_json(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/audit.json``: newest first, a page at a time, with the totals of all."""
    vault, _ = await questions.vault_for(datasette, request, "audit")
    given = questions.arguments(request)
    trail = await _trail(vault, given)
    limit = whole(given, "limit", PER_PAGE, least=1, most=MOST)
    rows, following = trail.page(_before(given), limit)
    return answer(
        {
            "ok": True,
            "rows": [event.as_dict() for event in rows],
            "totals": [total.as_dict() for total in trail.totals],
            "next": following,
            "next_url": following_url(datasette, request, "before", following),
            "truncated": following is not None,
        }
    )


@endpoint("GET", "HEAD", takes=FILTERS)
async def audit_csv(datasette: Any, request: Any) -> Response:
    """``/{db}/-/hybrid/audit.csv``: every event asked for, oldest first."""
    vault, _ = await questions.vault_for(datasette, request, "audit")
    trail = await _trail(vault, questions.arguments(request))
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    for event in trail.events:
        data = event.as_dict()
        writer.writerow([safe_cell(data[name]) for name in COLUMNS])
    headers = {**HEADERS, "Content-Disposition": 'attachment; filename="audit.csv"'}
    return Response(out.getvalue(), headers=headers, content_type="text/csv; charset=utf-8")


async def _trail(vault: Vault, given: Mapping[str, Any]) -> Trail:
    """What was asked for, of what is written and what is waiting to be."""
    wanted = Wanted(**{name: last(given, name) for name in FILTERS})

    def read() -> Trail:
        vault.write_audit()
        # the permission to read the trail is one on the whole database
        kept = [*vault.use(EVERYTHING).trail.events(), *vault.audit.waiting()]
        found = wanted.of(kept)
        return Trail(found, tuple(sorted({event.who() for event in kept})), totals(found))

    return await work.run(read)


def _links(given: Mapping[str, Any], path: str, following: int | None) -> dict[str, str | None]:
    pairs = [(name, last(given, name)) for name in FILTERS if last(given, name)]
    asked = f"?{urlencode(pairs)}" if pairs else ""
    older = f"{path}?{urlencode([*pairs, ('before', following)])}"
    return {
        "next_href": None if following is None else older,
        "first_href": path + asked if last(given, "before") else None,
        "json_href": f"{path}.json{asked}",
        "csv_href": f"{path}.csv{asked}",
    }


def _before(given: Mapping[str, Any]) -> int | None:
    """The event that a page ends before; ``None``: it is the first page."""
    return whole(given, "before", 0) if last(given, "before") else None
