"""Vaults of generated memories, and questions to them: every operator, filter, mode and option."""

from __future__ import annotations

import random
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore

TYPES = ("note", "fact", "task", "decision", "task_done", "summary")
BATCH = 2_000
RECIPES = ("default", "gnosis", "qmd", "gno", "prx")
ODD = ('"', "((", "*", "-", "NEAR/3", "''", "%", "\x00", "a:b", "ſ", "日本", "OR", ";--", "{{x}}")

Question = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Corpus:
    """What a vault was filled with: its memories and their ids, its words, topics, collections."""

    ids: Sequence[str]
    drafts: Sequence[MemoryDraft]
    words: Sequence[str]
    topics: Sequence[str]
    collections: Sequence[str]


def fill(store: MemoryStore, memories: int, seed: int = 5) -> Corpus:
    """So many memories of 12 to 60 words in three collections, one text in twenty a copy."""
    chance = random.Random(seed)
    words = vocabulary(chance)
    weights = [1 / (rank + 3) for rank in range(len(words))]  # as frequent as words of a language
    topics = [f"topic{n}" if n < 30 else f"topic{n - 30}/below" for n in range(40)]
    collections = ["personal", "work", "archive"]
    drafts: list[MemoryDraft] = []
    for number in range(memories):
        copied = drafts and chance.random() < 0.05
        said = chance.choices(words, weights, k=chance.randint(12, 60))
        drafts.append(
            MemoryDraft(
                chance.choice(drafts).text if copied else " ".join(said),
                title=" ".join(said[-3:]),
                type=chance.choice(TYPES),
                topics=tuple(chance.sample(topics, chance.randint(0, 3))),
                collection=chance.choices(collections, (6, 3, 1))[0],
                ref=f"{number % 97}/{number}.md",
                created=f"{2010 + number % 15}-{1 + number % 12:02}-{1 + number % 28:02}",
                valid_to="2030-01-01" if number % 5 == 0 else None,
                metadata={"box": number % 7, "by": "assistant" if number % 3 else "you"},
            )
        )
    for name in collections[1:]:
        store.collections.create(name)
    ids = []
    for start in range(0, memories, BATCH):
        ids += [memory.id for memory in store.add_many(drafts[start : start + BATCH])]
    return Corpus(ids, drafts, words, topics, collections)


def vocabulary(chance: random.Random, words: int = 4_000) -> list[str]:
    """Different words of two or three syllables."""
    consonants = sorted(set(string.ascii_lowercase) - set("aeiouqxy"))
    made: dict[str, None] = {}
    while len(made) < words:
        syllables = [
            chance.choice(consonants) + chance.choice("aeiou") for _ in range(chance.randint(2, 3))
        ]
        made["".join(syllables) + chance.choice("lmnrst")] = None
    return list(made)


class Asker:
    """Draws questions about a corpus from one random stream."""

    def __init__(self, corpus: Corpus, seed: int) -> None:
        self.corpus = corpus
        self.chance = random.Random(seed)

    def questions(self) -> Iterator[Question]:
        """Questions without end; some of them make no sense, and are to be refused."""
        while True:
            options = self._options()
            yield self._query(options), options

    def _query(self, options: dict[str, Any]) -> str:
        chance = self.chance
        if options.get("mode") == "literal":
            return self._pattern()
        parts = [self._word() for _ in range(chance.choice((0, 1, 2, 2, 3, 4, 6)))]
        if chance.random() < 0.25:
            parts.append(f'"{self._phrase()}"')
        if chance.random() < 0.15:
            parts.append(f"-{self._word()}")
        if chance.random() < 0.08:
            parts.append(f'-"{self._phrase()}"')
        for name, values in self._filters().items():
            if chance.random() < 0.06:
                parts.append(f"{name}:{chance.choice(values)}")
        if chance.random() < 0.06:
            parts.append(chance.choice(ODD))
        chance.shuffle(parts)
        query = " ".join(parts)
        if chance.random() < 0.1:
            query += f"\n{chance.choice(('lex', 'vec', 'hyde', 'intent'))}: {self._phrase()}"
        return query

    def _pattern(self) -> str:
        one, other = self._word(), self._word()
        shapes = (
            one,
            f"{one}.*",
            f"{one} \\w+",
            f"({one}|{other})",
            f"/{one}|{other} \\w/",
            "\\d+",
        )
        return self.chance.choice(shapes)

    def _phrase(self) -> str:
        words = self.chance.choice(self.corpus.drafts).text.split()
        start = self.chance.randrange(len(words) - 1)
        return " ".join(words[start : start + self.chance.randint(2, 3)])

    def _word(self) -> str:
        if self.chance.random() < 0.3:  # one of the frequent ones
            return self.corpus.words[self.chance.randrange(50)]
        return self.chance.choice(self.corpus.words)

    def _named(self) -> str:
        """A memory by its id, now and then by its ref."""
        number = self.chance.randrange(len(self.corpus.ids))
        by_ref = self.chance.random() < 0.1
        return f"{number % 97}/{number}.md" if by_ref else self.corpus.ids[number]

    def _filters(self) -> dict[str, Sequence[str]]:
        return {
            "topic": self.corpus.topics,
            "type": TYPES,
            "in": self.corpus.collections,
            "since": ("2014-02-03", "5y", "2020"),
            "until": ("2019-12-31", "1y"),
        }

    def _options(self) -> dict[str, Any]:
        chance = self.chance
        deep = chance.random() < 0.15
        filters = self._filters()
        may_be: dict[str, tuple[float, Any]] = {
            "deep": (1.0, deep),
            "limit": (0.8, chance.randint(1, 100 if deep else 32)),
            "mode": (0.6, chance.choice(("keyword", "vector", "hybrid", "literal", "auto"))),
            "recipe": (0.3, chance.choice(RECIPES)),
            "rerank": (0.6, False),
            "reranker": (0.05, "maxsim"),
            "sealed": (0.2, True),
            "type": (0.1, chance.choice(TYPES)),
            "topic": (0.15, chance.choice(filters["topic"])),
            "collection": (0.15, chance.choice(self.corpus.collections)),
            "status": (0.1, chance.choice(("open", "done", "all"))),
            "since": (0.08, chance.choice(filters["since"])),
            "until": (0.08, chance.choice(filters["until"])),
            "meta": (0.1, {"box": str(chance.randrange(8))}),
            "min_score": (0.08, chance.random()),
            "narrow": (0.08, f"type:{chance.choice(TYPES)}"),
            "like": (0.08, self._named()),
            "why": (0.1, self._named()),
            "budget": (0.08, chance.choice((5, 50, 500))),
            "budget_ms": (0.05, chance.choice((1, 20, 1_000))),
            "explain": (0.15, True),
        }
        return {name: value for name, (share, value) in may_be.items() if chance.random() < share}
