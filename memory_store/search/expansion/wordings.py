"""Expansion: a language model words the query in other ways, which are then searched for as well.

Off unless a model was chosen. Never in the way: what goes wrong becomes a line in ``degraded``,
and the search goes on with the query alone.

What a variant may say is limited by :mod:`~memory_store.search.expansion.guardrails`. The query's
conditions and filters stay what they are: they are in the mask of every leg.

Boundary: the query's words, without its filters and excluded words, and its ``intent:`` line go to
the chosen model, which may be a remote one. What it answered is kept sealed, and read as lines.
"""

from __future__ import annotations

import json
from time import monotonic
from typing import TYPE_CHECKING

from msgspec import UNSET, Struct
from msgspec.structs import replace

from memory_store.errors import ModelUnavailableError
from memory_store.records.degraded import Code, Degraded
from memory_store.records.explanation import Expand
from memory_store.search.candidates import LegList
from memory_store.search.legs.keyword import probe_keywords
from memory_store.search.query.analysis import with_variants
from memory_store.search.query.plan import Search
from memory_store.text.language import LANGUAGE_NAMES

if TYPE_CHECKING:
    from memory_store.models.expander import TypedLine

LONGEST_QUESTION = 1_000  # characters, intent included: who writes more has said it in many words
BUDGET_SHARE = 0.5  # of the time that is left: the rest is the reranker's
NO_LANGUAGE = "the language of the question"  # where the notes are in none: code
NONE_CHOSEN = "no query expansion: the recipe {} expects a language model."
CHOOSE_ONE = "MEMORY_STORE_EXPANDER=MODEL, or a search without expansion"
NOT_EXPANDED = "the query was not expanded: {}."
ANOTHER = "another model, or a search without expansion"
NOTHING_USABLE = "no usable line came from the language model {}"


class Expansion(Struct, frozen=True):
    """The search with its variants; the keyword ``probe`` where one was made; what went wrong."""

    search: Search
    probe: LegList | None = None
    degraded: tuple[Degraded, ...] = ()


def expansion(search: Search, note: Expand) -> Expansion:
    """The search with the variants that a model wrote for its query, or as it is.

    ``note`` takes what was done, or why nothing was. Raises only what the vault raises.
    """
    plan, recipe, analysis = search.plan, search.recipe, search.analysis
    model = search.options.expander or search.context.expander
    skipped = _skipped(search, model)
    if skipped is not None or model is None:
        note.skipped = skipped or UNSET
        missed = skipped == "no model chosen" and recipe.expansion == "expected"
        none = Degraded(Code.EXPANSION, NONE_CHOSEN.format(recipe.name), CHOOSE_ONE)
        return Expansion(search, degraded=(none,) if missed else ())
    from memory_store.search.expansion.guardrails import guarded

    note.model = model
    probe = None
    if "keyword" in plan.legs and recipe.strong_score is not None:
        probe = probe_keywords(search)
        if _is_confident(probe, search):
            note.skipped = "confident keyword match"
            return Expansion(search, probe)
    try:
        lines = _answered(search, model, note)
    except ModelUnavailableError as error:
        note.skipped = str(error)  # with the name of an error, never with its words
        said = NOT_EXPANDED.format(str(error).rstrip("."))
        return Expansion(search, probe, (Degraded(Code.EXPANSION, said, error.remedy),))
    if not lines:
        said = NOT_EXPANDED.format(NOTHING_USABLE.format(model))
        return Expansion(search, probe, (Degraded(Code.EXPANSION, said, ANOTHER),))
    wordings = guarded(lines, analysis.parsed, analysis.language)
    note.variants = tuple(f"{variant.kind}: {variant.text}" for variant in wordings.kept)
    note.dropped = sum(wordings.dropped.values())
    note.dropped_for = wordings.dropped
    worded = with_variants(analysis, wordings.kept, search.context)
    return Expansion(replace(search, analysis=worded), probe)


def _skipped(search: Search, model: str | None) -> str | None:
    """Why the query is not expanded; ``None`` when it is to be."""
    parsed = search.analysis.parsed
    if search.plan.mode != "hybrid":
        return f"{search.plan.mode} mode searches for the words as they are"
    if search.recipe.expansion == "never":
        return f"the recipe {search.recipe.name} does not expand"
    if not search.options.expand:
        return "switched off"
    if parsed.variants:
        return "the query brings its own variants"
    if not parsed.text:
        return "no words to expand"
    if len(parsed.text) + len(parsed.intent or "") > LONGEST_QUESTION:
        return "a query this long needs no other wording"
    return "no model chosen" if model is None else None


def _is_confident(probe: LegList | None, search: Search) -> bool:
    """Whether the keyword list begins with a match that needs no other wording (QMD).

    Scores are compared as b ÷ (1 + b); a second memory with the same content is no rival.
    """
    recipe = search.recipe
    if probe is None or not probe.scores or recipe.strong_score is None:
        return False
    tags = search.context.contents(probe.ordinals)
    scored = zip(tags, probe.scores, strict=True)
    rival = next((score for tag, score in scored if tag != tags[0]), 0.0)
    best, second = (b / (1.0 + b) for b in (probe.scores[0], rival))
    return best >= recipe.strong_score and best - second >= (recipe.strong_gap or 0.0)


def _answered(search: Search, model: str, note: Expand) -> tuple[TypedLine, ...]:
    """What the model says, or said before. Raises ModelUnavailableError.

    It may take its usual time, or a share of what the search has left. ``note`` takes whether it
    was asked, what it was sent, and how many lines it wrote.
    """
    from memory_store.models.expander import PROMPT_VERSION, SECONDS, TypedLine, expand

    context, parsed, code = search.context, search.analysis.parsed, search.analysis.language
    style = search.recipe.expander_style
    asked = "expansion" if style == "instructions" else f"expansion {style}"
    question = (asked, str(PROMPT_VERSION), model, code, parsed.text, parsed.intent or "")
    kept = context.find_expansion(*question)
    note.cached = kept is not None
    if kept is not None:
        return tuple(TypedLine(kind, text) for kind, text in json.loads(kept))

    def note_sent(prompt: str) -> None:
        note.sent = prompt

    seconds, deadline = SECONDS, search.plan.deadline
    if deadline is not None:
        seconds = max(0.0, min(seconds, (deadline - monotonic()) * BUDGET_SHARE))
    lines, note.lines = expand(
        model,
        parsed.text,
        parsed.intent,
        code=code,
        language=LANGUAGE_NAMES.get(code, NO_LANGUAGE),
        seconds=seconds,
        style=style,
        when_sent=note_sent,
    )
    if lines:
        context.keep_expansion(json.dumps(lines).encode(), *question)
    return lines
