"""Tool calls in a model's text: found between their markers as the text streams. Pure; the parser is given."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from engine.stops import StopFinder


@dataclass(frozen=True)
class ToolCall:
    """One call; `arguments` is JSON text, as OpenAI sends it."""

    name: str
    arguments: str


Parse = Callable[[str], Any]
"""Text between the markers into {name, arguments} or a list of such; raises ValueError where it is neither."""


class ToolCallFinder:
    """Takes text piece by piece and parts it into what is said and what is called.

    What stands between the markers and is no call after all, or is cut off, comes back as text: nothing is lost.
    """

    def __init__(self, start: str, end: str, parse: Parse) -> None:
        """With an empty `end`, a call goes on to the end of the text."""
        self._start, self._end, self._parse = start, end, parse
        self._finder = StopFinder([start])
        self._is_inside = False
        self._inside = ""

    def feed(self, piece: str) -> tuple[str, list[ToolCall]]:
        """The text that may be shown now, and the calls that are whole."""
        text, calls = "", list[ToolCall]()
        while True:
            taken = self._finder.feed(piece)
            if self._is_inside:
                self._inside += taken
            else:
                text += taken
            if not self._finder.is_found:
                return text, calls
            piece = self._finder.rest
            if self._is_inside:
                said, called = self._close(self._end)
                text, calls = text + said, calls + called
            self._is_inside = not self._is_inside
            self._finder = StopFinder([self._end if self._is_inside else self._start])

    def flush(self) -> tuple[str, list[ToolCall]]:
        """No more text comes."""
        rest = self._finder.flush()
        if not self._is_inside:
            return rest, []
        self._inside += rest
        return self._close("")

    def _close(self, end: str) -> tuple[str, list[ToolCall]]:
        inside, self._inside = self._inside, ""
        try:
            parsed = self._parse(inside)
            return "", [_call(one) for one in (parsed if isinstance(parsed, list) else [parsed])]
        except (ValueError, KeyError, TypeError, AttributeError, IndexError):  # what parsers make of odd text
            return self._start + inside + end, []


def _call(parsed: dict[str, Any]) -> ToolCall:
    return ToolCall(str(parsed["name"]), json.dumps(parsed["arguments"], ensure_ascii=False))
