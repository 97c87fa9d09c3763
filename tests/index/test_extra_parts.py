"""Extra parts of a segment: a record of each document, sealed, merged and read with the index."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import Struct

from memory_store.errors import MemoryStoreError, TamperedError
from memory_store.index.extras import Records
from memory_store.index.kinds import KINDS
from memory_store.records import Memory
from memory_store.scopes import NOTHING, Limits, Scope
from memory_store.session.entries import RECORDS, Analysed
from memory_store.session.extras import record_of
from memory_store.session.extras import rows as records
from memory_store.session.opened_vault import OpenVault
from memory_store.sqlite import connect
from memory_store.store import MemoryStore

PARTS = "select count(*) from vault_segment_parts where kind = 'shouted'"


class Shouted(Struct):
    """What a memory says in capitals."""

    words: list[str] = []


SHOUTED = Records("shouted", Shouted)


def shouted(memory: Memory, analysed: Analysed) -> Shouted:
    return Shouted([word for word in memory.text.split() if word.isupper()])


@pytest.fixture(autouse=True)
def _no_other_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Vaults of before there were any kinds."""
    for name in [*KINDS]:
        monkeypatch.delitem(KINDS, name)
        monkeypatch.delitem(RECORDS, name)


@pytest.fixture
def kind(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """The one kind that the vault knows once this is called."""

    def added() -> None:
        monkeypatch.setitem(KINDS, SHOUTED.name, SHOUTED)
        monkeypatch.setitem(RECORDS, SHOUTED.name, shouted)

    return added


@pytest.fixture
def filled(store: MemoryStore, kind: Callable[[], None]) -> MemoryStore:
    kind()
    for day in range(9):  # more than a tier of segments: they were merged
        store.add(f"note {day} says WEIR and ZANDER{day}")
    store.add("at work it says BARRAGE", collection="work")
    return store


def said(store: MemoryStore) -> dict[str, list[str]]:
    return {memory: record.words for memory, record in found(store._opened.vault)}


def found(vault: OpenVault) -> list[tuple[str, Shouted]]:
    snapshot = vault.snapshot()
    return [(snapshot.id(place), one) for place, one in records(vault, snapshot, SHOUTED)]


def rows(store: MemoryStore, query: str = PARTS) -> int:
    connection = connect(store.path)
    (count,) = connection.execute(query).fetchone()
    connection.close()
    return int(count)


def change(store: MemoryStore, statement: str) -> None:
    connection = connect(store.path)
    assert connection.execute(statement).rowcount
    connection.commit()
    connection.close()


def reopened(store: MemoryStore, key_file: Path) -> MemoryStore:
    store.lock()
    return MemoryStore.open(store.path, key_file=key_file)


def test_each_living_memory_has_its_record_after_merges(
    filled: MemoryStore, key_file: Path
) -> None:
    found = said(filled)
    assert len(found) == 10
    assert ["WEIR", "ZANDER7"] in found.values()
    again = reopened(filled, key_file)
    assert said(again) == found
    assert again.verify()["failures"] == []
    again.lock()


def test_a_record_follows_an_edit_and_goes_with_a_deletion(filled: MemoryStore) -> None:
    first, second, *_ = said(filled)
    filled.edit(first, text="now it says OTTER")
    filled.delete(second)
    vault = filled._opened.vault
    record = record_of(vault, SHOUTED, first)
    assert record is not None
    assert record.words == ["OTTER"]
    assert record_of(vault, SHOUTED, second) is None
    assert len(said(filled)) == 9


def test_every_segment_has_its_part_and_no_other_segment_has(filled: MemoryStore) -> None:
    assert rows(filled) == rows(filled, "select count(*) from vault_segments")
    filled.collections.delete("work")
    assert rows(filled) == rows(filled, "select count(*) from vault_segments")
    assert len(said(filled)) == 9


def test_a_view_reads_the_records_of_what_it_may_open(filled: MemoryStore) -> None:
    names = {name: one for one, name in filled.collections.names().items()}
    work = Scope.of([names["work"]])
    vault = filled._opened.vault
    assert len(found(vault.limited_to(Limits(work)))) == 1
    searching = vault.limited_to(Limits(work, readable=NOTHING))
    assert found(searching) == []
    assert record_of(searching, SHOUTED, next(iter(said(filled)))) is None


def test_records_are_sealed_anew_when_keys_are_replaced(
    filled: MemoryStore, key_file: Path
) -> None:
    before = said(filled)
    filled.keys.rotate()
    assert said(filled) == before
    connection = connect(filled.path)
    sealed = [row for (row,) in connection.execute("select sealed from vault_segment_parts")]
    connection.close()
    assert {row[2:6] for row in sealed} == {(1).to_bytes(4, "big")}
    again = reopened(filled, key_file)
    assert said(again) == before
    assert again.verify()["failures"] == []
    again.lock()


@pytest.mark.parametrize(
    "changed",
    [
        "delete from vault_segment_parts",
        "update vault_segment_parts set sealed = x'00'",
        "update vault_segment_parts set kind = 'other'",
        "update vault_segment_parts set sealed = "
        "(select sealed from vault_segment_parts order by rowid limit 1)",
    ],
)
def test_a_part_that_is_gone_changed_or_swapped_is_noticed(
    filled: MemoryStore, key_file: Path, changed: str
) -> None:
    filled.lock()
    change(filled, f"{changed} where rowid = (select max(rowid) from vault_segment_parts)")
    again = MemoryStore.open(filled.path, key_file=key_file)
    with pytest.raises(TamperedError, match="vault_segment_parts"):
        said(again)
    assert any("segment" in failure for failure in again.verify()["failures"])
    assert again.search("weir")  # what does not need the part goes on
    again.lock()


def test_a_part_of_no_segment_is_noticed(filled: MemoryStore) -> None:
    change(filled, "insert into vault_segment_parts values ('none', 'shouted', x'00')")
    assert any("vault_segment_parts" in failure for failure in filled.verify()["failures"])


def test_a_locked_vault_reads_none(filled: MemoryStore) -> None:
    said(filled)
    segment = filled._opened.vault.snapshot().parts[0].segment
    extra = segment.extra(SHOUTED.name)
    assert extra is not None
    assert extra.data.any()  # type: ignore[attr-defined]
    filled.lock()
    assert not extra.data.any()  # type: ignore[attr-defined]
    with pytest.raises(MemoryStoreError):
        said(filled)


def test_a_vault_of_before_the_kind_gets_its_records_by_a_reindex(
    store: MemoryStore, kind: Callable[[], None], key_file: Path, tiny_model: Path
) -> None:
    for day in range(5):
        store.add(f"note {day} says WEIR")
    change(store, "drop table vault_segment_parts")  # as if it had been made before there was one
    store.lock()
    store = MemoryStore.open(store.path, key_file=key_file, embedder=str(tiny_model))
    kind()
    assert said(store) == {}
    store.add("later it says OTTER")
    assert list(said(store).values()) == [["OTTER"]]
    assert store.reindex() == 5
    assert len(said(store)) == 6
    assert store.reindex() == 0
    assert store.verify()["failures"] == []
    store.lock()


@pytest.fixture
def of_before(
    store: MemoryStore, kind: Callable[[], None], key_file: Path, tiny_model: Path
) -> MemoryStore:
    """A vault of before the kind, opened by a version that knows it."""
    for day in range(40):
        store.add(f"note {day} says WEIR")
    change(store, "drop table vault_segment_parts")
    store.lock()
    opened = MemoryStore.open(store.path, key_file=key_file, embedder=str(tiny_model))
    kind()
    return opened


def vectors_of(store: MemoryStore) -> dict[str, bytes]:
    snapshot = store._opened.vault.snapshot()
    living = snapshot.alive.nonzero()[0].tolist()
    return {snapshot.id(one): snapshot.stored_vectors(one).tobytes() for one in living}


def test_the_background_adds_them_and_leaves_the_vectors_as_they_are(
    of_before: MemoryStore,
) -> None:
    before = vectors_of(of_before)
    assert of_before.incomplete() == of_before.incomplete("shouted") == 40
    assert of_before.embed_missing() == ()
    assert of_before.incomplete() == 0
    assert len(said(of_before)) == 40
    assert vectors_of(of_before) == before
    assert of_before.verify(full=True)["failures"] == []
    assert of_before.reindex() == 0


def test_it_needs_no_model(of_before: MemoryStore, key_file: Path) -> None:
    before = vectors_of(of_before)
    of_before.lock()
    with MemoryStore.open(of_before.path, key_file=key_file, embedder="no/such-model") as store:
        (line,) = store.embed_missing()
        assert "without vectors" in line
        assert (store.incomplete(), vectors_of(store)) == (0, before)


def test_stopped_between_batches_it_goes_on_later(of_before: MemoryStore) -> None:
    breaths = iter(range(3))

    def stop_at_third() -> None:
        if next(breaths) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        of_before.embed_missing(breath=stop_at_third)
    assert 0 < of_before.incomplete() < 40
    of_before.embed_missing()
    assert of_before.incomplete() == 0
    assert len(said(of_before)) == 40


def test_an_import_adds_some(of_before: MemoryStore, tmp_path: Path) -> None:
    note = tmp_path / "note.md"
    note.write_text("The OTTER is back.")
    assert of_before.import_paths(note, dry_run=True).imported == 1
    assert of_before.incomplete() == 40
    of_before.import_paths(note)
    assert of_before.incomplete() == 0
