"""One probe at a time on a lane: a pulse and a canary never overlap, whoever was first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


class ProbeSeat:
    """A canary waits until a pulse has ended. A pulse is not sent beside a canary, which tells more than it does."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._lock = asyncio.Lock()
        self._generation = 0
        self._silent_since: float | None = None

    @asynccontextmanager
    async def taken(self, generation: int) -> AsyncIterator[None]:
        """Wait for the seat, and have it for a probe of this worker for the length of the block."""
        async with self._lock:
            self._generation = generation
            self._silent_since = self._now()
            try:
                yield
            finally:
                self._silent_since = None

    def moved(self) -> None:
        """The probe that is out has been sent something."""
        if self._silent_since is not None:
            self._silent_since = self._now()

    def silent_s(self, generation: int) -> float | None:
        """For how long the probe that is out has heard nothing; None where none is, 0 for another worker's."""
        if self._silent_since is None:
            return None
        return self._now() - self._silent_since if self._generation == generation else 0.0
