"""The description of the JSON API says what the API is, and cannot drift from it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator
from referencing import Registry, Resource

from datasette_hybrid.openapi import description as openapi
from datasette_hybrid.openapi.operations import OPERATIONS, Operation
from datasette_hybrid.serving import routes
from memory_store.records import OPTION_NAMES, RESULT_COLUMNS, Memory

from .conftest import Filled, Serve, Served

ONE = "00000000-0000-4000-8000-000000000001"
DOCUMENT = json.loads(json.dumps(openapi.document()))


def conforms(value: Any, schema: str) -> bool:
    """Whether a value is what a schema of the description says. Raises where it is not."""
    whole = Resource.opaque(DOCUMENT)
    registry = Registry().with_resource("urn:openapi", whole)
    reference = {"$ref": f"urn:openapi#/components/schemas/{schema}"}
    Draft202012Validator(reference, registry=registry).validate(value)
    return True


async def test_it_is_valid_and_served_to_anybody_below_any_base_url(
    filled: Filled, serve: Serve
) -> None:
    served = await serve(filled.path, settings={"base_url": "/prefix/"})
    response = await served.datasette.client.get("/-/hybrid/openapi.json")
    assert response.status_code == 200
    described = response.json()
    OpenAPIV31SpecValidator(described).validate()
    assert described["servers"] == [{"url": "/prefix"}]
    assert "notes" not in json.dumps(described["paths"])


def described_routes() -> dict[str, set[str]]:
    """Path → methods of every endpoint that answers with data, as the router has them."""
    found: dict[str, set[str]] = {}
    for pattern, view in routes():
        path = re.sub(r"\(\?P<(\w+)>\[\^/\]\+\)", r"{\1}", pattern.strip("^$")).replace("\\", "")
        if re.search(r"\.(json|csv)$", path) and "[" not in path:
            found[path] = set(view.methods) - {"HEAD"}
    return found


def test_it_has_every_endpoint_with_every_method_and_no_other() -> None:
    described: dict[str, set[str]] = {}
    for operation in OPERATIONS:
        described.setdefault(operation.path, set()).add(operation.method)
    existing = described_routes()
    assert existing.pop("/-/hybrid/openapi.json") == {"GET"}
    assert described == existing


def test_rows_and_parameters_are_those_of_a_search() -> None:
    row = DOCUMENT["components"]["schemas"]["Row"]["properties"]
    assert tuple(row) == (*RESULT_COLUMNS, *(name for name in row if name not in RESULT_COLUMNS))
    assert set(RESULT_COLUMNS) <= set(row)
    memory = DOCUMENT["components"]["schemas"]["Memory"]["properties"]
    assert list(memory) == list(Memory.__struct_fields__)
    search = DOCUMENT["paths"]["/{database}/-/hybrid.json"]["get"]["parameters"]
    assert [one["name"] for one in search] == ["q", "_shape", *OPTION_NAMES]


def test_every_error_that_an_endpoint_may_give_has_the_schema_of_errors() -> None:
    from datasette_hybrid.requests.questions import STATUS

    assert {status for _, status in STATUS} <= set(openapi.ERRORS)
    for operation in OPERATIONS:
        assert {400, 403, 404, 423, 429, 500} <= set(operation.errors), operation.name
        assert operation.body is None or 413 in operation.errors, operation.name


def test_examples_are_what_they_are_examples_of() -> None:
    asked = [one for path in DOCUMENT["paths"].values() for one in path.values()]
    contents = [one["requestBody"]["content"] for one in asked if "requestBody" in one]
    bodies = [one["application/json"] for one in contents if "application/json" in one]
    assert len(bodies) == len([one for one in OPERATIONS if one.body is not None])
    for body in bodies:
        schema = {**body["schema"], "components": DOCUMENT["components"]}
        Draft202012Validator(schema).validate(body["example"])


@pytest.mark.parametrize("actor", ["root", "alice"])
async def test_answers_are_as_described_with_and_without_text(served: Served, actor: str) -> None:
    asked = served.by(actor)
    assert conforms((await asked.get(".json?q=tomatoes&explain=1")).json(), "SearchAnswer")
    assert conforms((await asked.get(f".json?q=tomatoes&why={ONE}")).json(), "SearchAnswer")
    assert conforms((await asked.get(".json?q=tomatoes&_shape=compact")).json(), "CompactAnswer")
    for row in (await asked.get(".json?q=tomatoes&_shape=array")).json():
        assert conforms(row, "Row")
    assert conforms((await asked.get("/memories.json")).json(), "MemoryPage")
    assert conforms((await asked.get(f"{served.base}/memories/{ONE}.json")).json(), "Memories")
    assert conforms((await asked.get("/collections.json")).json(), "Collections")
    assert conforms((await asked.get(".json?q=tomatoes&limit=1000")).json(), "Error")
    assert conforms((await served.get(".json?q=tomatoes")).json(), "Error")
    trail = await asked.get("/audit.json?limit=2")
    assert conforms(trail.json(), "AuditPage" if actor == "root" else "Error")


async def test_a_method_that_is_not_there_is_refused_with_those_that_are(served: Served) -> None:
    response = await served.by("root").send(
        "PUT", "/memories.json", {}, headers={"Authorization": "Bearer nothing"}
    )
    assert response.status_code == 405
    assert response.headers["allow"] == "GET, HEAD, POST"
    assert conforms(response.json(), "Error")


@pytest.mark.parametrize("role", [None, {}, [], 7])
async def test_a_role_that_is_none_is_refused_and_takes_no_ones_away(
    served: Served, role: Any
) -> None:
    root = served.by("root")
    token = {"Authorization": "Bearer nothing"}
    made = await root.send(
        "POST", "/collections.json", {"name": "team", "private": True}, headers=token
    )
    address = f"{served.base}/collections/{made.json()['rows'][0]['id']}"
    await root.send("PUT", f"{address}/members/eve.json", {"role": "reader"}, headers=token)
    refused = await root.send("PUT", f"{address}/members/eve.json", {"role": role}, headers=token)
    assert (refused.status_code, refused.json()["parameter"]) == (400, "role")
    (shown,) = (await root.get(f"{address}.json")).json()["rows"]
    assert shown["members"] == {"root": "owner", "eve": "reader"}
    if role is not None:
        members = {"members": {"eve": role}}
        assert (
            await root.send("PATCH", f"{address}.json", members, headers=token)
        ).status_code == 400


async def test_an_empty_version_is_refused_rather_than_taken_for_any(served: Served) -> None:
    address = f"{served.base}/memories/{ONE}.json"
    token = {"Authorization": "Bearer nothing", "If-Match": ""}
    refused = await served.by("root").send("DELETE", address, None, headers=token)
    assert (refused.status_code, refused.json()["parameter"]) == (400, "If-Match")
    assert (await served.by("root").get(address)).status_code == 200


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.name)
async def test_every_address_refuses_a_parameter_that_it_does_not_know(
    served: Served, operation: Operation
) -> None:
    named = {"{database}": "notes", "{id}": ONE, "{job}": "none", "{actor}": "bob"}
    path = re.sub(r"\{\w+\}", lambda found: named[found[0]], operation.path)
    path += "?asof=2020-01-01&name=a.md" if operation.name == "upload" else "?asof=2020-01-01"
    response = await served.by("root").send(operation.method, path, operation.example)
    refused = response.json()
    assert (response.status_code, refused["parameter"]) == (400, "asof"), refused
    assert refused["error"].startswith("asof: ")
