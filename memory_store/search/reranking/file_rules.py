"""Rules that reorder a pool by the files its memories came from (prx, "Reranking Pipeline").

Each rule is a function from scored results to scored results and leaves a step by its name, so
that a score can be explained. They run in prx's order. Memories without a file are neither
boosted nor penalised. Only the recipe's figures decide; no model is asked.

Boundary: reads the source and ref of opened memories and keeps nothing of them.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Mapping, Sequence
from functools import cached_property
from pathlib import PurePosixPath
from types import MappingProxyType

from msgspec import Struct

from memory_store.code.facts import path_kinds
from memory_store.records import Memory
from memory_store.search.adjustments import ranked
from memory_store.search.candidates import Scored
from memory_store.search.recipes import Recipe
from memory_store.search.trace import Trace
from memory_store.text.identifiers import code_words

COHERENCE = "file coherence"
DEFINITION = "definition"
PROXIMITY = "import proximity"
STEM = "stem match"
NOISE = "noise"
SATURATION = "saturation"
SCALED = "scaled to 1"

FIRST = 5  # results whose neighbours by imports are raised; prx gives no number
HOPS = 2  # prx: "BFS 2-hop traversal of the import graph"
SHORTEST_PREFIX = 3  # characters two words must share: a folder named "a" is no match for "all"

# A source that ends so is itself a file of rows: each row is a record of its own, and no more a
# part of the file than a memory is a part of its database.
ROW_SUFFIXES = (".json", ".ndjson", ".jsonl", ".csv", ".tsv", ".db", ".sqlite", ".sqlite3")
STANDARD_INPUT = "-"

# Which part of a file: src/a.py#Handler, src/a.py#L10-L40, src/a.py:10-40
_PART = re.compile(r"(?<=\w)(?:#[^/]*|:\d+(?:-\d+)?)\Z")


class MemoryFile(Struct, frozen=True, dict=True):
    """A file below an imported root: ``source`` is the root, ``path`` posix and relative to it.

    What lies above the root says nothing about a file, so no rule ever sees it.
    """

    source: str
    path: str

    @property
    def name(self) -> str:
        """The last part of the path, in lower case."""
        return PurePosixPath(self.path).name.lower()

    @property
    def folders(self) -> tuple[str, ...]:
        """The folders it lies in, outermost first, in lower case."""
        return tuple(part.lower() for part in PurePosixPath(self.path).parts[:-1])

    @cached_property
    def words(self) -> frozenset[str]:
        """What its stem and the folder around it are made of (see :func:`name_words`)."""
        path = PurePosixPath(self.path)
        return name_words(path.name.partition(".")[0]) | name_words(path.parent.name)


def file_of(memory: Memory) -> MemoryFile | None:
    """The file that an opened memory is, or is a part of.

    ``None`` for what was written by hand or piped in, for rows of a table or a JSON file, and for
    a ref that is no relative path.
    """
    source, ref = memory.source, memory.ref
    if not source or not ref or source == STANDARD_INPUT or _is_rows(source):
        return None
    path = PurePosixPath(_PART.sub("", ref))
    if path.is_absolute() or "://" in ref or ".." in path.parts or not path.name:
        return None
    return MemoryFile(source, str(path))


def name_words(name: str) -> frozenset[str]:
    """The words of a file's or folder's name, and the name as one word, all in lower case.

    ``getHTTPResponse`` and ``get_http_response`` give the same: get, http, response,
    gethttpresponse.
    """
    words = code_words(name)
    return frozenset((*words, "".join(words))) - {""}


def _is_rows(source: str) -> bool:
    """Whether a source is a file of rows: ``notes.csv``, ``notes.db#table``."""
    name = source.replace("\\", "/").rpartition("/")[2].lower()
    return name.endswith(ROW_SUFFIXES) or name.partition("#")[0].endswith(ROW_SUFFIXES)


class SourceFacts(Struct, frozen=True):
    """What the index knows of source files: who defines a name of the query, and who is near whom.

    ``defined`` are documents by the name (in lower case) that they define, ``symbol_like`` says
    that the query is one identifier, and ``near`` gives the ids of memories that are few imports
    away from some, each with how many.
    """

    defined: Mapping[str, Container[int]] = MappingProxyType({})
    symbol_like: bool = False
    near: Callable[[Sequence[str]], Mapping[str, int]] = lambda ids: {}


Rule = Callable[[Sequence[Scored]], list[Scored]]
FileOf = Callable[[Scored], MemoryFile | None]


def file_of_result(result: Scored) -> MemoryFile | None:
    """The file of an opened result."""
    assert result.memory is not None, "only opened results have a file"
    return file_of(result.memory)


def by_file_rules(
    results: Sequence[Scored],
    recipe: Recipe,
    keywords: Sequence[str],
    facts: SourceFacts | None = None,
    trace: Trace | None = None,
) -> list[Scored]:
    """Opened ``results`` after every rule of the recipe, best first.

    Coherence, definition, proximity, stem match, noise, saturation; sorted again after each;
    ``trace`` notes each order. Boosts may lift a score above 1: then all are divided by the
    highest, which leaves the order as it is.
    """
    trace, facts = trace or Trace(), facts or SourceFacts()
    boost, least, of = recipe.stem_boost, recipe.stem_share, _filed(results)
    rules: dict[str, Rule] = {
        COHERENCE: lambda results: coherent(results, recipe.coherence, of),
        DEFINITION: lambda results: defining_first(results, facts, recipe, of),
        PROXIMITY: lambda results: near_first(results, facts, recipe.proximity),
        STEM: lambda results: stem_matched(results, keywords, boost, least, of),
        NOISE: lambda results: without_noise(results, recipe.noise, of),
        SATURATION: lambda results: saturated(results, recipe.saturation, of),
    }
    ordered = list(results)
    for name, rule in rules.items():
        ordered = ranked(rule(ordered))
        trace.order(name, ordered)
    best = max((result.score for result in ordered), default=0.0)
    if best <= 1.0:
        return ordered
    return [result.moved(SCALED, result.score / best) for result in ordered]


def coherent(results: Sequence[Scored], factor: float, of: FileOf = file_of_result) -> list[Scored]:
    """The best memory of each file with several in the pool, raised.

    By the highest score × ``factor`` × the file's sum as a share of the greatest sum of any file.
    """
    files = [of(result) for result in results]
    sums: defaultdict[MemoryFile, float] = defaultdict(float)
    counts: Counter[MemoryFile] = Counter()
    best: dict[MemoryFile, int] = {}
    for place, (result, file) in enumerate(zip(results, files, strict=True)):
        if file is not None:
            sums[file] += result.score
            counts[file] += 1
            if file not in best or result.score > results[best[file]].score:
                best[file] = place
    greatest = max(sums.values(), default=0.0)
    if not factor or greatest <= 0:
        return list(results)
    unit = factor * max(result.score for result in results)
    raised = {best[file]: unit * sums[file] / greatest for file in sums if counts[file] > 1}
    return [
        result.moved(COHERENCE, result.score + raised.get(place, 0.0))
        for place, result in enumerate(results)
    ]


def defining_first(
    results: Sequence[Scored], facts: SourceFacts, recipe: Recipe, of: FileOf = file_of_result
) -> list[Scored]:
    """Scores of what defines a name of the query multiplied, and again in a file of that name."""
    symbol = facts.symbol_like
    usual = recipe.symbol_definition_factor if symbol else recipe.definition_factor
    moved = []
    for result in results:
        names = [name for name, at in facts.defined.items() if result.candidate.ordinal in at]
        file, factor = of(result), usual if names else 1.0
        if file is not None and file.name.partition(".")[0] in names:
            factor *= recipe.definition_stem_factor
        moved.append(result.moved(DEFINITION, result.score * factor))
    return moved


def near_first(results: Sequence[Scored], facts: SourceFacts, factor: float) -> list[Scored]:
    """What is few imports away from the first results raised, by the highest score × ``factor`` ÷
    the steps. The first results themselves stay as they are."""
    if not factor or not results:
        return list(results)
    unit = factor * max(result.score for result in results)
    near = facts.near([result.candidate.id for result in results[:FIRST]])
    steps = [near.get(result.candidate.id, 0) for result in results]
    return [
        result.moved(PROXIMITY, result.score + (unit / hops if hops else 0.0))
        for result, hops in zip(results, steps, strict=True)
    ]


def stem_matched(
    results: Sequence[Scored],
    keywords: Sequence[str],
    factor: float,
    least: float,
    of: FileOf = file_of_result,
) -> list[Scored]:
    """Memories raised whose file's stem or folder is named by the query's keywords.

    By the highest score × the share of keywords that match × ``factor``, where that share is at
    least ``least``. A keyword matches a word of the name that equals it; else one of them begins
    with the other, and that with at least three characters. An identifier matches as a whole or by
    any of its words.
    """
    if not factor or not keywords or not results:
        return list(results)
    highest = max(result.score for result in results)
    asked = _asked(keywords)
    shares: dict[MemoryFile | None, float] = {None: 0.0}
    moved = []
    for result in results:
        file = of(result)
        if file not in shares:
            shares[file] = _share_met(asked, file.words) if file else 0.0
        boost = highest * shares[file] * factor if shares[file] >= least else 0.0
        moved.append(result.moved(STEM, result.score + boost))
    return moved


def without_noise(
    results: Sequence[Scored], factors: Mapping[str, float], of: FileOf = file_of_result
) -> list[Scored]:
    """Scores multiplied by the factor of each kind of noise that a memory's file is."""
    kinds: dict[MemoryFile | None, tuple[str, ...]] = {None: ()}
    moved = []
    for result in results:
        file = of(result)
        if file not in kinds:
            kinds[file] = path_kinds(file.path) if file else ()
        for kind in kinds[file]:
            result = result.moved(f"{NOISE}: {kind}", result.score * factors.get(kind, 1.0))
        moved.append(result)
    return moved


def saturated(
    results: Sequence[Scored], factor: float, of: FileOf = file_of_result
) -> list[Scored]:
    """Memories picked greedily, the n-th of one file at its score × ``factor`` ** (n − 1)."""
    if factor == 1.0:
        return list(results)
    waiting = ranked(results)
    queues: defaultdict[object, list[Scored]] = defaultdict(list)
    for place, result in enumerate(waiting):
        queues[of(result) or place].append(result)
    # Within a file the order stands, so only each file's next one competes.
    picked = []
    for queue in queues.values():
        for number, result in enumerate(queue):
            picked.append(result.moved(SATURATION, result.score * factor**number))
    return ranked(picked)


def first_of_its_file(keep: Callable[[Memory], bool], trace: Trace) -> Callable[[Memory], bool]:
    """``keep``, refusing as well what comes after another kept memory of the same file."""
    seen: set[MemoryFile] = set()

    def first(memory: Memory) -> bool:
        file = file_of(memory)
        if file in seen:
            trace.drop(memory.id, "a better memory of the same file stands for it")
            return False
        if not keep(memory):
            return False
        if file is not None:
            seen.add(file)
        return True

    return first


def _filed(results: Sequence[Scored]) -> FileOf:
    """The files of some results, worked out once for all rules; equal files are one object."""
    same: dict[MemoryFile, MemoryFile] = {}
    files: dict[int, MemoryFile | None] = {}
    for result in results:
        file = file_of_result(result)
        files[result.candidate.ordinal] = same.setdefault(file, file) if file else None
    return lambda result: files[result.candidate.ordinal]


def _asked(keywords: Sequence[str]) -> list[frozenset[str]]:
    """The words of each different keyword."""
    return [name_words(keyword) for keyword in {k.casefold(): k for k in keywords}.values()]


def _share_met(asked: Sequence[frozenset[str]], names: frozenset[str]) -> float:
    begin_names = _beginnings(names)
    met = [not (w.isdisjoint(begin_names) and _beginnings(w).isdisjoint(names)) for w in asked]
    return sum(met) / len(met) if met else 0.0


def _beginnings(words: frozenset[str]) -> set[str]:
    """Words themselves, and what they begin with from three characters on."""
    cut = {word[:end] for word in words for end in range(SHORTEST_PREFIX, len(word))}
    return cut.union(words)
