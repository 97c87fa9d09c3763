"""Query expansion behind Datasette: the server's configuration chooses the model, no request."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from datasette.utils import StartupError

from .conftest import ALLOW, Filled, Serve, Served

if TYPE_CHECKING:
    from language_models import LanguageModels

QUERY = "my vegetables"


@pytest.fixture
async def expanding(
    filled: Filled, serve: Serve, language_models: LanguageModels
) -> tuple[Served, Any]:
    """A Datasette whose configuration names a model, and the model."""
    model = language_models.add("gardener", "lex: tomatoes water\nvec: watering tomatoes\n")
    return await serve(filled.path, options=filled.options(allow=ALLOW, expander="gardener")), model


async def stage(served: Served, actor: str, **options: str) -> dict[str, Any]:
    asked = {"q": QUERY, "explain": "1", **options}
    response = await served.by(actor).get(".json", params=asked)
    assert response.status_code == 200, response.text
    return next(one for one in response.json()["explain"] if one["stage"] == "expand")


async def test_the_configured_model_expands_and_a_request_can_switch_it_off(
    expanding: tuple[Served, Any],
) -> None:
    served, model = expanding
    reported = await stage(served, "bob")
    assert reported["variants"] == ["lex: tomatoes water", "vec: watering tomatoes"]
    assert (await stage(served, "bob", expand="0"))["skipped"] == "switched off"
    assert (await stage(served, "bob", expander="gardener"))["model"] == "gardener"
    assert len(model.given) == 1


async def test_what_the_model_was_sent_is_for_a_caller_who_holds_the_key(
    expanding: tuple[Served, Any],
) -> None:
    served, model = expanding
    for actor, reported in (("bob", {"cached", "lines"}), ("alice", set())):
        assert {"sent", "cached", "lines"} & set(await stage(served, actor)) <= reported
        (row,) = await served.by(actor).sql(
            "select hybrid_explain(:q) reported", q=f"{QUERY} {actor}"
        )
        assert "Question:" not in row["reported"]
    assert model.given


async def test_no_one_sends_a_query_to_a_model_of_their_own_choice(
    expanding: tuple[Served, Any], language_models: LanguageModels
) -> None:
    served, _ = expanding
    for actor in ("root", "bob", "alice"):
        for path in (".json", ".csv", ""):
            asked = {"q": QUERY, "expander": "good"}
            refused = await served.by(actor).get(path, params=asked)
            assert refused.status_code == 403, (actor, path)
            assert "configuration" in refused.text
            assert "gardener" not in refused.text
        (row,) = await served.by(actor).sql(
            "select hybrid_search(:asked, :options) answer",
            asked=QUERY,
            options=json.dumps({"expander": "good"}),
        )
        assert json.loads(row["answer"])[0]["status"] == 403
    assert language_models.given("good") == []


async def test_the_keys_of_a_browser_session_choose_no_model_either(
    filled: Filled, serve: Serve, language_models: LanguageModels
) -> None:
    served = await serve(filled.path)
    unlocked = await served.submit("/unlock", {"secret": filled.recovery_code}, page="/unlock")
    session = Served(served.datasette, served.database, dict(unlocked.cookies))
    assert (await session.get(".json", params={"q": QUERY})).status_code == 200
    refused = await session.get(".json", params={"q": QUERY, "expander": "good"})
    assert refused.status_code == 403
    assert language_models.given("good") == []


async def test_without_the_configuration_no_query_leaves(
    served: Served, language_models: LanguageModels
) -> None:
    assert (await stage(served, "bob"))["skipped"] == "no model chosen"


async def test_the_environment_may_name_the_model(
    served: Served, language_models: LanguageModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_STORE_EXPANDER", "good")
    assert (await stage(served, "bob"))["model"] == "good"


async def test_who_may_only_search_learns_nothing_of_others_questions(
    expanding: tuple[Served, Any],
) -> None:
    served, _ = expanding
    await stage(served, "bob")
    reported = await stage(served, "alice")
    assert reported["variants"] == ["lex: tomatoes water", "vec: watering tomatoes"]
    assert "cached" not in reported


async def test_no_answer_says_that_another_has_asked_the_same(
    expanding: tuple[Served, Any],
) -> None:
    """Nor the time that it takes: the model is asked again."""
    served, model = expanding
    for actor, cached in (("root", False), ("bob", False), ("bob", True), ("root", True)):
        assert (await stage(served, actor))["cached"] is cached, actor
    assert len(model.given) == 2


@pytest.mark.in_a_file
async def test_the_table_of_answers_shows_nothing(expanding: tuple[Served, Any]) -> None:
    served, _ = expanding
    await stage(served, "bob")
    shown = await served.by("root").get("/notes/vault_expansions")
    assert shown.status_code == 200
    assert "encrypted in the file" in shown.text
    assert "tomatoes" not in shown.text


@pytest.mark.parametrize("value", ["", 7, {"$env": "MODEL"}, ["good"]])
async def test_a_model_is_named_by_its_name(filled: Filled, serve: Serve, value: Any) -> None:
    with pytest.raises(StartupError, match="expander: the name of a language model"):
        await serve(filled.path, options={"notes": {"expander": value}})
