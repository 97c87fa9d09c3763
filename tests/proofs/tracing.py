"""A Python script run under ``strace``, which lists its system calls and can make them fail."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from own_process import ended

FAILED = "(INJECTED)"  # what strace writes behind a call that it let fail
CALL = re.compile(r"\d+ +(?:<\.\.\. )?(\w+)(?:\(| resumed)")


class Traced(NamedTuple):
    """What a script wrote, and each system call that was watched, a line each."""

    stdout: str
    calls: list[str]

    def named(self, name: str) -> list[str]:
        """The calls of that name."""
        return [line for line in self.calls if (met := CALL.match(line)) and met[1] == name]


def traced(log: Path, script: Sequence[str], calls: Sequence[str], *options: str) -> Traced:
    """Run a Python script with ``strace`` watching ``calls`` of all its threads and children.

    Skips where no one may trace. A script that fails is an AssertionError with its last words.
    """
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    watch = ["strace", "-f", "--seccomp-bpf", "-o", str(log)]
    if subprocess.run([*watch, "-e", "trace=none", "true"], check=False).returncode:
        pytest.skip("no process may trace a process here, or this strace is too old")
    done = ended(
        *watch, "-e", f"trace={','.join(calls)}", *options, sys.executable, *script, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return Traced(done.stdout, log.read_text().splitlines())
