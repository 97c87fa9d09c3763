"""What is done with several results of a search at once: topics, type, done, delete.

Boundary: for an actor who may read and write all of them; else nothing is changed. One transaction,
which the page shown next offers to undo.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from datasette import Response

from memory_store.errors import BadInputError
from memory_store.host import MemoryStore, drafts
from memory_store.records import MemoryChange

from ..requests import questions
from ..requests.admission import writing
from ..requests.frame import page
from ..search import forms
from . import undo
from .posted import MANY


@page("POST")
async def selected(datasette: Any, request: Any) -> Response:
    """``POST /{db}/-/hybrid/selected``: ``do`` something with each ``id``."""
    vault, _, scope = await questions.readable_and_writable(datasette, request)
    given = await questions.parameters(request)
    ids = list(dict.fromkeys(forms.values(given, "id")))
    if not 0 < len(ids) <= MANY:
        raise BadInputError("select some results first, by the boxes beside them", "id")
    work, word = _work(given, ids)
    group = undo.new_group()

    def done() -> int:
        work(vault.use(scope), group)
        return vault.use(scope).trash.days()

    days = await writing.run(done)
    those = "1 memory" if len(ids) == 1 else f"{len(ids)} memories"
    return undo.offered(datasette, request, vault, group if days else "", f"{word} {those}.")


def _work(given: Any, ids: Sequence[str]) -> tuple[Callable[[MemoryStore, str], object], str]:
    """What is to be done, and how the answer begins. Raises BadInputError."""
    match forms.last(given, "do"):
        case "delete":
            return lambda store, group: store.delete_many(ids, refs=False, group=group), "Deleted"
        case "topic":
            topics = [one for one in forms.last(given, "topic").split(",") if one.strip()]
            if not topics:
                raise BadInputError("topic: write the topics to add", "topic")
            return _edits(lambda _: {"add_topics": tuple(topics)}, ids), "Topics added to"
        case "type":
            kind = forms.last(given, "type")
            if not kind:
                raise BadInputError("type: choose the type to set", "type")
            return _edits(lambda _: {"type": kind}, ids), f"Made {kind} of"
        case "done":
            return _edits(lambda type: {"type": drafts.done_type(type)}, ids), "Marked as done:"
    raise BadInputError("do: topic, type, done or delete expected", "do")


def _edits(
    change: Callable[[str], dict[str, Any]], ids: Sequence[str]
) -> Callable[[MemoryStore, str], object]:
    """The same change to each of them, made of its type."""

    def edited(store: MemoryStore, group: str) -> object:
        found = [store.get(one, refs=False) for one in ids]
        edits = [MemoryChange(one.id, **change(one.type)) for one in found]
        return store.edit_many(edits, refs=False, group=group)

    return edited
