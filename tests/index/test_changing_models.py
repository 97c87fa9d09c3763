"""A vault changes its model: what the earlier one made is searched by it until it is renewed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memory_store.errors import ModelUnavailableError
from memory_store.records import MemoryDraft
from memory_store.records.degraded import Code
from memory_store.session.reindex import BATCH
from memory_store.store import MemoryStore

NOTES = ("The automobile needs new brake pads", "The physician signs the form")
MORE = 2 * BATCH  # memories beside those: three batches


@pytest.fixture
def earlier_model(tiny_model: Path, tmp_path: Path) -> Path:
    """The model that the vault begins with, in a folder that a test may take away."""
    return Path(shutil.copytree(tiny_model, tmp_path / "earlier" / tiny_model.name))


@pytest.fixture
def begun(make_store: Callable[..., MemoryStore], earlier_model: Path) -> MemoryStore:
    """A vault of which the first model embedded everything."""
    store = make_store("changing.db", embedder=str(earlier_model))
    store.add_many(
        [MemoryDraft(NOTES[0])]
        + [MemoryDraft(f"Number {n} stands alone") for n in range(MORE)]
        + [MemoryDraft(NOTES[1])]
    )
    return store


def stopped_in_the_middle(store: MemoryStore, model: Path) -> None:
    """Change the model, and stop after the first batch."""

    def stop(_: str, done: int, total: int | None) -> None:
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.reindex(embedder=str(model), progress=stop)


def found(store: MemoryStore, query: str, **options: object) -> list[str]:
    return [row.preview for row in store.search(query, **{"mode": "vector", **options}).rows]


def changing(store: MemoryStore, query: str = "car") -> list[str]:
    """What a search by meaning says of memories that the present model did not embed."""
    lines = store.search(query, mode="vector").degraded
    return [line for line in lines if line.code is Code.NOT_EMBEDDED]


def test_each_memory_is_found_by_the_model_that_embedded_it(
    begun: MemoryStore, second_model: Path
) -> None:
    stopped_in_the_middle(begun, second_model)
    assert begun.embedding().done == BATCH
    assert NOTES[0] in found(begun, "car", limit=2)  # among the first: renewed
    assert NOTES[1] in found(begun, "doctor", limit=2)  # the last one: not yet
    (line,) = changing(begun)
    assert f"{BATCH} of {MORE + 2} memories are compared by {second_model.name} by now" in line
    assert "the others still by" in line
    assert line.command.startswith("memory-store reindex")
    assert not any("earlier settings" in line for line in begun.search("car").degraded)


def test_scores_of_what_is_not_renewed_are_as_before(
    begun: MemoryStore, second_model: Path
) -> None:
    before = {row.id: row.vector_score for row in begun.search("doctor", mode="vector").rows}
    stopped_in_the_middle(begun, second_model)
    after = {row.id: row for row in begun.search("doctor", mode="vector", limit=32).rows}
    same = [one for one in before if one in after and after[one].vector_score == before[one]]
    assert same


def test_it_goes_on_and_ends_with_one_model(begun: MemoryStore, second_model: Path) -> None:
    stopped_in_the_middle(begun, second_model)
    assert [one.embedder for one in begun._opened.vault.settings.earlier] != []
    assert begun.reindex() == MORE + 2 - BATCH
    assert changing(begun) == []
    assert begun._opened.vault.settings.earlier == ()
    assert begun.search("car").degraded == begun.search("doctor").degraded


def test_the_background_goes_on_with_it(begun: MemoryStore, second_model: Path) -> None:
    stopped_in_the_middle(begun, second_model)
    assert begun.embed_missing() == ()
    assert changing(begun) == []
    assert begun._opened.vault.settings.earlier == ()


def test_opened_again_it_is_searched_by_both(
    begun: MemoryStore, second_model: Path, key_file: Path
) -> None:
    stopped_in_the_middle(begun, second_model)
    begun.lock()
    with MemoryStore.open(begun.path, key_file=key_file, embedder=str(second_model)) as store:
        assert NOTES[1] in found(store, "doctor", limit=2)
        assert len(changing(store)) == 1


def test_without_the_files_of_the_earlier_model_it_says_so(
    begun: MemoryStore, second_model: Path, earlier_model: Path, key_file: Path
) -> None:
    stopped_in_the_middle(begun, second_model)
    begun.lock()
    shutil.rmtree(earlier_model)
    with MemoryStore.open(begun.path, key_file=key_file, embedder=str(second_model)) as store:
        answer = store.search("physician automobile", rerank=False)
        assert {NOTES[0], NOTES[1]} <= {row.preview for row in answer.rows}
        said = " ".join(answer.degraded)
        assert "is not on this machine any more" in said
        left = (
            f"{MORE + 2 - BATCH} of {MORE + 2} memories have vectors of {earlier_model.name} alone"
        )
        assert left in said
        assert found(store, "car")[0] == NOTES[0]


def test_another_choice_for_a_collection_keeps_its_vectors_at_work(
    begun: MemoryStore, second_model: Path
) -> None:
    before = found(begun, "car", limit=5)
    begun.collections.set("personal", embedder=str(second_model))
    assert found(begun, "car", limit=5) == before
    assert begun.reindex() == MORE + 2
    assert changing(begun) == []


def test_like_a_memory_that_is_not_renewed(begun: MemoryStore, second_model: Path) -> None:
    like = begun.add("The physician comes in May").id
    before = [row.preview for row in begun.search("", like=like, limit=1).rows]
    stopped_in_the_middle(begun, second_model)
    assert [row.preview for row in begun.search("", like=like, limit=1).rows] == before


def test_with_neither_model_nothing_that_is_there_is_lost(
    begun: MemoryStore, second_model: Path, earlier_model: Path, key_file: Path
) -> None:
    """A later reindex without the new model leaves the vectors of the earlier one in place."""
    gone = Path(shutil.copytree(second_model, earlier_model.parent / "gone" / second_model.name))
    stopped_in_the_middle(begun, gone)
    begun.lock()
    shutil.rmtree(gone.parent)
    with MemoryStore.open(begun.path, key_file=key_file) as store:
        with pytest.raises(ModelUnavailableError):
            store.reindex()
        assert NOTES[1] in found(store, "doctor", limit=2)


KILLED = """
import os, signal, sys
from memory_store.store import MemoryStore

def stop(_, done, total):
    if done >= int(sys.argv[4]):
        os.kill(os.getpid(), signal.SIGKILL)

with MemoryStore.open(sys.argv[1], key_file=sys.argv[2], embedder=sys.argv[5]) as store:
    store.reindex(embedder=sys.argv[3], progress=stop)
"""


@pytest.mark.parametrize("after", [0, BATCH])
def test_a_process_that_is_killed_in_the_middle_loses_nothing(
    begun: MemoryStore, second_model: Path, earlier_model: Path, key_file: Path, after: int
) -> None:
    begun.lock()
    named = [begun.path, key_file, second_model, str(after), earlier_model]
    ended = subprocess.run([sys.executable, "-c", KILLED, *named], env=os.environ, check=False)
    assert ended.returncode == -signal.SIGKILL
    with MemoryStore.open(begun.path, key_file=key_file, embedder=str(second_model)) as store:
        assert store.stats()["memories"] == MORE + 2
        assert NOTES[0] in found(store, "car", limit=2)
        assert NOTES[1] in found(store, "doctor", limit=2)
        assert store.reindex() == MORE + 2 - after
        assert changing(store) == []
        assert store.verify()["failures"] == []
