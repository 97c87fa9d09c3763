"""Embedding models behind one small interface: FastEmbed, from files on this machine.

:mod:`memory_store.models.static` has those that only look vectors up.

Boundary: texts are handed to a model in this process and nowhere else. Nothing here opens a
connection: FastEmbed would download a missing model by itself, so it is only ever shown folders.
The files of a model in our cache are compared with their pins (:mod:`memory_store.models.pins`)
before they are loaded. FastEmbed (0.3 s) is imported when a model is loaded, not before.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from memory_store.configuration import chosen
from memory_store.errors import ModelUnavailableError
from memory_store.models import offline, pins
from memory_store.models.places import (
    DOCTOR,
    ModelPlace,
    build_known,
    check_place,
    chosen_embedder,
    command_for,
    locate_embedder,
)
from memory_store.models.token_vectors import TokenVectors, Vectors, encodable, unit_vectors
from memory_store.paths import MODEL_VARIABLE, cache_folder

if TYPE_CHECKING:
    from fastembed import TextEmbedding
    from tokenizers import Encoding, Tokenizer

BATCH_SIZE = 16  # measures.md: 8-16 sorted by length; 64 costs twice as much, all of it padding
MAX_THREADS = 4  # above this a small model gains nothing and starves the other legs
WORDS = 10_000  # pieces of a vocabulary that has words, and is not of letters alone
SHORT_PIECE = 4  # letters in the mean: so are cut words that a model was not taught
UNKNOWN = ("[UNK]", "<unk>")  # what tokenizers call a word that they cannot cut into known pieces
FEW = 2  # texts that are not worth a second session

_USUAL_COSINES = {"all-minilm-l6-v2": (0.10, 0.09), "multilingual-e5-small": (0.77, 0.021)}
_MULTILINGUAL = ("multilingual", "bge-m3", "-m3", "labse", "gte-multi")
_E5 = re.compile(r"(?:^|[-_/])e5-(?:small|base|large)(?!.*instruct)")
_ENGLISH = re.compile(r"minilm|-en(-|$)|bge-|gte-|nomic|mxbai|snowflake|arctic|mpnet|clip|potion-")


class Embedder(Protocol):
    """A loaded embedding model. Safe to use from many threads at once.

    ``dimensions`` is the length of a vector, ``max_tokens`` the model's window (the tokens of a
    text, a title and the two special ones must fit in it; the rest is not read), ``fingerprint``
    a hex SHA-256: vectors may be compared if and only if their models' fingerprints are equal.
    Whatever embeds raises :class:`ModelUnavailableError` where the model fails on a text, or
    answers with what are no vectors of that length.
    """

    name: str
    dimensions: int
    max_tokens: int
    fingerprint: str

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors [n, d] of ``texts``, in their order; n may be 0.

        They are the caller's own, who may overwrite them.
        """
        ...

    def embed_query(self, text: str) -> Vectors:
        """The unit vector [d] of a query."""
        ...

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """The unit vectors [n, d] of several queries, each as if it were embedded alone."""
        ...

    def token_offsets(self, text: str) -> list[tuple[int, int]]:
        """Character offsets (start, end) in ``text`` of each of its tokens, however long it is."""
        ...

    def count_tokens(self, text: str) -> int:
        """How many tokens ``text`` has, special tokens not counted."""
        ...

    def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        """What the model makes of each token of ``texts``, in one batch (so: of like length).

        Raises :class:`ModelUnavailableError` for a model that gives one vector a text only.
        """
        ...


class FastEmbedEmbedder:
    """An :class:`Embedder` that FastEmbed runs from a folder of model files.

    A query runs on one thread: it is too short to share, and the others would burn a core each
    while they wait for their share (MiniLM on two cores: 3.3 ms of processor time a query, with two
    threads 9.6, and no sooner done). Many texts at once run in a session of their own, on all.
    """

    def __init__(self, place: ModelPlace, threads: int) -> None:
        self.name = place.name
        self._place, self._threads = place, threads
        digests = check_place(place)
        self._model = _start(place, threads=1)
        self._model_for_many: TextEmbedding | None = None
        running: Any = self._model.model  # the class FastEmbed chose, its own tokenizer inside
        self._limited: Tokenizer = running.tokenizer
        window = int((self._limited.truncation or {})["max_length"])
        self._asks, self._holds = _prompts(place)
        self.fingerprint = pins.fingerprint(
            window,
            (
                digests.get(file) or pins.digest_of(place.folder / file)
                for file in (place.file, "tokenizer.json")
            ),
            (self._asks, self._holds),
        )
        self._lock = threading.Lock()
        self.max_tokens = window
        if self._holds:
            self.max_tokens -= self.count_tokens(self._holds)
        self.dimensions = 0
        self.dimensions = int(self.embed_query("").shape[0])

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors [n, d]. Equal texts are embedded once, long ones first.

        Batches hold texts of like length, since each is padded to its longest. The order of
        ``texts`` makes no difference to the vectors.
        """
        if not texts:
            return np.empty((0, self.dimensions), dtype=np.float32)
        clean = [encodable(text) for text in texts]
        distinct = sorted(set(clean), key=lambda text: (-len(text), text))
        row = {text: i for i, text in enumerate(distinct)}
        model = self._model if len(distinct) <= FEW else self._for_many()
        read = [self._holds + text for text in distinct]
        vectors = self._vectors(
            lambda: model.passage_embed(read, batch_size=BATCH_SIZE), len(distinct)
        )
        in_order: Vectors = vectors[[row[text] for text in clean]]
        vectors.fill(0)  # freed memory keeps what stood in it, past a lock
        return in_order

    def embed_query(self, text: str) -> Vectors:
        """The unit vector [d] of a query."""
        vector: Vectors = self.embed_queries([text])[0]
        return vector

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors [n, d] in one call, each text in a batch of its own.

        A batch is padded to its longest text: a question, two rewordings and a passage together
        cost twice what they cost one by one (81 against 37 ms of processor time).
        """
        if not texts:
            return np.empty((0, self.dimensions), dtype=np.float32)
        read = [self._asks + encodable(text) for text in texts]
        return self._vectors(lambda: self._model.query_embed(read, batch_size=1), len(read))

    def token_offsets(self, text: str) -> list[tuple[int, int]]:
        """Character offsets of each token of ``text``; nothing is truncated or added."""
        return [
            span
            for part in self._encoded(text)
            for span, real in zip(part.offsets, part.attention_mask, strict=True)
            if real
        ]

    def count_tokens(self, text: str) -> int:
        """How many tokens ``text`` has, special tokens not counted."""
        return sum(sum(part.attention_mask) for part in self._encoded(text))

    def unread_tokens(self, text: str) -> tuple[int, int]:
        """How many tokens of ``text`` are not read, and how many there are.

        Not read is what is unknown, a single letter that is not of a to z (to a model of all
        languages it may be a word), and a word of these letters in crumbs: *prluzgdtx* is
        pr-lu-zg-dt-x. Digits and punctuation stand alone in every language and do not count.
        """
        name, pieces = self.name.casefold(), self._limited.token_to_id(UNKNOWN[0]) is not None
        letters = pieces and not any(mark in name for mark in _MULTILINGUAL)
        knows_words = self._limited.get_vocab_size() >= WORDS
        unread, tokens = 0, 0
        for word in self._spelled_words(text):
            crumbs = knows_words and _in_crumbs([part for _, part in word])
            for token, part in word:
                alone = letters and len(part) == 1 and not part.isascii()
                unread += crumbs or alone or token in UNKNOWN
            tokens += len(word)
        return unread, tokens

    def knows(self, word: str) -> bool:
        """Whether a word is a token of the model's vocabulary, or a few long pieces of it."""
        pieces = [part for spelled in self._spelled_words(word) for _, part in spelled]
        short = len(pieces) > 1 and len("".join(pieces)) <= SHORT_PIECE * len(pieces)
        return not (short and self._limited.get_vocab_size() >= WORDS)

    def _spelled_words(self, text: str) -> Iterator[list[tuple[str, str]]]:
        """The tokens with letters, each with its letters, by the word that they are pieces of."""
        for encoded in self._encoded(text):
            word: list[tuple[str, str]] = []
            last = -1
            for token, (start, end) in zip(encoded.tokens, encoded.offsets, strict=True):
                part = text[start:end]
                if not (part.isalpha() or any(map(str.isalpha, part))):
                    continue
                if word and (start != last or part[0].isspace()):
                    yield word
                    word = []
                word.append((token, part.strip()))
                last = end
            if word:
                yield word

    def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        """The vectors of each token of ``texts`` before they are pooled into one."""
        if not texts:
            return []
        clean = [encodable(text) for text in texts]
        running: Any = self._for_many().model
        output = self._run(lambda: running.onnx_embed(clean).model_output)
        if output.ndim != 3:
            raise ModelUnavailableError(
                f"The model {self.name} gives no vectors of tokens.", DOCTOR
            )
        encodings = self._limited.encode_batch(clean)
        read = []
        for matrix, one in zip(output, encodings, strict=True):
            real = [n for n, special in enumerate(one.special_tokens_mask) if not special]
            offsets = tuple(one.offsets[n] for n in real)
            read.append(TokenVectors(unit_vectors(matrix[real]), offsets))
        return read

    def _vectors(self, work: Callable[[], Iterable[NDArray[Any]]], count: int) -> Vectors:
        """The unit vectors [count, d] that the model makes."""
        made: list[NDArray[Any]] = self._run(lambda: list(work()))
        length = self.dimensions or np.size(made[0])
        if len(made) != count or any(np.shape(one) != (length,) for one in made):
            raise self._failed("vectors of another number or length than it should")
        vectors = unit_vectors(made)
        for one in made:
            if one.flags.writeable:
                one.fill(0)
        if not np.isfinite(vectors).all():
            raise self._failed("a vector with what is no number")
        return vectors

    def _run(self, work: Callable[[], Any]) -> Any:
        try:
            return work()
        except Exception as error:  # noqa: BLE001 - onnxruntime's share no narrower base class
            raise self._failed(type(error).__name__) from None  # it may quote a token of the text

    def _failed(self, how: str) -> ModelUnavailableError:
        return ModelUnavailableError(f"The model {self.name} failed on a text ({how}).", DOCTOR)

    def _for_many(self) -> TextEmbedding:
        if self._threads == 1:
            return self._model
        with self._lock:
            if self._model_for_many is None:
                self._model_for_many = _start(self._place, self._threads, like=self._model)
            return self._model_for_many

    def _encoded(self, text: str) -> list[Encoding]:
        """The tokens of ``text``, a window of them after the other; nothing is left out or added.

        FastEmbed's own tokenizer serves: it cuts a text, but keeps what it cut off. A second one
        without a limit would cost 285 MB and a second for a multilingual vocabulary.
        """
        encoding = self._limited.encode(encodable(text), add_special_tokens=False)
        return [encoding, *encoding.overflowing]


def _prompts(place: ModelPlace) -> tuple[str, str]:
    """What a model reads before a query and before a text; empty for most.

    Sentence-transformers keep it in a file. The E5 models were trained with these two words,
    whether the file is there or not.
    """
    file = place.folder / "config_sentence_transformers.json"
    said = json.loads(file.read_text("utf-8")).get("prompts") if file.is_file() else None
    if isinstance(said, dict) and {"query", "passage"} <= said.keys():
        return str(said["query"]), str(said["passage"])
    return ("query: ", "passage: ") if _E5.search(place.name.casefold()) else ("", "")


def languages_of(embedder: Embedder) -> frozenset[str]:
    """The languages an embedding model was made for; empty: all of them, or not known.

    A model may say so itself (``languages``); else its name is looked at, as sentence-transformers
    and FastEmbed name them: ``multilingual``, ``-m3``, a language code, and English otherwise.
    """
    said = getattr(embedder, "languages", None)
    return languages_by_name(embedder.name) if said is None else frozenset(said)


def languages_by_name(model: str) -> frozenset[str]:
    """The same by a model's name alone, without the model."""
    name = model.casefold().rsplit("/", 1)[-1]
    if any(mark in name for mark in _MULTILINGUAL):
        return frozenset()
    coded = re.search(r"-(de|es|fr|zh)(?:-|$)", name)  # jina-embeddings-v2-base-de, bge-small-zh
    return frozenset({"en", coded[1]} if coded else {"en"} if _ENGLISH.search(name) else ())


def default_threads() -> int:
    """Threads for one model: the cores this process may use, at most :data:`MAX_THREADS`."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux only; respects containers
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return min(cores, MAX_THREADS)


_loaded: dict[tuple[Path, int], Embedder] = {}
_places: dict[tuple[str, Path, str | None], ModelPlace] = {}
_loading = threading.Lock()
_building = threading.Lock()


def usual_cosines(embedder: Embedder) -> tuple[float, float] | None:
    """Mean and standard deviation of a model's cosines between questions and texts that do not
    answer them: all-MiniLM-L6-v2's on the demo, SciFact and DBpedia, multilingual-e5-small's on the
    demo and on XQuAD in four languages. ``None``: not known.
    """
    name = embedder.name.casefold()
    return next((usual for known, usual in _USUAL_COSINES.items() if known in name), None)


def load_embedder(name_or_folder: str | None = None, *, threads: int | None = None) -> Embedder:
    """The embedding model of that name or folder, loaded once per process.

    The default is ``MEMORY_STORE_MODEL``, else all-MiniLM-L6-v2. A name is looked for in our
    cache folder; two models are built there from the weights of an extra. Never uses the network.
    Raises :class:`ModelUnavailableError`, whose remedy fetches the model.

    Every search asks for its model here: one that is loaded waits for no other that is being
    loaded, and one that is on this machine for none that is being built.
    """
    place = _place_of(chosen_embedder(name_or_folder))
    key = (place.folder, threads or default_threads())
    if key not in _loaded:
        with _loading:
            if key not in _loaded:
                _loaded[key] = _loaded_from(place, key[1])
    return _loaded[key]


def _place_of(name: str) -> ModelPlace:
    """Where the model is. What was found is not looked for again while it is there."""
    known = name, cache_folder(make=False), chosen(MODEL_VARIABLE)
    place = _places.get(known)
    if place is None or not (place.folder / place.file).is_file():
        place = _places[known] = locate_embedder(name) or _built_once(name)
    return place


def _loaded_from(place: ModelPlace, threads: int) -> Embedder:
    if place.is_static:
        from memory_store.models.static import StaticEmbedder

        return StaticEmbedder(place)
    return FastEmbedEmbedder(place, threads)


def _built_once(name: str) -> ModelPlace:
    if offline.can_build(name):
        with _building:
            return locate_embedder(name) or build_known(name)
    known = pins.known_model(name)
    if known is None and "/" not in name:
        raise ModelUnavailableError(f"There is no model folder {name!r} on this machine.", DOCTOR)
    shown = repr(name) if known is None else known.name
    raise ModelUnavailableError(f"The model {shown} is not on this machine.", command_for(name))


def _start(place: ModelPlace, threads: int, like: TextEmbedding | None = None) -> TextEmbedding:
    """The model, running. With the tokenizer of one that is ``like`` it, which runs already."""
    files = (place.file, "tokenizer.json", "tokenizer_config.json", "config.json")
    missing = [name for name in files if not (place.folder / name).is_file()]
    if missing:
        raise ModelUnavailableError(
            f"The model folder {place.folder} lacks {', '.join(missing)}.", DOCTOR
        )
    from fastembed import TextEmbedding

    quiet_runtime()
    try:
        started = TextEmbedding(
            place.registered or _register(place),
            specific_model_path=str(place.folder),
            cache_dir=str(place.folder),  # FastEmbed wants one; nothing is put there
            threads=threads,
            cuda=False,
            lazy_load=like is not None,
        )
        if like is not None:
            running, first = cast(Any, started.model), cast(Any, like.model)
            running.tokenizer = first.tokenizer
            running.special_token_to_id = first.special_token_to_id
            running._load_tokenizer = lambda model_dir: None
            running.load_onnx_model()
            return started
        tokenizer = cast(Any, started.model).tokenizer
        if tokenizer.padding is not None:  # older FastEmbeds keep a length that the file fixes
            tokenizer.enable_padding(**{**tokenizer.padding, "length": None})
        return started
    except Exception as error:  # onnxruntime's errors share no narrower base class
        raise ModelUnavailableError(
            f"The model in {place.folder} cannot be loaded: {error}", DOCTOR
        ) from error


def quiet_runtime() -> None:
    """Let onnxruntime write no errors, which are raised besides (they name tokens of texts), and
    report nothing to its maker, also where another package loaded it first."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)  # fatal ones alone
    onnxruntime.disable_telemetry_events()


def _register(place: ModelPlace) -> str:
    """Register a folder that FastEmbed does not know, and how to pool its output; the name given.

    Pooling is what sentence-transformers' ``1_Pooling/config.json`` says, else the mean.
    """
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    name = f"folder:{place.folder}"
    if any(row["model"] == name for row in TextEmbedding.list_supported_models()):
        return name
    pooling_file = place.folder / "1_Pooling" / "config.json"
    pooling = json.loads(pooling_file.read_text("utf-8")) if pooling_file.is_file() else {}
    first_token = bool(pooling.get("pooling_mode_cls_token"))
    TextEmbedding.add_custom_model(
        name,
        pooling=PoolingType.CLS if first_token else PoolingType.MEAN,
        normalization=True,
        sources=ModelSource(url=place.folder.as_uri()),
        dim=0,  # unused: the dimensions are read off a vector
        model_file=place.file,
    )
    return name


def _in_crumbs(pieces: Sequence[str]) -> bool:
    """Whether a word of the letters a to z is cut into pieces of less than two letters in the mean.

    So are most words of random letters, and next to none of English, German and Spanish questions.
    """
    return (
        len(pieces) > 1 and all(map(str.isascii, pieces)) and len("".join(pieces)) < 2 * len(pieces)
    )
