"""Every bit of every sealed cell changed, every cut, every exchange: refused, never misread.

Every sealed cell, with the key and the place that an independent reader finds for it, goes to the
function that opens all of them, changed in every way: hundreds of thousands of times. What becomes
of a file that was changed is in ``test_changed_files.py``, and there every bit of the columns that
hold keyed hashes, slots and public keys.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

from counts import a_share_of, counted
from whole_vault import UNSEALED, Cell, Whole, blob_columns

from memory_store.crypto.keys import SecretKey
from memory_store.crypto.sealing import Place, SealingKey, unseal
from memory_store.errors import FormatError, TamperedError
from memory_store.sqlite import connect


def refused(cell: Cell, blob: bytes) -> bool:
    """Whether the function that opens every sealed value refuses ``blob`` in a cell's place."""
    key = SealingKey(SecretKey(cell.key), epoch=cell.epoch)
    ours = cell.place
    place = Place(ours.vault, ours.collection, ours.table, ours.column, ours.row, ours.version)
    try:
        unseal(key, place, blob)
    except (TamperedError, FormatError):
        return True
    return False


def test_every_blob_column_is_sealed_hashed_or_public_and_is_tried_here(whole: Whole) -> None:
    with closing(connect(whole.path, read_only=True)) as connection:
        used = {
            (table, column)
            for table, column in blob_columns(connection)
            if connection.execute(
                f"select 1 from {table} where length({column}) > 0 limit 1"
            ).fetchone()
        }
        unused = blob_columns(connection) - used
    sealed = {(cell.table, cell.column) for cell in whole.cells()}
    assert sealed | UNSEALED == used
    assert unused <= {
        ("vault_principals", "sealed"),
        ("collections", "name"),
    }  # nothing writes them


def test_every_sealed_cell_opens_at_its_place(whole: Whole) -> None:
    cells = whole.cells()
    assert len(cells) > 20
    assert not any(refused(cell, cell.blob) for cell in cells)


def test_every_flipped_bit_of_every_sealed_cell_is_refused(whole: Whole) -> None:
    tried: Counter[str] = Counter()
    for cell in whole.cells():
        changed = bytearray(cell.blob)
        for bit in a_share_of(range(len(cell.blob) * 8), str(cell.place)):
            changed[bit // 8] ^= 1 << bit % 8
            assert refused(cell, bytes(changed)), (cell.place, bit)
            changed[bit // 8] ^= 1 << bit % 8
            tried[f"{cell.table}.{cell.column}"] += 1
    print(f"{tried.total()} flipped bits: {dict(tried)}")
    assert tried.total() >= counted(100_000)


def test_every_cut_of_every_sealed_cell_is_refused(whole: Whole) -> None:
    tried = 0
    for cell in whole.cells():
        for length in a_share_of(range(len(cell.blob)), str(cell.place)):
            assert refused(cell, cell.blob[:length]), (cell.place, length)
            assert refused(cell, cell.blob[length + 1 :]), (cell.place, -length)
            tried += 2
        assert refused(cell, cell.blob + b"\x00")
        assert refused(cell, b"\x00" + cell.blob)
    print(f"{tried} cuts")
    assert tried >= counted(20_000)


def test_every_exchange_of_two_sealed_cells_is_refused(
    whole: Whole, make_whole: Callable[[str], Whole]
) -> None:
    """Within the vault, with another vault of the same content, with the same one before."""
    other = make_whole("other").cells()
    cells, before = whole.cells(), []
    with whole.open() as store:
        key = next(memory for memory in store.list() if memory.title == "Key")
        before = whole.cells()
        store.edit(key.id, text="The spare key hangs by the sluice.")
    tried = 0
    for cell in whole.cells():
        for stranger in (*cells, *other, *before):
            if stranger.place != cell.place or stranger.key != cell.key:
                assert refused(cell, stranger.blob), (cell.place, stranger.place)
                tried += 1
    print(f"{tried} exchanges")
    assert tried > 2_000


def test_a_place_that_differs_in_one_part_is_refused(whole: Whole) -> None:
    for cell in whole.cells():
        place = cell.place
        for elsewhere in (
            replace(place, vault=bytes(16)),
            replace(place, collection=place.collection + "x"),
            replace(place, table=place.column, column=place.table),
            replace(place, row=place.row + "|"),
            replace(place, version=place.version + 1),
            replace(place, version=-1 - place.version),
        ):
            assert refused(replace(cell, place=elsewhere), cell.blob)
