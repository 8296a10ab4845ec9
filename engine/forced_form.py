"""The grammar of a chat's answer: a JSON schema, or one call of a tool between the model's own markers."""

from __future__ import annotations

import json
from typing import Any

from engine.answer_form import SCHEMA, place_of
from engine.errors import FieldError
from engine.grammar import Grammar, schema_grammar, schema_problem
from engine.openai_wire import ChatCall
from engine.reasoning import is_reasoning
from engine.request import ModelInfo

JSON_CALLS = "json_tools"
"""mlx-lm's parser of calls that are written {"name": ..., "arguments": ...}; others are not JSON."""


def grammar_of(call: ChatCall, prompt: tuple[int, ...], info: ModelInfo) -> Grammar | None:
    """What the answer has to follow; None for nothing. Raises FieldError naming the place of a bad schema."""
    if call.schema is not None:
        return _compiled(schema_grammar(call.schema), {SCHEMA: call.schema}, "response_format", prompt, info)
    if not call.forced:
        return None
    tokenizer = info.tokenizer
    if not tokenizer.has_tool_calling or not tokenizer.tool_parser.__module__.endswith(JSON_CALLS):
        raise FieldError("tool_choice", "this model's calls cannot be forced, they are not JSON; use auto")
    schemas = {f"tools[{index}].function.parameters": function["parameters"] for index, function in call.forced.items()}
    return _compiled(_calls(list(call.forced.values()), info), schemas, "tool_choice", prompt, info)


def _compiled(text: str, schemas: dict[str, Any], field: str, prompt: tuple[int, ...], info: ModelInfo) -> Grammar:
    for place, schema in schemas.items():
        if problem := schema_problem(schema):
            raise FieldError(place + place_of(schema, schema_problem), problem)
    after = tuple(info.tokenizer.think_end_tokens) if is_reasoning(info.tokenizer, prompt) else ()
    return Grammar(text, info.vocabulary, after, field)


def _calls(functions: list[dict[str, Any]], info: ModelInfo) -> str:
    """One call of one of the functions, as the chat templates of such models show it."""
    start, end = (_marker(marker, info) for marker in (info.tokenizer.tool_call_start, info.tokenizer.tool_call_end))
    rules = [f"start: {start} NEWLINE (" + " | ".join(f"call_{n}" for n in range(len(functions))) + f") NEWLINE {end}"]
    rules.append('NEWLINE: "\\n"')
    for number, function in enumerate(functions):
        head = f'{{"name": {json.dumps(function["name"], ensure_ascii=False)}, "arguments": '
        rules.append(f'call_{number}: {_literal(head)} arguments_{number} "}}"')
        rules.append(f"arguments_{number}: %json {json.dumps(function['parameters'])}")
    return "\n".join(rules)


def _marker(marker: str, info: ModelInfo) -> str:
    token = info.tokenizer.get_vocab().get(marker)
    is_special = token is not None and info.vocabulary.is_special(token)
    return f"<[{token}]>" if is_special else _literal(marker)


def _literal(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
