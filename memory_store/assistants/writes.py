"""The tools that write: adding memories, and changing, completing, superseding or deleting one.

Boundary: writes only where the assistant's grants say so, and marks what it adds with its name.
What a new memory is like is looked for among those that it may read, and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import fields, replace

from memory_store.actions.edits import checked_rows
from memory_store.assistants.answers import CUT, Added, Listed, Updated, WereAdded, size, within
from memory_store.assistants.arguments import BUDGET, Add, New, Update
from memory_store.assistants.assistant import Assistant, ids_of
from memory_store.assistants.reads import TITLE, listed
from memory_store.assistants.task_plan import DUE, day, tick
from memory_store.errors import BadInputError, BadRowsError, ModelError, NotFoundError
from memory_store.importing.drafts import done_type, new_memory
from memory_store.models.readability import FIRST_GREEK
from memory_store.records import BY, Memory, MemoryChange, MemoryDraft, base_type
from memory_store.records.degraded import Code
from memory_store.store import MemoryStore
from memory_store.text.token_count import tokens

KNOWN = 0.93  # cosine from which a text says what a memory says already
REPLACES = 0.70  # … from which it may take the place of an older one with a topic in common
SHARED = 0.9  # of the pairs of words of two texts, from which they say the same
COMPARED = 1_000  # characters of a new text whose meaning is looked for
NEIGHBOURS = 5
LIKE = ((NEIGHBOURS, 40), (2, 40), (1, 40), (1, 0), (0, 0))
"""How many like memories are named, and characters of their titles, where all are too long."""
FACT = 100  # tokens of all that is added in one call, up to which it is embedded before the answer
SHORTLY = "Found by its words now, and by its meaning shortly."


def add(assistant: Assistant, given: Add) -> WereAdded:
    """All of them, or none where one is refused."""
    try:
        every = checked_rows(given.memories, partial(_draft, assistant))
    except BadRowsError as error:
        sentences, culprit = error.sentences(alone=len(given.memories) == 1)
        raise BadInputError("; ".join(sentences), culprit) from None
    near = [_near(assistant.reader, draft) for draft in every]
    wanted = [not (given.if_new and known) for known, _ in near]
    drafts = [draft for draft, take in zip(every, wanted, strict=True) if take]
    later = _embeds_later(assistant, assistant.adder, [draft.text for draft in drafts])
    added = iter(assistant.adder.add_many(drafts, embed=later is None))
    if later is not None:
        later()
    answer = WereAdded(
        [
            Added(
                next(added).id if take else "",
                added=take,
                already_known=known,
                may_replace=older,
            )
            for (known, older), take in zip(near, wanted, strict=True)
        ],
        note="" if later is None else SHORTLY,
    )
    return answer if size(answer) <= BUDGET else _shortened(answer)


def _shortened(answer: WereAdded) -> WereAdded:
    """In ``BUDGET``: with fewer of the memories that each is like, then without what these are
    called, then without them. The ids of all that was added are there."""

    def some(found: Sequence[Listed], count: int, title: int) -> Sequence[Listed]:
        return tuple(Listed(one.id, one.title[:title]) for one in found[:count])

    for count, title in LIKE:
        memories = [
            replace(
                one,
                already_known=some(one.already_known, count, title),
                may_replace=some(one.may_replace, count, title),
            )
            for one in answer.memories
        ]
        answer = replace(answer, memories=memories, cut=CUT)
        if size(answer) <= BUDGET:
            break
    return answer


def _embeds_later(
    assistant: Assistant, store: MemoryStore, texts: Sequence[str]
) -> Callable[[], None] | None:
    """What begins to embed, where embedding these texts takes longer than a caller should wait.

    ``None``: they are embedded before the answer.
    """
    if assistant.embed_later is None or sum(map(tokens, texts)) <= FACT:
        return None
    return assistant.embed_later if store.model_state().embedder_name is not None else None


def update(assistant: Assistant, given: Update) -> Updated:
    """One memory changed, superseded, published or deleted."""
    store, change = assistant.editor, given.change
    _refuse_ignored(given)
    if given.delete:
        if change.expected_version is None:
            raise BadInputError("delete needs version: memory_read gives it", "version")
        store.delete_many({change.id: change.expected_version}, refs=False)
        return Updated(change.id, deleted=True)
    if given.supersede is not None:
        return _superseded(assistant, given)
    if given.publish:
        (target,) = ids_of(store, [given.publish])
        return _shown(store.publish(store.find_id(change.id, refs=False), target))
    if given.due is not None or given.tick or given.done is not None:
        change = _planned(store.get(change.id, refs=False), given)
    later = _embeds_later(assistant, store, [change.text or ""])
    if change == MemoryChange(change.id, expected_version=change.expected_version):
        memory = store.get(change.id, refs=False)  # completed, or open, as it is
    else:
        (memory,) = store.edit_many([change], refs=False, embed=later is None)
    if later is not None:
        later()
    shown = _shown(memory)
    return shown if later is None else replace(shown, note=SHORTLY)


ALONE = {
    "delete": {"version"},
    "supersede": {"version", "title", "type", "add_topics"},
    "publish": set[str](),
}
"""Changes that take nothing else, or only these arguments."""


def _refuse_ignored(given: Update) -> None:
    """Raise BadInputError for a change that would leave an argument unused, or changes nothing."""
    named = {*_said(given, Update(given.change)), *_said(given.change, MemoryChange(""))} - {"id"}
    for change, others in ALONE.items():
        if change in named and (unused := sorted(named - {change} - others)):
            alone = ", ".join(["id", *sorted(others & {"version"}), *sorted(others - {"version"})])
            raise BadInputError(
                f"{unused[0]}: not together with {change}, which takes {alone}: make two calls",
                unused[0],
            )
    if not named - {"version"}:
        raise BadInputError("id alone changes nothing: name what is to change", "id")


def _said(record: Struct, unset: Struct) -> Iterator[str]:
    """The names of the fields of a record in JSON that say something."""
    for one in fields(record):
        if getattr(record, one.name) != getattr(unset, one.name):
            yield one.encode_name


def _planned(memory: Memory, given: Update) -> MemoryChange:
    """A change with another due day, steps ticked, completed or open again: of this version and no
    later one."""
    change = given.change
    if given.done is not None:
        kind = base_type(change.type or memory.type)
        kind = done_type(kind) if given.done else kind
        change = replace(change, type=None if kind == memory.type else kind)
    if given.tick:
        text = memory.text if change.text is None else change.text
        change = replace(change, text=tick(text, given.tick))
    if given.due is not None:
        kept = {name: value for name, value in memory.metadata.items() if name != DUE}
        change = replace(change, metadata=kept | ({DUE: day(given.due)} if given.due else {}))
    return replace(change, expected_version=change.expected_version or memory.version)


def _shown(memory: Memory) -> Updated:
    found = Updated.of(memory, title=memory.title[:TITLE])
    return within(found, BUDGET, ("topics",))


def _draft(assistant: Assistant, new: New) -> MemoryDraft:
    draft = new.draft
    due = {DUE: day(new.due)} if new.due else {}
    draft = replace(
        draft,
        collection=draft.collection or assistant.into or None,
        parent=_parent(assistant, draft.parent) if draft.parent else None,
        metadata={BY: assistant.name} | due,
    )
    new_memory(draft, "")  # refuses what cannot be kept
    return draft


def _parent(assistant: Assistant, given: str) -> str:
    """The id of the memory that a new one belongs to. Raises BadInputError where there is none."""
    try:
        return assistant.finder.find_id(given, refs=False)
    except NotFoundError as error:
        raise BadInputError(f"parent: {error}", "parent") from None


def _near(store: MemoryStore, new: MemoryDraft) -> tuple[Sequence[Listed], Sequence[Listed]]:
    """Memories that say the same as a new text, and older ones that it may take the place of.

    The sealed shingles and vectors of all memories say which few are opened for it. What says the
    same with another number in it (another rent, another day) says something else.
    """
    words = _words(new.text)
    alike = dict(store.resembling(new.text, new.title or "", most=NEIGHBOURS))
    near = dict(_near_in_meaning(store, new.text))
    known, older = [], []
    for memory in store.found_again([*(near | alike)]):
        said = _words(memory.text)
        meaning, shared = near.get(memory.id, 0.0), _shared(words, said)
        if _numbers(words) == _numbers(said) and (meaning >= KNOWN or shared >= SHARED):
            known.append(memory)
        elif max(meaning, shared) >= REPLACES and set(new.topics) & set(memory.topics):
            older.append(memory)
    return listed(known), listed(older)


def _near_in_meaning(store: MemoryStore, text: str) -> Iterator[tuple[str, float]]:
    """Ids of the memories that are nearest in meaning, with their cosines."""
    said = " ".join(re.findall(r"\w+", text))[:COMPARED].strip()  # no mark of the query language
    if not said or not store.embedding().done:
        return
    try:
        found = store.rank(said, mode="vector", depth=NEIGHBOURS, rerank=False, expand=False)
    except ModelError:  # what is written is kept all the same, and a search says what is missing
        return
    lettered = any(one >= FIRST_GREEK and one.isalpha() for one in said)
    if lettered and any(line.code is Code.UNREAD for line in found.degraded):
        return  # to a model that does not read them, all texts in such letters are alike
    for (id_, _), cosine in zip(found.results[:NEIGHBOURS], found.cosines, strict=False):
        yield id_, cosine or 0.0


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _numbers(words: Sequence[str]) -> set[str]:
    return {word for word in words if any(map(str.isdigit, word))}


def _shared(one: Sequence[str], other: Sequence[str]) -> float:
    """How many of the pairs of neighbouring words two texts share: shingles of two (Broder)."""
    ours, theirs = ({*pairwise((*words, ""))} for words in (one, other))
    return len(ours & theirs) / max(1, len(ours | theirs))


def _superseded(assistant: Assistant, given: Update) -> Updated:
    """A new memory in the place of an old one, which stays, and is valid until now."""
    store, text, change = assistant.editor, given.supersede or "", given.change
    later = _embeds_later(assistant, store, [text])
    new = store.supersede(
        change.id,
        text,
        title=change.title,
        type=change.type,
        add_topics=change.add_topics,
        metadata={BY: assistant.name},
        expected_version=change.expected_version,
        embed=later is None,
    )
    if later is not None:
        later()
    note = "" if later is None else SHORTLY
    return Updated(new.id, version=new.version, supersedes=new.supersedes or "", note=note)
