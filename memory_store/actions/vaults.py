"""An opened vault as a whole: its models, sizes and counts, and whether it is what it was.

Boundary: records are authenticated here, and none is shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from memory_store.actions.action import Opened, action
from memory_store.index.topics import count_topics
from memory_store.records import Embedding
from memory_store.session.embedders import ModelState
from memory_store.vault.storage import Storage

if TYPE_CHECKING:
    from memory_store.models.embedder import Embedder
    from memory_store.records import Progress


@action(None, writes=False, in_batches=True)
def embedder(opened: Opened, collection: str | None = None) -> Embedder:
    """The embedding model of a collection (name or id), or of the vault, loaded.

    Raises ModelUnavailableError or ModelMismatchError.
    """
    return opened.embedders.load(_id(opened, collection))


@action(None, writes=False)
def embedder_name(opened: Opened, collection: str | None = None) -> str | None:
    """The name or folder under which :func:`embedder` looks; ``None``: the usual model."""
    return opened.embedders.name(_id(opened, collection))


@action(None, writes=False)
def model_state(opened: Opened, collection: str | None = None) -> ModelState:
    """Whether meaning can be searched in a collection, and if not, why and what mends it."""
    return opened.embedders.state(_id(opened, collection))


@action(None, writes=False)
def revision(opened: Opened) -> int:
    """A number that differs where memories, their versions or their vectors do."""
    return opened.vault.snapshot().revision


@action(None, writes=False)
def versions(opened: Opened) -> dict[str, int]:
    """Id → version of every memory that may be read here."""
    vault = opened.vault
    snapshot = vault.snapshot()
    ordinals = snapshot.visible(frozenset(vault.keyring.openable())).nonzero()[0]
    numbers = snapshot.versions[ordinals].tolist()
    return dict(zip(snapshot.ids(ordinals), numbers, strict=True))


@action(None, writes=False)
def warm(opened: Opened) -> None:
    """Load the index and the model now rather than in the first search."""
    opened.vault.snapshot()
    opened.embedders.state()


def _id(opened: Opened, collection: str | None) -> str | None:
    return None if collection is None else opened.vault.collections.find(collection)


@action(None, writes=False)
def embedding(opened: Opened) -> Embedding:
    """How many memories have vectors, of how many, and how many words those have."""
    return embedded(opened)


def embedded(opened: Opened) -> Embedding:
    """See :func:`embedding`."""
    snapshot = opened.vault.snapshot()
    there = snapshot.visible(opened.vault.keyring.readable())
    done = there & ~snapshot.worked_out("unembedded", snapshot.unembedded)
    words = snapshot.lengths.astype(np.int64) + 1  # as :func:`embed_missing` counts them
    return Embedding(
        int(done.sum()), int(there.sum()), int(words[done].sum()), int(words[there].sum())
    )


@action(None, writes=False)
def stats(opened: Opened) -> dict[str, Any]:
    """Sizes (bytes) and counts by name, and with what the vault is indexed.

    Of some of its collections alone without the file's size, which counts all.
    """
    vault = opened.vault
    snapshot, settings, storage = vault.snapshot(), vault.settings, vault.reader()
    return {
        **storage.collections.statistics(vault.keyring.readable()),
        **storage.trash.statistics(vault.keyring.readable()),
        **({} if vault.limits else {"format": storage.format()}),
        **({} if vault.limits else {"database_bytes": storage.size(vault.path)}),
        "memories": int(snapshot.total),
        "topics": count_topics(snapshot),
        "vectors": snapshot.living_vectors,
        "languages": dict(Counter(snapshot.language_counts).most_common()),
        "model": settings.embedder or None,
        "fingerprint": settings.fingerprint[:12] or None,
        "profile": settings.profile,
        "vector_index": opened.vectors.index(snapshot).reason if snapshot.vectors else "no vectors",
    }


@action(None, writes=False)
def verify(
    opened: Opened, progress: Progress | None = None, *, full: bool = False
) -> dict[str, Any]:
    """Authenticate every record and hold it against accounts and index. Changes nothing.

    The words of a sample, and the vectors of a smaller one, are made again and compared with
    the index; those of every memory if ``full``. ``compared`` in the report says how many.
    """
    from memory_store.session.verification import verify as verified

    whole = opened.vault.whole_vault()
    found = verified(whole, progress, full=full, model=opened.embedders.load)
    return {**found, "older": opened.vault.older}


@action(None, writes=False)
def first_warning(opened: Opened) -> str | None:
    """What to show once to the person who opened the vault: that the file is older than the one
    last used on this machine (``verify`` shows that until it is accepted), what an upgrade did."""
    return opened.vault.first_warning()


@action(None, writes=False)
def older(opened: Opened) -> str | None:
    """A warning that the file is older, as long as it is not accepted (:func:`accept_older`)."""
    return opened.vault.older


@action(None, writes=False)
def accept_older(opened: Opened) -> None:
    """Take the file as it is for the newest there is, after a backup was put back."""
    opened.vault.whole_vault().accept_older()


@contextmanager
def accepting_older_shares(path: Path) -> Iterator[None]:
    """Accept an older share of a member inside; unless that fails, it is the newest for her.

    The owner's settings are held against their account as ever.
    """
    from memory_store.vault.machine import SHARES, without
    from memory_store.vault.settings import read_vault_id
    from memory_store.vault.storage.file_access import file_access
    from memory_store.vault.storage.schema import check_is_vault

    check_is_vault(path)
    with closing(Storage.open(path, read_only=True, access=file_access(path))) as storage:
        vault = read_vault_id(storage)
    with without(vault, SHARES):
        yield
