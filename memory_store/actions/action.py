"""What makes a function an action of the store: it enters the vault, and declares what it does.

Boundary: no lock clears anything up while an action runs. The trail learns of an action what stands
in its declaration, under whatever name a store offers it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from memory_store.errors import SupersededError
from memory_store.records import SearchRequest, SearchResponse
from memory_store.scopes import Limits
from memory_store.session.embedders import Embedders
from memory_store.session.held_vectors import HeldVectors
from memory_store.session.opened_vault import OpenVault
from memory_store.session.whole_vault import WholeVault
from memory_store.vault.storage import Storage
from memory_store.vault.storage.damage import vault_faults

P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])

MOST_BEGINNINGS = 8  # of an action: between two of them a writer has to write a whole segment
LATE_FROM = 2
"""After so many, what a search usually reads when it first needs it is read with the index."""

Counts = Callable[[Any], tuple[int, int]]
"""From an action's result to how many memories it opened, and how many it returned or changed."""

Heard = Callable[[str, int, int], None]
"""Takes the event of each action that has one, with both counts."""

SearchElsewhere = Callable[[tuple[Limits, ...], str, SearchRequest], SearchResponse | None]
"""From views, a method and a request to the answer; ``None``: no process is free."""


class Background(Protocol):
    """Gives memories without vectors theirs, in the background."""

    @property
    def running(self) -> bool: ...

    def look(self) -> None:
        """Begin where a search has found memories without vectors, but not again and again."""

    def seconds_left(self, words: int) -> float | None:
        """How long so many words will take; ``None`` while that is not known."""


class Opened(Struct):
    """An opened vault with its models: what every action is given.

    ``expander`` names the language model that expands queries (``None``: ``MEMORY_STORE_EXPANDER``,
    or none). ``elsewhere`` is where searches run if there is room. ``views`` are the limits of this
    view of the vault, as another process needs them. ``by`` names the assistant that writes
    through this view (empty: none does). ``background`` embeds beside what is done here. ``late``:
    nothing of the index is to be read later, when a writer may have replaced it.
    """

    vault: OpenVault
    embedders: Embedders
    vectors: HeldVectors
    expander: str | None = None
    heard: Heard | None = None
    elsewhere: SearchElsewhere | None = None
    views: tuple[Limits, ...] = ()
    by: str = ""
    background: Background | None = None
    late: bool = False


class Actions:
    """Some actions on an opened vault, each a method: the store itself, or a part of it."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened


class Declared(Struct, frozen=True):
    """What an action says of itself. ``event`` is ``None`` where the trail has none for it."""

    event: str | None
    writes: bool


def action(
    event: str | None,
    *,
    writes: bool,
    counts: Counts = lambda _: (0, 0),
    in_batches: bool = False,
) -> Callable[[Callable[Concatenate[Opened, P], R]], Callable[Concatenate[Actions, P], R]]:
    """Make a method of a function that takes :class:`Opened` first.

    ``event`` is what the audit trail calls it (``None``: the trail does not have it), ``counts``
    are the numbers in that event, ``writes`` says whether it may change the file. An action that
    works ``in_batches`` enters the vault itself, so that a lock does not wait for all of it. One
    that only reads begins anew where what it was about to read of the index was replaced meanwhile.
    What the disk refuses is StorageError.
    """
    beginnings = 1 if writes or in_batches else MOST_BEGINNINGS

    def declare(
        function: Callable[Concatenate[Opened, P], R],
    ) -> Callable[Concatenate[Actions, P], R]:
        @wraps(function)
        def run(actions: Actions, /, *arguments: P.args, **options: P.kwargs) -> R:
            opened = actions._opened
            vault = opened.vault
            with vault_faults(vault.path), nullcontext() if in_batches else entered(vault):
                for beginning in range(1, beginnings):
                    with suppress(SupersededError):
                        result = function(opened, *arguments, **options)
                        break
                    if beginning == LATE_FROM:
                        opened = replace(opened, late=True)
                else:
                    result = function(opened, *arguments, **options)
            if event is not None and opened.heard is not None:
                opened.heard(event, *counts(result))
            return result

        run.declared = Declared(event, writes)  # type: ignore[attr-defined]
        return run

    return declare


@contextmanager
def entered(vault: OpenVault) -> Iterator[None]:
    """Use the vault: no lock clears it up meanwhile. Raises LockedError."""
    with vault.gate.entered(), vault.access.unchanged(vault.path):
        yield


def batches(
    vault: WholeVault, start: int, step: Callable[[Storage, int], tuple[int | None, int]]
) -> Iterator[int]:
    """Do a step from ``start`` on, a batch in each transaction: how many rows each of them did.

    ``step`` is given a place, and returns the next one (``None``: it is done) and how many it did.
    """
    place: int | None = start
    while place is not None:
        with (
            vault.gate.entered(),
            vault.writing() as storage,
            storage.transaction(vault.keyring),
        ):
            place, count = step(storage, place)
        yield count


class Late(Generic[F]):
    """A method whose module is imported with its first use; see :func:`late`."""

    def __init__(self, find: Callable[[], F]) -> None:
        self._find = find

    def __set_name__(self, owner: type, name: str) -> None:
        self._place = owner, name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        setattr(*self._place, self._find())
        return getattr(instance if instance is not None else owner, self._place[1])


def late(find: Callable[[], F]) -> F:
    """The action that ``find`` imports, found when it is first used.

    So a command that searches imports nothing that writes.
    """
    return cast(F, Late(find))
