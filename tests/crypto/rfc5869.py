"""HKDF-SHA256 from RFC 5869, by the standard library: what key derivation is held against."""

from __future__ import annotations

import hmac

HASH_BYTES = 32


def hkdf(secret: bytes, info: bytes, length: int = HASH_BYTES) -> bytes:
    """Extract with a salt of zeros (section 2.2: none given), then expand."""
    key = hmac.digest(bytes(HASH_BYTES), secret, "sha256")
    block, output, counter = b"", b"", 1
    while len(output) < length:
        block = hmac.digest(key, block + info + bytes([counter]), "sha256")
        output, counter = output + block, counter + 1
    return output[:length]
