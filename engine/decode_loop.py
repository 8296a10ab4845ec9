"""What the decode thread does: load the model, then take orders, decode what is asked for, and idle usefully.

Everything in DecodeLoop runs on that thread. Other threads put into `orders` and read the plain attributes.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.errors import DecodeError, EngineError, EngineStoppedError
from engine.generation import Generation
from engine.job import Job
from engine.request import EngineSettings, ModelInfo

if TYPE_CHECKING:
    from engine.batch import Batch
    from engine.scheduler import Scheduler

log = logging.getLogger("engine")


@dataclass(frozen=True)
class Errand:
    """Something to do between two steps, and who waits for its result.

    Work that takes long is a generator: it is done one slice between two steps, and returns the result at its end.
    """

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
    """One request is decoded alone, with drafts; several together. `since` and `last_step_at` are of time.monotonic."""

    def __init__(self, settings: EngineSettings, tell: Tell) -> None:
        self._settings = settings
        self._tell = tell
        self._waiting: deque[Job] = deque()
        self._sliced: deque[tuple[Errand, Generator[None, None, Any]]] = deque()
        self.orders: queue.SimpleQueue[Order] = queue.SimpleQueue()
        self.scheduler: Scheduler | None = None
        self.serving = 0
        """How many requests are being decoded."""
        self.is_stopping = False
        self.since = self.last_step_at = time.monotonic()

    def run(self) -> None:
        """Load, then serve until told to stop. Raises ModelError where the model cannot be loaded."""
        # Imported here: MLX and transformers take seconds, in which the loop already answers /health.
        from engine.scheduler import Scheduler  # noqa: PLC0415

        scheduler = self.scheduler = Scheduler.load(self._settings, self._loading)
        self._tell.loaded(scheduler.info)
        while not self.is_stopping:
            is_busy = self._waiting or self._sliced
            self._take_orders(scheduler, block=not is_busy and not scheduler.work_idly())
            if len(self._waiting) > 1 and scheduler.can_batch:
                self._serve_together(scheduler, scheduler.batch())
            elif self._waiting:
                self._serve_alone(scheduler, self._waiting.popleft())

    def left_over(self) -> Iterator[Order]:
        """What nobody will serve; for when the thread has ended."""
        while self._waiting:
            yield self._waiting.popleft().generation
        while self._sliced:
            yield self._sliced.popleft()[0]
        while not self.orders.empty():
            yield self.orders.get_nowait()

    def _loading(self, doing: str, fraction: float) -> None:
        self.last_step_at = time.monotonic()
        self._tell.loading(doing, fraction)

    # ---- orders ----

    def _take_orders(self, scheduler: Scheduler, *, block: bool) -> None:
        try:
            while True:
                order = self.orders.get(block=block)
                block = False
                match order:
                    case Generation():
                        self._waiting.append(Job(order))
                    case Errand():
                        self._run_errand(scheduler, order)
                    case Stop():
                        self.is_stopping = True
        except queue.Empty:
            self._do_slice()

    def _run_errand(self, scheduler: Scheduler, errand: Errand) -> None:
        self._settle(errand, lambda: errand.work(scheduler))

    def _do_slice(self) -> None:
        """A little of what was begun."""
        if self._sliced:
            errand, slices = self._sliced.popleft()
            self._settle(errand, lambda: _next_slice(slices))

    def _settle(self, errand: Errand, work: Callable[[], Any]) -> None:
        result: Any = None
        error: EngineError | None = None
        try:
            result = work()
            if isinstance(result, Generator):
                self._sliced.append((errand, result))
                return
        except EngineError as raised:
            error = raised
        except Exception as raised:
            log.exception("an errand met a fault")
            error = EngineError(f"this did not work: {raised!r}")
        self._tell.settled(errand, result, error)

    # ---- alone ----

    def _serve_alone(self, scheduler: Scheduler, job: Job) -> None:
        self._begin(1)
        error: EngineError | None = None
        try:
            if not job.generation.is_cancelled:
                error = self._decode_alone(scheduler, job)
        except EngineError as raised:
            error = raised
        except Exception as raised:  # noqa: BLE001 - the fault of one request must not end the thread
            error = _decode_error(raised)
        finally:
            self._begin(0)
        if error is None and job in self._waiting:
            return  # it goes on in company
        self._end(job, error)

    def _decode_alone(self, scheduler: Scheduler, job: Job) -> EngineError | None:
        """Decode until it ends, is cancelled, gets company (it then waits in front), or is cut off: then an error."""
        steps = scheduler.decode(job.request, is_begun=job.is_begun)
        try:
            for batch in steps:
                self.last_step_at = time.monotonic()
                job.deliver(batch, scheduler.usage)
                if batch.finish:
                    continue  # what is done is kept before anything else is looked at
                self._take_orders(scheduler, block=False)
                if job.generation.is_cancelled:
                    return None
                if self.is_stopping:
                    return EngineStoppedError()
                if self._waiting and scheduler.can_batch:
                    job.put_down()
                    self._waiting.appendleft(job)
                    return None
        finally:
            steps.close()
        return None

    # ---- together ----

    def _serve_together(self, scheduler: Scheduler, batch: Batch) -> None:
        """Decode all that wait, and those that come meanwhile, until one is left, or none."""
        try:
            while not self.is_stopping:
                self._admit(batch)
                if not len(batch) or self._is_one_left(batch):
                    return
                self._begin(len(batch))
                for job, step, usage in list(batch.step()):
                    if isinstance(step, DecodeError):
                        self._end(job, step)
                        continue
                    job.deliver(step, usage)
                    if step.finish:
                        self._end(job, None)
                self.last_step_at = time.monotonic()
                self._take_orders(scheduler, block=False)
            self._drop(batch, EngineStoppedError())
        except Exception as raised:  # noqa: BLE001 - nor may that of a batch
            self._drop(batch, _decode_error(raised))
        finally:
            self._begin(0)

    def _admit(self, batch: Batch) -> None:
        for job in batch.jobs:
            if job.generation.is_cancelled:
                batch.leave(job)
                self._end(job, None)
        while self._waiting and len(batch) < batch.most_rows:
            job = self._waiting.popleft()
            if job.generation.is_cancelled:
                self._end(job, None)
            else:
                batch.join(job)

    def _is_one_left(self, batch: Batch) -> bool:
        """Whether only one is left, who then waits to be decoded alone."""
        if len(batch) != 1 or not batch.is_settled:
            return False
        [job] = batch.jobs
        batch.leave(job)
        job.put_down()
        self._waiting.appendleft(job)
        return True

    def _drop(self, batch: Batch, error: EngineError) -> None:
        jobs = batch.jobs
        batch.abandon()
        for job in jobs:
            self._end(job, error)

    # ---- any ----

    def _begin(self, serving: int) -> None:
        if bool(serving) != bool(self.serving):
            self.since = self.last_step_at = time.monotonic()
        self.serving = serving

    def _end(self, job: Job, error: EngineError | None) -> None:
        job.generation.end(job.usage, error)
        self._tell.finished(job.generation)


def _next_slice(slices: Generator[None, None, Any]) -> Any:
    """The result, or the generator itself while there is more to do."""
    try:
        next(slices)
    except StopIteration as end:
        return end.value
    return slices


def _decode_error(raised: Exception) -> DecodeError:
    if not isinstance(raised, RuntimeError | ValueError | MemoryError):  # what MLX raises needs no traceback
        log.error("decoding met a fault", exc_info=raised)
    return DecodeError(f"decoding failed: {raised!r}")
