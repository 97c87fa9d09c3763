"""How long work will take, by how fast it went of late."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_store.records.pace import SETTLE_SECONDS, WINDOW_SECONDS, Pace

RATES = st.floats(0.01, 10_000)


@given(rate=RATES, began=st.floats(0, 1e6), steps=st.lists(st.floats(0.01, 5), min_size=1))
def test_a_steady_pace_is_found_whenever_it_is_looked_at(
    rate: float, began: float, steps: list[float]
) -> None:
    pace, now = Pace(), began
    pace.at(0, now)
    assert pace.seconds(1) is None
    for step in steps:
        now += step
        pace.at(rate * (now - began), now)
        if now - began >= SETTLE_SECONDS:
            assert pace.seconds(rate * 60) == pytest.approx(60, rel=1e-3)
        else:
            assert pace.rate() is None


@given(slow=RATES, fast=RATES, minutes=st.integers(1, 20))
def test_what_was_slower_before_says_nothing_about_the_rest(
    slow: float, fast: float, minutes: int
) -> None:
    """As on a machine that was busy, or that loaded a model first."""
    pace, now, done = Pace(), 0.0, 0.0
    for seconds, rate in ((minutes * 60, slow), (WINDOW_SECONDS + 2, fast)):
        for _ in range(int(seconds)):
            pace.at(done, now)
            now, done = now + 1, done + rate
    pace.at(done, now)
    assert pace.rate() == pytest.approx(fast, rel=1e-3)


def test_less_than_before_begins_anew() -> None:
    pace = Pace()
    for second in range(10):
        pace.at(100 * second, second)
    assert pace.rate() == 100
    for second in range(20, 25):
        pace.at(second - 20, second)
    assert pace.rate() == 1
