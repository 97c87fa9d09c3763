"""What a page that may show opened text lets a browser do: the content security policy, no frames.

Boundary: a script runs on such a page only where a file of this server or a template of Datasette,
of a plugin or of yours says so. Each request has a random nonce, which is put into the script tags
of templates as they are compiled, before any data is in them; a tag that data brought has none.

Our own pages always say so. Datasette's own do where text was opened for them, by a cell or by SQL,
and where they are of a vault's tables. Its other pages of a database with a vault may hold a form
that writes, or the link to one: an actor with a grant there gets them in no frame.

And no cache keeps them: Datasette lets every proxy keep a table or an answer to SQL for a few
seconds. Where the asker holds a grant on some vault, the same address says different things to
different people.
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from jinja2 import Environment
from jinja2.ext import Extension

from ..permissions.asker import Asker, asker
from ..permissions.grants import place
from ..permissions.tables import Access, needed
from ..vaults.registry import names_found

SCRIPT = re.compile(r"""(?<!["'`\\])<script\b(?![^>]*\bnonce=)""")
HANDLER = re.compile(r"""\son[a-z]+="([^"{]+)\"""")
UNFRAMED = "frame-ancestors 'none'; base-uri 'none'; object-src 'none'"
CACHE_CONTROL = b"cache-control"

Send = Callable[[Any], Awaitable[None]]

_handlers: set[str] = set()
"""Hashes of the handlers that stand in the attributes of templates. 1.0 has one."""


@dataclass
class Protection:
    """One request: the nonce of its scripts, and whether text was opened for it."""

    nonce: str = field(default_factory=lambda: secrets.token_urlsafe(16))
    opened: bool = False


_protection: ContextVar[Protection | None] = ContextVar("hybrid_protection", default=None)


@contextmanager
def protection() -> Iterator[None]:
    """For one request. What is opened for a request inside another is opened for both."""
    outer, inner = _protection.get(), Protection()
    token = _protection.set(inner)
    try:
        yield
    finally:
        _protection.reset(token)
        if outer is not None and inner.opened:
            outer.opened = True


def note_opened() -> None:
    """Text was opened for the running request, in any thread."""
    found = _protection.get()
    if found is not None:
        found.opened = True


def nonce() -> str:
    """What marks the running request's own scripts."""
    found = _protection.get()
    return found.nonce if found is not None else ""


class MarkedScripts(Extension):
    """Puts the nonce into the script tags of every template."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        """The source of a template, before it is compiled."""
        for handler in HANDLER.findall(source):
            digest = hashlib.sha256(handler.encode()).digest()
            _handlers.add(f"'sha256-{base64.b64encode(digest).decode()}'")
        return SCRIPT.sub('<script nonce="{{ hybrid_nonce() }}"', source)


def mark_scripts(environment: Environment) -> None:
    """From now on, in the templates of one Datasette."""
    environment.add_extension(MarkedScripts)
    environment.globals["hybrid_nonce"] = nonce


def content_policy() -> str:
    """The content security policy of a page that may show opened text.

    Styles may be inline, because Datasette's menus are; images, fonts and requests stay here.
    """
    attributes = f"'unsafe-hashes' {' '.join(sorted(_handlers))}" if _handlers else "'none'"
    return (
        f"default-src 'none'; script-src 'self' 'nonce-{nonce()}'; script-src-attr {attributes}; "
        "style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )


def protected(datasette: Any, path: str, send: Send) -> Send:
    """``send``, with these headers for the pages that are not ours."""

    async def sent(message: Any) -> None:
        if message["type"] == "http.response.start":
            headers = [*message["headers"]]
            policy = _policy(datasette, path, {name.lower(): value for name, value in headers})
            if policy is not None:
                headers += [
                    (b"content-security-policy", policy.encode()),
                    (b"x-frame-options", b"DENY"),
                    (b"x-content-type-options", b"nosniff"),
                    (b"referrer-policy", b"no-referrer"),
                ]
            if _may_search(asker.get()):
                headers = [pair for pair in headers if pair[0].lower() != CACHE_CONTROL]
                headers.append((CACHE_CONTROL, b"no-store"))
            message = {**message, "headers": headers}
        await send(message)

    return sent


def _may_search(known: Asker) -> bool:
    """Whether an answer may say what others may not know: of any vault that was asked about."""
    return any(any(one.grants.values()) for one in (known, *known.others.values()))


def _policy(datasette: Any, path: str, said: Mapping[bytes, bytes]) -> str | None:
    """What one answer needs; ``None``: nothing, or it says so itself."""
    if not said.get(b"content-type", b"").startswith(b"text/html"):
        return None
    if b"content-security-policy" in said:
        return None
    found = _protection.get()
    opened = found is not None and found.opened
    database, table = place(datasette, path)
    known = asker.get()
    if database is None:
        return UNFRAMED if opened else None
    if opened or (database in names_found(datasette) and needed(table) > Access.NONE):
        return content_policy()
    return UNFRAMED if known.at(database) or known.on(database) else None
