"""How long a new user waits for their first own result: ``python -m benchmarks.first_result FOLDER
QUERY``.

Does what the README says, in a new virtual environment and an empty home: install, fetch the
model, make a vault, import the folder, and search while the import still embeds. The package comes
from this checkout. Downloads are counted apart. What a person types and reads is not counted.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SEARCHABLE = "can be searched by words"  # the import says so
CHECKOUT = Path(__file__).parents[1]
KEPT = ("PIP_", "SSL_", "LANG")  # of the environment: the user's package index


def main() -> None:
    """Print each step with its seconds, and what was found first."""
    folder, query = Path(sys.argv[1]).resolve(), sys.argv[2:]
    with tempfile.TemporaryDirectory() as place:
        binaries, home = Path(place, "venv", "bin"), Path(place, "home")
        home.mkdir()
        environment = {name: text for name, text in os.environ.items() if name.startswith(KEPT)}
        environment |= {
            "HOME": str(home),
            "PATH": f"{binaries}{os.pathsep}{os.defpath}",
            "MEMORY_STORE_PASSPHRASE": "four small grey herons",
        }

        def command(*words: str | Path) -> str:
            done = subprocess.run(
                [*map(str, words)], env=environment, cwd=home, capture_output=True, text=True
            )
            if done.returncode:
                sys.exit(f"{' '.join(map(str, words))}: {done.stderr or done.stdout}")
            return done.stdout

        with timed("a virtual environment and pip install (download)"):
            venv.create(Path(place, "venv"), with_pip=True)
            command("pip", "install", "--quiet", f"{CHECKOUT}[offline]")
        with timed("memory-store models get (download)"):
            command("memory-store", "models", "get")
        began = time.monotonic()
        with timed("memory-store init"):
            command("memory-store", "init")
        with timed("memory-store import, until words can be searched"):
            importing = subprocess.Popen(
                ["memory-store", "import", str(folder)],
                env=environment,
                cwd=home,
                stderr=subprocess.PIPE,
                text=True,
            )
            assert importing.stderr is not None
            said = next((line for line in importing.stderr if SEARCHABLE in line), None)
        with timed("memory-store search, beside the import that embeds"):
            found = command("memory-store", "search", *query)
        print(f"{time.monotonic() - began:6.1f} s  from init to the first own result")
        importing.terminate()
        importing.wait()
        importing.stderr.close()
    print(said or "the import was done before it said that words can be searched")
    print(found.split("\n\n")[0])


@contextmanager
def timed(step: str) -> Iterator[None]:
    """Print how long a step took."""
    began = time.monotonic()
    yield
    print(f"{time.monotonic() - began:6.1f} s  {step}", flush=True)


if __name__ == "__main__":
    main()
