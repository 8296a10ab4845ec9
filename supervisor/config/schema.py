"""The JSON schema of lanes.yaml, for editors; made from the models."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import models_json_schema

from supervisor.settings import LaneSettings, TopSettings

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_LANE = {"$ref": "#/$defs/LaneSettings"}


def schema() -> dict[str, Any]:
    """A JSON schema (2020-12). It knows keys, types and units; `freshlane check` knows what holds between keys."""
    _, made = models_json_schema([(TopSettings, "validation"), (LaneSettings, "validation")])
    definitions: dict[str, Any] = made["$defs"]
    for definition in definitions.values():
        _without_titles(definition)
    top = definitions.pop("TopSettings")
    top["properties"]["defaults"] = {**_LANE, "description": "Any key of a lane; a lane's own value wins."}
    top["properties"]["lanes"] = {
        "type": "object",
        "description": "The lanes, by name.",
        "minProperties": 1,
        "additionalProperties": _LANE,
        "propertyNames": {"pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"},
    }
    # Values that this machine would put in do not belong into a schema.
    top["properties"]["state_dir"].pop("default", None)
    return {"$schema": DIALECT, "title": "lanes.yaml of freshlane", **top, "required": ["lanes"], "$defs": definitions}


def _without_titles(definition: dict[str, Any]) -> None:
    definition.pop("title", None)
    for key in definition.get("properties", {}).values():
        key.pop("title", None)
