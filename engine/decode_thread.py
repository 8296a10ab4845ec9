"""The one thread that owns MLX: requests in, tokens out, cancellation, remedies between steps.

MLX streams belong to threads and a lazily loaded array fails in any other thread, so loading, decoding, calibration and
remedies all happen here. The event loop's side puts orders into a queue and gets tokens back by `call_soon_threadsafe`;
neither side waits for the other while holding anything.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.errors import (
    DecodeError,
    DrainingError,
    EngineError,
    EngineStoppedError,
    ModelError,
    PromptTooLongError,
    RequestError,
    UnknownRemedyError,
)
from engine.generation import Generation, post_to
from engine.request import EngineSettings, GenerationRequest, ModelInfo, Progress

if TYPE_CHECKING:
    from engine.scheduler import Scheduler

REMEDIES = ("clear_cache", "drop_prefix_cache", "speculation_off")
STALLED_AFTER_S = 30.0
"""Busy without a step for so long is called stalled; the slowest honest step is a prefill chunk of half a second."""
JOIN_S = 5.0

LoadProgress = Callable[[str, float], None]
log = logging.getLogger("engine")


@dataclass(frozen=True)
class _Errand:
    """Something to do between two steps, and who waits for its result."""

    work: Callable[[Scheduler], Any]
    done: asyncio.Future[Any]


class _Stop:
    """The last order the thread takes."""


class DecodeThread:
    """Loads one model and decodes requests one at a time, first come first served.

    Everything public is for the event loop on which `start` was called. Requests wait their turn inside; the caller
    bounds how many. `on_load` is told, on the loop, what loading does and how far it is (0 to 1).
    """

    def __init__(self, settings: EngineSettings, on_load: LoadProgress | None = None) -> None:
        self._settings = settings
        self._on_load = on_load
        self._orders: queue.SimpleQueue[Generation | _Errand | _Stop] = queue.SimpleQueue()
        self._waiting: deque[Generation] = deque()
        self._unfinished: set[Generation] = set()
        self._empty = asyncio.Event()
        self._ended = asyncio.Event()
        self._thread: threading.Thread | None = None
        self._scheduler: Scheduler | None = None
        self._is_draining = False
        self._is_stopping = False
        self._serving: Generation | None = None
        self._since = self._last_step_at = time.monotonic()

    def start(self) -> None:
        """Start the thread, which loads the model. Must be called on the running loop, once."""
        self._loop = asyncio.get_running_loop()
        self._info: asyncio.Future[ModelInfo] = self._loop.create_future()
        self._empty.set()
        self._thread = threading.Thread(target=self._run, name="decode", daemon=True)
        self._thread.start()

    async def ready(self) -> ModelInfo:
        """Wait until the model is loaded. Raises ModelError where it cannot be."""
        return await asyncio.shield(self._info)

    async def ended(self) -> None:
        """Wait until the thread has ended, by `stop`, by a failed load, or by a fault that leaves nothing to serve."""
        await self._ended.wait()

    def submit(self, request: GenerationRequest) -> Generation:
        """Queue one request. Raises RequestError for one that can never be served, DrainingError when going down."""
        if self._is_draining or self._is_stopping:
            raise DrainingError
        if not self._info.done() or self._thread is None or not self._thread.is_alive():
            raise EngineStoppedError
        context_length = self._info.result().context_length
        if not request.prompt:
            raise RequestError("the prompt is empty; send at least one token")
        if len(request.prompt) >= context_length:
            raise PromptTooLongError(len(request.prompt), context_length)
        generation = Generation(request, self._loop)
        self._unfinished.add(generation)
        self._empty.clear()
        self._orders.put(generation)
        return generation

    def progress(self) -> Progress:
        """Whether decoding moves; cheap, never waits."""
        scheduler, serving = self._scheduler, self._serving
        tokens = scheduler.tally.generated_tokens if scheduler else 0
        phase = scheduler.phase if scheduler and serving else None
        is_dead = self._thread is not None and not self._thread.is_alive() and not self._is_stopping
        quiet_s = time.monotonic() - self._last_step_at
        if is_dead or (serving and quiet_s > STALLED_AFTER_S):
            return Progress("stalled", self._last_step_at, tokens, phase, self._last_step_at)
        return Progress("busy" if serving else "idle", self._since, tokens, phase, self._last_step_at)

    def stats(self) -> dict[str, Any]:
        """What /stats answers; {} until the model is loaded. See engine.tally.Tally.snapshot for its keys."""
        if self._scheduler is None:
            return {}
        return {"phase": self.progress().phase or "idle", **self._scheduler.stats()}

    async def remedy(self, name: str) -> None:
        """Perform a remedy on the decode thread, before its next step. Raises UnknownRemedyError."""
        if name not in REMEDIES:
            raise UnknownRemedyError(name, REMEDIES)
        await self._ask(lambda scheduler: scheduler.remedy(name))

    async def save_prefixes(self, folder: Path, most_bytes: int, seconds: float) -> int:
        """Save finished prompts to `folder`; returns how many tokens of them. Raises EngineError."""
        return int(await self._ask(lambda scheduler: scheduler.save_prefixes(folder, most_bytes, seconds)))

    async def load_prefixes(self, folder: Path) -> int:
        """Take in prompts saved by an earlier process; returns how many tokens of them."""
        return int(await self._ask(lambda scheduler: scheduler.load_prefixes(folder)))

    async def _ask(self, work: Callable[[Scheduler], Any]) -> Any:
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._orders.put(_Errand(work, done))
        return await done

    async def drain(self, deadline_s: float) -> None:
        """Take nothing new and wait for what is there; what is left at the deadline ends with EngineStoppedError."""
        self._is_draining = True
        try:
            await asyncio.wait_for(self._empty.wait(), deadline_s)
        except TimeoutError:
            self._is_stopping = True
            self._orders.put(_Stop())

    def stop(self) -> None:
        """End the thread within a step; requests still there end with EngineStoppedError."""
        self._is_draining = self._is_stopping = True
        self._orders.put(_Stop())
        if self._thread is not None:
            self._thread.join(JOIN_S)

    # From here on: the decode thread.

    def _run(self) -> None:
        try:
            scheduler = self._load()
            while (generation := self._next(scheduler)) is not None:
                if generation.is_cancelled:
                    self._finish(generation, None)
                else:
                    self._serve(scheduler, generation)
        except EngineError as error:
            self._fail_load(error)
        except Exception as error:
            log.exception("the decode thread ended")
            self._fail_load(ModelError(f"cannot load {self._settings.model}: {error!r}"))
        finally:
            self._refuse_the_rest()
            post_to(self._loop, self._ended.set)

    def _fail_load(self, error: EngineError) -> None:
        def tell() -> None:
            if not self._info.done():
                self._info.set_exception(error)

        post_to(self._loop, tell)

    def _refuse_the_rest(self) -> None:
        while not self._orders.empty():
            match self._orders.get_nowait():
                case Generation() as generation:
                    self._waiting.append(generation)
                case _Errand() as errand:
                    post_to(self._loop, partial(_settle, errand.done, None, EngineStoppedError()))
                case _Stop():
                    pass
        while self._waiting:
            self._finish(self._waiting.popleft(), EngineStoppedError())

    def _load(self) -> Scheduler:
        # Imported here: MLX and transformers take seconds, in which the loop already answers /health.
        from engine.scheduler import Scheduler  # noqa: PLC0415

        self._scheduler = Scheduler.load(self._settings, self._tell_load)
        info = self._scheduler.info
        post_to(self._loop, lambda: self._info.set_result(info))
        return self._scheduler

    def _tell_load(self, doing: str, fraction: float) -> None:
        self._last_step_at = time.monotonic()
        if self._on_load is not None:
            on_load = self._on_load
            post_to(self._loop, lambda: on_load(doing, fraction))

    def _next(self, scheduler: Scheduler) -> Generation | None:
        """The next request; meanwhile remedies, and what is worth doing while nobody waits."""
        while not self._is_stopping:
            self._take_orders(scheduler, block=not self._waiting and not scheduler.work_idly())
            if self._waiting:
                return self._waiting.popleft()
        return None

    def _take_orders(self, scheduler: Scheduler, *, block: bool) -> None:
        try:
            while True:
                order = self._orders.get(block=block)
                block = False
                match order:
                    case Generation():
                        self._waiting.append(order)
                    case _Errand():
                        self._run_errand(scheduler, order)
                    case _Stop():
                        self._is_stopping = True
        except queue.Empty:
            return

    def _run_errand(self, scheduler: Scheduler, errand: _Errand) -> None:
        result, error = None, None
        try:
            result = errand.work(scheduler)
        except EngineError as raised:
            error = raised
        except Exception as raised:
            log.exception("an errand met a fault")
            error = EngineError(f"this did not work: {raised!r}")
        post_to(self._loop, partial(_settle, errand.done, result, error))

    def _serve(self, scheduler: Scheduler, generation: Generation) -> None:
        self._since = self._last_step_at = time.monotonic()
        self._serving = generation
        error: EngineError | None = None
        steps = scheduler.decode(generation.request)
        try:
            for batch in steps:
                self._last_step_at = time.monotonic()
                if batch.tokens:
                    generation.deliver(batch, scheduler.usage)
                self._take_orders(scheduler, block=False)
                if generation.is_cancelled:
                    break
                if self._is_stopping and batch.finish is None:
                    error = EngineStoppedError()
                    break
        except EngineError as raised:
            error = raised
        except (RuntimeError, ValueError, MemoryError) as raised:  # what MLX raises
            error = DecodeError(f"decoding failed: {raised}")
        except Exception as raised:
            log.exception("request %s met a fault", generation.request.id)
            error = DecodeError(f"decoding failed: {raised!r}")
        finally:
            steps.close()
            self._serving = None
            self._since = time.monotonic()
            self._finish(generation, error, scheduler)

    def _finish(self, generation: Generation, error: EngineError | None, scheduler: Scheduler | None = None) -> None:
        generation.end(scheduler.usage if scheduler else generation.usage, error)
        post_to(self._loop, lambda: self._forget(generation))

    def _forget(self, generation: Generation) -> None:
        self._unfinished.discard(generation)
        if not self._unfinished:
            self._empty.set()


def _settle(done: asyncio.Future[Any], result: Any, error: EngineError | None) -> None:
    if done.done():  # whoever asked may have gone
        return
    if error is None:
        done.set_result(result)
    else:
        done.set_exception(error)
