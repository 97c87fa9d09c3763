"""What is measured: each operation of ours beside its peer, on one corpus."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.cold import Started, cold_lines
from benchmarks.corpus import Corpus, write_corpus
from benchmarks.file_sizes import MOST_OF_TEXT, file_line, index_line
from benchmarks.measuring import side_by_side
from benchmarks.peers import Fts5, bare_fastembed, index_in_fts5, read_every_byte
from benchmarks.processes import opened_process
from benchmarks.qmd import Qmd, qmd_over
from benchmarks.report import Amount, Held, Line, Measured
from benchmarks.sealing import null_cipher, sealing_lines, warmed
from benchmarks.searches import answered_line, hybrid_lines, keyword_lines, unlock_line
from benchmarks.vaults import import_with_random_vectors, new_vault
from memory_store.models.embedder import Embedder
from memory_store.session.entries import embedded_text, text_windows
from memory_store.store import MemoryStore

REPEATS = 3
TOLD_OF = 10_000  # notes: of fewer, what an import and a database begin with weighs too much
EMBEDDED_NOTES = 256  # measured once: each of the three works for some 20 seconds


class Bench:
    """One corpus, its vaults, and what is measured on them."""

    def __init__(
        self, folder: Path, size: int, model: Embedder | None, qmd: Path | None = None
    ) -> None:
        self.folder = folder
        self.qmd = qmd
        self.size = size
        self.model = model
        self.key_file = folder / "keys" / "bench.key"
        self.key_file.parent.mkdir(parents=True)
        self.corpus: Corpus = write_corpus(folder / "notes", size)
        self.bare = folder / "words.db"
        self.full = folder / "vectors.db"
        self.fts5 = folder / "fts5.db"

    def lines(self) -> Iterator[Measured]:
        """Every measurement on this corpus."""
        yield from self.vault_lines()
        yield from self.cold_starts()

    def vault_lines(self) -> Iterator[Measured]:
        """Those that need no fresh process for each command."""
        with self._qmd() as qmd:
            yield from self.importing(qmd)
            yield from self.importing_again(qmd)
            if self.model is not None:
                self._fill(self.full)
            yield from self.unlocking()
            yield from self.searching(qmd)
        yield from self.sizes()
        yield from self.processes()

    @contextmanager
    def _qmd(self) -> Iterator[Qmd | None]:
        """QMD over the same files, where it was said where it is."""
        if self.qmd is None:
            yield None
            return
        with qmd_over(self.corpus.folder, self.qmd, self.folder / "qmd") as running:
            yield running

    def _open(self, path: Path) -> MemoryStore:
        return MemoryStore.open(path, key_file=self.key_file)

    def _fill(self, path: Path) -> None:
        """A new vault of the corpus, with vectors where there is a model."""
        if self.model is not None:
            import_with_random_vectors(path, self.key_file, self.corpus.folder, self.model)
            return
        with new_vault(path, self.key_file) as store:
            store.import_paths([self.corpus.folder], embed=False)

    def importing(self, qmd: Qmd | None) -> Iterator[Line]:
        """A folder of Markdown into a vault, without embedding."""

        def ours(_: int) -> None:
            with new_vault(self.bare, self.key_file) as store:
                store.import_paths([self.corpus.folder], embed=False)

        works = {"ours": ours, "FTS5 insert": lambda _: self._into_fts5()}
        taken = side_by_side(works, range(REPEATS), warm=0)
        if qmd is not None:  # once: its index is full after that
            taken[f"QMD {qmd.version}"] = qmd.index()
        for peer in [name for name in taken if name != "ours"]:
            limit = 15 * self.size / TOLD_OF if self.size >= TOLD_OF else None
            yield Line(
                "import without embedding",
                self.size,
                taken["ours"],
                peer,
                taken[peer],
                "< 15 s at 10 k",
                limit,
            )

    def _into_fts5(self) -> None:
        index_in_fts5(self.corpus.folder, self.fts5)

    def importing_again(self, qmd: Qmd | None) -> Iterator[Line]:
        """The same folder again, in which nothing changed."""
        with self._open(self.bare) as store:
            works: dict[str, Callable[[Any], object]] = {
                "ours": lambda _: store.import_paths([self.corpus.folder], embed=False),
                "reading the files": lambda _: read_every_byte(self.corpus.folder),
            }
            if qmd is not None:
                works[f"QMD {qmd.version}"] = lambda _: qmd.index()
            taken = side_by_side(works, range(REPEATS))
        for peer in [name for name in taken if name != "ours"]:
            yield Line(
                "import again, nothing changed",
                self.size,
                taken["ours"],
                peer,
                taken[peer],
                "< 1 s at 10 k",
                max(1.0, self.size / 10_000),
            )

    def unlocking(self) -> Iterator[Line]:
        """From key file to an index that answers."""
        for name, path in (("words", self.bare), ("words and vectors", self.full)):
            if path.exists():
                yield unlock_line(name, path, self.key_file, self.size)

    def searching(self, qmd: Qmd | None) -> Iterator[Measured]:
        """By words in the bare vault, by words and meaning in the full one."""
        fts5, queries = Fts5(self.fts5), self.corpus.queries
        with self._open(self.bare) as store:
            yield from keyword_lines(store, queries, self.size, fts5, qmd)
            yield answered_line(store, queries, self.size, fts5)
        if self.model is not None:
            with self._open(self.full) as store:
                yield from hybrid_lines(store, queries, self.size, self.model)
                yield index_line("words and vectors", store, self.size, self.corpus.text_bytes)

    def processes(self) -> Iterator[Held]:
        """What a process holds that searches by words, and one that searches by meaning too."""
        for mode, path in (("keyword", self.bare), ("hybrid", self.full)):
            if path.exists():
                yield opened_process(self.size, path, self.key_file, mode, self.corpus.queries)

    def sizes(self) -> Iterator[Amount]:
        """Bytes of the database beside those of the Markdown."""
        for name, path, limit in (
            ("words", self.bare, None),
            ("words and vectors", self.full, MOST_OF_TEXT),
            ("plain FTS5", self.fts5, None),
        ):
            if path.exists():
                held = limit if self.size >= TOLD_OF else None
                yield file_line(name, path, self.size, self.corpus.text_bytes, held)

    def cold_starts(self) -> Iterator[Line]:
        """Whole commands on the same vaults."""
        yield from cold_lines(
            Started(
                self.size,
                self.key_file,
                self.bare,
                self.corpus.queries[0],
                None if self.model is None else self.full,
            )
        )

    def embedding(self, model: Embedder) -> Iterator[Line]:
        """Import with embedding against the bare model on the same windows, of some notes, once."""
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

        bare = bare_fastembed(model)
        works: dict[str, Callable[[Any], object]] = {
            "ours": ours,
            "bare FastEmbed": lambda _: bare(texts),
            "its batches sorted": lambda _: model.embed(texts),
        }
        bare(texts[:1])  # loads it; ours was loaded to cut the windows
        taken = side_by_side(works, range(1), warm=0)
        for peer in [name for name in works if name != "ours"]:
            yield Line(
                "import with embedding",
                EMBEDDED_NOTES,
                taken["ours"],
                peer,
                taken[peer],
                "≤ 1.15 × the model",
                1.15,
                "ratio",
            )

    def sealing(self) -> Iterator[Line]:
        """Searches over sealed records against the same code with a null cipher."""
        query, modes = self.corpus.queries[0], ["keyword"] + ["hybrid"] * bool(self.model)
        null = self.folder / "null.db"
        with self._open(self.full if self.model else self.bare) as sealed:
            warmed(sealed, modes, query)
            with null_cipher():
                self._fill(null)
                with self._open(null) as plain:
                    warmed(plain, modes, query)
                    yield from sealing_lines(sealed, plain, modes, self.corpus.queries, self.size)
