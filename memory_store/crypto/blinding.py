"""Keyed hashes: what lets equal things be found without saying what they are.

Boundary: takes words, topics, paths and texts; gives tags that mean nothing without the key.
Each purpose has a key of its own, so a tag of one purpose is never comparable with another's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, BinaryIO

from cryptography.hazmat.primitives import hashes, hmac
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from memory_store.crypto.keys import SecretKey

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

TAG_BYTES = 16
SUM_MODULUS = 1 << (8 * TAG_BYTES)
TERM_BYTES = 8
STREAM_BLOCK = 1 << 20
GRAM_BITS = 24  # 30,000 grams of a segment: 1 in 560 of its look-ups finds another's texts, too


def keyed_state(secret: SecretKey) -> hmac.HMAC:
    """HMAC-SHA256 that has read its key and nothing else, to be copied for each message."""
    return hmac.HMAC(secret.buffer, hashes.SHA256())


class Tagger:
    """HMAC-SHA256 under one key, cut to a tag. The keyed state is made once and copied."""

    __slots__ = ("_secret", "_state")

    def __init__(self, secret: SecretKey) -> None:
        self._secret = secret
        self._state = keyed_state(secret)

    def tag(self, *parts: bytes, length: int = TAG_BYTES) -> bytes:
        """The tag of a sequence of parts; each is length-prefixed, so parts cannot run together."""
        said = b""  # of two short parts, mostly: faster than a list that is joined
        for part in parts:
            said += len(part).to_bytes(4, "big") + part
        state = self._state.copy()
        state.update(said)
        return state.finalize()[:length]

    def tag_stream(self, stream: BinaryIO, *parts: bytes) -> bytes:
        """The tag of some parts and of everything in a stream, read in blocks."""
        state = self._state.copy()
        for part in (*parts, b""):
            state.update(len(part).to_bytes(4, "big"))
            state.update(part)
        while block := stream.read(STREAM_BLOCK):
            state.update(block)
        return state.finalize()[:TAG_BYTES]

    def wipe(self) -> None:
        """Overwrite the key and drop the keyed state: every later call raises AttributeError."""
        self._secret.wipe()
        del self._state


class TaggerApart(Tagger):
    """Another tagger's tags with some parts before: equal to none that are made without them.

    It holds no key, and is worth nothing once the other one is wiped.
    """

    __slots__ = ("_before", "_whole")

    def __init__(self, whole: Tagger, *before: bytes) -> None:
        self._whole = whole
        self._before = before

    def tag(self, *parts: bytes, length: int = TAG_BYTES) -> bytes:
        """See :meth:`Tagger.tag`."""
        return self._whole.tag(*self._before, *parts, length=length)

    def tag_stream(self, stream: BinaryIO, *parts: bytes) -> bytes:
        """See :meth:`Tagger.tag_stream`."""
        return self._whole.tag_stream(stream, *self._before, *parts)

    def wipe(self) -> None:
        """Wipe the other one."""
        self._whole.wipe()


class BlockKey:
    """A permutation of blocks of 16 bytes: AES-256 of each.

    Each block stands alone on purpose, for equal blocks must stay equal: that is what ECB computes,
    a thousand blocks in one call.
    """

    __slots__ = ("_secret",)

    def __init__(self, secret: SecretKey) -> None:
        self._secret = secret

    def enciphered(self, blocks: bytes | bytearray | memoryview) -> bytes:
        """Blocks that stand side by side, each enciphered."""
        return self._cipher().encryptor().update(blocks)

    def hashed(self, blocks: bytes) -> npt.NDArray[np.uint64]:
        """A 64-bit keyed hash of each block: the first half of it, enciphered."""
        import numpy as np

        return np.frombuffer(self.enciphered(blocks), dtype="<u8")[::2].astype(np.uint64)

    def _cipher(self) -> Cipher[modes.ECB]:
        return Cipher(algorithms.AES256(self._secret.buffer), modes.ECB())

    def wipe(self) -> None:
        """Overwrite the key."""
        self._secret.wipe()


class Veil(BlockKey):
    """Enciphers keyed hashes once more, as they stand in the file: so their key can be changed.

    A keyed hash cannot be made anew without what it is of. Enciphered, the same hash looks another
    after a change of the key, and one who has the old key alone can no longer compare guesses with
    the file.
    """

    __slots__ = ()

    def veiled(self, tag: bytes) -> bytes:
        """The tag as it stands in the file."""
        return self.enciphered(_checked(tag))

    def bare(self, stored: bytes) -> bytes:
        """The tag behind one that stands in the file."""
        return self._cipher().decryptor().update(_checked(stored))


def _checked(tag: bytes) -> bytes:
    if len(tag) != TAG_BYTES:
        raise ValueError(f"a tag has {TAG_BYTES} bytes, not {len(tag)}")
    return tag


class Adder(BlockKey):
    """Adds up tags, each through a pseudorandom function first, so that others of the same sum
    cannot be found without the key."""

    __slots__ = ()

    def total(self, tags: bytes | bytearray | memoryview) -> int:
        """The sum, modulo 2 ** 128, of AES-256 of tags of 16 bytes that stand side by side.

        A hundred thousand take about a millisecond, whatever their order.
        """
        import numpy as np

        words, total = np.frombuffer(self.enciphered(tags), dtype=">u4"), 0
        for column in range(TAG_BYTES // 4):
            total = (total << 32) + int(words[column :: TAG_BYTES // 4].sum(dtype=np.uint64))
        return total % SUM_MODULUS


class Blinder:
    """The keyed hashes of one collection's index: terms, pairs of terms, grams, topics.

    A term's hash covers its language, so that a stem of one language never meets another's.
    It remembers no word that it hashes.
    """

    __slots__ = ("_grams", "_pairs", "_terms", "_topics")

    def __init__(self, collection_key: SecretKey) -> None:
        self._terms = Tagger(collection_key.derive("term"))
        self._topics = Tagger(collection_key.derive("topic"))
        self._pairs = BlockKey(collection_key.derive("pair"))
        self._grams = BlockKey(collection_key.derive("gram"))

    def term(self, language: str, stem: str) -> int:
        """The 64-bit keyed hash of a stem in a language."""
        tag = self._terms.tag(language.encode(), stem.encode(), length=TERM_BYTES)
        return int.from_bytes(tag, "little")

    def pairs(self, terms: Sequence[int] | npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        """The keyed hashes of adjacent terms: ``n - 1`` values for ``n`` term hashes.

        AES-256 over the two 64-bit hashes, one block a pair, cut to 64 bits: a pseudorandom
        function of the block.
        """
        import numpy as np

        hashed = np.asarray(terms, dtype="<u8")
        if len(hashed) < 2:
            return np.empty(0, dtype=np.uint64)
        return self._pairs.hashed(np.column_stack((hashed[:-1], hashed[1:])).tobytes())

    def pair(self, first: int, second: int) -> int:
        """The keyed hash of two adjacent terms, given their hashes."""
        return int(self.pairs((first, second))[0])

    def grams(self, numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint32]:
        """The keyed hashes of grams, each below 2 ** 24, in their order: as :meth:`pairs`, of the
        gram's number and 0. Two grams may share one: such a hash says "maybe"."""
        import numpy as np

        blocks = np.zeros((len(numbers), 2), dtype="<u8")
        blocks[:, 0] = numbers
        hashed = self._grams.hashed(blocks.tobytes())
        return (hashed & np.uint64((1 << GRAM_BITS) - 1)).astype(np.uint32)

    def topic(self, normalised: str) -> bytes:
        """The 16-byte keyed hash of a normalised topic."""
        return self._topics.tag(normalised.encode())

    def wipe(self) -> None:
        for key in (self._terms, self._topics, self._pairs, self._grams):
            key.wipe()
