"""``search --in FOLDER``: a folder that was never imported, read into a vault in memory.

Boundary: the folder's text is in this process and in what it prints. The vault has no file, and a
key that is given to no one; both are gone when the command ends.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from memory_store.cli.imports import MOST_NAMED, print_reasons
from memory_store.cli.progress import Progress
from memory_store.cli.terminal import printable_line
from memory_store.code import grammars
from memory_store.errors import BadInputError, ModelUnavailableError
from memory_store.importing.job import ADD, ImportJob, ImportRequest
from memory_store.importing.readers.code import READER as CODE
from memory_store.importing.source_file import Failure, Found, SourceFile
from memory_store.importing.walker import walk
from memory_store.importing.work_tree import is_work_tree
from memory_store.records.degraded import Code, Degraded
from memory_store.store import MemoryStore

if TYPE_CHECKING:
    from memory_store.records import SearchResponse

MOST_FILES = 20_000  # an import reads about a hundred a second, and this is done for each search
MOST_BYTES = 200_000_000  # their texts, sealed, and their index are about three times that
BY_WORDS = Degraded(
    Code.NOT_EMBEDDED,
    "meaning is not searched.",
    "--semantic, which embeds the folder first, each time",
)


@contextmanager
def folder_in_memory(folder: Path, *, embed: bool) -> Iterator[MemoryStore]:
    """What is in a folder, as a store that is gone afterwards.

    ``embed``: for search by meaning, where the model is on this machine. It takes most of the time.
    Raises BadInputError for a folder that is too large, or holds nothing to search.
    """
    files = _files(folder)
    code = any(isinstance(one, SourceFile) and one.kind == CODE.name for one in files)
    with MemoryStore.in_memory(folder) as store:
        with Progress() as progress:
            report = store.run_import(
                ImportJob(
                    request=ImportRequest(embed=False, differing=ADD),
                    files=files,
                    progress=progress,
                )
            )
            print_reasons("failed", report.failures[:MOST_NAMED], verbose=True)
            if not report.imported:
                raise BadInputError(f"in: {folder}: nothing in it can be searched", "in")
            if embed:
                _embed(store, progress)
        if code and not grammars.installed():
            click.echo(f"no grammars: source code is cut by lines. Try: {grammars.EXTRA}", err=True)
        yield store


def without_vault(response: SearchResponse) -> SearchResponse:
    """The answer without what needs a vault that stays: a token, and commands."""
    lines = (
        BY_WORDS
        if line.code is Code.NOT_EMBEDDED
        else line.with_parts(command="")  # another model would not be kept
        if line.code is Code.UNREAD
        else line
        for line in response.degraded
    )
    return replace(response, degraded=tuple(dict.fromkeys(lines)), next=None)


def _files(folder: Path) -> Sequence[Found]:
    """What there is to read. Source code is taken from every folder; of a work tree as Git sees it.

    Raises BadInputError where it is too much.
    """
    files, size = list[Found](), 0
    for found in walk(folder, all_files=not is_work_tree(folder)):
        if isinstance(found, SourceFile):
            files.append(found)
            size += os.stat(found.path).st_size if os.path.exists(found.path) else 0
        elif isinstance(found, Failure):
            files.append(found)
        if len(files) > MOST_FILES or size > MOST_BYTES:
            raise BadInputError(
                f"in: {folder} is more than is read for one search ({MOST_FILES:,} files, "
                f"{MOST_BYTES // 10**6} MB). Import it once: memory-store import {folder}",
                "in",
            )
    return files


def _embed(store: MemoryStore, progress: Progress) -> None:
    """Give memories vectors. Where that cannot be done, or is stopped, words find them."""
    from memory_store.models.places import is_there

    if not is_there(store.embedder_name()):
        return  # the search says so
    try:
        store.reindex(progress=progress)
    except ModelUnavailableError as error:
        click.echo(printable_line(str(error)), err=True)
    except KeyboardInterrupt:
        click.echo("Stopped embedding: what has no vector yet is found by words.", err=True)
