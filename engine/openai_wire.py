"""Requests of OpenAI's chat and text completion APIs, read into plain values. Pure.

What this engine cannot do is refused by the field's name, never ignored, where ignoring it would change the answer.
Fields that only concern OpenAI's own service (`user`, `store`, `metadata` and others) are ignored.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from typing import Any

from engine.answer_form import forced_functions, schema_of
from engine.fields import Fields, parse_object
from engine.options import MOST_TOKENS, Options, options_of, refuse_unsupported

MOST_CHAT_LOGPROBS = 20
MOST_COMPLETION_LOGPROBS = 5
COMPLETION_TOKENS = 16
"""What OpenAI's text completions give where `max_tokens` is absent."""


@dataclass(frozen=True)
class ChatCall:
    """A chat to continue. `messages` have their text parts joined; `template` are extra values for the template.

    One of the functions `forced`, by their places in `tools`, must be called. The answer follows the JSON `schema`.
    """

    options: Options
    messages: list[dict[str, Any]]
    tools: list[Any]
    template: dict[str, Any]
    forced: dict[int, dict[str, Any]] = field(default_factory=dict)
    schema: Any = None


@dataclass(frozen=True)
class CompletionCall:
    """A text, or token ids, to continue."""

    options: Options
    prompt: str | tuple[int, ...]


def parse_chat(body: bytes) -> ChatCall:
    """Read a body of /v1/chat/completions. Raises RequestError, mostly FieldError."""
    fields = parse_object(body)
    refuse_unsupported(fields)
    cap = "max_tokens" if fields.raw("max_completion_tokens") is None else "max_completion_tokens"
    forced, schema = forced_functions(fields), schema_of(fields)
    has_tools = bool(fields.items("tools")) and fields.raw("tool_choice") != "none"
    if schema is not None and has_tools:
        fields.fail("response_format", "cannot be kept where tools may be called; set tool_choice to none")
    options = options_of(fields, fields.integer(cap, 1, MOST_TOKENS), _chat_logprobs(fields))
    if options.ignore_eos and (forced or schema is not None):
        fields.fail("ignore_eos", "an answer of a given form has an end; leave ignore_eos out")
    return ChatCall(
        options=options,
        messages=_messages(fields),
        tools=fields.items("tools") if has_tools else [],
        template=fields.inner("chat_template_kwargs").values,
        forced=forced,
        schema=schema,
    )


def parse_completion(body: bytes) -> CompletionCall:
    """Read a body of /v1/completions. Raises RequestError, mostly FieldError."""
    fields = parse_object(body)
    refuse_unsupported(fields)
    if schema_of(fields) is not None:
        fields.fail("response_format", "is a matter of chats; use /v1/chat/completions")
    if fields.boolean("echo"):
        fields.fail("echo", "the prompt is not sent back")
    if fields.text("suffix"):
        fields.fail("suffix", "insertion is not supported")
    options = options_of(
        fields,
        fields.integer("max_tokens", 1, MOST_TOKENS) or COMPLETION_TOKENS,
        None if fields.raw("logprobs") is False else fields.integer("logprobs", 0, MOST_COMPLETION_LOGPROBS),
    )
    if fields.raw("best_of") not in (None, options.choices):
        fields.fail("best_of", "no more answers are made than are given; leave it out or set it to n")
    return CompletionCall(options, _prompt(fields))


def _chat_logprobs(fields: Fields) -> int | None:
    top = fields.integer("top_logprobs", 0, MOST_CHAT_LOGPROBS)
    if fields.boolean("logprobs"):
        return top or 0
    if top:
        fields.fail("top_logprobs", "needs logprobs; set logprobs to true")
    return None


def _messages(fields: Fields) -> list[dict[str, Any]]:
    messages = fields.items("messages")
    if not messages:
        fields.fail("messages", "send at least one message")
    return [_message(message, f"messages[{index}]") for index, message in enumerate(messages)]


def _message(message: Any, name: str) -> dict[str, Any]:
    if not isinstance(message, dict):
        Fields({}).fail(name, "must be an object")
    fields = Fields(message, f"{name}.")
    role = fields.text("role")
    if not role:
        fields.fail("role", "is missing")
    content = fields.raw("content")
    if isinstance(content, list):
        content = "".join(_part(part, f"{name}.content[{index}]") for index, part in enumerate(content))
    elif content is None and not fields.items("tool_calls"):
        fields.fail("content", "is missing")
    elif content is not None and not isinstance(content, str):
        fields.fail("content", "must be a string or a list of parts")
    # `developer` is OpenAI's later word for what every chat template knows as `system`.
    read = {**message, "role": "system" if role == "developer" else role, "content": content or ""}
    if calls := fields.items("tool_calls"):
        read["tool_calls"] = [_tool_call(call, f"{name}.tool_calls[{index}]") for index, call in enumerate(calls)]
    return read


def _tool_call(call: Any, name: str) -> dict[str, Any]:
    """Chat templates want the arguments as an object; OpenAI's clients send them as JSON text."""
    if not isinstance(call, dict):
        Fields({}).fail(name, "must be an object")
    function = Fields(call, f"{name}.").inner("function")
    arguments = function.raw("arguments")
    with contextlib.suppress(ValueError, TypeError, RecursionError):
        arguments = json.loads(arguments)
    return {**call, "function": {**function.values, "arguments": arguments}}


def _part(part: Any, name: str) -> str:
    if not isinstance(part, dict):
        Fields({}).fail(name, "must be an object")
    fields = Fields(part, f"{name}.")
    if fields.text("type") != "text":
        fields.fail("type", "only text parts are supported")
    text = fields.text("text")
    if text is None:
        fields.fail("text", "is missing")
    return text


def _prompt(fields: Fields) -> str | tuple[int, ...]:
    prompt = fields.raw("prompt")
    if isinstance(prompt, list) and len(prompt) == 1 and isinstance(prompt[0], str | list):
        prompt = prompt[0]
    if isinstance(prompt, str):
        return prompt
    if not isinstance(prompt, list) or not all(type(token) is int for token in prompt):
        fields.fail("prompt", "must be one string or one list of token ids; several prompts want several requests")
    return tuple(prompt)
