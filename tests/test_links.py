"""Links between memories: resolved as Obsidian does, both ways, and only among what may be read."""

from __future__ import annotations

from collections import Counter
from email.message import EmailMessage
from pathlib import Path

import pytest

from memory_store.actions.export import NDJSON_NAME, export_markdown, export_ndjson_folder
from memory_store.errors import LockedError, NotFoundError
from memory_store.index.kinds import KINDS
from memory_store.index.names import NAMES, Named
from memory_store.records import MemoryDraft, MemoryLinks
from memory_store.scopes import Scope
from memory_store.session.entries import RECORDS
from memory_store.store import MemoryStore

VAULT = {
    "Home.md": "---\naliases: [Start]\nup: '[[Nowhere]]'\n---\n"
    "See [[Lease]] and [[rent|the rent]].",
    "flat/Lease.md": "The lease ends in May. It names [the rent](Rent.md) twice. [[Lease]]",
    "flat/Rent.md": "Rent is due. Back to [[start]] or [[Missing note]].",
    "old/deep/Lease.md": "An older lease. `[[Home]]`",
}


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    for name, text in VAULT.items():
        path = tmp_path / "notes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "notes"


@pytest.fixture
def linked(store: MemoryStore, notes: Path) -> MemoryStore:
    store.import_paths([notes], embed=False)
    return store


def out(found: MemoryLinks) -> list[tuple[str, str]]:
    return [(one.title, one.kind) for one in found.out]


def back(found: MemoryLinks) -> dict[str, str]:
    return {one.title: one.around for one in found.back}


def test_links_lead_both_ways_with_the_sentence_around(linked: MemoryStore) -> None:
    home = linked.links("Home.md")
    assert out(home) == [("Lease", "wiki"), ("Rent", "wiki")]
    assert home.out[0].id == linked.get("flat/Lease.md").id  # nearer than old/deep
    assert [one.target for one in home.unresolved] == ["Nowhere"]
    assert back(home) == {"Rent": "Back to start or Missing note."}
    rent = linked.links("flat/Rent.md")
    assert back(rent) == {"Home": "See Lease and the rent.", "Lease": "It names the rent twice."}
    assert linked.links("old/deep/Lease.md").back == []


def test_what_links_where_is_known_without_opening_memories(linked: MemoryStore) -> None:
    home = linked.get("Home.md").id
    before = Counter(linked.decrypted)
    linked._opened.vault.link_graph()
    assert linked.find_id("old/deep/lease.md") != linked.find_id("Rent") != home
    assert Counter(linked.decrypted) == before


def test_a_vault_of_before_names_were_kept_links_as_others_do(
    store: MemoryStore, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.delitem(KINDS, NAMES.name)
        before.delitem(RECORDS, NAMES.name)
        store.import_paths([notes], embed=False)
    test_links_lead_both_ways_with_the_sentence_around(store)
    store.add("See [[Lease]]", title="Later")
    assert [one.title for one in store.links("Later").out] == ["Lease"]
    assert store.verify(full=True)["failures"] == []
    store.reindex()
    test_what_links_where_is_known_without_opening_memories(store)
    test_links_lead_both_ways_with_the_sentence_around(store)


def test_verify_says_which_memory_is_called_otherwise_than_it_says(
    linked: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as wrong:
        wrong.setitem(RECORDS, NAMES.name, lambda one, how: Named("Harbour", links=how.links))
        memory = linked.add("Nothing of that kind", title="Sauna")
    assert linked.find_id("Harbour") == memory.id
    (failure,) = linked.verify()["failures"]
    assert memory.id in failure
    assert "names" in failure


def test_a_note_that_appears_or_is_renamed_later_is_found(linked: MemoryStore, notes: Path) -> None:
    assert [one.target for one in linked.links("flat/Rent.md").unresolved] == ["Missing note"]
    (notes / "Missing note.md").write_text("Here it is.")
    linked.import_paths([notes], embed=False)
    assert linked.links("flat/Rent.md").unresolved == []
    assert back(linked.links("Missing note.md")) == {"Rent": "Back to start or Missing note."}
    (notes / "Missing note.md").rename(notes / "Found note.md")
    linked.import_paths([notes], embed=False)
    assert [one.target for one in linked.links("flat/Rent.md").unresolved] == ["Missing note"]
    linked.edit(linked.find_id("Found note.md"), title="Missing note")
    assert linked.links("flat/Rent.md").unresolved == []
    linked.delete(linked.find_id("Found note.md"))
    assert [one.target for one in linked.links("flat/Rent.md").unresolved] == ["Missing note"]


def test_written_memories_link_by_title_id_parent_and_supersedes(store: MemoryStore) -> None:
    task = store.add("Paint the door.", title="Paint", type="task")
    old = store.add("The door is red.", title="Door")
    new = store.supersede(old.id, "The door is green, see [[paint]].")
    result = store.add(f"Done, as [[{old.id}]] says.", title="Done", parent=task.id)
    assert out(store.links(new.id)) == [("Paint", "wiki"), ("Door", "supersedes")]
    assert out(store.links(result.id)) == [("Door", "wiki"), ("Paint", "parent")]
    assert {one.kind for one in store.links(task.id).back} == {"wiki", "parent"}
    assert store.edit(new.id, text="The door is green.").version == 2
    assert out(store.links(new.id)) == [("Door", "supersedes")]


def test_source_code_has_no_links(store: MemoryStore) -> None:
    home = store.add("Home.", title="Home")
    code = store.add("cells = [[Home]]", type="code", title="matrix.py")
    assert store.links(code.id) == MemoryLinks(code.id, [], [], [])
    assert store.links(home.id).back_total == 0


def test_what_may_not_be_read_is_no_target_no_backlink_and_in_no_count(store: MemoryStore) -> None:
    store.collections.create("work")
    secret = store.add("Plans. See [[Lease]].", title="Secret", collection="work")
    lease = store.add("The lease. See [[Secret]].", title="Lease")
    assert out(store.links(lease.id)) == [("Secret", "wiki")]
    assert store.links(lease.id).back_total == 1
    ids = {one.name: one.id for one in store.collections.list()}
    personal = store.limited_to(Scope.of([ids["personal"]]))
    seen = personal.links(lease.id)
    assert (seen.out, seen.back, seen.back_total) == ([], [], 0)
    assert [one.target for one in seen.unresolved] == ["Secret"]
    assert [one.id for one in personal.related(lease.id)] == []
    with pytest.raises(NotFoundError):
        personal.links(secret.id)
    unread = store.limited_to(
        Scope.of([ids["personal"], ids["work"]]), readable=Scope.of([ids["personal"]])
    )
    assert unread.links(lease.id) == seen
    assert [one.id for one in unread.related(lease.id) if one.title] == []
    with pytest.raises(NotFoundError):
        unread.links(secret.id)


def test_a_memory_with_the_id_of_a_deleted_one_has_none_of_its_links(store: MemoryStore) -> None:
    store.collections.create("secret")
    lease = store.add("The lease.", title="Lease")
    gone = store.add("Plans. See [[Lease]].", title="Plans", collection="secret").id
    assert store.links(lease.id).back_total == 1
    store.delete(gone)
    store.add("Nothing.", title="Nothing", id=gone)
    assert store.links(gone).out == []
    assert store.links(lease.id).back_total == 0


def test_related_memories_say_why(linked: MemoryStore) -> None:
    (first, *_) = found = linked.related("flat/Rent.md")
    assert {one.title for one in found} >= {"Home", "Lease"}
    assert "links to it" in {reason for one in found for reason in one.why}
    assert first.score >= found[-1].score
    assert all(0 < one.score <= 1 for one in found)
    assert linked.find_id("flat/Rent.md") not in {one.id for one in found}


def test_related_source_code_is_called_by_its_path(store: MemoryStore) -> None:
    files = [
        MemoryDraft("KEY = 1", title="__init__.py", type="code", ref=ref)
        for ref in ("a/__init__.py", "b/__init__.py")
    ]
    note = MemoryDraft("See [[a/__init__.py]] and [[b/__init__.py]].", title="Keys", ref="keys.md")
    store.add_many([*files, note], embed=False)
    found = store.related("a/__init__.py")
    assert {(one.title, one.shown) for one in found} == {
        ("Keys", "Keys"),
        ("__init__.py", "b/__init__.py"),
    }


def test_related_memories_of_one_title_are_told_apart(linked: MemoryStore, notes: Path) -> None:
    (notes / "old/deep/Lease.md").write_text("An older lease, with its [[rent]].")
    linked.import_paths([notes], embed=False)
    found = {one.shown for one in linked.related("flat/Rent.md")}
    assert found == {"Lease (flat/Lease.md)", "Lease (old/deep/Lease.md)", "Home"}


def test_links_survive_new_keys_and_a_lock(
    linked: MemoryStore, tmp_path: Path, key_file: Path
) -> None:
    before = linked.links("flat/Rent.md")
    linked.keys.rotate()
    assert linked.links("flat/Rent.md") == before
    linked.lock()
    with pytest.raises(LockedError):
        linked.links("flat/Rent.md")
    with MemoryStore.open(linked.path, key_file=key_file) as again:
        assert again.links("flat/Rent.md") == before


@pytest.mark.parametrize("lines", [True, False], ids=["NDJSON", "Markdown"])
def test_an_export_brings_links_and_places_along(
    linked: MemoryStore, tmp_path: Path, tiny_model: Path, lines: bool
) -> None:
    turns = "## Anna, 3 May\n\nWhere is the ladder?\n\n## Bob, 3 May\n\nIn the boathouse."
    linked.add(turns, title="The ladder", type="conversation")

    def told(store: MemoryStore) -> list[object]:
        (found,) = store.search("boathouse", mode="keyword").rows
        links = [store.links(one.id) for one in sorted(store.list(), key=lambda one: one.id)]
        unresolved = [[link.target for link in one.unresolved] for one in links]
        return [found.passages[0].place, [(out(one), back(one)) for one in links], unresolved]

    before = told(linked)
    assert before[0] == "Bob, 3 May"
    export = export_ndjson_folder if lines else export_markdown
    export(linked.every(), tmp_path / "out")
    with MemoryStore.in_memory(embedder=str(tiny_model)) as fresh:
        fresh.import_paths([tmp_path / "out" / NDJSON_NAME if lines else tmp_path / "out"])
        assert told(fresh) == before


def test_a_reply_leads_to_its_message_and_an_attachment_to_what_it_came_with(
    store: MemoryStore, tmp_path: Path
) -> None:
    sent = EmailMessage()
    sent["From"], sent["Subject"], sent["Message-ID"] = "anna@example.org", "Key", "<1@example.org>"
    sent.set_content("Where is it?")
    sent.add_attachment(b"A map of the shed.", "text", "plain", filename="map #2.txt")
    answer = EmailMessage()
    answer["From"], answer["Subject"] = "bob@example.org", "Re: Key"
    answer["Message-ID"], answer["In-Reply-To"] = "<2@example.org>", "<1@example.org>"
    answer.set_content("Behind the shed.")
    box = tmp_path / "all.mbox"
    box.write_bytes(b"From x Wed May 1\n" + answer.as_bytes() + b"\n\n")
    store.import_paths([box], embed=False)
    assert store.links("<2@example.org>").out == []  # what it answers is not there
    assert store.links("<2@example.org>").unresolved == []
    (tmp_path / "mail").mkdir()
    (tmp_path / "mail" / "key.eml").write_bytes(sent.as_bytes())
    store.import_paths([tmp_path / "mail"], embed=False)
    assert out(store.links("<2@example.org>")) == [("Key", "reply")]
    assert out(store.links("key.eml#map #2.txt")) == [("Key", "attachment")]
    assert {(one.title, one.kind) for one in store.links("key.eml").back} == {
        ("Re: Key", "reply"),
        ("map #2.txt", "attachment"),
    }
    assert store.related("<2@example.org>", limit=1)[0].why[0] == "is linked from it"


def test_an_attachment_of_an_apple_note_leads_to_its_note(
    store: MemoryStore, tmp_path: Path
) -> None:
    folder = tmp_path / "iCloud Notes" / "Notes" / "Home" / "Boat"
    folder.mkdir(parents=True)
    (folder / "Boat.txt").write_text("Paint the hull.")
    (folder / "paint.md").write_text("Blue, two litres.")
    store.import_paths([tmp_path / "iCloud Notes"], embed=False)
    assert out(store.links("Home/Boat/paint.md")) == [("Paint the hull.", "attachment")]
