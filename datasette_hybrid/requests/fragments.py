"""Parts of our pages, rendered in one go.

Boundary: the same templates with the same variables and the same escaping as an ``include``.

Datasette renders its templates a step at a time, so that they may wait for something in between.
None of our parts does, and the steps cost more than the rendering: 8 ms of 12 for a page of ten
results (measured). So where every part is ours, they are rendered without. Where a site's own
template takes the place of one, what it calls may be worth waiting for: there they are rendered as
everything else is.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from jinja2 import Environment, pass_context
from jinja2.runtime import Context
from markupsafe import Markup

TEMPLATES = Path(__file__).parent.parent / "templates"

_at_once: WeakKeyDictionary[Environment, Environment | None] = WeakKeyDictionary()


@pass_context
def part(context: Context, name: str) -> Any:
    """What ``{% include name %}`` would be, for the top of a template: of variables that it sets
    itself only those at its top level are known to the part.
    """
    environment = without_waiting(context.environment)
    if environment is None:
        return _step_by_step(context, name)
    return Markup(environment.get_template(name).render(context.get_all()))


async def _step_by_step(context: Context, name: str) -> Markup:
    template = context.environment.get_template(name)
    return Markup(await template.render_async(context.get_all()))


def without_waiting(environment: Environment) -> Environment | None:
    """One like Datasette's that renders in one go; ``None`` where a part is not ours.

    Nor for an overlay, which may be made anew for each request: it would not be worth it.
    """
    if environment.overlayed:
        return None
    if environment not in _at_once:
        ours = all(_is_ours(environment, name) for name in _names())
        _at_once[environment] = _at_once_like(environment) if ours else None
    return _at_once[environment]


def _at_once_like(environment: Environment) -> Environment:
    """Files of an installed package do not change: none is looked at again."""
    return environment.overlay(enable_async=False, auto_reload=False)


@cache
def _names() -> tuple[str, ...]:
    return tuple(sorted(path.name for path in TEMPLATES.glob("_hybrid_*.html")))


def _is_ours(environment: Environment, name: str) -> bool:
    assert environment.loader is not None, "Datasette has one"
    _, path, _ = environment.loader.get_source(environment, name)
    return path is not None and Path(path).parent.samefile(TEMPLATES)
