"""What a thief reads in the file of a vault without any key, measured for each way to keep one.

    python -m benchmarks.leakage [--notes FOLDER] [--write docs/figures/leakage.json]

A folder of notes (the demo's by default) is imported into a vault of each profile, with topics in
the table and in memory. The thief opens the file with plain SQLite and a list of everyday words,
counts what stands there in clear, and guesses topics by every hash that needs no key. Then he is
given a part of the notes, drawn by lot, and names hashes by them (``benchmarks/topic_attacks.py``).
What is true is known from the notes themselves, so that guesses can be told from hits.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean

from msgspec import Struct, to_builtins

from benchmarks import topic_attacks
from benchmarks.report import write_figures
from benchmarks.topic_attacks import Attack, Known, Naming, by_both, by_statistics
from memory_store.records import Memory
from memory_store.store import MemoryStore
from memory_store.text.canonical import normalise_topic

KINDS = (("default", "table"), ("default", "memory"), ("strict", "memory"))
"""Profile, and where topics are kept."""
NOTES = Path(__file__).parents[1] / "demo" / "notes"
SALTS = ("", "topic", "memory-store", "memory-store/1/topics")
TAG_BYTES = 16
DRAWS = 20  # times that the notes which the thief knows are drawn
FEW = 13  # notes of which he knows text and topics


class Named(Struct, frozen=True):
    """Shares that are named rightly: of the ``hashes``, of ``all_tags`` (one for each topic of each
    note), and of ``other_tags``, those of notes that the thief did not know."""

    known: int
    hashes: float
    all_tags: float
    other_tags: float


class Leaked(Struct, frozen=True):
    """What the file of one vault tells, shares as 0 to 1.

    ``unique_lengths`` is the share of texts whose sealed length no other has, ``unique_before``
    that of the texts' own lengths. ``shared_topics`` counts pairs of memories that are seen to
    share a topic, of ``true_pairs`` that do. ``guessed`` counts topics found by their hash, of
    ``topics``, ``control`` how many the same guessing finds among plain hashes.

    ``half`` and ``few`` are what the thief names who knows half of the notes, by their statistics,
    or a few of them, which he finds in the file: mean shares.
    """

    profile: str
    kept: str
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
    half: Named
    few: Named


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


def named(
    attack: Attack, path: Path, held: Sequence[Memory], truth: Naming, known: int, *, texts: bool
) -> Named:
    """What the thief names who knows so many notes, drawn by lot; ``texts``: with their texts."""
    rows = topic_attacks.read_rows(path)
    sizes = {row.memory: row.size for row in rows}
    notes = {
        one.id: Known(
            one.type,
            one.created,
            frozenset(map(normalise_topic, one.topics)),
            sizes[one.id] if texts else 0,
        )
        for one in held
    }
    tags = Counter({memory: len(note.topics) for memory, note in notes.items()})
    found = []
    drawable = [one.id for one in sorted(held, key=lambda one: (one.created, one.title, one.text))]
    for draw in range(DRAWS):
        drawn = set(random.Random(draw).sample(drawable, known))
        told = attack(rows, [notes[memory] for memory in sorted(drawn)])
        others = [row for row in rows if row.memory not in drawn]
        found.append(
            (
                topic_attacks.right_hashes(rows, told, truth),
                topic_attacks.right_tags(rows, told, truth, tags),
                topic_attacks.right_tags(others, told, truth, tags),
            )
        )
    return Named(known, *(round(fmean(column), 4) for column in zip(*found, strict=True)))


def stolen(path: Path, held: Sequence[Memory], truth: Naming, kind: tuple[str, str]) -> Leaked:
    """Read the file as a thief; ``held`` and ``truth`` are the memories and what hashes mean."""
    topics = [{normalise_topic(topic) for topic in one.topics} for one in held]
    known = set().union(*topics)
    words = known | {word.casefold() for one in held for word in one.text.split()}
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
        profile=kind[0],
        kept=kind[1],
        memories=len(held),
        counted=counted,
        unique_before=unique_share([len(one.text.encode()) for one in held]),
        unique_lengths=unique_share(sizes),
        types=types,
        times=times,
        true_pairs=pairs(Counter(one for own in topics for one in own).values()),
        shared_topics=pairs(tags.values()),
        topics=len(known),
        control=len(plain & tried),
        guessed=len(tags.keys() & tried),
        words=len(words),
        half=named(by_statistics, path, held, truth, len(held) // 2, texts=False),
        few=named(by_both, path, held, truth, min(FEW, len(held)), texts=True),
    )


def measured(notes: Path, folder: Path) -> list[Leaked]:
    """Each kind of vault, filled with the same notes."""
    found = []
    for profile, kept in KINDS:
        name = f"{profile}-{kept}"
        path = folder / f"{name}.db"
        store, _ = MemoryStore.create(
            path, key_file=folder / "keys" / f"{name}.key", profile=profile, topics=kept
        )
        with store:
            store.import_paths([notes], embed=False)
            held = store.list(limit=1_000_000)
            topics = {normalise_topic(topic) for one in held for topic in one.topics}
            truth = {bytes.fromhex(store.topic_hash(one) or ""): one for one in topics}
        found.append(stolen(path, held, truth, (profile, kept)))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and write the figures for the documents."""
    parser = argparse.ArgumentParser(description="Play the thief on a vault's file.")
    parser.add_argument("--notes", type=Path, default=NOTES, help="a folder of notes")
    parser.add_argument("--write", type=Path, help="a JSON file for docs/trust/security.md")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MEMORY_STORE_STATE"] = str(Path(folder) / "state")
        figures = [to_builtins(one) for one in measured(given.notes, Path(folder))]
    for one in figures:
        print(json.dumps(one))
    write_figures(given.write, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
