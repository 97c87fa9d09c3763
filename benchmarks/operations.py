"""What is measured: each operation of ours beside its peer, on one corpus."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from benchmarks.corpus import Corpus, write_corpus
from benchmarks.measuring import Spent, commands_side_by_side, side_by_side, spent_on
from benchmarks.peers import (
    Fts5,
    NullCipher,
    decrypt_bytes,
    index_in_fts5,
    matmul_nearest,
    read_every_byte,
    vec0_nearest,
)
from benchmarks.report import Line, Proportion
from benchmarks.vaults import import_with_random_vectors, new_vault, random_units, snapshot_of
from memory_store.crypto import sealing
from memory_store.index.entries import embedded_text, text_windows
from memory_store.index.vectors import make_vector_index
from memory_store.models.embedder import Embedder
from memory_store.records import SearchOptions
from memory_store.search.pipeline import rank
from memory_store.store import MemoryStore

NEAREST = 64
REPEATS = 3
COLD_STARTS = 7
VECTOR_QUERIES = 25
EMBEDDED_NOTES = 32
BARE_IMPORTS = "import click, cryptography, numpy"


class Bench:
    """One corpus, its vaults, and what is measured on them."""

    def __init__(self, folder: Path, size: int, model: Embedder | None) -> None:
        self.folder = folder
        self.size = size
        self.model = model
        self.key_file = folder / "keys" / "bench.key"
        self.key_file.parent.mkdir(parents=True)
        self.corpus: Corpus = write_corpus(folder / "notes", size)
        self.bare = folder / "words.db"
        self.full = folder / "vectors.db"
        self.fts5 = folder / "fts5.db"

    def lines(self) -> Iterator[Line | Proportion]:
        """Every measurement on this corpus."""
        yield self.importing()
        yield self.importing_again()
        if self.model is not None:
            import_with_random_vectors(self.full, self.key_file, self.corpus.folder, self.model)
        yield from self.unlocking()
        yield from self.keyword_search()
        if self.model is not None:
            yield from self.hybrid_search(self.model)
        yield from self.sizes()
        yield from self.cold_starts()

    def _open(self, path: Path) -> MemoryStore:
        return MemoryStore.open(path, key_file=self.key_file)

    def importing(self) -> Line:
        """A folder of Markdown into a vault, without embedding."""

        def ours(_: int) -> None:
            with new_vault(self.bare, self.key_file) as store:
                store.import_paths([self.corpus.folder], embed=False)

        works = {"ours": ours, "fts5": lambda _: index_in_fts5(self.corpus.folder, self.fts5)}
        taken = side_by_side(works, range(REPEATS), warm=0)
        return Line(
            "import without embedding",
            self.size,
            taken["ours"],
            "FTS5 insert",
            taken["fts5"],
            "< 15 s at 10 k",
            15 * self.size / 10_000,
        )

    def importing_again(self) -> Line:
        """The same folder again, in which nothing changed."""
        with self._open(self.bare) as store:
            works = {
                "ours": lambda _: store.import_paths([self.corpus.folder], embed=False),
                "reading": lambda _: read_every_byte(self.corpus.folder),
            }
            taken = side_by_side(works, range(REPEATS))
        return Line(
            "import again, nothing changed",
            self.size,
            taken["ours"],
            "reading the files",
            taken["reading"],
            "< 1 s at 10 k",
            max(1.0, self.size / 10_000),
        )

    def unlocking(self) -> Iterator[Line]:
        """From key file to an index that answers."""

        def unlock(path: Path) -> None:
            with self._open(path) as store:
                store.search_context()

        for name, path in (("words", self.bare), ("words and vectors", self.full)):
            if path.exists():
                with self._open(path) as store:
                    sealed = int(store.stats()["index_bytes"])
                works = {"ours": lambda _, path=path: unlock(path), "aes": decrypt_bytes(sealed)}
                taken = side_by_side(works, range(9))
                target = "< 0.3 s at 100 k"
                limit = 0.3 * max(1.0, self.size / 100_000)
                yield Line(
                    f"unlock, {name}",
                    self.size,
                    taken["ours"],
                    "AES-GCM of the bytes",
                    taken["aes"],
                    target,
                    limit,
                )

    def keyword_search(self) -> Iterator[Line]:
        """Eight words: the ranking alone, and the whole answer with previews."""
        fts5 = Fts5(self.fts5)
        options = SearchOptions(mode="keyword")
        with self._open(self.bare) as store:
            ranking = {
                "ours": lambda query: rank(store.search_context(), query, options, NEAREST),
                "fts5": fts5.rank,
            }
            taken = side_by_side(ranking, self.corpus.queries)
            limit = 0.001 if self.size <= 10_000 else 0.005 * self.size / 100_000
            yield Line(
                "keyword ranking, 8 words",
                self.size,
                taken["ours"],
                "FTS5 bm25",
                taken["fts5"],
                "< 1 ms at 10 k, < 5 ms at 100 k",
                max(limit, 0.001),
            )
            answering = {
                "ours": lambda query: store.search(query, mode="keyword"),
                "fts5": fts5.answer,
            }
            taken = side_by_side(answering, self.corpus.queries)
            yield Line(
                "keyword search, answered",
                self.size,
                taken["ours"],
                "FTS5 with snippets",
                taken["fts5"],
            )

    def hybrid_search(self, model: Embedder) -> Iterator[Line]:
        """Query embedding, three legs, fusion, opening and previews; no reranker."""
        with self._open(self.full) as store:
            works = {
                "ours": lambda query: store.search(query, rerank=False),
                "model": model.embed_query,
            }
            taken = side_by_side(works, self.corpus.queries)
            limit = 0.025 if self.size <= 10_000 else 0.040
            yield Line(
                "hybrid search, answered",
                self.size,
                taken["ours"],
                "embedding the query",
                taken["model"],
                "< 25 ms at 10 k, < 40 ms at 100 k",
                limit,
                "wall",
            )
            yield self._legs(store)

    def _legs(self, store: MemoryStore) -> Line:
        """The three legs at once against the slowest of them, from the searches' own reports."""
        whole, slowest = [], []
        for query in self.corpus.queries:
            answer = store.search(query, rerank=False, explain=True, type="note")
            fetch = next(stage for stage in answer.explain if stage.stage == "fetch")
            whole.append(fetch.milliseconds / 1_000)
            slowest.append(max(fetch.details["leg_milliseconds"].values()) / 1_000)
        ours, peer = median(whole), median(slowest)
        return Line(
            "three legs side by side, filtered",
            self.size,
            Spent(ours, ours),
            "the slowest leg",
            Spent(peer, peer),
            "≤ 1.2 × the slowest leg",
            1.2,
            "ratio",
        )

    def sizes(self) -> Iterator[Proportion]:
        """Bytes of the database per byte of Markdown."""
        for name, path, limit in (
            ("database size, words", self.bare, None),
            ("database size, words and vectors", self.full, 4.0),
            ("database size, plain FTS5", self.fts5, None),
        ):
            if path.exists():
                ratio = path.stat().st_size / self.corpus.text_bytes
                yield Proportion(name, self.size, ratio, "< 4 ×" if limit else "", limit)

    def cold_starts(self) -> Iterator[Line]:
        """Whole commands, from an empty process to the answer on standard output."""
        python, query = sys.executable, self.corpus.queries[0]
        command = [python, "-m", "memory_store"]
        searching = [*command, "search"]
        fts5 = (
            f"from benchmarks.peers import Fts5; from pathlib import Path;"
            f"print(Fts5(Path({str(self.fts5)!r})).answer({query!r}))"
        )
        commands = {
            "click": [python, "-c", "import click"],
            "help": [*command, "--help"],
            "bare": [python, "-c", BARE_IMPORTS],
            "fts5": [python, "-c", fts5],
            "keyword": [*searching, str(self.bare), query, "--mode", "keyword"],
        }
        if self.model is not None:
            commands["hybrid"] = [*searching, str(self.full), query, "--no-rerank"]
        environment = {
            "MEMORY_STORE_KEY_FILE": str(self.key_file),
            # compiled modules are kept between starts, as they are where it is installed
            "PYTHONDONTWRITEBYTECODE": "",
            "PYTHONPYCACHEPREFIX": str(self.folder / "bytecode"),
        }
        taken = commands_side_by_side(commands, COLD_STARTS, environment)
        yield Line(
            "memory-store --help, cold", self.size, taken["help"], "import click", taken["click"]
        )
        yield Line(
            "keyword search, cold",
            self.size,
            taken["keyword"],
            BARE_IMPORTS,
            taken["bare"],
            "≤ 150 ms above its peer",
            taken["bare"].cpu + 0.150,
        )
        if "hybrid" in taken:
            yield Line(
                "hybrid search, cold",
                self.size,
                taken["hybrid"],
                BARE_IMPORTS,
                taken["bare"],
                "< 900 ms",
                0.9,
            )

    def embedding(self, model: Embedder) -> Line:
        """Import with embedding against the bare model on the same windows, a few notes of it."""
        folder = self.folder / "some"
        some = write_corpus(folder, EMBEDDED_NOTES)
        texts = []
        for path in sorted(some.folder.rglob("*.md")):
            body = path.read_text("utf-8").split("---\n", 2)[2].strip()
            title = body.split("\n", 1)[0].removeprefix("# ")
            windows = text_windows(model, title, body)
            texts += [embedded_text(title, body[start:end]) for start, end in windows]

        def ours(_: int) -> None:
            with new_vault(self.folder / "some.db", self.key_file) as store:
                store.import_paths([some.folder])

        works = {"ours": ours, "model": lambda _: model.embed(texts)}
        taken = side_by_side(works, range(REPEATS), warm=0)
        return Line(
            "import with embedding",
            EMBEDDED_NOTES,
            taken["ours"],
            "the model alone",
            taken["model"],
            "≤ 1.15 × the model",
            1.15,
            "ratio",
        )

    def sealing(self) -> Line:
        """A keyword search over sealed records against the same code with a null cipher."""
        queries = self.corpus.queries
        with self._open(self.bare) as sealed:
            sealed.search(queries[0], mode="keyword")  # keeps its real ciphers from here on
            with null_cipher(), new_vault(self.folder / "null.db", self.key_file) as plain:
                plain.import_paths([self.corpus.folder], embed=False)
                works = {
                    "sealed": lambda query: sealed.search(query, mode="keyword"),
                    "plain": lambda query: plain.search(query, mode="keyword"),
                }
                taken = side_by_side(works, queries * 3)
        return Line(
            "keyword search, sealed",
            self.size,
            taken["sealed"],
            "null cipher",
            taken["plain"],
            "≤ 1.10",
            1.10,
            "ratio",
        )


@contextmanager
def null_cipher() -> Iterator[None]:
    """While inside, vaults that are opened seal with a cipher that encrypts nothing."""
    real = sealing.SUITES[sealing.DEFAULT_SUITE]
    sealing.SUITES[sealing.DEFAULT_SUITE] = NullCipher
    try:
        yield
    finally:
        sealing.SUITES[sealing.DEFAULT_SUITE] = real


def vector_lines(count: int) -> Iterator[Line]:
    """The vector leg over ``count`` random vectors: making the index, and the nearest 64."""
    vectors = random_units(count)
    queries = list(random_units(VECTOR_QUERIES, seed=8))
    index = make_vector_index(snapshot_of(vectors), "numpy")
    first = spent_on(lambda: index.search(queries[0], NEAREST))
    yield Line(
        "vector index, first search",
        count,
        first,
        target="< 1 s per 100 k",
        limit=1.0 * max(1.0, count / 100_000),
    )
    works = {
        "ours": lambda query: index.search(query, NEAREST),
        "matmul": matmul_nearest(vectors, NEAREST),
    }
    vec0 = vec0_nearest(vectors, NEAREST)
    if vec0 is not None:
        works["vec0"] = vec0
    taken = side_by_side(works, queries)
    limit = 0.005 if count <= 100_000 else 0.040
    for peer, name in (("matmul", "NumPy float32 matmul"), ("vec0", "sqlite-vec vec0")):
        if peer in taken:
            yield Line(
                "vector ranking, k 64",
                count,
                taken["ours"],
                name,
                taken[peer],
                "≤ 5 ms at 100 k, ≤ 40 ms at 1 M",
                limit,
            )
