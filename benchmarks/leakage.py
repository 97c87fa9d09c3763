"""What a thief reads in the file of a vault without any key, measured for each profile.

    python -m benchmarks.leakage [--notes FOLDER] [--write docs/leakage.json]

A folder of notes (the demo's by default) is imported into a vault of each profile, which is then
locked. The thief opens the file with plain SQLite and a list of everyday words, counts what stands
there in clear, and guesses topics by every hash that needs no key. What is true is known from the
notes themselves, so that guesses can be told from hits.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct, to_builtins

from memory_store.store import MemoryStore
from memory_store.text.canonical import normalise_topic

PROFILES = ("default", "strict")
NOTES = Path(__file__).parents[1] / "demo" / "notes"
SALTS = ("", "topic", "memory-store", "memory-store/1/topics")
TAG_BYTES = 16


class Leaked(Struct, frozen=True):
    """What the file of one vault tells, shares as 0 to 1.

    ``unique_lengths`` is the share of texts whose sealed length no other has, ``unique_before``
    that of the texts' own lengths. ``shared_topics`` counts pairs of memories that are seen to
    share a topic, of ``true_pairs`` that do. ``guessed`` counts topics found by their hash, of
    ``topics``, ``control`` how many the same guessing finds among plain hashes.
    """

    profile: str
    memories: int
    counted: int
    unique_before: float
    unique_lengths: float
    types: int
    times: int
    true_pairs: int
    shared_topics: int
    topics: int
    control: int
    guessed: int
    words: int


def unique_share(lengths: Sequence[int]) -> float:
    """The share of lengths that occur once."""
    counts = Counter(lengths)
    return sum(counts[one] == 1 for one in lengths) / len(lengths)


def pairs(groups: Iterable[int]) -> int:
    """How many pairs there are in groups of such sizes."""
    return sum(size * (size - 1) // 2 for size in groups)


def guesses(words: Iterable[str], salts: Iterable[bytes]) -> set[bytes]:
    """Every hash of a word that needs no key, cut as the file's are."""
    found = set()
    for word in words:
        for salt in salts:
            for name in ("sha256", "sha1", "md5", "blake2b", "sha3_256"):
                digest = hashlib.new(name, salt + word.encode()).digest()
                found |= {digest[:TAG_BYTES], digest[-TAG_BYTES:]}
    return found


def stolen(path: Path, truth: Sequence[tuple[str, tuple[str, ...]]], profile: str) -> Leaked:
    """Read the file as a thief; ``truth`` has each memory's text and topics."""
    topics = [{normalise_topic(one) for one in own} for _, own in truth]
    known = set().union(*topics)
    words = known | {word.casefold() for text, _ in truth for word in text.split()}
    with sqlite3.connect(path) as thief:
        (counted,) = thief.execute("select count(*) from memories").fetchone()
        sizes = [row[0] for row in thief.execute("select length(body) from memory_bodies")]
        (types,) = thief.execute("select count(type) from memories").fetchone()
        (times,) = thief.execute("select count(created) from memories").fetchone()
        tags = Counter(bytes(row[0]) for row in thief.execute("select topic from memory_topics"))
        (vault,) = thief.execute("select value from vault_settings where name = 'vault'").fetchone()
        ids = [row[0] for row in thief.execute("select id from collections")]
    thief.close()
    salts = [one.encode() for one in (*SALTS, vault, *ids)] + [bytes.fromhex(vault)]
    tried = guesses(words, salts)
    plain = {hashlib.sha256(vault.encode() + one.encode()).digest()[:TAG_BYTES] for one in known}
    return Leaked(
        profile=profile,
        memories=len(truth),
        counted=counted,
        unique_before=unique_share([len(text.encode()) for text, _ in truth]),
        unique_lengths=unique_share(sizes),
        types=types,
        times=times,
        true_pairs=pairs(Counter(one for own in topics for one in own).values()),
        shared_topics=pairs(tags.values()),
        topics=len(known),
        control=len(plain & tried),
        guessed=len(tags.keys() & tried),
        words=len(words),
    )


def measured(notes: Path, folder: Path) -> list[Leaked]:
    """Both profiles, filled with the same notes."""
    found = []
    for profile in PROFILES:
        path = folder / f"{profile}.db"
        store, _ = MemoryStore.create(
            path, key_file=folder / "keys" / f"{profile}.key", profile=profile
        )
        with store:
            store.import_paths([notes], embed=False)
            held = store.list(limit=1_000_000)
        found.append(stolen(path, [(one.text, one.topics) for one in held], profile))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write the figures for the documents."""
    parser = argparse.ArgumentParser(description="Play the thief on a vault's file.")
    parser.add_argument("--notes", type=Path, default=NOTES, help="a folder of notes")
    parser.add_argument("--write", type=Path, help="a JSON file for docs/security.md")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MEMORY_STORE_STATE"] = str(Path(folder) / "state")
        figures = [to_builtins(one) for one in measured(given.notes, Path(folder))]
    for one in figures:
        print(json.dumps(one))
    if given.write:
        given.write.write_text(json.dumps(figures, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
