"""Reads files in processes of limited memory and processor time. Run as a script, it is the server.

The server has everything imported and forks once per file, so a test costs milliseconds. It takes
lines of ``path<TAB>bytes<TAB>seconds`` and answers each with one line of JSON: what came of the
file, or how its process died.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any


class LimitedReader:
    """A running server. ``read`` raises AssertionError when a file breaks the limits."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def read(self, path: Path, *, memory_bytes: int, seconds: int) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(path, memory_bytes, seconds, sep="\t", file=self.process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        assert "died" not in answer, answer["died"]
        return answer

    def close(self) -> None:
        self.process.communicate()


def serve() -> None:
    for line in sys.stdin:
        path, memory_bytes, seconds = line.rstrip("\n").split("\t")
        receiving, sending = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(receiving)
            answer = read_limited(path, int(memory_bytes), int(seconds))
            with os.fdopen(sending, "w") as stream:
                json.dump(answer, stream)
            os._exit(0)
        os.close(sending)
        with os.fdopen(receiving) as stream:
            text = stream.read()
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        print(text or json.dumps({"died": f"exit code {code}"}), flush=True)


def read_limited(path: str, memory_bytes: int, seconds: int) -> dict[str, Any]:
    from reading_files import read

    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + memory_bytes,) * 2)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds,) * 2)
    os.chdir(Path(path).parent)
    try:
        outcome = read(Path(path).name)
    except MemoryError:
        return {"died": "MemoryError"}
    return {
        "drafts": len(outcome.drafts),
        "skips": outcome.skips,
        "failures": outcome.failures,
    }


if __name__ == "__main__":
    import reading_files  # noqa: F401  (once, before the forks)

    serve()
