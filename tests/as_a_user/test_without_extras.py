"""With the package's own dependencies and nothing else: everything runs that needs no extra, and
what needs one names it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Callable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import pytest
from own_process import ended
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
OURS = "datasette-hybrid"

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(sys.platform == "win32", reason="links to files take a privilege"),
]

WEIGHTS = {"multilingual", "offline"}
CERTIFICATES = ("--certificate", "own.pem", "--private-key", "own.key", "--peer", "node.pem")

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def needed(name: str = OURS) -> dict[str, Distribution]:
    """A distribution and all that it declares to need, itself and by what it needs."""
    found: dict[str, Distribution] = {}
    waiting: list[tuple[str, frozenset[str]]] = [(name, frozenset({""}))]
    seen = set(waiting)
    while waiting:
        name, extras = waiting.pop()
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            continue  # for another system
        for line in found[name].requires or ():
            one = Requirement(line)
            if one.marker is None or any(one.marker.evaluate({"extra": e}) for e in extras):
                wanted = (one.name, frozenset({"", *one.extras}))
                waiting += {wanted} - seen
                seen.add(wanted)
    return found


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has those packages alone, as links to the ones of this environment."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, symlinks=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    for one in needed().values():
        for name in {path.parts[0] for path in one.files or ()} - {"..", "__pycache__"}:
            if not (packages / name).exists():
                (packages / name).symlink_to(one.locate_file(name))
    return folder / "bin" / "python"


@pytest.fixture
def run(python: Path, tmp_path: Path) -> Run:
    """Runs a module in that Python: what it answered."""
    own = {
        f"MEMORY_STORE_{name}": str(tmp_path / name)
        for name in ("CACHE", "CONFIG", "DATA", "STATE")
    }
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")},
        **own,
        "HOME": str(tmp_path),
        "MEMORY_STORE_OFFLINE": "1",
        "MEMORY_STORE_KEY_FILE": str(tmp_path / "keys" / "notes.key"),
    }

    def answer(module: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        return ended(
            python,
            "-m",
            module,
            *map(str, arguments),
            env=environment,
            stdin=subprocess.DEVNULL,
            cwd=tmp_path,
            timeout=120,
        )

    return answer


@pytest.fixture
def vault(run: Run, tmp_path: Path) -> Path:
    (tmp_path / "keys").mkdir(mode=0o700)
    made = run("memory_store", "init", "notes.db", "--key-file", "keys/notes.key")
    assert made.returncode == 0, made.stderr
    return tmp_path / "notes.db"


def test_notes_are_imported_and_found(run: Run, vault: Path) -> None:
    imported = run("memory_store", "import", vault, ROOT / "demo" / "notes", "--no-embed", "--json")
    assert imported.returncode == 0, imported.stderr
    assert json.loads(imported.stdout)["imported"] > 100
    found = run("memory_store", "search", vault, "spare key", "--mode", "keyword", "--json")
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["rows"]


def test_datasette_serves_the_search_page(run: Run, vault: Path) -> None:
    served = run("datasette", vault, "--get", "/-/plugins.json")
    assert "datasette-hybrid" in served.stdout, served.stderr
    page = run("datasette", vault, "--get", "/notes/-/search")
    assert "<h1" in page.stdout, page.stderr


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("report.pdf", b"%PDF-1.7\n"),
        ("page.html", b"<!doctype html><title>Weir</title><p>The weir."),
        ("letter.docx", b"PK\x03\x04"),
        ("MyActivity.html", b'<title>My Activity History</title><div class="outer-cell">'),
        ("letter.eml", b"From: a@example.org\nSubject: weir\n\nThe weir.\n"),
    ],
)
def test_documents_are_left_out_and_what_reads_them_is_named(
    run: Run, vault: Path, tmp_path: Path, name: str, head: bytes
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / name).write_bytes(head)
    (folder / "note.md").write_text("# Weir\n\nBelow the mill.\n")
    imported = run("memory_store", "import", vault, folder, "--no-embed")
    assert "datasette-hybrid[documents]" in imported.stdout + imported.stderr
    assert "imported 1," in imported.stdout


def test_code_is_searched_by_words_and_patterns_name_what_they_need(
    run: Run, vault: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "repository"
    (folder / ".git").mkdir(parents=True)
    (folder / "weir.py").write_text("def open_weir():\n    return 1\n")
    imported = run("memory_store", "import", vault, folder, "--no-embed")
    assert imported.returncode == 0, imported.stderr
    found = run("memory_store", "search", vault, "open weir", "--json")
    assert "weir.py" in found.stdout, found.stderr
    pattern = run("memory_store", "search", vault, "def $NAME(): $$$", "--structural")
    assert "datasette-hybrid[code]" in pattern.stderr


@pytest.mark.parametrize(
    ("extra", "arguments"),
    [
        ("mcp", ["mcp", "notes.db"]),
        ("mcp", ["mcp", "notes.db", "install", "cursor"]),
        ("watch", ["watch", "notes.db", "."]),
        ("postgres", ["stats", "postgresql://localhost/notes"]),
        ("llm", ["ask", "notes.db", "who tunes pianos"]),
        ("shards", ["shard", "notes.db", "1/2", "--listen", "127.0.0.1:0", *CERTIFICATES]),
    ],
)
def test_a_command_names_the_extra_that_it_needs(
    run: Run, vault: Path, extra: str, arguments: list[str]
) -> None:
    answer = run("memory_store", *arguments)
    assert answer.returncode != 0
    assert f"datasette-hybrid[{extra}]" in answer.stdout + answer.stderr
    assert "Traceback" not in answer.stderr


def test_doctor_names_every_extra_that_is_not_there(run: Run) -> None:
    """But the ones that bring weights of models alone: doctor speaks of the models."""
    said = run("memory_store", "doctor").stdout
    extras = set(distribution(OURS).metadata.get_all("Provides-Extra") or ())
    assert {
        one for one in extras if f"pip install 'datasette-hybrid[{one}]'" not in said
    } <= WEIGHTS
