"""What every test may use: folders of its own, tiny real models, vaults."""

from __future__ import annotations

import os
import signal
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

import hypothesis
import pytest
from filelock import FileLock

sys.path.insert(0, str(Path(__file__).parent))  # tiny_embedder and tiny_reranker

from postgres_server import Server, server_or_skip
from private import private_below, set_private
from tiny_embedder import build as build_tiny_embedder

from memory_store.store import MemoryStore

if TYPE_CHECKING:
    from language_models import LanguageModels

# What a shell runs in the background lets Ctrl-C pass, and so would all that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

EXAMPLES = {"full": 100, "few": 30}.get(os.environ.get("PROOFS", ""), 50)  # of a property
hypothesis.settings.register_profile(
    "untimed",
    deadline=None,  # busy machines are slow machines
    max_examples=EXAMPLES,
)
hypothesis.settings.load_profile("untimed")


@pytest.fixture(scope="session")
def build_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Builds a folder once for all the processes of this run: what takes seconds is shared."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent

    def folder(name: str, build: Callable[[Path], Path]) -> Path:
        target = shared / "built" / name
        target.parent.mkdir(exist_ok=True)
        with FileLock(target.with_name(f"{name}.lock")):
            return target if target.exists() else build(target)

    return folder


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny embedding model: a bag of hashed words, loaded by FastEmbed."""
    folder = tmp_path_factory.mktemp("models") / "tiny-embedder"
    build_tiny_embedder(folder)
    return folder


@pytest.fixture(scope="session")
def second_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another one, with vectors half as long and a name that says it knows every language."""
    folder = tmp_path_factory.mktemp("models") / "tiny-multilingual"
    return build_tiny_embedder(folder, words=["weir"], dimensions=32)


def pytest_xdist_auto_num_workers() -> int:
    """How many processes ``-n auto`` starts: a test often waits for a server or a browser. Each
    more takes eight seconds of a processor to collect the tests."""
    return (os.cpu_count() or 1) + 2


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test that is marked ``in_a_file`` is skipped with ``STORAGE=postgres``.

    Of a test that is marked ``sampled(n)`` n cases are run, spread from one that its name draws.

    All are run by ``make proofs``, and of a test that the command line names. With ``PROOFS=few``
    a third of n is run, as ``.ci/run`` does.
    """
    if os.environ.get("STORAGE"):
        for item in items:
            if item.get_closest_marker("in_a_file"):
                item.add_marker(pytest.mark.skip(reason="looks into the vault's file"))
    proofs = os.environ.get("PROOFS")
    if proofs == "full" or any("::" in named for named in config.args):
        return
    cases = defaultdict(list)
    for item in items:
        if marker := item.get_closest_marker("sampled"):
            number = max(1, marker.args[0] // 3) if proofs == "few" else marker.args[0]
            cases[item.nodeid.partition("[")[0], number].append(item)
    left_out = set()
    for (name, number), found in cases.items():
        step = max(1, len(found) // max(1, number))
        left_out |= {*found} - {*found[crc32(name.encode()) % step :: step][:number]}
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A PostgreSQL server of this run; the test is skipped where none is installed."""
    yield from server_or_skip()


@pytest.fixture
def private_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Cache, configuration and state of this test alone; none of the account that runs them."""
    set_private(monkeypatch, tmp_path / "private")
    return tmp_path / "private"


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    """Where this test's key file lies: not beside the database."""
    return tmp_path / "keys" / "notes.key"


@pytest.fixture
def make_store(
    tmp_path: Path,
    key_file: Path,
    tiny_model: Path,
    private_folders: Path,
    request: pytest.FixtureRequest,
) -> Iterator[Callable[..., MemoryStore]]:
    """Makes vaults that a key file opens, with the tiny model; they are locked at the end.

    With ``STORAGE=postgres`` in the environment they are vaults on a server.
    """
    made: list[MemoryStore] = []
    server = request.getfixturevalue("postgres") if os.environ.get("STORAGE") else None

    def make(name: str = "notes.db", **options: object) -> MemoryStore:
        (tmp_path / "vaults").mkdir(exist_ok=True)
        store, _ = MemoryStore.create(
            server.address() if server else tmp_path / "vaults" / name,
            **{"key_file": key_file, "embedder": str(tiny_model), **options},  # type: ignore[arg-type]
        )
        made.append(store)
        return store

    yield make
    for store in made:
        store.lock()


@pytest.fixture
def language_models(tmp_path: Path) -> Iterator[LanguageModels]:
    """Language models of a plugin of ``llm``, which keeps its own files in this test's folder."""
    from language_models import installed  # importing llm takes half a second

    with installed(tmp_path / "llm") as models:
        yield models


@pytest.fixture
def store(make_store: Callable[..., MemoryStore]) -> MemoryStore:
    """An empty, unlocked vault."""
    return make_store()


@pytest.fixture(scope="module")
def module_store(
    tmp_path_factory: pytest.TempPathFactory, tiny_model: Path
) -> Iterator[MemoryStore]:
    """An empty vault that the tests of a module share; ``../keys/notes.key`` opens it."""
    folder = tmp_path_factory.mktemp("module")
    path = folder / "vaults" / "notes.db"
    path.parent.mkdir()
    with private_below(folder):
        key_file = folder / "keys" / "notes.key"
        store, _ = MemoryStore.create(path, key_file=key_file, embedder=str(tiny_model))
        with store:
            yield store


@pytest.fixture
def os_keyring() -> Iterator[dict[tuple[str, str], str]]:
    """A keyring in the place of the system's: what it holds, by service and name."""
    keyring = pytest.importorskip("keyring", reason="the keyring extra is not installed")
    held: dict[tuple[str, str], str] = {}

    class InProcess(keyring.backend.KeyringBackend):  # type: ignore[misc, name-defined]
        priority = 1

        def get_password(self, service: str, username: str) -> str | None:
            return held.get((service, username))

        def set_password(self, service: str, username: str, password: str) -> None:
            held[service, username] = password

    before = keyring.get_keyring()
    keyring.set_keyring(InProcess())
    yield held
    keyring.set_keyring(before)
