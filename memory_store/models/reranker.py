"""Cross-encoders behind one small interface: FlashRank, from files on this machine.

Boundary: query and passages are opened text. They are handed to a model in this process, kept
by nothing here and never logged. Loading never opens a connection: FlashRank would download a
missing model by itself, without a time-out, a checksum or a question, so it is only ever shown
folders that are complete (``memory-store models get`` fetches one on request), and whose files
are those that are pinned or recorded where the folder is ours.
"""

from __future__ import annotations

import functools
import logging
import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from memory_store.configuration import chosen
from memory_store.errors import BadInputError, ModelUnavailableError
from memory_store.models import pins
from memory_store.models.calibration import CALIBRATIONS, Calibration, fitted_for
from memory_store.models.embedder import UNKNOWN, default_threads, quiet_runtime
from memory_store.models.places import MODEL_NAME_FORM
from memory_store.models.presets import preset
from memory_store.models.time_limit import batches_in_time
from memory_store.models.token_vectors import encodable
from memory_store.paths import MODEL_VARIABLE, RERANKER_VARIABLE, cache_folder, home_path

if TYPE_CHECKING:
    from flashrank import Ranker

DEFAULT_RERANKER = "ms-marco-TinyBERT-L-2-v2"
NO_DEFAULT = ""  # models get without a name fetches an embedding model
BATCH_SIZE = 16  # 64 pairs in sorted batches of 16 cost 168 ms, at once 295 ms
MAX_TOKENS = 512  # query and passage together: what these models were trained on
MAX_QUERY_TOKENS = 128  # of them at most for the query, so that a passage always has room
# A passage is cut here before it is tokenised at all: no text has so few tokens per character.
MAX_CHARACTERS = 12 * MAX_TOKENS
COMPANIONS = ("tokenizer.json", "config.json", "tokenizer_config.json", "special_tokens_map.json")


class Reranker(Protocol):
    """A loaded cross-encoder. Safe to use from many threads at once.

    ``calibration`` maps a raw score to a comparable 0-1; ``None`` for a model without one.
    ``fingerprint`` is a hex SHA-256: equal if and only if equal pairs get equal scores.
    """

    @property
    def name(self) -> str: ...
    @property
    def calibration(self) -> Callable[[float], float] | None: ...
    @property
    def fingerprint(self) -> str: ...

    def score(
        self, query: str, passages: Sequence[str], *, deadline: float | None = None
    ) -> list[float | None]:
        """A raw score 0-1 for each passage, in their order, best candidates first.

        ``deadline`` is a :func:`time.monotonic` moment: passages whose reading would not end
        before it get ``None``. The first passages are served first.
        """
        ...


class FlashRankReranker:
    """A :class:`Reranker` that FlashRank loads and runs."""

    def __init__(self, name: str, folder: Path, threads: int) -> None:
        self.name = name
        self._folder = folder
        self._ranker = _load(folder, threads)

    @functools.cached_property
    def fingerprint(self) -> str:
        """Hex SHA-256 over the graph, the tokenizer and the window."""
        return fingerprint(self._folder)

    @property
    def calibration(self) -> Calibration | None:
        """The curve fitted to this very model, else the published one of its name."""
        for fitted in fitted_for(self.name):
            if fitted.fingerprint == self.fingerprint:
                return Calibration(fitted.centre, fitted.slope)
        return CALIBRATIONS.get(self.name)

    def score(
        self, query: str, passages: Sequence[str], *, deadline: float | None = None
    ) -> list[float | None]:
        """Raw scores in the order of ``passages``; equal passages are scored once.

        Raises :class:`ModelUnavailableError` where the model fails.
        """
        clean = [encodable(passage[:MAX_CHARACTERS]) for passage in passages]
        distinct = list(dict.fromkeys(clean))
        asked = self._shortened(encodable(query))
        scores: dict[str, float] = {}
        lengths = [min(len(asked) + len(passage), 4 * MAX_TOKENS) + 1 for passage in distinct]
        for batch in batches_in_time(lengths, BATCH_SIZE, deadline):
            scores.update(self._score_batch(asked, [distinct[place] for place in batch]))
        return [scores.get(passage) for passage in clean]

    def unread_tokens(self, text: str) -> tuple[int, int]:
        """How many tokens of ``text`` are unknown, or single letters that are not of a to z, and
        how many there are. Of models that may have been made for such letters none is."""
        if self.name not in CALIBRATIONS:
            return 0, 0
        encoded = self._ranker.tokenizer.encode(encodable(text), add_special_tokens=False)
        parts = [text[start:end] for start, end in encoded.offsets]
        words = [
            (token, part)
            for token, part in zip(encoded.tokens, parts, strict=True)
            if any(map(str.isalpha, part))
        ]
        unread = (one in UNKNOWN or (len(part) == 1 and not part.isascii()) for one, part in words)
        return sum(unread), len(words)

    def _score_batch(self, query: str, batch: Sequence[str]) -> dict[str, float]:
        from flashrank import RerankRequest

        rows = [{"text": passage} for passage in batch]
        try:
            with np.errstate(over="ignore"):  # a logit of -100 overflows on its way to a score of 0
                ranked = self._ranker.rerank(RerankRequest(query=query, passages=rows))
        except Exception as error:  # noqa: BLE001 - onnxruntime's share no narrower base class
            raise ModelUnavailableError(
                f"The reranker {self.name} failed on a text ({type(error).__name__}).",
                "memory-store doctor DB",
            ) from None  # it may quote a token of the text
        scored = {row["text"]: float(row["score"]) for row in ranked}
        return {text: score for text, score in scored.items() if math.isfinite(score)}

    def _shortened(self, query: str) -> str:
        """``query`` cut to its share of the window. FlashRank cuts the longer of the two texts to
        fit, which from here on is always the passage."""
        start = query[: 12 * MAX_QUERY_TOKENS]
        offsets = self._ranker.tokenizer.encode(start, add_special_tokens=False).offsets
        return start[: offsets[:MAX_QUERY_TOKENS][-1][1]] if offsets else start


_loaded: dict[tuple[Path, int], FlashRankReranker] = {}
_loading = threading.Lock()


def load_reranker(name_or_folder: str | None = None, *, threads: int | None = None) -> Reranker:
    """The cross-encoder of that FlashRank name or folder, loaded once per process.

    The default is ``MEMORY_STORE_RERANKER``, else TinyBERT-L-2. Never uses the network. Raises
    :class:`ModelUnavailableError`, whose remedy fetches the model.
    """
    with _loading:
        asked = chosen_reranker(name_or_folder)
        folder = _located(asked, by_asker=name_or_folder is not None)
        if folder is None:
            raise ModelUnavailableError(
                f"The reranker {asked} is not on this machine.", pins.command_for(asked, NO_DEFAULT)
            )
        fitted_for(folder.name)  # raises where the calibrations cannot be read
        key = (folder, threads or default_threads())
        if key not in _loaded:
            check_folder(folder)
            _loaded[key] = FlashRankReranker(folder.name, *key)
        return _loaded[key]


def check_folder(folder: Path) -> None:
    """Refuse a model in our own folder whose files are not those that are pinned or recorded."""
    if folder.parent == rerankers_folder().resolve():
        pins.check_files(folder.name, folder, pins.command_for(folder.name, NO_DEFAULT))


def locate_reranker(name_or_folder: str | None = None) -> Path | None:
    """The folder :func:`load_reranker` loads from; ``None`` when there is none. Loads nothing.

    Raises :class:`ModelUnavailableError` for what is neither a FlashRank name nor a folder, and
    for a folder that is not complete.
    """
    return _located(chosen_reranker(name_or_folder), by_asker=name_or_folder is not None)


def _located(asked: str, *, by_asker: bool) -> Path | None:
    named = rerankers_folder(make=False) / asked
    folder = named if os.path.isdir(named) else home_path(asked)
    if os.path.isdir(folder):  # unlike is_dir, takes any name
        folder = folder.resolve()
        missing = [name for name in COMPANIONS if not (folder / name).is_file()]
        missing += [] if len(list(folder.glob("*.onnx"))) == 1 else ["one .onnx file"]
        if missing:
            raise ModelUnavailableError(
                f"The reranker folder {folder} lacks {', '.join(missing)}.",
                "memory-store doctor DB",
            )
        return folder
    if MODEL_NAME_FORM.fullmatch(asked) is None:
        raise ModelUnavailableError(
            f"There is no reranker folder {asked!r} on this machine.", "memory-store doctor DB"
        )
    if by_asker:
        from flashrank.Config import model_file_map

        if asked not in model_file_map:
            raise BadInputError(
                f"reranker: {asked!r} is neither a folder nor one of {', '.join(model_file_map)}",
                "reranker",
            )
    return None


def fingerprint(folder: Path) -> str:
    """Hex SHA-256 over all that decides a score: the graph, the tokenizer and the window."""
    (graph,) = folder.glob("*.onnx")
    return pins.fingerprint(MAX_TOKENS, map(pins.digest_of, (graph, folder / "tokenizer.json")))


def rerankers_folder(*, make: bool = True) -> Path:
    """Where cross-encoders live, one folder each: never FlashRank's own default, ``/tmp``.

    ``make=False`` is for looking into it alone.
    """
    return cache_folder(make=make) / "rerankers"


def chosen_reranker(name_or_folder: str | None) -> str:
    """What was asked for, else what the environment says, else the preset's, else the default."""
    if asked := name_or_folder or chosen(RERANKER_VARIABLE):
        return asked
    found = preset(chosen(MODEL_VARIABLE))
    return (found.reranker if found is not None else None) or DEFAULT_RERANKER


def _load(folder: Path, threads: int) -> Ranker:
    """FlashRank's ranker of the model in ``folder``, with ``threads`` threads."""
    import onnxruntime
    from flashrank import Ranker
    from flashrank.Config import model_file_map

    quiet_runtime()
    (file,) = folder.glob("*.onnx")
    # FlashRank loads a folder only if this map names the file in it.
    known = {name: one for name, one in model_file_map.items() if name == folder.name}
    model_file_map[folder.name] = file.name
    try:
        with _root_logger_untouched():
            ranker = Ranker(folder.name, cache_dir=str(folder.parent), max_length=MAX_TOKENS)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = threads
        # Two threads that wait in a loop for each other take 1.5 times the CPU on small batches,
        # and on a busy machine twice as long.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        # FlashRank has no thread setting: a session of its own takes every core there is.
        ranker.session = onnxruntime.InferenceSession(
            str(file), sess_options=options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # onnxruntime's errors share no narrower base class
        raise ModelUnavailableError(
            f"The reranker in {folder} cannot be loaded: {error}", "memory-store doctor DB"
        ) from error
    finally:
        del model_file_map[folder.name]
        model_file_map.update(known)
    return ranker


@contextmanager
def _root_logger_untouched() -> Iterator[None]:
    """FlashRank calls ``logging.basicConfig``, which does nothing where a handler is set."""
    placeholder = logging.NullHandler()
    logging.getLogger().addHandler(placeholder)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(placeholder)
