"""MemoryStore: an opened vault as every surface uses it.

Boundary: plain text goes in and comes out here, for the holder of a key. Who may ask is decided
before: the command line's user holds the key, Datasette asks its grants.

What a store can do stands in :mod:`memory_store.actions`, one function an action; the classes here
give each its name. Actions that write, and those on keys, are imported when they are first used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from memory_store import actions
from memory_store.actions import collections, reads, vaults
from memory_store.actions import searches as asking
from memory_store.actions.action import Actions, Background, Heard, Opened, SearchElsewhere, late
from memory_store.addresses import vault_path
from memory_store.configuration import chosen, default_vault
from memory_store.errors import BadInputError
from memory_store.paths import SHARDS_VARIABLE, home_path
from memory_store.records import ANSWER_BUDGET, ANSWER_SOURCES, Answer
from memory_store.scopes import EVERYTHING, Limits, Scope
from memory_store.session.credentials import new_recovery, secrets_to_open, secrets_to_set
from memory_store.session.embedders import Embedders
from memory_store.session.held_vectors import HeldVectors
from memory_store.session.unlock import open_again, open_vault
from memory_store.session.whole_vault import WholeVault
from memory_store.sqlite import FileAccess
from memory_store.text.tokens import forget_words
from memory_store.vault.storage.damage import vault_faults

if TYPE_CHECKING:
    from memory_store.index.snapshot import Snapshot
    from memory_store.shards.server import ShardServer


class Opening(Struct, frozen=True):
    """How a vault that is open here is opened once more, besides its root key."""

    path: Path
    access: FileAccess
    principal: int
    pin: bytes
    embedder: str | None
    expander: str | None


class Collections(Actions):
    """The collections of a vault, their settings and their members."""

    list = collections.listed
    names = collections.names
    find = collections.find
    analysers = collections.analysers
    membership = collections.membership
    stale = collections.stale
    languages = collections.languages
    create = collections.create
    set = collections.choose
    rename = collections.rename
    delete = collections.delete_collection
    members = collections.members
    change_members = collections.change_members
    open = collections.open_collection


class Keys(Actions):
    """The keys of a vault: slots, device keys, new keys, and with whom collections are shared.

    All of it is done with a whole vault: BadInputError in a part of one.
    """

    list = late(lambda: actions.key_slots.slots)
    add = late(lambda: actions.key_slots.add)
    add_recovery_code = late(lambda: actions.key_slots.add_recovery_code)
    remove = late(lambda: actions.key_slots.remove)
    rotate = late(lambda: actions.key_rotation.rotate)
    rotate_root = late(lambda: actions.key_slots.replace_root)
    unfinished = late(lambda: actions.key_rotation.unfinished)
    superseded = late(lambda: actions.key_rotation.superseded)
    add_device = late(lambda: actions.key_slots.give_device_key)
    export_device = late(lambda: actions.key_devices.exported)
    restore_device = late(lambda: actions.key_devices.restored)
    lacks_device = late(lambda: actions.key_devices.lacking)
    identity = late(lambda: actions.key_sharing.own_identity)
    introduced = late(lambda: actions.key_sharing.introduced)
    share = late(lambda: actions.key_sharing.share)
    holders = late(lambda: actions.key_sharing.holders)
    revoke = late(lambda: actions.key_sharing.revoke)


class Trail(Actions):
    """The audit trail of a vault."""

    keep = late(lambda: actions.trail.keep)
    events = late(lambda: actions.trail.events)


class Code(Actions):
    """The source code of a vault, by its syntax: see ``records/code.py`` for the answers."""

    present = late(lambda: actions.code.present)
    context = late(lambda: actions.code.context)
    outline = late(lambda: actions.code.outline)
    symbols = late(lambda: actions.code.symbols)
    references = late(lambda: actions.code.references)
    impact = late(lambda: actions.code.impact)
    read = late(lambda: actions.code.read)
    every_symbol = late(lambda: actions.code_tables.every_symbol)
    every_use = late(lambda: actions.code_tables.every_use)


class Trash(Actions):
    """What was deleted or replaced in a vault: sealed, for some days."""

    days = late(lambda: actions.trash.days)
    list = late(lambda: actions.trash.listed)
    restore = late(lambda: actions.trash.restore)
    empty = late(lambda: actions.trash.empty)


class Review(Actions):
    """What in a vault may want putting in order, and what can be done with a pair."""

    list = late(lambda: actions.review.listed)
    keep = late(lambda: actions.review.keep)
    merge = late(lambda: actions.review.merge)
    supersede = late(lambda: actions.review.supersede)


class Searches(Actions):
    """Searches that actors keep under a name: in a whole vault, with its owner's key."""

    list = late(lambda: actions.saved_searches.listed)
    find = late(lambda: actions.saved_searches.find)
    save = late(lambda: actions.saved_searches.save)
    rename = late(lambda: actions.saved_searches.rename)
    remove = late(lambda: actions.saved_searches.remove)
    make_feed = late(lambda: actions.saved_searches.make_feed)
    end_feed = late(lambda: actions.saved_searches.end_feed)
    of_feed = late(lambda: actions.saved_searches.of_feed)
    feeds = late(lambda: actions.saved_searches.feeds)


class MemoryStore(Actions):
    """An unlocked vault. Close it, or use it as a context manager, to lock it again.

    Many threads may search and read at once; writes wait for one another.
    """

    def __init__(
        self, vault: WholeVault, *, embedder: str | None = None, expander: str | None = None
    ) -> None:
        super().__init__(Opened(vault, Embedders(vault, embedder), HeldVectors(vault), expander))
        if vault.index.spread is None and (named := chosen(SHARDS_VARIABLE)):
            from memory_store.shards.client import shards_of  # few vaults are on shards

            vault.index.spread = shards_of(home_path(named), vault.path)

    @property
    def collections(self) -> Collections:
        return Collections(self._opened)

    @property
    def keys(self) -> Keys:
        return Keys(self._opened)

    @property
    def trail(self) -> Trail:
        return Trail(self._opened)

    @property
    def code(self) -> Code:
        return Code(self._opened)

    @property
    def review(self) -> Review:
        return Review(self._opened)

    @property
    def trash(self) -> Trash:
        return Trash(self._opened)

    # -- actions ------------------------------------------------------------------------

    search = asking.search
    search_by_places = asking.search_by_places
    search_context = asking.search_context
    vector_index = asking.vector_index
    rank = asking.rank
    resembling = asking.resembling
    marker = asking.marker

    get = reads.get
    succession = reads.succession
    original = reads.original
    list = reads.newest
    every = reads.every
    find_id = reads.find_id
    present = reads.present
    heads = reads.heads
    texts = reads.texts
    references = reads.references
    found_again = reads.found_again
    generation = reads.generation
    exists = late(lambda: actions.words.exists)
    words = late(lambda: actions.words.words)
    links = late(lambda: actions.links.links)
    unfolded = late(lambda: actions.links.unfolded)
    related = late(lambda: actions.links.related)

    add = late(lambda: actions.writes.add)
    add_many = late(lambda: actions.writes.add_many)
    add_once = late(lambda: actions.edits.add_once)
    edit = late(lambda: actions.edits.edit)
    edit_many = late(lambda: actions.edits.edit_many)
    supersede = late(lambda: actions.edits.supersede)
    done = late(lambda: actions.edits.done)
    reopen = late(lambda: actions.edits.reopen)
    undo = late(lambda: actions.trash.undo)
    undo_all_of = late(lambda: actions.assistants_work.undo_all_of)
    publish = late(lambda: actions.edits.publish)
    delete = late(lambda: actions.edits.delete)
    delete_many = late(lambda: actions.edits.delete_many)
    import_paths = late(lambda: actions.writes.import_paths)
    run_import = late(lambda: actions.writes.run_import)
    sources = late(lambda: actions.sources.sources)
    is_source = late(lambda: actions.sources.is_source)
    gone_on = late(lambda: actions.sources.gone_on)
    forget_source = late(lambda: actions.sources.forget_source)
    edit_source = late(lambda: actions.sources.edit_source)
    memories_of_source = late(lambda: actions.sources.memories_of_source)
    watch = late(lambda: actions.sources.watch)
    embed_missing = late(lambda: actions.writes.embed_missing)
    reindex = late(lambda: actions.writes.reindex)
    change_model = late(lambda: actions.writes.change_model)
    incomplete = late(lambda: actions.writes.incomplete)
    sync_with_copy = late(lambda: actions.sync.with_copy)
    sync_with_folder = late(lambda: actions.sync.with_folder)

    frequent_topics = late(lambda: actions.topics.frequent_topics)
    recent_topics = late(lambda: actions.topics.recent_topics)
    topic_hash = late(lambda: actions.topics.topic_hash)
    topics = late(lambda: actions.topics.topics)
    suggested_topics = late(lambda: actions.suggestions.suggested_topics)
    landscape = late(lambda: actions.landscape.landscape)

    settings = late(lambda: actions.settings.settings)
    set_topics = late(lambda: actions.settings.set_topics)
    set_trash = late(lambda: actions.settings.set_trash)
    set_ranking = late(lambda: actions.settings.set_ranking)
    stats = vaults.stats
    embedding = vaults.embedding
    embedder = vaults.embedder
    embedder_name = vaults.embedder_name
    model_state = vaults.model_state
    warm = vaults.warm
    revision = vaults.revision
    versions = vaults.versions
    verify = vaults.verify
    first_warning = vaults.first_warning
    older = vaults.older
    accept_older = vaults.accept_older

    introduce = late(lambda: staticmethod(actions.key_sharing.introduce))
    device_keys = late(lambda: staticmethod(actions.key_devices.listed))
    import_device_key = late(lambda: staticmethod(actions.key_devices.imported))

    def ask(
        self,
        question: str,
        *,
        model: str | None = None,
        limit: int = ANSWER_SOURCES,
        budget: int = ANSWER_BUDGET,
        on_text: Callable[[str], None] | None = None,
        **options: Any,
    ) -> Answer:
        """An answer in sentences with citations, written by a language model.

        Searches with ``options`` (those of :meth:`search`) and sends the text of what is found, at
        most ``limit`` memories and about ``budget`` tokens, to ``model``: a name or alias that
        ``llm`` knows, ``None`` for its default model. ``on_text`` is given the answer piece by
        piece as it arrives. No lock has to wait for the model: only the search and opening what
        it found use the vault. Raises what :meth:`search` raises, and ModelUnavailableError.
        """
        from memory_store.search.answer.cited_answer import answer

        response = self.search(question, limit=limit, **options)
        found = self.found_again([row.id for row in response.rows])
        return answer(response, found, model=model, budget=budget, on_text=on_text)

    @property
    def searches(self) -> Searches:
        return Searches(self._opened)

    # -- other views --------------------------------------------------------------------

    def limited_to(
        self,
        scope: Scope,
        *,
        creating: bool = False,
        readable: Scope = EVERYTHING,
        disclosed: Scope = EVERYTHING,
        writer: str = "",
        asker: str = "",
    ) -> MemoryStore:
        """The same opened vault with nothing of other collections in it at all.

        Others' memories are NotFoundError, others' collections do not exist, and every count and
        score is what it would be without them. Cheap: make one for each request. ``creating``:
        whether adding to a collection of an unknown name makes one; else that is BadInputError.
        Collections outside of ``readable`` stay sealed: they go by their ids, and where their
        memories are found or listed these are :class:`SealedMemory`, for there is no key to open
        one. Outside of ``disclosed`` a ``writer`` (any text that stands for one) learns nothing of
        what is there by writing: collections go by their ids, nothing is recognised but what the
        same writer imported or published, and no content is shared with another memory. What a
        language model made of a question is kept for one ``asker`` (any text that stands for one).
        Closing it does nothing. For the scope of everything it is the store itself.
        """
        if scope == readable == disclosed == EVERYTHING:
            return self
        opened = self._opened
        limits = Limits(scope, readable, disclosed, writer, creating, asker)
        vault = opened.vault.limited_to(limits)
        limited = MemoryStore.__new__(MemoryStore)
        limited._opened = replace(
            opened,
            vault=vault,
            embedders=Embedders(vault, opened.embedders.usual),
            views=(*opened.views, limits),
        )
        return limited

    def apart(self) -> MemoryStore:
        """The same opened vault, whose actions are reported on their own (:meth:`report_to`)."""
        other = MemoryStore.__new__(MemoryStore)
        other._opened = replace(self._opened, heard=None)
        return other

    def on_behalf_of(self, assistant: str) -> MemoryStore:
        """The same view of the vault; what is changed or deleted through it is said to be the
        assistant's of that name, whose work can be undone as a whole (:meth:`undo_all_of`)."""
        other = MemoryStore.__new__(MemoryStore)
        other._opened = replace(self._opened, by=assistant)
        return other

    def report_to(self, heard: Heard | None) -> None:
        """Give the audit trail's event of every action to ``heard``, with its numbers of memories
        opened and returned or changed."""
        self._opened.heard = heard

    def search_through(self, elsewhere: SearchElsewhere | None) -> None:
        """Search there if there is room; its ``None`` means here. See ``searchers``."""
        self._opened.elsewhere = elsewhere

    def serve_shard(
        self,
        listen: str,
        part: tuple[int, int],
        certificate: Path,
        private_key: Path,
        peers: Sequence[Path],
    ) -> ShardServer:
        """A server, to be started, of this vault's shard ``part`` (number, count) for the nodes
        whose certificates are ``peers``. Nothing may have been searched yet.

        Raises BadInputError that names what is wrong, ExtraMissingError without gRPC.
        """
        from memory_store.index.shard import Part
        from memory_store.shards.certificates import read_certificate, read_identity
        from memory_store.shards.server import ShardServer

        vault, own = self._opened.vault.whole_vault(), Part.of(*part)
        identity = read_identity(certificate, private_key)
        known = [read_certificate(peer) for peer in peers]
        if not vault.index.untouched:
            raise BadInputError("shards: the whole index is in memory already", "shards")
        vault.index.spread = own
        return ShardServer(self._newest, own, identity, known, listen)

    def _newest(self) -> Snapshot:
        vault = self._opened.vault.whole_vault()
        with vault.gate.entered():
            return vault.snapshot()

    def embedded_by(self, background: Background) -> None:
        """Say of missing vectors that this is making them, where it is, and have it begin."""
        self._opened.background = background

    def lend(self, take: Callable[[Opening, bytearray], None]) -> None:
        """Give what opens this vault once more to a process of our own. Raises LockedError."""
        vault = self._opened.vault.whole_vault()
        with vault.gate.entered():
            opening = Opening(
                vault.path,
                vault.access,
                vault.keyring.principal,
                vault.keyring.pin,
                self._opened.embedders.usual,
                self.expander,
            )
            take(opening, vault.keyring.root.buffer)

    def open_copy(self, path: str | Path) -> MemoryStore:
        """Another copy of this vault, opened with this one's key: for :meth:`sync_with_copy`.

        Raises BadInputError where it is another vault, or that key opens it no more.
        """
        vault, other = self._opened.vault.whole_vault(), vault_path(path)
        with vault.gate.entered(), vault_faults(other):
            opened = open_again(vault, other)
        return MemoryStore(opened, embedder=self._opened.embedders.usual)

    # -- opening and locking ------------------------------------------------------------

    @staticmethod
    def create(
        path: str | Path,
        *,
        key_file: str | Path | None = None,
        passphrase: str | None = None,
        keyring: bool = False,
        profile: str = "default",
        topics: str | None = None,
        embedder: str | None = None,
        device_key: bool = True,
        model: str | None = None,
    ) -> tuple[MemoryStore, str]:
        """A new vault, opened, and its recovery code (shown once, stored nowhere in clear).

        A passphrase opens it together with a device key, which is made here and kept in the state
        folder, so that the file alone cannot be guessed at; ``device_key=False`` for a passphrase
        that opens it on its own.
        ``topics``: see :meth:`set_topics`; a strict vault has them in memory in any case.
        ``model`` is the embedding model that the vault is to have (else the usual one of the
        program that embeds first); ``embedder`` is one for this object alone.

        Raises BadInputError without any key, or when the file holds a vault already.
        """
        from memory_store.session.creation import create_vault  # what only opens needs none of it

        database = vault_path(path)
        secrets = secrets_to_set(
            database,
            key_file=key_file,
            passphrase=passphrase,
            keyring=keyring,
            device_key=device_key,
        )
        recovery, recovery_code = new_recovery()
        vault = create_vault(database, [*secrets, recovery], profile, topics, model)
        return MemoryStore(vault, embedder=embedder), recovery_code

    @staticmethod
    def join(
        path: str | Path,
        folder: str | Path,
        *,
        key_file: str | Path | None = None,
        passphrase: str | None = None,
        recovery_code: str | None = None,
        embedder: str | None = None,
    ) -> MemoryStore:
        """A new copy of the vault whose devices share a folder, opened; it is empty until
        :meth:`sync_with_folder`.

        Raises BadInputError where the folder holds no keys, WrongKeyError, NotAVaultError where
        there is such a file already.
        """
        from memory_store.actions.sync.keys import join

        database = Path(path)
        secrets = secrets_to_open(
            database,
            key_file=key_file,
            passphrase=passphrase,
            recovery_code=recovery_code,
            keyring=False,
        )
        with vault_faults(database):
            return MemoryStore(join(database, Path(folder), secrets), embedder=embedder)

    @staticmethod
    def in_memory(name: str | Path = "memory", *, embedder: str | None = None) -> MemoryStore:
        """A vault without a file, with a key of its own. Both are gone when it is closed.

        Messages call it by ``name``.
        """
        from memory_store.session.creation import create_in_memory

        return MemoryStore(create_in_memory(Path(name)), embedder=embedder)

    @staticmethod
    def open(
        path: str | Path | None = None,
        *,
        key_file: str | Path | None = None,
        passphrase: str | None = None,
        recovery_code: str | None = None,
        keyring: bool = False,
        embedder: str | None = None,
        expander: str | None = None,
    ) -> MemoryStore:
        """Unlock a vault. ``embedder`` names another model than the usual one (see ``doctor``).

        Without ``path`` it is the vault that the command line takes where none is named, and
        without a key, too, the key is found as there: by the environment, then the keyring.

        ``expander`` names a language model for its searches to word queries in other ways with.

        Raises NotAVaultError, FormatError, BadInputError (an unusable key file), WrongKeyError
        (DeviceKeyError where this machine lacks the passphrase's device key), StorageError.
        """
        named = key_file or passphrase or recovery_code or keyring
        if path is None and not named:
            from memory_store.key_lookup import opened_by_first_key

            return opened_by_first_key(
                partial(MemoryStore.open, expander=expander), default_vault(), embedder=embedder
            )
        database = default_vault() if path is None else vault_path(path)
        if not named:  # it may be that there is no vault to give a key for
            from memory_store.vault.storage.schema import check_is_vault

            check_is_vault(database)
        secrets = secrets_to_open(
            database,
            key_file=key_file,
            passphrase=passphrase,
            recovery_code=recovery_code,
            keyring=keyring,
        )
        with vault_faults(database):
            vault = open_vault(database, secrets)
        return MemoryStore(vault, embedder=embedder, expander=expander)

    def __enter__(self) -> MemoryStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def lock(self) -> None:
        """Wipe keys, vectors and hashes from memory. Everything raises LockedError from now on."""
        self._opened.vault.lock()
        forget_words()

    close = lock

    @property
    def locked(self) -> bool:
        return self._opened.vault.keyring.locked

    @property
    def path(self) -> Path:
        return self._opened.vault.path

    @property
    def vault_id(self) -> str:
        """The vault's public random id, in hex."""
        return self._opened.vault.vault.hex()

    @property
    def principal(self) -> int:
        """Whose key opened it: 0 is the owner's, others' come from their public keys."""
        return self._opened.vault.keyring.principal

    @property
    def is_owner(self) -> bool:
        """Whether the owner's key opened it, to which everything is open."""
        return self._opened.vault.keyring.is_owner

    @property
    def profile(self) -> str:
        return self._opened.vault.settings.profile

    @property
    def expander(self) -> str | None:
        """The language model that expands queries; ``None``: ``MEMORY_STORE_EXPANDER``, or none."""
        return self._opened.expander

    @expander.setter
    def expander(self, name: str | None) -> None:
        self._opened.expander = name

    @property
    def decrypted(self) -> dict[str, int]:
        """How many heads and bodies of memories were decrypted here since the vault was unlocked.

        By ``table.column``, as the one function that decrypts counts them: what ``opened`` in a
        response can be held against.
        """
        return dict(self._opened.vault.keyring.counter.counts)

    def __repr__(self) -> str:
        return f"<MemoryStore {self.path.name}{' locked' if self.locked else ''}>"
