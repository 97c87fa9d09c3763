"""The vault's settings: which are in clear (format, id), which are sealed (everything else).

Boundary: the sealed settings decide what may stand in clear (the profile), so a thief who can
write the file must not be able to change them: they are read only from the sealed value.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from zlib import crc32

from msgspec import Struct, ValidationError, convert, field, to_builtins
from msgspec.structs import asdict, replace

from memory_store.errors import (
    AwayError,
    BadInputError,
    FormatError,
    LockedError,
    NotAVaultError,
    NotFoundError,
    TamperedError,
)
from memory_store.records.fusion import FittedFusion
from memory_store.records.saved_searches import SavedSearch
from memory_store.vault.collection_keys import CARRIED
from memory_store.vault.collections import earlier_names
from memory_store.vault.keyring import VAULT_SCOPE, WholeKeyring
from memory_store.vault.machine import SHARES, keep, kept
from memory_store.vault.manifest import note_revision, open_manifest
from memory_store.vault.members import Member
from memory_store.vault.shares import Share, read_share, write_share
from memory_store.vault.slots import list_slots
from memory_store.vault.storage import Storage
from memory_store.vault.storage.schema import FORMAT_VERSION
from memory_store.vault.trash import KEPT_DAYS

DEDUPE = CARRIED.index("dedupe")
PROFILES = ("default", "strict")
TABLE, MEMORY = TOPICS = ("table", "memory")
"""Where topics can be looked up: in the file's table of hashes, or in the opened index alone."""
FILLING = "filling"  # the table, as long as not all hashes are back in it
MOST_EARLIER = 4  # models of before that are still asked: each is in memory beside the present one
AUTO = "auto"  # the analyser that looks at each text for its language


class CollectionSettings(Struct, frozen=True):
    """How one collection is indexed.

    ``analyser`` is ``auto``, a language code or ``code``. ``embedder`` names the model, empty for
    the vault's own; ``folder`` is where it was last loaded from, when it was given as a folder.
    """

    collection: str
    analyser: str = AUTO
    embedder: str = ""
    folder: str = ""
    fingerprint: str = ""
    dimensions: int = 0


class EarlierModel(Struct, frozen=True):
    """A model that some vectors come from until those of a later one are there.

    ``folder`` is where it lay, when it was given as a folder.
    """

    embedder: str
    fingerprint: str
    folder: str = ""


class Epoch(Struct, frozen=True):
    """The epoch of a collection's key (or of the vault's own), where it is not the first.

    ``before`` is the one that is being left, while some values are still sealed in it.
    """

    collection: str
    epoch: int
    before: int | None = None

    @property
    def read(self) -> frozenset[int]:
        """The epochs that values may be sealed in."""
        return frozenset({self.epoch} if self.before is None else {self.epoch, self.before})

    @property
    def earliest(self) -> int:
        """The first of these."""
        return min(self.read)


class KeyHolder(Struct, frozen=True):
    """A member with whom collections are shared: a principal of that name and public keys.

    ``identity`` is the SHA-256 of the public keys, in hex (see ``vault/identities.py``).
    """

    principal: int
    name: str
    identity: str
    collections: tuple[str, ...] = ()


class Settings(Struct, frozen=True):
    """``embedder`` and ``fingerprint`` name the model of every vector (before the first it
    has no ``fingerprint``, and a name only where one was chosen).

    ``analyser`` is the version of the text analysis that index entries without a mark of their
    own were made with. ``collections`` are the ids of all that were made, so that none can be
    taken away unnoticed; ``choices`` the settings of those that differ from the vault;
    ``members`` those of closed collections. ``epochs`` are those of keys that were replaced,
    ``holders`` with whom collections are shared; ``slots`` the ids of the owner's key slots (empty
    where they never changed), so that none that was removed can be put back. ``passphrase_alone``:
    whether the owner wants passphrases that need no device key.
    ``topics`` is one of :data:`TOPICS`, or :data:`FILLING` on the way back to the table.
    ``revision`` grows with every change; the personal collection's account knows the newest.
    ``format`` says by which rules the rows are read: 0 before there was a third.
    ``names`` are the owner's names of the collections, by id.
    ``trash``: for how many days what was deleted or replaced is kept; 0 keeps nothing.
    ``rankings`` are numbers of learned fusion that were fitted to the owner's judgements, one for
    each model. ``searches`` are those that actors keep under a name. ``earlier`` are the models of
    before a change, as long as a memory may have vectors of theirs. ``once_shared`` are the
    collections that others could ever read, and write.
    """

    profile: str = "default"
    created: str = ""
    personal: str = ""
    analyser: int = 0
    embedder: str = ""
    fingerprint: str = ""
    dimensions: int = 0
    revision: int = 0
    collections: tuple[str, ...] = ()
    choices: tuple[CollectionSettings, ...] = ()
    members: tuple[Member, ...] = ()
    epochs: tuple[Epoch, ...] = ()
    holders: tuple[KeyHolder, ...] = ()
    slots: tuple[str, ...] = ()
    passphrase_alone: bool = False
    format: int = 0
    topics: str = TABLE
    names: dict[str, str] = field(default_factory=dict)
    trash: int = KEPT_DAYS
    rankings: tuple[FittedFusion, ...] = ()
    searches: tuple[SavedSearch, ...] = ()
    earlier: tuple[EarlierModel, ...] = ()
    once_shared: tuple[str, ...] = ()

    @property
    def strict(self) -> bool:
        """Whether nothing but row ids and collection ids stands in clear."""
        return self.profile == "strict"

    @property
    def shared(self) -> frozenset[str]:
        """The collections that others can read, too."""
        return frozenset(one for holder in self.holders for one in holder.collections)

    @property
    def topics_kept(self) -> str:
        """``topics`` as they hold: a strict vault has them in memory alone."""
        return MEMORY if self.strict else self.topics

    @property
    def indexing(self) -> Settings:
        """These settings as far as they say how memories are indexed."""
        fewer = replace(
            self, revision=0, collections=(), members=(), topics=TABLE, names={}, trash=0
        )
        fewer = replace(fewer, epochs=(), holders=(), slots=(), rankings=(), searches=())
        return replace(fewer, passphrase_alone=False, once_shared=())

    @property
    def opened_with(self) -> int:
        """A number below 2 ** 31 for the keys that open every memory: another one once what was
        sealed before keys were replaced is opened by none of them."""
        earliest = sorted((one.collection, one.earliest) for one in self.epochs)
        return crc32(repr(earliest).encode()) >> 1

    def epoch_of(self, collection: str) -> Epoch:
        """The epoch of a collection's key, or of the vault's own."""
        first = Epoch(collection, 0)
        return next((one for one in self.epochs if one.collection == collection), first)

    def with_epoch(self, epoch: Epoch) -> tuple[Epoch, ...]:
        """``epochs`` with that of one collection set anew."""
        return (*(one for one in self.epochs if one.collection != epoch.collection), epoch)

    def with_holder(self, holder: KeyHolder) -> tuple[KeyHolder, ...]:
        """``holders`` with one of them set anew; without collections he is none any more."""
        others = tuple(one for one in self.holders if one.principal != holder.principal)
        return (*others, holder) if holder.collections else others

    def chosen(self, collection: str) -> CollectionSettings:
        """What was chosen for a collection; no ``embedder`` where that is the vault's."""
        none = CollectionSettings(collection)
        return next((one for one in self.choices if one.collection == collection), none)

    def of(self, collection: str) -> CollectionSettings:
        """What holds for a collection: its own choice, and for the rest the vault's."""
        own = self.chosen(collection)
        if own.embedder:
            return own
        return replace(
            own,
            embedder=self.embedder,
            fingerprint=self.fingerprint,
            dimensions=self.dimensions,
        )

    def with_choice(self, choice: CollectionSettings) -> tuple[CollectionSettings, ...]:
        """``choices`` with that of one collection set anew; none where it is the vault's."""
        others = tuple(one for one in self.choices if one.collection != choice.collection)
        usual = choice == CollectionSettings(choice.collection)
        return others if usual else (*others, choice)

    def with_ranking(self, fitted: FittedFusion) -> tuple[FittedFusion, ...]:
        """``rankings`` with that of one model set anew."""
        return (*(one for one in self.rankings if one.model != fitted.model), fitted)

    def with_earlier(
        self, collection: str, fingerprint: str, folder: str = ""
    ) -> tuple[EarlierModel, ...]:
        """``earlier`` with the model that a collection has now (which lies in ``folder``, where it
        was given as one), where it is to have another."""
        now = self.of(collection)
        if now.fingerprint in ("", fingerprint):
            return self.earlier
        left = EarlierModel(now.embedder, now.fingerprint, folder or now.folder)
        others = (one for one in self.earlier if one.fingerprint != left.fingerprint)
        return (*others, left)[-MOST_EARLIER:]

    def members_of(self, collection: str) -> dict[str, str]:
        """Actor → role in one collection; empty where it is open."""
        return {one.actor: one.role for one in self.members if one.collection == collection}

    def with_members(self, collection: str, roles: Mapping[str, str]) -> tuple[Member, ...]:
        """``members`` with those of one collection set anew."""
        others = (one for one in self.members if one.collection != collection)
        return (*others, *(Member(collection, actor, role) for actor, role in roles.items()))

    def membership(self) -> Mapping[str, Mapping[str, str]]:
        """Every collection's id → its members' roles by actor, none where it is open."""
        found: dict[str, dict[str, str]] = {collection: {} for collection in self.collections}
        for one in self.members:
            found[one.collection][one.actor] = one.role
        return MappingProxyType({name: MappingProxyType(roles) for name, roles in found.items()})


FIRST_FIELDS = Settings.__struct_fields__[:9]
"""What settings said from the beginning, and say even where it is empty."""
OF_THE_VAULT = (
    *("profile", "analyser", "embedder", "fingerprint", "dimensions", "topics", "format"),
    "trash",
)
"""The fields that members know, too: each share of a collection repeats them."""


def check_topics(topics: str, profile: str) -> None:
    """Raise BadInputError for what is none of :data:`TOPICS`, or not one of that profile."""
    if topics not in TOPICS:
        raise BadInputError(f"topics: no {topics!r}; there is: {', '.join(TOPICS)}", "topics")
    if topics == TABLE and profile == "strict":
        raise BadInputError(
            "topics: a strict vault keeps them in memory; a table needs a vault of the default "
            "profile (export this one, and import it there)",
            "topics",
        )


def read_vault_id(storage: Storage) -> bytes:
    """The vault's public random id, 16 bytes."""
    try:
        vault = bytes.fromhex(storage.settings.clear("vault") or "")
    except (TypeError, ValueError):
        vault = b""
    if len(vault) != 16:
        raise NotAVaultError("the vault has no id: it was never finished, or was damaged")
    return vault


def read_settings(storage: Storage, keyring: WholeKeyring, *, looked: bool = False) -> Settings:
    """The sealed settings, of one moment with the keys. Raises TamperedError.

    The keyring holds the keys of that moment afterwards, and opens what is sealed under those.
    ``looked``: it has them already, of the moment that ``storage`` reads.
    """
    with storage.reading():
        present = keyring.present if looked else keyring.look(storage)
        if keyring.is_owner:
            settings = _opened(storage, keyring)
            if settings.format < FORMAT_VERSION:
                settings = replace(settings, names=earlier_names(storage, keyring))
            _check_complete(storage, keyring, settings)
        else:
            settings = _shared(storage, keyring, present)
        _check_epochs(keyring, settings, present)
    scopes = (VAULT_SCOPE, *settings.collections)
    keyring.admit(settings.revision, {one: settings.epoch_of(one).read for one in scopes})
    return settings


def _opened(storage: Storage, keyring: WholeKeyring) -> Settings:
    row = storage.settings.sealed()
    if row is None:
        raise FormatError("the vault has no settings: it was never finished, or was damaged")
    revision, sealed = row
    keys = keyring.of(VAULT_SCOPE)
    place = keys.place("vault_settings", "sealed", "settings", revision)
    return convert(json.loads(bytes(keys.unseal("head", place, sealed))), Settings)


def _shared(
    storage: Storage, keyring: WholeKeyring, present: Iterable[tuple[str, int]]
) -> Settings:
    """The settings as far as they concern the collections that are shared with this principal."""
    owner = keyring.owner_identity(storage)
    shares = {one: read_share(storage, keyring.of(one), owner) for one, _ in present}
    if not shares:
        raise NotFoundError("nothing in this vault is shared with this key any more")
    _check_newest(storage, keyring, shares)
    one = max(shares.values(), key=lambda share: share.revision)
    if any(other.dedupe != one.dedupe for other in shares.values()):
        raise TamperedError("vault_shares: not all of them are of this vault")
    keyring.hold_own_scope(one.dedupe)
    return Settings(
        **{name: getattr(one, name) for name in OF_THE_VAULT},
        revision=one.revision,  # which the owner signed; that in the file anyone may have written
        collections=tuple(shares),
        choices=tuple(_chosen(name, share) for name, share in shares.items() if share.choice),
        epochs=tuple(Epoch(name, share.epoch, share.before) for name, share in shares.items()),
        names={collection: share.name for collection, share in shares.items()},
    )


def _check_newest(storage: Storage, keyring: WholeKeyring, shares: Mapping[str, Share]) -> None:
    """Raise TamperedError for a share that is older than one of before.

    Older than the collection's account says, or than the newest that this machine saw.
    """
    seen = kept(keyring.vault, SHARES, keyring.principal)
    accounts = storage.accounts.of(shares)
    for collection, share in shares.items():
        noted = open_manifest(keyring.of(collection), accounts).revision
        if share.revision < noted:
            raise TamperedError(f"vault_shares of {collection}: an older version was put back")
        if share.revision < seen.get(collection, 0) and storage.standby:
            raise AwayError(
                f"vault_shares of {collection}: this standby is behind what was last seen on this "
                "machine: try again when it has caught up"
            )
        if share.revision < seen.get(collection, 0):
            raise TamperedError(
                f"vault_shares of {collection}: older than the one last seen on this machine. "
                "After a backup was put back, accept it with memory-store verify DB --accept-older"
            )
    newest = {collection: share.revision for collection, share in shares.items()}
    if any(seen.get(collection) != revision for collection, revision in newest.items()):
        keep(keyring.vault, SHARES, keyring.principal, {**seen, **newest})


def _chosen(collection: str, share: Share) -> CollectionSettings:
    try:
        choice = {**share.choice, "collection": collection, "folder": ""}
        return convert(choice, CollectionSettings)
    except ValidationError:
        raise FormatError(f"vault_shares of {collection}: is nothing that this reads") from None


def shares_of(keyring: WholeKeyring, settings: Settings) -> dict[str, Share]:
    """Collection → what those must know with whom it is shared, by the owner's settings."""
    dedupe = bytes(keyring.of(VAULT_SCOPE).bundle.carried[DEDUPE].buffer)
    shares = {}
    for collection in sorted(settings.shared):
        chosen, epoch = settings.chosen(collection), settings.epoch_of(collection)
        own = asdict(chosen) if chosen != CollectionSettings(collection) else {}
        shares[collection] = Share(
            **{name: getattr(settings, name) for name in OF_THE_VAULT},
            epoch=epoch.epoch,
            before=epoch.before,
            dedupe=dedupe,
            choice={name: own[name] for name in own if name not in ("collection", "folder")},
            name=settings.names.get(collection, collection),
            revision=settings.revision,
        )
    return shares


def tell_holders(storage: Storage, keyring: WholeKeyring, settings: Settings) -> None:
    """Write the shares, and their revision into the accounts (in the caller's transaction)."""
    for collection, share in shares_of(keyring, settings).items():
        write_share(storage, keyring.of(collection), share, keyring.root)
        note_revision(storage, keyring.of(collection), settings.revision)


def _check_complete(storage: Storage, keyring: WholeKeyring, settings: Settings) -> None:
    """Raise TamperedError for older settings put back, or the owner's keys taken away."""
    if settings.slots and keyring.slot is not None and keyring.slot not in settings.slots:
        if any(slot.id == keyring.slot for slot in list_slots(storage)):
            raise TamperedError(f"vault_slots {keyring.slot}: was removed, and put back")
        raise LockedError("the key that opened the vault was removed: unlock it with another")
    readable = set(keyring.readable())
    missing = [name for name in settings.collections if name not in readable]
    if missing:
        raise TamperedError(f"vault_collection_keys of {missing[0]}: the owner's key is missing")
    if settings.revision < max(_noted(storage, keyring, settings)):
        raise TamperedError("vault_settings.sealed of settings: an older version was put back")


def _noted(storage: Storage, keyring: WholeKeyring, settings: Settings) -> Iterator[int]:
    """The revisions that accounts know, of collections that no other principal may write in.

    Where everything is shared, the personal one's. Another account that is damaged says nothing
    here: the collection itself is refused for it.
    """
    mine = [one for one in settings.collections if one not in settings.shared]
    accounts = storage.accounts.of({*mine, settings.personal})
    if settings.personal in mine or not mine:
        yield open_manifest(keyring.of(settings.personal), accounts).revision
    for collection in mine:
        try:
            yield open_manifest(keyring.of(collection), accounts).revision
        except TamperedError:
            yield 0


def _check_epochs(
    keyring: WholeKeyring, settings: Settings, found: Iterable[tuple[str, int]]
) -> None:
    """Raise TamperedError unless there are exactly the keys that the settings know of."""
    present = set(found)
    scopes = (VAULT_SCOPE, *settings.collections) if keyring.is_owner else settings.collections
    wanted = {(scope, epoch) for scope in scopes for epoch in settings.epoch_of(scope).read}
    for collection, epoch in sorted(wanted - present):
        raise TamperedError(
            f"vault_collection_keys of {collection}: the owner's key of epoch {epoch} is missing"
        )
    for collection, epoch in sorted(present - wanted):
        raise TamperedError(
            f"vault_collection_keys of {collection}: a key of epoch {epoch} was put back"
        )


def write_settings(storage: Storage, keyring: WholeKeyring, settings: Settings) -> None:
    """Replace the sealed settings (inside the caller's transaction). The owner alone may."""
    keyring.check_owner()
    keys = keyring.of(VAULT_SCOPE)
    place = keys.place("vault_settings", "sealed", "settings", settings.revision)
    data = {
        name: value
        for name, value in to_builtins(settings).items()
        if (value and name != "trash")
        or name in FIRST_FIELDS  # the others as every vault was written before them
    }
    if settings.topics == TABLE:
        del data["topics"]
    if settings.trash != KEPT_DAYS:
        data["trash"] = settings.trash  # 0, too
    sealed = keys.seal("head", place, json.dumps(data).encode())
    storage.settings.write_sealed(settings.revision, sealed)
    everywhere = settings.personal in settings.shared  # where a member could write of an older one
    for collection in settings.collections if everywhere else (settings.personal,):
        note_revision(storage, keyring.of(collection), settings.revision)
    if settings.holders:
        tell_holders(storage, keyring, settings)
