"""``memory-store eval --fit``: the default ranking, fitted to your own judgements.

Boundary: prints and keeps numbers and a model's name, never a query or a text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from memory_store.cli.progress import Progress
from memory_store.cli.rows import write_answer
from memory_store.configuration import typed_vault

if TYPE_CHECKING:
    from memory_store.evaluation import Judgements
    from memory_store.evaluation.ranking_fit import RankingFit
    from memory_store.store import MemoryStore

TAKE_BACK = "memory-store settings{} ranking general"


def fit(
    store: MemoryStore,
    queries: Mapping[str, str],
    judgements: Judgements,
    *,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Fit, report, and keep what helps."""
    from memory_store.evaluation.ranking_fit import fit_ranking

    with Progress() as progress:
        found = fit_ranking(store, queries, judgements, progress=progress)
    kept = found.fitted is not None and not dry_run
    if kept:
        store.set_ranking(found.fitted)
    lines = (*_lines(found), _ending(store, found, kept))
    write_answer(as_json, _as_data(found, kept) if as_json else None, lines)


def _as_data(found: RankingFit, kept: bool) -> dict[str, Any]:
    helps = {"order_helps": found.order_helps, "meaning_helps": found.meaning_helps}
    return {"ok": True, **to_builtins(found), **helps, "kept": kept}


def _lines(found: RankingFit) -> Iterator[str]:
    """The report as people read it."""
    yield f"{found.queries:,} judged queries, each measured by numbers fitted to other queries"
    yield ""
    yield f"nDCG@10 until now   {found.before}"
    yield f"nDCG@10 fitted      {found.after}"
    gain = found.gain
    verdict = "kept" if found.order_helps else "not kept: no gain that chance could not make"
    yield f"  difference {gain.difference:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]: {verdict}"
    before, after = found.errors
    yield f"scores are off by   {before:.3f} until now, {after:.3f} fitted"
    verdict = "kept" if found.meaning_helps else "not kept: no truer for queries left out"
    loss = found.loss
    yield f"  log-loss {loss.difference:+.3f} [{loss.low:+.3f}, {loss.high:+.3f}]: {verdict}"
    yield ""
    if found.fitted is not None:
        now, was = found.fitted.numbers, found.until_now
        rows = [(name, one, was.weights.get(name, 0.0)) for name, one in now.weights.items()]
        rows += [("slope", now.slope, was.slope), ("intercept", now.intercept, was.intercept)]
        for name, fitted, earlier in rows:
            yield f"{name:<26}{fitted:>8.3f}   until now {earlier:.3f}"
        yield ""
    if found.left_out:
        count = found.left_out
        yield f"note: {count:,} judged {'query was' if count == 1 else 'queries were'} not used"
    if found.unknown_refs:
        count = len(found.unknown_refs)
        yield f"note: {count:,} judged {'ref is' if count == 1 else 'refs are'} not in this vault"


def _ending(store: MemoryStore, found: RankingFit, kept: bool) -> str:
    if found.fitted is None:
        return "Nothing kept: the ranking stays as it is."
    if not kept:
        return "Nothing kept: without --dry-run these numbers would be."
    back = TAKE_BACK.format(typed_vault(store.path))
    return f"Kept, sealed in the vault's settings. Take it back: {back}"
