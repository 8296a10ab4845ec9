"""Server-sent events: whole events out of any chunks, their bytes untouched."""

from __future__ import annotations

import re

_BOUNDARY = re.compile(rb"\r?\n\r?\n|\r\r")
_LONGEST_BOUNDARY = 4

MAX_EVENT_BYTES = 64 * 2**20


class EndlessEventError(Exception):
    """More bytes without an event's end than any event has."""


class EventSplitter:
    """Collects chunks and gives out whole events, each with the empty line that ends it."""

    def __init__(self) -> None:
        self.rest = b""
        """What has come of an event that has not ended."""

    def feed(self, chunk: bytes) -> list[bytes]:
        """The events that this chunk ends. Raises EndlessEventError."""
        searched = max(0, len(self.rest) - _LONGEST_BOUNDARY + 1)
        content = self.rest + chunk if self.rest else chunk
        events, start = [], 0
        for boundary in _BOUNDARY.finditer(content, searched):
            events.append(content[start : boundary.end()])
            start = boundary.end()
        self.rest = content[start:]
        if len(self.rest) > MAX_EVENT_BYTES:
            raise EndlessEventError(f"an event of more than {MAX_EVENT_BYTES} bytes")
        return events


def data_of(event: bytes) -> bytes | None:
    """The event's data, None if it carries none, as a comment does."""
    if event.startswith(b"data:") and event.find(b"data:", 5) < 0:
        return event[5:].strip()
    lines = [line[5:].removeprefix(b" ") for line in event.splitlines() if line.startswith(b"data:")]
    return b"\n".join(lines) if lines else None
