"""Collections with a model and an analyser of their own, beside others in one vault."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tiny_embedder import build as build_tiny_embedder

from memory_store import access
from memory_store.access import Grants
from memory_store.errors import BadInputError, LockedError, ModelUnavailableError, NotFoundError
from memory_store.records import MemoryDraft, search_request
from memory_store.scopes import EVERYTHING
from memory_store.search.explain.words import stage_words
from memory_store.store import MemoryStore
from memory_store.vault.keyring import VAULT_SCOPE

HOME = ("The automobile needs new brake pads", "Sourdough wants a warm corner", "Mina has the key")
JOB = ("The vehicle fleet is leased until May", "The physician signs the form", "Paint the hall")


def texts(response: object) -> list[str]:
    return [row.preview for row in response.rows]  # type: ignore[attr-defined]


@pytest.fixture
def copied_model(second_model: Path, tmp_path: Path) -> Path:
    """The second model in a folder that a test may take away."""
    return Path(shutil.copytree(second_model, tmp_path / "copied" / second_model.name))


@pytest.fixture
def two_models(store: MemoryStore, copied_model: Path) -> MemoryStore:
    """A vault with ``personal`` in the vault's model and ``job`` in one of its own."""
    store.collections.create("job", embedder=str(copied_model))
    store.add_many(MemoryDraft(text) for text in HOME)
    store.add_many(MemoryDraft(text, collection="job") for text in JOB)
    return store


class TestTwoModels:
    def test_each_collection_is_searched_by_its_own(self, two_models: MemoryStore) -> None:
        answer = two_models.search("car", mode="vector")
        assert set(texts(answer)[:2]) == {HOME[0], JOB[0]}  # no word in common: by meaning alone
        assert answer.degraded == ()
        assert [row.vector_rank for row in answer.rows[:2]] == [1, 1]

    def test_what_is_found_in_one_is_what_it_alone_would_give(
        self, two_models: MemoryStore
    ) -> None:
        everywhere = two_models.search("a doctor for the car", mode="vector", limit=6)
        for name in ("personal", "job"):
            alone = two_models.search("a doctor for the car", mode="vector", collection=name)
            assert texts(alone) == [
                row.preview for row in everywhere.rows if row.collection == name
            ]
            cosines = {row.id: row.vector_score for row in everywhere.rows}
            assert all(row.vector_score == cosines[row.id] for row in alone.rows)

    @pytest.mark.parametrize("recipe", ["default", "gno", "prx"])
    def test_scores_by_meaning_are_those_of_one_model(
        self, two_models: MemoryStore, recipe: str
    ) -> None:
        asked = {"mode": "vector", "limit": 6, "recipe": recipe}
        query = "a doctor for the car"
        everywhere = two_models.search(query, **asked)
        alone = {
            name: two_models.search(query, collection=name, **asked).rows
            for name in ("personal", "job")
        }
        scores = {row.id: row.score for rows in alone.values() for row in rows}
        assert {row.id: row.score for row in everywhere.rows} == scores
        for place in range(2):  # interleaved by rank
            pair = {row.id for row in everywhere.rows[2 * place : 2 * place + 2]}
            assert pair == {rows[place].id for rows in alone.values()}
        least = sorted(scores.values())[len(scores) // 2] - 1e-6  # what is reported is rounded
        above = two_models.search(query, min_score=least, **asked)
        assert {row.id for row in above.rows} == {i for i, s in scores.items() if s >= least}

    def test_hybrid_search_fuses_both_with_keywords(self, two_models: MemoryStore) -> None:
        answer = two_models.search("car lease", rerank=False)
        assert texts(answer)[0] == JOB[0]
        assert HOME[0] in texts(answer)
        assert answer.degraded == ()
        assert 0 < answer.rows[0].fusion_score <= 1  # type: ignore[operator]

    def test_a_model_is_weighed_by_the_languages_it_knows(
        self, make_store: Callable[..., MemoryStore], second_model: Path, tmp_path: Path
    ) -> None:
        english = build_tiny_embedder(tmp_path / "tiny-minilm-en")
        store = make_store("languages.db", embedder=str(english))
        store.collections.create("arbeit", embedder=str(second_model), analyser="de")
        store.add("The lease of the flat ends in May and the deposit is due.")
        store.add("Die Miete für das Büro ist im Mai fällig.", collection="arbeit")
        answer = store.search("Wann ist die Miete für das Büro fällig?", explain=True)
        (fuse,) = [report for report in answer.explain if report.stage == "fuse"]
        assert fuse.details["read"]["vector"] < fuse.details["read"]["vector (2)"]
        assert "as far as its model reads the language" in str(stage_words(fuse).figures)

    def test_what_one_model_hardly_reads_is_as_probable_beside_what_another_reads(
        self, make_store: Callable[..., MemoryStore], second_model: Path, tmp_path: Path
    ) -> None:
        english = build_tiny_embedder(tmp_path / "tiny-minilm-en")
        store = make_store("languages.db", embedder=str(english))
        store.add("Die Miete für das Büro ist im Mai fällig, sagt der Vermieter.")
        store.collections.create("arbeit", embedder=str(second_model))
        others = [f"Der Garten braucht im Sommer {n} Kannen Wasser." for n in range(2, 32)]
        store.add_many(MemoryDraft(text) for text in others)
        store.add_many(MemoryDraft(text, collection="arbeit") for text in others)
        query = "Wann ist die Miete für das Büro fällig?"
        (alone,) = store.search(query, collection="personal", limit=1).rows
        (beside,) = store.search(query, limit=1).rows
        assert beside.id == alone.id
        assert beside.score == pytest.approx(alone.score, abs=0.05)

    def test_a_missing_model_costs_its_collection_s_vectors_alone(
        self, two_models: MemoryStore, copied_model: Path, key_file: Path, tiny_model: Path
    ) -> None:
        two_models.lock()
        shutil.rmtree(copied_model)
        with MemoryStore.open(
            two_models.path, key_file=key_file, embedder=str(tiny_model)
        ) as store:
            answer = store.search("car form")
            assert HOME[0] in texts(answer)
            assert JOB[1] in texts(answer)
            assert JOB[0] not in texts(answer)
            (line,) = [line for line in answer.degraded if "job" in line]
            assert "tiny-multilingual" in line
            assert "Try: " in line
            assert texts(store.search("car", mode="vector"))[0] == HOME[0]
            with pytest.raises(ModelUnavailableError):
                store.search("car", mode="vector", collection="job")
            report = store.import_paths([_note(copied_model.parent)], collection="job")
            assert report.imported == 1
            assert "collection 'job' stored without vectors" in report.degraded[0]

    def test_a_collection_without_any_vector_is_named(self, store: MemoryStore) -> None:
        store.add(HOME[0])
        store.add_many([MemoryDraft(JOB[0], collection="job")], embed=False)
        (line,) = store.search("car", mode="vector").degraded
        assert line.startswith("collection 'job' has no vectors")
        assert store.search("car", mode="vector", collection="personal").degraded == ()
        assert store.reindex() == 1
        assert store.search("car", mode="vector").degraded == ()

    def test_two_models_of_equal_length_are_not_mixed(
        self, store: MemoryStore, tmp_path: Path
    ) -> None:
        twin = build_tiny_embedder(tmp_path / "twin", words=["weir"])
        store.collections.create("job", embedder=str(twin))
        store.add(HOME[0])
        store.add(HOME[0], collection="job", title="The same")
        (personal,) = store.search("automobile", mode="vector", collection="personal").rows
        (job,) = store.search("automobile", mode="vector", collection="job").rows
        assert personal.vector_score != pytest.approx(job.vector_score, abs=1e-4)
        assert len(store.search("automobile", mode="vector").rows) == 1  # one content, one answer

    def test_an_explanation_names_both(self, two_models: MemoryStore) -> None:
        response = two_models.search("a doctor for the car", explain=True, rerank=False)
        details = {report.stage: report.details for report in response.explain}
        legs = [one["leg"] for one in details["fetch"]["lists"]]
        assert legs.count("vector") == legs.count("vector (2)") == 1
        assert len(details["fetch"]["model"].split(", ")) == 2
        assert list(details["fuse"]["read"]) == ["vector", "vector (2)"]
        for result in details["adjust"]["results"]:
            total = sum(part["term"] for part in result["contributions"])
            assert abs(total - result["fusion_sum"]) < 1e-9

    def test_why_looks_among_the_vectors_of_the_memory_s_own_model(
        self, two_models: MemoryStore
    ) -> None:
        paint = next(m for m in two_models.list(collection="job") if m.text == JOB[2])
        answer = two_models.search("car", why=paint.id, limit=1, rerank=False)
        assert answer.why is not None
        legs = [one["leg"] for one in answer.why["contributions"]]
        near = ["vector (2)"] * 2  # how near it is, and how like the first
        assert legs == [*near, "search", "search"]  # as all others, and behind them
        unread = two_models.search("automobile", why=paint.id, mode="keyword").why
        assert unread is not None
        assert [one["leg"] for one in unread["legs"]] == ["keyword"]

    def test_a_memory_that_moves_is_embedded_anew(self, two_models: MemoryStore) -> None:
        moved = next(m for m in two_models.list(collection="job") if m.text == JOB[0])
        two_models.edit(moved.id, collection="personal")
        found = two_models.search("car", mode="vector", collection="personal")
        assert set(texts(found)[:2]) == {HOME[0], JOB[0]}
        assert JOB[0] not in texts(two_models.search("car", mode="vector", collection="job"))
        assert two_models.verify()["failures"] == []

    def test_an_export_comes_back_into_the_same_collections(
        self,
        two_models: MemoryStore,
        make_store: Callable[..., MemoryStore],
        second_model: Path,
        tmp_path: Path,
    ) -> None:
        from memory_store.actions.export import export_markdown

        export_markdown(two_models.list(), tmp_path / "export")
        again = make_store("again.db")
        again.collections.create("job", embedder=str(second_model))
        assert again.import_paths([tmp_path / "export"]).imported == 6
        assert texts(again.search("car", mode="vector", collection="job"))[0] == JOB[0]
        assert again.embedder("job").dimensions == 32
        assert again.embedder().dimensions == 64

    def test_a_lock_wipes_the_vectors_of_both(self, two_models: MemoryStore) -> None:
        two_models.search("car", mode="vector")
        parts = two_models._opened.vault.snapshot().parts
        vectors = [part.segment.vectors for part in parts]
        assert {held.shape[1] for held in vectors} == {32, 64}
        two_models.lock()
        assert not any(np.any(held) for held in vectors)
        with pytest.raises(LockedError):
            two_models.search("car")


class TestChangingSettings:
    def test_only_the_changed_collection_is_renewed(
        self, two_models: MemoryStore, tiny_model: Path
    ) -> None:
        two_models.collections.set("job", embedder="default")
        answer = two_models.search("car", rerank=False)
        (line,) = answer.degraded
        assert line.startswith("collection 'job'")
        assert line.endswith(f"memory-store reindex {two_models.path}")
        assert two_models.search("brake", collection="personal", rerank=False).degraded == ()
        assert two_models.collections.stale() == {"job": len(JOB)}
        assert two_models.reindex() == len(JOB)
        assert two_models.reindex() == 0
        assert two_models.search("brake", rerank=False).degraded == ()
        assert set(texts(two_models.search("car", mode="vector"))[:2]) == {HOME[0], JOB[0]}
        assert two_models.verify()["failures"] == []

    def test_an_analyser_is_renewed_without_embedding_again(self, two_models: MemoryStore) -> None:
        two_models.collections.set("job", analyser="code")
        assert two_models.collections.stale() == {"job": len(JOB)}
        assert two_models.reindex(collection="personal") == 0
        assert two_models.reindex(collection="job") == len(JOB)
        assert two_models.stats()["languages"]["code"] == len(JOB)
        two_models.collections.set("job", analyser="auto")
        assert two_models.collections.stale() == {"job": len(JOB)}
        two_models.collections.set("job", analyser="code")
        assert two_models.collections.stale() == {}

    def test_words_are_renewed_even_where_the_model_is_gone(
        self, two_models: MemoryStore, copied_model: Path
    ) -> None:
        two_models.collections.set("job", analyser="code")
        shutil.rmtree(copied_model)
        with pytest.raises(ModelUnavailableError, match="job"):
            two_models.reindex()
        assert two_models.collections.stale() == {}

    def test_a_stopped_reindex_goes_on_where_it_was(self, store: MemoryStore) -> None:
        store.collections.create("log")
        store.add_many(MemoryDraft(f"Entry number {n}", collection="log") for n in range(150))
        store.collections.set("log", analyser="de")

        def stop(name: str, done: int, total: int | None) -> None:
            if done:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            store.reindex(progress=stop)
        left = store.collections.stale()["log"]
        assert 0 < left < 150
        assert store.reindex() == left
        assert store.stats()["languages"] == {"de": 150}

    def test_another_release_of_the_stemmers_makes_everything_stale(
        self, store: MemoryStore
    ) -> None:
        store.add(HOME[0])
        with store._opened.vault.writing() as connection, connection.transaction():
            store._opened.vault.change_settings(connection, analyser=1_002_000)
        assert store.collections.stale() == {"personal": 1}
        store.add(HOME[1])  # analysed as of today
        assert store.collections.stale() == {"personal": 1}
        assert store.reindex() == 1
        assert store.collections.stale() == {}
        assert texts(store.search("brake pad", mode="keyword")) == [HOME[0]]

    def test_merging_keeps_old_and_new_apart(self, store: MemoryStore) -> None:
        store.collections.create("log")
        for number in range(4):
            store.add(f"Entry {number}", collection="log")
        store.collections.set("log", analyser="code")
        for number in range(12):  # every eighth write merges
            store.add(f"new_entry {number}", collection="log")
        assert store.collections.stale() == {"log": 4}
        assert store.reindex() == 4
        assert store.collections.stale() == {}

    def test_another_process_s_choice_is_seen_with_its_writes(
        self, store: MemoryStore, key_file: Path, tiny_model: Path, second_model: Path
    ) -> None:
        store.add(HOME[0])
        with MemoryStore.open(store.path, key_file=key_file, embedder=str(tiny_model)) as other:
            other.collections.create("job", embedder=str(second_model))
            other.add(JOB[0], collection="job")
        assert set(texts(store.search("car", mode="vector"))) == {HOME[0], JOB[0]}
        store.collections.create("more")
        assert [info.name for info in store.collections.list()] == ["personal", "job", "more"]

    def test_it_all_survives_a_lock(
        self, two_models: MemoryStore, key_file: Path, tiny_model: Path
    ) -> None:
        two_models.collections.set("personal", analyser="en")
        two_models.lock()
        with MemoryStore.open(
            two_models.path, key_file=key_file, embedder=str(tiny_model)
        ) as again:
            found = {info.name: (info.analyser, info.embedder) for info in again.collections.list()}
            assert found == {
                "personal": ("en", tiny_model.name),
                "job": ("auto", "tiny-multilingual"),
            }

    def test_settings_are_written_as_before_until_a_collection_differs(
        self, store: MemoryStore
    ) -> None:
        assert "choices" not in _sealed_settings(store)
        store.collections.create("shop", analyser="code")
        assert [choice["analyser"] for choice in _sealed_settings(store)["choices"]] == ["code"]
        store.collections.set("shop", analyser="auto")
        assert "choices" not in _sealed_settings(store)

    def test_two_processes_choose_without_undoing_each_other(
        self, store: MemoryStore, key_file: Path, tiny_model: Path
    ) -> None:
        store.collections.create("log")
        with MemoryStore.open(store.path, key_file=key_file, embedder=str(tiny_model)) as other:
            other.collections.set("log", analyser="de")
            store.collections.set("personal", analyser="en")
            assert {c.name: c.analyser for c in other.collections.list()} == {
                "personal": "en",
                "log": "de",
            }

    def test_reindex_keeps_the_vault_s_model_unless_another_is_named(
        self,
        store: MemoryStore,
        key_file: Path,
        monkeypatch: pytest.MonkeyPatch,
        second_model: Path,
    ) -> None:
        store.add(HOME[0])
        store.lock()
        with MemoryStore.open(store.path, key_file=key_file) as again:
            monkeypatch.delenv("MEMORY_STORE_MODEL", raising=False)
            with pytest.raises(ModelUnavailableError, match="tiny-embedder"):
                again.reindex()  # its folder is not known here, and no other model is wanted
            monkeypatch.setenv("MEMORY_STORE_MODEL", str(second_model))
            assert again.reindex() == 1
            assert texts(again.search("car", mode="vector")) == [HOME[0]]

    def test_those_who_may_not_read_learn_no_collection_s_name(
        self, two_models: MemoryStore
    ) -> None:
        two_models.collections.set("job", embedder="default")
        answer = access.search(
            two_models, Grants(search=EVERYTHING), search_request("car", rerank=False)
        )
        assert any("part of the collections" in line for line in answer.degraded)
        for line in answer.degraded:
            assert "job" not in line
            assert "tiny" not in line

    def test_what_makes_no_sense_is_refused(self, store: MemoryStore) -> None:
        with pytest.raises(BadInputError, match="klingon") as refusal:
            store.collections.create("shop", analyser="klingon")
        assert refusal.value.parameter == "analyser"
        with pytest.raises(ModelUnavailableError):
            store.collections.create("shop", embedder="no-such-model")
        assert [info.name for info in store.collections.list()] == ["personal"]
        with pytest.raises(NotFoundError):
            store.collections.set("shop", analyser="code")


def _note(folder: Path) -> Path:
    note = folder / "late.md"
    note.write_text("Later words, long after the model went away.")
    return note


def _sealed_settings(store: MemoryStore) -> dict[str, object]:
    """The settings as they are sealed in the file."""
    vault = store._opened.vault
    revision, sealed = vault.reader().settings.sealed() or (0, b"")
    keys = vault.keyring.of(VAULT_SCOPE)
    place = keys.place("vault_settings", "sealed", "settings", revision)
    return dict(json.loads(bytes(keys.unseal("head", place, sealed))))
