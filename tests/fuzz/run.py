"""Fuzz a parser with Atheris, or one after another: ``python tests/fuzz/run.py --seconds 120``.

Needs the dependency group ``fuzz`` (Atheris has wheels for Linux). What it finds is written to
``crash-…`` in the folder it runs in; its last lines say how many inputs were tried.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parent))

with atheris.instrument_imports(
    include=[
        "memory_store",
        "datasette_hybrid.uploads",
        "parsers",
        "key_parsers",
        "zipfile",
        "json",
        "csv",
    ]
):
    from parsers import PARSERS

MOST_BYTES = 4_096  # of one input: enough for every state of every parser
MOST_MEGABYTES = 1_024  # of this process
SLOWEST = 5  # seconds for one input


def main() -> None:
    """Run until the time is over, or a fault is found."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("parser", nargs="?", choices=PARSERS, help="all of them unless said")
    asked.add_argument("--seconds", type=int, default=120, help="for each parser")
    given = asked.parse_args()
    if given.parser:
        fuzz(given.parser, given.seconds)
    for name in PARSERS:
        command = [sys.executable, __file__, name, "--seconds", str(given.seconds)]
        if subprocess.run(command, check=False).returncode:
            sys.exit(f"{name}: a fault was found")


def fuzz(name: str, seconds: int) -> None:
    """Fuzz one parser. Ends the process, with a code other than 0 for a fault."""
    parser = PARSERS[name]
    with tempfile.TemporaryDirectory() as folder:
        for number, seed in enumerate(parser.seeds()):
            (Path(folder) / f"seed-{number}").write_bytes(seed)
        limits = (
            f"-max_total_time={seconds}",
            f"-max_len={MOST_BYTES}",
            f"-rss_limit_mb={MOST_MEGABYTES}",
            f"-timeout={SLOWEST}",
        )
        atheris.Setup([sys.argv[0], *limits, "-print_final_stats=1", folder], parser.take)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
