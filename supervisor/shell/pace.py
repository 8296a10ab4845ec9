"""A steady pace for what has to be looked at again and again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator


async def every(interval_s: float) -> AsyncIterator[None]:
    """Yield at once, and then after each ``interval_s`` seconds; whoever iterates owns the deadline."""
    while True:
        yield
        await asyncio.sleep(interval_s)
