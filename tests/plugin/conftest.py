"""A real Datasette (0.65 or 1.0, whichever is installed) over a real vault."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from bs4 import BeautifulSoup
from datasette.app import Datasette
from jinja2 import BytecodeCache, Environment
from jinja2.bccache import Bucket
from private import private_below

from datasette_hybrid.vaults.registry import names_found, vaults_of
from memory_store.addresses import Address
from memory_store.scopes import EVERYTHING
from memory_store.store import MemoryStore
from memory_store.vault.storage.schema import is_vault
from memory_store.vault.storage.transfer import copy_vault

from .browsing import CHROMIUM, DESKTOP, PATIENCE, PHONE, SQL_TIME_LIMIT, opened

PASSPHRASE = "four small grey herons"
ONE, TWO, THREE = (f"00000000-0000-4000-8000-00000000000{number}" for number in (1, 2, 3))
BEARER = {"Authorization": "Bearer nothing"}
"""Stands in for a token: on 0.65 cookies alone may not send JSON."""
HOSTILE = "<script>alert('x')</script> \"><img src=x onerror=alert(1)> {{ 7 * 7 }}"

SEARCHERS = {"id": ["root", "alice", "bob", "wanda"]}
READERS = {"id": ["root", "bob"]}
WRITERS = {"id": ["root", "wanda"]}
ALLOW = {"hybrid-search": SEARCHERS, "hybrid-decrypt": READERS, "hybrid-write": WRITERS}


@dataclass
class Served:
    """A Datasette with its vault's database, and requests made by one visitor."""

    datasette: Any
    database: str = "notes"
    cookies: dict[str, str] = field(default_factory=dict)

    @property
    def base(self) -> str:
        """The search page's path."""
        return f"/{self.database}/-/hybrid"

    @property
    def vault(self) -> Any:
        """What the plugin knows of the vault."""
        return vaults_of(self.datasette).of(self.database)

    @property
    def store(self) -> MemoryStore:
        """The open vault as the holder of its key uses it."""
        store: MemoryStore = self.vault.use(EVERYTHING)
        return store

    def by(self, actor: Any) -> Served:
        """The same Datasette asked by an actor: an id, a whole actor, or ``None``."""
        if actor is None:
            return Served(self.datasette, self.database)
        whole = {"id": actor} if isinstance(actor, str) else actor
        return Served(
            self.datasette,
            self.database,
            {"ds_actor": self.datasette.sign({"a": whole}, "actor")},
        )

    async def get(self, path: str, **options: Any) -> Any:
        """GET a path; one that starts with a dot or a question mark continues the search page's."""
        return await self.datasette.client.get(self.full(path), cookies=self.cookies, **options)

    async def send(
        self, method: str, path: str, value: Any = None, headers: Any = BEARER, **options: Any
    ) -> Any:
        """Send JSON, as a program does that has a token."""
        return await self.datasette.client.request(
            method, self.full(path), json=value, cookies=self.cookies, headers=headers, **options
        )

    async def submit(
        self, path: str, fields: dict[str, str], page: str | None = None, **options: Any
    ) -> Any:
        """Fill in the form on ``page`` as a browser does, with its token and its cookies."""
        shown = await self.get(page or path)
        cookies = {**self.cookies, **dict(shown.cookies)}
        token = re.search(r'name="csrftoken" value="([^"]+)"', shown.text)
        data = {**fields, "csrftoken": token[1] if token else ""}
        return await self.datasette.client.post(
            self.full(path), data=data, cookies=cookies, **options
        )

    async def sql(self, sql: str, **parameters: str) -> list[dict[str, Any]]:
        """Rows of a query on the vault's database, through Datasette's own JSON."""
        path = f"/{self.database}.json"
        response = await self.datasette.client.get(
            path,
            params={"sql": sql, "_shape": "array", **parameters},
            cookies=self.cookies,
            follow_redirects=True,
        )
        assert response.status_code == 200, response.text
        return response.json()

    def full(self, path: str) -> str:
        """A path below the search page, or a whole one."""
        return path if path.startswith("/") and path.count("/") > 1 else self.base + path


def soup(response: Any, *, blanks_in: tuple[str, ...] = ()) -> BeautifulSoup:
    """The page of an answer. In ``blanks_in`` no blanks between tags are shortened."""
    kept = {"pre", "textarea", *blanks_in}
    return BeautifulSoup(response.text, "html.parser", preserve_whitespace_tags=kept)


def unmarked(html: str) -> str:
    """A page without the marks around the words that were looked for."""
    return html.replace("<mark>", "").replace("</mark>", "")


@pytest.fixture
def model(tiny_model: Path, private_folders: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tiny model as everybody's default."""
    monkeypatch.setenv("MEMORY_STORE_MODEL", str(tiny_model))
    return tiny_model


@dataclass(frozen=True)
class Filled:
    """A vault on disk, locked, and what opens it."""

    path: Path
    key_file: Path
    recovery_code: str

    def options(self, **more: Any) -> dict[str, Any]:
        """The plugin's options that open it at start, and others, by database."""
        others = {name.replace("_", "-"): value for name, value in more.items()}
        return {"notes": {"key-file": str(self.key_file), **others}}


@pytest.fixture(scope="session")
def original(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Filled:
    """A vault with a few memories, some of them hostile; made once, copied for each test."""
    folder = tmp_path_factory.mktemp("plugin")
    key_file = folder / "keys" / "notes.key"
    (folder / "vaults").mkdir()
    with private_below(folder):
        store, code = MemoryStore.create(
            folder / "vaults" / "notes.db",
            key_file=key_file,
            passphrase=PASSPHRASE,
            embedder=str(tiny_model),
        )
        fill(store)
        store.close()
    return Filled(store.path, key_file, code)


def fill(store: MemoryStore) -> None:
    """A memory to find, another one, and one that attacks the page that shows it."""
    store.add(
        "The tomatoes want water every second day.\n\n- feed on Sundays",
        title="Watering the tomatoes",
        topics=("garden", "water"),
        type="note",
        id=ONE,
    )
    store.add(
        "We chose Postgres for the archive, after a long talk.",
        title="The database",
        topics=("work",),
        type="decision",
        id=TWO,
    )
    store.add(
        f"A hostile tomato. {HOSTILE}",
        title=f"Hostile {HOSTILE}",
        topics=("<b>bold</b>",),
        metadata={"<i>key</i>": "<i>value</i>"},
        id=THREE,
    )


@pytest.fixture
def filled(original: Filled, model: Path, tmp_path: Path) -> Filled:
    """This test's own copy of the vault."""
    return copied(original, tmp_path)


def copied(original: Filled, folder: Path) -> Filled:
    """A copy of a vault, below a folder."""
    path = folder / "vaults" / "notes.db"
    path.parent.mkdir(parents=True)
    shutil.copy(original.path, path)
    kept, state = original.path.parents[1] / "state", folder / "private" / "state"
    if (kept / "device-keys").exists():  # of the machine that the vault was made on
        shutil.copytree(kept / "device-keys", state / "device-keys")
    return Filled(path, original.key_file, original.recovery_code)


def private_environment(folder: Path, model: Path) -> dict[str, str]:
    """For a server that outlives a test: folders of its own, the tiny model, no keys."""
    usual = {name: value for name, value in os.environ.items() if "MEMORY_STORE" not in name}
    names = ("CACHE", "CONFIG", "STATE")
    folders = {f"MEMORY_STORE_{name}": str(folder / "private" / name.lower()) for name in names}
    return {**usual, **folders, "MEMORY_STORE_OFFLINE": "1", "MEMORY_STORE_MODEL": str(model)}


Serve = Callable[..., Awaitable[Served]]


@pytest.fixture
def on_server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """With ``STORAGE=postgres``: copies a vault's file to a server, and says how it is served."""
    if not os.environ.get("STORAGE"):
        return None
    server = request.getfixturevalue("postgres")

    def moved(path: Path) -> dict[str, Any]:
        address = Address(server.address())
        copy_vault(path, address)
        variable = f"STORAGE_OF_{address.vault}"
        monkeypatch.setenv(variable, address.text)
        return {"storage": {"$env": variable}}

    return moved


@pytest.fixture
def serve(model: Path, on_server: Any) -> Any:
    """Starts Datasette over files, with plugin options by database."""

    async def start(
        *paths: Path,
        options: dict[str, Any] | None = None,
        databases: dict[str, Any] | None = None,
        **more: Any,
    ) -> Served:
        named = paths[0].stem if paths else "_memory"
        if on_server is not None:
            vaults = [path for path in paths if is_vault(path)]
            paths = tuple(path for path in paths if path not in vaults)
            there = {path.stem: on_server(path) for path in vaults}
            options = {
                name: {**(options or {}).get(name, {}), **there.get(name, {})}
                for name in {*(options or {}), *there}
            }
        configuration: dict[str, Any] = {
            "plugins": {"datasette-hybrid": {"databases": options or {}}},
            "databases": databases or {},
        }
        datasette = plain_datasette(paths, configuration, **more)
        await datasette.invoke_startup()
        return Served(datasette, named)

    return start


STARTED: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_stays_open() -> Iterator[None]:
    """Closes what a test's Datasettes hold open: all together are more files than a system lets a
    process open."""
    yield
    while STARTED:
        datasette = STARTED.pop()
        if names_found(datasette):
            vaults_of(datasette).lock_all()
        if datasette.executor:
            datasette.executor.shutdown(cancel_futures=True)
        for database in datasette.databases.values():
            database.close()


def plain_datasette(paths: tuple[Path, ...], configuration: dict[str, Any], **more: Any) -> Any:
    """A Datasette, configured by whichever name this version gives configuration."""
    name = "config" if hasattr(Datasette, "get_internal_database") else "metadata"
    settings = {"sql_time_limit_ms": SQL_TIME_LIMIT, **more.pop("settings", {})}
    files = [str(path) for path in paths]
    datasette = Datasette(files, settings=settings, **{name: configuration}, **more)
    pages = datasette._jinja_env if hasattr(datasette, "_jinja_env") else datasette.jinja_env
    pages.bytecode_cache = COMPILED
    STARTED.append(datasette)
    return datasette


class CompiledTemplates(BytecodeCache):
    """Keeps compiled templates for all the Datasettes of a process: each would compile its own."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], Any] = {}

    def get_bucket(
        self, environment: Environment, name: str, filename: str | None, source: str
    ) -> Bucket:
        """Where its code is kept: what is compiled to be awaited is another code."""
        name = f"{name}, awaited: {environment.is_async}"
        return super().get_bucket(environment, name, filename, source)

    def load_bytecode(self, bucket: Bucket) -> None:
        """The code of this source, where another Datasette has compiled it."""
        bucket.code = self.kept.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep what was compiled."""
        self.kept[bucket.key, bucket.checksum] = bucket.code


COMPILED = CompiledTemplates()


@pytest.fixture
async def served(filled: Filled, serve: Serve) -> Served:
    """The vault opened at start by its configured key file, with grants for several actors."""
    return await serve(filled.path, options=filled.options(allow=ALLOW))


@pytest.fixture
async def closed(filled: Filled, serve: Serve) -> Served:
    """The vault locked, with nothing configured."""
    return await serve(filled.path)


@pytest.fixture
async def private(filled: Filled, serve: Serve) -> Served:
    """Opened at start, its queries kept out of addresses, asked by the actor root."""
    return (await serve(filled.path, options=filled.options(private_queries=True))).by("root")


@pytest.fixture
def no_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server started in this test looks at no clock, and writes no audit trail, by itself."""
    monkeypatch.setattr("datasette_hybrid.vaults.registry.WATCH_SECONDS", 86_400)


@pytest.fixture
def address(filled: Filled) -> Iterator[str]:
    """A server over the vault, locked: what a browser is pointed at."""
    with answering(filled.path) as base:
        yield base


@contextmanager
def answering(path: Path) -> Iterator[str]:
    """The address of a server over a vault with nothing configured, in a thread of this process.

    A process of its own takes two seconds of processor time to begin.
    """
    datasette = plain_datasette((path,), {})
    server = uvicorn.Server(
        uvicorn.Config(
            datasette.app(), port=0, log_level="error", lifespan="on", timeout_graceful_shutdown=1
        )
    )

    async def answer() -> None:
        await datasette.invoke_startup()
        await server.serve()

    thread = threading.Thread(target=asyncio.run, args=(answer(),), daemon=True)
    thread.start()
    until = time.monotonic() + PATIENCE
    while not server.started:
        assert thread.is_alive(), "the server did not start"
        assert time.monotonic() < until
        time.sleep(0.02)
    host, port = server.servers[0].sockets[0].getsockname()
    try:
        yield f"http://{host}:{port}"
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        vaults_of(datasette).lock_all()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """One Chromium for the tests of a module."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox"], timeout=PATIENCE * 1_000
        )
        yield chromium
        chromium.close()


@pytest.fixture(
    params=[DESKTOP, pytest.param(PHONE, marks=pytest.mark.once)], ids=["desktop", "phone"]
)
def page(request: Any, browser: Any) -> Iterator[Any]:
    """A page without a past, and ``page.complaints``: what its console complained about."""
    with opened(browser, request.param) as page:
        yield page
