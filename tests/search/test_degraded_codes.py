"""Lines about what was missing have codes, and everything that decides by them goes by these."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typing_commands import run

from memory_store import access
from memory_store.access import Grants
from memory_store.late_vectors import BackgroundEmbedding
from memory_store.records import MemoryDraft, SearchResponse, search_request
from memory_store.records.degraded import Code, Degraded, as_parts, from_parts
from memory_store.scopes import EVERYTHING
from memory_store.store import MemoryStore

SAYS_SO = "has no vectors, meaning is not searched there. no memory has a vector yet"
"""Words of the lines about vectors, as a name of a collection that has all of them."""


def codes(response: SearchResponse) -> list[Code]:
    return [line.code for line in response.degraded]


@pytest.fixture
def lacking(store: MemoryStore) -> MemoryStore:
    """A vault of which one memory has no vectors."""
    store.add_many([MemoryDraft(f"The sea wall is checked in spring {n}.") for n in range(30)])
    store.add_many([MemoryDraft("The harbour wall is painted.")], embed=False)
    return store


def test_missing_vectors_have_one_code_however_many_are_missing(
    make_store: Callable[..., MemoryStore],
) -> None:
    store = make_store()
    old = store.add_many([MemoryDraft("The harbour wall is painted.")], embed=False)[0].id
    assert codes(store.search("wall", rerank=False)) == [Code.NOT_EMBEDDED]
    store.add("The sea wall is checked in spring.")
    assert codes(store.search("wall", rerank=False)) == [Code.NOT_EMBEDDED]
    like = store.search("", like=old, rerank=False)
    assert {Code.NOT_EMBEDDED} == {*codes(like)}
    store.reindex()
    assert codes(store.search("wall", rerank=False)) == []


def test_every_missing_thing_has_the_code_of_what_it_is(lacking: MemoryStore) -> None:
    assert Code.NO_RERANKER in codes(lacking.search("wall"))
    assert Code.SEALED in codes(lacking.search('"sea wall"', sealed=True))
    assert Code.TIME in codes(lacking.search("wall", budget_ms=1, reranker="maxsim"))
    assert Code.EXPANSION in codes(lacking.search("wall", recipe="qmd"))
    first = lacking.search("wall", limit=1, rerank=False)
    lacking.add("The garden wall is new.")
    later = lacking.search("wall", limit=1, rerank=False, continue_=first.next)
    assert later.degraded[0].code is Code.CHANGED


def test_a_name_that_reads_like_a_line_is_taken_for_none(store: MemoryStore) -> None:
    """What is being embedded takes the place of no other command."""
    store.collections.create(SAYS_SO)
    for collection in ("personal", SAYS_SO):
        store.add(
            "Der Deich wird im Frühling geprüft, und das Tor im Herbst.",
            topics=["deich"],
            collection=collection,
        )
    store.collections.set(SAYS_SO, analyser="de")
    store.add_many([MemoryDraft("The harbour wall is painted.")], embed=False)
    begun: list[Any] = []
    store.embedded_by(
        BackgroundEmbedding(store, pytest.fail, lambda _, work, stop: begun.append(work))
    )
    lines = store.search("wall", rerank=False).degraded
    (stale,) = [line for line in lines if line.code is Code.STALE]
    (now,) = [line for line in lines if line.code is Code.NOT_EMBEDDED]
    assert begun
    assert stale.command.startswith("memory-store reindex")
    assert now.endswith("What is missing is being embedded now.")
    assert now.command == ""


def test_a_searcher_gets_the_code_without_what_the_line_names(lacking: MemoryStore) -> None:
    lacking.collections.create("divorce")
    lacking.add_many([MemoryDraft("A wall of paper", collection="divorce")], embed=False)
    asked = search_request("wall")
    whole = lacking.search("wall")
    seen = access.search(lacking, Grants(search=EVERYTHING), asked)
    assert "divorce" in "".join(whole.degraded)
    assert "divorce" not in "".join(seen.degraded)
    assert "memory-store" not in "".join(seen.degraded)
    assert {line.command for line in seen.degraded} == {""}
    assert {Code.NOT_EMBEDDED, Code.PERMISSION} <= {*codes(seen)}


def test_programs_get_a_code_for_each_line(lacking: MemoryStore, key_file: Path) -> None:
    for said in _answers(lacking, key_file):
        assert len(said["degraded"]) == len(said["degraded_codes"]) > 0
        assert {type(line) for line in said["degraded"]} == {str}
        assert "not-embedded" in said["degraded_codes"]


def _answers(store: MemoryStore, key_file: Path) -> Iterator[dict[str, Any]]:
    yield store.search("wall").as_dict()
    words = ["search", str(store.path), "wall", "--json", "--key-file", str(key_file)]
    yield json.loads(run(*words).stdout)


def test_a_line_goes_through_a_pipe_with_its_parts() -> None:
    line = Degraded(Code.STALE, "'a' is old.", "memory-store reindex", names=True)
    as_json = msgspec.json.encode(line, enc_hook=as_parts)
    for again in (
        pickle.loads(pickle.dumps(line)),
        msgspec.json.decode(as_json, type=Degraded, dec_hook=from_parts),
    ):
        assert (again, type(again)) == ("'a' is old. Try: memory-store reindex", Degraded)
        parts = (again.code, again.sentence, again.command, again.names)
        assert parts == (Code.STALE, "'a' is old.", "memory-store reindex", True)
