"""Our pages where a person puts templates, variables and filters of their own in their place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from datasette import hookimpl
from datasette.plugins import pm

import datasette_hybrid

from .conftest import ALLOW, Filled, Serve, Served

RESULT = "_hybrid_result.html"
TEMPLATES = Path(datasette_hybrid.__file__).parent / "templates"
CHANGING = re.compile(r"\d ms|csrftoken|Locks in|nonce=")


class HousePlugin:
    """Another plugin, with a filter, a word for every page, and one that has to be waited for."""

    __name__ = "HousePlugin"

    @hookimpl
    def extra_template_vars(self) -> dict[str, Any]:
        async def looked_up(name: str) -> str:
            return f"<{name}> looked up"

        return {"house": "The <house>", "looked_up": looked_up}

    @hookimpl
    def prepare_jinja2_environment(self, env: Any) -> None:
        env.filters["shouted"] = lambda text: f"{text}!".upper()


@pytest.fixture
def house() -> Iterator[None]:
    plugin = HousePlugin()
    pm.register(plugin, name="house")
    yield
    pm.unregister(plugin, name="house")


async def with_templates(serve: Serve, filled: Filled, folder: Path, **files: str) -> Served:
    """The vault's Datasette with templates of its user's."""
    folder.mkdir()
    for name, text in files.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    served = await serve(filled.path, options=filled.options(allow=ALLOW), template_dir=str(folder))
    return served.by("bob")


async def test_a_part_of_the_page_can_be_written_by_another(
    house: None, serve: Serve, filled: Filled, tmp_path: Path
) -> None:
    part = "<b>{{ result.title|striptags|shouted }}</b> {{ house }} {{ looked_up('a <b>') }}"
    bob = await with_templates(serve, filled, tmp_path / "own", _hybrid_result=part)
    found = (await bob.get("?q=tomatoes")).text
    assert "<b>WATERING THE TOMATOES!</b> The &lt;house&gt; &lt;a &lt;b&gt;&gt; looked up" in found
    assert 'class="hy-result"' not in found


async def test_the_page_around_the_parts_can_be_written_by_another(
    house: None, serve: Serve, filled: Filled, tmp_path: Path
) -> None:
    whole = '{% extends "hybrid_base.html" %}{% block content %}{{ house }} {{ "é"|shouted }}'
    whole += '{% include "_hybrid_answer.html" %}{% endblock %}'
    bob = await with_templates(serve, filled, tmp_path / "own", hybrid_search=whole)
    found = (await bob.get("?q=tomatoes")).text
    assert "The &lt;house&gt; É!" in found
    assert 'class="hy-result"' in found
    assert 'id="hy-form"' not in found


async def test_a_part_is_what_including_it_would_be(
    serve: Serve, filled: Filled, tmp_path: Path
) -> None:
    as_it_is = await serve(filled.path, options=filled.options(allow=ALLOW))
    text = "{# only mine #}" + (TEMPLATES / RESULT).read_text(encoding="utf-8")
    own = await with_templates(serve, filled, tmp_path / "own", _hybrid_result=text)
    for path in (
        "?q=tomatoes",
        "?q=hostile&narrow=type:note",
        "",
        "?q=nowhere+-tomatoes&topic=garden",
    ):
        pages = [(await one.by("bob").get(path)).text for one in (as_it_is, own)]
        lines = [[one for one in page.split("\n") if not CHANGING.search(one)] for page in pages]
        assert lines[0] == lines[1], path
