"""What the plugin knows by name is named where it is explained."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from datasette_hybrid.audit.recorder import SURFACES
from datasette_hybrid.compat import ACTIONS
from datasette_hybrid.configuration import KNOWN
from datasette_hybrid.serving import routes
from datasette_hybrid.vaults import questions
from memory_store.records import LISTED_IDS, MODES, OPTION_NAMES, STATUSES
from memory_store.vault.audit_events import ACTIONS as DEEDS
from memory_store.vault.audit_events import SERVER
from memory_store.vault.members import ROLES

DOCS = Path(__file__).parents[2] / "docs"
NOWHERE = 2  # the last routes answer what is no address
PAGES = (
    *("search-page", "writing", "importing", "collections", "configuration", "permissions"),
    *("audit", "json-api", "assistants", "review"),
)


def page(name: str) -> str:
    """The text of a page of the documentation, in whatever part it stands."""
    return next(DOCS.rglob(f"{name}.md")).read_text("utf-8")


@pytest.mark.parametrize(
    ("document", "names"),
    [
        ("configuration", KNOWN),
        ("permissions", ACTIONS),
        ("permissions", ROLES),
        ("audit", {*SURFACES, SERVER}),
        ("audit", DEEDS),
        ("search", OPTION_NAMES),
        ("search", {*MODES, *STATUSES}),
        ("sql", {"hybrid_search", "hybrid_explain", "memory_text", "topic_hash", "rrf"}),
    ],
)
def test_every_name_is_said(document: str, names: set[str]) -> None:
    text = page(document)
    reported = {
        word for code in re.findall(r"`([^`\n]+)`", text) for word in re.findall(r"[\w-]+", code)
    }
    reported |= set(re.findall(r"`([^`\n]+)`", text))  # names of several words
    assert set(names) - reported == set()


def test_every_page_and_endpoint_is_said() -> None:
    text = "".join(page(name) for name in PAGES)
    for pattern, _ in routes()[:-NOWHERE]:
        ending = re.sub(r"\(\?P<\w+>[^)]*\)", "X", pattern).rstrip("$").replace("\\", "")
        last = ending.rpartition("/")[2]
        assert last in ("hybrid", "X", "X.json", "X.X") or _told(last, text), pattern


def _told(last: str, text: str) -> bool:
    """Whether an address with this ending is named, or the ending as code."""
    return f"/{last}" in text or f"`{last}`" in text


def test_limits_are_shown_as_they_are() -> None:
    search_page, importing = (page(name) for name in ("search-page", "importing"))
    assert f"the last {questions.MOST} questions of a vault, up to 16 KB" in " ".join(
        search_page.split()
    )
    assert questions.LONGEST == 16 * 1024
    assert f"the `ids` of the first {LISTED_IDS:,} memories" in " ".join(importing.split())
