"""The demo: a sealed store of notes, searched on the terminal and served as a web page.

Everything it makes lies in ``.demo`` and may be deleted at any time. The vault is opened by a key
file and by a passphrase made for this folder; both are secrets of a demo, kept beside it for
convenience. Do not keep your own keys so.
"""

from __future__ import annotations

import os
import secrets
import shlex
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
NOTES = HERE / "notes"
FOLDER = HERE.parent / ".demo"
DATABASE = FOLDER / "notes.db"
KEYS = FOLDER / "keys"
KEY_FILE = KEYS / "notes.key"
PASSPHRASE_FILE = KEYS / "passphrase.txt"
WORDS = (
    *("amber", "anchor", "barley", "beacon", "birch", "cedar", "clover", "copper", "cricket"),
    *("ember", "fennel", "gable", "garnet", "harbour", "hazel", "heron", "juniper", "kettle"),
    *("lantern", "linen", "maple", "marble", "meadow", "nettle", "oyster", "pebble", "quarry"),
    *("rowan", "saffron", "thistle", "willow"),
)

SEARCHES = (
    ("by name", "harper", ()),
    (
        "by meaning: the note that answers says nothing of slugs",
        "protecting lettuce from slugs",
        (),
    ),
    (
        "in German: the note that answers has another word for the chimney sweep",
        "Wann kommt der Schornsteinfeger?",
        (),
    ),
    ("among the notes of one topic", "topic:tidebook why did we change the database", ()),
    (
        "sealed: also where a reranker is installed, nothing is opened but what is shown",
        "when is the last frost in spring",
        ("--sealed",),
    ),
)


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "memory_store", *arguments]


def environment() -> dict[str, str]:
    return {**os.environ, "MEMORY_STORE_KEY_FILE": str(KEY_FILE)}


def announce(what: str, *arguments: str) -> None:
    """Print what comes next, and the command for it as it may be typed here."""
    print(f"\n── {what}\n   {shlex.join(['memory-store', *arguments])}\n", flush=True)


def here(path: Path) -> str:
    return os.path.relpath(path)


def run(what: str, *arguments: str) -> None:
    announce(what, *arguments)
    subprocess.run(command(*arguments), env=environment(), check=True)


def passphrase() -> str:
    """The demo's passphrase, made on the first run."""
    if not PASSPHRASE_FILE.exists():
        KEYS.mkdir(mode=0o700, parents=True, exist_ok=True)
        PASSPHRASE_FILE.touch(mode=0o600)
        PASSPHRASE_FILE.write_text(" ".join(secrets.choice(WORDS) for _ in range(5)) + "\n")
    return PASSPHRASE_FILE.read_text().strip()


def make_vault() -> None:
    """Make the vault once. The passphrase goes through the environment, never an argument."""
    if DATABASE.exists():
        return
    FOLDER.mkdir(mode=0o700, exist_ok=True)
    secret = {**environment(), "MEMORY_STORE_PASSPHRASE": passphrase()}
    keys = ("--key-file", here(KEY_FILE), "--passphrase", "--no-device-key")  # all in one folder
    words = ("init", here(DATABASE), *keys)
    announce("a new vault: a file in which notes are sealed", *words)
    subprocess.run(command(*words), env=secret, stdout=subprocess.DEVNULL, check=True)
    print(
        f"Made {here(DATABASE)}. A key file opens it, or a passphrase, both made for this demo.\n"
        f"They lie in {here(KEYS)}, beside the vault: good enough for invented notes alone. Keep\n"
        "a key of your own elsewhere, and write down the recovery code that init prints."
    )


def say_how_to_go_on() -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}$PATH"
    print(
        f"""
── and now you
   “… of 131 memories opened” counts what was decrypted; all others stayed sealed. Go on with

   export PATH="{path}" MEMORY_STORE_KEY_FILE="{KEY_FILE}"
   memory-store search {shlex.quote(here(DATABASE))} "who tunes pianos"

   All of the demo lies in {here(FOLDER)}, and is gone when you delete that folder.""",
        flush=True,
    )


def serve(port: str) -> int:
    """Serve the search page on this machine until Ctrl-C."""
    print(
        f"""
── the same in a browser
   The search page:   http://127.0.0.1:{port}/notes/-/hybrid
   Passphrase for it: {passphrase()}

   Type there: harper · "spare key" · garden -roses · type:decision heating
               Kuchen mit Äpfeln backen
   Before you unlock it, nothing is found, and the table of memories shows sealed values alone.
   Stop with Ctrl-C.
""",
        flush=True,
    )
    return subprocess.call(
        [
            *(sys.executable, "-m", "datasette", "serve", str(DATABASE)),
            *("--metadata", str(HERE.parent / "metadata.yml")),
            *("--host", "127.0.0.1", "--port", port),
        ],
        env=environment(),
    )


def main() -> int:
    make_vault()
    run("the notes of an invented family, imported into it", "import", here(DATABASE), here(NOTES))
    for what, query, options in SEARCHES:
        run(what, "search", here(DATABASE), query, "-n", "2", *options)
    say_how_to_go_on()
    if os.environ.get("SERVE", "1") == "0":
        return 0
    try:
        return serve(os.environ.get("PORT", "8001"))
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    raise SystemExit(main())
