"""Nothing that was put in stands in any file, in any usual encoding.

The scan reads every byte of every file that the store may have written: the database with its
write-ahead log, and the cache, configuration and state folders. It runs while the vault is open,
after it is locked, and over a deliberately leaky copy, which it must find.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from memory_store.sqlite import sqlite3
from memory_store.store import MemoryStore

if TYPE_CHECKING:
    from language_models import LanguageModels


def canary(kind: str) -> str:
    """A word that occurs nowhere else: letters only, so that no tokenizer cuts it."""
    letters = "bcdfghjklmnpqrstvwxz"
    return kind + "".join(secrets.choice(letters) for _ in range(14))


def spellings(word: str) -> Iterator[bytes]:
    """The word in the encodings in which it might leak."""
    for variant in (word, word.upper(), word.capitalize(), word[::-1]):
        plain = variant.encode()
        yield plain
        yield variant.encode("utf-16-le")
        yield variant.encode("utf-16-be")
        yield plain.hex().encode()
        yield plain.hex().upper().encode()
        for shift in range(3):  # base64 of a longer text that holds the word at any place
            padded = base64.b64encode(b"\x00" * shift + plain)
            yield padded[4 if shift else 0 : -4]


def leaks(folder: Path, words: dict[str, str]) -> set[tuple[str, str]]:
    """(kind of canary, file name) for every canary found in a file below ``folder``."""
    found = set()
    for file in folder.rglob("*"):
        if file.is_file():
            content = file.read_bytes()
            for kind, word in words.items():
                if any(spelled in content for spelled in spellings(word)):
                    found.add((kind, file.name))
    return found


@pytest.fixture
def filled(store: MemoryStore, tmp_path: Path, language_models: LanguageModels) -> dict[str, str]:
    """Canaries in every place where a user writes something, imported, edited and searched."""
    kinds = ("title", "text", "topic", "hashtag", "path", "metadata", "collection", "query")
    words = {kind: canary(kind) for kind in (*kinds, "edited", "deleted", "name", "wording")}
    notes = tmp_path / "source" / words["path"]
    notes.mkdir(parents=True)
    (notes / f"{words['name']}.md").write_text(
        f"---\ntitle: {words['title']}\ntags: [{words['topic']}]\nbox: {words['metadata']}\n---\n"
        f"Some text about {words['text']} and #{words['hashtag']}.\n" + "Filler. " * 50
    )
    store.import_paths([notes])
    for n in range(12):  # enough small segments that some are merged
        store.add(f"{words['text']} again, {n}", collection=words["collection"])
    edited = store.add(f"First {words['edited']}")
    store.edit(edited.id, text=f"Then {words['text']}")
    store.delete(store.add(f"Soon {words['deleted']}").id)
    for mode in ("hybrid", "keyword", "vector"):
        store.search(f"{words['text']} {words['query']}", mode=mode, explain=True)
    store.search(f'"some text" topic:{words["topic"]}', sealed=True)
    store.search(words["text"], mode="literal")
    language_models.add("writer", f"lex: {words['wording']}\nvec: more of {words['wording']}\n")
    for _ in range(2):  # asked, and found again
        expanded = store.search(f"some {words['query']}", expander="writer", explain=True)
        assert words["wording"] in str(expanded.explain)
    store.ask(f"{words['query']} {words['text']}", model="writer", expander="writer")
    store.reindex()
    return words


def test_no_canary_stands_in_any_file_open_or_locked(
    store: MemoryStore, filled: dict[str, str], private_folders: Path
) -> None:
    assert store.search(filled["text"], mode="keyword").rows, "the canaries are really inside"
    for _ in range(2):
        assert leaks(store.path.parent, filled) == set()
        assert leaks(private_folders, filled) == set()
        assert leaks(private_folders.parent / "llm", filled) == set()
        store.lock()


def test_the_scan_finds_a_leak_in_every_encoding(
    store: MemoryStore, filled: dict[str, str]
) -> None:
    store.lock()
    with sqlite3.connect(store.path) as leaky:
        leaky.execute("create table leaks (content blob)")
        for kind, word in filled.items():
            spelled = {
                "title": word.encode("utf-16-le"),
                "topic": word.encode().hex().encode(),
                "path": base64.b64encode(b"x" + word.encode() + b"yz"),
                "metadata": word.upper().encode(),
            }
            leaky.execute("insert into leaks values (?)", (spelled.get(kind, word.encode()),))
    leaky.close()
    assert {kind for kind, _ in leaks(store.path.parent, filled)} == set(filled)
