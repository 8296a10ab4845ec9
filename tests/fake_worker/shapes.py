"""The three shapes of an answer on OpenAI's wire, streamed and whole."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any

CREATED = 1_790_000_000
DONE = b"data: [DONE]\n\n"


def event(body: dict[str, Any], name: str | None = None) -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(body, ensure_ascii=False)}\n\n".encode()


class Shape(ABC):
    """One answer. Usage is None where it is not told."""

    def __init__(self, identity: str, model: str, reasoning_field: str = "reasoning_content") -> None:
        self._identity = identity
        self._model = model
        self._reasoning_field = reasoning_field

    @abstractmethod
    def opening(self) -> bytes: ...

    @abstractmethod
    def delta(self, text: str, reasoning: bool) -> bytes: ...

    @abstractmethod
    def closing(self, text: str, finish: str, usage: dict[str, Any] | None) -> bytes:
        """The events after the last token, the terminal one last; `text` is the whole answer."""

    @abstractmethod
    def whole(self, text: str, reasoning: str, finish: str, usage: dict[str, Any]) -> dict[str, Any]: ...

    @staticmethod
    def encode(body: dict[str, Any]) -> bytes:
        return json.dumps(body, ensure_ascii=False).encode()

    @staticmethod
    def usage(prompt: int, cached: int, completion: int, reasoning: int) -> dict[str, Any]:
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": cached},
            "completion_tokens_details": {"reasoning_tokens": reasoning},
        }


class Chat(Shape):
    def _chunk(self, choices: list[dict[str, Any]], **more: Any) -> bytes:
        base = {"id": f"chatcmpl-{self._identity}", "object": "chat.completion.chunk", "created": CREATED}
        return event({**base, "model": self._model, "choices": choices, **more})

    def opening(self) -> bytes:
        delta = {"role": "assistant", "content": ""}
        return self._chunk([{"index": 0, "delta": delta, "finish_reason": None}])

    def delta(self, text: str, reasoning: bool) -> bytes:
        delta = {self._reasoning_field if reasoning else "content": text}
        return self._chunk([{"index": 0, "delta": delta, "finish_reason": None}])

    def closing(self, text: str, finish: str, usage: dict[str, Any] | None) -> bytes:
        last = self._chunk([{"index": 0, "delta": {}, "finish_reason": finish}])
        return last + (self._chunk([], usage=usage) if usage else b"") + DONE

    def whole(self, text: str, reasoning: str, finish: str, usage: dict[str, Any]) -> dict[str, Any]:
        message = {"role": "assistant", "content": text, **({self._reasoning_field: reasoning} if reasoning else {})}
        return {
            "id": f"chatcmpl-{self._identity}",
            "object": "chat.completion",
            "created": CREATED,
            "model": self._model,
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": usage,
        }


class ToolCall(Chat):
    """A chat answer that calls a function with ``{"text": ...}``, in pieces as servers stream them."""

    def __init__(self, identity: str, model: str, tool: str) -> None:
        super().__init__(identity, model)
        self._call = {"index": 0, "id": f"call_{identity}", "type": "function"}
        self._tool = tool

    def _piece(self, call: dict[str, Any], **delta: Any) -> bytes:
        return self._chunk([{"index": 0, "delta": {**delta, "tool_calls": [call]}, "finish_reason": None}])

    def _arguments(self, text: str) -> bytes:
        return self._piece({"index": 0, "function": {"arguments": text}})

    def opening(self) -> bytes:
        function = {"name": self._tool, "arguments": ""}
        return self._piece({**self._call, "function": function}, role="assistant", content=None) + self._arguments(
            '{"text": "'
        )

    def delta(self, text: str, reasoning: bool) -> bytes:
        return self._arguments(json.dumps(text)[1:-1])

    def closing(self, text: str, finish: str, usage: dict[str, Any] | None) -> bytes:
        return self._arguments('"}') + super().closing(text, "tool_calls", usage)

    def whole(self, text: str, reasoning: str, finish: str, usage: dict[str, Any]) -> dict[str, Any]:
        answer = super().whole(text, reasoning, "tool_calls", usage)
        function = {"name": self._tool, "arguments": json.dumps({"text": text})}
        call = {"id": self._call["id"], "type": "function", "function": function}
        answer["choices"][0]["message"] |= {"content": None, "tool_calls": [call]}
        return answer


class Completion(Shape):
    def _body(self, choices: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        base = {"id": f"cmpl-{self._identity}", "object": "text_completion", "created": CREATED, "model": self._model}
        return {**base, "choices": choices, **more}

    def opening(self) -> bytes:
        return b""

    def delta(self, text: str, reasoning: bool) -> bytes:
        return event(self._body([{"index": 0, "text": text, "logprobs": None, "finish_reason": None}]))

    def closing(self, text: str, finish: str, usage: dict[str, Any] | None) -> bytes:
        last = event(self._body([{"index": 0, "text": "", "logprobs": None, "finish_reason": finish}]))
        return last + (event(self._body([], usage=usage)) if usage else b"") + DONE

    def whole(self, text: str, reasoning: str, finish: str, usage: dict[str, Any]) -> dict[str, Any]:
        choice = {"index": 0, "text": reasoning + text, "logprobs": None, "finish_reason": finish}
        return self._body([choice], usage=usage)


class Response(Shape):
    def __init__(self, identity: str, model: str, reasoning_field: str = "") -> None:
        super().__init__(identity, model, reasoning_field)
        self._number = -1
        self._item = {"item_id": f"msg_{identity}", "output_index": 0, "content_index": 0}

    def _named(self, name: str, **more: Any) -> bytes:
        self._number += 1
        return event({"type": name, "sequence_number": self._number, **more}, name)

    def _response(self, status: str, output: list[Any], usage: dict[str, Any] | None) -> dict[str, Any]:
        base = {"id": f"resp_{self._identity}", "object": "response", "created_at": CREATED, "model": self._model}
        settings = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "error": None}
        return {**base, "status": status, "output": output, **settings, "usage": usage}

    def _message(self, text: str, status: str) -> dict[str, Any]:
        content = [{"type": "output_text", "text": text, "annotations": []}] if text else []
        return {
            "type": "message",
            "id": f"msg_{self._identity}",
            "role": "assistant",
            "status": status,
            "content": content,
        }

    def opening(self) -> bytes:
        part = {"type": "output_text", "text": "", "annotations": []}
        return (
            self._named("response.created", response=self._response("in_progress", [], None))
            + self._named("response.output_item.added", output_index=0, item=self._message("", "in_progress"))
            + self._named("response.content_part.added", **self._item, part=part)
        )

    def delta(self, text: str, reasoning: bool) -> bytes:
        name = "response.reasoning_text.delta" if reasoning else "response.output_text.delta"
        return self._named(name, **self._item, delta=text)

    def closing(self, text: str, finish: str, usage: dict[str, Any] | None) -> bytes:
        status = {"stop": "completed", "length": "incomplete"}.get(finish, "failed")
        response = self._response(status, [self._message(text, "completed")], self._own_usage(usage))
        done = self._named("response.output_text.done", **self._item, text=text)
        return done + self._named(f"response.{status}", response=response)

    def whole(self, text: str, reasoning: str, finish: str, usage: dict[str, Any]) -> dict[str, Any]:
        status = {"stop": "completed", "length": "incomplete"}.get(finish, "failed")
        return self._response(status, [self._message(text, "completed")], self._own_usage(usage))

    @staticmethod
    def _own_usage(usage: dict[str, Any] | None) -> dict[str, Any] | None:
        return usage and {
            "input_tokens": usage["prompt_tokens"],
            "input_tokens_details": usage["prompt_tokens_details"],
            "output_tokens": usage["completion_tokens"],
            "output_tokens_details": usage["completion_tokens_details"],
            "total_tokens": usage["total_tokens"],
        }


SHAPES: dict[str, type[Shape]] = {"chat": Chat, "completions": Completion, "responses": Response}
