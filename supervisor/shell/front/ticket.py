"""One request at the gate: from its arrival until its answer has ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from supervisor.shell.front.refusal import RefusedError
from supervisor.shell.front.upstream import Upstream

STALLED_AFTER_S = 3.0
"""A client that has not read for so long has stopped reading."""


class InterruptedAnswerError(Exception):
    """The gate ends the answer of a ticket; ``refusal`` is what the client is told."""

    def __init__(self, refusal: RefusedError) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal


class Ticket:
    """What the gate and the proxy know of one request. Only the gate moves it; the proxy marks its progress."""

    def __init__(self, number: int, request_id: str, body_bytes: int, silent_tokens: int = 0) -> None:
        self.number = number
        self.request_id = request_id
        self.body_bytes = body_bytes
        self.silent_tokens = silent_tokens
        """Tokens that its answer may have before a byte of it is seen."""
        self.arrived_at = time.monotonic()
        self.upstream: Upstream | None = None
        """Whom it is in flight to, None while it waits."""
        self.generation: int | None = None
        """The worker that it was last sent to."""
        self.sends = 0
        self.deaths: list[int] = []
        self.avoids: int | None = None
        """A generation that broke it off, and may be dead."""
        self.was_reached = True
        """Whether the worker that it was last sent to may have seen it."""
        self.is_held = False
        self.has_token = False
        """A token-bearing event was forwarded: it cannot be sent again."""
        self.writing_since: float | None = None
        """Since when a write to the client waits."""
        self.timer: asyncio.TimerHandle | None = None
        self.waiting_since: float | None = self.arrived_at
        self.waited_s = 0.0
        """In all waits before the one it is in."""
        self._waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._interruption: RefusedError | None = None
        self._scope: asyncio.Timeout | None = None

    @property
    def is_stalled(self) -> bool:
        """Whether its client has stopped reading."""
        return self.writing_since is not None and time.monotonic() - self.writing_since > STALLED_AFTER_S

    @property
    def can_be_sent_again(self) -> bool:
        """A request is sent at most twice, and not once its client has seen a token."""
        return self.sends < 2 and not self.has_token

    async def admitted(self, within_s: float | None) -> bool:
        """Wait for up to ``within_s`` seconds, None: until it is decided; whether it may be sent.

        Raises RefusedError if the gate refuses it.
        """
        if not self._waiter.done():
            await asyncio.wait((self._waiter,), timeout=within_s)
        if not self._waiter.done():
            return False
        self._waiter.result()
        return True

    @asynccontextmanager
    async def answering(self) -> AsyncIterator[None]:
        """Around everything that the gate may interrupt. Raises InterruptedAnswerError if it did."""
        try:
            async with asyncio.timeout(None) as self._scope:
                if self._interruption:
                    self._scope.reschedule(asyncio.get_running_loop().time())
                yield
        except TimeoutError as error:
            if self._interruption is None:
                raise
            raise InterruptedAnswerError(self._interruption) from error
        finally:
            self._scope = None

    # ---- for the gate alone ----

    def admit(self, upstream: Upstream) -> None:
        """It may be sent, to this worker."""
        self.forget_timer()
        if self.waiting_since is not None:
            self.waited_s += time.monotonic() - self.waiting_since
        self.waiting_since = None
        self.upstream = upstream
        self.generation = upstream.generation
        self.was_reached = True
        self.avoids = None
        self.sends += 1
        self._waiter.set_result(None)

    def refuse(self, refusal: RefusedError) -> None:
        """It will not be sent."""
        self.forget_timer()
        if not self._waiter.done():
            self._waiter.set_exception(refusal)
            self._waiter.exception()  # a client that has left does not ask for it

    def wait_again(self, *, was_reached: bool) -> None:
        """Back into the queue; a try that did not reach its worker was none."""
        self.upstream = None
        self.waiting_since = time.monotonic()
        self.was_reached = was_reached
        self.sends -= not was_reached
        self._interruption = None
        self._waiter = asyncio.get_running_loop().create_future()

    def interrupt(self, refusal: RefusedError) -> None:
        """End its answer: at once if it is being answered, else as soon as it would be."""
        if self._interruption is None:
            self._interruption = refusal
            if self._scope:
                self._scope.reschedule(asyncio.get_running_loop().time())

    def forget_timer(self) -> None:
        """Whatever it waited for has come."""
        if self.timer:
            self.timer.cancel()
            self.timer = None
