"""A memory's text in your own editor, in a folder that lies in memory.

Boundary: the one place of the command line where the text of a memory is in a file as plain text.
The folder is in memory (tmpfs), for its owner alone, and is emptied and removed when the editor
ends. What your editor is set to keep elsewhere (undo files, backups) is beyond reach of this.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import click

from memory_store.errors import BadInputError, EditorError

IN_MEMORY = "/dev/shm"
RUNTIME_VARIABLE = "XDG_RUNTIME_DIR"
MOUNTS = Path("/proc/self/mounts")
MEMORY_KINDS = ("tmpfs", "ramfs")


@contextmanager
def text_in_memory(text: str) -> Iterator[Path]:
    """A private file that holds ``text`` and lies in memory; wiped and removed at the end.

    Raises BadInputError where this machine has no such folder.
    """
    import tempfile

    try:
        folder = Path(tempfile.mkdtemp(prefix="memory-store-", dir=_memory_folder()))  # mode 0700
    except OSError as error:
        raise BadInputError(f"no room for the editor in memory: {error.strerror}") from None
    try:
        file = folder / "memory.md"
        file.touch(mode=0o600)
        file.write_text(text, encoding="utf-8", newline="")
        yield file
    finally:
        try:
            for left in folder.rglob("*"):
                if left.is_file() and not left.is_symlink():
                    with left.open("r+b") as content:  # over what is there, without a new file
                        content.write(bytes(left.stat().st_size))
        finally:
            shutil.rmtree(folder)


@contextmanager
def editing(text: str) -> Iterator[Callable[[], str]]:
    """What opens ``text`` in your editor, as you left it before, and gives what it is then.

    Raises as :func:`text_in_memory` does; what it opens, BadInputError where you give up.
    """
    with text_in_memory(text) as file:
        yield partial(_edited_at_last, file)


def _edited_at_last(file: Path) -> str:
    while True:
        try:
            return edited(file)
        except BadInputError as error:
            click.echo(f"Not saved: {error}", err=True)
            if not click.confirm("Open your text again?", err=True):
                raise


def edited(file: Path) -> str:
    """What the file holds once your editor has ended. Raises BadInputError: it is not UTF-8;
    EditorError.

    The newline that editors put at the end of a file is left out where it was not there before.
    """
    had_newline = file.read_bytes().endswith(b"\n")
    try:
        click.edit(filename=str(file), env={"TMPDIR": str(file.parent)})
    except click.ClickException as error:
        name = error.message.partition(": Editing failed")[0]
        if isinstance(error.__cause__, OSError):
            said = f"cannot be started ({error.__cause__.strerror}); EDITOR names your editor"
        else:
            said = "ended with an error, so nothing is changed"
        raise EditorError(f"the editor {name} {said}") from None
    try:
        text = file.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInputError(f"the text is not UTF-8 ({error.reason})", "text") from None
    return text if had_newline else text.removesuffix("\n")


def _memory_folder() -> str:
    """The first folder of your own or of the system that lies in memory."""
    for folder in (os.environ.get(RUNTIME_VARIABLE), IN_MEMORY):
        if folder and os.access(folder, os.W_OK) and _kind(folder) in MEMORY_KINDS:
            return folder
    raise BadInputError(
        f"no editor: it needs a folder in memory ({RUNTIME_VARIABLE} or {IN_MEMORY} as tmpfs), so "
        "that no plain copy reaches the disk. Give the text with --text - instead"
    )


def _kind(folder: str) -> str:
    """The kind of file system that holds a folder, as Linux says; empty where it does not say."""
    path = os.path.realpath(folder)
    try:
        mounts = [line.split() for line in MOUNTS.read_text(errors="replace").splitlines()]
    except OSError:
        return ""
    found = [
        (len(place), number, kind)
        for number, (_, place, kind, *_) in enumerate(mounts)
        if path == place or path.startswith(place.rstrip("/") + "/")
    ]
    return max(found)[2] if found else ""
