"""Importing by upload: files, folders and archives, what is refused and by which name."""

from __future__ import annotations

import asyncio
import re
import time
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from zip_files import zipped

from datasette_hybrid.uploads import files
from datasette_hybrid.vaults.registry import vaults_of
from memory_store.scopes import EVERYTHING
from memory_store.store import MemoryStore

from .conftest import ALLOW, Filled, Serve, Served, soup
from .uploads import BEARER, NOTES, ended, form, imported, links, post


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


async def test_a_folder_and_an_archive_of_it_are_the_same(served: Served) -> None:
    """Whether the archive holds the folder or what is in it, and with what systems add."""
    root = served.by("root")
    folder = {f"barn/{name}": content for name, content in NOTES.items()}
    packed = zipped({**folder, "__MACOSX/barn/._rows.json": b"x", ".DS_Store": b"x"})
    assert (await imported(root, folder))["imported"] == 4
    for name, content in (("barn.zip", zipped(NOTES)), ("barn-2026.zip", packed)):
        again = await imported(root, {name: content})
        assert (again["imported"], again["unchanged"]) == (0, 4), name


async def test_documents_are_uploaded_like_notes_alone_and_in_an_archive(served: Served) -> None:
    pytest.importorskip("markdownify", reason="the extra documents is not installed")
    page = {"shed.html": b"<title>The shed</title><p>The spare key hangs behind it.</p>"}
    notebook = {"bees.ipynb": b'{"cells": [{"cell_type": "markdown", "source": "# Bees"}]}'}
    done = await imported(served.by("root"), {**page, "more.zip": zipped(notebook)})
    assert (done["imported"], done["failures"], done["skips"]) == (2, [], [])
    found = (await served.by("bob").get(".json?q=spare+key&mode=keyword")).json()["rows"]
    assert found[0]["title"] == "The shed"


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


async def test_latin_1_is_imported_with_a_warning(served: Served) -> None:
    done = await imported(served.by("wanda"), {"latin1.md": "Kümmel".encode("latin-1")})
    assert (done["imported"], done["failures"]) == (1, [])
    page = await served.by("wanda").get(f"{served.base}/import/{done['job']}")
    said = " ".join(BeautifulSoup(page.text, "html.parser").find(class_="hy-named").text.split())
    assert said.startswith("latin1.md")
    assert said.endswith("read as Latin-1. Save the file as UTF-8 if letters look wrong.")


async def test_a_file_that_is_not_utf_8_is_said_to_be_mended(served: Served) -> None:
    done = await imported(served.by("wanda"), {"latin1.md": "Kü".encode() + b"mmel \xfc"})
    page = await served.by("wanda").get(f"{served.base}/import/{done['job']}")
    said = " ".join(BeautifulSoup(page.text, "html.parser").find(class_="hy-named").text.split())
    assert said.startswith("latin1.md:1 is not UTF-8: byte 0xfc")
    assert said.endswith("Save it as UTF-8 and upload it again.")


async def test_files_of_the_same_name_in_two_folders_are_two_memories(served: Served) -> None:
    root = served.by("root")
    for folder in ("barn", "boat"):
        note = {f"{folder}/readme.md": f"What lies in the {folder}".encode()}
        assert (await imported(root, note))["imported"] == 1
        assert (await imported(root, {f"{folder}.zip": zipped(note)}))["unchanged"] == 1


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
    assert trial["kinds"] == {}, "it would tell a writer who may not read what was there"
    kinds = (await imported(served.by("root"), NOTES, dry_run="1"))["kinds"]
    assert kinds == {"Markdown": 1, "text": 1, "JSON": 1, "CSV": 1}
    rows = (await served.by("bob").get(".json?q=lanterns&mode=keyword")).json()["rows"]
    assert rows == []


async def test_a_field_of_a_form_may_stand_in_the_address(served: Served) -> None:
    root, address = served.by("root"), "/import.json?topics=harbour&type=fact&dry_run=1"
    tried = await post(root, {"a.md": b"A note about quays."}, address)
    assert (await ended(root, tried.json()["job"]))["dry_run"] is True
    begun = await post(root, {"a.md": b"A note about quays."}, address, dry_run="0", type="note")
    assert (await ended(root, begun.json()["job"]))["imported"] == 1
    (found,) = served.store.list(topic="harbour")
    assert (found.type, found.topics) == ("note", ("harbour",))
    refused = await post(root, {"a.md": b"A note about quays."}, "/import.json?topic=harbour")
    assert refused.status_code == 400


async def test_only_writers_upload(served: Served) -> None:
    for who in ("bob", "alice", "mallory", None):
        assert (await post(served.by(who), NOTES)).status_code == 403
        assert (await served.by(who).get(f"{served.base}/import")).status_code == 403
    begun = await post(served.by("wanda"), NOTES)
    job = begun.json()["job"]
    await ended(served.by("wanda"), job)
    assert (await served.by("bob").get(f"{served.base}/import/{job}.json")).status_code == 403
    gone = await served.by("wanda").get(f"{served.base}/import/nothing.json")
    assert (gone.status_code, gone.json()["error"].split("; ")[1:]) == (
        404,
        ["to go on, import the same files once more"],
    )


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
    monkeypatch.setattr(files, "UPLOAD_LIMIT", 10_000)
    assert (await post(wanda, {"large.txt": b"x" * 20_000})).status_code == 413
    assert (await post(wanda, {})).status_code == 400
    wrong = await post(wanda, NOTES, collection="nobody's", type="nonsense")
    assert wrong.status_code == 400
    assert wrong.json()["parameter"] == "type"
    unknown = await post(wanda, NOTES, topic="garden")
    assert (unknown.status_code, unknown.json()["parameter"]) == (400, "topic")
    broken = await served.datasette.client.post(
        f"{served.base}/import.json",
        content=b"no boundary at all",
        headers={**BEARER, "Content-Type": "multipart/form-data; boundary=x"},
        cookies=wanda.cookies,
    )
    assert broken.status_code == 400


async def test_an_id_that_is_taken_is_the_failure_of_its_file_alone(
    filled: Filled, serve: Serve
) -> None:
    with MemoryStore.open(filled.path, key_file=filled.key_file) as store:
        store.collections.create("closed", owner="alice")
        hidden = store.add("A hidden diary", collection="closed")
    allow = {**ALLOW, "hybrid-audit": {"id": "root"}}
    served = await serve(filled.path, options=filled.options(allow=allow))
    files = {f"n{n:02}.md": f"Note number {n}.".encode() for n in range(20)}
    files["m.md"] = f"---\nid: {hidden.id}\n---\nAnother diary".encode()
    result = await imported(served.by("root"), {"all.zip": zipped(files)})
    assert (result["state"], result["imported"]) == ("done", 20)
    ((name, reason),) = result["failures"]
    assert name.startswith("m.md")
    assert "taken" in reason
    assert "closed" not in reason
    again = await imported(served.by("root"), {"all.zip": zipped(files)})
    assert (again["unchanged"], len(again["failures"])) == (20, 1)
    rows = (await served.by("root").get(f"{served.base}/audit.json?action=import")).json()["rows"]
    assert [sum(row[name] for row in rows) for name in ("returned", "times")] == [20, 2]


async def test_a_trial_is_noted_since_it_says_what_is_known(served: Served) -> None:
    await imported(served.by("wanda"), NOTES, dry_run="1")
    rows = (await served.by("root").get(f"{served.base}/audit.json?action=import")).json()["rows"]
    assert [(row["who"], row["returned"]) for row in rows] == [("wanda", 0)]


async def test_a_file_whose_memory_moved_out_of_sight_is_a_new_one(
    filled: Filled, serve: Serve
) -> None:
    served = await serve(filled.path, options=filled.options(allow=ALLOW))
    root, vault = served.by("root"), served.vault
    assert (await imported(root, {"plan.md": b"# Plan\n\nBarges."}))["imported"] == 1
    store = vault.use(EVERYTHING)
    (plan,) = [one for one in store.list() if one.title == "Plan"]
    closed = store.collections.create("closed", owner="alice")
    store.edit(plan.id, collection=closed.id)
    for text, reported in ((b"Barges.", 1), (b"Ferries.", 0)):
        result = await imported(root, {"plan.md": b"# Plan\n\n" + text})
        assert (result["imported"], result["failures"]) == (reported, [])
    assert (await imported(root, {"plan.md": b"# Plan\n\nFerries."}))["unchanged"] == 1
    assert result["replaced"] == 1
    assert store.get(plan.id).text == plan.text
    assert store.verify()["failures"] == []


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
    assert links(page) == []  # who may not read reads the number alone
    body, kind = form({}, csrftoken=token[1] if token else "")
    empty = await served.datasette.client.post(
        f"{served.base}/import", content=body, headers={"Content-Type": kind}, cookies=cookies
    )
    assert empty.status_code == 400
    assert "Choose at least one file." in empty.text


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
    served = await serve(options=filled.options(allow=ALLOW), immutables=[str(filled.path)])
    wanda = Served(served.datasette, "notes").by("wanda")
    refused = await post(wanda, NOTES)
    assert refused.status_code == 403
    assert "nothing can be written" in refused.json()["error"]
    said = "Nothing can be written to this vault: it is served as immutable."
    for path in ("/import", "/new"):
        note = soup(await wanda.get(f"{wanda.base}{path}")).select_one("[role=alert]")
        assert note is not None, path
        assert note.text.strip() == said
    root = wanda.by("root")
    results = soup(await root.get(f"{root.base}?q=tomatoes"))
    (first, *_) = results.select(".hy-result h2 a")
    for path in (f"{root.base}?q=tomatoes", str(first["href"]), "/notes", "/notes/memories"):
        page = soup(await root.get(path))
        assert not page.select("[href$='/new'], [href$='/import'], [href$='/edit'], .hy-select")
        assert not page.find_all(string=re.compile("Delete|New memory"))


def from_a_terminal(served: Served, folder: Path) -> MemoryStore:
    """The notes as files in a folder, imported as ``memory-store import`` does."""
    for name, content in NOTES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    store = served.store
    sources = [folder, folder / "rows.json", folder / "table.csv"]
    assert store.import_paths(sources, embed=False).imported == 4
    return store


async def test_what_a_terminal_imported_is_not_copied_by_an_upload(
    served: Served, tmp_path: Path
) -> None:
    root = served.by("root")
    store = from_a_terminal(served, tmp_path / "barn")
    before = store.stats()["memories"]
    folder = {f"barn/{name}": content for name, content in NOTES.items()}
    below = {name: content for name, content in NOTES.items() if name.startswith("garden/")}
    for sent in (folder, below, {"barn.zip": zipped(NOTES)}, {"b-2.zip": zipped(folder)}):
        again = await imported(root, sent)
        assert (again["imported"], again["unchanged"]) == (
            0,
            len(below if sent is below else folder),
        )
    alone = await imported(root, {"pears.md": NOTES["garden/pears.md"]})
    assert (alone["imported"], alone["unchanged"]) == (0, 1)
    assert store.stats()["memories"] == before


async def test_a_file_that_differs_from_what_a_terminal_imported_is_asked_about(
    served: Served, tmp_path: Path
) -> None:
    root = served.by("root")
    store = from_a_terminal(served, tmp_path / "barn")
    (pears,) = [one for one in store.list() if one.ref == "garden/pears.md"]
    changed = {"barn/garden/pears.md": b"# Pears\n\nPrune them in spring."}
    asked = await imported(root, changed)
    assert (asked["imported"], asked["replaced"]) == (0, 0)
    assert [name for name, _ in asked["failures"]] == ["barn/garden/pears.md: garden/pears.md"]
    assert "says something else: nothing was changed" in asked["failures"][0][1]
    assert store.get(pears.id) == pears

    replaced = await imported(root, changed, differing="replace")
    assert (replaced["replaced"], replaced["ids"]) == (1, [pears.id])
    kept = store.get(pears.id)
    assert (kept.text, kept.source, kept.ref) == (
        *("# Pears\n\nPrune them in spring.", pears.source, pears.ref),
    )
    assert store.import_paths(tmp_path / "barn", embed=False).unchanged == 2

    other = {"barn/garden/pears.md": b"Pears of another barn"}
    added = await imported(root, other, differing="add")
    assert (added["imported"], store.get(pears.id)) == (1, kept)
    assert (await imported(root, other))["unchanged"] == 1
    wrong = await post(root, other, differing="perhaps")
    assert (wrong.status_code, wrong.json()["parameter"]) == (400, "differing")


async def test_topics_that_a_memory_lacks_are_asked_about(served: Served, tmp_path: Path) -> None:
    from_a_terminal(served, tmp_path / "barn")
    asked = await imported(served.by("root"), {"barn.zip": zipped(NOTES)}, topics="autumn")
    assert (asked["imported"], asked["unchanged"], len(asked["failures"])) == (0, 0, 4)


async def test_who_may_not_read_does_not_learn_what_a_terminal_imported(
    served: Served, tmp_path: Path
) -> None:
    """That the same note is there would confirm a guess at what it says."""
    from_a_terminal(served, tmp_path / "barn")
    blind = await imported(served.by("wanda"), {"barn.zip": zipped(NOTES)})
    assert (blind["imported"], blind["failures"]) == (4, [])


async def test_source_code_that_is_made_to_harm_keeps_no_one_waiting(served: Served) -> None:
    """Parsed to its end, it would take ten seconds in which no other thread runs."""
    pytest.importorskip("tree_sitter", reason="the extra code is not installed")
    root = served.by("root")
    begun = await post(root, {"harm.lua": b"[" * 60_000})
    longest, state = 0.0, "running"
    while state == "running":
        asked = time.monotonic()
        state = (await root.get(f"{root.base}/import/{begun.json()['job']}.json")).json()["state"]
        longest = max(longest, time.monotonic() - asked)
        await asyncio.sleep(0.01)
    assert (state, longest < 5) == ("done", True)
