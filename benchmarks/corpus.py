"""A made-up folder of Markdown notes: the same on every machine and in every run.

    python -m benchmarks.corpus FOLDER [--notes 10000]

Words are drawn from a Zipf–Mandelbrot distribution (Mandelbrot 1953), as in natural text: English
function words at its head, invented words behind. Notes are as long as people's notes are: half
of them under 180 words, a few ten times that. They carry front matter, headings, lists, hashtags
and now and then a code listing, so that an import meets everything it has to parse.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
from msgspec import Struct

SEED = 20_240_601
DISTINCT_WORDS = 30_000
SHORT_WORDS = 3_000  # the frequent ones have one or two syllables, the others two or three
FLATTENING = 2.7  # Mandelbrot's constant for English
SHORTEST, MEDIAN, LONGEST = 40, 180, 2_000  # words of a note's text
SPREAD = 0.6  # of the lengths' logarithms; the mean is then 215 words
TOPICS = 200
FOLDERS = 64

_FUNCTION_WORDS = """
the of and to a in that is was for it with as his on be at by this had not are but from or have an
they which one were all her there when who will more if no out so what up into than them can only
other time new some could these two may then do first any my now such like our over me even most
also after did many before must through back where much your way well down should because each
just those how too any good very make still own see work long here both between life being under
never day same another know while last might us great old year off come since against go came
right used take three
"""
_BEGINNINGS = "b br c ch d dr f fl g gr h j k l m n p pl qu r s sh st t th tr v w z"
_MIDDLES = "a e i o u ai ea ie oa ou"
_ENDINGS = "- - - l m n nd r rt s st t ck x"
FUNCTION_WORDS = tuple(dict.fromkeys(_FUNCTION_WORDS.split()))
BEGINNINGS, MIDDLES = _BEGINNINGS.split(), _MIDDLES.split()
ENDINGS = ["" if ending == "-" else ending for ending in _ENDINGS.split()]


class Corpus(Struct, frozen=True):
    """The folder, how many notes are in it, how long their files are together, and queries."""

    folder: Path
    notes: int
    text_bytes: int
    queries: tuple[str, ...]


@cache
def vocabulary(seed: int) -> tuple[str, ...]:
    """The words in order of frequency: function words, then invented ones, each once."""
    words, random = dict.fromkeys(FUNCTION_WORDS), np.random.default_rng(seed)
    while len(words) < DISTINCT_WORDS:
        syllables = [
            random.choice(BEGINNINGS) + random.choice(MIDDLES) + random.choice(ENDINGS)
            for _ in range(random.integers(1, 3) + (len(words) > SHORT_WORDS))
        ]
        words.setdefault("".join(syllables))
    return tuple(words)


class Writer:
    """Writes notes word by word from one random stream.

    ``words``, in the order of their frequency, stand in for function words and invented ones.
    """

    def __init__(self, seed: int = SEED, words: Sequence[str] = ()) -> None:
        self.random = np.random.default_rng(seed + 1)
        self.words = tuple(words) or vocabulary(seed)
        weights = 1.0 / (np.arange(len(self.words)) + 1 + FLATTENING)
        self._cumulated = np.cumsum(weights) / weights.sum()

    def places(self, count: int, *, telling: bool = False) -> npt.NDArray[np.int64]:
        """Where in ``words`` so many drawn ones stand; ``telling``: function words left out."""
        least = self._cumulated[len(FUNCTION_WORDS) - 1] if telling else 0.0
        chances = least + (1.0 - least) * self.random.random(count)
        return np.minimum(np.searchsorted(self._cumulated, chances), len(self.words) - 1)

    def draw(self, count: int) -> list[str]:
        """``count`` words as frequent as they are in text."""
        return [self.words[place] for place in self.places(count).tolist()]

    def lengths(self, notes: int) -> npt.NDArray[np.int64]:
        """How many words so many notes have."""
        drawn = self.random.lognormal(np.log(MEDIAN), SPREAD, notes)
        return np.clip(drawn, SHORTEST, LONGEST).astype(np.int64)

    def telling(self, count: int) -> list[str]:
        """``count`` different words, less the function words: what people search for."""
        found: dict[str, None] = {}
        while len(found) < count:
            found |= dict.fromkeys(w for w in self.draw(4 * count) if w not in FUNCTION_WORDS)
        return list(found)[:count]

    def note(self, number: int) -> str:
        """One note as the content of its file."""
        length = int(self.lengths(1)[0])
        words = self.draw(length)
        topics = {f"topic-{self.random.zipf(1.4) % TOPICS}" for _ in range(3)}
        day = f"{2010 + number % 15}-{1 + number % 12:02}-{1 + number % 28:02}"
        lines = ["---", f"tags: [{', '.join(sorted(topics))}]", f"date: {day}", "---", ""]
        lines += [f"# {' '.join(self.telling(4)).capitalize()}", ""]
        for start in range(0, length, 60):
            lines += self._block(words[start : start + 60])
        return "\n".join(lines) + "\n"

    def _block(self, words: list[str]) -> list[str]:
        """About a paragraph: prose, a section, a list or a listing."""
        kind = self.random.random()
        if kind < 0.15:
            return [f"## {' '.join(words[:3]).capitalize()}", "", *_sentences(words[3:]), ""]
        if kind < 0.30:
            return [*(f"- {' '.join(words[n : n + 8])}" for n in range(0, len(words), 8)), ""]
        if kind < 0.34:
            return ["```", *(f"{' '.join(words[n : n + 6])};" for n in range(0, 60, 6)), "```", ""]
        tag = [f"#{words[0]}"] if kind < 0.44 else []
        return [*_sentences(words), *tag, ""]


def _sentences(words: list[str]) -> list[str]:
    parts = [words[n : n + 14] for n in range(0, len(words), 14)]
    return [" ".join(part).capitalize() + "." for part in parts]


def write_corpus(folder: Path, notes: int, queries: int = 40, query_words: int = 8) -> Corpus:
    """Write ``notes`` files into subfolders of ``folder`` and draw queries of 8 words."""
    writer = Writer()
    total = 0
    for number in range(notes):
        place = folder / f"{number % FOLDERS:02}"
        place.mkdir(parents=True, exist_ok=True)
        content = writer.note(number).encode()
        (place / f"note-{number:06}.md").write_bytes(content)
        total += len(content)
    asked = tuple(" ".join(writer.telling(query_words)) for _ in range(queries))
    return Corpus(folder, notes, total, asked)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write a corpus to look at, or to measure other programs on."""
    parser = argparse.ArgumentParser(description="Write made-up Markdown notes.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--notes", type=int, default=10_000)
    given = parser.parse_args(arguments)
    corpus = write_corpus(given.folder, given.notes)
    print(f"{corpus.notes:,} notes, {corpus.text_bytes / 1e6:.1f} MB in {corpus.folder}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
