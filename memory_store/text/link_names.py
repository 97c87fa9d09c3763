"""What a link may mean: the names of a note, and the names that a link asks for, as numbers.

Boundary: titles and paths go in, numbers come out; nothing is kept. The numbers are Python's own
hashes of strings, which begin with a secret of this process: for memory, never for a file.

A note is found as Obsidian finds it: by its path, by the end of its path, then by an alias or its
title. Upper and lower case are the same, and so are the two ways to write an accent.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from itertools import islice
from unicodedata import normalize

from msgspec import Struct

WIKI, MARKDOWN = "wiki", "markdown"
"""How a link is written: ``[[target|words]]``, or ``[words](target.md)``."""
REPLY, ATTACHMENT = "reply", "attachment"
"""What a message and a file say of themselves: which message they answer or came with."""
NOTE_SUFFIXES = (".md", ".markdown")
MOST_PARTS = 32  # of a path that are names of their own, counted from its end


class Names(Struct, frozen=True):
    """What a note is called. ``keys`` are all names that find it; ``folders`` those it lies in,
    the innermost first; ``depth`` is the length of its path, for of two notes the nearer counts."""

    keys: tuple[int, ...]
    source: int
    folders: tuple[int, ...]
    depth: int


def names_of(source: str, path: str, titles: Iterable[str]) -> Names:
    """The names of a note of a source, a path in it (either may be empty), and titles."""
    plain = _plain(path)
    folders = [f"{source}\n{one}" for one in _folders(plain)] if plain else []
    keys = [_key("title", _words(title)) for title in titles if title.strip()]
    for name in _with_and_without_suffix(plain) if plain else ():
        keys.append(_path_key(source, name))
        parts = name.split("/")[-MOST_PARTS:]
        keys += [_key("name", "/".join(parts[start:])) for start in range(len(parts))]
    return Names(
        tuple(dict.fromkeys(keys)),
        hash(source),
        tuple(map(hash, folders)),
        len(plain),
    )


def keys_of_link(target: str, kind: str, source: str, path: str) -> tuple[int, ...]:
    """The names that a link in a note asks for, the first one that there is counts."""
    return tuple(dict.fromkeys(_asked(_plain(target), target, kind, source, _plain(path))))


def key_of_message(message_id: str) -> int:
    """The name of a message by its Message-ID."""
    return _key("message", message_id.strip())


def keys_of_reply(written: str) -> tuple[int, ...]:
    """The names that a message asks for by what it answers: Message-IDs, the last one counts."""
    return tuple(key_of_message(one) for one in reversed(written.split()[-MOST_PARTS:]))


def keys_of_attached(to: str, source: str, path: str) -> tuple[int, ...]:
    """The names of what a file came with: its path before ``#``, or the text in the folder that is
    called as that text."""
    return tuple(_attached(_plain(to), source, _plain(path)))


def _attached(to: str, source: str, path: str) -> Iterator[int]:
    whole = path
    for _ in range(MOST_PARTS):
        whole, mark, _part = whole.rpartition("#")
        if not mark:
            break
        yield _path_key(source, whole)
    for folder in islice(_folders(path), MOST_PARTS):
        if posixpath.basename(folder) == to:
            yield _path_key(source, f"{folder}/{to}.txt")


def _asked(name: str, target: str, kind: str, source: str, path: str) -> Iterator[int]:
    folder = posixpath.dirname(path)
    relative = posixpath.normpath(posixpath.join(folder, name.lstrip("/")))
    inside = not relative.startswith("..")
    dotted = name.startswith(("./", "../"))
    if (kind != WIKI or dotted) and not name.startswith("/") and inside:
        yield _path_key(source, relative)
    if not dotted:
        yield _path_key(source, name.lstrip("/"))
    bare = name
    while bare.startswith(("./", "../", "/")):
        bare = bare.partition("/")[2]
    if not dotted or kind != WIKI:
        yield _key("name", bare)
    if kind == WIKI:
        yield _key("title", _words(target))


def _plain(name: str) -> str:
    return normalize("NFC", name.replace("\\", "/").strip()).casefold()


def _words(title: str) -> str:
    return " ".join(normalize("NFC", title).casefold().split())


def _with_and_without_suffix(path: str) -> tuple[str, ...]:
    stem, suffix = posixpath.splitext(path)
    return (path, stem) if suffix in NOTE_SUFFIXES else (path,)


def _folders(path: str) -> Iterator[str]:
    while path and (above := posixpath.dirname(path)) != path:  # "/" is its own
        path = above
        yield path


def _path_key(source: str, path: str) -> int:
    return hash(("path", source, path))


def _key(kind: str, name: str) -> int:
    return hash((kind, name))
