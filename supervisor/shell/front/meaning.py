"""What an event of an answer means: whether it carries tokens, whether it is the last, what it says of usage."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from supervisor.shell.front.sse import data_of

_TERMINAL_TYPES = frozenset(
    {
        "response.completed",
        "response.failed",
        "response.incomplete",
        "message_stop",
        "speech.audio.done",
        "transcript.text.done",
    }
)
_QUIET_TYPES = frozenset({"ping", "message_start", "message_delta", "content_block_start", "content_block_stop"})
_USAGE = re.compile(rb'"(?:completion|output)_tokens"\s*:\s*(\d+)')


class Meaning(StrEnum):
    """What an event is to the one who forwards it."""

    COMMENT = "comment"
    QUIET = "quiet"
    """Data without a token: a role, a beginning, a usage."""
    TOKENS = "tokens"
    """A token, or data of an unknown kind, which may be one."""
    TERMINAL = "terminal"
    """The answer is complete."""
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class EventFacts:
    """``generated_tokens``: of the whole answer so far, by the worker's own word."""

    meaning: Meaning
    generated_tokens: int | None = None


_COMMENT = EventFacts(Meaning.COMMENT)
_DONE = EventFacts(Meaning.TERMINAL)
_UNKNOWN = EventFacts(Meaning.TOKENS)


def facts_of(event: bytes) -> EventFacts:
    """What one whole event means."""
    data = data_of(event)
    if data is None or not data:
        return _COMMENT
    if data == b"[DONE]":
        return _DONE
    try:
        content = json.loads(data.decode())
    except (ValueError, RecursionError):
        return _UNKNOWN
    if not isinstance(content, dict):
        return _UNKNOWN
    return EventFacts(_meaning(content), _usage(content))


def tokens_of_answer(body: bytes) -> int:
    """Generated tokens by the usage of a whole answer; 0 if it tells none."""
    found = _USAGE.findall(body)
    return int(found[-1]) if found else 0


def _meaning(content: dict[str, Any]) -> Meaning:
    kind = content.get("type")
    if isinstance(kind, str):
        return _meaning_of_type(kind)
    choices = content.get("choices")
    if isinstance(choices, list):
        bears = any(isinstance(choice, dict) and _bears_tokens(choice) for choice in choices)
        return Meaning.TOKENS if bears else Meaning.QUIET
    return Meaning.ERROR if content.get("error") else Meaning.TOKENS


def _meaning_of_type(kind: str) -> Meaning:
    if kind in _TERMINAL_TYPES:
        return Meaning.TERMINAL
    if kind == "error":
        return Meaning.ERROR
    is_quiet = kind in _QUIET_TYPES or (kind.startswith("response.") and not kind.endswith(".delta"))
    return Meaning.QUIET if is_quiet else Meaning.TOKENS


def _bears_tokens(choice: dict[str, Any]) -> bool:
    if choice.get("text"):
        return True
    delta = choice.get("delta")
    if not isinstance(delta, dict):
        return False
    return any(value for key, value in delta.items() if key != "role")


def _usage(content: dict[str, Any]) -> int | None:
    usage = content.get("usage")
    if usage is None and isinstance(content.get("response"), dict):
        usage = content["response"].get("usage")
    if not isinstance(usage, dict):
        return None
    count = usage.get("completion_tokens", usage.get("output_tokens"))
    return count if isinstance(count, int) and count > 0 else None
