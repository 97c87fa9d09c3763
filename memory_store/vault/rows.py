"""Memories as rows: what is sealed into head and body, and what stands in clear beside them.

Boundary: a :class:`Memory` goes in, sealed rows come out, and back. The clear columns (``type``,
``created``, ``updated``) exist for Datasette's filters alone: reading takes every value from the
sealed head and refuses a row whose clear columns say something else. Where the keys do not open a
memory, a :class:`SealedMemory` with the clear columns as they stand there comes out.

That a row opens does not make it the newest: one that was kept and put back opens, too. So each is
held against its *row tag* in the index, which its :class:`Known` has.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hmac import compare_digest
from itertools import chain, islice
from typing import Any, Protocol

from msgspec import Struct, ValidationError, convert
from msgspec.structs import asdict

from memory_store.crypto.sealing import Place
from memory_store.errors import FormatError, NotFoundError, TamperedError
from memory_store.records import Memory, Original, SealedMemory
from memory_store.text.canonical import normalise_topic
from memory_store.text.plain_json import read_stored_json
from memory_store.vault.keyring import CollectionKeys, Keyring
from memory_store.vault.storage import Storage
from memory_store.vault.storage.memories import Body, BodyRow, MemoryRow
from memory_store.vault.topic_hashes import write_topics

HEAD_KEYS = (
    "type",
    "title",
    "created",
    "updated",
    "ref",
    "source",
    "valid_from",
    "valid_to",
    "supersedes",
    "parent",
)
TAG_BYTES = 16
SHORTEST_BEGINNING = 8  # characters of an id that may stand for all of it: 32 bits


class Origin(Struct, frozen=True):
    """Keyed tags that let an import recognise a record: where it came from, and what it was.

    The tags are made with the key of the collection that was imported into, ``through``, which is
    mostly the memory's own (empty: it is). In the file a *proof* by the key of the memory's own
    collection is put behind ``draft``: who may write in one collection cannot say of a memory in
    another one that it came from here, and have it replaced or forgotten by the next import.
    """

    origin: bytes | None = None
    draft: bytes | None = None
    file: bytes | None = None
    through: str = ""

    def stored(self, keys: CollectionKeys, memory: str) -> tuple[bytes | None, bytes, bytes | None]:
        """The three columns of its row, by the keys of the memory's collection."""
        return self.origin, (self.draft or b"") + self._proof(keys, memory), self.file

    @classmethod
    def proven(
        cls, keys: CollectionKeys, memory: str, through: str, stored: Sequence[object]
    ) -> Origin | None:
        """What a row says, if who may write the memory wrote it, of an import into ``through``."""
        origin, draft, file = stored
        if not isinstance(draft, bytes) or len(draft) not in (TAG_BYTES, 2 * TAG_BYTES):
            return None
        if any(one is not None and not isinstance(one, bytes) for one in (origin, file)):
            return None
        said = cls(origin, draft[:-TAG_BYTES] or None, file, through)  # type: ignore[arg-type]
        same = compare_digest(said._proof(keys, memory), draft[-TAG_BYTES:])
        return said if same else None

    def _proof(self, keys: CollectionKeys, memory: str) -> bytes:
        through = self.through or keys.collection
        parts = (self.origin or b"", self.draft or b"", self.file or b"")
        return keys.plain_source.tag(b"proof", memory.encode(), through.encode(), *parts)


def read_origins(
    storage: Storage, keyring: Keyring, memories: Iterable[tuple[str, str]]
) -> dict[str, Origin]:
    """Where (memory, collection) pairs came from, of those whose rows are proven."""
    places = dict(memories)
    stored = storage.origins.of([*places])
    everywhere = storage.collections.created() if stored else ()
    found: dict[str, Origin] = {}
    for memory, row in stored.items():
        keys = keyring.of(places[memory])
        for through in dict.fromkeys((places[memory], *everywhere)):
            said = Origin.proven(keys, memory, through, row)
            if said is not None:
                found[memory] = said
                break
    return found


class Known(Protocol):
    """What the index and the settings know of the rows, at one moment."""

    def check(self, row: MemoryRow, tag: bytes | None) -> None:
        """Raise TamperedError unless it is the row that was written last, by its row tag; by its
        version alone (``None``) where the keys do not open it."""

    def check_absent(self, memory: str, elsewhere: str = "") -> None:
        """Raise TamperedError where there should be a row of that id, in another collection than
        the one that it is in, ``elsewhere``, if it is in any."""

    def earliest(self, collection: str) -> int:
        """The earliest epoch of the collection's key that a text may be sealed in."""


def content_tag(keys: CollectionKeys, title: str, text: str) -> bytes:
    """The keyed tag of a content: its text alone, or its title where there is no text.

    Memories of one collection with equal tags share a body; of all that a search finds with
    equal tags of the vault's own scope, it returns one.
    """
    kind, content = (b"text", text) if text.strip() else (b"title", title)
    return keys.dedupe.tag(kind, content.encode("utf-8", "surrogatepass"))


def row_tag(keys: CollectionKeys, memory: str, version: int, head: bytes) -> bytes:
    """The keyed tag of a row: its id, its version and its opened head, which names its body.

    A body is sealed to its id and the tag of its text, and each new one has a new random id.
    """
    return keys.rows.tag(memory.encode(), version.to_bytes(8, "big", signed=True), head)


def own_tag(keys: CollectionKeys, memory: Memory) -> bytes:
    """The tag of a body that a memory shares with no other, whatever they say.

    It is that of a writer who may not read: a shared body would confirm a guess.
    """
    return keys.plain_dedupe.tag(b"own", memory.id.encode())


def insert_memories(
    storage: Storage,
    keys: CollectionKeys,
    memories: Sequence[tuple[Memory, Origin]],
    *,
    strict: bool,
    hash_topics: bool,
    links: Sequence[Mapping[str, Sequence[str]]] | None = None,
) -> list[bytes]:
    """Seal new memories (or new versions) of one collection and write their rows.

    ``links`` are those that each of their texts holds: by how they are written, the targets.

    ``strict``: without type and times in clear. ``hash_topics``: with rows in ``memory_topics``.
    Returns their row tags. The caller holds a transaction.
    """
    contents, bodies = _bodies_of(storage, keys, [memory for memory, _ in memories])
    rows, tags = [], []
    written = links or [{}] * len(memories)
    for (memory, _), content, targets in zip(memories, contents, written, strict=True):
        head = {name: getattr(memory, name) for name in HEAD_KEYS}
        head["topics"] = list(memory.topics)
        head["metadata"] = dict(memory.metadata)
        head["content"] = content
        if memory.superseded_by is not None:
            head["superseded_by"] = memory.superseded_by
        if memory.original is not None:
            head["original"] = asdict(memory.original)
        if targets:
            head["links"] = {kind: list(names) for kind, names in targets.items()}
        encoded = _compact_json(head)
        place = keys.place("memories", "head", memory.id, memory.version)
        rows.append(
            MemoryRow(
                id=memory.id,
                collection=memory.collection,
                type=None if strict else memory.type,
                created=None if strict else memory.created,
                updated=None if strict else memory.updated,
                version=memory.version,
                content=content,
                head=keys.seal("head", place, encoded),
            )
        )
        tags.append(row_tag(keys, memory.id, memory.version, encoded))
    storage.memories.insert(rows, bodies)
    if hash_topics:
        write_topics(storage, keys, {one.id: topic_tags(keys, one.topics) for one, _ in memories})
    known = [(memory.id, origin) for memory, origin in memories if origin != Origin()]
    storage.origins.insert([(memory, *origin.stored(keys, memory)) for memory, origin in known])
    return tags


def topic_tags(keys: CollectionKeys, topics: Iterable[str]) -> list[bytes]:
    """The keyed hashes of a memory's topics, in order, each once, as the index has them."""
    normalised = dict.fromkeys(filter(None, map(normalise_topic, topics)))
    return [keys.blinder.topic(topic) for topic in normalised]


def _bodies_of(
    storage: Storage, keys: CollectionKeys, memories: Sequence[Memory]
) -> tuple[list[str], list[BodyRow]]:
    """The body of each memory: one that is there already, or one of the new ones that are returned
    with them, to be written.

    One that is there and does not open to the same text is left to the memories that hold it.
    """
    tags = [
        own_tag(keys, one) if keys.is_apart else content_tag(keys, one.title, one.text)
        for one in memories
    ]
    forms = [[] if keys.is_apart else [*keys.stored_forms(tag)] for tag in tags]
    present = storage.memories.bodies_tagged(keys.collection, [*chain.from_iterable(forms)])
    bodies = storage.memories.bodies([*present.values()]) if present else {}
    contents: list[str] = []
    new: list[BodyRow] = []
    fresh: dict[bytes, str] = {}
    for memory, tag, known in zip(memories, tags, forms, strict=True):
        text = memory.text.encode("utf-8", "surrogatepass")
        there = [present[form] for form in known if form in present]
        stored = keys.stored(own_tag(keys, memory) if there else tag)
        content = next((one for one in there if _holds(keys, one, bodies, text)), None)
        content = content or fresh.get(stored)
        if content is None:
            content = fresh[stored] = str(uuid.uuid4())
            sealed = keys.seal("body", body_place(keys, content, stored), text)
            new.append(BodyRow(content, memory.collection, stored, sealed))
        contents.append(content)
    return contents, new


def _holds(keys: CollectionKeys, content: str, bodies: Mapping[str, Body], text: bytes) -> bool:
    """Whether a body opens to a text. Its tag, which says so, may stand beside another one."""
    tag, sealed = bodies[content]
    with suppress(TamperedError, FormatError):
        return keys.unseal("body", body_place(keys, content, tag), sealed) == text
    return False


def open_memories(
    storage: Storage,
    keyring: Keyring,
    ids: Sequence[str],
    known: Known,
    *,
    tags: Callable[[Iterable[str]], dict[str, bytes]] | None = None,
) -> Iterator[Memory]:
    """Decrypt memories with their texts, in the order of ``ids``.

    Given the row ``tags`` that are known of memories, they may come from what this machine keeps
    of a server's, and are kept there.
    Rows that are gone, or in a collection that is not the keyring's, are left out; those in one
    that it may not open come out sealed.
    Raises TamperedError naming the row that does not authenticate, or is not the one that is
    ``known`` (of the moment that ``storage`` reads).
    """
    tags = tags if storage.memories.keeps else None
    here = _open_kept(storage, keyring, tags(ids), known) if tags else {}
    missing = [one for one in ids if one not in here]
    rows = storage.memories.with_bodies(missing) if missing else {}
    openable, readable = set(keyring.openable()), set(keyring.readable())
    fetched = []
    for memory_id in ids:
        row, body = rows.get(memory_id, (None, None))
        if memory_id in here:
            yield here[memory_id]
        elif row is None:
            known.check_absent(memory_id)
        elif row.collection in openable:
            yield _open_row(keyring, row, body, known)
            fetched.append((row, body))
        elif row.collection in readable:
            known.check(row, None)
            yield _sealed(row)
        else:
            known.check_absent(memory_id, row.collection)
    if tags and fetched:
        storage.memories.keep(fetched, tags(missing))


def _open_kept(
    storage: Storage, keyring: Keyring, tags: Mapping[str, bytes], known: Known
) -> dict[str, Memory]:
    """Those of some memories that this machine keeps as they were written last."""
    opened, openable = {}, set(keyring.openable())
    for row, body in storage.memories.kept(tags):
        with suppress(TamperedError, FormatError):  # damaged, or sealed anew: the server has it
            if row.collection in openable:
                opened[row.id] = _open_row(keyring, row, body, known)
    return opened


def open_bodies(
    storage: Storage, keyring: Keyring, contents: Sequence[str], known: Known
) -> dict[str, tuple[str, str]]:
    """Body id → the id of a memory that holds it, and its text, in collections that can be read.

    Raises TamperedError as :func:`open_memories`.
    """
    holders = storage.memories.holders(contents)
    rows = storage.memories.with_bodies([*holders.values()])
    openable = set(keyring.openable())
    opened = (
        (row.content, _open_row(keyring, row, body, known))
        for row, body in rows.values()
        if row.collection in openable
    )
    return {content: (memory.id, memory.text) for content, memory in opened}


def _sealed(row: MemoryRow) -> SealedMemory:
    return SealedMemory(
        id=row.id,
        collection=row.collection,
        type=row.type or "",
        title="",
        text="",
        topics=(),
        created=row.created or "",
        updated=row.updated or "",
        version=row.version,
    )


def _open_row(keyring: Keyring, row: MemoryRow, body: Body | None, known: Known) -> Memory:
    keys = keyring.of(row.collection)
    head = open_head(keyring, row, known)
    if body is None:
        raise TamperedError(f"memories.content of {row.id}: its body is missing")
    tag, sealed = body
    place, earliest = body_place(keys, row.content, tag), known.earliest(row.collection)
    opened = keys.unseal("body", place, sealed, keyring.counter, earliest=earliest)
    return memory_of(row, head, str(opened, "utf-8", "surrogatepass"))


def body_place(keys: CollectionKeys, content: str, tag: bytes) -> Place:
    """A body is bound to its tag too: a swapped tag would give a new memory another's text."""
    bound = tag.hex() if isinstance(tag, bytes) else ""  # an emptied cell opens nothing
    return keys.place("memory_bodies", "body", f"{content}|{bound}")


def open_head(keyring: Keyring, row: MemoryRow, known: Known) -> dict[str, Any]:
    """Decrypt a memory's head (title, topics, times, source …), check that it is the one that is
    known, and the clear columns."""
    opened = opened_head(keyring, row)
    known.check(row, row_tag(keyring.of(row.collection), row.id, row.version, opened))
    return head_of(keyring, row, opened)


def opened_head(keyring: Keyring, row: MemoryRow) -> bytes:
    """A memory's head as it was sealed: by whom, and whether last, is not said by that."""
    keys = keyring.of(row.collection)
    place = keys.place("memories", "head", row.id, row.version)
    return bytes(keys.unseal("head", place, row.head, keyring.counter))


def head_of(keyring: Keyring, row: MemoryRow, opened: bytes) -> dict[str, Any]:
    """What an opened head says. Raises TamperedError where the row beside it says otherwise."""
    head = sealed_head(row, opened)
    for name in ("type", "created", "updated"):
        clear = getattr(row, name)
        if clear != (None if keyring.strict else head[name]):
            raise TamperedError(f"memories.{name} of {row.id}: changed since it was written")
    return head


def sealed_head(row: MemoryRow, opened: bytes) -> dict[str, Any]:
    """What an opened head says, whatever the clear columns do. Raises TamperedError."""
    try:  # under the collection's key any member may have written it
        head = read_stored_json(opened, verbatim="source")  # a path leads back to its file
    except (ValueError, TypeError, RecursionError):
        raise TamperedError(f"memories.head of {row.id}: is nothing that this reads") from None
    if row.content != head["content"]:
        raise TamperedError(f"memories.content of {row.id}: names another memory's body")
    return head


def original_in(head: Mapping[str, Any]) -> Original | None:
    """The original that an opened head names. Raises TamperedError for what is none."""
    try:
        return convert(head.get("original"), Original | None)
    except ValidationError:
        raise TamperedError("memories.head: names an original that is none") from None


def memory_of(row: MemoryRow, head: dict[str, Any], text: str) -> Memory:
    """The memory that a row, its opened head and its text make."""
    return Memory(
        id=row.id,
        collection=row.collection,
        text=text,
        version=row.version,
        topics=tuple(head["topics"]),
        metadata=head["metadata"],
        superseded_by=head.get("superseded_by"),
        original=original_in(head),
        **{name: head[name] for name in HEAD_KEYS},
    )


def resolve_id(storage: Storage, keyring: Keyring, given: str) -> str:
    """The memory id that an id, or a unique beginning of one, names.

    Unique among the memories that can be read: the others are as good as not there.
    """
    readable = set(keyring.readable())
    wanted = given.strip().lower()
    try:
        given.encode()
    except UnicodeEncodeError:
        raise NotFoundError("no memory of that name: it is not valid text") from None
    hexadecimal = all(character in "0123456789abcdef-" for character in wanted)
    if len(wanted) >= SHORTEST_BEGINNING and hexadecimal:
        rows = storage.memories.beginning(wanted)
        found = list(islice((id_ for id_, collection in rows if collection in readable), 2))
        if len(found) == 1:
            return str(found[0])
    if storage.memories.place(given) in readable:
        return given
    hint = ""
    if hexadecimal and 0 < len(wanted) < SHORTEST_BEGINNING:
        hint = f": the beginning of an id needs {SHORTEST_BEGINNING} characters"
    raise NotFoundError(f"no memory {given!r}{hint}")


def _compact_json(data: object) -> bytes:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )
