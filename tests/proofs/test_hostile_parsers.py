"""Parsers of what strangers send, given anything: they answer or refuse, and keep their promises.

The harnesses are those of tests/fuzz; here Hypothesis breaks good inputs and makes up bad ones.
``make fuzz`` runs them guided by coverage.
"""

from __future__ import annotations

import io
import random
import zipfile

import pytest
from counts import counted
from fuzz.parsers import PARSERS
from hypothesis import given, settings
from hypothesis import strategies as st
from naughty import as_bytes, strings
from zip_files import zipped

from datasette_hybrid.uploads.files import sources
from memory_store.importing.source_file import Failure

EXAMPLES = counted(2_500)


def damaged(name: str) -> st.SearchStrategy[bytes]:
    """A good input of a parser with some of it changed, taken out or said again."""
    seeds = st.sampled_from(PARSERS[name].seeds())
    changes = st.lists(
        st.tuples(st.integers(0, 5_000), st.integers(0, 20), st.binary(max_size=20)), max_size=4
    )
    return st.builds(_changed, seeds, changes)


def _changed(seed: bytes, changes: list[tuple[int, int, bytes]]) -> bytes:
    for at, gone, put in changes:
        place = at % (len(seed) + 1)
        seed = seed[:place] + put + seed[place + gone :]
    return seed


@pytest.mark.parametrize("name", PARSERS)
def test_it_takes_or_refuses_damaged_and_made_up_inputs(name: str) -> None:
    @settings(max_examples=EXAMPLES)
    @given(
        st.one_of(damaged(name), damaged(name), st.binary(max_size=200), st.text().map(str.encode))
    )
    def take(data: bytes) -> None:
        PARSERS[name].take(data)

    take()


@pytest.mark.parametrize("name", PARSERS)
def test_it_takes_or_refuses_strings_that_break_programs(name: str) -> None:
    for text in random.Random(name).sample(strings(10_000), counted(10_000)):
        PARSERS[name].take(as_bytes(text))


def test_an_archive_with_a_file_that_has_no_name_is_named() -> None:
    content = zipped({"a.md": b"words"})
    at = content.rfind(b"PK\1\2")
    nameless = content[:at] + content[at : at + 28] + b"\0\0" + content[at + 30 : at + 46]
    end = content[content.rfind(b"PK\5\6") :]
    nameless += end[:12] + (46).to_bytes(4, "little") + end[16:]
    assert zipfile.is_zipfile(io.BytesIO(nameless))
    (failed,) = sources([("a.zip", nameless)])
    assert isinstance(failed, Failure)
    assert "its name is empty" in failed.reason
