"""Writes tables from what was measured.

Those of trust/quality.md from what ``make quality`` and ``make tuning`` wrote, that of *more like
this* in how-it-works/search.md from what ``python -m benchmarks.likeness`` wrote, those of
trust/security.md from what ``python -m benchmarks.leakage`` and ``benchmarks.after_lock`` wrote.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from memory_store.evaluation.statistics import shown_p

FOLDER = Path(__file__).parents[1] / "figures"
FIGURES = FOLDER / "quality.json"
MULTILINGUAL = FOLDER / "quality-multilingual.json"
TUNING = FOLDER / "tuning.json"
LIKENESS = FOLDER / "likeness.json"
LEAKAGE = FOLDER / "leakage.json"
AFTER_LOCK = FOLDER / "after_lock.json"
NAMES = {
    "demo": "the demo's notes",
    "scifact": "SciFact",
    "cranfield": "Cranfield",
    "xquad-de": "XQuAD-de",
    "locomo": "LoCoMo",
    "cisi": "CISI",
    "dbpedia-sub": "DBpedia, a part",
    "xquad-zh": "XQuAD-zh",
    "xquad-ru": "XQuAD-ru",
    "xquad-es-en": "XQuAD, Spanish asks English",
    "xquad-ru-en": "XQuAD, Russian asks English",
}
OTHERS = {  # run → what the table calls it
    "keyword": "keyword leg",
    "vector": "vector leg",
    "equal RRF": "*equal RRF*",
    "gnosis": "`gnosis`",
    "gno": "`gno`",
    "qmd": "`qmd`",
    "prx": "`prx`",
}
LIKENESS_RUNS = {  # run → what the table calls it
    "keyword": "words alone",
    "vector": "meaning alone",
    "heavy words": "both and topics, words as heavy as a query's",
}
ELSEWHERE = {"FTS5": "FTS5, measured apart", "QMD by keyword": "QMD by keyword, measured apart"}
HEADS = {"table": "the table", "memory": "memory"}
NAMED = {  # what a thief names who knows notes → what the table calls it
    "half": {
        "hashes": "by statistics of {} of the notes: hashes named",
        "all_tags": "and so topics of all notes",
        "other_tags": "and so topics of the other notes",
    },
    "few": {
        "hashes": "by {} notes that are found in the file: hashes named",
        "other_tags": "and so topics of notes but those {}",
    },
}

Figures = dict[str, Any]


def leaked() -> str:
    """What a thief reads in the file of a vault of each profile, topics in the table or not."""
    kinds: list[Figures] = json.loads(LEAKAGE.read_text("utf-8"))
    found = {
        "memories counted": lambda one: f"{one['counted']} of {one['memories']}",
        "types, times read": lambda one: f"{one['types']}, {one['times']}",
        "texts whose length no other has, before sealing": lambda one: _share(one["unique_before"]),
        "the same of what is sealed": lambda one: _share(one["unique_lengths"]),
        "pairs seen to share a topic": lambda one: f"{one['shared_topics']} of {one['true_pairs']}",
        "hashes of topics found by a list of words": (
            lambda one: f"{one['guessed']} of {one['topics']}"
        ),
        "the same guesses among hashes without a key": (
            lambda one: f"{one['control']} of {one['topics']}"
        ),
        **{
            what.format(kinds[0][part]["known"]): _named(part, share)
            for part, shares in NAMED.items()
            for share, what in shares.items()
        },
    }
    heads = [f"`{one['profile']}`, topics in {HEADS[one['kept']]}" for one in kinds]
    rows = [_row("a thief finds", heads), "|---|--:|--:|--:|"]
    return "\n".join(rows + [_row(name, map(cell, kinds)) for name, cell in found.items()])


def _named(part: str, share: str) -> Callable[[Figures], str]:
    return lambda one: _share(one[part][share])


def after_lock() -> str:
    """What stands in a process's memory before and after a lock."""
    profiles: list[Figures] = json.loads(AFTER_LOCK.read_text("utf-8"))
    heads = [
        f"`{one['profile']}` ({one['index']}), {when}"
        for one in profiles
        for when in ("open", "locked")
    ]
    rows = [_row("found", heads), "|---|--:|--:|--:|--:|"]
    for kind in ("keys", "key file", "vectors", "texts"):
        cells = [f"{one[kind][at]:,} ({one[kind][at + 1]:,})" for one in profiles for at in (0, 2)]
        rows.append(_row(kind, cells))
    return "\n".join(rows)


def _share(share: float) -> str:
    return f"{100 * share:.0f} %"


def figures(path: Path = FIGURES) -> list[Figures]:
    """What was measured, set by set."""
    measured: list[Figures] = json.loads(path.read_text("utf-8"))
    return measured


def rankings(path: Path = FIGURES) -> str:
    """``default`` with its interval, every other ranking with the p of ``default`` against it."""
    heads = ["measure", "**default**", *OTHERS.values(), *ELSEWHERE.values()]
    return _by_set(
        heads,
        lambda one: [
            one["measure"],
            f"**{_with_interval(one['estimates']['default'])}**",
            *(_against_default(one, run) for run in OTHERS),
            *(one["elsewhere"].get(system, "") for system in ELSEWHERE),
        ],
        path,
    )


def checks() -> str:
    """What else was measured of each set."""
    cells: dict[str, Callable[[Figures], str]] = {
        "memories": lambda one: f"{one['memories']:,}",
        "MRR@10": lambda one: _mean(one["mrr"]["mean"]),
        "in the file's order": _as_filed,
        "read by `maxsim`": lambda one: _reranked(one, "maxsim"),
        "sealed ÷ plain": lambda one: f"{one['sealed_ratio']:.4f}",
        "… the same first ten": _alike,
        "keyword order as FTS5's": _ordered,
        "vector recall@10": lambda one: f"{one['vector_recall']:.4f}",
    }
    return _by_set([*cells], lambda one: [cell(one) for cell in cells.values()])


def held_out() -> str:
    """What learned fusion reaches on each set, with numbers that never saw it."""
    rows = [
        _row(
            f"{NAMES[one['name']]} ({one['queries']:,})",
            [
                *(_mean(one[name]) for name in ("best_leg", "shipped", "held_out", "error")),
                f"{one['certain']:,}",
                "–" if one["right"] is None else _share(one["right"]),
            ],
        )
        for one in json.loads(TUNING.read_text("utf-8"))["sets"]
    ]
    heads = ["best leg or equal RRF", "as shipped", "held out", "error", "certain", "of them right"]
    return "\n".join([_row("", heads), "|---|" + "--:|" * len(heads), *rows])


def reliability() -> str:
    """What probabilities of left-out sets say, beside the share that is relevant."""
    tenths = json.loads(TUNING.read_text("utf-8"))["reliability"]
    rows = [
        _row("said", [_share(said) for said, _, _ in tenths]),
        _row("relevant", [_share(true) for _, true, _ in tenths]),
        _row("results", [f"{count:,}" for *_, count in tenths]),
    ]
    return "\n".join([rows[0], "|---|" + "--:|" * len(tenths), *rows[1:]])


def alike() -> str:
    """What is found by a memory: by each leg, by all, and the same in two collections."""
    sets = json.loads(LIKENESS.read_text("utf-8"))
    ours = [f"**{_with_interval(one['together']['default'])}**" for one in sets]
    in_halves = {
        run: [_mean(one["in_halves"][run]["mean"]) for one in sets] for run in ("vector", "default")
    }
    rows = [
        *(
            _row(called, [_by_memory(one, run) for one in sets])
            for run, called in LIKENESS_RUNS.items()
        ),
        _row("**both and topics, words half as heavy**", ours),
        _row("in two collections: meaning alone", in_halves["vector"]),
        _row("in two collections: all of it", in_halves["default"]),
    ]
    heads = [
        f"{NAMES[one['name']]} ({one['searched_by']:,} of {one['memories']:,})" for one in sets
    ]
    return "\n".join([_row("", heads), "|---" * (len(heads) + 1) + "|", *rows])


def _by_memory(one: Figures, run: str) -> str:
    return f"{_mean(one['together'][run]['mean'])} ({_chance(one['comparisons'][run]['p'])})"


def _against_default(one: Figures, run: str) -> str:
    return f"{_mean(one['estimates'][run]['mean'])} ({_chance(one['comparisons'][run]['p'])})"


def _as_filed(one: Figures) -> str:
    return _with_interval(one["as_filed"]) if one["as_filed"] else ""


def _reranked(one: Figures, name: str) -> str:
    if name not in one["rerankings"]:
        return "–"
    found = one["rerankings"][name]
    return f"{_mean(found['found']['mean'])} ({_chance(found['against']['p'])})"


def _alike(one: Figures) -> str:
    return f"{one['plain_agrees']:,} of {one['estimates']['default']['queries']:,}"


def _ordered(one: Figures) -> str:
    return f"{one['keyword_agrees']:,} of {one['keyword_queries']:,}"


def _with_interval(estimate: Figures) -> str:
    return f"{_mean(estimate['mean'])} [{_mean(estimate['low'])}, {_mean(estimate['high'])}]"


def _chance(p: float) -> str:
    return shown_p(p).replace(" ", "")


def _mean(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def _row(name: str, cells: Sequence[str]) -> str:
    return f"| {' | '.join([name, *cells])} |"


def _by_set(
    heads: Sequence[str], cells: Callable[[Figures], Sequence[str]], path: Path = FIGURES
) -> str:
    rows = [
        _row(f"{NAMES[one['name']]} ({one['estimates']['default']['queries']:,})", cells(one))
        for one in figures(path)
    ]
    return "\n".join([_row("", heads), "|---" * (len(heads) + 1) + "|", *rows])
