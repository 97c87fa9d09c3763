"""Uploads in tests: what a browser or a program sends, and imports that are waited for."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from typing import Any

import pytest
from bs4 import BeautifulSoup

from datasette_hybrid.uploads import jobs as import_jobs

from .browsing import PATIENCE
from .conftest import BEARER, Served

NOTES = {
    "garden/pears.md": b"# Pears\n\nPrune the #pears in winter.",
    "garden/wells/deep.txt": b"The deep well runs dry in August.",
    "rows.json": json.dumps([{"text": "A row about lanterns", "title": "Lanterns"}]).encode(),
    "table.csv": b"text,title\nA cell about barges,Barges\n",
}


def form(files: dict[str, bytes], **fields: str) -> tuple[bytes, str]:
    """A multipart body as a browser sends it, paths in its names, and its content type."""
    boundary = "a-boundary-that-no-file-holds"
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in fields.items()
    ]
    for name, content in files.items():
        parts.append(
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n".encode()
            + content
            + b"\r\n"
        )
    body = b"".join(parts) + f"--{boundary}--\r\n".encode()
    return body, f"multipart/form-data; boundary={boundary}"


async def post(
    served: Served, files: dict[str, bytes], address: str = "/import.json", **fields: str
) -> Any:
    """Upload files as JSON's endpoint takes them."""
    body, kind = form(files, **fields)
    return await served.datasette.client.post(
        served.base + address,
        content=body,
        headers={**BEARER, "Content-Type": kind},
        cookies=served.cookies,
    )


async def ended(served: Served, job: str) -> dict[str, Any]:
    """The job once it is over."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        answer = await served.get(f"{served.base}/import/{job}.json")
        assert answer.status_code == 200, answer.text
        if answer.json()["state"] != "running":
            return answer.json()
        await asyncio.sleep(0.05)
    raise AssertionError("the import does not end")


async def imported(served: Served, files: dict[str, bytes], **fields: str) -> dict[str, Any]:
    """What came of an upload."""
    begun = await post(served, files, **fields)
    assert begun.status_code == 202, begun.text
    return await ended(served, begun.json()["job"])


def links(page: Any) -> list[tuple[str, str]]:
    """The memories that the page of an import lists: address and title."""
    found = BeautifulSoup(page.text, "html.parser").select(".hy-imported a")
    return [(str(one["href"]), one.get_text()) for one in found]


def page_of(job: dict[str, Any]) -> str:
    """The address of an import's page."""
    return f"/notes/-/hybrid/import/{job['job']}"


class Held:
    """An import that stands still at a file until it is let go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
        self.reached, self.release = threading.Event(), threading.Event()
        plain = import_jobs.Job._at

        def waiting(job: Any, name: str, done: int, total: int | None) -> None:
            plain(job, name, done, total)
            if done == at:
                self.reached.set()
                self.release.wait(PATIENCE)

        monkeypatch.setattr(import_jobs.Job, "_at", waiting)

    async def wait(self) -> None:
        assert await asyncio.to_thread(self.reached.wait, PATIENCE)


MANY = {f"notes/{n:03}.md": f"Note number {n}.".encode() for n in range(12)}
