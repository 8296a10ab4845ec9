"""The one thread that owns MLX, as the event loop sees it: requests in, tokens out, remedies, draining.

MLX streams belong to threads and a lazily loaded array fails in any other thread, so loading, decoding, calibration and
remedies all happen on it (engine.decode_loop). This side puts orders into a queue and is told what came of them by
`call_soon_threadsafe`; neither side waits for the other while holding anything.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.decode_loop import DecodeLoop, Errand, Stop, Tell
from engine.errors import (
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


class DecodeThread:
    """Loads one model and decodes requests: one alone, with drafts, and several together in a batch.

    Everything public is for the event loop on which `start` was called. Requests wait their turn inside; the caller
    bounds how many. `on_load` is told, on the loop, what loading does and how far it is (0 to 1).
    """

    def __init__(self, settings: EngineSettings, on_load: LoadProgress | None = None) -> None:
        self._settings = settings
        self._on_load = on_load or (lambda *_: None)
        tell = Tell(
            loading=lambda doing, fraction: self._post(self._on_load, doing, fraction),
            loaded=lambda info: self._post(self._info.set_result, info),
            finished=lambda generation: self._post(self._forget, generation),
            settled=lambda errand, result, error: self._post(_settle, errand.done, result, error),
        )
        self._decoding = DecodeLoop(settings, tell)
        self._unfinished: set[Generation] = set()
        self._empty = asyncio.Event()
        self._ended = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="decode", daemon=True)
        self._is_draining = False

    def start(self) -> None:
        """Start the thread, which loads the model. Must be called on the running loop, once."""
        self._loop = asyncio.get_running_loop()
        self._info: asyncio.Future[ModelInfo] = self._loop.create_future()
        self._empty.set()
        self._thread.start()

    async def ready(self) -> ModelInfo:
        """Wait until the model is loaded. Raises ModelError where it cannot be."""
        return await asyncio.shield(self._info)

    async def ended(self) -> None:
        """Wait until the thread has ended, by `stop`, by a failed load, or by a fault that leaves nothing to serve."""
        await self._ended.wait()

    def submit(self, request: GenerationRequest) -> Generation:
        """Queue one request. Raises RequestError for one that can never be served, DrainingError when going down."""
        if self._is_draining:
            raise DrainingError
        if not self._info.done() or self._ended.is_set():
            raise EngineStoppedError
        context_length = self._info.result().context_length
        if not request.prompt:
            raise RequestError("the prompt is empty; send at least one token")
        if len(request.prompt) >= context_length:
            raise PromptTooLongError(len(request.prompt), context_length)
        generation = Generation(request, self._loop)
        self._unfinished.add(generation)
        self._empty.clear()
        self._decoding.orders.put(generation)
        return generation

    def progress(self) -> Progress:
        """Whether decoding moves; cheap, never waits."""
        decoding = self._decoding
        scheduler, serving, moved = decoding.scheduler, decoding.serving, decoding.last_step_at
        tokens = scheduler.tally.generated_tokens if scheduler else 0
        phase = scheduler.phase if scheduler and serving else None
        is_dead = self._ended.is_set() and not decoding.is_stopping
        if is_dead or (serving and time.monotonic() - moved > STALLED_AFTER_S):
            return Progress("stalled", moved, tokens, phase, moved)
        return Progress("busy" if serving else "idle", decoding.since, tokens, phase, moved)

    def stats(self) -> dict[str, Any]:
        """What /stats answers; {} until the model is loaded. See engine.tally.Tally.snapshot for its keys."""
        scheduler = self._decoding.scheduler
        if scheduler is None:
            return {}
        return {"phase": self.progress().phase or "idle", **scheduler.stats()}

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
        if self._ended.is_set():
            raise EngineStoppedError
        done: asyncio.Future[Any] = self._loop.create_future()
        self._decoding.orders.put(Errand(work, done))
        return await done

    async def drain(self, deadline_s: float) -> None:
        """Take nothing new and wait for what is there; what is left at the deadline ends with EngineStoppedError."""
        self._is_draining = True
        try:
            await asyncio.wait_for(self._empty.wait(), deadline_s)
        except TimeoutError:
            self._tell_to_stop()

    def stop(self) -> None:
        """End the thread within a step; requests still there end with EngineStoppedError."""
        self._is_draining = True
        self._tell_to_stop()
        if self._thread.is_alive():
            self._thread.join(JOIN_S)

    def _tell_to_stop(self) -> None:
        self._decoding.is_stopping = True
        self._decoding.orders.put(Stop())

    def _forget(self, generation: Generation) -> None:
        self._unfinished.discard(generation)
        if not self._unfinished:
            self._empty.set()

    def _has_ended(self, error: EngineError) -> None:
        """On the loop: whoever still waits for the thread is told that it is gone."""
        self._ended.set()
        if not self._info.done():
            self._info.set_exception(error)
            self._info.exception()  # heard, even if nobody waits for the model
        for order in self._decoding.left_over():
            match order:
                case Generation():
                    order.end(order.usage, EngineStoppedError())
                    self._forget(order)
                case Errand():
                    _settle(order.done, None, EngineStoppedError())

    # These two run on the decode thread.

    def _run(self) -> None:
        error: EngineError = EngineStoppedError()
        try:
            self._decoding.run()
        except EngineError as raised:
            error = raised
        except Exception as raised:
            log.exception("the decode thread ended")
            error = ModelError(f"cannot load {self._settings.model}: {raised!r}")
        self._post(self._has_ended, error)

    def _post(self, callback: Callable[..., None], *arguments: Any) -> None:
        post_to(self._loop, partial(callback, *arguments))


def _settle(done: asyncio.Future[Any], result: Any, error: EngineError | None) -> None:
    if done.done():  # whoever asked may have gone
        return
    if error is None:
        done.set_result(result)
    else:
        done.set_exception(error)
