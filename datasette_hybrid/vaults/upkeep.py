"""What a server that stays runs beside an open vault: searches elsewhere, embedding afterwards.

Boundary: both hold the open store, so both end with it: before its keys are wiped.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from memory_store.errors import LockedError
from memory_store.host import BackgroundEmbedding, EmbeddingNow, MemoryStore, Scope, Searchers

from .. import background
from ..configuration import DatabaseSettings


class Upkeep:
    """Runs from ``begin`` to ``end``, in a server that stays. ``log`` says what goes wrong."""

    def __init__(self, settings: DatabaseSettings, log: Callable[[str], None]) -> None:
        self._settings = settings
        self._log = log
        self._stays = False
        self._store: MemoryStore | None = None
        self._searchers: Searchers | None = None
        self._embedding: BackgroundEmbedding | None = None

    def stay(self) -> None:
        """The server stays: run from the next ``begin`` on."""
        self._stays = True

    def begin(self, store: MemoryStore, *, read_only: bool) -> None:
        """Run for this open store what does not run yet."""
        if not self._stays:
            return
        self._store = store
        processes = self._settings.search_processes
        if processes and self._searchers is None:
            self._searchers = Searchers(store, processes, self._log)
            store.search_through(self._searchers.ask)
        wanted = self._settings.background_embedding and not read_only
        if wanted and self._embedding is None:
            self._embedding = BackgroundEmbedding(store, self._log, background.begin)
            store.embedded_by(self._embedding)
            self._embedding.begin()

    def end(self) -> Callable[[], None]:
        """Embed no more, and let go of the store. Returns what ends its search processes."""
        embedding, self._embedding = self._embedding, None
        if embedding is not None:
            embedding.stop()
        searchers, self._searchers = self._searchers, None
        self._store = None
        return (lambda: None) if searchers is None else searchers.stop

    @property
    def embeds_later(self) -> bool:
        """Whether memories written in words alone are embedded in the background."""
        return self._embedding is not None

    def embed_what_lacks(self) -> None:
        """Embed in the background what has no vectors yet. Waits for nothing."""
        if self._embedding is not None:
            self._embedding.begin()

    def embedding_now(self, scope: Scope) -> EmbeddingNow | None:
        """What of these collections is being embedded; ``None`` where nothing is.

        Counts the collections of ``scope`` alone. Work for a thread. No use of the vault: a page
        that is left open and asks again keeps no vault open.
        """
        embedding, store = self._embedding, self._store
        if embedding is None or store is None or not embedding.running or not scope:
            return None
        with suppress(LockedError):
            now = store.limited_to(scope).embedding()
            if now.left:
                return EmbeddingNow(now.left, embedding.seconds_left(now.words_left))
        return None
