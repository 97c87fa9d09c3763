"""Nothing that was put in stands in any file, or in what was ever written, in any usual encoding.

The scan reads every byte of every file that the store may have written: the database with its
write-ahead log and shared memory, backups, the cache, configuration, state and temporary folders,
what a language model's library keeps. It runs while the vault is open and after it is locked. What
was overwritten or taken away since is in what the process gave to the operating system to write.
The same work with a cipher that encrypts nothing must be found out.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from email.message import EmailMessage
from pathlib import Path
from typing import TYPE_CHECKING

import filling
import pytest
from canaries import canary, leaks, spelled_in, spellings
from counts import FULL
from filling import KEPT, PLACES, Words, fill, write_sources
from made_documents import book, docx, paragraph, pdf, sheets, slide
from own_process import python
from tracing import traced
from zip_files import zipped

from benchmarks.operations import null_cipher
from memory_store.crypto.blinding import GRAM_BITS
from memory_store.index.trigrams import TRIGRAMS, Trigrams
from memory_store.sqlite import sqlite3
from memory_store.store import MemoryStore
from memory_store.text.grams import grams

if TYPE_CHECKING:
    from language_models import LanguageModels

WRITING = ("write", "pwrite64", "writev", "pwritev", "pwritev2", "sendto", "sendmsg")
COPYING = ("sendfile", "copy_file_range", "splice")
"""Calls that write what is not among their arguments: there must be none."""
LONGEST = 1 << 20  # bytes of one call that are shown
INTO_A_FILE = re.compile(r"\(\d+<(?:/|\\x2f)")  # what strace -y says of it: pipes have no path


@pytest.fixture
def words() -> Words:
    return {place: canary(place.replace(" ", "")) for place in PLACES}


@pytest.fixture
def sources(tmp_path: Path, words: Words) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    write_sources(folder, words)
    return folder


@pytest.fixture(params=["default", "strict"])
def store(
    request: pytest.FixtureRequest,
    make_store: Callable[..., MemoryStore],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> MemoryStore:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    for name in ("TMPDIR", "SQLITE_TMPDIR"):
        monkeypatch.setenv(name, str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    return make_store(profile=request.param)


@pytest.fixture
def filled(
    store: MemoryStore, words: Words, sources: Path, language_models: LanguageModels
) -> Words:
    fill(store, words, sources, language_models)
    return words


def command(*arguments: str, key_file: Path) -> subprocess.CompletedProcess[str]:
    """A command of the terminal, in a process of its own."""
    return python("-m", "memory_store", *arguments, "--key-file", str(key_file))


@pytest.mark.sampled(1)
def test_no_canary_stands_in_any_file_open_or_locked(
    store: MemoryStore, filled: Words, tmp_path: Path, key_file: Path
) -> None:
    assert store.search(filled["text"], mode="keyword").rows, "the canaries are really inside"
    copied = subprocess.run(
        [
            sys.executable,
            "-m",
            "memory_store",
            "backup",
            str(store.path),
            str(tmp_path / "copy.db"),
        ],
        capture_output=True,
        timeout=300,
        check=False,
    )
    assert copied.returncode == 0, copied.stderr
    for _ in range(2):
        assert leaks(tmp_path, filled, beside=[tmp_path / "source"]) == set()
        store.lock()
    assert (tmp_path / "copy.db").stat().st_size > 50_000


def test_trigrams_are_hashes_that_another_vault_does_not_have(
    make_store: Callable[..., MemoryStore], words: Words
) -> None:
    """They are sealed like all of the index; what they unseal to says no letters, either."""
    text = f"{words['text']} in {words['title']} of {words['path']}"

    def stored(name: str) -> set[int]:
        store = make_store(name)
        store.add(text)
        (part,) = store._opened.vault.snapshot().parts
        trigrams = part.segment.extra(TRIGRAMS.name)
        assert isinstance(trigrams, Trigrams)
        assert store.search(words["text"][4:-2], mode="literal").opened == 1
        return set(trigrams.keys.tolist())

    one, other = stored("one.db"), stored("other.db")
    plain = {number & ((1 << GRAM_BITS) - 1) for number in grams(text).tolist()}
    assert len(one) > 40
    assert len(plain) > 40
    assert len(one & other) + len(one & plain) + len(other & plain) <= 1  # by chance


@pytest.mark.sampled(1)
def test_the_terminal_says_errors_without_what_was_asked_or_kept(
    store: MemoryStore, filled: Words, tmp_path: Path, key_file: Path
) -> None:
    store.lock()
    with sqlite3.connect(store.path) as thief:
        thief.execute("update memory_bodies set body = randomblob(length(body))")
        thief.execute("update memories set head = randomblob(length(head)) where rowid % 2")
    thief.close()
    path, query = str(store.path), f"{filled['query']} {filled['text']}"
    failures = 0
    for arguments in (
        ("search", path, query),
        ("search", path, query, "--mode", "literal"),
        ("search", path, query, "--limit", "0"),
        ("list", path),
        ("verify", path),
        ("get", path, filled["source"]),
    ):
        done = command(*arguments, key_file=key_file)
        asked = {kind: word for kind, word in filled.items() if word not in arguments}
        failures += done.returncode != 0
        said = f"{done.stdout if done.returncode else ''}{done.stderr}".encode()
        assert "Traceback" not in done.stderr, arguments
        assert not any(word.encode() in said for word in asked.values()), arguments
    assert failures >= 4


def test_the_scan_finds_a_leak_in_every_encoding(words: Words, tmp_path: Path) -> None:
    for kind, word in words.items():
        for name, spelled in spellings(word).items():
            (tmp_path / "leaky.db").write_bytes(b"x" * 1_000 + spelled + b"y" * 1_000)
            assert leaks(tmp_path, {kind: word}) == {(kind, "leaky.db")}, (kind, name)
    assert len(words) >= 32
    assert len(spellings(word)) >= 20


def test_the_scan_finds_every_place_where_nothing_is_sealed(
    make_store: Callable[..., MemoryStore],
    words: Words,
    sources: Path,
    language_models: LanguageModels,
) -> None:
    """The same work, and a build that leaks: each canary reaches the file that is scanned."""
    with null_cipher():
        store = make_store("leaky.db")
        fill(store, words, sources, language_models)
        store.lock()
    found = {kind for kind, _ in leaks(store.path.parent, words)}
    assert set(KEPT) - found == set()
    assert len(KEPT) >= 32


def written(folder: Path, model: Path, words: Words, **how: object) -> bytes:
    """Every byte that a process wrote that filled a vault, to whatever: files, pipes, sockets."""
    folder.mkdir()
    (folder / "vault").mkdir()
    write_sources(folder / "source", words)
    given = {
        "folder": folder,
        "key_file": folder / "keys" / "notes.key",
        "model": model,
        "profile": "default",
        "words": words,
        "sources": folder / "source",
        "cipher": True,
        **how,
    }
    content = told_by(
        folder.with_suffix(".log"), [filling.__file__, json.dumps(given, default=str)]
    )
    assert (folder / "vault" / "notes.db").stat().st_size < len(content)
    return content


def told_by(log: Path, script: Sequence[str]) -> bytes:
    """What a script gives to the operating system to write, all of it."""
    seen = traced(log, script, [*WRITING, *COPYING], "-s", str(LONGEST), "-xx")
    assert not [one for name in COPYING for one in seen.named(name)]
    assert not [one for one in seen.calls if '"...' in one], "a call is shown in part"
    return b"\n".join(shown(one) for name in WRITING for one in seen.named(name))


def shown(call: str) -> bytes:
    """The bytes among the arguments of a call, as ``strace -xx`` shows them."""
    return b"".join(
        bytes.fromhex(text.replace("\\x", "")) for text in re.findall(r'"([^"]*)"', call)
    )


def spelled_in_utf_8(content: bytes, words: Words) -> set[str]:
    return {kind for kind, word in words.items() if word.encode() in content}


@pytest.mark.parametrize("profile", ["default", *(["strict"] if FULL else [])])
def test_no_canary_is_ever_written(
    tmp_path: Path, tiny_model: Path, words: Words, private_folders: Path, profile: str
) -> None:
    content = written(tmp_path / "sealed", tiny_model, words, profile=profile)
    assert (spelled_in if FULL else spelled_in_utf_8)(content, words) == set()


IMPORTED = """
import pathlib, sys
from memory_store.store import MemoryStore
folder = pathlib.Path(sys.argv[1])
store, _ = MemoryStore.create(folder / "vault" / "notes.db", key_file=folder / "key" / "k")
(folder / "beside.txt").write_text(sys.argv[2])
with store:
    named = [folder / "mine", folder / "mine" / "pages.zip"]
    report = store.import_paths(named, glob=["*"], embed=False, keep_originals=True)
    print(report.failed, *(one.text for one in map(store.get, report.ids)))
"""


def test_what_reads_documents_writes_no_word_of_them_to_any_file(
    tmp_path: Path, private_folders: Path
) -> None:
    """Nor to one that it takes away again. A file that a script writes on purpose is seen."""
    for library in ("pypdfium2", "pptx", "xlsxwriter"):
        pytest.importorskip(library, reason="the extra documents is not installed")
    kinds = ("page", "letter", "attached", "posted", "notebook", "word", "evernote", "zipped")
    kinds += ("printed", "slide", "notes", "sheet", "book")
    said = {kind: canary(kind) for kind in kinds}
    folder = tmp_path / "documents"
    for name in ("vault", "key", "mine"):
        (folder / name).mkdir(parents=True)
    letter, posted = EmailMessage(), EmailMessage()
    for one, kind in ((letter, "letter"), (posted, "posted")):
        one["From"], one["Subject"] = "anna@example.org", "Key"
        one.set_content(said[kind])
    letter.add_attachment(f"<p>{said['attached']}</p>".encode(), "text", "html", filename="a.html")
    cell = {"cell_type": "markdown", "source": said["notebook"]}
    note = (
        f"<note><title>Key</title><content>&lt;p&gt;{said['evernote']}&lt;/p&gt;</content></note>"
    )
    files = {
        "page.html": f"<p>{said['page']}</p>".encode(),
        "letter.eml": letter.as_bytes(),
        "all.mbox": b"From x Wed May 1\n" + posted.as_bytes() + b"\n",
        "cells.ipynb": json.dumps({"cells": [cell], "metadata": {}}).encode(),
        "word.docx": docx(paragraph(said["word"])),
        "printed.pdf": pdf(said["printed"]),
        "talk.pptx": slide("Key", [said["slide"]], notes=said["notes"]),
        "rent.xlsx": sheets({"Rent": [[said["sheet"]]]}),
        "bees.epub": book(first=f"<p>{said['book']}</p>"),
        "mine.enex": f"<en-export>{note}</en-export>".encode(),
        "pages.zip": zipped({"inside.html": f"<p>{said['zipped']}</p>"}),
    }
    for name, data in files.items():
        (folder / "mine" / name).write_bytes(data)
    beside = canary("beside")
    seen = traced(
        tmp_path / "documents.log",
        ["-c", IMPORTED, str(folder), beside],
        [*WRITING, *COPYING],
        *("-s", str(LONGEST), "-xx", "-y"),
    )
    assert seen.stdout.startswith("0 ")
    assert {kind for kind, word in said.items() if word not in seen.stdout} == set()
    assert not [one for name in COPYING for one in seen.named(name)]
    written = [one for name in WRITING for one in seen.named(name)]
    into_files = b"\n".join(shown(one) for one in written if INTO_A_FILE.search(one))
    assert beside.encode() in into_files
    assert spelled_in(into_files, said) == set()


def test_what_is_written_and_taken_away_again_is_seen(tmp_path: Path, words: Words) -> None:
    """A process that writes every canary on purpose, and leaves no file."""
    careless = (
        "import json, pathlib, sys\n"
        "scratch = pathlib.Path(sys.argv[1])\n"
        "scratch.write_text(chr(10).join(json.loads(sys.argv[2]).values()))\n"
        "scratch.unlink()\n"
    )
    scratch = tmp_path / "scratch"
    content = told_by(tmp_path / "careless.log", ["-c", careless, str(scratch), json.dumps(words)])
    assert not scratch.exists()
    assert spelled_in_utf_8(content, words) == set(words)


@pytest.mark.skipif(not FULL, reason="with PROOFS=full")
def test_what_is_written_where_nothing_is_sealed_is_seen(
    tmp_path: Path, tiny_model: Path, words: Words, private_folders: Path
) -> None:
    """Also what an edit and a deletion overwrite, which no file holds afterwards."""
    content = written(tmp_path / "null", tiny_model, words, cipher=False)
    assert {*KEPT, "edited", "deleted"} - spelled_in_utf_8(content, words) == set()
