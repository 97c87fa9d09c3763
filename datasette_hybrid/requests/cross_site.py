"""Requests forged by other sites: where Datasette's own guard cannot say what we want to say.

Boundary: nothing here lets a request through that Datasette would refuse. Datasette 1.0 compares
``Sec-Fetch-Site`` and ``Origin`` and needs nothing of us. On 0.65 a form carries a token that must
fit a cookie. Its refusal is a line of text, and what was typed into the form is gone, so two forms
are checked here instead, by the same rule, and shown again. And it takes no JSON with cookies at
all; here it says what to do instead. And 0.65 lets a form pass that comes without any cookie,
which a cookie of this site may follow later: every page is closed to what another site sends.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from .answers import refusal

try:
    from datasette.csrf import CrossOriginProtectionMiddleware
except ImportError:  # 0.65
    CrossOriginProtectionMiddleware = None

BY_TOKEN = CrossOriginProtectionMiddleware is None
"""Whether this Datasette guards forms by tokens."""

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
CHECKED_HERE = re.compile(r"/[^/]+/-/hybrid/(?:new|memories/[^/]+/edit|import(?:\.json)?)")
"""The forms that hold what a user has written, and those with files, which 0.65's guard cannot
read with a new ``python-multipart``; :func:`is_forged` is asked by their views."""
OURS = "/-/hybrid"
DATA = (".json", ".csv")
FORM_KINDS = ("application/x-www-form-urlencoded", "multipart/form-data")
ADVICE = (
    "this Datasette takes no JSON that comes with cookies, which another site could have sent: "
    "send a token in the Authorization header and no cookies"
)
ELSEWHERE = "this was sent by another site, so nothing was done"


def is_checked_here(datasette: Any, scope: Mapping[str, Any]) -> bool:
    """Whether a request is for a form that is checked here instead of by Datasette 0.65."""
    path, base = _path(scope), str(datasette.setting("base_url"))
    if path.startswith(base):
        path = f"/{path.removeprefix(base)}"
    return CHECKED_HERE.fullmatch(path) is not None


def comes_from_elsewhere(request: Any) -> bool:
    """Whether a browser says that another site sent the request. Programs say nothing."""
    return _from_elsewhere(request.headers)


def is_rebound(request: Any) -> bool:
    """Whether a browser on this machine says that it is on another site, also if it is this one.

    A site can have its own name lead to this machine; then its pages are of the same origin as
    what is served here. A proxy says for whom it asks, so behind one there is nothing to refuse.
    """
    peer = (request.scope.get("client") or ("",))[0]
    forwarded = {"forwarded", "x-forwarded-for"} & {*request.headers}
    if forwarded or not _is_this_machine(peer):
        return False
    origin = request.headers.get("origin")
    names = {request.headers.get("host", ""), *([_host_in(origin) or ""] if origin else [])}
    return bool(origin) and not all(_is_this_machine(_without_port(one)) for one in names)


def is_forged(request: Any, token: str) -> bool:
    """Whether a form with this token may come from another site (or from before a restart)."""
    if not BY_TOKEN or not request.headers.get("cookie") or _has_bearer(request.headers):
        return False
    return not secrets.compare_digest(token.encode(), request.scope["csrftoken"]().encode())


def refused_json(scope: Mapping[str, Any]) -> Any:
    """The answer to JSON that Datasette 0.65 would refuse without a reason, or take from elsewhere.

    A token without cookies is nothing that a browser sends by itself; so it may come from any site.
    """
    if not BY_TOKEN or scope["method"] in SAFE_METHODS or not _is_our_data(_path(scope)):
        return None
    headers = {
        name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]
    }
    if _from_elsewhere(headers) and not (_has_bearer(headers) and not headers.get("cookie")):
        return refusal(ELSEWHERE, 403)
    kind = headers.get("content-type", "").partition(";")[0]
    taken = kind in FORM_KINDS or "x-csrftoken" in headers or _has_bearer(headers)
    return None if taken or not headers.get("cookie") else refusal(ADVICE, 403)


def _is_our_data(path: str) -> bool:
    """Whether data is asked for, by a path of any length, in time that grows as it does."""
    _, ours, rest = path.partition(OURS)
    below = rest.startswith("/") or rest in DATA
    return bool(ours) and below and (rest == "/mcp" or rest.endswith(DATA))


def _from_elsewhere(headers: Mapping[str, str]) -> bool:
    site = headers.get("sec-fetch-site")
    if site:
        return site not in ("same-origin", "none")
    origin = headers.get("origin")
    return origin is not None and origin != "" and _host_in(origin) != headers.get("host", "")


def _host_in(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc
    except ValueError:  # such as http://[
        return None


def _without_port(host: str) -> str:
    bare = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    return bare.lower()


def _is_this_machine(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def _has_bearer(headers: Mapping[str, str]) -> bool:
    return headers.get("authorization", "").startswith("Bearer ")


def _path(scope: Mapping[str, Any]) -> str:
    """The path as Datasette's router reads it: before percent-decoding, without the query."""
    raw = scope.get("raw_path")
    path = raw.decode("ascii", "replace") if raw else str(scope["path"])
    return path.partition("?")[0]
