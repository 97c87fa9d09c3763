"""Rules of the keyword leg for source code: what defines or is called so counts more, noise less.

A search over notes and code has a list by these rules beside that of all memories.

Boundary: works on keyed hashes and ordinals; opens nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from memory_store.code.facts import (
    BINDS,
    DEFINES,
    EXAMPLES,
    FILE,
    NAMED,
    PATH,
    PLACE,
    PROSE,
    TESTS,
    name_stems,
)
from memory_store.index.snapshot import Mask
from memory_store.index.terms import Matches, Scored, bm25, has_term, top_k
from memory_store.search.candidates import AS_CODE, LegList
from memory_store.search.legs.contents import enough
from memory_store.search.query.analysis import Blinding
from memory_store.search.query.plan import Search
from memory_store.search.recipes import CODE as RECIPE
from memory_store.search.recipes import Recipe
from memory_store.text.canonical import folded
from memory_store.text.identifiers import CODE, identifiers
from memory_store.text.tokens import is_stop_word

_DOCUMENTS = ("doc", "docs", "documentation")  # there is code in such folders, too
ASKING = {
    TESTS: frozenset({"test", "tests", "unittest", "unittests", "benchmark", "benchmarks"}),
    EXAMPLES: frozenset({"example", "examples", "demo", "tutorial", *_DOCUMENTS}),
    PROSE: frozenset({*_DOCUMENTS, "readme", "changelog"}),
}
"""Words by which a query asks for what else is noise."""
_ABOUT = frozenset({"for", "of", "about"})
_JOINT = re.compile(r"\.|::|->|#|\\")
_QUALIFIED = re.compile(rf"([^\W\d]\w*(?:(?:{_JOINT.pattern})[^\W\d]\w*)+)(?:\(\))?")
FIRST = 20  # files whose definitions are looked at: of 50 or 200 the order was the same


def code_ranked(found: Scored, search: Search, recipe: Recipe) -> Scored:
    """BM25 × (1 + what each word of the query adds where a file defines it, has it in a defined
    name, or is called so; each adds its share of the query) × the factors of noise. Then the first
    are raised by what their definitions are about."""
    snapshot = search.snapshot
    text, blinding = search.analysis.parsed.text, Blinding(search.context)
    typed = [name.text for name in identifiers(text)]
    spelled = [*map(folded, typed)]
    names = [one for one in typed if not is_stop_word(folded(one), search.analysis.language)]
    times = Counter(names)
    definition = recipe.symbol_boost if len(times) == 1 else recipe.definition_boost
    factors = np.ones(snapshot.size)
    for name, count in times.items():
        stems, share = name_stems([name]), count / len(names)
        defined = [(DEFINES, folded(name)), (BINDS, folded(name))]
        for facts, boost in (
            (defined, definition),
            ([(NAMED, stem) for stem in stems], recipe.name_boost),
            ([(FILE, stem) for stem in stems], recipe.file_boost),
        ):
            if boost:
                factors += boost * share * has_term(snapshot, blinding.any_fact(facts))
    asked = _asked_for(spelled)
    for kind, factor in recipe.path_factors.items():
        if kind not in asked:
            factors[_of_kind(kind, search, blinding)] *= factor
    ranked = Scored(found.ordinals, found.scores * factors[found.ordinals])
    if qualified := _QUALIFIED.fullmatch(text.strip()):
        return _of_that_path(ranked, _JOINT.split(qualified[1]), search, recipe.symbol_boost)
    if len(times) > 1 and recipe.description_boost:
        return _described(ranked, frozenset(name_stems(times)), search, recipe.description_boost)
    return ranked


def _of_that_path(ranked: Scored, parts: Sequence[str], search: Search, boost: float) -> Scored:
    """The scores of the first, those raised that define ``Session.open`` in a ``Session``."""
    scores, wanted = ranked.scores.copy(), f".{'.'.join(parts)}"
    for place in np.argsort(-scores, kind="stable")[:FIRST].tolist():
        known = search.context.symbols(int(ranked.ordinals[place]))
        paths = (one.path for one in known.definitions if one.name == parts[-1]) if known else ()
        if any(f".{path}".endswith(wanted) for path in paths):
            scores[place] *= 1.0 + boost
    return Scored(ranked.ordinals, scores)


def _described(ranked: Scored, asked: frozenset[str], search: Search, boost: float) -> Scored:
    """The scores of the first × (1 + ``boost`` × the greatest share of the words asked for that one
    of its definitions is about, without one word: by itself it says little)."""
    scores = ranked.scores.copy()
    for place in np.argsort(-scores, kind="stable")[:FIRST].tolist():
        about = search.context.descriptions(int(ranked.ordinals[place]))
        met = max((len(asked.intersection(one.split(" "))) for one in about), default=0)
        scores[place] *= 1.0 + boost * max(0, met - 1) / len(asked)
    return Scored(ranked.ordinals, scores)


def code_list(matches: Matches, mask: Mask, search: Search) -> LegList:
    """What of ``mask`` holds a word of the query, in the order of the recipe for source code."""
    snapshot = search.snapshot
    found = bm25(snapshot, matches, k1=RECIPE.k1, b=RECIPE.b, mask=mask & search.analysis.mask)
    found = code_ranked(found, search, RECIPE)
    top = enough(partial(top_k, snapshot, found.ordinals, found.scores), "keyword", AS_CODE, search)
    listed = LegList.of("keyword", AS_CODE, ordinals=top.ordinals, scores=top.scores)
    return replace(listed, every=found)


def _of_kind(kind: str, search: Search, blinding: Blinding) -> npt.NDArray[np.bool_]:
    snapshot = search.snapshot
    if kind != PROSE:
        return has_term(snapshot, blinding.any_fact([(PATH, kind), (PLACE, kind)]))
    prose = np.array([language != CODE for language in snapshot.languages], dtype=np.bool_)
    of_kind: npt.NDArray[np.bool_] = prose[snapshot.language_codes]
    return of_kind


def _asked_for(spelled: list[str]) -> set[str]:
    """The kinds that a query asks for: ``session tests``, ``example of a view``, ``test_open``.

    In the middle of a sentence the same words are about the subject: ``the test client``.
    """
    following = [*spelled[1:], ""]
    said = {spelled[0], spelled[-1]} if spelled else set[str]()
    said |= {one for one, after in zip(spelled, following, strict=True) if after in _ABOUT}
    said |= {"tests"} if any(one.startswith("test_") for one in spelled) else set()
    return {kind for kind, words in ASKING.items() if words & said}
