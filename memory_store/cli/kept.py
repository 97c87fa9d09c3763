"""What was found where a vault is kept open, for a command that goes on at its own terminal.

Boundary: texts of memories come from a keeper of the same user, by :mod:`memory_store.keeper`. What
goes on with them here (a language model, a choice) runs with this process's own variables.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from typing import Any

import click
import msgspec
from msgspec import Struct

from memory_store.cli.terminal import is_elsewhere, printable_line
from memory_store.cli.vault_argument import TYPED
from memory_store.errors import BadInputError, LockedError
from memory_store.keeper import client
from memory_store.keeper.frames import BrokenError
from memory_store.records import Memory, SearchResponse
from memory_store.records.degraded import as_parts, from_parts
from memory_store.text.canonical import whole_characters

FAILED = "failed"
"""The step that ends a command: a message, and the exit code."""


KeptSteps = Generator[tuple[str, list[Any]], None, None]
"""The steps of a command that a keeper does: to close it stops the command."""


class Found(Struct, frozen=True):
    """What a search found, and the memories that are to be read."""

    response: SearchResponse
    memories: tuple[Memory, ...] = ()


def hand_over(found: Found) -> bool:
    """In a keeper, send what was found to the process that asked. Whether there is one."""
    if is_elsewhere():
        sys.stdout.flush()
        sys.stdout.buffer.write(msgspec.json.encode(found, enc_hook=as_parts))
    return is_elsewhere()


def found_by_keeper(ctx: click.Context, given: str = "") -> Found | None:
    """What a keeper finds by the words that this command was called with.

    ``None`` where none does it. Ends the command with the keeper's words where it is refused.
    """
    answered = _answered(ctx, given)
    if answered is None:
        return None
    code, out, err = answered
    click.echo(err, nl=False, err=True)
    if code:
        ctx.exit(code)
    return msgspec.json.decode(out, type=Found, dec_hook=from_parts)


def search_by_keeper(ctx: click.Context) -> Callable[[str], SearchResponse] | None:
    """A search that a keeper does, for one query after another; ``None`` where none does it."""
    if _answered(ctx, "\n") is None:
        return None

    def search(query: str) -> SearchResponse:
        answered = _answered(ctx, query)
        if answered is None:
            raise LockedError("the vault was locked meanwhile")
        code, out, err = answered
        if code:
            raise BadInputError(err.strip().removeprefix("Error: "), "q")
        return msgspec.json.decode(out, type=Found, dec_hook=from_parts).response

    return search


def done_by_keeper(words: Sequence[str]) -> int:
    """Have a keeper do another command, whose exit code this is. Raises LockedError: it is gone."""
    from memory_store.cli.editor import editing
    from memory_store.cli.pager import show

    code = client.answered([*words], lambda lines: show(lines, lambda: None), editing)
    if code is None:
        raise LockedError(f"the vault was locked meanwhile. Try: memory-store {' '.join(words)}")
    return code


def found_by_words(words: Sequence[str], given: str) -> Found | None:
    """What a keeper finds by a command that reads standard input; ``None`` where none does it.

    Raises BadInputError where it is refused.
    """
    if not given.strip():
        return None
    answered = client.printed([*words], whole_characters(given).encode(), quiet=True)
    if answered is None:
        return None
    code, out, err = answered
    if code:
        raise BadInputError(err.decode("utf-8", "replace").strip().removeprefix("Error: "))
    return msgspec.json.decode(out, type=Found, dec_hook=from_parts)


def steps_by_keeper(ctx: click.Context) -> KeptSteps | None:
    """The steps of this command, which a keeper does beside others; ``None`` where none does it.

    Ends this command where the keeper refuses it, or has done it already.
    """
    if is_elsewhere() or ctx.find_root().params.get("no_keeper") or ctx.command.name is None:
        return None
    followed = client.followed([ctx.command.name, *ctx.meta[TYPED]])
    if isinstance(followed, int):
        ctx.exit(followed)
    return None if followed is None else _heard(ctx, followed)


def _heard(ctx: click.Context, steps: KeptSteps) -> KeptSteps:
    try:
        with closing(steps):
            for name, said in steps:
                if name == FAILED:
                    message, code = said
                    click.echo(f"Error: {printable_line(message)}", err=True)
                    ctx.exit(code)
                yield name, said
    except BrokenError:
        raise LockedError(
            "the vault was locked meanwhile. What was imported so far is kept: run it again"
        ) from None


def _answered(ctx: click.Context, given: str) -> tuple[int, bytes, str] | None:
    """Exit code, standard output and standard error of this command, done by a keeper."""
    if ctx.find_root().params.get("no_keeper") or ctx.command.name is None:
        return None
    words: list[Any] = [ctx.command.name, *ctx.meta[TYPED]]
    answered = client.printed(words, given.encode("utf-8", "surrogateescape"))
    return answered and (answered[0], answered[1], answered[2].decode("utf-8", "replace"))
