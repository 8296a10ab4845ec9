"""The OpenAPI document: valid, complete, and true of the answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest

from supervisor.api.openapi import openapi_document
from supervisor.api.routes_api import api_routes
from supervisor.api.routes_ops import ops_routes
from tests.api.small_fleet import SmallFleet

DOCUMENT = openapi_document("0.1.0")
METHODS = {"get", "post", "delete"}


def operations() -> Iterator[tuple[str, str, dict[str, Any], dict[str, Any]]]:
    for path, item in DOCUMENT["paths"].items():
        for method in METHODS & item.keys():
            yield method.upper(), path, item[method], item


def refs_in(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("$ref"), str):
            yield node["$ref"]
        for value in node.values():
            yield from refs_in(value)
    elif isinstance(node, list):
        for value in node:
            yield from refs_in(value)


def test_the_document_is_valid_openapi() -> None:
    validator = pytest.importorskip("openapi_spec_validator")
    validator.validate(DOCUMENT)


async def test_every_route_is_in_it_and_nothing_else_under_api(small_fleet: SmallFleet) -> None:
    routed = {(route.method, route.path) for route in [*api_routes(small_fleet), *ops_routes(small_fleet)]}
    documented = {(method, path) for method, path, _, _ in operations()}
    by_the_front = {("POST", "/api/session"), ("DELETE", "/api/session"), ("GET", "/")}
    assert routed <= documented
    assert {pair for pair in documented - routed if not pair[1].startswith("/v1/")} == by_the_front
    await small_fleet.history.close()
    await small_fleet.journal.close()


def test_references_lead_somewhere_and_every_schema_is_used() -> None:
    used = set(refs_in(DOCUMENT))
    for reference in used:
        node: Any = DOCUMENT
        for step in reference.removeprefix("#/").split("/"):
            node = node[step]
    assert {f"#/components/schemas/{name}" for name in DOCUMENT["components"]["schemas"]} <= used


def test_operations_have_names_of_their_own_and_declare_their_path_parameters() -> None:
    names = [operation["operationId"] for _, _, operation, _ in operations()]
    assert len(names) == len(set(names))
    for _, path, operation, item in operations():
        declared = [*item.get("parameters", ()), *operation.get("parameters", ())]
        in_path = {parameter["name"] for parameter in declared if parameter["in"] == "path"}
        assert in_path == set(re.findall(r"{(\w+)}", path))
        assert operation["summary"]


@pytest.mark.parametrize(
    ("path", "schema"),
    [
        ("/api/lanes", "Fleet"),
        ("/api/lanes/qwen", "Lane"),
        ("/api/lanes/qwen/baseline", "Baseline"),
        ("/api/recycles", "Recycles"),
        ("/api/samples", "Samples"),
        ("/api/worth", "Worth"),
        ("/api/version", "Version"),
        ("/api/lanes/nobody", "Error"),
        ("/healthz", "Health"),
        ("/readyz", "Health"),
    ],
)
async def test_answers_have_the_documented_shape(small_client: aiohttp.ClientSession, path: str, schema: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    async with small_client.get(path) as answer:
        document = await answer.json()
    jsonschema.Draft202012Validator({**DOCUMENT, "$ref": f"#/components/schemas/{schema}"}).validate(document)


async def test_the_daemon_serves_it(small_client: aiohttp.ClientSession) -> None:
    async with small_client.get("/api/openapi.json") as answer:
        assert await answer.json() == DOCUMENT
