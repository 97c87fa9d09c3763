"""A model that does not read a language: said by import, search and doctor, with what mends it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from shlex import quote

import pytest
from tiny_embedder import build
from tiny_reranker import chosen

from memory_store import access
from memory_store.access import Grants
from memory_store.doctor.vault import vault as doctor_of
from memory_store.models.readability import COMMON_WORDS
from memory_store.records import search_request
from memory_store.records.degraded import Code
from memory_store.scopes import EVERYTHING
from memory_store.store import MemoryStore

RUSSIAN = [
    "Этот дом стоит у реки, и люди каждый день читают там книгу о городе.",
    "Ключ от подвала висит у соседа на втором этаже.",
    "Завтра утром мы поедем на дачу и будем сажать картошку.",
]
MENDED = "--embedder multilingual --get"


@pytest.fixture
def russian(store: MemoryStore, tmp_path: Path) -> MemoryStore:
    folder = tmp_path / "заметки"
    folder.mkdir()
    for number, text in enumerate(RUSSIAN):
        (folder / f"{number}.md").write_text(text, "utf-8")
    (line,) = store.import_paths([folder]).degraded
    assert "does not read Russian" in line
    assert MENDED in line
    return store


def test_a_search_says_it_once(russian: MemoryStore) -> None:
    answer = russian.search("ключ от подвала")
    assert "Ключ" in answer.rows[0].preview
    (line,) = [line for line in answer.degraded if "does not read" in line]
    assert "collection 'personal'" in line
    assert line.command == f"memory-store reindex {quote(str(russian.path))} {MENDED}"
    by_words = russian.search("ключ от подвала", mode="keyword")
    assert not any("does not read" in line for line in by_words.degraded)


def test_doctor_says_it(russian: MemoryStore) -> None:
    (check,) = [one for one in doctor_of(russian.path, russian) if one.name == "languages"]
    assert (check.state, MENDED in check.remedy) == ("missing", True)
    assert "Russian" in check.detail


def test_a_small_collection_is_named_beside_a_large_one_that_is_read(russian: MemoryStore) -> None:
    russian.collections.create("home")
    for number in range(40):
        russian.add(f"The key number {number} hangs in the hall.", collection="home")
    (line,) = [one for one in russian.search("key").degraded if "does not read" in one]
    assert "collection 'personal':" in line
    in_home = russian.search("key", collection=["home"])
    assert not [one for one in in_home.degraded if "does not read" in one]
    (check,) = [one for one in doctor_of(russian.path, russian) if one.name == "languages"]
    assert (check.state, "collection personal:" in check.detail) == ("missing", True)
    apart = f"memory-store reindex {quote(str(russian.path))} --collection personal {MENDED}"
    assert (check.remedy, line.command) == (apart, apart)


def test_a_collection_is_measured_by_the_model_of_its_own(
    russian: MemoryStore, tmp_path: Path
) -> None:
    folder = tmp_path / "reads-russian"
    build(folder, words=sorted({*" ".join(COMMON_WORDS["ru"].split()).casefold().split()}))
    russian.collections.set("personal", embedder=str(folder))
    russian.reindex()
    (check,) = [one for one in doctor_of(russian.path, russian) if one.name == "languages"]
    assert (check.state, check.detail) == ("ok", "read by the embedding model: ru")


def test_who_may_not_read_learns_no_language(russian: MemoryStore) -> None:
    answer = access.search(russian, Grants(search=EVERYTHING), search_request("ключ"))
    assert "Russian" not in " ".join(answer.degraded)


def test_a_query_that_the_model_does_not_read_says_why_it_finds_nothing(store: MemoryStore) -> None:
    store.add("The key hangs in the hall.")
    answer = store.search("ключ от подвала")
    (line,) = [line for line in answer.degraded if "does not read" in line]
    assert line.sentence.endswith("does not read this query.")
    assert line.command == f"memory-store reindex {quote(str(store.path))} {MENDED}"
    for query in ("Schlüssel für den Keller", "xqzzv plorf", "key 🎉"):
        assert not any("does not read" in line for line in store.search(query).degraded)


def test_a_memory_in_a_language_that_the_model_does_not_read_is_found_by_its_words_alone(
    store: MemoryStore,
) -> None:
    foreign = store.add(f"{RUSSIAN[1]} car").id
    english = [store.add(text).id for text in ("The house is white.", "The doctor is in town.")]
    assert [row.id for row in store.search("car").rows][:1] == [foreign]
    answer = store.search("automobile", why=foreign)
    assert foreign not in [row.id for row in answer.rows]
    assert answer.why is not None
    assert "does not read the query, or the language of this memory" in str(answer.why.reason)
    assert {row.id for row in store.search("dwelling physician").rows} == {*english}


def test_by_a_model_for_english_no_two_notes_in_other_letters_are_alike(
    make_store: Callable[..., MemoryStore], tmp_path: Path
) -> None:
    store = make_store("english.db", embedder=str(build(tmp_path / "tiny-minilm-en")))
    first = store.add(f"{RUSSIAN[1]} box").id  # the model reads box alone
    for text in RUSSIAN[::2]:
        store.add(f"{text} box", topics=["boxes"])
    assert store.suggested_topics(first) == []
    assert store.review.list().same == ()
    assert store.related(first) == []
    (line,) = [one for one in store.search("", like=first).degraded if one.code is Code.UNREAD]
    assert "does not read Russian" in line
    for text in ("The box is in the hall.", "In the hall is the box."):
        store.add(text)
    assert len(store.review.list().same) == 1


def test_a_reranker_reads_no_query_whose_letters_it_does_not_read(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen(tmp_path, monkeypatch)
    for number in range(12):
        store.add(f"Ключ от двери {number} лежит под камнем.")
        store.add(f"The key of door {number} lies under a stone.")
    answer = store.search("ключ под камнем")
    assert "Ключ" in answer.rows[0].preview
    assert {row.rerank_score for row in answer.rows} == {None}
    (line,) = [one for one in answer.degraded if one.code is Code.NOT_RERANKED]
    assert "ms-marco-TinyBERT-L-2-v2 does not read this query" in line
    assert store.search("key under a stone").rows[0].rerank_score is not None


def test_of_languages_that_the_model_reads_nothing_is_said(store: MemoryStore) -> None:
    store.add("The key hangs in the hall.")
    store.add("Der Schlüssel hängt im Flur.")
    assert not any("does not read" in line for line in store.search("key").degraded)
    (check,) = [one for one in doctor_of(store.path, store) if one.name == "languages"]
    assert check.state == "ok"
