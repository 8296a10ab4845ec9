"""GET /api/openapi.json: every path of the one port, for people who write clients and for tools that make them."""

from __future__ import annotations

from typing import Any

from supervisor.api.openapi_schemas import COUNT, FLAG, SCHEMAS, TEXT, Schema, ref
from supervisor.shell.lane.wishes import WHATS

Operation = dict[str, Any]

OPEN: list[dict[str, list[str]]] = [{}]
"""The security of what needs no key."""

ASK_MEANS = {
    "probe": "Measure the decode rate now",
    "recycle": "Replace the worker",
    "drain": "Let the worker finish, and refuse new requests until resumed",
    "resume": "Take requests again",
    "start": "Start the lane",
    "stop": "Drain and stop the lane",
}

PASSED_ON = {
    "/v1/chat/completions": "Chat",
    "/v1/completions": "Complete a text",
    "/v1/embeddings": "Embed texts",
    "/v1/responses": "Respond",
}


def openapi_document(version: str) -> dict[str, Any]:
    """The OpenAPI 3.1 document. Any further /v1 path with a ``model`` is passed on, too; it cannot be listed."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "freshlane",
            "version": version,
            "description": "Keeps local LLM servers at the speed of a fresh process.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"bearer": []}, {"header": []}, {"cookie": []}, {}],
        "paths": {**_v1_paths(), **_lane_paths(), **_past_paths(), **_ops_paths()},
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "header": {"type": "apiKey", "in": "header", "name": "x-api-key"},
                "cookie": {"type": "apiKey", "in": "cookie", "name": "freshlane_session"},
            },
            "responses": {"Error": {"description": "An error of freshlane's own", "content": _json(ref("Error"))}},
        },
    }


def _v1_paths() -> dict[str, Any]:
    paths: dict[str, Any] = {
        path: {
            "post": {
                **_operation(f"post{path.replace('/', '_')}", meaning, {}, kind="application/json"),
                "requestBody": {"required": True, "content": _json({"type": "object", "required": ["model"]})},
                "description": "Passed to the lane that `model` names, byte for byte.",
            }
        }
        for path, meaning in PASSED_ON.items()
    }
    return {**paths, "/v1/models": {"get": _operation("list_models", "List lanes and aliases", {"type": "object"})}}


def _lane_paths() -> dict[str, Any]:
    lane = "/api/lanes/{lane}"
    paths: dict[str, Any] = {
        "/api/lanes": {"get": _operation("list_lanes", "All lanes and the daemon", ref("Fleet"))},
        lane: {"get": _operation("get_lane", "One lane", ref("Lane"))},
        **{f"{lane}/{what}": {"post": _ask(what)} for what in WHATS},
        f"{lane}/logs": {
            "get": {
                **_operation("get_logs", "The worker's own output", TEXT, kind="text/plain"),
                "parameters": [
                    _query("tail", COUNT, "How many of the last lines."),
                    _query("follow", FLAG, "Stay, and send what comes."),
                ],
            }
        },
        f"{lane}/baseline": {
            "get": _operation("get_baseline", "What fresh means for this lane", ref("Baseline")),
            "delete": _operation("reset_baseline", "Forget it, and learn it anew", ref("Baseline")),
        },
    }
    for path, item in paths.items():
        if path.startswith(lane):
            item["parameters"] = [{"name": "lane", "in": "path", "required": True, "schema": TEXT}]
    return paths


def _ask(what: str) -> Operation:
    operation = _operation(f"{what}_lane", ASK_MEANS[what], ref("Asked"))
    operation["responses"]["202"] = {"description": "It is asked for", "content": _json(ref("Asked"))}
    operation["responses"]["409"] = {"$ref": "#/components/responses/Error"}
    return {
        **operation,
        "parameters": [_query("wait", FLAG, "Come back when the outcome is known.")],
        "requestBody": {"required": False, "content": _json(ref("Ask"))},
    }


def _past_paths() -> dict[str, Any]:
    lane = _query("lane", TEXT, "Only of this lane.")
    return {
        "/api/recycles": {
            "get": {
                **_operation("list_recycles", "The recycle log, newest last", ref("Recycles")),
                "parameters": [lane, _query("limit", COUNT, "At most so many, the newest.")],
            }
        },
        "/api/samples": {
            "get": {
                **_operation("list_samples", "Canary runs, oldest first", ref("Samples")),
                "parameters": [lane, _query("since", TEXT, "From then on: Unix seconds or RFC 3339.")],
            }
        },
        "/api/worth": {
            "get": {
                **_operation("get_worth", "What the recycles were worth", ref("Worth")),
                "parameters": [_query("since", TEXT, "From then on: Unix seconds or RFC 3339.")],
            }
        },
        "/api/events": {
            "get": {
                **_operation("follow_events", "What happens: server-sent events", TEXT, kind="text/event-stream"),
                "description": "`state`, `sample`, `verdict`, `recycle`; `lagged` says how many were lost.",
                "parameters": [{"name": "Last-Event-ID", "in": "header", "required": False, "schema": TEXT}],
            }
        },
    }


def _ops_paths() -> dict[str, Any]:
    ready = _operation("readyz", "Whether every lane that should serve can", ref("Health"), security=OPEN)
    ready["responses"]["503"] = {"description": "Not ready", "content": _json(ref("Health"))}
    login = _operation("log_in", "A key for a cookie", {"type": "object"}, security=OPEN)
    login["requestBody"] = {"required": True, "content": _json(ref("Login"))}
    return {
        "/": {"get": _operation("page", "The page", TEXT, kind="text/html", security=OPEN)},
        "/healthz": {"get": _operation("healthz", "Whether the daemon's loop runs", ref("Health"), security=OPEN)},
        "/readyz": {"get": ready},
        "/metrics": {"get": _operation("metrics", "Prometheus", TEXT, kind="text/plain")},
        "/api/version": {"get": _operation("get_version", "What runs here", ref("Version"))},
        "/api/openapi.json": {"get": _operation("get_openapi", "This document", {"type": "object"})},
        "/api/reload": {"post": _operation("reload", "Read lanes.yaml again", ref("Reload"))},
        "/api/session": {
            "post": login,
            "delete": _operation("log_out", "Forget the cookie", {"type": "object"}, security=OPEN),
        },
    }


def _operation(
    name: str,
    summary: str,
    schema: Schema,
    *,
    kind: str = "application/json",
    security: list[dict[str, list[str]]] | None = None,
) -> Operation:
    operation: Operation = {
        "operationId": name,
        "summary": summary,
        "responses": {
            "200": {"description": "Done", "content": {kind: {"schema": schema}}},
            "default": {"$ref": "#/components/responses/Error"},
        },
    }
    return operation if security is None else {**operation, "security": security}


def _query(name: str, schema: Schema, description: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "schema": schema, "description": description}


def _json(schema: Schema) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
