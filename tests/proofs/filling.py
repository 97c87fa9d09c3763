"""Canaries in every place where a user writes something: imported, written, edited and searched.

    python filling.py JSON     does so in this process

``JSON`` names the folder of the vault, its key file, the model, the profile, the words and the
folder of the sources; without ``cipher`` the vault is made by a cipher that encrypts nothing.
"""

from __future__ import annotations

import csv
import json
import sys
from contextlib import closing, nullcontext
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # language_models
sys.path.insert(0, str(Path(__file__).parents[2]))  # benchmarks

from language_models import LanguageModels, installed

from memory_store.records import MemoryDraft, search_request
from memory_store.sqlite import sqlite3
from memory_store.store import MemoryStore
from memory_store.vault.audit_events import AuditEvent

Words = dict[str, str]

NOTE = ("title", "topic", "metadata", "meta key", "text", "hashtag", "heading", "link", "code")
FILES = ("path", "subfolder", "name", "csv name", "json name", "database name", "original")
ROWS = ("cell title", "cell text", "cell", "column", "json text", "json key", "json value")
TABLES = ("json topic", "table", "row", "text column", "row value")
OPTIONS = ("glob", "exclude", "import topic")
ADDED = ("own title", "own text", "own topic", "own key", "own value", "nested", "source", "ref")
CHANGED = ("new title", "new text", "added topic", "task", "result")
COLLECTIONS = ("collection", "new name", "owner", "member", "holder")
AUDIT = ("actor", "surface", "action")
EXPANSION = ("wording",)
SAVED = ("search name", "saved query", "searcher")
KEPT = (
    *(*NOTE, *FILES, *ROWS, *TABLES, *OPTIONS, *ADDED, *CHANGED, *COLLECTIONS, *AUDIT),
    *EXPANSION,
    *SAVED,
)
"""What a vault keeps: what would stand in its file if nothing were sealed."""
PASSING = (
    *("query", "phrase", "literal", "question", "answer", "passphrase"),
    *("edited", "old title", "removed topic", "deleted", "old name"),
)
"""What is asked, hashed, or written and taken away again."""
PLACES = (*KEPT, *PASSING)


def write_sources(folder: Path, words: Words) -> None:
    """The files that are imported: notes, and rows of three kinds."""
    notes = folder / words["path"] / words["subfolder"]
    notes.mkdir(parents=True)
    (notes / f"{words['name']}.md").write_text(
        f"---\ntitle: {words['title']}\ntags: [{words['topic']}]\nbox: {words['metadata']}\n"
        f"{words['meta key']}: 1\n# {words['original']}: a comment is in the file alone\n---\n"
        f"Some text about {words['text']} and #{words['hashtag']}.\n\n## On {words['heading']}\n\n"
        f"See [[{words['link']}]].\n\n```python\ndef {words['code']}(): ...\n```\n"
        + "Filler. "
        * 50
    )
    with (notes / f"{words['csv name']}.csv").open("w", newline="") as rows:
        writer = csv.writer(rows)
        writer.writerow(("title", "text", words["column"]))
        writer.writerow((words["cell title"], f"Row of {words['cell text']}", words["cell"]))
    document = {
        "text": f"Line of {words['json text']}",
        "topics": [words["json topic"]],
        words["json key"]: words["json value"],
    }
    (notes / f"{words['json name']}.ndjson").write_text(json.dumps(document) + "\n")
    with closing(sqlite3.connect(folder / f"{words['database name']}.db")) as database:
        table, column = words["table"], words["text column"]
        database.execute(f"create table {table} (id integer primary key, {column} text, more text)")
        database.execute(
            f"insert into {table} ({column}, more) values (?, ?)",
            (words["row"], words["row value"]),
        )
        database.commit()


def fill(store: MemoryStore, words: Words, sources: Path, models: LanguageModels) -> None:
    """Every canary to its place. The member's key file is made beside the folder of the sources."""
    store.import_paths(
        [sources / words["path"]],
        glob=["**/*", f"{words['glob']}*"],
        exclude=[f"{words['exclude']}*"],
        topics=[words["import topic"]],
        keep_originals=True,
    )
    store.import_paths(
        [sources / f"{words['database name']}.db"],
        table=words["table"],
        text_column=words["text column"],
    )
    write(store, words)
    own_keys(store, words, sources.parent / "hers" / "member.key")
    ask(store, words, models)
    store.reindex()


def write(store: MemoryStore, words: Words) -> None:
    collection = words["collection"]
    store.collections.create(collection, owner=words["owner"])
    store.collections.change_members(collection, {words["member"]: "owner"})
    store.collections.create(words["old name"])
    store.collections.rename(words["old name"], words["new name"])
    for n in range(12):  # enough small segments that some are merged
        store.add(f"{words['text']} again, {n}", collection=collection)
    store.add_many(
        [
            MemoryDraft(
                f"First {words['own text']}",
                title=words["own title"],
                topics=(words["own topic"],),
                metadata={words["own key"]: [words["own value"], {"deep": words["nested"]}]},
            ),
            MemoryDraft("By reference", source=f"/{words['source']}", ref=words["ref"]),
        ]
    )
    edited = store.add(
        f"First {words['edited']}", title=words["old title"], topics=[words["removed topic"]]
    )
    store.edit(
        edited.id,
        text=f"Then {words['new text']}",
        title=words["new title"],
        topics=[words["added topic"]],
    )
    task = store.add(f"Do {words['task']}", type="task")
    store.done(task.id)
    result = store.add(f"Did {words['result']}", type="result", parent=task.id)
    store.publish(result.id, collection)
    store.delete(store.add(f"Soon {words['deleted']}").id)
    asked = search_request(words["saved query"])
    store.searches.save(words["searcher"], words["search name"], asked)
    store.searches.make_feed(words["searcher"], words["search name"])
    reported = (words["actor"], False, words["surface"], words["action"])
    store.trail.keep([AuditEvent("2024-03-01T08:00:00Z", *reported)], days=0, most=100)


def own_keys(store: MemoryStore, words: Words, member: Path) -> None:
    """A passphrase, a share with another key holder, and new keys for one collection."""
    store.keys.add(passphrase=words["passphrase"])
    greeting, *_ = MemoryStore.introduce(store.path, words["holder"], key_file=member)
    store.keys.share(words["new name"], greeting)
    store.keys.rotate(words["collection"])


def ask(store: MemoryStore, words: Words, models: LanguageModels) -> None:
    for mode in ("hybrid", "keyword", "vector"):
        store.search(f"{words['text']} {words['query']}", mode=mode, explain=True)
    store.search(f'"some {words["phrase"]}" topic:{words["topic"]}', sealed=True)
    store.search(words["literal"], mode="literal")
    models.add("writer", f"lex: {words['wording']}\nvec: more of {words['wording']}\n")
    models.add("teller", f"It is {words['answer']}.")
    for _ in range(2):  # asked, and found again
        expanded = store.search(f"some {words['query']}", expander="writer", explain=True)
        assert words["wording"] in str(expanded.explain)
    store.ask(f"{words['question']} {words['text']}", model="teller", expander="writer")


def main(given: str) -> None:
    reported = json.loads(given)
    words, folder = reported["words"], Path(reported["folder"])
    if reported["cipher"]:
        cipher: object = nullcontext()
    else:
        from benchmarks.operations import null_cipher

        cipher = null_cipher()
    with cipher, installed(folder / "llm") as models:  # type: ignore[attr-defined]
        store, _ = MemoryStore.create(
            folder / "vault" / "notes.db",
            key_file=reported["key_file"],
            embedder=reported["model"],
            profile=reported["profile"],
        )
        with store:
            fill(store, words, Path(reported["sources"]), models)
            assert store.search(words["text"], mode="keyword").rows
    print("filled")


if __name__ == "__main__":
    main(sys.argv[1])
