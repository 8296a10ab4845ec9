"""What a request asks for, and which text answers it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.fake_worker.knobs import Knobs
from tests.fake_worker.wire import Refused
from tests.fake_worker.words import count_tokens, tokens

BATCH = 64


@dataclass(frozen=True)
class Ask:
    """A generation: `prompt` is all of it, `question` the part that the answer follows from."""

    kind: str  # chat | completions | responses
    model: str
    prompt: str
    question: str
    max_tokens: int | None
    stop: tuple[str, ...]
    stream: bool
    include_usage: bool
    tool: str = ""
    """The function that the answer calls, its text an argument; empty where it is a plain answer."""

    @property
    def prompt_tokens(self) -> int:
        return max(1, count_tokens(self.prompt))


@dataclass(frozen=True)
class Plan:
    """The answer: `count` tokens, and why it ends there. `cut` holds their texts when a stop string shortens them."""

    question: str
    count: int
    finish: str
    cut: tuple[str, ...] | None = None

    def texts(self) -> Iterator[str]:
        if self.cut is not None:
            yield from self.cut
            return
        for start in range(0, self.count, BATCH):
            yield from tokens(self.question, start, min(BATCH, self.count - start))

    def groups(self, size: int, reasoning: int) -> Iterator[tuple[list[str], bool]]:
        """The tokens `size` at a time, each group either reasoning (the first `reasoning` tokens) or not."""
        texts = self.texts()
        for source, is_reasoning in ((itertools.islice(texts, reasoning), True), (texts, False)):
            while group := list(itertools.islice(source, size)):
                yield group, is_reasoning


def plan(ask: Ask, knobs: Knobs) -> Plan:
    count, finish = ask.max_tokens or knobs.default_tokens, "length" if ask.max_tokens else "stop"
    if 0 < knobs.answer_tokens <= count:
        count, finish = knobs.answer_tokens, "stop"
    texts = tokens(ask.question, 0, count) if ask.stop else []
    whole = "".join(texts)
    found = [place for stop in ask.stop if (place := whole.find(stop)) >= 0]
    if not found:
        return Plan(ask.question, count, finish)
    kept, left = [], min(found)
    for text in texts:
        kept.append(text[:left])
        left -= len(text)
        if left < 0:
            break
    return Plan(ask.question, len(kept), "stop", tuple(kept))


def read_ask(kind: str, body: dict[str, Any]) -> Ask:
    """Refused with 400 for what is missing or of the wrong type."""
    prompt, question = PROMPTS[kind](body)
    limit = body.get("max_completion_tokens", body.get("max_output_tokens", body.get("max_tokens")))
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise Refused(400, f"max_tokens must be a positive whole number, not {limit!r}", param="max_tokens")
    temperature = body.get("temperature", 0)
    if isinstance(temperature, bool) or not isinstance(temperature, int | float) or not 0 <= temperature <= 2:
        raise Refused(400, f"temperature must lie in 0 to 2, not {temperature!r}", param="temperature")
    stop = body.get("stop") or ()
    options = body.get("stream_options") or {}
    return Ask(
        kind=kind,
        model=str(body.get("model", "")),
        prompt=prompt,
        question=question,
        max_tokens=limit,
        stop=(stop,) if isinstance(stop, str) else tuple(stop),
        stream=body.get("stream") is True,
        include_usage=options.get("include_usage") is True,
        tool=_tool_of(body) if kind == "chat" else "",
    )


def _chat_prompt(body: dict[str, Any], key: str = "messages") -> tuple[str, str]:
    messages = body.get(key)
    if not isinstance(messages, list) or not messages:
        raise Refused(400, f"{key} must be a list of at least one message", param=key)
    if not all(isinstance(message, dict) and "role" in message for message in messages):
        raise Refused(400, f"each of {key} must be an object with a role", param=key)
    contents = [_content(message.get("content")) for message in messages]
    lines = [f"{message['role']}: {content}" for message, content in zip(messages, contents, strict=True)]
    return "\n".join(lines), contents[-1]


def _tool_of(body: dict[str, Any]) -> str:
    """The first function that is offered to a person's message; what a tool said is answered in words."""
    tools = body.get("tools")
    if not isinstance(tools, list) or not tools or body["messages"][-1]["role"] != "user":
        return ""
    return str(tools[0]["function"]["name"])


def _content(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _text_prompt(body: dict[str, Any], key: str = "prompt") -> tuple[str, str]:
    prompt = body.get(key)
    if isinstance(prompt, list) and prompt and all(isinstance(part, str) for part in prompt):
        prompt = "".join(prompt)
    if not isinstance(prompt, str):
        raise Refused(400, f"{key} must be a text", param=key)
    return prompt, prompt


def _responses_prompt(body: dict[str, Any]) -> tuple[str, str]:
    return _chat_prompt(body, "input") if isinstance(body.get("input"), list) else _text_prompt(body, "input")


PROMPTS = {"chat": _chat_prompt, "completions": _text_prompt, "responses": _responses_prompt}
