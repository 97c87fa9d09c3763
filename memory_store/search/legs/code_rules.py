"""Rules of the keyword leg for source code: what defines a name counts more, noise counts less.

Boundary: works on keyed hashes and ordinals; opens nothing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from memory_store.code.facts import DEFINES, EXAMPLES, PATH, PROSE, TESTS
from memory_store.index.terms import Scored, has_term
from memory_store.search.query.analysis import Blinding
from memory_store.search.query.plan import Search
from memory_store.text.canonical import folded
from memory_store.text.identifiers import CODE, identifiers
from memory_store.text.tokens import is_stop_word

ASKING = {
    TESTS: frozenset({"test", "tests", "unittest", "unittests"}),
    EXAMPLES: frozenset({"example", "examples", "demo", "tutorial"}),
    PROSE: frozenset({"doc", "docs", "documentation", "readme", "changelog"}),
}
"""Words by which a query asks for what else is noise."""
_ABOUT = frozenset({"for", "of", "about"})


def code_ranked(found: Scored, search: Search) -> Scored:
    """BM25 × (1 + boost × share of the query's names that a file defines) × the factor of each kind
    of noise that it is."""
    recipe, snapshot = search.recipe, search.snapshot
    text, blinding = search.analysis.parsed.text, Blinding(search.context)
    spelled = [folded(name.text) for name in identifiers(text)]
    names = [one for one in spelled if not is_stop_word(one, search.analysis.language)]
    factors = np.ones(snapshot.size)
    for name in dict.fromkeys(names):
        defines = has_term(snapshot, blinding.fact(DEFINES, name))
        factors[defines] += recipe.definition_boost * names.count(name) / len(names)
    asked = _asked_for(spelled)
    for kind, factor in recipe.path_factors.items():
        if kind not in asked:
            factors[_of_kind(kind, search, blinding)] *= factor
    return Scored(found.ordinals, found.scores * factors[found.ordinals])


def _of_kind(kind: str, search: Search, blinding: Blinding) -> npt.NDArray[np.bool_]:
    snapshot = search.snapshot
    if kind != PROSE:
        return has_term(snapshot, blinding.fact(PATH, kind))
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
