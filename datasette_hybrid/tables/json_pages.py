"""Datasette's own JSON of a table: of memories that a search found, it says their real order.

Datasette knows orders by a column alone, and would name that of the table.

Boundary: the query, which is in the request's address, and names of columns.
"""

from __future__ import annotations

from inspect import Parameter, signature
from typing import Any

from datasette.renderer import json_renderer

from .order import SETTLED

_THEIRS = signature(json_renderer)  # it has other parameters in 1.0 than in 0.65
_REQUEST = Parameter("request", Parameter.POSITIONAL_OR_KEYWORD)
_PARAMETERS = {"request": _REQUEST} | dict(_THEIRS.parameters)


def render_json(*given: Any) -> Any:
    """What Datasette's renderer makes of it."""
    named = dict(zip(_PARAMETERS, given, strict=True))
    if named["request"].scope.get(SETTLED) is not None:
        from .filters import shown_order  # most JSON is of something else

        said = shown_order(named["request"])
        data = named["data"]
        named["data"] = {**data, **{key: said[key] for key in said if key in data}}
    return json_renderer(*[named[name] for name in _THEIRS.parameters])


render_json.__signature__ = signature(json_renderer).replace(  # type: ignore[attr-defined]
    parameters=list(_PARAMETERS.values())
)
"""By this Datasette knows what to call it with."""
