"""``memory-store serve``, and where the one-time link of ``--root`` leads."""

from __future__ import annotations

import os
import pty
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from datasette.app import Datasette
from own_process import ended, python
from postgres_server import Server

from memory_store.store import MemoryStore


@contextmanager
def served(*arguments: str) -> Iterator[str]:
    """The one-time link that a started ``memory-store serve`` prints."""
    command = [sys.executable, "-m", "memory_store", "serve", "--no-browser", *arguments]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as server:
        assert server.stdout is not None
        try:
            lines = iter(server.stdout.readline, "")
            links = (re.search(r"http://\S+token=\S+", line) for line in lines)
            link = next(filter(None, links))
            for line in lines:
                if "running on" in line:
                    break
            yield link[0]
        finally:
            server.terminate()
            server.wait(30)


@pytest.mark.in_a_file
def test_results_at_a_terminal_lead_to_the_pages_while_they_are_served(
    make_store: Callable[..., MemoryStore], key_file: Path
) -> None:
    store = make_store()
    kept = store.add("The spare key hangs behind the clock")
    path = store.path
    store.close()
    command = [sys.executable, "-m", "memory_store", "search", str(path), "spare", "key"]
    command += ["--mode", "keyword", "--key-file", str(key_file)]

    def shown() -> str:
        outer, terminal = pty.openpty()
        with os.fdopen(outer, "rb", buffering=0) as screen:
            subprocess.run(command, stdout=terminal, check=True, timeout=120)
            os.close(terminal)
            return screen.read(65_536).decode()

    with served(str(path), "--key-file", str(key_file)) as link:
        there = link.split("/-/")[0] + f"/{path.stem}/-/hybrid/memories/{kept.id}"
        assert f"\x1b]8;;{there}\x1b\\" in shown()
    assert "\x1b]8;;" not in shown()


@pytest.mark.in_a_file
def test_the_link_signs_you_in_once_and_leads_to_the_search_page(
    make_store: Callable[..., MemoryStore], key_file: Path
) -> None:
    store = make_store()
    store.add("The spare key hangs behind the clock")
    path = store.path
    store.close()
    with (
        served(str(path), "--key-file", str(key_file)) as link,
        httpx.Client(timeout=60) as browser,
    ):
        assert link.startswith("http://127.0.0.1:")
        first = browser.get(link)
        assert first.headers["location"] == f"/{path.stem}/-/hybrid"
        page = browser.get(httpx.URL(link).join(first.headers["location"] + "?q=spare+key"))
        assert "behind the clock" in page.text
        assert httpx.get(link).status_code == 403
        assert "behind the clock" not in httpx.get(page.url).text


SENT = "import socket,sys; c=socket.create_connection((sys.argv[1],int(sys.argv[2])))"
SENT += "; c.sendall(sys.argv[3].encode()); print(c.recv(12).decode())"
STRANGER = 65534


def sent_by(user: int, host: str, port: int, path: str, *headers: str) -> str:
    """The first line of the answer to a request of a process of that user."""
    request = "\r\n".join([f"GET {path} HTTP/1.1", "Host: 127.0.0.1", *headers, "", ""])
    command = ["/usr/bin/env", "python3", "-c", SENT, host, str(port), request]
    done = ended(*command, user=user, check=True, cwd="/")
    return done.stdout.strip()


@pytest.mark.skipif(
    not hasattr(os, "getuid") or os.getuid() != 0 or not Path("/proc/net/tcp").exists(),
    reason="becomes another user, on Linux",
)
def test_another_account_that_reads_the_link_off_the_list_of_processes_gets_nothing(
    make_store: Callable[..., MemoryStore], key_file: Path
) -> None:
    store = make_store()
    path = store.path
    store.close()
    with served(str(path), "--key-file", str(key_file)) as link:
        port, way = httpx.URL(link).port or 0, link[link.index("/-/") :]
        with socket.create_connection(("127.0.0.1", port)) as mine:
            named = f"X-Forwarded-For: 127.0.0.1:{mine.getsockname()[1]}"
            for host in ("127.0.0.1", "::ffff:127.0.0.1"):
                for headers in ((), (named,), ("X-Forwarded-For: 127.0.0.1",)):
                    answer = sent_by(STRANGER, host, port, way, *headers)
                    assert answer == "HTTP/1.1 403"
        assert sent_by(STRANGER, "127.0.0.1", port, f"/{path.stem}/-/hybrid/unlock")[-3:] == "403"
        assert sent_by(0, "::ffff:127.0.0.1", port, way) == "HTTP/1.1 302"


def test_a_vault_in_a_database_is_served_by_its_address(
    postgres: Server,
    key_file: Path,
    tiny_model: Path,
    private_folders: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address = postgres.address("diary")
    made, _ = MemoryStore.create(address, key_file=key_file, embedder=str(tiny_model))
    with made as store:
        store.add("The spare key hangs behind the clock")
    monkeypatch.setenv("MEMORY_STORE_DB", address.replace("owner@", "owner:kestrel@"))
    monkeypatch.setenv("MEMORY_STORE_KEY_FILE", str(key_file))
    with served() as link, httpx.Client(timeout=60) as browser:
        first = browser.get(link)
        assert first.headers["location"] == "/diary/-/hybrid"
        page = browser.get(httpx.URL(link).join("/diary/-/hybrid?q=spare+key"))
        assert "behind the clock" in page.text
        assert "kestrel" not in page.text


@pytest.mark.asyncio
async def test_without_a_vault_the_link_leads_where_it_always_did() -> None:
    datasette = Datasette(memory=True)
    datasette.root_enabled = True
    await datasette.invoke_startup()
    token = datasette._root_token
    answer = await datasette.client.get(f"/-/auth-token?token={token}")
    assert (answer.status_code, answer.headers["location"]) == (302, "/")


def test_a_port_that_is_taken_is_named(store: MemoryStore) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        words = [sys.executable, "-m", "memory_store", "serve", str(store.path), "--port", port]
        answer = ended(*words)
    assert answer.returncode == 2
    assert f"port {port} is taken" in answer.stderr


def test_a_file_that_is_no_vault_is_named(tmp_path: Path) -> None:
    plain = tmp_path / "plain.db"
    plain.write_bytes(b"")
    answer = python("-m", "memory_store", "serve", str(plain))
    assert answer.returncode == 1
    assert "plain.db" in answer.stderr
