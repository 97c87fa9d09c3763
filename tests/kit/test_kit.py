"""The test kit: this package and an independent reader give the same answer to every vector."""

from __future__ import annotations

import json
from collections import Counter

import independent_answers
import make_kit
import pytest
from our_answers import ANSWERS, answered

FILES = tuple(ANSWERS)
VECTORS = {name: json.loads((make_kit.HERE / f"{name}.json").read_text("utf-8")) for name in FILES}
ALL = [(name, vector) for name in FILES for vector in VECTORS[name]["vectors"]]


def named(value: object) -> str | None:
    return value["id"] if isinstance(value, dict) else None


@pytest.mark.parametrize("name", FILES)
def test_this_package_answers_as_the_kit_says(name: str) -> None:
    for vector in VECTORS[name]["vectors"]:
        outcome, result = answered(ANSWERS[name], vector)
        if outcome is not None:
            assert outcome == vector["outcome"], vector["id"]
        else:
            assert result == {key: vector.get(key) for key in result}, vector["id"]


@pytest.mark.parametrize("name", FILES)
def test_an_independent_reader_answers_as_the_kit_says(name: str) -> None:
    for vector in VECTORS[name]["vectors"]:
        assert independent_answers.disagreement(name, vector) is None, vector["id"]


@pytest.mark.parametrize("name", make_kit.FILES)
def test_the_kit_can_be_made_again_byte_for_byte(name: str) -> None:
    assert make_kit.text_of(name) == (make_kit.HERE / f"{name}.json").read_text("utf-8")


def test_the_kit_holds_what_is_promised() -> None:
    """At least 160 vectors, seven kinds of outcome, and no fault twice."""
    assert len(ALL) >= 160
    assert len({vector["id"] for _, vector in ALL}) == len(ALL)
    outcomes = Counter(vector["outcome"] for _, vector in ALL)
    assert len(outcomes) >= 7
    faults = [
        (name, vector["what"])
        for name, vector in ALL
        if name != "derivations" and vector["outcome"] != "opens"
    ]
    assert len(faults) == len(set(faults))
