"""What the decode thread does: load the model, then take orders, decode one request after the other, and idle usefully.

Everything in DecodeLoop runs on that thread. Other threads put into `orders` and read the plain attributes.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.errors import DecodeError, EngineError, EngineStoppedError
from engine.generation import Generation
from engine.request import EngineSettings, ModelInfo

if TYPE_CHECKING:
    from engine.scheduler import Scheduler

log = logging.getLogger("engine")


@dataclass(frozen=True)
class Errand:
    """Something to do between two steps, and who waits for its result."""

    work: Callable[[Scheduler], Any]
    done: asyncio.Future[Any]


class Stop:
    """The last order that is taken."""


Order = Generation | Errand | Stop


@dataclass(frozen=True)
class Tell:
    """Whom to tell, on the decode thread: what loading does, what was loaded, what has ended and how."""

    loading: Callable[[str, float], None]
    loaded: Callable[[ModelInfo], None]
    finished: Callable[[Generation], None]
    settled: Callable[[Errand, Any, EngineError | None], None]


class DecodeLoop:
    """Serves first come first served. `since` and `last_step_at` are moments of time.monotonic."""

    def __init__(self, settings: EngineSettings, tell: Tell) -> None:
        self._settings = settings
        self._tell = tell
        self._waiting: deque[Generation] = deque()
        self.orders: queue.SimpleQueue[Order] = queue.SimpleQueue()
        self.scheduler: Scheduler | None = None
        self.serving: Generation | None = None
        self.is_stopping = False
        self.since = self.last_step_at = time.monotonic()

    def run(self) -> None:
        """Load, then serve until told to stop. Raises ModelError where the model cannot be loaded."""
        # Imported here: MLX and transformers take seconds, in which the loop already answers /health.
        from engine.scheduler import Scheduler  # noqa: PLC0415

        scheduler = self.scheduler = Scheduler.load(self._settings, self._loading)
        self._tell.loaded(scheduler.info)
        while (generation := self._next(scheduler)) is not None:
            if generation.is_cancelled:
                generation.end(generation.usage)
                self._tell.finished(generation)
            else:
                self._serve(scheduler, generation)

    def left_over(self) -> Iterator[Order]:
        """What nobody will serve; for when the thread has ended."""
        while self._waiting:
            yield self._waiting.popleft()
        while not self.orders.empty():
            yield self.orders.get_nowait()

    def _loading(self, doing: str, fraction: float) -> None:
        self.last_step_at = time.monotonic()
        self._tell.loading(doing, fraction)

    def _next(self, scheduler: Scheduler) -> Generation | None:
        """The next request; meanwhile errands, and what is worth doing while nobody waits."""
        while not self.is_stopping:
            self._take_orders(scheduler, block=not self._waiting and not scheduler.work_idly())
            if self._waiting:
                return self._waiting.popleft()
        return None

    def _take_orders(self, scheduler: Scheduler, *, block: bool) -> None:
        try:
            while True:
                order = self.orders.get(block=block)
                block = False
                match order:
                    case Generation():
                        self._waiting.append(order)
                    case Errand():
                        self._run_errand(scheduler, order)
                    case Stop():
                        self.is_stopping = True
        except queue.Empty:
            return

    def _run_errand(self, scheduler: Scheduler, errand: Errand) -> None:
        result: Any = None
        error: EngineError | None = None
        try:
            result = errand.work(scheduler)
        except EngineError as raised:
            error = raised
        except Exception as raised:
            log.exception("an errand met a fault")
            error = EngineError(f"this did not work: {raised!r}")
        self._tell.settled(errand, result, error)

    def _serve(self, scheduler: Scheduler, generation: Generation) -> None:
        self.since = self.last_step_at = time.monotonic()
        self.serving = generation
        error: EngineError | None = None
        try:
            error = self._decode(scheduler, generation)
        except EngineError as raised:
            error = raised
        except (RuntimeError, ValueError, MemoryError) as raised:  # what MLX raises
            error = DecodeError(f"decoding failed: {raised}")
        except Exception as raised:
            log.exception("request %s met a fault", generation.request.id)
            error = DecodeError(f"decoding failed: {raised!r}")
        finally:
            self.serving = None
            self.since = time.monotonic()
            generation.end(scheduler.usage, error)
            self._tell.finished(generation)

    def _decode(self, scheduler: Scheduler, generation: Generation) -> EngineError | None:
        """Decode to the end, or until it is cancelled or cut off, which is the error that comes back."""
        steps = scheduler.decode(generation.request)
        try:
            for batch in steps:
                self.last_step_at = time.monotonic()
                if batch.tokens:
                    generation.deliver(batch, scheduler.usage)
                self._take_orders(scheduler, block=False)
                if generation.is_cancelled:
                    return None
                if self.is_stopping and batch.finish is None:
                    return EngineStoppedError()
        finally:
            steps.close()
        return None
