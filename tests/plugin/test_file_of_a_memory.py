"""The file that a memory came from is opened by its owner, on the server's own machine alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .conftest import Served, soup

NAME = "On the weir & more.md"


@pytest.fixture
def notes(served: Served, tmp_path: Path) -> Path:
    """A folder with one note, which was imported."""
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / NAME).write_text("Opens in March.")
    served.store.import_paths([folder], embed=False)
    return folder


def ids(served: Served, ref: str) -> list[str]:
    return [one.id for one in served.store.list(limit=100) if one.ref == ref]


async def source(served: Served, actor: str, id: str, **options: Any) -> Any:
    """The source on a memory's page: its text, where its link leads, and the path to copy."""
    answer = await served.by(actor).get(f"{served.base}/memories/{id}", **options)
    assert answer.status_code == 200
    page: Any = soup(answer)
    (shown,) = (one.parent.dd for one in page.find_all("dt", string="Source"))
    link, copied = shown.select_one("a"), shown.select_one("[data-copy]")
    return (
        shown.get_text(" ", strip=True).removesuffix(" Copy the path"),
        link and link["href"],
        copied and copied["data-copy"],
    )


@pytest.mark.parametrize(
    ("program", "link"),
    [
        ("", None),
        ("vscode", "vscode://file{}"),
        ("obsidian", "obsidian://open?path={}"),
        ("javascript:", None),
    ],
)
async def test_the_owner_opens_it_in_the_program_of_their_choice(
    served: Served, notes: Path, monkeypatch: pytest.MonkeyPatch, program: str, link: str | None
) -> None:
    monkeypatch.setenv("MEMORY_STORE_OPEN_WITH", program)
    (id,) = ids(served, NAME)
    address = link and link.format(f"{notes}/On%20the%20weir%20%26%20more.md")
    assert await source(served, "root", id) == (NAME, address, str(notes / NAME))


async def test_a_vault_of_obsidian_is_opened_there_unless_you_say_otherwise(
    served: Served, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (notes / ".obsidian").mkdir()
    (id,) = ids(served, NAME)
    assert (await source(served, "root", id))[1].startswith("obsidian://open?path=/")
    monkeypatch.setenv("MEMORY_STORE_OPEN_WITH", "zed")
    assert (await source(served, "root", id))[1].startswith("zed://file/")


@pytest.mark.parametrize(
    ("actor", "headers"), [("bob", {}), ("root", {"x-forwarded-for": "203.0.113.9"})]
)
async def test_others_and_from_elsewhere_see_its_name_alone(
    served: Served, notes: Path, actor: str, headers: dict[str, str]
) -> None:
    (id,) = ids(served, NAME)
    assert await source(served, actor, id, headers=headers) == (NAME, None, None)


async def test_what_a_record_says_of_itself_names_no_other_file(
    served: Served, notes: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret.md").write_text("x")
    for ref in ("../secret.md", str(tmp_path / "secret.md"), "gone.md"):
        id = served.store.add("Claims.", source=str(notes), ref=ref).id
        assert await source(served, "root", id) == (ref, None, None)
    id = served.store.add("Claims.", source=str(tmp_path), ref="secret.md").id
    assert await source(served, "root", id) == ("secret.md", None, None)


async def test_a_web_address_is_a_link_and_other_values_are_text(served: Served) -> None:
    kept = {"url": "https://example.org/a", "other": "javascript:alert(1)"}
    id = served.store.add("Read it.", metadata=kept).id
    page: Any = soup(await served.by("root").get(f"{served.base}/memories/{id}"))
    links = [one["href"] for one in page.select(".hy-record dd a")]
    assert kept["url"] in links
    assert kept["other"] not in links
