"""What a chat says of its answer's form: `response_format`, and a `tool_choice` that forces a call. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from engine.fields import Fields

ANY_OBJECT = {"type": "object"}
NAMED_PARTS = ("properties", "patternProperties", "$defs", "definitions")
LISTED_PARTS = ("anyOf", "allOf", "oneOf", "prefixItems")
SINGLE_PARTS = ("items", "additionalProperties", "not", "if", "then", "else", "contains")
SCHEMA = "response_format.json_schema.schema"


def schema_of(fields: Fields) -> Any:
    """The JSON schema that the answer has to follow; None for plain text. Raises FieldError."""
    wanted = fields.inner("response_format")
    match wanted.text("type"):
        case None | "text":
            return None
        case "json_object":
            return ANY_OBJECT
        case "json_schema":
            named = wanted.inner("json_schema")
            named.boolean("strict")  # a schema is always kept
            if named.raw("schema") is None:
                named.fail("schema", "is missing; send the JSON schema that the answer has to follow")
            if not isinstance(named.raw("schema"), dict):
                named.fail("schema", "must be a JSON schema, which is an object")
            return named.raw("schema")
    return wanted.fail("type", "must be text, json_object or json_schema")


def forced_functions(fields: Fields) -> dict[int, dict[str, Any]]:
    """The functions of which one must be called, by their places in `tools`; none where that is the model's choice."""
    choice = fields.raw("tool_choice")
    if choice in (None, "none", "auto"):
        return {}
    functions = {index: _function(tool, f"tools[{index}].") for index, tool in enumerate(fields.items("tools"))}
    if not functions:
        fields.fail("tool_choice", "forces a call, and there are no tools; send tools")
    if choice == "required":
        return functions
    if not isinstance(choice, dict) or choice.get("type") != "function":
        fields.fail("tool_choice", 'must be none, auto, required or {"type": "function", "function": {"name": ...}}')
    name = fields.inner("tool_choice").inner("function").text("name")
    named = {index: function for index, function in functions.items() if function["name"] == name}
    if not named:
        fields.fail("tool_choice", f"no function in tools is called {name!r}")
    return named


def _function(tool: Any, place: str) -> dict[str, Any]:
    function = Fields(tool if isinstance(tool, dict) else {}, place).inner("function")
    if not function.text("name"):
        function.fail("name", "is missing")
    return {"name": function.text("name"), "parameters": {**ANY_OBJECT, **function.inner("parameters").values}}


def place_of(schema: Any, problem_of: Callable[[Any], str]) -> str:
    """Where in a schema its problem lies, as `.properties.age`: the innermost part that has it by itself."""
    problem = problem_of(schema)
    definitions = {name: schema[name] for name in ("$defs", "definitions") if name in schema}
    for name, part in _parts(schema):
        if problem_of({**definitions, **part}) == problem:
            return name + place_of(part, problem_of)
    return ""


def _parts(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    named = [(key, schema[key]) for key in NAMED_PARTS if isinstance(schema.get(key), dict)]
    listed = [(key, schema[key]) for key in LISTED_PARTS if isinstance(schema.get(key), list)]
    parts = [(f".{key}.{name}", part) for key, inner in named for name, part in inner.items()]
    parts += [(f".{key}[{index}]", part) for key, inner in listed for index, part in enumerate(inner)]
    parts += [(f".{key}", schema[key]) for key in SINGLE_PARTS if key in schema]
    return ((name, part) for name, part in parts if isinstance(part, dict))
