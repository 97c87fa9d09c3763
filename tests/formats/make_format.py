"""Vaults of today's format, to be opened by every later version: ``python make_format.py NAME``.

Writes ``NAME-default.db.xz`` and ``NAME-strict.db.xz`` beside this file, opened by ``formats.key``
and by :data:`PASSPHRASE`, and ``NAME.json`` with what they hold. Run once before a format is
released, never again for the same name. The keys protect nothing: they are published here.
"""

from __future__ import annotations

import json
import lzma
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # tiny_embedder

from language_models import installed
from tiny_embedder import build as build_tiny_embedder

from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore
from memory_store.vault.audit_events import AuditEvent

HERE = Path(__file__).parent
PASSPHRASE = "a published passphrase"
PROFILES = ("default", "strict")
DRAFTS = (
    MemoryDraft(
        "The spare key hangs in the boathouse.\n\nBehind the *second* oar.",
        title="Spare key",
        type="fact",
        topics=("house", "keys"),
        created="2024-03-01T08:00:00Z",
        metadata={"rating": 4, "near": ["lake", None, 1.5]},
    ),
    MemoryDraft(
        "Größe der Dachkammer: 3,20 m × 2,80 m — naïve Schätzung 🎉",
        title="Dachkammer",
        topics=("Häuser",),
        ref="raum/dach.md",
        source="diary",
    ),
    MemoryDraft("Pay the ferryman before June.", type="task", valid_to="2030-06-01T00:00:00Z"),
    MemoryDraft("Said twice, kept once."),
    MemoryDraft("Said twice, kept once.", topics=("twice",)),
    MemoryDraft("def weir(level):\n    return level > 3\n", type="code", collection="mill"),
)
FOLDER = Path("/tmp/memory-store-formats/notes")
"""What was imported. A source is known by its whole path, so a test has to make this very one."""
NOTES = {
    "weir.md": "---\ntitle: The weir\ntags: [lake]\n---\nThe weir is opened in March.\n",
    "log/wheel.txt": "The wheel was greased with tallow.\n",
}
EXPANSION = ("oars", "lex: paddle scull\n")
"""What was asked, and what a language model of the name ``writer`` answered."""
EVENT = AuditEvent("2024-03-01T08:00:00Z", "ada", False, "api", "search", opened=3, returned=2)


def fill(store: MemoryStore, folder: Path) -> None:
    """Every kind of row that a vault can hold, and what is left of an edit and of deletions."""
    store.collections.create("mill", owner="ada")
    store.collections.change_members("mill", {"grace": "reader"})
    first, _, task, *_ = store.add_many(DRAFTS)
    store.edit(first.id, add_topics=["lake"], text=first.text + "\n\nRust on it.")
    store.done(task.id)
    result = store.add("Paid.", type="result", parent=task.id)
    store.publish(result.id, "mill")
    store.delete(store.add("Regretted at once.").id)
    store.set_trash(3_650)  # since the trash in format 3: or a later test would find it empty
    store.add_many([MemoryDraft(f"Entry {n} of the mill's log.") for n in range(3)], embed=False)
    store.trail.keep([EVENT], days=0, most=100)
    write_notes()
    store.import_paths([FOLDER], collection="mill", topics=["imported"])
    greeting, *_ = MemoryStore.introduce(
        store.path, "Grace", key_file=key_file(folder, "formats.member")
    )
    store.keys.share("mill", greeting)
    query, answer = EXPANSION
    with installed(folder / "llm") as models:
        models.add("writer", answer)
        store.search(query, expander="writer")
    (folder / "shared").mkdir(exist_ok=True)
    store.sync_with_folder(folder / "shared")
    store.keys.rotate()  # since format 2


def write_notes() -> None:
    for name, text in NOTES.items():
        (FOLDER / name).parent.mkdir(parents=True, exist_ok=True)
        (FOLDER / name).write_text(text, "utf-8")


def described(store: MemoryStore) -> dict[str, Any]:
    """What must be found again, as JSON data."""
    return {
        "memories": [memory.as_dict() for memory in store.list(limit=1_000)],
        "members": dict(store.collections.members("mill")),
        "audit": [event.as_dict() for event in store.trail.events()],
    }


def make(name: str, profile: str, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the vault holds, and who opens what of it besides the owner."""
    path = folder / f"{name}-{profile}.db"
    store, code = MemoryStore.create(
        path,
        key_file=key_file(folder),
        passphrase=PASSPHRASE,
        profile=profile,
        embedder=str(folder / "tiny-embedder"),
    )
    with store:
        fill(store, folder)
        found = described(store)
        shared = sorted(memory.id for memory in store.list(collection="mill", limit=1_000))
    packed = lzma.compress(path.read_bytes(), preset=9 | lzma.PRESET_EXTREME)
    (HERE / f"{path.name}.xz").write_bytes(packed)
    device_key = "".join(Path(one.path).read_text() for one in store.device_keys(path))
    opened = {"recovery_code": code, "shared": shared, "device_key": device_key}
    return found, {**opened, "machine": machine(Path(os.environ["MEMORY_STORE_STATE"]))}


def machine(state: Path) -> dict[str, str]:
    """What the machine keeps, by its place in the state folder: sources belong to it since 3."""
    kept = [state / "machine-id", *sorted((state / "vaults").glob("*.json"))]
    return {file.relative_to(state).as_posix(): file.read_text() for file in kept}


def key_file(folder: Path, name: str = "formats") -> Path:
    """A published key where a key file may lie, as a key file must be; made the first time."""
    published, private = HERE / f"{name}.key", folder / "keys" / f"{name}.key"
    private.parent.mkdir(mode=0o700, exist_ok=True)
    if published.exists():
        private.write_bytes(published.read_bytes())
        private.chmod(0o600)
        return private
    from memory_store.key_files import made_key_file

    made_key_file(private, HERE / "none.db")
    published.write_bytes(private.read_bytes())
    return private


def main(name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["MEMORY_STORE_STATE"] = str(Path(folder) / "state")
        build_tiny_embedder(Path(folder) / "tiny-embedder")
        made = {profile: make(name, profile, Path(folder)) for profile in PROFILES}
    found = {profile: held for profile, (held, _) in made.items()}
    opened = {profile: others for profile, (_, others) in made.items()}
    text = json.dumps({**found, "others": opened}, ensure_ascii=False, indent=1)
    (HERE / f"{name}.json").write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
