"""Requests of OpenAI's chat and text completion APIs, read into plain values. Pure.

What this engine cannot do is refused by the field's name, never ignored, where ignoring it would change the answer.
Fields that only concern OpenAI's own service (`user`, `store`, `metadata` and others) are ignored.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass
from typing import Any

from engine.fields import Fields, parse_object
from engine.request import Sampling

MOST_TOKENS = 1 << 31
MOST_STOPS = 16
LONGEST_STOP = 1024
COMPLETION_TOKENS = 16
"""What OpenAI's text completions give where `max_tokens` is absent."""


@dataclass(frozen=True)
class Options:
    """What both APIs have in common. `max_tokens` None: to the end of the context."""

    model: str | None
    stream: bool
    include_usage: bool
    max_tokens: int | None
    sampling: Sampling
    stops: tuple[str, ...]
    stop_tokens: frozenset[int]
    ignore_eos: bool
    speculation: bool | None


@dataclass(frozen=True)
class ChatCall:
    """A chat to continue. `messages` have their text parts joined; `template` are extra values for the template."""

    options: Options
    messages: list[dict[str, Any]]
    tools: list[Any]
    template: dict[str, Any]


@dataclass(frozen=True)
class CompletionCall:
    """A text, or token ids, to continue."""

    options: Options
    prompt: str | tuple[int, ...]


def parse_chat(body: bytes) -> ChatCall:
    """Read a body of /v1/chat/completions. Raises RequestError, mostly FieldError."""
    fields = parse_object(body)
    if fields.boolean("logprobs") or fields.raw("top_logprobs"):
        fields.fail("logprobs", "log probabilities are not supported")
    if fields.inner("response_format").text("type") not in (None, "text"):
        fields.fail("response_format", "only the type text is supported")
    tools, choice = fields.items("tools"), fields.raw("tool_choice")
    if choice not in (None, "none", "auto"):
        fields.fail("tool_choice", "only none and auto are supported")
    cap = "max_tokens" if fields.raw("max_completion_tokens") is None else "max_completion_tokens"
    return ChatCall(
        options=_options(fields, fields.integer(cap, 1, MOST_TOKENS)),
        messages=_messages(fields),
        tools=[] if choice == "none" else tools,
        template=fields.inner("chat_template_kwargs").values,
    )


def parse_completion(body: bytes) -> CompletionCall:
    """Read a body of /v1/completions. Raises RequestError, mostly FieldError."""
    fields = parse_object(body)
    if fields.raw("logprobs") not in (None, False) or fields.raw("logprobs") == 0:
        fields.fail("logprobs", "log probabilities are not supported")
    if fields.boolean("echo"):
        fields.fail("echo", "the prompt is not sent back")
    if fields.text("suffix"):
        fields.fail("suffix", "insertion is not supported")
    fields.integer("best_of", 1, 1)
    return CompletionCall(
        options=_options(fields, fields.integer("max_tokens", 1, MOST_TOKENS) or COMPLETION_TOKENS),
        prompt=_prompt(fields),
    )


def _options(fields: Fields, max_tokens: int | None) -> Options:
    if fields.raw("n") not in (None, 1):
        fields.fail("n", "one choice a request is what there is; send the request again for another")
    ids = fields.items("stop_token_ids")
    if not all(isinstance(token, int) for token in ids):
        fields.fail("stop_token_ids", "must be a list of token ids")
    return Options(
        model=fields.text("model"),
        stream=bool(fields.boolean("stream")),
        include_usage=bool(fields.inner("stream_options").boolean("include_usage")),
        max_tokens=max_tokens,
        sampling=_sampling(fields),
        stops=_stops(fields),
        stop_tokens=frozenset(ids),
        ignore_eos=bool(fields.boolean("ignore_eos")),
        speculation=fields.inner("freshlane").boolean("speculation"),
    )


def _sampling(fields: Fields) -> Sampling:
    top_p = fields.number("top_p", 1.0, 0.0, 1.0)
    top_k = fields.integer("top_k", -1, MOST_TOKENS) or 0
    return Sampling(
        temperature=fields.number("temperature", 1.0, 0.0, 100.0),
        top_p=top_p,
        # A top_p of 0 leaves the likeliest token; the filter itself takes 0 for "off".
        top_k=1 if top_p == 0 else max(top_k, 0),
        min_p=fields.number("min_p", 0.0, 0.0, 1.0),
        seed=fields.integer("seed", -(1 << 63), (1 << 64) - 1),
        repetition_penalty=fields.number("repetition_penalty", 1.0, 0.01, 100.0),
        presence_penalty=fields.number("presence_penalty", 0.0, -2.0, 2.0),
        frequency_penalty=fields.number("frequency_penalty", 0.0, -2.0, 2.0),
        logit_bias=_logit_bias(fields.inner("logit_bias")),
    )


def _logit_bias(fields: Fields) -> dict[int, float]:
    for name in fields.values:
        if not name.isdecimal() or len(name) > 9:
            fields.fail(name, "must be a token id")
    return {int(name): fields.number(name, 0.0, -100.0, 100.0) for name in fields.values}


def _stops(fields: Fields) -> tuple[str, ...]:
    value = fields.raw("stop")
    stops = [value] if isinstance(value, str) else fields.items("stop")
    if not all(isinstance(stop, str) and stop for stop in stops):
        fields.fail("stop", "must be a string that is not empty, or a list of such")
    if len(stops) > MOST_STOPS or any(len(stop) > LONGEST_STOP for stop in stops):
        fields.fail("stop", f"at most {MOST_STOPS} strings of at most {LONGEST_STOP} characters")
    return tuple(stops)


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
