"""Waiting for a fact that may never come: the soak goes on either way."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

LOOK_EVERY_S = 0.05


async def becomes(fact: Callable[[], Awaitable[bool]], within_s: float) -> bool:
    """Whether it came true in time."""
    end = time.monotonic() + within_s
    while not await fact():
        if time.monotonic() > end:
            return False
        await asyncio.sleep(LOOK_EVERY_S)
    return True
