"""Publishing: the content of a memory in another collection, too, once and for all who read there.

Boundary: opens the memory and seals a copy under the other collection's key. What names the
original's place (its source, and other memories that the readers there may not know) stays behind.

The copy's id is a keyed hash of the original's, so that publishing again finds it without looking
at any other memory, and nobody without the key can tell a copy from what was written there. The
hash is another one in another vault; there the copy is recognised by what it says.
"""

from __future__ import annotations

import uuid
from itertools import count
from typing import Any

from msgspec.structs import replace

from memory_store.actions.action import Opened, action
from memory_store.actions.edits import again_if_overtaken
from memory_store.actions.reads import open_all, open_one, shown
from memory_store.actions.writes import write
from memory_store.errors import BadInputError, NotFoundError
from memory_store.importing.drafts import now
from memory_store.records import Memory
from memory_store.scopes import EVERYTHING, Scope
from memory_store.session.opened_vault import OpenVault
from memory_store.vault.audit_events import ADD
from memory_store.vault.rows import content_tag

LEFT_BEHIND: dict[str, Any] = dict.fromkeys(("ref", "source", "parent", "supersedes"))
SAID = ("title", "text", "type", "topics", "metadata", "created", "valid_from", "valid_to")


@action(ADD, writes=True, counts=lambda _: (1, 1))
def publish(
    opened: Opened, memory_id: str, collection: str, *, readable: Scope = EVERYTHING
) -> Memory:
    """The same content in another collection, too: a copy with an id of its own.

    Published again, the copy that is there is returned. The original stays as it is, and later
    changes to it do not reach the copy. ``readable`` are the collections that the caller may read:
    the original is in one of them; in another one, a memory that says the same is not taken for
    the copy, which would confirm what it says. Raises NotFoundError, and BadInputError when the
    memory is in that collection itself.
    """
    vault = opened.vault
    original = open_one(vault, memory_id)
    if original.collection not in readable:
        raise NotFoundError(f"no memory {memory_id!r}")
    target = vault.collections.find(collection)
    if target == original.collection:
        raise BadInputError("the memory is in that collection itself", "collection")
    wanted = replace(original, collection=target, version=1, updated=now(), **LEFT_BEHIND)

    def attempt() -> Memory:
        copy, present = _place_of(vault, wanted)
        kept = open_all(vault, [copy.id]) if present else []
        if not present and target in readable:
            kept = _saying_the_same(vault, copy)
        if not kept:
            write(opened, [copy])
        return shown(vault, [*kept, copy])[0]

    return again_if_overtaken(vault, attempt)


def _place_of(vault: OpenVault, wanted: Memory) -> tuple[Memory, bool]:
    """The copy with its id, and whether it is there. One that was moved away is left alone, and
    not told of: it may be where the asker sees nothing."""
    keys = vault.keyring.of(wanted.collection)
    for number in count():
        parts = [b"published", wanted.id.encode()] + [str(number).encode()] * bool(number)
        copied = str(uuid.UUID(bytes=keys.dedupe.tag(*parts)[:16], version=4))
        row = vault.reader().memories.rows([copied]).get(copied)
        if row is None or row.collection == wanted.collection:
            return replace(wanted, id=copied), row is not None
    raise AssertionError("an endless row ends")


def _saying_the_same(vault: OpenVault, copy: Memory) -> list[Memory]:
    """Memories of the copy's collection that say all that it says."""
    keys = vault.keyring.of(copy.collection)
    tags = [*keys.stored_forms(content_tag(keys, copy.title, copy.text))]
    alike = open_all(vault, vault.reader().memories.holding(copy.collection, tags))
    return [one for one in alike if all(getattr(one, n) == getattr(copy, n) for n in SAID)]
