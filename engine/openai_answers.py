"""Answers of OpenAI's chat and text completion APIs: chunks, whole answers, usage and errors. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from engine.request import Usage
from engine.tool_calls import ToolCall

Kind = Literal["chat", "text"]
Reason = Literal["stop", "length", "tool_calls"]
Logprobs = dict[str, Any] | None


@dataclass(frozen=True)
class Answer:
    """What all chunks of one answer share. `created` is in seconds since the epoch."""

    kind: Kind
    id: str
    created: int
    model: str

    def first_chunk(self, index: int) -> dict[str, Any] | None:
        """The role that a chat's choice begins with."""
        if self.kind == "text":
            return None
        return self._chunk({"index": index, "delta": {"role": "assistant", "content": ""}, "finish_reason": None})

    def chunk(
        self, index: int, text: str, finish: Reason | None, *, reasoning: str = "", logprobs: Logprobs = None
    ) -> dict[str, Any]:
        """A piece of a choice's text, the end, or both; with the log-probabilities of some tokens."""
        if self.kind == "text":
            return self._chunk({"index": index, "text": text, "finish_reason": finish, "logprobs": logprobs})
        delta = {"content": text} if text else {}
        if reasoning:
            delta["reasoning_content"] = reasoning
        scored = {} if logprobs is None else {"logprobs": logprobs}
        return self._chunk({"index": index, "delta": delta, "finish_reason": finish, **scored})

    def calls_chunk(self, index: int, calls: tuple[ToolCall, ...], first: int) -> dict[str, Any]:
        """Whole tool calls of a chat's choice, of which `first` came before."""
        made = [{"index": number, **self._call(call, index, number)} for number, call in enumerate(calls, first)]
        return self._chunk({"index": index, "delta": {"tool_calls": made}, "finish_reason": None})

    def usage_chunk(self, usage: Usage) -> dict[str, Any]:
        """What `stream_options.include_usage` asks for, after the last choice."""
        return {**self._chunk(None), "usage": usage_object(usage), "freshlane": speculation_object(usage)}

    def choice(
        self,
        index: int,
        text: str,
        finish: Reason,
        calls: tuple[ToolCall, ...] = (),
        *,
        reasoning: str = "",
        logprobs: Logprobs = None,
    ) -> dict[str, Any]:
        """One choice of an answer that does not stream."""
        if self.kind == "text":
            return {"index": index, "text": text, "finish_reason": finish, "logprobs": logprobs}
        message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
        if reasoning:
            message["reasoning_content"] = reasoning
        if calls:
            made = [self._call(call, index, number) for number, call in enumerate(calls)]
            message |= {"content": text or None, "tool_calls": made}
        return {"index": index, "message": message, "finish_reason": finish, "logprobs": logprobs}

    def whole(self, choices: list[dict[str, Any]], usage: Usage) -> dict[str, Any]:
        """The answer to a request that does not stream."""
        return {
            **self._head("chat.completion"),
            "choices": choices,
            "usage": usage_object(usage),
            "freshlane": speculation_object(usage),
        }

    def _call(self, call: ToolCall, index: int, number: int) -> dict[str, Any]:
        function = {"name": call.name, "arguments": call.arguments}
        return {"id": f"call_{self.id}_{index}_{number}", "type": "function", "function": function}

    def _chunk(self, choice: dict[str, Any] | None) -> dict[str, Any]:
        return {**self._head("chat.completion.chunk"), "choices": [choice] if choice else []}

    def _head(self, chat_object: str) -> dict[str, Any]:
        name = chat_object if self.kind == "chat" else "text_completion"
        return {"id": self.id, "object": name, "created": self.created, "model": self.model}


def usage_object(usage: Usage) -> dict[str, Any]:
    """Token counts in OpenAI's shape; accepted and rejected predictions are drafted tokens."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {
            "accepted_prediction_tokens": usage.accepted,
            "rejected_prediction_tokens": usage.drafted - usage.accepted,
        },
    }


def speculation_object(usage: Usage) -> dict[str, Any]:
    """What OpenAI's usage has no place for: the decode thread's own times, and what speculation did."""
    decoded = usage.completion_tokens
    return {
        "prefill_ms": round(usage.prefill_s * 1000, 1),
        "decode_ms": round(usage.decode_s * 1000, 1),
        "decode_tok_s": round(decoded / usage.decode_s, 2) if usage.decode_s > 0 else None,
        "cycles": usage.cycles,
        "drafted": usage.drafted,
        "accepted": usage.accepted,
    }


def error_object(message: str, kind: str, *, param: str | None = None, code: str | None = None) -> dict[str, Any]:
    """An error in OpenAI's shape."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def models_object(model: str, created: int, context_length: int | None) -> dict[str, Any]:
    """The one model that is served."""
    entry = {"id": model, "object": "model", "created": created, "owned_by": "freshlane"}
    return {"object": "list", "data": [{**entry, "context_length": context_length}]}
