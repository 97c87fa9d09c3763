"""What a passphrase's slot says in clear: the cost of Argon2id, and the device key it needs.

Boundary: the text comes from a file that others may write to, and nothing has authenticated it
when it is read. So it is short, of exactly these fields and kinds, or refused. A cost that was
changed, or a device key that was taken out, leads to another key: the passphrase is then wrong.
"""

from __future__ import annotations

import base64
import binascii
from typing import Annotated

from msgspec import Meta, MsgspecError, Struct
from msgspec.json import decode, encode

from memory_store.crypto.keys import Argon2Parameters, SecretKey
from memory_store.crypto.sealing import Place, SealingKey, seal, unseal
from memory_store.errors import FormatError, TamperedError

MOST_CHARACTERS = 512  # of parameters; ours have 270
COSTLIEST = 4  # times our own: of a slot that comes from another
COSTLIEST_FILE = 512  # times our own: of all slots together, a minute or two where all are tried
UNREADABLE = "this vault's passphrase slot has parameters that cannot be read"


class Parameters(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """``device`` is the public id of the device key that is needed besides, empty for none.

    ``device_key`` is that key in base64, sealed under the principal's root key: with any other key
    of the vault, such as the recovery code, the device key can be had again.
    """

    memory_kib: int
    iterations: int
    lanes: int
    device: Annotated[str, Meta(pattern=r"\A([0-9a-f]{32})?\Z")] = ""
    device_key: str = ""

    @property
    def cost(self) -> Argon2Parameters:
        return Argon2Parameters(self.memory_kib, self.iterations, self.lanes)


def read_parameters(text: str) -> Parameters:
    """What the ``parameters`` of a passphrase's slot say. Raises FormatError."""
    if len(text) > MOST_CHARACTERS:
        raise FormatError(UNREADABLE)
    try:
        parameters = decode(text, type=Parameters)
    except (MsgspecError, UnicodeError):
        raise FormatError(UNREADABLE) from None
    parameters.cost.check()
    return parameters


def written(cost: Argon2Parameters, device: str = "", device_key: str = "") -> str:
    """The ``parameters`` of a new slot."""
    return encode(
        Parameters(cost.memory_kib, cost.iterations, cost.lanes, device, device_key)
    ).decode()


def times_our_own(cost: Argon2Parameters) -> float:
    """How many derivations of our own parameters would take as long."""
    usual = Argon2Parameters()
    return cost.memory_kib * cost.iterations / (usual.memory_kib * usual.iterations)


def seal_device_key(place: Place, root: SecretKey, device: SecretKey) -> str:
    """A device key, for the principal's root key."""
    key = SealingKey(root.derive("device-wrap"))
    try:
        return base64.b64encode(seal(key, place, device.buffer)).decode()
    finally:
        key.wipe()


def open_device_key(place: Place, root: SecretKey, sealed: str) -> SecretKey:
    """The device key again. Raises TamperedError."""
    key = SealingKey(root.derive("device-wrap"))
    try:
        opened = unseal(key, place, base64.b64decode(sealed, validate=True))
        device = SecretKey(opened)
        opened[:] = bytes(len(opened))
        return device
    except binascii.Error:
        raise TamperedError(f"vault_slots.parameters of {place.row}: was changed") from None
    finally:
        key.wipe()
