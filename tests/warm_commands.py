"""Commands that start warm: each in a process of its own, forked from one that has loaded them.

The documentation's examples run some hundred and fifty commands. Each would spend most of its time
on imports. Here ``memory-store`` and the others of :data:`COMMANDS` are small programs that hand
their arguments, folder, environment, input and outputs to a waiting server, which forks, runs the
same entry point, and sends back the exit code.

``python warm_commands.py SOCKET`` is the server. It ends when its standard input is closed.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points
from pathlib import Path

COMMANDS = ("memory-store", "sqlite-utils", "llm")
LOADED = ("memory_store.store", "memory_store.cli.search", "memory_store.cli.imports", "fastembed")
"""What nearly every command imports, beside its own module. Never Datasette, nor its command: where
that is loaded our plugins of sqlite-utils and llm leave the vault to it, and do nothing."""

CLIENT = """#!{python} -IS
import json, os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
asked = json.dumps([{name!r}, sys.argv, os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(server, [len(asked).to_bytes(4, "big")], [0, 1, 2])
server.sendall(asked)
code = server.recv(1)
if not code:
    sys.exit("the command died")
sys.exit(code[0])
"""


@contextmanager
def warm_commands(folder: Path) -> Iterator[Path]:
    """A folder for ``PATH``. It is empty on systems without ``fork``."""
    programs, address = folder / "programs", str(folder / "socket")
    programs.mkdir(parents=True)
    if not hasattr(os, "fork"):
        yield programs
        return
    for name in COMMANDS:
        program = programs / name
        program.write_text(CLIENT.format(python=sys.executable, address=address, name=name))
        program.chmod(0o755)
    server = subprocess.Popen(
        [sys.executable, __file__, address], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"
    yield programs
    server.communicate()  # closes its input


def serve(address: str) -> None:
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # as the command itself sets it
    for module in LOADED:
        __import__(module)
    commands = {
        one.name: one.load()
        for one in entry_points(
            group="console_scripts",
        )
        if one.name in COMMANDS
    }
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no one waits for the forked ones
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen()
        print("ready", flush=True)
        while listening in select.select([listening, sys.stdin], [], [])[0]:
            connection, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                answer(connection, commands)
            connection.close()


def answer(connection: socket.socket, commands: dict[str, Callable[[], object]]) -> None:
    """Be the command that was asked for, and end."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    length, streams, _, _ = socket.recv_fds(connection, 4, 3)
    asked = b""
    while len(asked) < int.from_bytes(length, "big"):
        asked += connection.recv(1 << 16)
    name, sys.argv, folder, environment = json.loads(asked)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    code: object = 1
    try:
        code = commands[name]()
    except SystemExit as end:
        code = end.code
    except BaseException:  # noqa: BLE001  # it is shown, and the exit code says so
        traceback.print_exc()
    if isinstance(code, str):
        print(code, file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    connection.sendall(bytes([code if isinstance(code, int) else int(code is not None)]))
    os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1])
