"""Importing by upload: files, folders and archives, progress, what is refused and by which name."""

from __future__ import annotations

import asyncio
import gc
import io
import json
import re
import threading
import time
import warnings
import zipfile
from typing import Any

import pytest
from bs4 import BeautifulSoup

from datasette_hybrid.requests.cross_site import BY_TOKEN
from datasette_hybrid.uploading import jobs as import_jobs
from datasette_hybrid.uploading import listing as import_listing
from datasette_hybrid.uploading import uploaded
from datasette_hybrid.vaults.registry import vaults_of
from memory_store.importing import pipeline
from memory_store.scopes import EVERYTHING
from memory_store.store import MemoryStore

from .browsing import PATIENCE
from .conftest import ALLOW, Filled, Serve, Served, plain_datasette

BEARER = {"Authorization": "Bearer nothing"}
NOTES = {
    "garden/pears.md": b"# Pears\n\nPrune the #pears in winter.",
    "garden/wells/deep.txt": b"The deep well runs dry in August.",
    "rows.json": json.dumps([{"text": "A row about lanterns", "title": "Lanterns"}]).encode(),
    "table.csv": b"text,title\nA cell about barges,Barges\n",
}


def archive(files: dict[str, bytes]) -> bytes:
    """A zip archive of those files."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in files.items():
            made.writestr(name, content)
    return out.getvalue()


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


async def post(served: Served, files: dict[str, bytes], **fields: str) -> Any:
    """Upload files as JSON's endpoint takes them."""
    body, kind = form(files, **fields)
    return await served.datasette.client.post(
        f"{served.base}/import.json",
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


async def test_files_of_a_folder_become_memories_and_again_are_unchanged(served: Served) -> None:
    root = served.by("root")
    first = await imported(root, NOTES, type="fact", topics="autumn, work")
    assert (first["state"], first["imported"], first["failures"]) == ("done", 4, [])
    found = (await served.by("bob").get(".json?q=lanterns&mode=keyword")).json()["rows"][0]
    assert (found["title"], found["type"]) == ("Lanterns", "fact")
    assert set(found["topics"]) >= {"autumn", "work"}
    again = await imported(root, NOTES, type="fact", topics="autumn, work")
    assert (again["imported"], again["unchanged"]) == (0, 4)
    changed = {**NOTES, "garden/pears.md": b"# Pears\n\nPrune them in spring."}
    third = await imported(root, changed, type="fact", topics="autumn, work")
    assert (third["imported"], third["replaced"], third["unchanged"]) == (0, 1, 3)


def links(page: Any) -> list[tuple[str, str]]:
    """The memories that the page of an import lists: address and title."""
    found = BeautifulSoup(page.text, "html.parser").select(".hy-imported a")
    return [(str(one["href"]), one.get_text()) for one in found]


def page_of(job: dict[str, Any]) -> str:
    """The address of an import's page."""
    return f"/notes/-/hybrid/import/{job['job']}"


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
    assert (await root.send("DELETE", gone, None, headers=BEARER)).status_code in (200, 204)
    page = await root.get(page_of(first))
    assert [href for href, _ in links(page)] == [href for href, _ in shown[1:]]
    assert "1 of them is not there any more" in page.text
    trial = await imported(root, {"new.md": b"# New\n\nA new one."}, dry_run="1")
    assert (trial["imported"], trial["ids"]) == (1, [])


async def test_many_are_listed_page_by_page(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_listing, "AT_ONCE", 3)
    monkeypatch.setattr(pipeline, "LISTED_IDS", 5)
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
    settings = {"key-file": str(filled.key_file), "private-queries": True, "allow": ALLOW}
    served = await serve(filled.path, options={"notes": settings})
    root, wanda = served.by("root"), served.by("wanda")
    job = await imported(root, NOTES, topics="work")
    assert len(links(await root.get(page_of(job)))) == 4
    seen = await wanda.get(page_of(job))
    assert (seen.status_code, links(seen)) == (200, [])
    assert "Lanterns" not in seen.text
    vaults_of(served.datasette).of("notes").lock()
    locked = await root.get(page_of(job))
    assert (locked.status_code, links(locked)) == (200, [])


async def test_a_folder_and_an_archive_of_it_are_the_same(served: Served) -> None:
    """Whether the archive holds the folder or what is in it, and with what systems add."""
    root = served.by("root")
    folder = {f"barn/{name}": content for name, content in NOTES.items()}
    packed = archive({**folder, "__MACOSX/barn/._rows.json": b"x", ".DS_Store": b"x"})
    assert (await imported(root, folder))["imported"] == 4
    for name, content in (("barn.zip", archive(NOTES)), ("barn-2026.zip", packed)):
        again = await imported(root, {name: content})
        assert (again["imported"], again["unchanged"]) == (0, 4), name


async def test_a_name_with_a_slip_makes_no_collection(served: Served) -> None:
    """It would be open to everybody."""
    root = served.by("root")
    refused = await post(root, NOTES, collection="persnal")
    assert (refused.status_code, refused.json()["parameter"]) == (400, "collection")
    assert (await imported(root, NOTES, new_collection="autumn"))["imported"] == 4
    assert (await imported(root, NOTES, collection="autumn"))["unchanged"] == 4
    names = BeautifulSoup((await served.by("root").get("/import")).text, "html.parser")
    assert [one.text for one in names.find(id="hy-collection").find_all("option")] == [
        "personal, where a file says none",
        "autumn",
    ]


async def test_a_file_that_is_not_utf_8_is_said_to_be_mended(served: Served) -> None:
    done = await imported(served.by("wanda"), {"latin1.md": "Kümmel".encode("latin-1")})
    page = await served.by("wanda").get(f"{served.base}/import/{done['job']}")
    said = " ".join(BeautifulSoup(page.text, "html.parser").find(class_="hy-named").text.split())
    assert said.startswith("latin1.md:1 is not UTF-8: byte 0xfc")
    assert said.endswith("Save it as UTF-8 and upload it again.")


async def test_files_of_the_same_name_in_two_folders_are_two_memories(served: Served) -> None:
    root = served.by("root")
    for folder in ("barn", "boat"):
        note = {f"{folder}/readme.md": f"What lies in the {folder}".encode()}
        assert (await imported(root, note))["imported"] == 1
        assert (await imported(root, {f"{folder}.zip": archive(note)}))["unchanged"] == 1


async def test_one_file_may_be_the_body_itself(served: Served) -> None:
    answer = await served.datasette.client.post(
        f"{served.base}/import.json?name=note.md&collection=personal",
        content=b"# Kilns\n\nThe kiln is cold.",
        headers={**BEARER, "Content-Type": "text/markdown"},
        cookies=served.by("wanda").cookies,
    )
    assert answer.status_code == 202, answer.text
    assert (await ended(served.by("wanda"), answer.json()["job"]))["imported"] == 1


async def test_a_trial_writes_nothing(served: Served) -> None:
    trial = await imported(served.by("wanda"), NOTES, dry_run="1")
    assert (trial["imported"], trial["dry_run"]) == (4, True)
    rows = (await served.by("bob").get(".json?q=lanterns&mode=keyword")).json()["rows"]
    assert rows == []


async def test_only_writers_upload(served: Served) -> None:
    for who in ("bob", "alice", "mallory", None):
        assert (await post(served.by(who), NOTES)).status_code == 403
        assert (await served.by(who).get(f"{served.base}/import")).status_code == 403
    begun = await post(served.by("wanda"), NOTES)
    job = begun.json()["job"]
    await ended(served.by("wanda"), job)
    assert (await served.by("bob").get(f"{served.base}/import/{job}.json")).status_code == 403
    assert (await served.by("wanda").get(f"{served.base}/import/nothing.json")).status_code == 404


async def test_every_file_that_is_left_out_is_named_with_its_reason(served: Served) -> None:
    bad = {
        "../../etc/passwd.md": b"x",
        "/etc/hosts.txt": b"x",
        "C:/windows/win.txt": b"x",
        "photo.jpg": b"\xff\xd8",
        ".git/config.txt": b"x",
        "empty.md": b"",
        "broken.json": b"{",
        "wrong.txt": b"\xff\xfeoops\xff",
        "good.md": b"All is well.",
    }
    result = await imported(served.by("wanda"), bad)
    assert result["imported"] == 1
    failed = {name.rpartition("/")[2].partition(":")[0] for name, _ in result["failures"]}
    assert failed >= {"passwd.md", "hosts.txt", "win.txt", "broken.json"}
    skipped = {name for name, _ in result["skips"]}
    assert skipped >= {"photo.jpg", ".git/config.txt", "empty.md"}


async def test_what_is_too_large_or_broken_is_refused(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanda = served.by("wanda")
    monkeypatch.setattr(uploaded, "UPLOAD_LIMIT", 10_000)
    assert (await post(wanda, {"large.txt": b"x" * 20_000})).status_code == 413
    assert (await post(wanda, {})).status_code == 400
    wrong = await post(wanda, NOTES, collection="nobody's", type="nonsense")
    assert wrong.status_code == 400
    assert wrong.json()["parameter"] == "type"
    broken = await served.datasette.client.post(
        f"{served.base}/import.json",
        content=b"no boundary at all",
        headers={**BEARER, "Content-Type": "multipart/form-data; boundary=x"},
        cookies=wanda.cookies,
    )
    assert broken.status_code == 400


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


async def test_an_id_that_is_taken_is_the_failure_of_its_file_alone(
    filled: Filled, serve: Serve
) -> None:
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        store.create_collection("closed", owner="alice")
        hidden = store.add("A hidden diary", collection="closed")
    allow = {**ALLOW, "hybrid-audit": {"id": "root"}}
    settings = {"notes": {"key-file": str(filled.key_file), "allow": allow}}
    served = await serve(filled.path, options=settings)
    files = {f"n{n:02}.md": f"Note number {n}.".encode() for n in range(20)}
    files["m.md"] = f"---\nid: {hidden.id}\n---\nAnother diary".encode()
    result = await imported(served.by("root"), {"all.zip": archive(files)})
    assert (result["state"], result["imported"]) == ("done", 20)
    ((name, reason),) = result["failures"]
    assert name.startswith("m.md")
    assert "taken" in reason
    assert "closed" not in reason
    again = await imported(served.by("root"), {"all.zip": archive(files)})
    assert (again["unchanged"], len(again["failures"])) == (20, 1)
    rows = (await served.by("root").get(f"{served.base}/audit.json?action=import")).json()["rows"]
    assert [row["returned"] for row in rows] == [0, 20]


async def test_an_import_that_breaks_off_tells_and_notes_what_it_wrote(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memory_store.importing import pipeline

    monkeypatch.setattr(pipeline, "BATCH_MEMORIES", 1)
    monkeypatch.setattr(pipeline, "UNEMBEDDED_BATCH", 1)
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


async def test_a_trial_is_noted_since_it_tells_what_is_known(served: Served) -> None:
    await imported(served.by("wanda"), NOTES, dry_run="1")
    rows = (await served.by("root").get(f"{served.base}/audit.json?action=import")).json()["rows"]
    assert [(row["who"], row["returned"]) for row in rows] == [("wanda", 0)]


async def test_a_file_whose_memory_moved_out_of_sight_is_a_new_one(
    filled: Filled, serve: Serve
) -> None:
    settings = {"notes": {"key-file": str(filled.key_file), "allow": ALLOW}}
    served = await serve(filled.path, options=settings)
    root, vault = served.by("root"), vaults_of(served.datasette).of("notes")
    assert (await imported(root, {"plan.md": b"# Plan\n\nBarges."}))["imported"] == 1
    store = vault.use(EVERYTHING)
    (plan,) = [one for one in store.list() if one.title == "Plan"]
    closed = store.create_collection("closed", owner="alice")
    store.edit(plan.id, collection=closed.id)
    for text, told in ((b"Barges.", 1), (b"Ferries.", 0)):
        result = await imported(root, {"plan.md": b"# Plan\n\n" + text})
        assert (result["imported"], result["failures"]) == (told, [])
    assert (await imported(root, {"plan.md": b"# Plan\n\nFerries."}))["unchanged"] == 1
    assert result["replaced"] == 1
    assert store.get(plan.id).text == plan.text
    assert store.verify()["failures"] == []


def test_it_ends_with_the_server_and_asks_nobody_in_vain(
    filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The permissions of whoever began it are asked about in the server's loop, which is gone."""
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
    vault = vaults_of(wanda.datasette).of("notes")
    job = import_jobs.jobs_of(wanda.datasette).find(vault, name)
    assert job is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of a coroutine that nobody awaits
        held.release.set()
        for thread in threading.enumerate():
            if thread.name == "hybrid-import":
                thread.join(PATIENCE)
        gc.collect()
    assert (job.state, job.problem) == ("stopped", import_jobs.SERVER_STOPPED)
    vault.lock()


async def test_a_lock_in_the_middle_ends_it_and_says_so(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanda, held = served.by("wanda"), Held(monkeypatch, at=5)
    job = (await post(wanda, MANY)).json()["job"]
    await held.wait()
    vault = vaults_of(served.datasette).of("notes")
    locking = asyncio.ensure_future(asyncio.to_thread(vault.lock))
    while not vault.locked:
        await asyncio.sleep(0.01)
    held.release.set()
    await locking
    result = await ended(wanda, job)
    assert result["state"] == "locked"
    assert any("locked" in reason for _, reason in result["failures"])
    assert "Locked while importing" in (await wanda.get(f"{served.base}/import/{job}")).text


async def test_the_form_works_in_the_browser_s_way(served: Served) -> None:
    wanda = served.by("wanda")
    shown = await wanda.get(f"{served.base}/import")
    assert shown.status_code == 200
    cookies = {**wanda.cookies, **dict(shown.cookies)}
    token = re.search(r'name="csrftoken" value="([^"]*)"', shown.text)
    body, kind = form(NOTES, csrftoken=token[1] if token else "", topics="autumn")
    sent = await served.datasette.client.post(
        f"{served.base}/import", content=body, headers={"Content-Type": kind}, cookies=cookies
    )
    assert sent.status_code == 303, sent.text
    job = sent.headers["location"].rpartition("/")[2]
    await ended(wanda, job)
    page = await wanda.get(sent.headers["location"])
    assert page.status_code == 200
    assert links(page) == []  # who may not read is told the number alone
    body, kind = form({}, csrftoken=token[1] if token else "")
    empty = await served.datasette.client.post(
        f"{served.base}/import", content=body, headers={"Content-Type": kind}, cookies=cookies
    )
    assert empty.status_code == 400
    assert "choose at least one file" in empty.text


async def test_another_site_cannot_upload(served: Served) -> None:
    wanda = served.by("wanda")
    body, kind = form(NOTES)
    headers = {"Content-Type": kind, "Origin": "https://elsewhere.example"}
    headers["Sec-Fetch-Site"] = "cross-site"
    for path in ("import", "import.json"):
        refused = await served.datasette.client.post(
            f"{served.base}/{path}", content=body, headers=headers, cookies=wanda.cookies
        )
        assert refused.status_code == 403


async def test_a_form_without_its_token_is_refused_where_there_are_tokens(served: Served) -> None:
    wanda = served.by("wanda")
    body, kind = form(NOTES, csrftoken="another")
    refused = await served.datasette.client.post(
        f"{served.base}/import", content=body, headers={"Content-Type": kind}, cookies=wanda.cookies
    )
    assert refused.status_code == (403 if BY_TOKEN else 303)


async def test_an_upload_is_one_event_and_no_source_to_read_again(
    served: Served, filled: Filled
) -> None:
    await imported(served.by("wanda"), NOTES)
    rows = (await served.by("root").get(f"{served.base}/audit.json?action=import")).json()["rows"]
    assert [(row["who"], row["surface"], row["returned"]) for row in rows] == [
        ("wanda", "import", 4)
    ]
    vaults_of(served.datasette).lock_all()
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        from memory_store.errors import BadInputError

        with pytest.raises(BadInputError, match="nothing was imported yet"):
            store.import_paths()
        assert store.verify()["failures"] == []


async def test_a_vault_that_cannot_be_written_to_says_so(filled: Filled, serve: Serve) -> None:
    from memory_store.sqlite import connect

    connect(filled.path).execute("pragma journal_mode = delete")
    settings = {"notes": {"key-file": str(filled.key_file), "allow": ALLOW}}
    served = await serve(options=settings, immutables=[str(filled.path)])
    wanda = Served(served.datasette, "notes").by("wanda")
    refused = await post(wanda, NOTES)
    assert refused.status_code == 403
    assert "nothing can be written" in refused.json()["error"]
