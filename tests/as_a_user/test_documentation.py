"""The examples in the documentation do what they say, and the tables say what the code does.

A fenced block is run when the line before it is one of these comments:

    <!-- run -->               bash, python, sql or yaml; it must succeed
    <!-- run: exit 3 -->       bash that must end with that code
    <!-- run: served -->       bash with curl, against a Datasette that serves the vault
    <!-- run: served by 1.0 -->  the same, where Datasette is 1.0 or newer
    <!-- printed -->           what that printed, ids and days replaced; it must print it again
    <!-- run: served by 0.65 -->  the same, where it is older, with the YAML before as metadata.yml

The blocks of one document run in order, in a temporary home with the demo's notes in ``~/notes``
and their judgements in ``~/demo``.
README.md and start/ten-minutes.md start from nothing, and name no vault: MEMORY_STORE_PASSPHRASE
stands for the passphrase that a person types. Every other document from an imported
``notes.db`` whose key file is ``~/keys/notes.key``. SQL runs in sqlite-utils and must return rows;
YAML must start a Datasette.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import datasette
import pytest
from own_process import ended
from plugin.browsing import running
from warm_commands import warm_commands

from memory_store.sqlite import connect

ROOT = Path(__file__).parents[2]
DOCUMENTS = [*sorted(ROOT.glob("[A-Z]*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
FROM_NOTHING = ("README.md", "ten-minutes.md")
SHOWN_ADDRESS = "127.0.0.1:8001"
SECRET = "a secret of these tests"
BLOCK = re.compile(
    r"^<!-- run(?:: (?P<how>[^>]*?))? -->\n```(?P<kind>\w+)\n(?P<code>.*?)^```$"
    r"(?:\n\n<!-- printed -->\n```text\n(?P<printed>.*?)^```$)?",
    re.M | re.S,
)
CHANCE = {r"[0-9a-f]{8}-[0-9a-f-]{27}": "ID", r"20\d\d-\d\d-\d\d(T[\d:.]+Z)?": "DAY"}
"""What differs each time that an example is run, and what stands for it in the document."""
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")


@dataclass(frozen=True)
class Block:
    """One example: how it runs, its language, its text, and what it prints (empty: anything)."""

    how: str
    kind: str
    code: str
    printed: str = ""


def blocks(document: Path) -> list[Block]:
    return [
        Block(found["how"] or "", found["kind"], found["code"], found["printed"] or "")
        for found in BLOCK.finditer(document.read_text("utf-8"))
    ]


class Home:
    """A home folder in which examples run one after another, sharing exported variables."""

    def __init__(self, folder: Path, model: Path, programs: Path) -> None:
        self.folder = folder
        self.variables = folder / ".variables"
        kept = {n: v for n, v in os.environ.items() if not n.startswith("MEMORY_STORE_")}
        self.environment = {
            **kept,
            "HOME": str(folder),
            "PATH": os.pathsep.join(
                [str(programs), str(Path(sys.executable).parent), os.environ.get("PATH", "")]
            ),
            "MEMORY_STORE_MODEL": str(model),
            "MEMORY_STORE_OFFLINE": "1",
            **{
                f"MEMORY_STORE_{name}": str(folder / ".private" / name.lower())
                for name in ("CACHE", "CONFIG", "DATA", "STATE")
            },
            "DATASETTE_SECRET": SECRET,
            "NOTES_TOKEN": "a token of these tests",
        }
        shutil.copytree(ROOT / "demo" / "notes", folder / "notes")
        (folder / "demo").mkdir()
        for name in ("queries.jsonl", "qrels.tsv"):
            shutil.copy(ROOT / "demo" / name, folder / "demo" / name)
        self.variables.write_text("")

    def bash(self, code: str, *, expected: int = 0) -> str:
        """Run shell commands; what they export is there for the next block."""
        script = (
            f"set -euo pipefail\n. {self.variables}\n"
            f"trap 'export -p > {self.variables}' EXIT\n{code}"
        )
        done = self.run("bash", "-c", script)
        assert done.returncode == expected, f"{code}\nexit {done.returncode}\n{done.stderr}"
        assert "Nothing found." not in done.stdout, code
        return done.stdout

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return ended(*command, cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL)

    def python(self, code: str) -> str:
        (self.folder / "example.py").write_text(code)
        return self.bash(f"{shlex.quote(sys.executable)} example.py")

    def sql(self, code: str) -> None:
        vault = "notes.db" if (self.folder / "notes.db").exists() else '"$MEMORY_STORE_DB"'
        rows = json.loads(self.bash(f"sqlite-utils query {vault} {shlex.quote(code)}"))
        assert rows, f"no row came back from\n{code}"
        assert not any('"ok": false' in str(cell) for row in rows for cell in row.values()), rows

    def configuration(self, code: str) -> None:
        (self.folder / "metadata.yml").write_text(code)
        shown = self.bash("datasette notes.db -m metadata.yml --get /-/versions.json")
        assert json.loads(shown)["datasette"]["version"] == datasette.__version__


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The commands, which start warm."""
    with warm_commands(tmp_path_factory.mktemp("warm")) as folder:
        yield folder


@pytest.fixture
def home(tmp_path: Path, tiny_model: Path, programs: Path) -> Home:
    """A home folder with notes in it, and nothing else."""
    return Home(tmp_path, tiny_model, programs)


@pytest.fixture(scope="session")
def imported(
    tmp_path_factory: pytest.TempPathFactory, tiny_model: Path, programs: Path
) -> tuple[Home, Path]:
    """A home with an imported vault, and a copy of its files to begin the next document from."""
    home = Home(tmp_path_factory.mktemp("imported") / "home", tiny_model, programs)
    home.bash(
        "memory-store init notes.db --key-file ~/keys/notes.key\n"
        "export MEMORY_STORE_KEY_FILE=~/keys/notes.key\n"
        "memory-store import notes.db ~/notes"
    )
    return home, shutil.copytree(home.folder, home.folder.with_name("as-imported"))


@pytest.fixture
def home_with_vault(imported: tuple[Home, Path]) -> Home:
    """The same folder for each document, since a vault knows where its memories came from."""
    home, as_imported = imported
    shutil.rmtree(home.folder)
    shutil.copytree(as_imported, home.folder)
    return home


@contextmanager
def served(home: Home, *options: str) -> Iterator[str]:
    """Serve the vault; ``cookies.txt`` then signs in as root. Yields host and port."""
    environment = {
        **home.environment,
        "MEMORY_STORE_KEY_FILE": str(home.folder / "keys/notes.key"),
    }
    arguments = ("notes.db", "--root", "--secret", SECRET, *options)
    with running(*arguments, environment=environment, folder=home.folder) as server:
        signing_in = re.search(r"/-/auth-token\?token=\w+", server.said())
        assert signing_in, server.said()
        link = shlex.quote(f"{server.address}{signing_in[0]}")
        home.bash(f"curl -sS -f -o /dev/null -c cookies.txt {link}")
        yield urlsplit(server.address).netloc


def run_block(home: Home, block: Block) -> None:
    if block.how.startswith("served"):
        options = ("-m", "metadata.yml") if block.how == "served by 0.65" else ()
        with served(home, *options) as address:
            home.bash(block.code.replace(SHOWN_ADDRESS, address))
    elif block.kind == "bash":
        code = block.how.removeprefix("exit ")
        home.bash(block.code, expected=int(code) if code else 0)
    else:
        run = {"python": home.python, "sql": home.sql, "yaml": home.configuration}[block.kind]
        printed = run(block.code)
        if block.printed:
            for chance, shown in CHANCE.items():
                printed = re.sub(chance, shown, printed or "")
            assert printed == block.printed


def touches_datasette(document: Path) -> bool:
    return any(
        block.how.startswith("served") or block.kind in ("yaml", "sql") or "datasette" in block.code
        for block in blocks(document)
    )


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(d, id=d.name, marks=() if touches_datasette(d) else pytest.mark.once)
        for d in DOCUMENTS
        if blocks(d)
    ],
)
def test_the_examples_run(document: Path, request: pytest.FixtureRequest) -> None:
    needs_curl = any(block.how.startswith("served") for block in blocks(document))
    if needs_curl and shutil.which("curl") is None:
        pytest.skip("its examples need curl")
    if document.name in FROM_NOTHING:
        home: Home = request.getfixturevalue("home")
        home.environment["MEMORY_STORE_PASSPHRASE"] = "what a person types here"
        home.environment["MEMORY_STORE_DB"] = str(home.folder / "data" / "memories.db")
        (home.folder / "data").mkdir()
    else:
        home = request.getfixturevalue("home_with_vault")
    for block in blocks(document):
        if "1.0" in block.how and not newer_than_0():
            continue  # that example is for Datasette 1.0; CI runs this test on both
        if "0.65" in block.how and newer_than_0():
            continue
        run_block(home, block)


def newer_than_0() -> bool:
    return not datasette.__version__.startswith("0.")


def test_the_readme_and_the_guides_hold_examples() -> None:
    with_examples = {document.name for document in DOCUMENTS if blocks(document)}
    assert with_examples >= {
        *("README.md", "search.md", "sealing.md", "importing.md"),
        *("sql.md", "json-api.md", "models.md", "recipes.md", "quality.md"),
    }


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_every_marked_block_is_understood(document: Path) -> None:
    text = document.read_text("utf-8")
    assert len(re.findall(r"^<!-- run\b", text, re.M)) == len(blocks(document))
    for block in blocks(document):
        assert block.kind in ("bash", "python", "sql", "yaml")
        assert re.fullmatch(r"|exit \d|served|served by (1\.0|0\.65)", block.how)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    for target, anchor in LINK.findall(document.read_text("utf-8")):
        file = (document.parent / target).resolve() if target else document
        assert file.exists(), f"{document.name} links to {target}"
        if anchor and file.suffix == ".md":
            assert anchor in anchors(file), f"{document.name} links to {target}#{anchor}"


def anchors(document: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", document.read_text("utf-8"), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_column_of_a_vault_is_in_the_table_of_what_is_sealed(
    home_with_vault: Home,
) -> None:
    connection = connect(home_with_vault.folder / "notes.db", read_only=True)
    tables = [
        name
        for (name,) in connection.execute("select name from sqlite_master where type = 'table'")
        if name.startswith(("vault_", "memor")) or name == "collections"
    ]
    columns = {
        (table, row[1]): row[2]
        for table in tables
        for row in connection.execute(f"pragma table_info({table})")
    }
    listed = listed_columns()
    assert set(listed) == set(columns)
    for (table, column), state in listed.items():
        assert (columns[table, column] == "BLOB") == (state != "in clear"), (table, column)
        if state in ("sealed", "empty"):
            values = connection.execute(
                f"select {column} from {table} where {column} is not null"
            ).fetchall()
            begins = b"\x01\x01" if state == "sealed" else b""
            assert all(value[:2] == begins for (value,) in values), (table, column)
    connection.close()


def listed_columns() -> dict[tuple[str, str], str]:
    """(table, column) → ``in clear``, ``sealed``, ``keyed hash``, ``public bytes`` or ``empty``."""
    section = (ROOT / "docs" / "how-it-works" / "sealing.md").read_text("utf-8")
    found = re.findall(
        r"^\| `(\w+)` \| ([^|]+) \| (in clear|sealed|keyed hash|public bytes|empty) \|",
        section,
        re.M,
    )
    return {
        (table, column): state
        for table, names, state in found
        for column in re.findall(r"`(\w+)`", names)
    }
