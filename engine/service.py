"""What the HTTP handlers share: the decode thread, what is loaded, and how much is in flight. On the event loop."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from engine.choices import Choices, choices_of, prompt_of
from engine.decode_thread import DecodeThread
from engine.errors import ModelMissingError, NotReadyError, OverloadedError
from engine.openai_wire import ChatCall, CompletionCall
from engine.prompts import Prompter
from engine.reading import Reading
from engine.request import EngineSettings, GenerationRequest, ModelInfo

Result = TypeVar("Result")
log = logging.getLogger("engine")
MOST_IN_FLIGHT = 128
"""Requests that wait or are served; the supervisor bounds them far tighter."""


class Service:
    """One model, from loading to draining."""

    def __init__(self, settings: EngineSettings, generation: int | None = None) -> None:
        self.model = settings.model
        self.generation = generation
        self.created = int(datetime.now(UTC).timestamp())
        self.is_draining = False
        self.in_flight = 0
        self.doing, self.fraction = "starting", 0.0
        self.thread = DecodeThread(settings, self._loading)
        self.info: ModelInfo | None = None
        self._prompter: Prompter | None = None
        self._started = time.monotonic()
        self._texts = ThreadPoolExecutor(1, thread_name_prefix="text")

    def _loading(self, doing: str, fraction: float) -> None:
        self.doing, self.fraction = doing, fraction
        log.info("%s (%.0f %%)", doing, fraction * 100)

    async def load(self) -> ModelInfo:
        """Start the decode thread and wait for the model. Raises ModelError."""
        self.thread.start()
        self.info = await self.thread.ready()
        self._prompter = Prompter(self.info)
        return self.info

    async def off_loop(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Do what takes long with a long prompt where it holds nobody up."""
        return await asyncio.get_running_loop().run_in_executor(self._texts, work, *arguments)

    async def begin(self, call: ChatCall | CompletionCall, request_id: str) -> Choices:
        """Queue a call; its text comes out of the Choices. Raises EngineError where it cannot be served.

        Where several answers are wanted, their prompt is fed first, once.
        """
        if self.info is None or self._prompter is None:
            raise NotReadyError(self.doing)
        if call.options.model not in (None, self.info.id):
            raise ModelMissingError(call.options.model, self.info.id)
        if self.in_flight > MOST_IN_FLIGHT:
            raise OverloadedError(MOST_IN_FLIGHT)
        request = await self.off_loop(self._prompter.request, call, request_id)
        reads = partial(self._read, call=call, info=self.info)
        if call.options.choices == 1:
            return Choices([reads(request)])
        prompt = self.thread.submit(prompt_of(request))
        return Choices([], prompt, lambda: [reads(one) for one in choices_of(request, call.options.choices)])

    def _read(self, request: GenerationRequest, call: ChatCall | CompletionCall, info: ModelInfo) -> Reading:
        return Reading(self.thread.submit(request), call, info)

    def bytes_of(self, token: int) -> bytes:
        """What a token adds to the text."""
        if self.info is None:
            raise NotReadyError(self.doing)
        return self.info.vocabulary.bytes_of(token)

    def health(self) -> dict[str, Any]:
        """What /health answers; `status` is ok, loading or draining."""
        progress = self.thread.progress() if self.info else None
        status = "draining" if self.is_draining else "ok" if self.info else "loading"
        return {
            "status": status,
            "progress": progress.state if progress else "idle",
            "phase": progress.phase if progress else None,
            "model": self.model,
            "generation": self.generation,
            "load": {"doing": self.doing, "fraction": round(self.fraction, 3)},
            "in_flight": self.in_flight,
            "uptime_s": round(time.monotonic() - self._started, 3),
        }

    def stats(self) -> dict[str, Any]:
        """What /stats answers."""
        return {**self.health(), **self.thread.stats()}

    def last_movement(self) -> float:
        """A moment of time.monotonic at which decoding last moved."""
        return self.thread.progress().last_step_at

    async def drain(self, deadline_s: float) -> None:
        """Take nothing new, and wait for what is there."""
        self.is_draining = True
        if self.info is not None:
            await self.thread.drain(deadline_s)
