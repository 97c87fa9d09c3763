"""Writes tables from what was measured.

Those of trust/quality.md from what ``make quality``, ``make tuning`` and ``benchmarks.switches``
wrote, that of *more like this* in how-it-works/search.md from what ``benchmarks.likeness`` wrote,
those of trust/security.md from what ``benchmarks.leakage`` and ``benchmarks.after_lock`` wrote.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "figures"
FIGURES = FOLDER / "quality.json"
MULTILINGUAL = FOLDER / "quality-multilingual.json"
SWITCHES = FOLDER / "switches.json"
TUNING = FOLDER / "tuning.json"
TUNING_MULTILINGUAL = FOLDER / "tuning-multilingual.json"
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
    "by places": "by places",
    "keyword": "words",
    "vector": "meaning",
    "equal RRF": "equal RRF",
    "gnosis": "`gnosis`",
    "qmd": "`qmd`",
    "prx": "`prx`",
}
HEADS = {"table": "the table", "memory": "memory"}
NAMED = {  # what a thief names who knows notes → what the table calls it
    "half": {
        "hashes": "by statistics of {} of the notes: hashes named",
        "other_tags": "and so topics of the other notes",
    },
    "few": {
        "hashes": "by {} notes that are found in the file: hashes named",
    },
}

Figures = dict[str, Any]


def leaked() -> str:
    """What a thief reads in the file of a vault of each profile, topics in the table or not."""
    kinds: list[Figures] = json.loads(LEAKAGE.read_text("utf-8"))
    found = {
        "types, times read": lambda one: f"{one['types']}, {one['times']}",
        "pairs seen to share a topic": lambda one: f"{one['shared_topics']} of {one['true_pairs']}",
        "hashes of topics found by a list of words": (
            lambda one: f"{one['guessed']} of {one['topics']}"
        ),
        **{
            what.format(kinds[0][part]["known"]): _named(part, share)
            for part, shares in NAMED.items()
            for share, what in shares.items()
        },
    }
    heads = [f"`{one['profile']}`, topics in {HEADS[one['kept']]}" for one in kinds]
    rows = [_row("a thief finds", heads), "|---|--:|--:|--:|"]
    return "\n".join(rows + [_row(name, [*map(cell, kinds)]) for name, cell in found.items()])


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


def rankings(path: Path = FIGURES, others: Sequence[str] = (*OTHERS,)) -> str:
    """``default`` with its interval, and other rankings: bold where they are as good or better."""
    heads = ["`default`", *(OTHERS[run] for run in others)]
    rows = [
        _row(
            f"{NAMES[one['name']]} ({one['estimates']['default']['queries']:,})",
            [
                _with_interval(one["estimates"]["default"]),
                *(_against_default(one, run) for run in others),
            ],
        )
        for one in figures(path)
    ]
    return "\n".join([_row("", heads), "|---" * (len(heads) + 1) + "|", *rows])


def checks() -> str:
    """What holds on every set, with the least of each figure."""
    found = figures()
    sealed = min(one["sealed_ratio"] for one in found)
    recall = min(one["vector_recall"] for one in found)
    same = sum(one["plain_agrees"] for one in found)
    asked = sum(one["estimates"]["default"]["queries"] for one in found)
    ordered = sum(one["keyword_agrees"] for one in found)
    worded = sum(one["keyword_queries"] for one in found)
    return (
        "Against the same search with nothing sealed, the worst set reaches "
        f"{sealed:.4f} of the quality, and {same:,} of {asked:,} queries give the same first ten. "
        f"The keyword order is FTS5's for {ordered:,} of {worded:,} queries. "
        f"The vector leg finds {recall:.4f} or more of an exhaustive scan."
    )


def held_out(path: Path = TUNING) -> str:
    """What learned fusion reaches with numbers that never saw the set."""
    heads = ["best of a leg and equal RRF", "left out", "error", "certain", "of these relevant"]
    rows = [
        _row(
            f"{NAMES[one['name']]} ({one['queries']:,})",
            [
                _mean(one["best_leg"]),
                _with_interval(one["held_out"]),
                _mean(one["error"]),
                f"{one['certain']:,}",
                "–" if one["right"] is None else _share(one["right"]),
            ],
        )
        for one in _tuned(path)["sets"]
    ]
    return "\n".join([_row("", heads), "|---|--:|---|--:|--:|--:|", *rows])


def in_short(path: Path = TUNING) -> str:
    """The sets that were left out together."""
    sets = _tuned(path)["sets"]
    shares = [one["held_out"]["mean"] / one["best_leg"] for one in sets]
    error = sum(one["error"] for one in sets) / len(sets)
    return (
        f"As the mean of {len(sets)} sets it reaches {sum(shares) / len(shares):.2f} of that best, "
        f"and on the worst {min(shares):.3f}; the error is {error:.3f}, and "
        f"{_error_of_all(path):.3f} over all results together: sets are judged more or less "
        "strictly."
    )


def _tuned(path: Path) -> Figures:
    tuned: Figures = json.loads(path.read_text("utf-8"))
    return tuned


def _error_of_all(path: Path) -> float:
    tenths = _tuned(path)["reliability"]
    off = sum(abs(said - true) * count for said, true, count in tenths)
    return float(off / sum(count for _, _, count in tenths))


def features(path: Path = TUNING) -> str:
    """What each feature brings to sets that are left out."""
    heads = ["brings", "most", "least", "error", "misled"]
    rows = [
        _row(
            f"without *{one['feature']}*" if one["feature"] else "all features",
            [
                *(_brought(one) if one["feature"] else ("", "", "")),
                _mean(one["error"]),
                f"{one['misled']:,}",
            ],
        )
        for one in _tuned(path)["features"]
    ]
    return "\n".join([_row("", heads), "|---|--:|---|---|--:|--:|", *rows])


def _brought(one: Figures) -> tuple[str, ...]:
    return (f"{one['brought']:+.3f}", *(_on_set(*one[end]) for end in ("gains", "loses")))


def _on_set(name: str, brought: float) -> str:
    return f"{NAMES[name]} {brought:+.3f}"


def switches() -> str:
    """What the default ranking would gain or lose by each switch that is no feature."""
    found = json.loads(SWITCHES.read_text("utf-8"))
    heads = ["at the mean", "clearly better", "clearly worse"]
    rows = []
    for switch in dict.fromkeys(one["switch"] for one in found):
        own = [one for one in found if one["switch"] == switch]
        mean = sum(one["difference"] for one in own) / len(own)
        better = [_on_set(one["name"], one["difference"]) for one in own if one["low"] > 0]
        worse = [_on_set(one["name"], one["difference"]) for one in own if one["high"] < 0]
        rows.append(_row(switch, [f"{mean:+.3f}", "; ".join(better), "; ".join(worse)]))
    return "\n".join([_row("", heads), "|---|--:|---|---|", *rows])


def reliability(path: Path = TUNING) -> str:
    """What probabilities of left-out sets say, beside the share that is relevant."""
    tenths = _tuned(path)["reliability"]
    rows = [
        _row("said", [_share(said) for said, _, _ in tenths]),
        _row("relevant", [_share(true) for _, true, _ in tenths]),
    ]
    return "\n".join([rows[0], "|---|" + "--:|" * len(tenths), *rows[1:]])


def alike() -> str:
    """What is found by a memory: by each leg, and by all."""
    rows = [
        "; ".join(
            f"{NAMES[one['name']]} {_mean(one['together'][run]['mean'])}"
            for one in json.loads(LIKENESS.read_text("utf-8"))
        )
        for run in ("default", "keyword", "vector")
    ]
    return "nDCG@10: {}. By words alone: {}. By meaning alone: {}.".format(*rows)


def _against_default(one: Figures, run: str) -> str:
    shown = _mean(one["estimates"][run]["mean"])
    behind = one["comparisons"][run]["p"] < 0.05 and (
        one["estimates"][run]["mean"] < one["estimates"]["default"]["mean"]
    )
    return shown if behind else f"**{shown}**"


def _with_interval(estimate: Figures) -> str:
    return f"{_mean(estimate['mean'])} [{_mean(estimate['low'])}, {_mean(estimate['high'])}]"


def _mean(value: float) -> str:
    return f"{value:.3f}".removeprefix("0")


def _row(name: str, cells: Sequence[str]) -> str:
    return f"| {' | '.join([name, *cells])} |"
