"""Certificates as they are compared: by the SHA-256 of what they say.

Boundary: certificates are public; no key is read here.
"""

from __future__ import annotations

from collections.abc import Collection

from cryptography import x509
from cryptography.hazmat.primitives import hashes


def signs_others(certificate: bytes) -> bool:
    """Whether a certificate (PEM) may sign others, and so stand for more than itself.

    Raises ``ValueError`` for what is none.
    """
    loaded = x509.load_pem_x509_certificate(certificate)
    try:
        return loaded.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return loaded.version is x509.Version.v1  # which had no way to say so


def fingerprints(certificates: Collection[bytes]) -> set[bytes]:
    """SHA-256 of each of some certificates (PEM). Raises ``ValueError`` for what is none."""
    loaded = [x509.load_pem_x509_certificate(one) for one in certificates]
    return {one.fingerprint(hashes.SHA256()) for one in loaded}
