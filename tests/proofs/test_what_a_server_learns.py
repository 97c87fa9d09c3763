"""Can who sees everything that is asked of a vault's server tell which of two queries ran?

An observer once saw each of some queries run, and what the program then asked of the server. Now
one of two of them runs, and he says which. Run it with ``-s``: it prints how often he is right.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from contextlib import closing
from itertools import permutations
from pathlib import Path

import pytest
from postgres_line import NOT_WAITED_FOR, Line, line_to
from postgres_server import Server

from memory_store import MemoryStore
from memory_store.paths import cache_folder
from memory_store.records import MemoryDraft
from memory_store.sqlite import connect
from memory_store.vault.storage.postgres_link import let_go

SUBJECTS = ("heron", "lease", "mill", "kestrel", "ledger", "garden", "winter", "boat")
NOTES = 15  # of each subject
ID = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
ROLLBACK, FLUSH = NOT_WAITED_FOR
Seen = tuple[bytes, int]
"""What was sent, and how many thousand bytes came back."""


def likeness(one: Seen, other: Seen) -> float:
    """How alike are the rows that were asked for, then the sizes of the answers."""
    rows, others = ({*ID.findall(sent)} for sent, _ in (one, other))
    share = len(rows & others) / max(1, len(rows | others))
    return share + 0.5 * min(one[1], other[1]) / max(one[1], other[1])


def told_apart(search: Callable[[str], Seen], draw: random.Random) -> float:
    """How often the observer is right, of every pair of queries; a coin where he sees no
    difference."""
    known = {query: search(query) for query in SUBJECTS}
    right = []
    for ran, other in permutations(SUBJECTS, 2):
        seen = search(ran)
        nearer = likeness(seen, known[ran]) - likeness(seen, known[other])
        right.append(nearer > 0 or (nearer == 0 and draw.random() < 0.5))
    return sum(right) / len(right)


def observed(line: Line, store: MemoryStore, query: str) -> Seen:
    sent, before = list[bytes](), line.received

    def note(chunk: bytes) -> bool:
        sent.append(chunk)
        return False

    line.cut_before = note
    found = store.search(query, mode="hybrid")
    assert found.rows[0].preview.startswith(query)
    # A rollback may be that of the search before; when a pipeline flushes is a matter of threads.
    asked = b"".join(sent).replace(ROLLBACK, b"").replace(FLUSH, b"")
    return asked, 1 + (line.received - before) // 1_000


@pytest.mark.parametrize("mirror", [False, True], ids=["what was read", "mirror"])
def test_an_observer_of_the_server_cannot_tell_queries_apart_whose_answers_are_kept_here(
    postgres: Server,
    key_file: Path,
    tiny_model: Path,
    private_folders: Path,
    monkeypatch: pytest.MonkeyPatch,
    mirror: bool,
) -> None:
    if mirror:
        monkeypatch.setenv("MEMORY_STORE_MIRROR", "all")
    draw = random.Random(11)
    notes = [MemoryDraft(f"{one} note {n}") for n in range(NOTES) for one in SUBJECTS]
    with line_to(postgres) as line:
        place = line.address()
        store, _ = MemoryStore.create(place, key_file=key_file, embedder=str(tiny_model))
        with store:
            store.add_many(notes)
        with MemoryStore.open(place, key_file=key_file, embedder=str(tiny_model)) as store:
            for _ in range(4):  # until every statement is prepared; of a mirror the first search
                observed(line, store, SUBJECTS[0])

            def unread(query: str) -> Seen:
                (file,) = (cache_folder() / "memories").glob("*.db")
                with closing(connect(file)) as kept:
                    kept.execute("delete from kept")
                return observed(line, store, query)

            if not mirror:
                first = told_apart(unread, draw)
                assert first > 0.8  # a coin would be right in half; busy machines blur what he sees
                print(f"nothing kept: right in {first:.0%} of {len(SUBJECTS) * 7}")
                for query in SUBJECTS:
                    observed(line, store, query)
            seen = {observed(line, store, query) for query in SUBJECTS}
            assert len({asked for asked, _ in seen}) == 1
            assert {answered for _, answered in seen} == {1}  # less than a thousand bytes
            again = told_apart(lambda query: observed(line, store, query), draw)
            print(f"kept: right in {again:.0%} of {len(SUBJECTS) * 7}")
        let_go()
