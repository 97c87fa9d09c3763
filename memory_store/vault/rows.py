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
from collections.abc import Iterable, Iterator, Sequence
from hmac import compare_digest
from itertools import islice
from typing import Any, Protocol

from msgspec import Struct

from memory_store.crypto.sealing import Place
from memory_store.errors import NotFoundError, TamperedError
from memory_store.records import Memory, SealedMemory
from memory_store.sqlite import sqlite3
from memory_store.text.canonical import normalise_topic
from memory_store.text.plain_json import read_stored_json
from memory_store.vault.keyring import CollectionKeys, Keyring
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
SQLITE_VARIABLES = 500  # ids per `in (…)`; every SQLite allows 999


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

    def stored(self, keys: CollectionKeys, memory: str) -> tuple[bytes | None, ...]:
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
        told = cls(origin, draft[:-TAG_BYTES] or None, file, through)  # type: ignore[arg-type]
        same = compare_digest(told._proof(keys, memory), draft[-TAG_BYTES:])
        return told if same else None

    def _proof(self, keys: CollectionKeys, memory: str) -> bytes:
        through = self.through or keys.collection
        parts = (self.origin or b"", self.draft or b"", self.file or b"")
        return keys.plain_source.tag(b"proof", memory.encode(), through.encode(), *parts)


def read_origins(
    connection: sqlite3.Connection, keyring: Keyring, memories: Iterable[tuple[str, str]]
) -> dict[str, Origin]:
    """Where (memory, collection) pairs came from, of those whose rows are proven."""
    everywhere = [str(row[0]) for row in connection.execute("select id from collections")]
    found: dict[str, Origin] = {}
    for memory, collection in memories:
        row = connection.execute(
            "select origin, draft, file from memory_sources where memory = ?", (memory,)
        ).fetchone()
        if row is None:
            continue
        keys = keyring.of(collection)
        for through in dict.fromkeys((collection, *everywhere)):
            told = Origin.proven(keys, memory, through, row)
            if told is not None:
                found[memory] = told
                break
    return found


class MemoryRow(Struct, frozen=True):
    """One row of ``memories`` as stored."""

    id: str
    collection: str
    type: str | None
    created: str | None
    updated: str | None
    version: int
    content: str
    head: bytes


class Known(Protocol):
    """What the index knows of the rows, at one moment."""

    def check(self, row: MemoryRow, tag: bytes | None) -> None:
        """Raise TamperedError unless it is the row that was written last, by its row tag; by its
        version alone (``None``) where the keys do not open it."""

    def check_absent(self, memory: str) -> None:
        """Raise TamperedError where there should be a row of that id."""


_COLUMNS = "id, collection, type, created, updated, version, content, head"


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


def own_tag(keys: CollectionKeys, memory: str) -> bytes:
    """The tag of a body that a memory shares with no other, whatever they say.

    It is that of a writer who may not read: a shared body would confirm a guess.
    """
    return keys.plain_dedupe.tag(b"own", memory.encode())


def insert_memory(
    connection: sqlite3.Connection,
    keys: CollectionKeys,
    memory: Memory,
    origin: Origin,
    *,
    strict: bool,
    hash_topics: bool,
) -> bytes:
    """Seal one new memory (or new version) and write its rows. Returns its row tag.

    ``strict``: without type and times in clear. ``hash_topics``: with rows in ``memory_topics``.
    The caller holds a transaction.
    """
    content = _store_body(connection, keys, memory)
    head = {name: getattr(memory, name) for name in HEAD_KEYS}
    head["topics"] = list(memory.topics)
    head["metadata"] = dict(memory.metadata)
    head["content"] = content
    place = keys.place("memories", "head", memory.id, memory.version)
    content_of_head = _compact_json(head)
    sealed = keys.seal("head", place, content_of_head)
    clear = (None, None, None) if strict else (memory.type, memory.created, memory.updated)
    connection.execute(
        f"insert into memories ({_COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?)",
        (memory.id, memory.collection, *clear, memory.version, content, sealed),
    )
    if hash_topics:
        write_topics(connection, keys, memory.id, topic_tags(keys, memory.topics))
    if origin != Origin():
        connection.execute(
            "insert into memory_sources (memory, origin, draft, file) values (?, ?, ?, ?)",
            (memory.id, *origin.stored(keys, memory.id)),
        )
    return row_tag(keys, memory.id, memory.version, content_of_head)


def topic_tags(keys: CollectionKeys, topics: Iterable[str]) -> list[bytes]:
    """The keyed hashes of a memory's topics, in order, each once, as the index has them."""
    normalised = dict.fromkeys(filter(None, map(normalise_topic, topics)))
    return [keys.blinder.topic(topic) for topic in normalised]


def _store_body(connection: sqlite3.Connection, keys: CollectionKeys, memory: Memory) -> str:
    alone = keys.is_apart
    bare = own_tag(keys, memory.id) if alone else content_tag(keys, memory.title, memory.text)
    for form in () if alone else keys.stored_forms(bare):
        found = connection.execute(
            "select id from memory_bodies where collection = ? and tag = ?",
            (memory.collection, form),
        ).fetchone()
        if found is not None:
            return str(found[0])
    content, tag = str(uuid.uuid4()), keys.stored(bare)
    place = body_place(keys, content, tag)
    sealed = keys.seal("body", place, memory.text.encode("utf-8", "surrogatepass"))
    connection.execute(
        "insert into memory_bodies (id, collection, tag, body) values (?, ?, ?, ?)",
        (content, memory.collection, tag, sealed),
    )
    return content


def remove_memories(connection: sqlite3.Connection, ids: Sequence[str]) -> None:
    """Delete memories, their topics and sources, and the bodies that nobody shares any more."""
    for part in _parts(ids):
        marks = ", ".join("?" * len(part))
        contents = [
            row[0]
            for row in connection.execute(
                f"select distinct content from memories where id in ({marks})", part
            )
        ]
        connection.execute(f"delete from memory_topics where memory in ({marks})", part)
        connection.execute(f"delete from memory_sources where memory in ({marks})", part)
        connection.execute(f"delete from memories where id in ({marks})", part)
        connection.executemany(
            """
            delete from memory_bodies where id = :id
            and not exists (select 1 from memories where content = :id)
            """,
            [{"id": content} for content in contents],
        )


def read_rows(connection: sqlite3.Connection, ids: Sequence[str]) -> dict[str, MemoryRow]:
    """The stored rows of some memories by id; ids that are gone are left out."""
    rows: dict[str, MemoryRow] = {}
    for part in _parts(ids):
        marks = ", ".join("?" * len(part))
        for row in connection.execute(
            f"select {_COLUMNS} from memories where id in ({marks})", part
        ):
            rows[row[0]] = MemoryRow(*row)
    return rows


def open_memories(
    connection: sqlite3.Connection, keyring: Keyring, ids: Sequence[str], known: Known
) -> Iterator[Memory]:
    """Decrypt memories with their texts, in the order of ``ids``.

    Rows that are gone, or in a collection that is not the keyring's, are left out; those in one
    that it may not open come out sealed.
    Raises TamperedError naming the row that does not authenticate, or is not the one that is
    ``known`` (of the moment that ``connection`` reads).
    """
    rows = read_rows(connection, ids)
    openable, readable = set(keyring.openable()), set(keyring.readable())
    bodies = _read_bodies(
        connection, [row.content for row in rows.values() if row.collection in openable]
    )
    for memory_id in ids:
        row = rows.get(memory_id)
        if row is None:
            known.check_absent(memory_id)
        elif row.collection in openable:
            yield _open_row(keyring, row, bodies, known)
        elif row.collection in readable:
            known.check(row, None)
            yield _sealed(row)


def _read_bodies(
    connection: sqlite3.Connection, contents: Sequence[str]
) -> dict[str, tuple[bytes, bytes]]:
    bodies: dict[str, tuple[bytes, bytes]] = {}
    for part in _parts(contents):
        marks = ", ".join("?" * len(part))
        for content, tag, body in connection.execute(
            f"select id, tag, body from memory_bodies where id in ({marks})", part
        ):
            bodies[content] = (tag, body)
    return bodies


def open_bodies(
    connection: sqlite3.Connection, keyring: Keyring, contents: Sequence[str], known: Known
) -> dict[str, tuple[str, str]]:
    """Body id → the id of a memory that holds it, and its text, in collections that can be read.

    Raises TamperedError as :func:`open_memories`.
    """
    holders: dict[str, str] = {}
    for part in _parts(contents):
        marks = ", ".join("?" * len(part))
        holders |= connection.execute(
            f"select content, min(id) from memories where content in ({marks}) group by content",
            part,
        )
    openable = set(keyring.openable())
    rows = read_rows(connection, [*holders.values()])
    opening = [row for row in rows.values() if row.collection in openable]
    bodies = _read_bodies(connection, [row.content for row in opening])
    opened = (_open_row(keyring, row, bodies, known) for row in opening)
    return {rows[memory.id].content: (memory.id, memory.text) for memory in opened}


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


def _open_row(
    keyring: Keyring, row: MemoryRow, bodies: dict[str, tuple[bytes, bytes]], known: Known
) -> Memory:
    keys = keyring.of(row.collection)
    head = open_head(keyring, row, known)
    if row.content not in bodies:
        raise TamperedError(f"memories.content of {row.id}: its body is missing")
    tag, sealed = bodies[row.content]
    opened = keys.unseal("body", body_place(keys, row.content, tag), sealed, keyring.counter)
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
    try:  # under the collection's key any member may have written it
        head = read_stored_json(opened, verbatim="source")  # a path leads back to its file
    except (ValueError, TypeError, RecursionError):
        raise TamperedError(f"memories.head of {row.id}: is nothing that this reads") from None
    if row.content != head["content"]:
        raise TamperedError(f"memories.content of {row.id}: names another memory's body")
    for name in ("type", "created", "updated"):
        clear = getattr(row, name)
        if clear != (None if keyring.strict else head[name]):
            raise TamperedError(f"memories.{name} of {row.id}: changed since it was written")
    return head


def memory_of(row: MemoryRow, head: dict[str, Any], text: str) -> Memory:
    """The memory that a row, its opened head and its text make."""
    return Memory(
        id=row.id,
        collection=row.collection,
        text=text,
        version=row.version,
        topics=tuple(head["topics"]),
        metadata=head["metadata"],
        **{name: head[name] for name in HEAD_KEYS},
    )


def resolve_id(connection: sqlite3.Connection, keyring: Keyring, given: str) -> str:
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
        rows = connection.execute(
            "select id, collection from memories where id >= ? and id < ?", (wanted, wanted + "g")
        )
        found = list(islice((id_ for id_, collection in rows if collection in readable), 2))
        if len(found) == 1:
            return str(found[0])
    exact = connection.execute(
        "select id, collection from memories where id = ?", (given,)
    ).fetchone()
    if exact is not None and exact[1] in readable:
        return str(exact[0])
    hint = ""
    if hexadecimal and 0 < len(wanted) < SHORTEST_BEGINNING:
        hint = f": the beginning of an id needs {SHORTEST_BEGINNING} characters"
    raise NotFoundError(f"no memory {given!r}{hint}")


def _compact_json(data: object) -> bytes:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )


def _parts(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(ids), SQLITE_VARIABLES):
        yield ids[start : start + SQLITE_VARIABLES]
