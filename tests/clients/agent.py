"""A client that reads a chat stream as the agents of the Vercel AI SDK do (opencode among them).

Comments are skipped, each event must be a chunk or an error, tool calls are put together from their pieces by index,
and a stream that ends without a finish reason is no answer.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp

TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "say",
        "description": "Say a text.",
        "parameters": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    },
}


@dataclass
class ToolCall:
    """A call, as far as its pieces have come."""

    identity: str
    name: str
    arguments: str = ""


@dataclass
class Step:
    """One answer of the model."""

    text: str = ""
    calls: dict[int, ToolCall] = field(default_factory=dict)
    finish: str = ""
    usage: dict[str, Any] | None = None
    comments: int = 0

    @property
    def message(self) -> dict[str, Any]:
        """It as a message of the conversation."""
        calls = [
            {"id": call.identity, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in self.calls.values()
        ]
        return {"role": "assistant", "content": self.text, **({"tool_calls": calls} if calls else {})}


class StreamError(Exception):
    """An error event, or an end that is none."""


class Agent:
    """A conversation with a model that may call ``TOOL``, by base_url alone."""

    def __init__(self, session: aiohttp.ClientSession, base_url: str, model: str, max_tokens: int) -> None:
        self._session = session
        self._url = f"{base_url}/chat/completions"
        self._model = model
        self._max_tokens = max_tokens
        self.messages: list[dict[str, Any]] = []

    async def run(self, prompt: str) -> list[Step]:
        """Steps until the model calls no tool any more."""
        self.messages.append({"role": "user", "content": prompt})
        steps: list[Step] = []
        while not steps or steps[-1].finish == "tool_calls":
            step = Step()
            async for _ in self.stream(step):
                pass
            steps.append(step)
            self.messages.append(step.message)
            for call in step.calls.values():
                said = json.loads(call.arguments)["text"]
                self.messages.append({"role": "tool", "tool_call_id": call.identity, "content": said})
        return steps

    async def stream(self, step: Step) -> AsyncIterator[None]:
        """Fill ``step`` as the answer comes; whoever stops listening ends the request."""
        body = {
            "model": self._model,
            "messages": self.messages,
            "tools": [TOOL],
            "tool_choice": "auto",
            "max_tokens": self._max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        async with self._session.post(self._url, json=body, headers={"Accept": "text/event-stream"}) as answer:
            if answer.status != 200:
                raise StreamError(f"{answer.status}: {await answer.text()}")
            async for line in answer.content:
                text = line.decode().rstrip("\r\n")
                if text.startswith(":"):
                    step.comments += 1
                elif text.startswith("data: ") and text != "data: [DONE]":
                    _take(step, json.loads(text.removeprefix("data: ")))
                yield
        if not step.finish:
            raise StreamError("the stream ended without a finish reason")


def _take(step: Step, chunk: dict[str, Any]) -> None:
    if "error" in chunk:
        raise StreamError(str(chunk["error"]["message"]))
    step.usage = chunk.get("usage") or step.usage
    for choice in chunk["choices"]:
        delta = choice["delta"]
        step.text += delta.get("content") or ""
        for piece in delta.get("tool_calls") or []:
            function = piece["function"]
            if piece["index"] not in step.calls:
                step.calls[piece["index"]] = ToolCall(piece["id"], function["name"])
            step.calls[piece["index"]].arguments += function.get("arguments") or ""
        step.finish = choice.get("finish_reason") or step.finish
