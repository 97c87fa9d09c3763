"""What an assistant may do with a vault: its tools, their answers and their refusals."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from injections import INJECTIONS, fields_with

from memory_store.assistants.answers import (
    NAMED,
    Found,
    Listed,
    Mapped,
    Result,
    Shared,
    Updated,
    WasRead,
    Whole,
)
from memory_store.assistants.arguments import New, parts_of
from memory_store.assistants.assistant import Access, Assistant, only
from memory_store.assistants.server import tool as server_tool
from memory_store.assistants.tools import TOOLS, call, tools_of
from memory_store.errors import BadInputError, MemoryStoreError
from memory_store.records import MemoryChange, MemoryDraft, SearchRequest
from memory_store.scopes import EVERYTHING
from memory_store.store import MemoryStore
from memory_store.text import token_count

NAMES = [f"{a}{b}" for a in ("boiler", "weir", "ledger", "kettle", "hedge") for b in "abcdefgh"]
READING = [one.name for one in TOOLS if one.needs == "read" and not one.of_code]
ALL = [one.name for one in TOOLS]
WITHOUT_CODE = [one.name for one in TOOLS if not one.of_code]


def assistant(store: MemoryStore, access: Access = "write", *collections: str) -> Assistant:
    return Assistant(only(store, collections), access, "helper")


def added(store: MemoryStore, text: str, **fields: Any) -> str:
    given = {"memories": [{"text": text, **fields}]}
    found: str = call(assistant(store), "memory_add", given)["memories"][0]["id"]
    return found


def rows_of(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The results of a search, whichever format it has: each with what it has of its columns."""
    if "columns" not in found:
        return list(found["results"])
    rows = [dict(zip(found["columns"], row, strict=True)) for row in found["results"]]
    return [
        {name: said for name, said in row.items() if said not in ("", None, [])} for row in rows
    ]


@pytest.fixture
def wordy(store: MemoryStore) -> MemoryStore:
    """A vault of which everything is too long: titles, texts, topics, metadata."""
    for number in range(12):
        store.add(
            f'"Überall" \n steht {number}. ' + "äöü \\ " * 300,
            title=f"Überall {number} " + "ö" * 900,
            topics=[f"überall-{number}-{'ß' * 60}", *(f"t{n}" for n in range(20))],
            type="task" if number % 2 else "preference",
            metadata={"long": "x" * 3_000},
        )
    return store


class TestReading:
    def test_a_conversation_begins_with_what_matters(self, store: MemoryStore) -> None:
        added(store, "Tea with milk, never coffee", type="preference", title="Tea")
        added(store, "Call the plumber", type="task", title="Plumber")
        found = call(assistant(store, "read"), "memory_start", {"query": "tea"})
        assert [one["title"] for one in found["preferences"]] == ["Tea"]
        assert [one["title"] for one in found["open_tasks"]] == ["Plumber"]
        assert found["found"][0]["title"] == "Tea"
        assert found["may"] == "only read"

    def test_the_landscape_leads_to_what_is_there(self, store: MemoryStore) -> None:
        for number in range(4):
            added(store, f"tomato plant number {number}", topics=["garden", "food"], type="task")
        added(store, "The keel is cracked", topics=["boat"])
        found = call(assistant(store), "memory_landscape", {})
        assert [(one["name"], one["memories"]) for one in found["regions"]] == [
            ("food", 4),
            ("boat", 1),
        ]
        assert found["regions"][0]["topics"] == {"garden": 4}
        (newest,) = found["regions"][0]["newest"]
        assert call(assistant(store), "memory_read", {"ids": [newest["id"]]})["memories"]
        assert found["regions"][0]["open_tasks"] == 4
        assert {"tomato", "plant"} & {*found["regions"][0]["words"]}
        begun = call(assistant(store), "memory_start", {})
        assert begun["landscape"] == {"food": ["garden"], "boat": []}
        there = call(assistant(store), "memory_search", {"topic": ["food"]})
        assert len(there["results"]) == 4

    def test_what_was_superseded_is_found_when_it_is_asked_for(self, store: MemoryStore) -> None:
        old = added(store, "The rent is 900")
        given = {"id": old, "supersede": "The rent is 950"}
        new = call(assistant(store), "memory_update", given)["id"]
        now = rows_of(call(assistant(store), "memory_search", {"query": "rent"}))
        assert [one["id"] for one in now] == [new]
        every = {"query": "rent", "superseded": True, "by": "helper"}
        rows = rows_of(call(assistant(store), "memory_search", every))
        assert {one["id"]: one.get("superseded_by") for one in rows} == {old: new, new: None}
        (whole,) = call(assistant(store), "memory_read", {"ids": [old]})["memories"]
        assert whole["superseded_by"] == new

    def test_a_search_finds_and_goes_on(self, store: MemoryStore) -> None:
        for number in range(5):
            added(store, f"tomato plant number {number}")
        first = call(assistant(store), "memory_search", {"query": "tomato", "limit": 2})
        assert len(first["results"]) == 2
        again = {"query": "tomato", "limit": 2, "continue": first["continue"]}
        second = call(assistant(store), "memory_search", again)
        ids = {one["id"] for one in (*rows_of(first), *rows_of(second))}
        assert len(ids) == 4

    def test_a_result_says_who_wrote_it_and_if_asked_why_it_is_there(
        self, store: MemoryStore
    ) -> None:
        store.add("The weir is closed in May")
        added(store, "The weir was opened in June")

        def rows(**given: Any) -> list[dict[str, Any]]:
            asked = {"query": "weir closed", "format": "json", **given}
            return rows_of(call(assistant(store), "memory_search", asked))

        assert {one["preview"].split()[2]: one.get("by") for one in rows()} == {
            "is": None,
            "was": "helper",
        }
        assert all("because" not in one for one in rows())
        assert "it holds 100% of the query's words" in rows(explain=True)[0]["because"]
        (other,) = rows(explain=True, by="helper")
        assert other["by"] == "helper"

    def test_that_there_is_no_reranker_is_said_where_an_explanation_is_asked_for(
        self, store: MemoryStore
    ) -> None:
        store.add_many([MemoryDraft(f"The weir is closed in May {n}") for n in range(30)])
        for explain in (False, True):
            asked = {"query": "weir", "explain": explain}
            missing = call(assistant(store), "memory_search", asked).get("degraded", [])
            assert any(line.startswith("no reranker") for line in missing) is explain

    def test_a_result_says_where_to_read_on(self, store: MemoryStore) -> None:
        filler = "\n\n".join(f"Paragraph {n} is about nothing in particular." for n in range(400))
        id_ = added(store, f"{filler}\n\nThe weir key hangs in the mill.\n\n{filler}")
        for form in ("json", "compact"):
            asked = {"query": "weir key mill", "format": form}
            (row,) = rows_of(call(assistant(store), "memory_search", asked))
            given = {"ids": [id_], "start": row["start"], "budget": 300}
            (part,) = call(assistant(store), "memory_read", given)["memories"]
            assert part["text"].startswith(row["preview"][:40])
            assert "weir key" in part["text"]
            assert part["next_start"] > row["start"] > 0

    def test_a_compact_answer_says_the_same_in_fewer_characters(self, store: MemoryStore) -> None:
        for number in range(6):
            added(store, f"tomato plant number {number}", topics=["garden"])
        long = call(assistant(store), "memory_search", {"query": "tomato", "format": "json"})
        short = call(assistant(store), "memory_search", {"query": "tomato", "format": "compact"})
        assert rows_of(short) == long["results"]
        assert len(json.dumps(short)) < len(json.dumps(long))
        assert short["topics"] == {"garden": 6}
        assert call(assistant(store), "memory_search", {"query": "tomato"})["columns"]
        one = call(assistant(store), "memory_search", {"query": "tomato", "limit": 1})
        assert "columns" not in one, "where it would not be shorter"
        assert "place" not in short["columns"], "where nothing has one"

    def test_a_result_says_on_which_page_it_stands(self, store: MemoryStore) -> None:
        pages = [f"## Page {n}\n\n{words}" for n, words in enumerate(["Rent.", "Pets."], 11)]
        added(store, "\n\n".join(pages), title="The lease", type="document")
        added(store, "No pets on the boat")
        long = rows_of(call(assistant(store), "memory_search", {"query": "pets"}))
        assert sorted(one.get("place", "") for one in long) == ["", "Page 12"]
        short = call(assistant(store), "memory_search", {"query": "pets", "format": "compact"})
        at = short["columns"].index("place")
        assert [row[at] for row in short["results"]] == [one.get("place", "") for one in long]

    def test_what_is_read_names_what_it_links_to_and_what_links_to_it(
        self, store: MemoryStore
    ) -> None:
        store.collections.create("work")
        flat = added(store, "It has two rooms. [[Plans]]", title="Flat")
        home = added(store, "See [[Flat]].", title="Home")
        plans = added(store, "Secret. See [[Flat]].", title="Plans", collection="work")
        (one,) = call(assistant(store), "memory_read", {"ids": [flat]})["memories"]
        assert one["linked"] == {plans: "Plans", home: "Home"}
        personal = assistant(store, "write", "personal")
        (one,) = call(personal, "memory_read", {"ids": [flat]})["memories"]
        assert one["linked"] == {home: "Home"}
        (one,) = call(assistant(store), "memory_read", {"ids": [flat], "budget": 150})["memories"]
        assert token_count.tokens(json.dumps(one, separators=(",", ":"))) <= 150

    def test_a_long_text_is_read_in_parts_within_the_budget(self, store: MemoryStore) -> None:
        text = " ".join(f"word{number}" for number in range(2_000))
        id_ = added(store, text)
        read, start = "", 0
        while True:
            given = {"ids": [id_], "start": start, "budget": 500}
            (one,) = call(assistant(store), "memory_read", given)["memories"]
            assert token_count.tokens(json.dumps(one, separators=(",", ":"))) <= 500
            read += one["text"]
            if "next_start" not in one:
                break
            start = one["next_start"]
        assert read == text

    @pytest.mark.sampled(14)
    @pytest.mark.parametrize("library", [False, True])
    @pytest.mark.parametrize("budget", [150, 300, 2_000])
    @pytest.mark.parametrize(
        ("name", "given", "holds"),
        [
            ("memory_start", {}, "memories"),
            ("memory_start", {"query": "überall"}, "memories"),
            ("memory_search", {"query": "überall", "limit": 12}, "results"),
            ("memory_search", {"query": "überall", "limit": 12, "format": "compact"}, "results"),
            ("memory_landscape", {}, "memories"),
            ("memory_read", {}, "memories"),
            ("tasks", {}, "tasks"),
        ],
    )
    def test_an_answer_never_takes_more_than_its_budget(
        self,
        wordy: MemoryStore,
        monkeypatch: pytest.MonkeyPatch,
        name: str,
        given: dict[str, Any],
        holds: str,
        budget: int,
        library: bool,
    ) -> None:
        """By length, or by a library that counts: this one, two characters."""
        if library:
            monkeypatch.setattr(token_count, "is_exact", lambda: True)
            monkeypatch.setattr(token_count, "_counter", lambda: lambda text: -(-len(text) // 2))
        if name == "memory_read":
            given = {"ids": [one.id for one in wordy.list(limit=12)]}
        answer = call(assistant(wordy), name, {**given, "budget": budget})
        said = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
        assert token_count.tokens(said) <= budget
        assert answer[holds]

    @pytest.mark.parametrize("library", [False, True])
    def test_neither_does_one_about_what_was_written(
        self, store: MemoryStore, monkeypatch: pytest.MonkeyPatch, library: bool
    ) -> None:
        if library:
            monkeypatch.setattr(token_count, "is_exact", lambda: True)
            monkeypatch.setattr(token_count, "_counter", lambda: lambda text: len(text) * 2 // 3)
        said = "The weir is to be mended before the floods come, so the committee decided"
        for number in range(4):
            store.add(f"{said}, {number}", title=f"{said} {number}", topics=["weir"])
        few = [{"text": f"{said}, {n}.", "topics": ["weir"]} for n in range(2)]
        many = [{"text": f"{said}, {n}:", "topics": ["weir"]} for n in range(50)]
        short = call(assistant(store), "memory_add", {"memories": few})
        assert "cut" not in short
        assert all(one["already_known"] or one["may_replace"] for one in short["memories"])
        long = call(assistant(store), "memory_add", {"memories": many})
        assert token_count.tokens(json.dumps(long, separators=(",", ":"))) <= 2_000
        assert len({one["id"] for one in long["memories"]}) == 50
        assert long["cut"]
        topics = [f"topic-{number}-{'x' * 60}" for number in range(199)]
        change = {"id": long["memories"][0]["id"], "add_topics": topics}
        changed = call(assistant(store), "memory_update", change)
        assert token_count.tokens(json.dumps(changed, separators=(",", ":"))) <= 2_000
        assert changed["cut"]

    def test_pages_within_a_budget_leave_nothing_out(self, wordy: MemoryStore) -> None:
        seen: list[str] = []
        asked = {"query": "überall", "limit": 12, "budget": 400}
        page = call(assistant(wordy), "memory_search", asked)
        while True:
            seen += [one["id"] for one in rows_of(page)]
            if "continue" not in page:
                break
            page = call(assistant(wordy), "memory_search", {**asked, "continue": page["continue"]})
        assert sorted(seen) == sorted(one.id for one in wordy.list(limit=100))

    def test_tasks_are_listed_by_their_status(self, store: MemoryStore) -> None:
        first, _ = added(store, "Call", type="task"), added(store, "Write", type="task")
        call(assistant(store), "memory_update", {"id": first, "done": True})
        open_ = call(assistant(store), "tasks", {})["tasks"]
        done = call(assistant(store), "tasks", {"status": "done"})["tasks"]
        assert [one["text"] for one in open_] == ["Write"]
        assert [one["text"] for one in done] == ["Call"]


class TestWriting:
    def test_a_task_has_a_day_and_steps_and_is_listed_when_it_is_due(
        self, store: MemoryStore
    ) -> None:
        steps = "- [ ] Ask\n- [x] Look\n  - [ ] Pay"
        late = added(store, "Later", type="task", due="1 May 2030")
        soon = added(store, steps, type="task", due="2030-02-01", parent=late)
        added(store, "Some day", type="task")
        helper = assistant(store)
        listed = call(helper, "tasks", {})["tasks"]
        assert [one.get("due", "") for one in listed] == ["2030-02-01", "2030-05-01", ""]
        assert (listed[0]["steps"], listed[0]["parent"]) == ("1/3", late)
        assert [one["id"] for one in call(helper, "tasks", {"due_by": "2030-02"})["tasks"]] == [
            soon
        ]
        for span, due in (("1d", []), ("90y", [soon, late])):
            assert [one["id"] for one in call(helper, "tasks", {"due_by": span})["tasks"]] == due
        assert call(helper, "memory_start", {})["open_tasks"][0]["due"] == "2030-02-01"
        call(helper, "memory_update", {"id": soon, "tick": [3], "due": ""})
        assert store.get(soon).text == steps.replace("[ ] Pay", "[x] Pay")
        assert store.get(soon).metadata == {"by": "helper"}
        for wrong in ({"tick": [4]}, {"due": "soon"}):
            with pytest.raises(BadInputError, match=next(iter(wrong))):
                call(helper, "memory_update", {"id": soon, **wrong})

    def test_validity_is_given_when_it_is_added(self, store: MemoryStore) -> None:
        id_ = added(store, "The rent is 900", valid_from="2024-05-01", valid_to="2025-05-01")
        helper = assistant(store)
        for day, found in (("2024-04-30", []), ("2024-06-01", [id_]), ("2025-06-01", [])):
            asked = {"query": "rent", "as_of": day}
            rows = rows_of(call(helper, "memory_search", asked))
            assert [one["id"] for one in rows] == found, day
        ends = {"text": "The rent is 800", "valid_from": "2024-05-01", "valid_to": "2023"}
        for tool, given in (
            ("memory_add", {"memories": [ends]}),
            ("memory_update", {"id": id_, "valid_to": "2023"}),
        ):
            with pytest.raises(BadInputError, match=r"valid_to: 2023.* is before valid_from, 2024"):
                call(helper, tool, given)

    def test_what_stood_in_a_memorys_place_is_read_as_of_a_day(self, store: MemoryStore) -> None:
        old = store.add("The rent is 900", created="2024-05-01")
        new = store.supersede(old.id, "The rent is 950")
        given = {"ids": [new.id], "as_of": "2024-06"}
        (one,) = call(assistant(store), "memory_read", given)["memories"]
        assert (one["id"], one["text"]) == (old.id, "The rent is 900")

    def test_what_it_adds_bears_its_name(self, store: MemoryStore) -> None:
        id_ = added(store, "The lease ends in May", topics=["home"])
        assert store.get(id_).metadata == {"by": "helper"}

    def test_of_many_none_is_added_where_one_is_refused(self, store: MemoryStore) -> None:
        given = {"memories": [{"text": "One"}, {"text": "Two", "valid_to": "not a time"}]}
        with pytest.raises(MemoryStoreError):
            call(assistant(store), "memory_add", given)
        assert store.list() == []

    def test_what_is_known_already_is_said_and_left_out_if_asked(self, store: MemoryStore) -> None:
        id_ = added(store, "The spare key hangs in the hall")
        given = {"memories": [{"text": "The spare key hangs in the hall"}], "if_new": True}
        (one,) = call(assistant(store), "memory_add", given)["memories"]
        assert one["added"] is False
        assert [known["id"] for known in one["already_known"]] == [id_]
        assert len(store.list()) == 1

    def test_to_a_model_that_does_not_read_them_no_two_texts_say_the_same(
        self, store: MemoryStore
    ) -> None:
        added(store, "Ключ висит у соседа box", topics=["home"])  # the model reads box alone
        new = {"text": "Пароль лежит под столом box", "topics": ["home"]}
        (one,) = call(assistant(store), "memory_add", {"memories": [new], "if_new": True})[
            "memories"
        ]
        assert (one["already_known"], one["may_replace"]) == ([], [])
        assert len(store.list()) == 2

    def test_another_number_is_something_new(self, store: MemoryStore) -> None:
        old = added(store, "The rent of the flat in Lisbon is 900", topics=["home"])
        new = {"text": "The rent of the flat in Lisbon is 950", "topics": ["home"]}
        given = {"memories": [new], "if_new": True}
        (one,) = call(assistant(store), "memory_add", given)["memories"]
        assert one["already_known"] == []
        assert [older["id"] for older in one["may_replace"]] == [old]

    def test_another_number_in_a_long_text_is_something_new(self, store: MemoryStore) -> None:
        text = f"The rent of the flat in Lisbon is 900. {' '.join(NAMES)}"
        old = added(store, text, topics=["home"])
        new = {"text": text.replace("900", "950"), "topics": ["home"]}
        given = {"memories": [new], "if_new": True}
        (one,) = call(assistant(store), "memory_add", given)["memories"]
        assert (one["already_known"], one.get("added", True)) == ([], True)
        assert [older["id"] for older in one["may_replace"]] == [old]

    def test_of_many_that_begin_alike_the_one_that_says_the_same_is_named(
        self, store: MemoryStore
    ) -> None:
        """Notes made from a form: their first words say nothing of which is which."""
        form = "What was wanted, what was decided and why, what is left to do. " * 6
        ends = [f"They spoke of the {name} and left it as it was" for name in NAMES]
        notes = [f"{form}{' '.join([end] * 9)}" for end in ends]
        ids = [one.id for one in store.add_many(map(MemoryDraft, notes), embed=False)]
        given = {"memories": [{"text": one} for one in notes[::7]]}
        answers = call(assistant(store), "memory_add", given)["memories"]
        for id_, one in zip(ids[::7], answers, strict=True):
            assert id_ in [known["id"] for known in one["already_known"]]

    def test_words_say_what_is_known_where_there_are_no_vectors(self, store: MemoryStore) -> None:
        text = "The ferry to the island leaves at seven from the northern quay on weekdays."
        (old,) = store.add_many([MemoryDraft(text)], embed=False)
        new = {"text": text.upper().replace(".", "!")}
        (one,) = call(assistant(store), "memory_add", {"memories": [new]})["memories"]
        assert [known["id"] for known in one["already_known"]] == [old.id]

    def test_a_fact_is_embedded_before_the_answer_and_a_long_text_after_it(
        self, store: MemoryStore
    ) -> None:
        later: list[None] = []
        view = store.limited_to(EVERYTHING)
        helper = Assistant(view, "write", "helper", embed_later=lambda: later.append(None))
        fact, long = "The weir is inspected in May", "The weir and the mill. " * 40

        def answer(*texts: str) -> dict[str, Any]:
            return call(helper, "memory_add", {"memories": [{"text": one} for one in texts]})

        assert "note" not in answer(fact)
        assert (store.embedding().left, later) == (0, [])
        said = answer(long)
        assert "by its meaning shortly" in said["note"]
        assert (store.embedding().left, later) == (1, [None])
        (row, *_) = rows_of(call(helper, "memory_search", {"query": "mill"}))
        assert row["id"] == said["memories"][0]["id"], "by its words"
        store.embed_missing()
        assert store.embedding().left == 0
        many = answer(*(f"{fact} of the year {year}" for year in range(2000, 2030)))
        assert "shortly" in many["note"]
        assert "note" not in call(assistant(store), "memory_add", {"memories": [{"text": long}]})

    def test_a_changed_text_is_embedded_as_a_new_one(self, store: MemoryStore) -> None:
        later: list[None] = []
        helper = Assistant(store, "write", "helper", embed_later=lambda: later.append(None))
        ids = [added(store, f"The weir {number}", topics=["river"]) for number in range(3)]
        long = "The weir and the mill. " * 40

        def changed(place: int, **change: Any) -> tuple[bool, int]:
            said = call(helper, "memory_update", {"id": ids[place], **change})
            return "note" in said, store.embedding().left

        assert changed(0, text="The weir is mended") == (False, 0)
        assert changed(0, text=long) == (True, 1)
        store.embed_missing()
        assert changed(0, add_topics=["mill"]) == (False, 0), "its vectors stay"
        assert changed(1, supersede=long + "Both are old.") == (True, 1)
        assert len(later) == 2
        store.embed_missing()
        assert store.embedding().left == 0

    def test_a_superseded_memory_stays_and_is_valid_until_now(self, store: MemoryStore) -> None:
        old = added(store, "The rent is 900", topics=["home"])
        given = {"id": old, "supersede": "The rent is 950"}
        new = call(assistant(store), "memory_update", given)["id"]
        assert store.get(new).supersedes == old
        assert store.get(new).topics == ("home",)
        assert store.get(old).valid_to
        assert store.get(old).text == "The rent is 900"

    def test_a_memory_is_published_as_a_copy_that_bears_its_name(self, store: MemoryStore) -> None:
        store.collections.create("team")
        id_ = store.add("The boiler is serviced in May", metadata={"room": "cellar"}).id

        def publish(**given: Any) -> str:
            return str(call(assistant(store), "memory_update", {"id": id_, **given})["id"])

        copy = publish(publish="team")
        there = store.get(copy)
        assert (there.collection, there.text) == ("team", store.get(id_).text)
        assert there.metadata == {"room": "cellar", "by": "helper"}
        assert publish(publish="team") == copy, "once"
        with pytest.raises(BadInputError, match="done: not together with publish, which takes id"):
            publish(publish="team", done=True)
        with pytest.raises(BadInputError, match="none named 'attic'; memory_start lists them"):
            publish(publish="attic")
        narrow = assistant(store, "write", "personal")
        with pytest.raises(BadInputError, match="none named 'team'"):
            call(narrow, "memory_update", {"id": id_, "publish": "team"})
        store.undo_all_of("helper")
        assert [one.id for one in store.list()] == [id_]

    def test_a_deletion_needs_the_version(self, store: MemoryStore) -> None:
        id_ = added(store, "Gone soon")
        with pytest.raises(BadInputError, match="memory_read"):
            call(assistant(store), "memory_update", {"id": id_, "delete": True})
        (read,) = call(assistant(store), "memory_read", {"ids": [id_]})["memories"]
        given = {"id": id_, "delete": True, "version": read["version"]}
        assert call(assistant(store), "memory_update", given)["deleted"]
        assert store.list() == []

    @pytest.mark.parametrize(
        ("change", "culprit"),
        [
            ({"done": True, "version": 9}, "is at version 1, not 9"),
            ({"tick": [1], "version": 9}, "is at version 1, not 9"),
            ({"supersede": "New", "remove_topics": ["home"]}, "remove_topics: not together"),
            ({"supersede": "New", "due": "2030-01-01"}, "due: not together"),
            ({"delete": True, "version": 1, "text": "New"}, "text: not together with delete"),
            ({"delete": True, "version": 1, "supersede": "New"}, "not together with delete"),
            ({"version": 1}, "changes nothing"),
        ],
    )
    def test_what_would_be_left_out_is_refused(
        self, store: MemoryStore, change: dict[str, Any], culprit: str
    ) -> None:
        id_ = added(store, "- [ ] Call", type="task", topics=["home"])
        with pytest.raises(MemoryStoreError, match=culprit):
            call(assistant(store), "memory_update", {"id": id_, **change})
        (one,) = store.list(superseded=True)
        assert (one.text, one.type, one.version, one.topics) == ("- [ ] Call", "task", 1, ("home",))

    def test_completing_is_one_change_with_the_others_and_done_twice_is_done_once(
        self, store: MemoryStore
    ) -> None:
        (one,) = store.add_many([MemoryDraft("Call", type="task", ref="call.md")])
        change = {"id": one.id, "done": True, "text": "Called", "version": 1}
        said = call(assistant(store), "memory_update", change)
        assert (said["type"], said["version"]) == ("task_done", 2)
        again = call(assistant(store), "memory_update", {"id": one.id, "done": True})
        assert again["version"] == 2
        opened = call(assistant(store), "memory_update", {"id": one.id, "done": False})
        assert (opened["type"], store.get(one.id).text) == ("task", "Called")
        with pytest.raises(MemoryStoreError, match="no memory"):
            call(assistant(store), "memory_update", {"id": "call.md", "done": True})

    def test_a_parent_is_a_memory_that_is_there(self, store: MemoryStore) -> None:
        task = added(store, "Call", type="task")
        result = added(store, "Called", type="result", parent=task[:8])
        assert store.get(result).parent == task
        with pytest.raises(BadInputError, match="parent: no memory 'nowhere'"):
            added(store, "Called", parent="nowhere")

    def test_an_edit_of_an_older_version_is_refused(self, store: MemoryStore) -> None:
        id_ = added(store, "First")
        version = call(assistant(store), "memory_read", {"ids": [id_]})["memories"][0]["version"]
        store.edit(id_, text="Second")
        given = {"id": id_, "text": "Third", "version": version}
        with pytest.raises(MemoryStoreError, match="memory_read says what it is now"):
            call(assistant(store), "memory_update", given)
        assert store.get(id_).text == "Second"


class TestRights:
    @pytest.mark.parametrize(
        ("access", "offered"), [("read", 5), ("append", 6), ("write", len(WITHOUT_CODE))]
    )
    def test_it_is_offered_what_it_may_do(
        self, store: MemoryStore, access: Access, offered: int
    ) -> None:
        assert len(tools_of(assistant(store, access))) == offered

    @pytest.mark.parametrize("name", ["memory_add", "memory_update"])
    def test_one_that_may_read_writes_nothing(self, store: MemoryStore, name: str) -> None:
        id_ = added(store, "As it was")
        given = {"memories": [{"text": "x"}]} if name == "memory_add" else {"id": id_, "text": "x"}
        with pytest.raises(MemoryStoreError, match="only read"):
            call(assistant(store, "read"), name, given)
        assert [one.text for one in store.list()] == ["As it was"]

    def test_one_that_may_add_changes_nothing(self, store: MemoryStore) -> None:
        id_ = added(store, "As it was")
        with pytest.raises(MemoryStoreError, match="read and add"):
            call(assistant(store, "append"), "memory_update", {"id": id_, "text": "x"})

    def test_other_collections_are_not_there(self, store: MemoryStore) -> None:
        hidden = added(store, "A tomato of my own")
        store.collections.create("work")
        added(store, "A tomato at work", collection="work")
        helper = assistant(store, "write", "work")
        found = call(helper, "memory_search", {"query": "tomato"})["results"]
        assert [one["collection"] for one in found] == ["work"]
        begun = call(helper, "memory_start", {})
        assert (begun["memories"], list(begun["collections"])) == (1, ["work"])
        for name, given in {
            "memory_read": {"ids": [hidden]},
            "memory_update": {"id": hidden, "text": "mine"},
            "memory_search": {"query": "tomato", "collection": ["personal"]},
            "memory_add": {"memories": [{"text": "x", "collection": "personal"}]},
        }.items():
            with pytest.raises(MemoryStoreError):
                call(helper, name, given)
        assert store.get(hidden).text == "A tomato of my own"

    @pytest.mark.parametrize("text", INJECTIONS)
    def test_a_memory_that_instructs_is_data_like_any_other(
        self, store: MemoryStore, text: str
    ) -> None:
        before = json.dumps([server_tool(one).model_dump(mode="json") for one in TOOLS])
        helper, topic = assistant(store), re.findall("[A-Za-z]{4,}", text)[0]
        id_ = added(store, text, title=text, topics=[topic], type="task")
        new = {"text": text, "title": text, "topics": [topic]}
        answers = [
            call(helper, name, given)
            for name, given in (
                ("memory_start", {"query": text.replace('"', "")}),
                ("memory_search", {"query": topic, "limit": 3}),
                ("memory_read", {"ids": [id_]}),
                ("tasks", {}),
                ("memory_landscape", {}),
                ("memory_add", {"memories": [new]}),
                ("memory_update", {"id": id_, "add_topics": ["more"]}),
            )
        ]
        assert answers[2]["memories"][0]["text"] == text
        assert {name for one in answers for name in fields_with(topic, one)} <= {
            *("title", "text", "preview", "place", "topics", "name", "landscape", "newest"),
        }
        for name, wrong in (("memory_update", {"delete": True}), ("memory_update", {"version": 9})):
            with pytest.raises(MemoryStoreError) as refusal:
                call(helper, name, {"id": id_, "text": "x", **wrong})
            assert topic not in str(refusal.value)
        assert [one.name for one in tools_of(helper)] == WITHOUT_CODE
        assert json.dumps([server_tool(one).model_dump(mode="json") for one in TOOLS]) == before


OWN = {
    Listed: {"due"},
    Result: {"place", "start", "because"},
    Found: {"results", "columns", "certain", "cut"},
    Mapped: {"cut"},
    Whole: {"due", "steps", "next_start"},
    WasRead: {"due", "steps", "next_start", "linked"},
    Updated: {"deleted", "note", "cut"},
}
"""Fields of answers that no record has."""


def properties(record: type[msgspec.Struct]) -> dict[str, Any]:
    """What a record's own types say of its fields."""

    def as_text(kind: type) -> dict[str, Any]:
        return {"type": "string"}  # a line of what was missing

    _, found = msgspec.json.schema_components([record], schema_hook=as_text)
    return dict(found[record.__name__]["properties"])


def kind(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without null and what stands there where nothing is said."""
    inside = [one for one in schema.get("anyOf", [schema]) if one != {"type": "null"}]
    return {name: said for one in inside for name, said in one.items() if name != "default"}


class TestArguments:
    def test_schemas_are_whole_and_cheap(self) -> None:
        every = [
            server_tool(one).model_dump(mode="json", by_alias=True, exclude_none=True)
            for one in TOOLS
        ]
        for schema in (one[name] for one in every for name in ("inputSchema", "outputSchema")):
            jsonschema.Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object"
        text = json.dumps(every, separators=(",", ":"))  # as it is sent
        assert "$ref" not in text
        assert len(text) / 4 <= 3_000

    def test_the_page_says_what_the_list_costs(self) -> None:
        """Its tokens are of a library that may not be here: they are a fixed share of the bytes."""
        page = Path(__file__).parents[2] / "docs" / "how-to" / "assistants.md"
        said = re.findall(r"\d,\d{3}", page.read_text().partition("benchmarks.tool_lists")[2])
        assert len(said) >= 3
        for figure, named in zip(said, (READING, WITHOUT_CODE, ALL), strict=False):
            every = [server_tool(one) for one in TOOLS if one.name in named]
            data = [one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in every]
            length = len(json.dumps(data, ensure_ascii=False, separators=(",", ":")))
            assert length / int(figure.replace(",", "")) == pytest.approx(4.25, abs=0.03), figure

    def test_a_tool_takes_fields_of_the_record_that_every_surface_shares(self) -> None:
        """Of the same kind, limits and choices, and in one tool with their descriptions."""
        every: dict[str, Any] = {**{tool.name: tool.takes for tool in TOOLS}, "memory_add": New}
        described, named = set(), 0
        for name, takes in every.items():
            schema = next(tool.schema() for tool in TOOLS if tool.name == name)
            if takes is New:
                schema = schema["properties"]["memories"]["items"]
            for part in parts_of(takes):
                _, records = msgspec.json.schema_components([part.record])
                for spelled, field in part.spelled():
                    whole = dict(records[part.record.__name__]["properties"][field])
                    whole |= whole.pop("anyOf", [{}])[0]
                    whole.pop("default", None)
                    ours = schema["properties"][spelled]
                    if "description" in ours:
                        described.add((part.record, field))
                    else:
                        whole.pop("description", None)
                    assert ours == whole, (name, spelled)
                    named += 1
        assert named >= 37
        parts = [part for takes in every.values() for part in parts_of(takes)]
        for record in (SearchRequest, MemoryDraft, MemoryChange):
            own = [part for part in parts if part.record is record]
            taken = {field for part in own for _, field in part.spelled()}
            bare = {field for part in own for name, field in part.spelled() if name in part.bare}
            _, records = msgspec.json.schema_components([record])
            properties = records[record.__name__]["properties"]
            explained = {one for one in taken if "description" in properties[one]}
            assert explained - bare == {field for of, field in described if of is record}

    @pytest.mark.parametrize("answer", [*Shared.__subclasses__(), WasRead])
    def test_an_answer_holds_fields_of_the_record_that_every_surface_shares(
        self, answer: type[Shared]
    ) -> None:
        """But for a few of its own, and nested answers, their schemas are the record's."""
        of = {NAMED.get(name, name) for name in answer.__struct_encode_fields__}
        assert of - {*answer.record.__struct_fields__} == OWN.get(answer, set())
        kinds, records = properties(answer), properties(answer.record)
        shared = {name: NAMED.get(name, name) for name in kinds if NAMED.get(name, name) in records}
        for name, field in shared.items():
            if "$ref" not in str(kinds[name]):
                assert kind(kinds[name]) == kind(records[field]), name

    @pytest.mark.parametrize(
        ("name", "given", "culprit"),
        [
            ("memory_search", {"asked": {}}, "asked: no such field; there are query, mode"),
            ("memory_search", {"query": "x" * 9_000}, "query: the query has 9,000 characters"),
            ("memory_add", {"memories": [{}]}, r"memories\[0\]\.text: needed"),
            ("memory_add", {"memories": [{"text": "x", "ref": "a"}]}, "ref: no such field in mem"),
            ("memory_add", {"memories": ["x"]}, r"memories\[0\]: an object expected"),
            (
                "memory_add",
                {"memories": [{"text": 3, "typ": "x"}, {"topics": 1}], "if_knew": 1},
                r"if_knew: no .*typ: no .*\[0\]\.text: .*\[1\]\.topics: .*\[1\]\.text: needed",
            ),
            (
                "memory_add",
                {"memories": [{"text": "x"}, {"text": " ", "type": "y", "valid_to": "someday"}]},
                r"memories\[1\]\.type: .*memories\[1\]\.text: .*memories\[1\]\.valid_to: ",
            ),
            ("memory_add", {"memories": "x"}, "memories: a list"),
            ("memory_add", {"memories": [{"text": 3}]}, r"memories\[0\]\.text: text expected"),
            ("memory_search", {"query": "x", "limit": 99}, "limit"),
            ("memory_search", {"qeury": "x"}, "qeury"),
            ("memory_search", {}, "^query: "),
            ("memory_read", {"ids": []}, "ids"),
            ("memory_read", {"ids": ["no-such-id"]}, "no-such-id.*memory_search finds ids"),
            ("memory_add", {"memories": [{"text": ""}]}, "text"),
            ("memory_write", {}, "memory_search"),
            ("memory_search", {"query": "x", "collection": ["nope"]}, "memory_start lists them"),
            ("tasks", {"collection": ["nope"]}, "memory_start lists them"),
            ("memory_search", {"query": "x", "continue": "nope"}, "without it .* begins anew"),
            ("memory_add", {"memories": [{"text": "x", "parent": "nope"}]}, "finds ids"),
        ],
    )
    def test_a_refusal_names_the_culprit(
        self, store: MemoryStore, name: str, given: dict[str, Any], culprit: str
    ) -> None:
        with pytest.raises(MemoryStoreError, match=culprit):
            call(assistant(store), name, given)
