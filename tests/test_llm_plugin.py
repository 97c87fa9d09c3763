"""Memories as tools and fragments of ``llm``, for models that the user chooses."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import llm
import pytest
from click.testing import CliRunner, Result
from llm.cli import cli
from llm.plugins import load_plugins
from own_process import python

from memory_store import unlocking
from memory_store.assistants.assistant import ORDER
from memory_store.assistants.tools import TOOLS
from memory_store.llm_plugin import Memory
from memory_store.records import MemoryDraft
from memory_store.store import MemoryStore

NOTES = (
    ("key", "The spare key hangs behind the coat rack", ("house",), "personal"),
    ("lease", "The lease ends in May, the landlord keeps a spare key", ("house",), "personal"),
    ("bread", "Sourdough wants a warm corner and a day of patience", ("kitchen",), "personal"),
    ("salary", "The spare budget pays for a second monitor", ("money",), "work"),
)


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process of its own, not Datasette's, with llm's files in this test's folder."""
    monkeypatch.setenv("LLM_USER_PATH", str(tmp_path / "llm"))
    monkeypatch.delenv("MEMORY_STORE_DB", raising=False)
    load_plugins()
    monkeypatch.delitem(sys.modules, "datasette", raising=False)
    yield
    unlocking.lock_all()


@pytest.fixture
def notes(
    store: MemoryStore,
    outside: None,
    key_file: Path,
    tiny_model: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> MemoryStore:
    """Four notes in two collections, and the key in the environment."""
    store.add_many(
        MemoryDraft(text, title=ref.title(), ref=ref, topics=topics, collection=collection)
        for ref, text, topics, collection in NOTES
    )
    monkeypatch.setenv("MEMORY_STORE_KEY_FILE", str(key_file))
    monkeypatch.setenv("MEMORY_STORE_MODEL", str(tiny_model))
    return store


def typed(*words: str) -> Result:
    """``llm WORDS…`` as a person would type it."""
    return CliRunner().invoke(cli, list(words))


def called(toolbox: Memory, name: str, **arguments: Any) -> dict[str, Any]:
    """What a tool answers to a model that calls it."""
    call = {"prompt": "now", "tool_calls": [{"name": name, "arguments": arguments}]}
    chain = llm.get_model("echo").chain(json.dumps(call), tools=[toolbox])
    results = [one for response in chain.responses() for one in response.prompt.tool_results]
    return dict(json.loads(results[0].output))


def titles(found: dict[str, Any]) -> list[str]:
    return [row["title"] for row in found["results"]]


class TestTools:
    def test_a_model_searches_and_reads(self, notes: MemoryStore) -> None:
        toolbox = Memory(str(notes.path))
        found = called(toolbox, "memory_search", query="spare key", limit=2, format="json")
        assert titles(found) == ["Key", "Lease"]
        ids = [found["results"][0]["id"][:8]]
        (whole,) = called(toolbox, "memory_read", ids=ids)["memories"]
        assert whole["text"] == NOTES[0][1]
        assert "next_start" not in whole

    @pytest.mark.parametrize("access", ORDER)
    def test_its_tools_are_those_of_every_assistant(self, notes: MemoryStore, access: str) -> None:
        offered = {one.name: one for one in Memory(str(notes.path), access=access).tools()}
        rights = ORDER[: ORDER.index(access) + 1]
        assert [*offered] == [one.name for one in TOOLS if one.needs in rights and not one.of_code]
        for tool in TOOLS:
            if tool.name in offered:
                same = offered[tool.name]
                assert (same.description, same.input_schema) == (tool.description, tool.schema())

    def test_it_finds_others_like_one(self, notes: MemoryStore) -> None:
        like = notes.find_id("key")
        found = called(Memory(str(notes.path)), "memory_search", like=like, format="json")
        assert titles(found)[0] == "Lease"

    def test_a_long_text_is_read_in_parts(self, notes: MemoryStore) -> None:
        text = "".join(f"{n:07} " for n in range(2_000))
        long = notes.add(text).id
        toolbox, parts, start = Memory(str(notes.path)), [], 0
        while start is not None:
            (part,) = called(toolbox, "memory_read", ids=[long], start=start)["memories"]
            parts.append(part["text"])
            start = part.get("next_start")
        assert "".join(parts) == text.rstrip()
        assert len(parts) > 1

    def test_what_is_merely_near_is_distinguished(self, notes: MemoryStore) -> None:
        toolbox = Memory(str(notes.path))
        near = called(toolbox, "memory_search", query="xyzzy plugh")
        assert near["results"]
        assert near["nearest"].startswith("No memory holds any of these words")
        assert "nearest" not in called(toolbox, "memory_search", query="spare xyzzy")

    def test_a_collection_leaves_out_all_others(self, notes: MemoryStore) -> None:
        toolbox = Memory(str(notes.path), collection="work")
        found = called(toolbox, "memory_search", query="spare key", format="json")
        assert titles(found) == ["Salary"]
        refused = called(toolbox, "memory_read", ids=[notes.find_id("key")])
        assert set(refused) == {"error"}

    def test_it_writes_only_where_the_user_says_so_and_under_its_name(
        self, notes: MemoryStore
    ) -> None:
        new = {"memories": [{"text": "Bins on Tuesday"}]}
        reader = Memory(str(notes.path))
        assert not {"memory_add", "memory_update"} & {one.name for one in reader.tools()}
        helper = Memory(str(notes.path), access="append", name="helper")
        (added,) = called(helper, "memory_add", **new)["memories"]
        assert notes.get(added["id"]).metadata == {"by": "helper"}

    @pytest.mark.parametrize(
        ("name", "arguments", "said"),
        [
            ("memory_search", {"query": ""}, "the query is empty"),
            ("memory_search", {"query": "key", "limit": 1_000}, "limit"),
            ("memory_read", {"ids": ["00000000"]}, "no memory"),
            ("memory_read", {"ids": ["key"]}, "no memory"),  # a ref: that opens every head
        ],
    )
    def test_a_models_mistake_is_blamed_on_the_model(
        self, notes: MemoryStore, name: str, arguments: dict[str, Any], said: str
    ) -> None:
        assert said in called(Memory(str(notes.path)), name, **arguments)["error"]

    def test_no_other_model_words_the_query_anew(
        self, notes: MemoryStore, language_models: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MEMORY_STORE_EXPANDER", "good")
        assert called(Memory(str(notes.path)), "memory_search", query="spare key")["results"]
        assert language_models.given("good") == []


class TestCommand:
    def test_the_tool_is_named_with_its_database(self, notes: MemoryStore) -> None:
        call = {"name": "memory_search", "arguments": {"query": "spare key", "limit": 1}}
        prompt = json.dumps({"prompt": "now", "tool_calls": [call]})
        result = typed("-m", "echo", "-T", f'Memory("{notes.path}")', "--no-stream", prompt)
        assert result.exit_code == 0, result.output
        assert "behind the coat rack" in result.stdout

    def test_the_database_may_stand_in_the_environment(
        self, notes: MemoryStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MEMORY_STORE_DB", str(notes.path))
        assert typed("-m", "echo", "-T", "Memory", "hello").exit_code == 0
        assert "coat rack" in typed("-m", "echo", "-f", "memory:spare key", "where").stdout

    @pytest.mark.parametrize("words", [("-T", "Memory"), ("-f", "memory:spare key")])
    def test_nothing_is_reached_that_no_one_named(
        self, notes: MemoryStore, words: tuple[str, ...]
    ) -> None:
        result = typed("-m", "echo", *words, "hello")
        assert result.exit_code == 1
        assert "no store is named: set MEMORY_STORE_DB" in result.output

    def test_a_locked_store_is_said_before_a_model_is_called(
        self, notes: MemoryStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("MEMORY_STORE_KEY_FILE")
        for words in (("-T", f'Memory("{notes.path}")'), ("-f", f"memory:{notes.path}?key")):
            result = typed("-m", "echo", *words, "hello")
            assert result.exit_code == 1
            assert "is locked and no key was given: set MEMORY_STORE_KEY_FILE" in result.output

    def test_a_misspelled_option_is_named_with_those_that_there_are(
        self, notes: MemoryStore
    ) -> None:
        spec = f'Memory(database="{notes.path}", acces="append")'
        result = typed("-m", "echo", "-T", spec, "hello")
        assert result.exit_code == 1
        assert result.output == (
            "Error: acces: no such option; there are database, key_file, collection, access, name\n"
        )

    def test_a_key_file_may_be_named(
        self, notes: MemoryStore, key_file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("MEMORY_STORE_KEY_FILE")
        spec = f"Memory({json.dumps({'database': str(notes.path), 'key_file': str(key_file)})})"
        assert typed("-m", "echo", "-T", spec, "hello").exit_code == 0

    def test_the_trail_names_it_for_what_it_did(self, notes: MemoryStore) -> None:
        call = {"name": "memory_search", "arguments": {"query": "key"}}
        prompt = json.dumps({"tool_calls": [call]})
        script = (
            "import llm; from memory_store.llm_plugin import Memory; "
            f"tools = [Memory({str(notes.path)!r})]; "
            f"llm.get_model('echo').chain({prompt!r}, tools=tools).text()"
        )
        subprocess.run([sys.executable, "-c", script], check=True)
        (event,) = notes.trail.events()
        assert (event.actor, event.surface, event.action) == ("assistant llm", "llm", "search")

    def test_an_access_that_there_is_not_is_named(self, notes: MemoryStore) -> None:
        with pytest.raises(click.ClickException, match="'all' is none of read, append, write"):
            Memory(str(notes.path), access="all")

    def test_a_collection_that_is_not_there_is_named(self, notes: MemoryStore) -> None:
        with pytest.raises(click.ClickException, match="none named 'abroad'"):
            Memory(str(notes.path), collection=["work", "abroad"])


class TestFragments:
    def load(self, argument: str) -> list[llm.Fragment]:
        loader: Callable[[str], Any] = llm.get_fragment_loaders()["memory"]
        return list(loader(argument))

    def test_a_fragment_is_headed_once_with_or_without_a_title(self, notes: MemoryStore) -> None:
        notes.add("# Heron\n\nA grey heron stood by the pond.", title="Heron", topics=("pond",))
        notes.add("Kingfishers nest in the bank.")
        heron, fisher = (
            self.load(f"{notes.path}?{words}")[0] for words in ("grey heron", "kingfishers")
        )
        assert heron.count("# Heron") == 1
        assert "#pond" in heron.splitlines()[0]
        assert fisher.splitlines()[0] == "# Kingfishers nest in the bank."

    def test_each_memory_is_a_fragment_with_its_id(self, notes: MemoryStore) -> None:
        found = self.load(f"{notes.path}?spare key topic:house")
        assert [one.source for one in found] == [
            f"memory:{notes.find_id(ref)}" for ref in ("key", "lease")
        ]
        assert found[0].splitlines()[0] == "# Key"
        assert found[0].endswith(NOTES[0][1])
        assert "#house" in found[0]

    def test_the_prompt_holds_what_was_found(self, notes: MemoryStore) -> None:
        result = typed("-m", "echo", "-f", f"memory:{notes.path}?sourdough", "how long?")
        assert result.exit_code == 0, result.output
        assert "day of patience" in json.loads(result.stdout)["prompt"]

    def test_a_question_mark_in_a_query_is_one(
        self, notes: MemoryStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MEMORY_STORE_DB", str(notes.path))
        assert self.load("where is the spare key?")[0].startswith("# Key")

    def test_a_misspelled_database_is_not_taken_for_a_query(
        self, notes: MemoryStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MEMORY_STORE_DB", str(notes.path))
        with pytest.raises(ValueError, match=r"there is no file ntoes\.db"):
            self.load("ntoes.db?spare key")

    def test_long_texts_share_a_budget(self, notes: MemoryStore) -> None:
        notes.add_many(MemoryDraft(f"harbour {n} " + "pilot boat " * 3_000) for n in range(8))
        found = self.load(f"{notes.path}?harbour")
        assert len(found) == 8
        assert 20_000 < sum(map(len, found)) < 25_000

    def test_finding_nothing_is_an_error(self, notes: MemoryStore) -> None:
        result = typed("-m", "echo", "-f", f'memory:{notes.path}?"no such phrase"', "hello")
        assert result.exit_code == 1
        assert "nothing was found" in result.output

    def test_a_passphrase_opens_it_for_several_fragments(
        self,
        make_store: Callable[..., MemoryStore],
        outside: None,
        tiny_model: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        store = make_store("secret.db", key_file=None, passphrase="correct horse battery staple")
        store.add("The spare key hangs behind the coat rack")
        monkeypatch.setenv("MEMORY_STORE_MODEL", str(tiny_model))
        monkeypatch.setenv("MEMORY_STORE_PASSPHRASE", "correct horse battery staple")
        fragment = ("-f", f"memory:{store.path}?spare key")
        result = typed("-m", "echo", *fragment, *fragment, "hello")
        assert result.exit_code == 0, result.output


REGISTERED = """
import sys
{before}
import llm
print("memory" in llm.get_fragment_loaders(), "Memory" in llm.get_tools())
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("before", "shown"), [("pass", "True True"), ("import datasette.app", "False False")]
)
def test_inside_datasette_there_is_neither(before: str, shown: str) -> None:
    done = python("-c", REGISTERED.format(before=before), check=True)
    assert done.stdout.strip() == shown
