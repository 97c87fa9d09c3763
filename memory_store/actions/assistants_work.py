"""All that one assistant added, changed, superseded or deleted, taken back at once.

Boundary: opens what the keys open, and says of it ids alone. Whose a change was stands sealed in
the trash, so this goes back as far as the trash does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from msgspec import Struct

from memory_store.actions.action import Opened, action
from memory_store.actions.attempts import again_if_overtaken
from memory_store.actions.reads import written_by
from memory_store.actions.trash import made_with, open_entries, put_back, told
from memory_store.errors import NotFoundError
from memory_store.records import BY, Undone
from memory_store.vault import trash
from memory_store.vault.audit_events import RESTORE
from memory_store.vault.trash import Entry, is_deleted

ALL = "all"  # what is undone, as a word


class Plan(Struct):
    """What is to be done: rows of the trash to put back, memories to delete, in their versions,
    and those that stay as they are, for others changed them afterwards."""

    chosen: list[Entry]
    gone: dict[str, int]
    left: set[str]


@action(RESTORE, writes=True, counts=lambda undone: (len(undone.memories), len(undone.memories)))
def undo_all_of(opened: Opened, by: str) -> Undone:
    """Take back all that the assistant of that name did, at once, as far as the trash goes back.

    What it added goes to the trash; what it changed, superseded or deleted is as before. What
    others changed afterwards stays as it is, and is named (``left``). Raises NotFoundError where
    there is nothing of it.
    """
    return again_if_overtaken(opened.vault, lambda: _undone(opened, by))


def _undone(opened: Opened, by: str) -> Undone:
    vault = opened.vault
    written = {one.id for one in written_by(vault, by)}
    with vault.reader().reading() as storage:
        every = open_entries(vault, storage)
        every = told(vault, storage, every)
        written |= {*made_with(vault, storage, [one for one in every if one.kept.by == by])}
        touched = {one.kept.memory for one in every if one.kept.by == by}
        rows = storage.memories.rows([*written | touched])
        written |= {
            one.kept.memory
            for one in every
            if one.kept.by == by
            and one.kept.memory not in rows
            and trash.open_entry(storage, vault.keyring, one, text=False).metadata.get(BY) == by
        }
    plan = planned(by, every, written, {one.id: one.version for one in rows.values()})
    if not (plan.chosen or plan.gone or plan.left):
        raise NotFoundError(
            f"{by!r} wrote, changed or deleted nothing that is here or in the trash"
        )
    put = put_back(opened, plan.chosen, every, plan.gone) if plan.chosen or plan.gone else []
    return Undone(ALL, "", tuple(put), tuple(plan.gone), tuple(sorted(plan.left)))


def planned(by: str, every: Sequence[Entry], written: set[str], present: Mapping[str, int]) -> Plan:
    """What takes back all that an assistant did, and nothing that others did on top of it.

    ``every`` are the rows of the trash, oldest first; ``written`` what the assistant added;
    ``present`` the versions of what is there.
    """
    histories: dict[str, list[Entry]] = defaultdict(list)
    for one in every:
        histories[one.kept.memory].append(one)
    plan = Plan([], {}, set())
    for id_ in written:
        version, history = present.get(id_), histories[id_]
        own = _last_by(by, history, version)
        wholly = own[0].kept.version == 1 if own else version == 1
        if version is not None and wholly:
            plan.gone[id_] = version
        elif version is not None or (own and not wholly):
            plan.chosen += own if version is None else []  # what another wrote was deleted
            plan.left.add(id_)
    for id_, history in histories.items():
        if id_ in written:
            continue
        own = _last_by(by, history, present.get(id_))
        if any(plan.left.intersection(one.kept.added) for one in own):
            own = []  # its successor stays, so it stays superseded
        plan.chosen += own
        if any(one.kept.by == by for one in history[: len(history) - len(own)]):
            plan.left.add(id_)
    return plan


def _last_by(by: str, history: Sequence[Entry], version: int | None) -> list[Entry]:
    """The last changes of a memory, as far as they are the assistant's, oldest first.

    ``version`` is the one it has now (``None``: it is gone). A change that the trash knows nothing
    of was another's.
    """
    last: list[Entry] = []
    following = version
    for one in reversed(history):
        gone = following is None and not last and is_deleted(one)
        if one.kept.by != by or not (gone or one.kept.version + 1 == following):
            break
        last.insert(0, one)
        following = one.kept.version
    return last
