"""Writes memories as plain files: Markdown with front matter, or NDJSON. Import reads both back.

Boundary: what is written is plain text, outside the vault's protection. Folders are made with mode
0700 and files with 0600; a name is built from letters and digits alone, so no title, collection or
topic chooses a path; nothing that exists is overwritten. A Markdown export appears whole or not at
all.

Every record carries ``id`` and ``ref`` (even when null): by these two an import knows an export and
takes it at its word. ``version`` and the vectors are the vault's own and are not exported.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from memory_store.errors import MemoryStoreError, StorageError
from memory_store.importing.front_matter import MAX_DEPTH, deeper_than
from memory_store.paths import home_path
from memory_store.records import Memory
from memory_store.text.canonical import whole_characters
from memory_store.text.plain_json import mended

FIELDS = (
    *("id", "ref", "source", "collection", "type", "title", "topics", "created", "updated"),
    *("valid_from", "valid_to", "supersedes", "superseded_by", "parent", "metadata"),
)
"""The order of the keys (NDJSON: with ``text`` after ``title``)."""

WRITTEN_WHEN_EMPTY = frozenset({"id", "ref", "title"})
NDJSON_NAME = "memories.ndjson"
SLUG_BYTES = 80  # file systems allow 255 bytes; slug, id and suffix stay far below
DEEP_METADATA = MAX_DEPTH - 2  # levels; what is deeper is written as JSON within a string
LONG_KEY = 900  # YAML wants keys of over 1,024 characters marked by `?`


def export_markdown(memories: Iterable[Memory], folder: str | Path) -> int:
    """One Markdown file per memory, in a folder per collection. Returns how many were written.

    ``folder`` must be new or empty. It comes into being complete, by a rename; when ``memories``
    raises, or anything else does, it is left as it was. Raises :class:`MemoryStoreError`.
    """
    count = 0
    with _new_folder(Path(folder)) as target:
        for memory in memories:
            text = memory_markdown(memory)
            place = target / (_slug(memory.collection) or "collection")
            place.mkdir(mode=0o700, exist_ok=True)
            _write(place, memory, text)
            count += 1
    return count


def export_ndjson(memories: Iterable[Memory], stream: TextIO) -> int:
    """One JSON object per line and memory. Returns how many were written."""
    count = 0
    for memory in memories:
        stream.write(memory_json(memory) + "\n")
        count += 1
    return count


def export_ndjson_folder(memories: Iterable[Memory], folder: str | Path) -> int:
    """:func:`export_ndjson` into ``folder/memories.ndjson``, as careful as the Markdown export."""
    with _new_folder(Path(folder)) as target, _create(target / NDJSON_NAME) as stream:
        return export_ndjson(memories, stream)


def memory_markdown(memory: Memory) -> str:
    """The memory as a Markdown note: front matter, a blank line, the text to the letter.

    Values are JSON, which YAML readers of every kind understand; what JSON escapes differently
    from YAML is escaped in the way both read.
    """
    lines = [f"{key}: {_yaml(value)}" for key, value in _fields(memory)]
    return "\n".join(["---", *lines, "---", "", whole_characters(memory.text), ""])


def memory_json(memory: Memory) -> str:
    """The memory as one line of NDJSON."""
    record: dict[str, Any] = {}
    for key, value in _fields(memory):
        record[key] = value
        if key == "title":
            record["text"] = whole_characters(memory.text)
    return json.dumps(record, ensure_ascii=False, allow_nan=False)


def _fields(memory: Memory) -> Iterator[tuple[str, Any]]:
    values = memory.as_dict()
    if deeper_than(values["metadata"], DEEP_METADATA):
        values["metadata"] = json.dumps(values["metadata"])  # which an import reads as well
    for key in FIELDS:
        value = mended(values[key])
        if value or key in WRITTEN_WHEN_EMPTY:
            yield key, value


# What YAML forbids bare (YAML 1.1, section 4.1.1), or takes for a line break, or is a byte order
# mark. JSON has escaped the rest.
_UNPRINTABLE = re.compile("[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]")


def _yaml(value: Any) -> str:
    """The value as one line of YAML flow style that is JSON wherever YAML 1.1 reads JSON alike."""
    if isinstance(value, str):
        text = json.dumps(value, ensure_ascii=False)
        return _UNPRINTABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(k)}: {_yaml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_yaml, value)) + "]"
    text = json.dumps(value)
    if isinstance(value, float) and "." not in text:
        return text.replace("e", ".0e")  # YAML 1.1 takes 1e+16 for text
    return text


def _key(key: str) -> str:
    text = _yaml(key)
    return text if len(text) < LONG_KEY else f"? {text}"


def _slug(text: str) -> str:
    """Letters and digits of any script with ``-`` between, at most :data:`SLUG_BYTES` long."""
    words = re.findall(r"[^\W_]+", unicodedata.normalize("NFC", text).lower())
    slug = "-".join(words).encode()[:SLUG_BYTES]
    return slug.decode("utf-8", "ignore").strip("-")


def _write(place: Path, memory: Memory, text: str) -> None:
    """A file of a name that is free: title and the start of the id, or the whole of it."""
    slug, digits = _slug(memory.title) or "memory", re.sub(r"[^0-9a-f]", "", memory.id.lower())
    for name in (f"{slug}-{digits[:8]}.md", f"{slug}-{digits}.md"):
        try:
            with _create(place / name) as stream:
                stream.write(text)
            return
        except FileExistsError:
            continue
    raise MemoryStoreError(f"two memories have the id {memory.id}")


def _create(path: Path) -> TextIO:
    """A new file that only its owner can read; newlines and bytes go in as they are."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    return os.fdopen(descriptor, "w", encoding="utf-8", newline="")


@contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """A folder to fill that takes its name when it is full; on any error nothing remains."""
    target = home_path(folder).absolute()
    try:
        if target.is_symlink() or (target.exists() and not target.is_dir()):
            raise MemoryStoreError(f"{folder} is there and is no folder")
        if target.is_dir() and any(target.iterdir()):
            raise MemoryStoreError(f"{folder} is not empty; name a new folder to export into")
        target.parent.mkdir(parents=True, exist_ok=True)
        prefix = f"{target.name}-unfinished-"  # not hidden, for what a killed export leaves
        partial = Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent))
    except OSError as error:
        raise StorageError(f"{folder}: {(error.strerror or str(error)).lower()}") from error
    try:
        yield partial
        if target.is_dir():
            target.rmdir()
        partial.rename(target)
    except OSError as error:
        raise StorageError(f"{folder}: {(error.strerror or str(error)).lower()}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
