"""QMD beside us: keyword search over the same Markdown files, in a Node process of its own.

QMD (MIT) is no dependency, and nothing of it is kept here. It is measured where its command is:

    npm install --prefix FOLDER @tobilu/qmd     # needs Node 22; node@22 is a package as well
    make bench ARGS="--qmd FOLDER"

Its library answers each query where it stands in our turns, and says what that took. It asks
that a note holds every word of a query, so eight drawn words find next to nothing there.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.measuring import Spent

SCRIPT = Path(__file__).with_name("qmd.mjs")
MODULE = Path("node_modules", "@tobilu", "qmd")


class Qmd:
    """A running QMD with an index of its own. Its times are those it took itself."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.version: str = self._answer()["version"]

    def index(self) -> Spent:
        """Bring the index up to date with the folder."""
        return _spent(self._asked({"update": True}))

    def search(self, query: str) -> Spent:
        """The ten best notes for a query. They stay there."""
        return _spent(self._asked({"query": query}))

    def _asked(self, question: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"QMD ended with {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer


def _spent(answer: dict[str, Any]) -> Spent:
    return Spent(answer["cpu"], answer["wall"])


def node_of(folder: Path) -> str:
    """The Node to run it with: one installed beside it, else the usual one."""
    beside = folder / "node_modules" / ".bin" / "node"
    found = str(beside) if beside.exists() else shutil.which("node")
    if found is None or not (folder / MODULE).is_dir():
        raise FileNotFoundError(f"{folder}: neither Node nor {MODULE} is there")
    return found


@contextmanager
def qmd_over(notes: Path, installed: Path, own: Path) -> Iterator[Qmd]:
    """QMD over the Markdown files of ``notes``, its index in ``own``; nothing is indexed yet."""
    own.mkdir(parents=True)
    command = [node_of(installed), str(SCRIPT), str((installed / MODULE).resolve())]
    private = {name: str(own) for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "HOME")}
    with (own / "errors.txt").open("w") as errors:
        process = subprocess.Popen(
            [*command, str(own / "index.sqlite"), str(notes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, **private},
        )
        try:
            yield Qmd(process)
        finally:
            process.kill()
            process.wait()
