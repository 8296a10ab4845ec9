"""From a verb's options to a conversation with the daemon, on an event loop of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from supervisor.cli.client import Daemon
from supervisor.cli.target import find_target

T = TypeVar("T")


def talk(config: Path | None, url: str | None, say_to: Callable[[Daemon], Awaitable[T]]) -> T:
    """Find the daemon, run ``say_to`` with it, and hand back what that returns."""
    target = find_target(config, url)

    async def conversation() -> T:
        async with Daemon(target) as daemon:
            return await say_to(daemon)

    return asyncio.run(conversation())
