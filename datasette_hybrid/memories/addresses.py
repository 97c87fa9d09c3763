"""The addresses of memories, and the way back to the search that they were found by."""

from __future__ import annotations

from typing import Any

from datasette import Response
from datasette.utils import tilde_encode

from ..requests import private_searches, questions
from ..requests.frame import hybrid_path
from ..search import forms
from ..search.addresses import changed as changed_search


def memory_path(datasette: Any, database: str, memory_id: str) -> str:
    """The address of a memory's page."""
    return f"{hybrid_path(datasette, database)}/memories/{tilde_encode(memory_id)}"


def seeing_other(datasette: Any, request: Any, address: str, message: str) -> Response:
    """To another page, which shows ``message``: the answer to a form that was carried out."""
    datasette.add_message(request, message, datasette.INFO)
    return Response.redirect(address, status=303, headers={"Cache-Control": "no-store"})


def kept(request: Any) -> str:
    """The search that the user came from, which stays in the address on the way, or its name."""
    given = forms.understood(questions.arguments(request))
    return changed_search(given, "", asked=private_searches.name_in(request))
