"""Following the daemon: wake at its events, and at the latest after a while; bear a restart of the daemon."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from supervisor.cli.client import Daemon
from supervisor.cli.exits import NotReachableError, TryLaterError
from supervisor.cli.terminal import warn

RETRY_S = 1.0
PATIENCE_S = 60.0
"""How long a daemon that went away may take to come back."""


async def each_time(daemon: Daemon, kind: str) -> AsyncIterator[None]:
    """Yield at each event of ``kind``, and once after each interruption, for what may have been missed.

    Raises:
        NotReachableError: the daemon went away and did not come back within ``PATIENCE_S``.
    """
    loop = asyncio.get_running_loop()
    due: float | None = None
    while True:
        try:
            async for event in daemon.events():
                due = None
                if event.kind == kind:
                    yield
        except (NotReachableError, TryLaterError) as error:
            if due is None:
                due = loop.time() + PATIENCE_S
                warn(f"{str(error).splitlines()[0]}; trying again")
            if loop.time() > due:
                raise
        await asyncio.sleep(RETRY_S)
        if due is None or await _answers(daemon):
            due = None
            yield


async def _answers(daemon: Daemon) -> bool:
    try:
        await daemon.get("/api/version")
    except (NotReachableError, TryLaterError):
        return False
    return True
