"""An upload's import while it runs, what ends it, and what its page lists afterwards."""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import warnings
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
from bs4 import BeautifulSoup
from datasette import hookimpl
from datasette.plugins import pm

from datasette_hybrid.uploads import jobs as import_jobs
from datasette_hybrid.uploads import pages as import_pages
from memory_store.importing import batch
from memory_store.importing import job as import_job
from memory_store.session import entries

from .browsing import PATIENCE
from .conftest import ALLOW, Filled, Serve, Served, plain_datasette
from .uploads import BEARER, MANY, NOTES, Held, ended, form, imported, links, page_of, post


async def test_who_imports_for_long_keeps_no_other_from_importing(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanda, root, held = served.by("wanda"), served.by("root"), Held(monkeypatch, at=5)
    long = (await post(wanda, MANY)).json()["job"]
    await held.wait()
    monkeypatch.setattr(import_jobs, "KEPT_JOBS", 2)
    for _ in range(3):
        assert (await imported(root, NOTES))["state"] == "done"
    assert (await post(wanda, NOTES)).status_code == 409
    held.release.set()
    assert (await ended(wanda, long))["imported"] == len(MANY)


async def test_the_same_files_by_two_people_at_once_are_there_once(
    filled: Filled, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = {"id": ["root", "wanda"]}
    served = await serve(filled.path, options=filled.options(allow=dict.fromkeys(ALLOW, both)))
    wanda, root, held = served.by("wanda"), served.by("root"), Held(monkeypatch, at=11)
    before = served.store.stats()["memories"]
    changed = {**MANY, "notes/003.md": b"Note number 3, otherwise."}
    jobs = [(await post(root, MANY)).json()["job"], (await post(wanda, changed)).json()["job"]]
    await held.wait()
    while len(import_jobs.jobs_of(served.datasette)._jobs["notes"]) < 2 or not all(
        job.done == 11 for job in import_jobs.jobs_of(served.datasette)._jobs["notes"]
    ):
        await asyncio.sleep(0.02)
    held.release.set()
    one, other = [await ended(root, job) for job in jobs]
    assert {one["state"], other["state"]} == {"done"}
    assert one["imported"] + other["imported"] == 12
    assert one["unchanged"] + other["unchanged"] == 11
    ((name, reason),) = one["failures"] + other["failures"]
    assert name.startswith("notes/003.md")
    assert "import it again" in reason
    assert served.store.stats()["memories"] == before + 12
    assert served.store.verify(full=True)["failures"] == []


async def test_its_page_lists_exactly_what_it_wrote(served: Served) -> None:
    root, notes = served.by("root"), {**NOTES, "nameless.txt": b"No heading in here.\n\nMore."}
    first = await imported(root, notes, topics="work")
    shown = links(await root.get(page_of(first)))
    assert {title for _, title in shown} == {"Pears", "deep", "Lanterns", "Barges", "nameless"}
    assert [href.rpartition("/")[2] for href, _ in shown] == first["ids"]
    assert (await root.get(shown[0][0])).status_code == 200
    unchanged = await imported(root, notes, topics="work")
    assert (unchanged["ids"], links(await root.get(page_of(unchanged)))) == ([], [])
    changed = await imported(
        root, {"rows.json": b'[{"text": "A row about wicks", "title": ""}]'}, topics="work"
    )
    (one,) = links(await root.get(page_of(changed)))
    assert one[1] == "A row about wicks"
    gone = f"{root.base}/memories/{first['ids'][0]}.json"
    assert (await root.send("DELETE", gone)).status_code in (200, 204)
    page = await root.get(page_of(first))
    assert [href for href, _ in links(page)] == [href for href, _ in shown[1:]]
    assert "1 of them is not there any more" in page.text
    trial = await imported(root, {"new.md": b"# New\n\nA new one."}, dry_run="1")
    assert (trial["imported"], trial["ids"]) == (1, [])


async def test_many_are_listed_page_by_page(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_pages, "AT_ONCE", 3)
    monkeypatch.setattr(import_job, "LISTED_IDS", 5)
    root = served.by("root")
    rows = [{"text": f"Row number {number}"} for number in range(7)]
    job = await imported(root, {"rows.json": json.dumps(rows).encode()})
    assert (job["imported"], len(job["ids"])) == (7, 5)
    address = page_of(job)
    first, second = await root.get(address), await root.get(f"{address}?from=4")
    assert [len(links(page)) for page in (first, second)] == [3, 2]
    assert f"{address}?from=4#imported" in first.text
    assert f"{address}?from=1#imported" in second.text
    assert "The first 5 of 7 are listed here." in first.text
    for wrong in ("0", "-1", "x", "", "999999"):
        assert (await root.get(f"{address}?from={wrong}")).status_code == 200


async def test_the_list_shows_nothing_that_its_reader_may_not_read(
    filled: Filled, serve: Serve
) -> None:
    """Nor anything of a question in an address, where those are private."""
    served = await serve(filled.path, options=filled.options(allow=ALLOW, private_queries=True))
    root, wanda = served.by("root"), served.by("wanda")
    job = await imported(root, NOTES, topics="work")
    assert len(links(await root.get(page_of(job)))) == 4
    seen = await wanda.get(page_of(job))
    assert (seen.status_code, links(seen)) == (200, [])
    assert "Lanterns" not in seen.text
    served.vault.lock()
    locked = await root.get(page_of(job))
    assert (locked.status_code, links(locked)) == (200, [])


async def test_while_locked_no_one_but_who_began_it_learns_its_names(served: Served) -> None:
    """A caller who has come to know the address, by a log or a history."""
    root = served.by("root")
    job = await imported(root, {"Heartache.md": b"\xff\xfe\x00 no text", **NOTES})
    assert "Heartache" in (await root.get(page_of(job))).text
    served.vault.lock()
    for asking in (served, served.by("wanda"), served.by("mallory")):
        for address in (page_of(job), f"{page_of(job)}.json"):
            refused = await asking.get(address)
            assert refused.status_code in (403, 423), address
            assert "Heartache" not in refused.text
        stopping = await asking.send("DELETE", f"{page_of(job)}.json")
        assert stopping.status_code in (403, 423)
    assert "Heartache" in (await root.get(page_of(job))).text


async def test_one_at_a_time_with_progress_and_a_way_to_stop(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanda, held = served.by("wanda"), Held(monkeypatch, at=5)
    job = (await post(wanda, MANY)).json()["job"]
    await held.wait()
    assert (await post(wanda, NOTES)).status_code == 409
    address = f"{served.base}/import/{job}"
    page = BeautifulSoup((await wanda.get(address)).text, "html.parser")
    assert page.select_one("noscript meta[http-equiv=refresh]")
    assert (page.progress["value"], page.progress["max"]) == ("5", "12")
    assert (await wanda.submit(address, {})).status_code == 303
    held.release.set()
    result = await ended(wanda, job)
    assert result["state"] == "stopped"
    assert 0 < result["imported"] < 12
    assert "stopped here: 6 of 12" in result["failures"][0][1]
    page = BeautifulSoup((await wanda.get(address)).text, "html.parser")
    assert not page.select("noscript meta")
    assert "Import stopped" in page.h1.text
    assert (await imported(wanda, MANY))["imported"] == 12 - result["imported"]


async def test_while_a_batch_is_embedded_the_page_says_how_far_it_is(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its bar stood still for as long as the first batch took."""
    monkeypatch.setattr(entries, "EMBEDDED_AT_ONCE", 5)
    monkeypatch.setattr(batch, "BATCH_SECONDS", 600)
    reached, release = threading.Event(), threading.Event()
    plain = import_jobs.Job._embedded

    def waiting(job: Any, done: int, total: int) -> None:
        plain(job, done, total)
        if done == 10:
            reached.set()
            release.wait(PATIENCE)

    monkeypatch.setattr(import_jobs.Job, "_embedded", waiting)
    root = served.by("root")
    job = (await post(root, MANY)).json()["job"]
    assert await asyncio.to_thread(reached.wait, PATIENCE)
    address = f"{served.base}/import/{job}"
    assert (await root.get(f"{address}.json")).json()["embedding"] == [10, 12]
    page = BeautifulSoup((await root.get(address)).text, "html.parser")
    assert (page.progress["value"], page.progress["max"]) == ("10", "12")
    assert "10 of 12 passages of this batch embedded" in page.find(id="hy-progress").get_text()
    release.set()
    result = await ended(root, job)
    assert (result["imported"], result["embedding"]) == (12, None)


async def test_while_files_arrive_no_other_import_begins_and_then_one_may(served: Served) -> None:
    wanda = served.by("wanda")
    _, kind = form(NOTES)
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def receive() -> dict[str, Any]:
        begun.set()
        await go_on.wait()
        return {"type": "http.disconnect"}

    async def send(_: Any) -> None: ...

    cookie = "; ".join(f"{name}={value}" for name, value in wanda.cookies.items())
    headers = {**BEARER, "Content-Type": kind, "Cookie": cookie, "Host": "localhost"}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": f"{served.base}/import.json",
        "raw_path": f"{served.base}/import.json".encode(),
        "query_string": b"",
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
    }
    first = asyncio.ensure_future(served.datasette.app()(scope, receive, send))
    await asyncio.wait_for(begun.wait(), 30)
    assert (await post(wanda, NOTES)).status_code == 409
    go_on.set()
    await first
    assert (await imported(wanda, NOTES))["imported"] == 4


async def test_an_import_that_breaks_off_says_and_notes_what_it_wrote(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "BATCH_MEMORIES", 1)
    monkeypatch.setattr(batch, "UNEMBEDDED_BATCH", 1)
    plain = import_jobs.Job._at

    def breaking(job: Any, name: str, done: int, total: int | None) -> None:
        plain(job, name, done, total)
        if done == 5:
            raise RuntimeError("the machine breaks")

    monkeypatch.setattr(import_jobs.Job, "_at", breaking)
    result = await imported(served.by("wanda"), MANY)
    assert (result["state"], result["imported"]) == ("failed", 5)
    rows = (await served.by("root").get(f"{served.base}/audit.json?action=import")).json()["rows"]
    assert [(row["who"], row["returned"]) for row in rows] == [("wanda", 5)]


def test_it_ends_with_the_server_and_asks_no_one_in_vain(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its actor's permissions are asked about in the server's loop, which is gone."""
    held = Held(monkeypatch, at=5)

    async def begun() -> tuple[Served, str]:
        settings = {"key-file": str(filled.key_file), "allow": ALLOW}
        configuration = {"plugins": {"datasette-hybrid": {"databases": {"notes": settings}}}}
        datasette = plain_datasette((filled.path,), configuration)
        await datasette.invoke_startup()
        wanda = Served(datasette).by("wanda")
        job = (await post(wanda, MANY)).json()["job"]
        await held.wait()
        return wanda, job

    wanda, name = asyncio.run(begun())
    vault = wanda.vault
    job = import_jobs.jobs_of(wanda.datasette).find(vault, name)
    assert job is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of a coroutine that no one awaits
        held.release.set()
        for thread in threading.enumerate():
            if thread.name == "hybrid-import":
                thread.join(PATIENCE)
        gc.collect()
    assert (job.state, job.problem) == ("stopped", import_jobs.SERVER_STOPPED)
    vault.lock()


async def test_one_for_which_no_thread_is_to_be_had_is_in_no_ones_way(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanda, start = served.by("wanda"), threading.Thread.start

    def too_many(thread: threading.Thread) -> None:
        if thread.name == "hybrid-import":
            raise RuntimeError("can't start new thread")
        start(thread)

    with monkeypatch.context() as busy:
        busy.setattr(threading.Thread, "start", too_many)
        assert (await post(wanda, NOTES)).status_code == 500
    assert (await imported(wanda, NOTES))["imported"] == 4


class Pondering:
    """Another plugin, which knows no actor and takes its time to say so when it is asked to."""

    __name__ = "Pondering"

    def __init__(self) -> None:
        self.asked_to_ponder = False
        self.asked = asyncio.Event()
        self._thought: Any = None

    @hookimpl
    def actor_from_request(self) -> Any:
        async def looked_up() -> None:
            if self.asked_to_ponder:
                self.asked_to_ponder = False
                thought = asyncio.Event()  # which no other task holds, as in a client's connection
                self._thought = weakref.ref(thought)
                self.asked.set()
                await thought.wait()

        return looked_up

    def answer(self) -> None:
        """Let it answer; fails where the one that was asked is no more."""
        self._thought().set()


@pytest.fixture
def pondering() -> Iterator[Pondering]:
    plugin = Pondering()
    pm.register(plugin, name="pondering")
    yield plugin
    pm.unregister(plugin, name="pondering")


async def asking(wanda: Served, pondering: Pondering, held: Held) -> str:
    """An import that has just asked whether it may go on, and was not answered yet."""
    job: str = (await post(wanda, MANY)).json()["job"]
    await held.wait()
    pondering.asked_to_ponder = True
    held.release.set()
    await asyncio.wait_for(pondering.asked.wait(), PATIENCE)
    return job


async def test_it_goes_on_after_a_slow_answer_whatever_garbage_is_collected_meanwhile(
    served: Served, pondering: Pondering, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanda = served.by("wanda")
    job = await asking(wanda, pondering, Held(monkeypatch, at=5))
    await asyncio.sleep(0.1)  # by then the loop itself holds nothing of it
    gc.collect()
    pondering.answer()
    result = await ended(wanda, job)
    assert (result["state"], result["imported"]) == ("done", 12)


async def test_it_can_be_stopped_while_no_one_says_whether_it_may_go_on(
    served: Served, pondering: Pondering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_jobs, "STOPPING_SECONDS", 0.1)
    wanda = served.by("wanda")
    job = await asking(wanda, pondering, Held(monkeypatch, at=5))
    assert (await wanda.submit(f"{served.base}/import/{job}", {})).status_code == 303
    result = await ended(wanda, job)
    assert (result["state"], result["error"]) == ("stopped", import_jobs.STOPPED_UNASKED)
    assert (await imported(wanda, NOTES))["imported"] == 4
    pondering.answer()


async def test_a_lock_in_the_middle_ends_it_and_says_so(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanda, held = served.by("wanda"), Held(monkeypatch, at=5)
    job = (await post(wanda, MANY)).json()["job"]
    await held.wait()
    vault = served.vault
    locking = asyncio.ensure_future(asyncio.to_thread(vault.lock))
    while not vault.locked:
        await asyncio.sleep(0.01)
    held.release.set()
    await locking
    result = await ended(wanda, job)
    assert result["state"] == "locked"
    assert any("locked" in reason for _, reason in result["failures"])
    assert "Locked while importing" in (await wanda.get(f"{served.base}/import/{job}")).text
