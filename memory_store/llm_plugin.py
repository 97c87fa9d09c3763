"""Memories for `llm`: the tools of ``llm -T 'Memory("notes.db")'``, and ``llm -f memory:query``.

Boundary: text of memories leaves for whichever model the user has chosen, and `llm` writes it into
its own log, in clear. So nothing is reached but a database that the user names (in the tool's
argument, in the fragment or in ``MEMORY_STORE_DB``), and nothing is written unless the user says
so there. The key comes from
:mod:`memory_store.unlocking`, before a model is called, and never from a prompt; a model is given
neither. A vault stays open until the process ends. Never inside Datasette, where
``datasette_hybrid`` alone decides who may read what.
"""

# Annotations are not postponed here: llm shows those of tools to people as they are.

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import llm

from memory_store.errors import BadInputError, LockedError, MemoryStoreError
from memory_store.records import ANSWER_BUDGET, ANSWER_SOURCES
from memory_store.text.token_count import TOKEN_CHARACTERS

if TYPE_CHECKING:
    from memory_store.assistants.assistant import Assistant
    from memory_store.assistants.trail import Trail
    from memory_store.keeper.assistant import KeptAssistant
    from memory_store.records import Memory as Opened
    from memory_store.records import SearchResponse
    from memory_store.store import MemoryStore

DATABASE_VARIABLE = "MEMORY_STORE_DB"
SURFACE = "llm"
OPTIONS = "database, key_file, collection, access, name"
FLAGS = {"read": [], "append": ["--append-only"], "write": ["--write"]}


@llm.hookimpl
def register_tools(register: Callable[..., None]) -> None:
    """Offer :class:`Memory`."""
    if not _inside_datasette():
        register(Memory)


@llm.hookimpl
def register_fragment_loaders(register: Callable[..., None]) -> None:
    """Offer the prefix ``memory:``."""
    if not _inside_datasette():
        register("memory", memory_loader)


class Memory(llm.Toolbox):  # type: ignore[no-untyped-call]
    """Memories of an encrypted store, with the tools of every assistant: Memory("notes.db").

    Without a database, that of ``MEMORY_STORE_DB``. The vault is opened at once, by the key that
    the environment or ``key_file`` names. ``collection`` (a name, or several) leaves out all
    others. ``access`` is ``read``, ``append`` (add, too) or ``write``; ``name`` marks what is
    written. Raises ``click.ClickException``, which `llm` shows as one line.
    """

    def __init__(
        self,
        database: str = "",
        key_file: str | None = None,
        collection: str | list[str] | None = None,
        access: str = "read",
        name: str = "llm",
        **unknown: Any,
    ) -> None:
        try:
            if unknown:
                raise BadInputError(f"{', '.join(unknown)}: no such option; there are {OPTIONS}")
            self._assistant = _assistant(database or _usual(), key_file, collection, access, name)
        except MemoryStoreError as error:
            raise click.ClickException(str(error)) from None

    def tools(self) -> Iterator[llm.Tool]:
        """The tools that it may use: those of :mod:`memory_store.assistants.tools`."""
        for tool in self._assistant.tools():
            yield llm.Tool(
                tool["name"],
                tool["description"],
                tool["inputSchema"],
                partial(self._answered, tool["name"]),
                plugin=getattr(self, "plugin", None),
            )

    def _answered(self, tool: str, /, **arguments: Any) -> str:
        """What a tool returns: JSON, also of a refusal, for the model to do better."""
        try:
            answer = self._assistant.call(tool, arguments)
        except MemoryStoreError as error:
            from memory_store.assistants.answers import in_short

            answer = {"error": in_short(str(error))}
        return json.dumps(answer, ensure_ascii=False, separators=(",", ":"))


class OwnAssistant:
    """The assistant on a vault that this process has open."""

    def __init__(self, assistant: "Assistant", trail: "Trail") -> None:
        self._assistant, self._trail = assistant, trail

    def tools(self) -> list[dict[str, Any]]:
        """What is offered, as MCP says it."""
        from memory_store.assistants.tools import tools_of

        return [
            {"name": one.name, "description": one.description, "inputSchema": one.schema()}
            for one in tools_of(self._assistant)
        ]

    def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """What a tool answers. Raises MemoryStoreError."""
        from memory_store.assistants.tools import answered

        try:
            return answered(self._assistant, name, arguments)
        finally:
            self._trail.write()  # at once: nothing says when a conversation ends


def memory_loader(argument: str) -> list[llm.Fragment]:
    """
    Memories that a search finds: memory:QUERY with the store in MEMORY_STORE_DB,
    or memory:path/to/notes.db?QUERY

    The first eight, each a fragment with the source memory:ID, together about 6,000 tokens.
    Finding nothing, or a locked store, is an error.
    """
    try:
        database, query = _named(argument)
        fragments = _fragments(*(_kept(database, query) or _found(_open(database), query)))
    except MemoryStoreError as error:
        raise ValueError(str(error)) from None
    if not fragments:
        raise ValueError(f"nothing was found in {database}")
    return fragments


def _named(argument: str) -> tuple[str, str]:
    """The database and the query. What stands before ``?`` is a database if it is a file."""
    from memory_store.paths import home_path

    before, mark, after = argument.partition("?")
    if mark and os.path.isfile(home_path(before)):  # unlike is_file, takes any name
        return before, after
    if mark and Path(before).suffix in (".db", ".sqlite", ".sqlite3"):
        raise BadInputError(f"there is no file {before}", "database")
    return _usual(), argument


def _usual() -> str:
    """The database that the environment names. Raises BadInputError without one."""
    database = os.environ.get(DATABASE_VARIABLE)
    if not database:
        raise BadInputError(
            f"no store is named: set {DATABASE_VARIABLE}, or write memory:path/to/notes.db?QUERY "
            'or Memory("path/to/notes.db")',
            "database",
        )
    return database


def _found(store: "MemoryStore", query: str) -> "tuple[SearchResponse, Sequence[Opened]]":
    response = store.search(query, limit=ANSWER_SOURCES)
    return response, store.found_again([row.id for row in response.rows])


def _kept(database: str, query: str) -> "tuple[SearchResponse, Sequence[Opened]] | None":
    """What a keeper finds; ``None`` where none has the vault open. Raises BadInputError."""
    from memory_store.cli.kept import found_by_words
    from memory_store.paths import home_path

    path = str(home_path(database).resolve())
    found = found_by_words(["ask", path, "--limit", str(ANSWER_SOURCES), "-"], query)
    return None if found is None else (found.response, found.memories)


def _fragments(response: "SearchResponse", memories: "Sequence[Opened]") -> list[llm.Fragment]:
    """What a search found, each whole or the part that fits a budget shared among them."""
    from memory_store.search.answer.cited_answer import numbered_sources

    sources = numbered_sources(response, memories, ANSWER_BUDGET * TOKEN_CHARACTERS)
    return [
        llm.Fragment(  # type: ignore[no-untyped-call]
            f"{_head(one.memory)}\n\n{one.text}", source=f"memory:{one.memory.id}"
        )
        for one in sources
    ]


def _head(memory: "Opened") -> str:
    """What a text does not say itself: its title, where no heading does, and a line of facts."""
    from memory_store.titles import shown_title

    facts = " · ".join([memory.created[:10], memory.type, *(f"#{one}" for one in memory.topics)])
    title = " ".join(memory.title.split())
    first = memory.text.lstrip().partition("\n")[0]
    if first.startswith("# ") and " ".join(first[2:].split()) == title:
        return facts
    title = title or shown_title("", memory.text)
    return f"# {title}\n{facts}" if title else facts


def _open(database: str, key_file: str | None = None) -> "MemoryStore":
    """The store, by a key that is there: no prompt asks for one. Raises MemoryStoreError."""
    from memory_store.key_lookup import PASSPHRASE_VARIABLE
    from memory_store.paths import KEY_FILE_VARIABLE, home_path
    from memory_store.unlocking import kept_open

    path = home_path(database).resolve()
    try:
        return kept_open(path, key_file=None if key_file is None else home_path(key_file))
    except LockedError:
        raise LockedError(
            f"{path} is locked and no key was given: set {KEY_FILE_VARIABLE} or "
            f"{PASSPHRASE_VARIABLE}"
        ) from None


def _assistant(
    database: str,
    key_file: str | None,
    collection: str | Sequence[str] | None,
    access: str,
    name: str,
) -> "OwnAssistant | KeptAssistant":
    """Who the model is to the vault: where a keeper has it open, to that. Raises BadInputError."""
    from memory_store.assistants.allowance import Allowance
    from memory_store.assistants.assistant import ORDER, Assistant, only, sole
    from memory_store.assistants.trail import Trail
    from memory_store.keeper.assistant import kept_assistant
    from memory_store.paths import home_path
    from memory_store.records.request import several

    right = next((one for one in ORDER if one == access), None)
    if right is None:
        raise BadInputError(f"access: {access!r} is none of {', '.join(ORDER)}", "access")
    names = several(collection)
    words = [str(home_path(database).resolve()), "--name", name, *FLAGS[right]]
    words += ["--surface", SURFACE]
    words += [word for one in names for word in ("--collection", one)]
    words += ["--key-file", str(home_path(key_file))] if key_file else []
    kept = kept_assistant(words)
    if kept is not None:
        return kept
    store = _open(database, key_file).apart()
    trail = Trail(store, name, SURFACE)
    limited, came = only(store, names), trail.last_came
    helper = Assistant(
        limited, right, name, allowance=Allowance(), last_came=came, into=sole(names)
    )
    return OwnAssistant(helper, trail)


def _inside_datasette() -> bool:
    return "datasette" in sys.modules
