"""A file that a disk, a thief or a power cut has damaged: an error or the right answer.

Never another text. What is damaged is held against what was written: every text that still comes
out of the vault is the one that went in under that id, and a vault that ``verify`` finds whole
gives all of them.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from counts import counted
from private import private_below

from memory_store.errors import MemoryStoreError
from memory_store.records import Memory
from memory_store.store import MemoryStore

DAMAGES = 2_000
MOST_DAMAGES = 1_000  # of one kind, until one is noticed: free pages hold nothing to notice
WAL_HEADER, FRAME_HEADER = 32, 24  # bytes; https://www.sqlite.org/fileformat2.html#walformat
WORDS = ("mill", "weir", "otter", "lantern", "harbour", "orchard", "glacier", "sluice")

Texts = dict[str, str]


@dataclass(frozen=True)
class Kept:
    """A vault as bytes: its file, what it holds (id → text), and every text that ids ever had."""

    file: bytes
    texts: Texts
    former: dict[str, set[str]]
    key_file: Path
    older: bytes  # the file as it once was
    page: int  # bytes

    @property
    def pages(self) -> int:
        return len(self.file) // self.page


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Kept:
    """A vault of some hundred pages, with long and short texts, edits, deletions, free pages."""
    folder = tmp_path_factory.mktemp("damaged")
    with private_below(folder):
        return make_kept(folder, tiny_model)


def make_kept(folder: Path, model: Path) -> Kept:
    path, key_file = folder / "vault" / "notes.db", folder / "keys" / "notes.key"
    path.parent.mkdir()
    former: dict[str, set[str]] = {}

    def known(memory: Memory) -> None:
        former.setdefault(memory.id, set()).add(memory.text)

    choose = random.Random(1)
    store, _ = MemoryStore.create(path, key_file=key_file, embedder=str(model))
    with store:
        for number in range(30):
            length = choose.choice((3, 12, 80, 1_500))
            words = " ".join(choose.choice(WORDS) for _ in range(length))
            known(store.add(f"Entry {number}: {words}.", topics=[choose.choice(WORDS)]))
        store.collections.create("other")
        known(store.add("The only one of the other collection.", collection="other"))
    older = path.read_bytes()
    with MemoryStore.open(path, key_file=key_file, embedder=str(model)) as store:
        for memory in choose.sample(sorted(former), 8):
            known(store.edit(memory, text=f"Edited: {choose.choice(WORDS)}."))
        for memory in choose.sample(sorted(former), 5):
            store.delete(memory)
        known(store.add("The last one that was added."))
        texts = {memory.id: memory.text for memory in store.list(limit=100)}
        assert store.verify()["failures"] == []
    file = path.read_bytes()
    return Kept(file, texts, former, key_file, older, int.from_bytes(file[16:18], "big"))


@dataclass(frozen=True)
class Outcome:
    """What came of a damaged vault: the refusals, whether it verifies, and the texts it gave."""

    refusals: tuple[str, ...]
    whole: bool
    texts: Texts
    given: tuple[tuple[str, str], ...]
    older: bool  # whether it warns that the file is older than the one last used here


def opened(path: Path, key_file: Path, model: Path) -> Outcome:
    """Everything that can be asked of a vault. What is no refusal of ours is raised."""
    refusals: list[str] = []
    given: list[tuple[str, str]] = []
    texts: Texts = {}
    whole = older = False

    def attempt(work: Callable[[], Any]) -> Any:
        try:
            return work()
        except MemoryStoreError as error:
            refusals.append(f"{type(error).__name__}: {error}")
            return None

    store = attempt(lambda: MemoryStore.open(path, key_file=key_file, embedder=str(model)))
    if store is not None:
        with store:
            report = attempt(store.verify)
            whole = report is not None and report["failures"] == []
            texts = {m.id: m.text for m in attempt(lambda: store.list(limit=100)) or ()}
            for ask in (store.collections.list, store.topics, store.stats, store.keys.list):
                attempt(ask)
            for query, mode in (("otter weir", "keyword"), ("the last one", "hybrid")):
                answer = attempt(lambda: store.search(query, mode=mode, limit=32))  # noqa: B023
                older |= answer is not None and "older than" in " ".join(answer.degraded)
                for row in answer.rows if answer is not None else ():
                    found = attempt(lambda: store.get(row.id))  # noqa: B023
                    if found is not None:
                        given.append((found.id, found.text))
    return Outcome(tuple(refusals), whole, texts, (*texts.items(), *given), older)


def flipped(kept: Kept, choose: random.Random) -> bytes:
    """One to eight bits, anywhere."""
    damaged = bytearray(kept.file)
    for _ in range(choose.choice((1, 1, 2, 8))):
        damaged[choose.randrange(len(damaged))] ^= 1 << choose.randrange(8)
    return bytes(damaged)


def flipped_in_headers(kept: Kept, choose: random.Random) -> bytes:
    """A byte of the file's header, or of a page's: what SQLite finds its way by."""
    damaged = bytearray(kept.file)
    first = 100 if choose.random() < 0.5 else 0
    start = choose.randrange(kept.pages) * kept.page if first == 0 else 0
    damaged[start + choose.randrange(first or 24)] = choose.randrange(256)
    return bytes(damaged)


def zeroed(kept: Kept, choose: random.Random) -> bytes:
    """A page, or half of one, that was never written."""
    damaged = bytearray(kept.file)
    half = kept.page // 2
    size = choose.choice((half, kept.page))
    start = choose.randrange(len(damaged) // half - 1) * half
    damaged[start : start + size] = bytes(size)
    return bytes(damaged)


def swapped(kept: Kept, choose: random.Random) -> bytes:
    """Two pages, each in the other's place."""
    one, other = choose.sample(range(kept.pages), 2)
    damaged = bytearray(kept.file)
    for here, there in ((one, other), (other, one)):
        damaged[here * kept.page : (here + 1) * kept.page] = page_of(kept.file, kept.page, there)
    return bytes(damaged)


def misplaced(kept: Kept, choose: random.Random) -> bytes:
    """A page written over another one."""
    one, other = choose.sample(range(kept.pages), 2)
    damaged = bytearray(kept.file)
    damaged[one * kept.page : (one + 1) * kept.page] = page_of(kept.file, kept.page, other)
    return bytes(damaged)


def lost_write(kept: Kept, choose: random.Random) -> bytes:
    """A page as it was before the last writes: the disk never wrote it, and said it had.

    The one damage after which an earlier text may be shown, until ``verify`` is asked: sealed
    values of one row that belong together are authentic, whatever else the file says.
    """
    number = choose.randrange(len(kept.older) // kept.page)
    damaged = bytearray(kept.file)
    damaged[number * kept.page : (number + 1) * kept.page] = page_of(kept.older, kept.page, number)
    return bytes(damaged)


def cut(kept: Kept, choose: random.Random) -> bytes:
    """The file up to some byte, or up to the end of some page."""
    end = choose.randrange(len(kept.file))
    return kept.file[: end if choose.random() < 0.5 else end // kept.page * kept.page]


def page_of(file: bytes, size: int, number: int) -> bytes:
    return file[number * size : (number + 1) * size]


Damage = Callable[[Kept, random.Random], bytes]
DAMAGE: tuple[Damage, ...] = (
    flipped,
    flipped_in_headers,
    zeroed,
    swapped,
    misplaced,
    lost_write,
    cut,
)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_a_damaged_file_gives_an_error_or_the_right_answer(
    kept: Kept, tmp_path: Path, private_folders: Path, tiny_model: Path, damage: Damage
) -> None:
    noticed = 0
    for seed in range(MOST_DAMAGES):
        path = tmp_path / f"{seed}" / "notes.db"
        path.parent.mkdir()
        path.write_bytes(damage(kept, random.Random(seed)))
        outcome = opened(path, kept.key_file, tiny_model)
        check(kept, outcome, damage, seed)
        noticed += bool(outcome.refusals) or not outcome.whole
        shutil.rmtree(path.parent)
        if noticed and seed >= counted(DAMAGES) // len(DAMAGE):
            break
    print(f"{damage.__name__}: {noticed} of {seed + 1} noticed")
    assert noticed  # damage that nothing notices proves nothing


def check(kept: Kept, outcome: Outcome, damage: Damage, seed: int) -> None:
    name = f"{damage.__name__} {seed}"
    for memory, text in outcome.given:
        allowed = kept.former[memory] if damage is lost_write else {kept.texts.get(memory)}
        assert text in allowed, f"{name}: another text for {memory}"
    if outcome.whole:
        assert not outcome.refusals, f"{name}: verified, and {outcome.refusals}"
        assert outcome.texts == kept.texts, f"{name}: verified, and not what was written"


@dataclass(frozen=True)
class Torn:
    """A vault whose last writes are in its write-ahead log alone.

    ``states`` are its texts after so many of the log's transactions: those before and those after
    the call that was at work then.
    """

    file: bytes
    log: bytes
    frames: int
    page: int
    states: list[tuple[Texts, Texts]]
    last_seen: tuple[str, bytes]

    @property
    def frame(self) -> int:
        return FRAME_HEADER + self.page

    def commits(self, frames: int) -> int:
        """How many transactions the first frames hold whole."""
        starts = (WAL_HEADER + number * self.frame for number in range(frames))
        return sum(self.log[start + 4 : start + 8] != bytes(4) for start in starts)


@pytest.fixture(scope="module")
def torn(kept: Kept, tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Torn:
    folder = tmp_path_factory.mktemp("torn")
    with private_below(folder):
        return make_torn(folder, kept, tiny_model)


def make_torn(folder: Path, kept: Kept, model: Path) -> Torn:
    path = folder / "notes.db"
    path.write_bytes(kept.file)
    log = path.with_name("notes.db-wal")
    texts, states = kept.texts, [(kept.texts, kept.texts)]
    with MemoryStore.open(path, key_file=kept.key_file, embedder=str(model)) as store:
        for number in range(9):
            if number % 3 == 2:
                store.edit(min(texts), text=f"Edited for the {number}. time.")
            else:
                store.add(f"Number {number} is in the log alone.", collection=f"new {number // 4}")
            before, texts = texts, {m.id: m.text for m in store.list(limit=100)}
            whole = Torn(kept.file, log.read_bytes(), 0, kept.page, states, ("", b""))
            done = whole.commits((len(whole.log) - WAL_HEADER) // whole.frame)
            states += [(before, texts)] * (done - len(states)) + [(texts, texts)]
    (seen,) = (folder / "state" / "last-seen").iterdir()
    frames = (len(whole.log) - WAL_HEADER) // whole.frame
    return replace(whole, frames=frames, last_seen=(seen.name, seen.read_bytes()))


def check_torn(torn: Torn, log: bytes, frames: int, path: Path, kept: Kept, model: Path) -> None:
    """With that log the vault holds exactly what the transactions of its first frames say."""
    path.parent.mkdir()
    path.write_bytes(torn.file)
    path.with_name(f"{path.name}-wal").write_bytes(log)
    remember(torn)
    outcome = opened(path, kept.key_file, model)
    assert outcome.refusals == ()
    assert outcome.whole
    commits = torn.commits(frames)
    assert outcome.texts in torn.states[commits]
    assert outcome.older or outcome.texts == torn.states[-1][1]  # lost transactions are reported
    with MemoryStore.open(path, key_file=kept.key_file, embedder=str(model)) as store:
        added = store.add("Written after the power came back.")
        assert store.get(added.id).text == "Written after the power came back."
        assert store.verify()["failures"] == []
    shutil.rmtree(path.parent)


def remember(torn: Torn) -> None:
    """Let this test's state folder say that the whole log was seen here before."""
    name, counters = torn.last_seen
    folder = Path(os.environ["MEMORY_STORE_STATE"]) / "last-seen"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(counters)


def spread(whole: int, some: int) -> list[int]:
    """So many of the numbers below ``whole``, evenly, the first and the last among them."""
    return sorted({round(n * (whole - 1) / max(1, some - 1)) for n in range(min(some, whole))})


def test_a_log_that_was_cut_gives_the_last_whole_transaction(
    kept: Kept, torn: Torn, tmp_path: Path, private_folders: Path, tiny_model: Path
) -> None:
    boundaries = [WAL_HEADER + number * torn.frame for number in range(torn.frames + 1)]
    places = {0, 1, WAL_HEADER - 1, WAL_HEADER + 7, *boundaries}
    places |= {start + torn.frame // 2 for start in boundaries[:-1]}
    cuts = sorted(places)
    for number in spread(len(cuts), counted(len(cuts))):
        end = cuts[number]
        frames = max(0, end - WAL_HEADER) // torn.frame
        path = tmp_path / f"{number}" / "notes.db"
        check_torn(torn, torn.log[:end], frames, path, kept, tiny_model)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("place", "size"),
    [
        pytest.param(8, 8, id="salts"),
        pytest.param(16, 8, id="checksum"),
        pytest.param(4, 4, id="size-after-commit"),
        pytest.param(0, 4, id="page-number"),
        pytest.param(FRAME_HEADER, 512, id="content"),
    ],
)
def test_a_log_whose_frame_was_changed_ends_before_it(
    kept: Kept,
    torn: Torn,
    tmp_path: Path,
    private_folders: Path,
    tiny_model: Path,
    place: int,
    size: int,
) -> None:
    choose = random.Random(place)
    for number in spread(torn.frames, counted(torn.frames)):
        log = bytearray(torn.log)
        start = WAL_HEADER + number * torn.frame + place
        log[start + choose.randrange(size)] ^= 1 << choose.randrange(8)
        path = tmp_path / f"{number}" / "notes.db"
        check_torn(torn, bytes(log), number, path, kept, tiny_model)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("place", [0, 4, 8, 12, 16, 20, 24, 28])
def test_a_log_whose_header_was_changed_is_no_log(
    kept: Kept, torn: Torn, tmp_path: Path, private_folders: Path, tiny_model: Path, place: int
) -> None:
    log = bytearray(torn.log)
    log[place] ^= 0x40
    check_torn(torn, bytes(log), 0, tmp_path / "0" / "notes.db", kept, tiny_model)


@pytest.mark.parametrize("whose", ["another-vault", "its-own-past"])
def test_a_log_that_is_not_the_files_own_gives_an_error_or_the_right_answer(
    kept: Kept, torn: Torn, tmp_path: Path, private_folders: Path, tiny_model: Path, whose: str
) -> None:
    path = tmp_path / "mixed" / "notes.db"
    path.parent.mkdir()
    if whose == "another-vault":
        MemoryStore.create(path, key_file=kept.key_file, embedder=str(tiny_model))[0].lock()
    else:
        path.write_bytes(torn.file)
        path.with_name("notes.db-wal").write_bytes(torn.log)
    with MemoryStore.open(path, key_file=kept.key_file, embedder=str(tiny_model)) as store:
        for number in range(12):
            store.add(f"Later {number}, of which the log knows nothing.")
        texts = {memory.id: memory.text for memory in store.list(limit=100)}
    path.with_name("notes.db-wal").write_bytes(torn.log)
    outcome = opened(path, kept.key_file, tiny_model)
    states = [texts, *(state for pair in torn.states for state in pair)]
    assert all(any(pair in state.items() for state in states) for pair in outcome.given)
    assert outcome.refusals or not outcome.whole or outcome.texts in states
