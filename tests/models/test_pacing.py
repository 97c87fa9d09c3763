"""Reading in time, against a clock that runs only while something is read."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from memory_store.models.time_limit import PROBE, batches_in_time, padded, sorted_batches

SIZE = 8
LENGTHS = st.lists(st.integers(1, 500), max_size=80)


class Reader:
    """Reads at a pace of its own: a unit of padded text takes ``pace``, each batch ``start``."""

    def __init__(self, pace: float = 1.0, start: float = 0.0) -> None:
        self.now, self.pace, self.start = 100.0, pace, start
        self.batches: list[list[int]] = []

    def read(self, lengths: Sequence[int], budget: float) -> list[int]:
        """The places read within ``budget``, in the order of reading."""
        deadline = self.now + budget
        for batch in batches_in_time(lengths, SIZE, deadline, clock=lambda: self.now):
            self.batches.append(batch)
            self.now += self.start + self.pace * padded(lengths, batch)
        return [place for batch in self.batches for place in batch]


@given(lengths=LENGTHS)
def test_without_a_deadline_everything_is_read_once_in_batches_of_like_length(
    lengths: list[int],
) -> None:
    batches = list(batches_in_time(lengths, SIZE))
    assert sorted(place for batch in batches for place in batch) == list(range(len(lengths)))
    assert all(len(batch) <= SIZE for batch in batches)
    in_order = [lengths[place] for batch in batches for place in batch]
    assert in_order == sorted(in_order)


@given(lengths=LENGTHS, budget=st.floats(0.5, 50_000))
def test_nothing_is_begun_that_would_not_end_in_time(lengths: list[int], budget: float) -> None:
    reader = Reader()
    read = reader.read(lengths, budget)
    assert len(set(read)) == len(read)
    if len(reader.batches) > 1:  # the first is the probe, which nothing can foresee
        assert reader.now <= 100.0 + budget + 1e-6


@given(lengths=LENGTHS)
def test_with_time_for_all_all_is_read(lengths: list[int]) -> None:
    read = Reader(pace=0.001).read(lengths, 1e9)
    assert sorted(read) == list(range(len(lengths)))


@given(length=st.integers(1, 100), count=st.integers(PROBE + 1, 80), percent=st.integers(0, 100))
def test_of_texts_of_one_length_those_in_front_are_read_as_many_as_fit(
    length: int, count: int, percent: int
) -> None:
    budget = length * count * percent // 100  # whole: a fraction is rounded before it is compared
    read = Reader().read([length] * count, budget)
    assert sorted(read) == list(range(len(read)))
    fit = budget // length
    if fit > PROBE:
        assert fit - 1 <= len(read) <= fit


def test_a_long_text_in_front_is_not_put_off_for_short_ones_behind_it() -> None:
    lengths = [10, 400, 10, 10, *[10] * 60]
    read = Reader().read(lengths, 4 * 400 + 200)
    assert 1 in read
    assert len(read) < len(lengths)


def test_a_deadline_that_is_over_reads_nothing() -> None:
    assert Reader().read([10] * 20, -1) == []
    assert Reader().read([10] * 20, 0) == []


def test_a_reader_that_turns_slow_is_stopped_on_the_way() -> None:
    reader = Reader()

    lengths = [10] * 60
    seen = []
    for batch in batches_in_time(lengths, SIZE, reader.now + 600, clock=lambda: reader.now):
        seen += batch
        reader.now += padded(lengths, batch) * (1.0 if len(seen) < 12 else 3.0)
    assert 12 <= len(seen) < 60
    assert reader.now <= 100 + 600


def test_batches_are_padded_to_their_longest() -> None:
    lengths = [5, 1, 4]
    assert list(sorted_batches(lengths, range(3), 2)) == [[1, 2], [0]]
    assert padded(lengths, [1, 2]) == 8
