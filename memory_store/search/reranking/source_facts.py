"""What rules for files ask the index: who defines a name of the query, who is near whom by imports.

Boundary: works on keyed hashes, and on the import graph of files that the caller may read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from memory_store.code.facts import DEFINES
from memory_store.index.terms import has_term
from memory_store.search.query.analysis import Blinding
from memory_store.search.query.language import is_symbol_like
from memory_store.search.query.plan import Search
from memory_store.search.reranking.file_rules import HOPS, SourceFacts
from memory_store.text.canonical import folded
from memory_store.text.identifiers import identifiers


def source_facts(search: Search) -> SourceFacts:
    """The facts of one search. Its names are what looks like one (``Session.open_session``), or its
    only word: other words of a sentence are defined somewhere, too, and mean something else."""
    blinding = Blinding(search.context)
    spelled = [one.text for one in identifiers(search.analysis.parsed.text)]
    names = [folded(one) for one in spelled if len(spelled) == 1 or is_symbol_like(one)]
    defined = {
        name: frozenset(
            np.flatnonzero(has_term(search.snapshot, blinding.fact(DEFINES, name))).tolist()
        )
        for name in names
    }

    def near(ids: Sequence[str]) -> Mapping[str, int]:
        if search.context.code_files is None:
            return {}
        known = search.context.code_files()
        starts = [known.by_id[one] for one in ids if one in known.by_id]
        steps = known.graph.hops(starts, HOPS, both_ways=True)
        return {known.files[place].id: hops for place, hops in steps.items()}

    return SourceFacts(defined, search.analysis.symbol_like, near)
