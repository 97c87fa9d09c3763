"""Words that occur nowhere else, put where a user writes something, and the search for them."""

from __future__ import annotations

import base64
import codecs
import functools
import secrets
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

KINDS = ("title", "text", "topic", "hashtag", "path", "metadata", "collection", "source")


def canary(kind: str) -> str:
    """A word that occurs nowhere else: letters only, so that no tokenizer cuts it."""
    letters = "bcdfghjklmnpqrstvwxz"
    return kind + "".join(secrets.choice(letters) for _ in range(14))


@functools.cache
def spellings(word: str) -> Mapping[str, bytes]:
    """The word in the encodings in which it might leak, by their names."""
    plain = word.encode()
    found = {
        "plain": plain,
        "upper case": word.upper().encode(),
        "capitalised": word.capitalize().encode(),
        "backwards": word[::-1].encode(),
        "rot13": codecs.encode(word, "rot13").encode(),
        "escaped": "".join(f"\\u{ord(one):04x}" for one in word).encode(),
        "percent": "".join(f"%{ord(one):02X}" for one in word).encode(),
        "entities": "".join(f"&#{ord(one)};" for one in word).encode(),
        "hex": plain.hex().encode(),
        "upper hex": plain.hex().upper().encode(),
    }
    for width in ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"):
        found[width] = word.encode(width)
    for shift in range(3):  # in a longer text that holds the word at any place
        padded = base64.b64encode(b"\x00" * shift + plain)
        found[f"base64, {shift} before"] = padded[4 if shift else 0 : -4]
    for shift in range(5):
        padded = base64.b32encode(b"\x00" * shift + plain)
        found[f"base32, {shift} before"] = padded[8 if shift else 0 : -8]
    return found


def spelled_in(content: bytes, words: Mapping[str, str]) -> set[str]:
    """The kinds of the words that stand in there, in whatever encoding."""
    return {
        kind
        for kind, word in words.items()
        if any(one in content for one in spellings(word).values())
    }


def leaks(
    folder: Path, words: Mapping[str, str], beside: Iterable[Path] = ()
) -> set[tuple[str, str]]:
    """(kind, file) for every word in a file below ``folder`` that is not below one ``beside``."""
    return {
        (kind, file.name)
        for file in files(folder)
        if not any(file.is_relative_to(one) for one in beside)
        for kind in spelled_in(file.read_bytes() + bytes(str(file), "utf-8"), words)
    }


def files(folder: Path) -> Iterator[Path]:
    return (file for file in folder.rglob("*") if file.is_file())
