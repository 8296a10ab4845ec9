"""Reads a streamed answer as a clock: when text came, how much, and what the server says it was.

Only chunks that carry tokens count. A role, a finish reason, usage and comments arrive when the server likes and say
nothing of its speed. The time of a chunk is the time of the read that completed it.
"""

from __future__ import annotations

from typing import Any

from supervisor.jsontext import decode

LONGEST_EVENT = 1 << 20
TEXT_FIELDS = ("content", "reasoning", "reasoning_content", "text", "tool_calls")


class TokenStream:
    """One server-sent stream of a chat or text completion. Times are seconds of whatever clock ``feed`` is given."""

    def __init__(self) -> None:
        self.chunks = 0
        """Chunks that carried tokens."""
        self.first_chunks = 0
        """How many of them came with the first read that had any."""
        self.first_at: float | None = None
        self.last_at: float | None = None
        self.usage: dict[str, Any] = {}
        self.error = ""
        """What the server said went wrong inside the stream."""
        self.is_complete = False
        """Whether the server said that this is the end."""
        self._rest = b""

    def feed(self, data: bytes, at: float) -> None:
        """Take in what one read brought."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                self._event(line[len(b"data:") :].strip(), at)
        if len(self._rest) > LONGEST_EVENT:
            self.error, self._rest = f"an event of more than {LONGEST_EVENT} bytes", b""

    @property
    def lasted_s(self) -> float:
        """From the first token to the last."""
        return 0.0 if self.first_at is None or self.last_at is None else self.last_at - self.first_at

    @property
    def tokens(self) -> int | None:
        """Tokens of the answer as ``usage`` has them; None without it."""
        return count_of(self.usage, "completion_tokens")

    def _event(self, text: bytes, at: float) -> None:
        if text == b"[DONE]":
            self.is_complete = True
            return
        event = decode(text)
        if event is None:
            return
        if event.get("error"):
            self.error = said(event)
        if isinstance(event.get("usage"), dict):
            self.usage = event["usage"]
        choices = event.get("choices")
        for choice in choices if isinstance(choices, list) else []:
            if isinstance(choice, dict):
                self._choice(choice, at)

    def _choice(self, choice: dict[str, Any], at: float) -> None:
        if carries_tokens(choice):
            self.first_at = at if self.first_at is None else self.first_at
            self.first_chunks += at == self.first_at
            self.last_at = at
            self.chunks += 1
        finish = choice.get("finish_reason")
        if finish == "error":
            self.error = "finish_reason: error"
        self.is_complete = self.is_complete or bool(finish)


def carries_tokens(choice: dict[str, Any]) -> bool:
    """Whether a choice of a stream's event holds something the model wrote."""
    delta = choice.get("delta")
    return any(bool(part.get(name)) for part in (choice, delta) if isinstance(part, dict) for name in TEXT_FIELDS)


def count_of(usage: object, name: str) -> int | None:
    """A count in an answer's ``usage``; None if there is none that can be believed."""
    count = usage.get(name) if isinstance(usage, dict) else None
    return count if isinstance(count, int) and not isinstance(count, bool) and count >= 0 else None


def said(document: dict[str, Any] | None) -> str:
    """The message of an OpenAI-shaped error, shortened."""
    error = (document or {}).get("error")
    message = error.get("message") if isinstance(error, dict) else error
    return str(message or "an error without a message")[:200]
