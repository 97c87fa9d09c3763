"""The demo: a sealed store of notes, searched on the terminal and served as a web page.

Everything it makes lies in ``.demo`` and may be deleted at any time. The vault is opened by a key
file and by a passphrase made for this folder; both are secrets of a demo, kept beside it for
convenience. Do not keep your own keys so.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
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
    ("in German, by another word for it", "Wann kommt der Schornsteinfeger?", ()),
    ("decisions on a topic", "topic:tidebook why did we change the database", ()),
    ("opening only what is returned", "when is the last frost in spring", ("--sealed",)),
)


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "memory_store", *map(str, arguments)]


def environment() -> dict[str, str]:
    return {**os.environ, "MEMORY_STORE_KEY_FILE": str(KEY_FILE)}


def run(*arguments: str | Path) -> None:
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
    subprocess.run(
        command("init", DATABASE, "--key-file", KEY_FILE, "--passphrase"), env=secret, check=True
    )


def serve(port: str) -> int:
    """Serve the search page on this machine until Ctrl-C."""
    print(
        f"""
The search page: http://127.0.0.1:{port}/notes/-/hybrid
Unlock it with:  {passphrase()}

Try: harper · "spare key" · garden -roses · type:decision heating · Kuchen mit Äpfeln backen
Without unlocking, the page and the SQL functions answer nothing: the table `memories` shows
sealed values alone. Stop with Ctrl-C.
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
    run("import", DATABASE, HERE / "notes")
    for what, query, options in SEARCHES:
        shown = " ".join(["memory-store search notes.db", f"'{query}'", *options])
        print(f"\n── {what}\n   {shown}\n", flush=True)
        run("search", DATABASE, query, "-n", "2", *options)
    if os.environ.get("SERVE", "1") == "0":
        return 0
    try:
        return serve(os.environ.get("PORT", "8001"))
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    raise SystemExit(main())
