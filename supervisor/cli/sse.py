"""Server-sent events out of a byte stream."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its kind and its text."""

    kind: str
    data: str

    def document(self) -> dict[str, Any]:
        """The JSON object in ``data``; empty if it is none."""
        try:
            document = json.loads(self.data)
        except ValueError:
            return {}
        return document if isinstance(document, dict) else {}


async def parse_events(lines: AsyncIterable[bytes]) -> AsyncIterator[Event]:
    """Whole events as they end; comments and a torn last event are dropped."""
    kind, data = "message", list[str]()
    async for raw in lines:
        line = raw.decode(errors="replace").rstrip("\r\n")
        if not line:
            if data:
                yield Event(kind, "\n".join(data))
            kind, data = "message", []
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            kind = value
        elif name == "data":
            data.append(value)
