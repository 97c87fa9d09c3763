"""Collections of code: names are found by their parts, and prose beside them is left as it is."""

from __future__ import annotations

from pathlib import Path

from made_up_entries import entry, snapshot_of

from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore

PROSE = (
    "The automobile needs new brake pads",
    "Sourdough wants a warm corner",
    "Mina has the key",
    "The vehicle fleet is leased until May",
    "The physician signs the form",
    "Paint the hall",
)
CODE = """
def getUserById(user_id):
    # initialize the cache, then look up
    return http_client.fetchJSON(user_id)
"""


def texts(response: object) -> list[str]:
    return [row.preview for row in response.rows]  # type: ignore[attr-defined]


class TestCode:
    def test_parts_of_a_name_find_it(self, store: MemoryStore) -> None:
        store.collections.create("shop", analyser="code")
        code = store.add(CODE, collection="shop")
        store.add("A user of the library came by", collection="shop")
        for query in ("getUserById", "get_user_by_id", "user id", "fetchJSON", "HTTPClient"):
            first = store.search(query, mode="keyword").rows[0]
            assert first.id == code.id, query

    def test_code_is_not_stemmed(self, store: MemoryStore) -> None:
        store.add(CODE, type="code")
        store.add("They initialize everything twice")
        assert len(store.search("initialize", mode="keyword").rows) == 2
        assert texts(store.search("initial", mode="keyword")) == [
            "They initialize everything twice"
        ]

    def test_memories_of_the_type_are_code_wherever_they_are(self, store: MemoryStore) -> None:
        memory = store.add("See getUserById", type="note")
        assert not store.search("user", mode="keyword").rows
        store.edit(memory.id, type="code")
        assert store.search("user", mode="keyword").rows
        store.done(memory.id)
        assert store.search("user", mode="keyword").rows

    def test_patterns_and_phrases_with_an_apostrophe_find_code(self, store: MemoryStore) -> None:
        store.add("# don't cache the user's name", type="code")
        for query, mode in (("/don't cache/", "literal"), ('"the user\'s name"', "keyword")):
            assert len(store.search(query, mode=mode).rows) == 1, query

    def test_code_that_was_indexed_as_prose_is_stale(self) -> None:
        before = entry(["getUserById"], type="code", language="en")
        done = entry(["getUserById"], type="code_done", language="en")
        note = entry(["user"])
        snapshot = snapshot_of([note, before, done])
        assert snapshot.stale.tolist() == [False, True, True]

    def test_a_part_is_marked_with_its_whole_name(self, store: MemoryStore) -> None:
        store.add(CODE, type="code")
        (row,) = store.search("user json", mode="keyword").rows
        (passage,) = row.passages
        marked = {passage.text[start:end] for start, end in passage.highlights}
        assert marked == {"getUserById", "user_id", "fetchJSON"}

    def test_phrases_and_exclusions_go_by_parts(self, store: MemoryStore) -> None:
        store.add("call parseHeader now", type="code")
        store.add("parse the header", type="code")
        assert len(store.search('"call parseHeader"', mode="keyword").rows) == 1
        assert texts(store.search("header -call", mode="keyword")) == ["parse the header"]

    def test_a_file_is_found_by_its_name_and_folders(
        self, store: MemoryStore, tmp_path: Path
    ) -> None:
        file = tmp_path / "project" / "web" / "views" / "order_list.txt"
        file.parent.mkdir(parents=True)
        file.write_text("return render(page)")
        store.collections.create("shop", analyser="code")
        assert store.import_paths([tmp_path / "project"], collection="shop").imported == 1
        store.import_paths([tmp_path / "project"])
        for query in ("order", "order_list", "views", "web"):
            (row,) = store.search(query, mode="keyword").rows
            assert row.collection == "shop", query

    def test_prose_is_ranked_as_if_no_code_were_there(self, store: MemoryStore) -> None:
        store.collections.create("shop", analyser="code")
        store.add_many(MemoryDraft(text) for text in PROSE)
        options = {"collection": "personal", "explain": True}
        query = "getUserById lease of the hall"
        before = store.search(query, **options)
        store.add(CODE, collection="shop")
        after = store.search(query, **options)
        assert texts(before) == texts(after)
        assert [row.keyword_rank for row in before.rows] == [row.keyword_rank for row in after.rows]

    def test_why_says_of_a_query_with_names(self, store: MemoryStore) -> None:
        store.collections.create("shop", analyser="code")
        code = store.add(CODE, collection="shop")
        note = store.add(PROSE[0])
        for memory in (code, note):
            answer = store.search("getUserById brake", why=memory.id, mode="keyword")
            assert answer.why is not None
            assert answer.why["returned"]

    def test_code_says_nothing_about_the_language_of_a_query(self, store: MemoryStore) -> None:
        store.add("Die Gärten sind gegossen und die Bäume geschnitten.")
        for number in range(3):
            store.add(f"x{number} = y", type="code")
        answer = store.search("Garten", mode="keyword", explain=True)
        assert len(answer.rows) == 1
        assert answer.explain[0].details["language"] == "de"
