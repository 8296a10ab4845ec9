"""Waiting for facts. The one place in the tests that sleeps."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any

STEP_S = 0.01


async def wait_until(
    fact: Callable[[], Any | Awaitable[Any]], deadline_s: float = 10.0, what: str = "the expected fact"
) -> Any:
    """Asks `fact` every 10 ms until it is true, and gives what it said; AssertionError after `deadline_s` seconds.

    The fact may be a plain or an async function. An OSError of it (a port not open yet) counts as not yet true.
    """
    end = time.monotonic() + deadline_s
    while True:
        answer, trouble = await _ask(fact, max(STEP_S, end - time.monotonic()))
        if answer:
            return answer
        if time.monotonic() >= end:
            raise AssertionError(f"waited {deadline_s:g} s in vain for {what}; last answer: {trouble or answer!r}")
        await asyncio.sleep(STEP_S)


async def _ask(fact: Callable[[], Any | Awaitable[Any]], patience_s: float) -> tuple[Any, Exception | None]:
    try:
        answer = fact()
        if inspect.isawaitable(answer):
            answer = await asyncio.wait_for(answer, patience_s)
    except OSError as trouble:  # also the TimeoutError of wait_for
        return None, trouble
    return answer, None
