"""What a request to /api says: query parameters and small JSON bodies, refused by name when they make no sense."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from aiohttp import web

from supervisor.shell.front.refusal import RefusedError

TRUE = frozenset({"true", "1", "yes", ""})
FALSE = frozenset({"false", "0", "no"})
LONGEST_BODY_BYTES = 64 * 1024
BODY_TIMEOUT_S = 10.0
LONGEST_REASON = 500


class BadParameterError(RefusedError):
    """A client's fault: the parameter ``name`` of the query or the body cannot be used."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(400, "invalid_parameter", f"{name}: {problem}", param=name)


@dataclass(frozen=True, slots=True)
class Ask:
    """The body of a wish. ``now``: in-flight answers may be cut."""

    reason: str = ""
    now: bool = False


def flag(request: web.Request, name: str) -> bool:
    """``?name``, ``?name=true`` and the like; False when it is not there. Raises BadParameterError."""
    text = request.query.get(name)
    if text is None or text.lower() in FALSE:
        return False
    if text.lower() in TRUE:
        return True
    raise BadParameterError(name, f"{text!r} is neither true nor false")


def whole_number(request: web.Request, name: str, default: int, *, most: int) -> int:
    """A number from 0 to ``most``. Raises BadParameterError."""
    text = request.query.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit()) or len(text) > len(str(most)) or int(text) > most:
        raise BadParameterError(name, f"{text!r} is not a whole number from 0 to {most}")
    return int(text)


def moment(request: web.Request, name: str) -> float:
    """A moment as Unix seconds, given as such or in RFC 3339; 0 when it is not there. Raises BadParameterError."""
    text = request.query.get(name)
    if text is None:
        return 0.0
    try:
        seconds = float(text)
    except ValueError:
        return _from_rfc3339(text, name)
    if not math.isfinite(seconds):
        raise BadParameterError(name, f"{text!r} is not a moment")
    return seconds


async def ask_of(request: web.Request) -> Ask:
    """The body of a wish; an empty one asks plainly. Raises BadParameterError."""
    raw = await _small_body(request)
    if not raw.strip():
        return Ask()
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        raise BadParameterError("body", 'not JSON; send nothing or {"reason": "...", "now": false}') from None
    if not isinstance(document, dict):
        raise BadParameterError("body", 'not an object such as {"reason": "..."}')
    return _ask_from(document)


def _ask_from(document: dict[str, Any]) -> Ask:
    for name in document:
        if name not in ("reason", "now"):
            raise BadParameterError(name, "not known here; a body may have reason and now")
    reason, now = document.get("reason"), document.get("now", False)
    if reason is None:
        reason = ""
    if not isinstance(reason, str) or len(reason) > LONGEST_REASON:
        raise BadParameterError("reason", f"not a text of at most {LONGEST_REASON} characters")
    if not isinstance(now, bool):
        raise BadParameterError("now", "neither true nor false")
    return Ask(reason, now)


async def _small_body(request: web.Request) -> bytes:
    content = bytearray()
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            async for chunk in request.content.iter_any():
                content += chunk
                if len(content) > LONGEST_BODY_BYTES:
                    raise BadParameterError("body", f"longer than {LONGEST_BODY_BYTES} bytes")
    except TimeoutError:
        raise RefusedError(408, "body_timeout", f"The body was not here within {BODY_TIMEOUT_S:.0f} s.") from None
    return bytes(content)


def _from_rfc3339(text: str, name: str) -> float:
    problem = f"{text!r} is neither Unix seconds nor a time with offset such as 2026-01-05T14:03:00+01:00"
    try:
        # A plus sign that was not escaped arrives as a space.
        moment_of = datetime.fromisoformat(text.replace(" ", "+"))
    except ValueError:
        raise BadParameterError(name, problem) from None
    if moment_of.tzinfo is None:
        raise BadParameterError(name, problem)
    return moment_of.timestamp()
