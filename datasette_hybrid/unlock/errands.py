"""What a user was about to do when they had to unlock first, so that they can go on with it.

Boundary: carries what the request held, its query and its words among them, from a refused request
through the unlock form and back to the address it was meant for: in hidden fields, never in a log,
and in an address only where it came in one. What was posted is posted again only when it was posted
to this server before: a link from elsewhere can name an address and options, and send nothing.
"""

from __future__ import annotations

import asyncio
import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from memory_store.errors import BadInputError

from ..requests import questions
from ..search.forms import values

BELOW, POSTED = "_to", "_posted"  # our own fields: Datasette's parameters begin like this, too
SECRETS = frozenset({"secret", "passphrase", "password", "recovery_code", "recovery-code", "key"})
"""Fields that a program may put a secret into; the form has the first alone."""
NEVER_CARRIED = SECRETS | {BELOW, POSTED, "csrftoken", "asked"}
"""What stood behind a name in the address is forgotten at a lock: see ``requests/returning.py``."""
ADDRESS = re.compile(r"(?:/[A-Za-z0-9~_-][A-Za-z0-9~._-]*){1,8}")
"""Below the search page: no empty part, no dots that lead up, nothing that names another server."""
NO_ERRAND = frozenset({"/unlock", "/lock"})
DEEDS = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (r"/new", "Add a memory"),
        (r"/memories/([^/]+)/edit", "Change memory {}"),
        (r"/memories/([^/]+)/delete", "Delete memory {}"),
        (r"/memories/([^/]+)/done", "Mark memory {} as done"),
        (r"/memories/([^/]+)/reopen", "Mark memory {} as open again"),
        (r"/memories/([^/]+)/topics", "Change the topics of memory {}"),
        (r"/memories/([^/]+)/publish", "Publish memory {} in another collection"),
        (r"/selected", "Change the selected memories, or delete them"),
        (r"/trash/restore", "Put memories back as they were"),
        (r"/trash/empty", "Erase what is in the trash for good"),
        (r"/collections", "Change the collections or their members"),
        (r"/import/[^/]+", "Stop an import"),
    )
)
"""Addresses that forms are sent to, and what they do there."""
HIDDEN_FIELDS = frozenset({"id", "version"})  # of no meaning to a reader
SHOWN_OF_ID, SHOWN_OF_VALUE = 8, 200  # characters
BODY_PATIENCE = 2.0  # seconds: a body that was read already never comes again


@dataclass(frozen=True)
class Errand:
    """An address below the search page (empty: that page) and what it was given."""

    below: str = ""
    pairs: tuple[tuple[str, str], ...] = ()
    posted: bool = False

    def fields(self) -> list[tuple[str, str]]:
        """The hidden fields of a form that carries the errand."""
        own = [(BELOW, self.below)] if self.below else []
        return [*own, *([(POSTED, "1")] if self.posted else []), *self.pairs]

    def href(self, path: str) -> str:
        """The address it was, where ``path`` is the search page."""
        return f"{path}{self.below}" + (f"?{urlencode(self.pairs)}" if self.pairs else "")


@dataclass(frozen=True)
class Task:
    """What sending an errand's form would do, for the user who is to press the button."""

    sentence: str
    details: tuple[tuple[str, str], ...]


def described(errand: Errand) -> Task:
    """The errand in words, with what its fields say."""
    sentence = f"Send a form to {errand.below}"
    for pattern, words in DEEDS:
        found = pattern.fullmatch(errand.below)
        if found:
            sentence = words.format(*(one[:SHOWN_OF_ID] for one in found.groups()))
    details = ((name, shortened(value)) for name, value in errand.pairs if value.strip())
    return Task(sentence, tuple(one for one in details if one[0] not in HIDDEN_FIELDS))


def shortened(value: str) -> str:
    """The beginning of a value, on one line."""
    return textwrap.shorten(value[: 4 * SHOWN_OF_VALUE], SHOWN_OF_VALUE, placeholder=" …")


async def errand_of(request: Any, path: str) -> Errand:
    """The errand of a request that was refused; ``path`` is the search page."""
    below = _checked(request.path.removeprefix(path)) if request.path.startswith(path) else ""
    if request.method != "POST":
        return from_link(questions.arguments(request), below)
    kind = request.headers.get("content-type", "")
    if not kind.startswith("application/x-www-form-urlencoded"):
        return Errand("" if below.endswith((".json", ".csv")) else below)
    try:
        given = await asyncio.wait_for(questions.parameters(request), BODY_PATIENCE)
    except (BadInputError, TimeoutError):
        return Errand()
    return Errand(below, _pairs(given), posted=True)


def from_link(given: Mapping[str, Any], below: str = "") -> Errand:
    """The errand that an address names: nothing posted, also where it says so."""
    named = "".join(values(given, BELOW)[-1:])
    return Errand(below or _checked(named), _pairs(given))


def from_form(given: Mapping[str, Any]) -> Errand:
    """The errand that an unlock form carried."""
    below = _checked("".join(values(given, BELOW)[-1:]))
    return Errand(below, _pairs(given), posted=bool(values(given, POSTED)))


def _checked(below: str) -> str:
    return below if ADDRESS.fullmatch(below) and below not in NO_ERRAND else ""


def _pairs(given: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    carried = (name for name in given if name not in NEVER_CARRIED)
    return tuple((name, value) for name in carried for value in values(given, name))
