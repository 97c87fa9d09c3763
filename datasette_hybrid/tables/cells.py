"""What Datasette's own pages of a vault's tables show in sealed columns.

Boundary: text shows only to an asker with the decrypt grant on its collection. Others who may see
the table see that there is something sealed, and how large it is if they administer the vault. What
was opened lives as long as the request.

Datasette asks for one cell after the other. Each gets a placeholder, and just before the page is
rendered all of them are filled in together: one visit to the vault for a page, not one for a cell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

from datasette.utils import format_bytes
from markupsafe import Markup

from memory_store.errors import MemoryStoreError, NotAVaultError, TamperedError
from memory_store.host import LATER_TABLES, MEMORY_TABLES, VAULT_TABLES, MemoryStore, shown_title
from memory_store.records import DONE_SUFFIX, MemoryHead

from ..permissions.asker import asker
from ..permissions.tables import SEALED
from ..requests.admission import QueueFullError, work
from ..requests.frame import hybrid_path
from ..requests.policy import note_opened
from ..vaults.registry import vaults_of
from ..vaults.vault import Vault
from . import compat as compat_native

KEYED_HASHES = frozenset({"topic", "tag", "origin", "draft", "file", "content"})
TABLES = frozenset({*MEMORY_TABLES, *VAULT_TABLES, *LATER_TABLES})
PREVIEW = 160  # characters of a body in a table: two lines of a wide column
ROW_PREVIEW = 2_000  # on a row's own page

TITLE, TEXT, TOPIC, COLLECTION = "title", "text", "topic", "collection"
READABLE: Mapping[tuple[str, str], tuple[str, str]] = {
    ("memories", "head"): (TITLE, "id"),
    ("memories", "collection"): (COLLECTION, "collection"),
    ("memory_bodies", "body"): (TEXT, "id"),
    ("memory_bodies", "collection"): (COLLECTION, "collection"),
    ("memory_topics", "memory"): (TITLE, "memory"),
    ("memory_topics", "topic"): (TOPIC, "memory"),
    ("memory_sources", "memory"): (TITLE, "memory"),
    ("collections", "name"): (COLLECTION, "id"),
}
"""Cells that say something to a reader: what it is, and the column that names where it stands."""

DATA = re.compile(r"\.\w+$")
"""Ends the address of anything but a page: 1.0 puts cells into JSON, and there renders nothing."""

COLUMNS = frozenset(column for _, column in READABLE)

Link = dict[str, str]

Opened = TypeVar("Opened")


@dataclass
class Cell:
    """A cell of the page: what its reader may see once it is filled in, until then the seal."""

    kind: str
    key: str
    value: Any
    html: Markup
    row: Any
    sealed: bool

    def __html__(self) -> str:
        return self.html

    def __str__(self) -> str:
        return self.html


@dataclass(frozen=True)
class Contents:
    """What the cells of one page were found to say, by id."""

    heads: Mapping[str, MemoryHead] = field(default_factory=dict)
    texts: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Page:
    """A request: its path, and the cells asked for and not filled in yet, by database."""

    path: str = ""
    waiting: dict[str, list[Cell]] = field(default_factory=dict)


page: ContextVar[Page | None] = ContextVar("hybrid_page", default=None)
"""Set per request and reset after it."""


def sealed_cell(
    datasette: Any, database: str, table: str, row: Any, column: str, value: Any
) -> Any:
    """HTML, or what becomes it, for a cell; ``None`` where Datasette's own way is right."""
    readable = READABLE.get((table, column))
    if table not in TABLES or not (readable or isinstance(value, bytes)):
        return None
    try:
        vault = vaults_of(datasette).of(database)
    except NotAVaultError:
        return None
    sealed = (table, column) in SEALED
    shut = _shut(column, value, sealed=sealed)
    asked = page.get()
    may_read = asker.get().on(database).decrypt and not vault.locked
    if readable is None or asked is None or not may_read:
        return shut
    kind, key = readable
    if key not in row.keys():  # noqa: SIM118 - a row is no mapping: `in` looks at its values
        return shut
    cell = Cell(kind, str(row[key]), value, shut or Markup("{}").format(value), row, sealed)
    if DATA.search(asked.path):
        return _filled_alone(datasette, vault, cell)
    asked.waiting.setdefault(database, []).append(cell)
    return cell


async def fill(datasette: Any, view_name: str | None) -> None:
    """Say in every cell of this request's page what its reader may see."""
    asked = page.get()
    while asked is not None and asked.waiting:
        database, cells = asked.waiting.popitem()
        await _fill(datasette, vaults_of(datasette).of(database), cells, view_name)


async def _filled_alone(datasette: Any, vault: Vault, cell: Cell) -> Markup:
    await _fill(datasette, vault, [cell], None)
    return cell.html


async def _fill(datasette: Any, vault: Vault, cells: Sequence[Cell], view_name: str | None) -> None:
    scope = asker.get().on(vault.database).decrypt
    try:
        contents = await work.run(lambda: _open(vault.use(scope), cells))
    except (MemoryStoreError, QueueFullError):
        return  # locked meanwhile, or too much to do: the seals stay
    note_opened()
    for cell in cells:
        html = _said(datasette, vault, cell, contents, whole=view_name == "row")
        cell.html = html or cell.html


def _open(store: MemoryStore, cells: Iterable[Cell]) -> Contents:
    """Everything the cells name, in as few reads as there are kinds of it."""
    wanted: dict[str, list[str]] = {kind: [] for kind in (TITLE, TEXT, TOPIC, COLLECTION)}
    for cell in cells:
        wanted[cell.kind].append(cell.key)
    heads = _opened(store.heads, [*wanted[TITLE], *wanted[TOPIC]])
    untitled = [head.content for head in heads.values() if not head.title.strip()]
    return Contents(
        heads,
        _opened(store.texts, [*wanted[TEXT], *untitled]),
        {one.id: one.name for one in store.collections.list()} if wanted[COLLECTION] else {},
    )


def _opened(
    read: Callable[[Sequence[str]], dict[str, Opened]], ids: Sequence[str]
) -> dict[str, Opened]:
    """What ``read`` opens; a damaged record leaves the others readable."""
    wanted = list(dict.fromkeys(ids))
    try:
        return read(wanted) if wanted else {}
    except TamperedError:
        if len(wanted) == 1:
            return {}
        half = len(wanted) // 2
        return {**_opened(read, wanted[:half]), **_opened(read, wanted[half:])}


def _said(
    datasette: Any, vault: Vault, cell: Cell, contents: Contents, *, whole: bool
) -> Markup | None:
    """The cell for a reader; ``None`` where there is nothing more to say than its seal does."""
    if cell.kind == COLLECTION:
        name = contents.names.get(cell.key)
        if name is None:
            return None
        href = f"{datasette.urls.table(vault.database, 'collections')}/{cell.key}"
        return Markup('<a href="{}" title="{}">{}</a>').format(href, cell.key, name)
    if cell.kind == TEXT:
        memory, text = contents.texts.get(cell.key, ("", ""))
        shown = _shortened(text, ROW_PREVIEW if whole else PREVIEW)
        return _link(datasette, vault, memory, shown) if memory else None
    head = contents.heads.get(cell.key)
    if head is None:
        return None
    if cell.kind == TOPIC:
        keyed_hash = cell.value.hex()
        topic = head.topics.get(keyed_hash)
        if topic is None:
            return None
        return Markup('<span title="{}">{}</span>').format(keyed_hash, topic)
    text = contents.texts.get(head.content, ("", ""))[1]
    link = _link(datasette, vault, head.id, shown_title(head.title, text) or "Untitled")
    if whole and cell.sealed and not compat_native.has_row_menu():
        links = memory_actions(datasette, vault, cell.row)[1:]  # behind the title, which opens it
        menu = (Markup(' · <a href="{}">{}</a>').format(one["href"], one["label"]) for one in links)
        return link + Markup("").join(menu)
    return link


def memory_actions(datasette: Any, vault: Vault, row: Any) -> list[Link]:
    """The pages that the asker may open of the memory in a row of the table ``memories``."""
    grants, collection = asker.get().on(vault.database), row["collection"]
    search, read, write = (
        collection in scope for scope in (grants.search, grants.decrypt, grants.write)
    )
    path = hybrid_path(datasette, vault.database)
    own = f"{path}/memories/{row['id']}"
    done = "Mark as open" if str(row["type"] or "").endswith(DONE_SUFFIX) else "Mark as done"
    actions = (
        (read, own, "Open memory", "Read the whole of it."),
        (read and write, f"{own}/edit", "Edit memory", "Change it; it is sealed as it is saved."),
        (read and write, f"{own}#done", done, "By one button on its page."),
        (write, f"{own}/delete", "Delete memory", "Asks first."),
        (search, f"{path}?like={row['id']}", "More like this", "Memories that resemble it."),
    )
    return [link(*one) for allowed, *one in actions if allowed]


def link(href: str, label: str, description: str) -> Link:
    """An entry of one of Datasette's menus. Shown to those alone whom the page behind it serves,
    which checks again."""
    return {"href": href, "label": label, "description": description}


def _link(datasette: Any, vault: Vault, memory_id: str, label: str) -> Markup:
    href = f"{hybrid_path(datasette, vault.database)}/memories/{memory_id}"
    return Markup('<a href="{}">{}</a>').format(href, label)


def _shortened(text: str, length: int) -> str:
    """The beginning of ``text`` on one line, cut between words."""
    line = " ".join(text[: 4 * length].split())
    if len(line) <= length:
        return line if len(text) <= 4 * length else f"{line} …"
    return (line[: length + 1].rpartition(" ")[0] or line[:length]) + " …"


def _shut(column: str, value: Any, *, sealed: bool) -> Markup | None:
    """A sealed value, or a keyed hash, as it shows to those who may not read it."""
    if value is None and sealed:
        return Markup('<em title="encrypted in the file">sealed</em>')
    if not isinstance(value, bytes):
        return None
    if column in KEYED_HASHES:
        return Markup("<code>{}</code>").format(value.hex())
    return Markup('<em title="{} bytes, encrypted in the file">sealed, {}</em>').format(
        f"{len(value):,}", format_bytes(len(value))
    )
