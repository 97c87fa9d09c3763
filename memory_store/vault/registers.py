"""Which versions of a memory several devices made, and which one of them all of them show.

Boundary: pure functions, no keys. A version carries what a memory says, in clear, for as long as it
travels or has lost against another.

A *register* is all that is known of one memory: which changes were seen (``seen``: device → the
number of its last one), and the versions that no seen change replaced. Two registers are joined
by keeping every version that the other one has, too, or has not seen (a multi-value register
with dotted version vectors: Preguiça and others, *Dotted version vectors*, 2010). So the outcome is
the same in whatever order, and however often, registers are joined. Several versions are
left where devices changed a memory without knowing of each other: a *conflict*.

The version that is shown is one that says something rather than a deletion; of those, the one that
was made last. A version that replaces others is made later than each of them, whatever the clocks
say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from msgspec import Struct, field

LATEST = 1 << 52
"""The latest time of a version: the year 144,683. A device that is another's by now may have said
so, and what replaces that version must still have a time."""

NO_DEVICE = "="
"""Begins the name of what stands for a device where several make the very same version."""
CONFLICT = f"{NO_DEVICE}conflict"
"""For that which makes a memory out of a version that lost."""

ERASED = b"erased"
"""Stands as ``exact`` in a deletion that left nothing in the trash: nor may it elsewhere."""

Dot: TypeAlias = "tuple[str, int]"
"""A change: the device that made it, and its number there."""


class Version(Struct, frozen=True):
    """What a device made of a memory. ``time`` is in milliseconds since 1970.

    ``says`` is a digest of what it says (empty: it was deleted), ``exact`` one of that and of when
    it was made to, or :data:`ERASED`; ``content`` is all of it, where the vault itself has it not.
    """

    device: str
    number: int
    time: int
    says: bytes = b""
    content: bytes | None = None
    exact: bytes = b""

    @property
    def dot(self) -> Dot:
        return self.device, self.number

    @property
    def deleted(self) -> bool:
        return not self.says

    @property
    def erased(self) -> bool:
        return self.deleted and self.exact == ERASED


class Register(Struct, frozen=True):
    """What is known of one memory. ``versions`` are in order of their dots."""

    memory: str
    seen: Mapping[str, int] = field(default_factory=dict)
    versions: tuple[Version, ...] = ()

    @property
    def shown(self) -> Version | None:
        """The version that every device shows; ``None`` where none is left."""
        return max(self.versions, key=_rank, default=None)

    @property
    def conflicting(self) -> tuple[Version, ...]:
        """The versions beside the shown one that say something else."""
        shown, found = self.shown, dict[bytes, Version]()
        for one in sorted(self.versions, key=_rank, reverse=True):
            if shown is not None and not one.deleted and one.says != shown.says:
                found.setdefault(one.says, one)
        return tuple(found.values())

    def has_seen(self, dot: Dot) -> bool:
        device, number = dot
        return self.seen.get(device, 0) >= number

    def covers(self, other: Register) -> bool:
        """Whether everything that the other one has seen was seen here."""
        return all(self.seen.get(device, 0) >= number for device, number in other.seen.items())


def _rank(version: Version) -> tuple[bool, int, Dot]:
    return not version.deleted, version.time, version.dot


def joined(one: Register, other: Register) -> Register:
    """What is known of a memory by both of two registers."""
    seen = dict(one.seen)
    for device, number in other.seen.items():
        seen[device] = max(number, seen.get(device, 0))
    mine, theirs = ({each.dot: each for each in side.versions} for side in (one, other))
    kept = {
        **{dot: each for dot, each in theirs.items() if dot in mine or not one.has_seen(dot)},
        **{dot: each for dot, each in mine.items() if dot in theirs or not other.has_seen(dot)},
    }
    for dot, each in kept.items():
        if each.content is None and dot in theirs:
            kept[dot] = theirs[dot]
    return Register(one.memory, seen, tuple(kept[dot] for dot in sorted(kept)))


def changed(
    before: Register, device: str, number: int, time: int, says: bytes, exact: bytes = b""
) -> Register:
    """The register after a change that replaces every version that is known."""
    latest = max((each.time for each in before.versions), default=0)
    version = Version(device, number, min(max(time, latest + 1), LATEST), says, exact=exact)
    return Register(before.memory, {**before.seen, device: number}, (version,))


def first_device(exact: bytes) -> str:
    """For that which made what a memory said before its vault had an exchange: in every copy of the
    vault where it says so, that is the same version."""
    return NO_DEVICE + exact[:16].hex()


def first(
    memory: str, time: int, says: bytes, exact: bytes, before: Iterable[bytes] = ()
) -> Register:
    """The register of a memory that no exchange knew, and of versions of it ``before`` by their
    ``exact`` digests."""
    seen = {first_device(one): 1 for one in (*before, exact)}
    version = Version(first_device(exact), 1, time, says, exact=exact)
    return Register(memory, seen, (version,))


def clock(registers: Iterable[Register]) -> dict[str, int]:
    """Device → the number of its last change that some register has seen."""
    found: dict[str, int] = {}
    for register in registers:
        for device, number in register.seen.items():
            if not device.startswith(NO_DEVICE):
                found[device] = max(number, found.get(device, 0))
    return found
