"""Globs match what they say, and no pattern takes long whatever the names are."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memory_store.errors import BadInputError
from memory_store.importing.globs import MOST_GLOB, Glob
from memory_store.importing.walker import walk

PIECES = ("a", "b", "/", ".", "*", "**", "**/", "/**", "?", "[ab]", "[!a]", "[a-c]", "[+-9]", "é")
MOST_SECONDS = 2  # of processor time: RE2 takes a thousandth of it
NAMES = ("a" * 255, "a" * 254 + "/" + "a" * 255, ("a" * 63 + "/") * 60 + "a" * 63, "ab" * 127)
SLOW = (
    "*a" * 500 + "b",
    "*" * 1_000 + "b",
    "**a" * 340 + "b",
    "**/" * 340 + "b",
    "a*/" * 340 + "b",
    "*?" * 500 + "b",
    "[!b]*" * 200 + "b",
    "[ -~]*" * 170 + "b",
    "[" * 1_000,
    "[!]" * 300 + "]",
)


def fits_by_trial(pattern: str, name: str) -> bool:
    """What the documentation says, tried in every way there is."""
    if not pattern:
        return not name
    if pattern.startswith("**/"):
        rest = pattern[3:]
        ends = [place + 1 for place, letter in enumerate(name) if letter == "/"]
        return fits_by_trial(rest, name) or any(fits_by_trial(rest, name[end:]) for end in ends)
    if pattern == "/**":
        return not name or name.startswith("/")
    if stars := re.match(r"\*+", pattern):
        most = len(name) if len(stars[0]) == 2 else len(name.partition("/")[0])
        return any(fits_by_trial(pattern[stars.end() :], name[taken:]) for taken in range(most + 1))
    if not name:
        return False
    if members := re.match(r"\[(!?)([^\]/!]+)\]", pattern):
        inside = bool(re.match(f"[{members[2]}]", name[0]))
        fits = name[0] != "/" and inside != bool(members[1])
        return fits and fits_by_trial(pattern[members.end() :], name[1:])
    fits = name[0] == pattern[0] or (pattern[0] == "?" and name[0] != "/")
    return fits and fits_by_trial(pattern[1:], name[1:])


@given(
    pieces=st.lists(st.sampled_from(PIECES), min_size=1, max_size=6),
    name=st.text("aab/.éc-", max_size=8),
)
def test_a_glob_matches_what_trying_everything_does(pieces: list[str], name: str) -> None:
    pattern = "x/" + "".join(pieces).strip("/") + ("/**" if pieces[-1] == "/**" else "")
    pattern = pattern.removesuffix("/")
    assert Glob(pattern).matches(f"x/{name}") == fits_by_trial(pattern, f"x/{name}")


@given(
    pattern=st.one_of(st.text(max_size=40), st.text("[]!*?/-ab,", max_size=8)),
    name=st.text(max_size=20),
)
@example(pattern="[],", name="a")
def test_any_text_is_a_glob_or_refused_by_name(pattern: str, name: str) -> None:
    try:
        Glob(pattern).matches(name)
    except BadInputError as error:
        assert error.parameter == "glob"  # noqa: PT017 - to match is as good


@given(name=st.text(st.characters(exclude_characters="*?[]/"), min_size=1, max_size=20))
def test_a_name_is_a_glob_for_itself(name: str) -> None:
    assert Glob(name).matches(name)
    assert Glob(f"**/{name}").matches(f"folder/{name}")
    assert not Glob(name).matches(f"{name}x")


def test_no_set_holds_the_slash() -> None:
    for pattern in ("x/a[+-9]b", "x/a[!x]b", "x/a[\x00-\U0010ffff]b"):
        assert not Glob(pattern).matches("x/a/b")
        assert Glob(pattern).matches("x/a0b")


def test_bytes_that_are_no_text_are_matched_as_any_letter() -> None:
    assert Glob("caf?.md").matches("caf\udce9.md")
    assert Glob("caf\udce9.md").matches("caf\udce9.md")
    assert not Glob("caf[!\udce9].md").matches("caf\udce9.md")


@pytest.mark.parametrize("pattern", SLOW, ids=lambda pattern: pattern[:6])
def test_no_pattern_takes_longer_than_the_name_is(pattern: str) -> None:
    begun = time.process_time()
    try:
        glob = Glob(pattern)
    except BadInputError:
        return
    finally:
        assert time.process_time() - begun < MOST_SECONDS
    for name in NAMES:
        glob.matches(name)
    assert time.process_time() - begun < MOST_SECONDS


def test_a_pattern_longer_than_any_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInputError, match="more than 1,024 characters") as refused:
        list(walk(tmp_path, ["*" * (MOST_GLOB + 1)]))
    assert refused.value.parameter == "glob"
