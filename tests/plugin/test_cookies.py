"""A browser with cookies that no one can read gets a message, and others are served."""

from __future__ import annotations

import pytest

from .conftest import Served


@pytest.mark.parametrize("cookies", [b"<svg/onload=alert(1)>", b"a=b; (c)=d", b"a=\xff\xfe"])
@pytest.mark.parametrize("path", ["", ".json?q=tomatoes", "/memories/none.json"])
async def test_unreadable_cookies_are_refused_by_name(
    served: Served, cookies: bytes, path: str
) -> None:
    address = served.base + path
    answer = await served.datasette.client.get(address, headers={"Cookie": cookies})
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("Cookie: ")
    assert "svg" not in answer.text


async def test_cookies_of_other_programs_are_no_hindrance(served: Served) -> None:
    """Names and values that are odd, and allowed."""
    root = served.by("root")
    mine = "; ".join(f"{name}={value}" for name, value in root.cookies.items())
    headers = {"Cookie": f'{mine}; _ga.1=GS1.2~3; theme="dark mode"; empty=; grüße=dich'.encode()}
    answer = await served.datasette.client.get(f"{root.base}.json?q=tomatoes", headers=headers)
    assert answer.status_code == 200
