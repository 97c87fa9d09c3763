"""Whatever order versions arrive in, and however often: every device ends with the same ones, and
exactly those that no change replaced which knew of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memory_store.vault.registers import Dot, Register, Version, changed, first, joined

DEVICES = ("aa", "bb", "cc")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["edit", "delete", "send", "deliver", "deliver", "again"]),
        st.sampled_from(range(3)),
        st.integers(0, 50),
        st.integers(-5, 5),
    ),
    max_size=40,
)


class Oracle:
    """Which changes of one memory each device knows of, and what each of them replaced."""

    def __init__(self) -> None:
        self.known: list[set[Dot]] = [set() for _ in DEVICES]
        self.replaced: dict[Dot, frozenset[Dot]] = {}

    def change(self, device: int, dot: Dot) -> None:
        self.replaced[dot] = frozenset(self.known[device])
        self.known[device].add(dot)

    def left(self) -> set[Dot]:
        return {*self.replaced} - {dot for one in self.replaced.values() for dot in one}


@given(STEPS)
def test_all_end_with_what_no_change_replaced(steps: list[tuple[str, int, int, int]]) -> None:
    registers, oracle = [Register("m") for _ in DEVICES], Oracle()
    numbers, sent = [0, 0, 0], list[tuple[Register, set[Dot]]]()
    for what, device, which, skew in steps:
        if what in ("edit", "delete"):
            numbers[device] += 1
            says = b"%d of %d" % (numbers[device], device) if what == "edit" else b""
            registers[device] = changed(
                registers[device], DEVICES[device], numbers[device], 1_000 + which * skew, says
            )
            oracle.change(device, (DEVICES[device], numbers[device]))
        elif what == "send":
            sent.append((registers[device], set(oracle.known[device])))
        elif sent:
            register, known = sent[which % len(sent)]
            registers[device] = joined(registers[device], register)
            oracle.known[device] |= known
    for target in (*range(3), *range(3)):
        for source in range(3):
            registers[target] = joined(registers[target], registers[source])
    assert registers[0] == registers[1] == registers[2]
    assert {one.dot for one in registers[0].versions} == oracle.left()


@given(STEPS)
def test_joining_is_done_in_any_order_and_twice(steps: list[tuple[str, int, int, int]]) -> None:
    a, b, c = (Register("m") for _ in DEVICES)
    for number, (what, device, which, _) in enumerate(steps, 1):
        says = b"" if what == "delete" else b"%d" % which
        some = [a, b, c]
        some[device] = changed(some[device], DEVICES[device], number, which, says)
        if what == "deliver":
            some[(device + 1) % 3] = joined(some[(device + 1) % 3], some[device])
        a, b, c = some
    assert joined(a, b) == joined(b, a)
    assert joined(joined(a, b), c) == joined(a, joined(b, c))
    assert joined(a, a) == a
    assert joined(joined(a, b), b) == joined(a, b)


def test_a_later_version_wins_over_an_earlier_one_and_any_over_a_deletion() -> None:
    base = first("m", 10, b"base", b"base")
    early = changed(base, "aa", 1, 20, b"early")
    late = changed(base, "bb", 1, 30, b"late")
    gone = changed(base, "cc", 1, 99, b"")
    every = joined(joined(early, gone), late)
    assert every.shown == Version("bb", 1, 30, b"late")
    assert [one.says for one in every.conflicting] == [b"early"]
    assert joined(gone, base).shown == Version("cc", 1, 99)


def test_a_change_comes_after_what_it_replaced_whatever_its_clock_says() -> None:
    ahead = changed(
        first("m", 10, b"base", b"base"), "aa", 1, 9_000_000, b"by a clock that is ahead"
    )
    after = changed(ahead, "bb", 1, 50, b"later")
    assert after.versions[0].time > ahead.versions[0].time
