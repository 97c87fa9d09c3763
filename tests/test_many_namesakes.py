"""Links among many notes of one name: to the nearest, in time that grows with their number."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from functools import partial
from itertools import product

from memory_store.session.link_graph import LinkGraph, _Noted
from memory_store.text.link_names import keys_of_link, names_of

MANY, LINKS = 1_500, 300


def noted(collection: str, source: str, path: str, *targets: str) -> _Noted:
    asked = tuple(("wiki", keys_of_link(one, "wiki", source, path)) for one in targets)
    return _Noted((1, None), collection, names_of(source, path, ["Plan"]), asked, ())


def test_many_notes_of_one_name_that_link_to_it_over_and_over() -> None:
    notes = {str(n): noted("c", "/home", f"a/{n}.md", *["plan"] * LINKS) for n in range(MANY)}
    started = time.process_time()
    graph = LinkGraph(notes)
    assert time.process_time() - started < 10
    assert len(graph.incoming["0"]) == MANY - 1


def test_the_nearest_is_the_one_of_the_smallest_distance() -> None:
    """As if each were compared with each."""
    chance = random.Random(7)
    folders = ("", "a/", "a/b/", "c/", "a/b/d/")
    places = list(product("xy", ("/one", "/two", ""), folders))
    for _ in range(60):
        chosen = chance.sample(places, chance.randint(2, 12))
        notes = {
            f"{n}": noted(collection, source, f"{folder}{chance.choice('mn')}.md", "plan")
            for n, (collection, source, folder) in enumerate(chosen)
        }
        graph = LinkGraph(notes)
        for name, one in notes.items():
            nearest = min(notes, key=partial(distance, one, notes))
            expected = () if nearest == name else (("wiki", nearest),)
            assert graph.outgoing.get(name, ()) == expected


def distance(one: _Noted, notes: Mapping[str, _Noted], other: str) -> tuple[object, ...]:
    names, here = notes[other].names, one.names.folders[:1]
    return (
        names.source != one.names.source,
        notes[other].collection != one.collection,
        not (here and here[0] in names.folders),
        names.depth,
        other,
    )
