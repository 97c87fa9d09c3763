"""Folders, uploads and JSON made to harm a reader: refused by name, in bounded memory."""

from __future__ import annotations

import io
import json
import os
import re
import socket
import struct
import sys
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from plugin.conftest import Filled, copied
from plugin.test_uploaded_archives import directory
from plugin.uploads import form
from servers import ROOT, Server, served_process
from typing_commands import run
from zip_files import zipped

from memory_store.store import MemoryStore

MEGABYTE = 1024**2
GIGABYTE = 1024**3
MOST_FOR_A_FOLDER = 128 * MEGABYTE  # above what an import of one note takes
MOST_SECONDS = 20  # of processor time, for a folder whose files claim 50 GB
MOST_FOR_AN_UPLOAD = 400 * MEGABYTE  # above the server at rest; one upload is 64 MB, and is parsed

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="memory is measured the Linux way"
)


def sparse(path: Path, size: int, start: bytes) -> None:
    """A file that begins with ``start`` and claims ``size`` bytes, hardly any of them on disk."""
    with path.open("wb") as stream:
        stream.write(start)
        stream.truncate(size)


PADDING = b" " * 9_000  # past what is looked at to distinguish text from binary


def traps(folder: Path, elsewhere: Path) -> dict[str, str]:
    """Fill ``folder`` with traps. Name → what an import says of it."""
    sparse(folder / "sparse.md", 10 * GIGABYTE, PADDING)
    sparse(folder / "sparse.txt", 10 * GIGABYTE, PADDING)
    sparse(folder / "line.ndjson", GIGABYTE, b'{"text": "' + PADDING)
    sparse(folder / "cell.csv", 10 * GIGABYTE, b'text\n"' + PADDING)
    sparse(folder / "document.json", 10 * GIGABYTE, b'[{"text": "' + PADDING)
    sparse(folder / "pages.db", 10 * GIGABYTE, b"SQLite format 3\0" + b"\x10\0" + bytes(90))
    (folder / "out.md").symlink_to(elsewhere / "secret.md")
    (folder / "up").symlink_to(elsewhere)
    (folder / "zero.md").symlink_to("/dev/zero")
    (folder / "loop.md").symlink_to(folder / "loop.md")
    os.mkfifo(folder / "pipe.md")
    with socket.socket(socket.AF_UNIX) as listening:
        os.chdir(folder)  # the address of a socket is short
        listening.bind("socket.md")
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
        f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(9)
    )
    (folder / "bomb.md").write_text(f"---\n{bomb}---\nwords")
    (folder / "deep.json").write_text("[" * 1_000_000)
    (folder / "deep.md").write_text("---\na: " + "[" * 500_000 + "\n---\nwords")
    (folder / os.fsdecode(b"\xff\xfe.md")).write_text("words")
    (folder / "escape\x1b[2J.md").write_text("---\na: &x [*x]\n---\n")
    return {
        "sparse.md": "larger than",
        "sparse.txt": "larger than",
        "line.ndjson": "a line over",
        "cell.csv": "a line over",
        "document.json": "larger than",
        "pages.db": "not a database",
        "out.md": "a link out of the folder",
        "up": "a link out of the folder",
        "zero.md": "a link out of the folder",
        "loop.md": "a link to nothing",
        "pipe.md": "not a regular file",
        "socket.md": "not a regular file",
        "bomb.md": "aliases",
        "deep.json": "nested",
        "deep.md": "nested",
        r"\xff\xfe.md": "not valid UTF-8",
        r"escape\x1b[2J.md": "front matter",
    }


ORDINARY = ("a.md", "A.md", "con.md", "NUL.txt", "aux.md", "trailing .md", "a\nb.md", "-rf.md")
"""Names that clash or are reserved on some system, which are notes like any others here."""


def imported(store: MemoryStore, key_file: Path, *what: str) -> tuple[str, int]:
    """What ``memory-store import`` says, and the most memory it ever held, in bytes."""
    reading, writing = os.pipe()
    words = ["import", str(store.path), *what, "--key-file", str(key_file), "--verbose"]
    command = [sys.executable, "-c", "from memory_store.cli import main; main()", *words]
    child = os.posix_spawn(
        sys.executable,
        command,
        os.environ,
        file_actions=[(os.POSIX_SPAWN_DUP2, writing, 1), (os.POSIX_SPAWN_DUP2, writing, 2)],
    )
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:
        said = stream.read().decode()
    _, status, usage = os.wait4(child, 0)
    assert os.waitstatus_to_exitcode(status) in (0, 1), said
    assert usage.ru_utime + usage.ru_stime < MOST_SECONDS
    return said, usage.ru_maxrss * 1024


@pytest.mark.once
def test_a_folder_of_traps_is_passed_through(
    store: MemoryStore, key_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder, elsewhere = tmp_path / "notes", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    (elsewhere / "secret.md").write_text("a secret of another folder")
    (elsewhere / "plain.md").write_text("a plain note")
    _, usual = imported(store, key_file, str(elsewhere / "plain.md"))
    for name in ORDINARY:
        (folder / name).write_text(f"an ordinary note, {name!r}")
    reported = traps(folder, elsewhere)
    named = [str(path) for path in folder.glob("*.*") if path.suffix not in (".md", ".txt")]
    said, most = imported(
        store, key_file, str(folder), *named, "/dev/zero", str(folder / "pipe.md")
    )
    assert most - usual < MOST_FOR_A_FOLDER
    lines = said.splitlines()
    for name, reason in reported.items():
        assert any(name in line and reason in line for line in lines), (name, reason, said)
    assert any("/dev/zero" in line and "not a regular file" in line for line in lines)
    assert "\x1b" not in said
    texts = {store.get(memory.id).text for memory in store.list(limit=100)}
    assert texts == {"a plain note", *(f"an ordinary note, {name!r}" for name in ORDINARY)}


def test_titles_that_are_no_names_of_files_are_exported_all_the_same(
    store: MemoryStore, key_file: Path, tmp_path: Path
) -> None:
    titles = [
        *ORDINARY,
        "CON",
        "../../etc/passwd",
        "/etc/passwd",
        "C:\\x",
        "NOTE",
        "note",
        "a/b",
        "..",
    ]
    made = {store.add(f"text {n}", title=title).id for n, title in enumerate(titles)}
    target = tmp_path / "out"
    words = ["export", str(store.path), str(target), "--key-file", str(key_file)]
    ended = run(*words)
    assert ended.exit_code == 0, ended.output
    files = [path for path in target.rglob("*") if path.is_file()]
    assert len({str(path).casefold() for path in files}) == len(made)
    assert all(path.resolve().is_relative_to(target.resolve()) for path in files)
    reserved = re.compile(r"(?i)(?:con|nul|aux|prn|com\d|lpt\d)(?:\.|$)|.*[ .]$|.*[<>:\"\\|?*\n]")
    assert not [path.name for path in files if reserved.match(path.name)]


@pytest.fixture(scope="module")
def server(original: Filled, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    with served_process(copied(original, folder), folder) as running:
        uploaded(running, "a.md", b"an ordinary note")
        yield running


def asked(server: Server, path: str, body: bytes, kind: str) -> tuple[int, Any]:
    """POST to the running server as root: the status and the answer."""
    request = urllib.request.Request(
        f"{server.address}{path}", body, {**ROOT, "Content-Type": kind}, method="POST"
    )
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def uploaded(server: Server, name: str, content: bytes) -> dict[str, Any]:
    """What came of uploading one file, once its import is over."""
    status, answer = asked(server, "/notes/-/hybrid/import.json", *form({name: content}))
    if status != 202:
        return {"imported": 0, "failures": [[name, answer["error"]]], "skips": []}
    until = time.monotonic() + 600
    while answer["state"] == "running":
        assert time.monotonic() < until
        request = urllib.request.Request(answer["job_url"], headers=ROOT)
        job_url = answer["job_url"]
        with urllib.request.urlopen(request, timeout=120) as progress:
            answer = {**json.load(progress), "job_url": job_url}
    assert answer["state"] == "done"
    return answer


def with_names(*names: str) -> bytes:
    """An archive with those names as they are."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        for name in names:
            info = zipfile.ZipInfo("x")
            info.filename = info.orig_filename = name
            made.writestr(info, "words")
    return out.getvalue()


def with_link() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        info = zipfile.ZipInfo("link.md")
        info.external_attr = 0o120777 << 16
        made.writestr(info, "/etc/passwd")
    return out.getvalue()


def patched(content: bytes, offset: int, size: int, field: bytes = b"PK\1\2") -> bytes:
    """An archive whose last entry says another size at that offset."""
    changed = bytearray(content)
    at = changed.rfind(field)
    changed[at + offset : at + offset + 4] = struct.pack("<I", size)
    return bytes(changed)


def quine_like() -> bytes:
    """Archives in an archive in an archive, each of ten: 42.zip in small."""
    content = zipped({"zeros.txt": b"0" * MEGABYTE})
    for _ in range(3):
        content = zipped({f"{n}.zip": content for n in range(10)})
    return content


def overlapping() -> bytes:
    """A thousand entries that share one compressed file (Fifield, "A better zip bomb")."""
    content = zipped({"0000.txt": os.urandom(5_000)})
    start = content.find(b"PK\1\2")
    entry = content[start : content.find(b"PK\5\6")]
    listed = b"".join(entry[:46] + f"{n:04}.txt".encode() for n in range(1_000))
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1_000, 1_000, len(listed), start, 0)
    return content[:start] + listed + end


PLAIN = zipped({"a.md": b"words " * 1_000})


def hostile_archives() -> dict[str, tuple[bytes, str]]:
    return {
        "nested": (quine_like(), "an archive within an archive"),
        "one that expands a thousand times": (
            zipped({"a.md": b"0" * 40 * MEGABYTE}),
            "expands to more than 200 times",
        ),
        "many that expand": (
            zipped({f"{n}.txt": zlib.compress(b"x") + b"ab" * 4 * MEGABYTE for n in range(40)}),
            "expands to more than 256 MB",
        ),
        "overlapping": (overlapping(), "overlap"),
        "a hundred thousand entries": (
            directory(100_000, zip64=False),
            "list of files is too long",
        ),
        "a hundred thousand entries, in 64 bits": (
            directory(100_000, zip64=True),
            "list of files is too long",
        ),
        "says it is larger": (patched(PLAIN, 24, 3 * GIGABYTE), "expands to more than"),
        "says it is smaller": (patched(PLAIN, 24, 10), "broken in its archive"),
        "lies beyond its end": (patched(PLAIN, 42, 0xFFFFFFF0), "broken in its archive"),
        "leads up": (with_names("../../a.md"), "leads out of its folder"),
        "leads up on Windows": (with_names("..\\..\\a.md"), "leads out of its folder"),
        "from the root": (with_names("/etc/a.md"), "leads out of its folder"),
        "on a drive": (with_names("C:\\a.md"), "leads out of its folder"),
        "on a share": (with_names("\\\\host\\share\\a.md"), "leads out of its folder"),
        "without a name": (with_names(""), "its name is empty"),
        "with a null character": (with_names("a.md\0.exe"), "broken"),
        "deep": (with_names("a/" * 200 + "a.md"), "too long"),
        "broken": (b"PK\3\4" + os.urandom(5_000), "no archive"),
    }


def test_archives_made_to_harm_are_refused_by_name(server: Server) -> None:
    usual = server.at_rest()
    for what, (content, reason) in hostile_archives().items():
        result = uploaded(server, "trap.zip", content)
        assert result["imported"] == 0, what
        reported = [*result["failures"], *result["skips"]]
        assert reported, what
        assert any(reason in text for _, text in reported), (what, reported[:3])
        assert all(name for name, _ in reported), what
    assert server.peak - usual < MOST_FOR_AN_UPLOAD
    clashing = with_names("a/Note.md", "a/note.md", "a/CON.md", "a/nul.txt")
    assert uploaded(server, "clash.zip", clashing)["imported"] == 4
    link = uploaded(server, "link.zip", with_link())  # a file that holds the path, and no more
    assert link["imported"] <= 1


def hostile_files() -> dict[str, tuple[bytes, str]]:
    return {
        "bomb.md": (b"---\na: &a [x]\nb: *a\n---\nwords", "aliases"),
        "deep.json": (b"[" * 5_000_000, "nested"),
        "deep.md": (b"---\na: " + b"[" * 900_000 + b"\n---\nwords", "nested"),
        "line.ndjson": (b'{"text": "' + b"x" * 60 * MEGABYTE, "a line over"),
        "row.json": (b'[{"text": "a", "b": [' + b"[]," * 5_000_000 + b"[]]}]", "values in one row"),
        "large.md": (b"x " * 26 * MEGABYTE, "larger than"),
        "cell.csv": (b'text\n"' + b"x" * 60 * MEGABYTE, "a line over"),
        "../a.md": (b"words", "leads out"),
        "/etc/a.md": (b"words", "leads out"),
    }


def test_files_made_to_harm_are_refused_by_name(server: Server) -> None:
    usual = server.at_rest()
    for name, (content, reason) in hostile_files().items():
        result = uploaded(server, name, content)
        assert result["imported"] == 0, name
        assert reason in str([*result["failures"], *result["skips"]]), (name, result)
    assert server.peak - usual < MOST_FOR_AN_UPLOAD


JSON_BODIES = {
    "deep": b'{"text": "a", "metadata": ' + b"[" * 100_000,
    "deep and whole": b'{"text": "a", "metadata": {"a": ' + b"[" * 900 + b"]" * 900 + b"}}",
    "wide": b'{"text": "a", "metadata": [' + b"{}," * 2_000_000 + b"{}]}",
    "long number": b'{"text": "a", "metadata": {"n": ' + b"9" * 1_000_000 + b"}}",
    "many rows": b"[" + b'{"text": "a"},' * 100_000 + b'{"text": "a"}]',
    "too long": b'{"text": "' + b"x" * 9 * MEGABYTE + b'"}',
}


def test_json_made_to_harm_is_refused_by_name(server: Server) -> None:
    usual = server.at_rest()
    for what, body in JSON_BODIES.items():
        status, answer = asked(server, "/notes/-/hybrid/memories.json", body, "application/json")
        assert status in (400, 413), (what, answer)
        assert answer["error"], what
        assert answer["parameter"], what
    assert server.peak - usual < MOST_FOR_AN_UPLOAD


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/notes/-/hybrid/memories.json", ROOT, 413),
        ("/notes/-/hybrid/import.json?name=a.md", ROOT, 413),
        ("/notes/-/hybrid/memories.json", {}, 403),
        ("/notes/-/hybrid/import.json?name=a.md", {}, 403),
        ("/-/hybrid/nowhere", {}, 405),
    ],
)
def test_those_who_are_still_sending_are_shown_why_they_are_refused(
    server: Server, path: str, headers: dict[str, str], status: int
) -> None:
    """urllib has the connection closed after the answer, and reads it when all is sent."""
    json_headers = {**headers, "Content-Type": "application/json"}
    request = urllib.request.Request(
        f"{server.address}{path}", b" " * 80 * MEGABYTE, json_headers, method="POST"
    )
    with pytest.raises(urllib.error.HTTPError) as refusal:
        urllib.request.urlopen(request, timeout=120)
    assert refusal.value.code == status
    assert refusal.value.read()


@pytest.mark.parametrize("version", ["HTTP/1.0\r\n", "HTTP/1.1\r\nConnection: close\r\n"])
def test_those_who_stop_sending_are_not_waited_for(server: Server, version: str) -> None:
    head = f"POST /notes/-/hybrid/memories.json {version}Host: localhost\r\n"
    begun = time.monotonic()
    with socket.create_connection(server.place, timeout=120) as connection:
        connection.sendall(f"{head}Content-Length: 10737418240\r\n\r\n".encode() + b"{" * 1_000)
        answer = b"".join(iter(lambda: connection.recv(4_096), b""))
    assert b" 403 " in answer.splitlines()[0]
    assert b"hybrid-write" in answer
    assert time.monotonic() - begun < 25  # it has hung up, and not after half a minute


CLAIMS = (
    "Content-Length: 10737418240\r\n",
    "Content-Length: -1\r\n",
    "Content-Length: 99999999999999999999\r\n",
    "Content-Length: 1\r\nContent-Length: 10737418240\r\n",
    "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
)


@pytest.mark.once
@pytest.mark.sampled(1)
@pytest.mark.parametrize("path", ["/notes/-/hybrid/memories.json", "/notes/-/hybrid/import.json"])
def test_a_length_that_is_only_claimed_costs_nothing(server: Server, path: str) -> None:
    usual = server.at_rest()
    for claim in CLAIMS:
        head = (
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer root\r\n"
            f"Content-Type: application/json\r\n{claim}\r\n"
        )
        with socket.create_connection(server.place, timeout=120) as connection:
            connection.sendall(head.encode() + b"{")
            connection.shutdown(socket.SHUT_WR)
            answer = connection.recv(4_096)
        assert not answer.startswith(b"HTTP/1.1 5"), (claim, answer)
    assert server.peak - usual < 32 * MEGABYTE
    status, _ = asked(server, "/notes/-/hybrid.json", b"q=tomatoes", FORM)
    assert status == 200


FORM = "application/x-www-form-urlencoded"


PART = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.md"\r\n\r\n'


@pytest.mark.sampled(0)
@pytest.mark.parametrize("path", ["/notes/-/hybrid/memories.json", "/notes/-/hybrid/import.json"])
def test_a_body_without_an_end_is_cut_off(server: Server, path: str) -> None:
    usual = server.at_rest()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer root\r\n"
        "Content-Type: multipart/form-data; boundary=b\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    chunk = b"100000\r\n" + b"x" * MEGABYTE + b"\r\n"
    with socket.create_connection(server.place, timeout=120) as connection:
        connection.sendall(head.encode() + f"{len(PART):x}\r\n".encode() + PART + b"\r\n")
        try:
            for _ in range(200):
                connection.sendall(chunk)
        except OSError:
            pass  # it has hung up
        else:
            assert connection.recv(4_096).startswith(b"HTTP/1.1 413")
    assert server.peak - usual < MOST_FOR_AN_UPLOAD
