"""The reranker interface, on a tiny real cross-encoder that FlashRank loads."""

from __future__ import annotations

import logging
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import tiny_reranker
from flashrank.Config import model_file_map
from model_hub import Hub

from memory_store.errors import ModelUnavailableError
from memory_store.models import time_limit
from memory_store.models.reranker import (
    BATCH_SIZE,
    DEFAULT_RERANKER,
    Reranker,
    load_reranker,
    locate_reranker,
)

QUERY = "rotate encryption keys"
PASSAGES = [
    "Milk, oats and two lemons.",
    "How to rotate encryption keys without closing the vault.",
    "Keys are under the mat.",
    "",
]


def test_passages_with_more_of_the_query_score_higher(reranker: Reranker) -> None:
    milk, rotation, mat, nothing = reranker.score(QUERY, PASSAGES)
    assert 1 > rotation > mat > milk == nothing >= 0  # type: ignore[operator]


def test_scores_are_plain_floats_in_the_order_of_the_passages(reranker: Reranker) -> None:
    assert reranker.score(QUERY, []) == []
    scores = reranker.score(QUERY, PASSAGES * 30)
    assert [type(score) for score in scores] == [float] * 120
    assert scores[:4] * 30 == scores
    assert reranker.score(QUERY, PASSAGES[::-1]) == scores[:4][::-1]


def test_a_score_does_not_depend_on_the_company(reranker: Reranker) -> None:
    crowd = [f"{'filler ' * (number * 7 % 90)} keys {number}" for number in range(100)]
    alone = [reranker.score(QUERY, [passage])[0] for passage in crowd]
    assert reranker.score(QUERY, crowd) == pytest.approx(alone)


def test_a_passed_deadline_leaves_everything_unscored(reranker: Reranker) -> None:
    assert reranker.score(QUERY, PASSAGES, deadline=time.monotonic() - 1) == [None] * 4
    assert None not in reranker.score(QUERY, PASSAGES, deadline=time.monotonic() + 60)


def test_a_deadline_on_the_way_is_kept_and_serves_the_first_passages(
    reranker: Reranker, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = time.process_time  # of this process: by the other one, busy neighbours count, too
    pace = partial(time_limit.batches_in_time, clock=clock)
    monkeypatch.setattr("memory_store.models.reranker.batches_in_time", pace)
    passages = [f"{'long passage ' * 200} {number}" for number in range(1600)]
    started = clock()
    reranker.score(QUERY, passages[:64])
    block = clock() - started
    scores = reranker.score(QUERY, passages, deadline=clock() + 3 * block)
    read = [index for index, score in enumerate(scores) if score is not None]
    assert 0 < len(read) < len(passages)
    assert read[0] == 0
    assert max(read) < len(passages) // 2  # nothing far behind was read before the first ones


def test_equal_passages_are_read_once(reranker: Reranker, monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    session = reranker._ranker.session  # type: ignore[attr-defined]

    class Counting:
        """The model's own session, and how many rows it was given."""

        def run(self, names: object, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
            read.append(len(inputs["input_ids"]))
            return session.run(names, inputs)  # type: ignore[no-any-return]

    monkeypatch.setattr(reranker._ranker, "session", Counting())  # type: ignore[attr-defined]
    scores = reranker.score(QUERY, PASSAGES * 30)
    assert sum(read) == len(PASSAGES)
    assert max(read) <= BATCH_SIZE
    assert len(set(scores)) <= len(PASSAGES)


def test_the_threads_are_those_asked_for(tiny_cross_encoder: Path) -> None:
    model = load_reranker(str(tiny_cross_encoder), threads=1)
    options = model._ranker.session.get_session_options()  # type: ignore[attr-defined]
    assert (options.intra_op_num_threads, options.inter_op_num_threads) == (1, 1)


def test_a_fingerprint_separates_models(tiny_cross_encoder: Path, tmp_path: Path) -> None:
    known = load_reranker(str(tiny_cross_encoder)).fingerprint
    copy = shutil.copytree(tiny_cross_encoder, tmp_path / "copy")
    assert load_reranker(str(copy)).fingerprint == known
    other = tiny_reranker.build(tmp_path / "other", words=("zeppelin",))
    assert load_reranker(str(other)).fingerprint != known


def test_a_long_passage_gives_way_and_a_long_query_leaves_it_room(reranker: Reranker) -> None:
    filler = "filler " * 4000
    start, end = reranker.score(QUERY, [f"{QUERY} {filler}", f"{filler} {QUERY}"])
    assert start > 0.9 > end  # type: ignore[operator]  # it reads 512 tokens, none after them
    full, empty = reranker.score("keys " * 3000, ["keys", "lemons"])
    assert full > empty  # type: ignore[operator]


@pytest.mark.parametrize("odd", ["\ud800", "\x00", "🌲" * 2000, "漢字" * 2000, " \n\t "])
def test_odd_text_is_scored_like_any_other(odd: str, reranker: Reranker) -> None:
    for scores in (reranker.score(odd, PASSAGES), reranker.score(QUERY, [odd])):
        assert all(score is not None and 0 <= score <= 1 for score in scores)


def test_many_threads_get_the_scores_one_would(reranker: Reranker) -> None:
    alone = reranker.score(QUERY, PASSAGES)
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda _: reranker.score(QUERY, PASSAGES) == alone, range(60)))


def test_loading_leaves_logging_and_flashrank_as_they_were(
    tiny_cross_encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])  # as in a fresh process, where basicConfig acts
    level, models = root.level, dict(model_file_map)
    folder = shutil.copytree(tiny_cross_encoder, tmp_path / "another")
    assert load_reranker(str(folder)).score(QUERY, PASSAGES)
    assert (root.handlers, root.level) == ([], level)
    assert model_file_map == models


def test_a_model_is_loaded_once_and_the_environment_chooses_it(
    reranker: Reranker, tiny_cross_encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_STORE_RERANKER", str(tiny_cross_encoder))
    assert load_reranker() is reranker
    assert reranker.name == "tiny-cross-encoder"


def test_an_absent_model_is_never_downloaded_and_names_the_command_that_fetches_it(
    cache: Path, attempts: list[object], hub: Hub
) -> None:
    with pytest.raises(ModelUnavailableError, match=DEFAULT_RERANKER) as caught:
        load_reranker()
    assert locate_reranker() is None
    assert caught.value.remedy == f"memory-store models get {DEFAULT_RERANKER}"
    assert attempts == hub.asked == []
    assert not list(cache.rglob("*.zip"))


@pytest.mark.parametrize("name", ["/nowhere", "a b", "../x", "x" * 500, "a\0b"])
def test_a_name_that_is_no_model_is_a_clear_error(name: str) -> None:
    with pytest.raises(ModelUnavailableError) as caught:
        load_reranker(name)
    assert repr(name) in str(caught.value)


def test_an_incomplete_or_broken_folder_is_named(tiny_cross_encoder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_cross_encoder, tmp_path / "model")
    (folder / tiny_reranker.FILE).write_bytes(b"cut short")
    with pytest.raises(ModelUnavailableError, match="cannot be loaded"):
        load_reranker(str(folder))
    (folder / tiny_reranker.FILE).unlink()
    with pytest.raises(ModelUnavailableError, match=r"lacks one \.onnx file"):
        load_reranker(str(folder))
