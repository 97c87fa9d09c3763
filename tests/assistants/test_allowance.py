"""How much a caller may ask is counted for this caller alone."""

from __future__ import annotations

import pytest

from memory_store.assistants import allowance
from memory_store.assistants.allowance import BYTES, CALLS, MOST_IN_ONE, Allowance, Allowances
from memory_store.assistants.assistant import Assistant, RefusedError
from memory_store.assistants.tools import call
from memory_store.scopes import EVERYTHING
from memory_store.store import MemoryStore


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def spent(one: Allowance, size: int = 1) -> int:
    """How many calls it allows until it refuses."""
    for count in range(2 * CALLS):
        try:
            one.spend(size)
        except RefusedError:
            return count
    raise AssertionError("it never refused")


def test_after_a_burst_it_says_how_long_to_wait_and_waiting_helps() -> None:
    clock = Clock()
    one = Allowance(clock)
    assert spent(one) == CALLS
    with pytest.raises(RefusedError, match=r"Go on in 1 seconds"):
        one.spend(1)
    clock.now += 60 / CALLS * 10
    assert spent(one) == 10
    clock.now += 3_600
    assert spent(one) == CALLS


def test_many_bytes_are_refused_as_many_calls_are() -> None:
    one = Allowance(Clock())
    assert spent(one, MOST_IN_ONE) == BYTES // MOST_IN_ONE
    one.spend(0)
    with pytest.raises(RefusedError, match="at most"):
        one.spend(MOST_IN_ONE + 1)


def test_what_one_caller_asks_shuts_no_other_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allowance, "CALLERS", 8)
    callers = Allowances()
    spent(callers.of("greedy"))
    assert spent(callers.of("modest")) == CALLS
    for number in range(100):  # as many tokens as one likes
        spent(callers.of(f"flood {number}"), MOST_IN_ONE)
    assert spent(callers.of("newcomer")) == CALLS
    assert callers.of("newcomer") is callers.of("newcomer")


def test_a_tool_is_refused_in_words_and_without_one_nothing_is_counted(store: MemoryStore) -> None:
    view = store.limited_to(EVERYTHING)
    counted = Assistant(view, allowance=Allowance(Clock()))
    for _ in range(CALLS):
        call(counted, "tasks", {})
    with pytest.raises(RefusedError, match="too much at once"):
        call(counted, "tasks", {})
    assert call(Assistant(view), "tasks", {}) == {"tasks": []}
