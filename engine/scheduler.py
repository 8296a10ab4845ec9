"""One model and what it needs to serve requests one after the other; MLX, on the decode thread."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Generator
from typing import Any

import mlx.core as mx
import psutil
from mlx_lm.models.cache import make_prompt_cache

from engine import model
from engine.plain import CLEAR_EVERY, Pipeline, Sequence
from engine.prefill import Prefill
from engine.prefix_cache import PrefixCache
from engine.request import EngineSettings, Finish, GenerationRequest, ModelInfo, Phase, TokenBatch, Usage
from engine.sampling import Chooser
from engine.tally import Tally

PREFIX_SHARE = 8
"""Without a setting, finished prompts may keep one part in so many of the machine's memory."""


class Scheduler:
    """Serves one request at a time. `phase`, `tally` and `stats` may be read from any thread."""

    def __init__(self, loaded: model.LoadedModel, settings: EngineSettings) -> None:
        self.info: ModelInfo = loaded.info
        self.tally = Tally()
        self.phase: Phase | None = None
        self.usage = Usage()
        self._model = loaded.model
        self._settings = settings
        self._prefill = Prefill()
        budget = settings.prefix_bytes
        self._prefixes = PrefixCache(psutil.virtual_memory().total // PREFIX_SHARE if budget is None else budget)

    @classmethod
    def load(cls, settings: EngineSettings, tell: model.LoadProgress) -> Scheduler:
        """Load the model on the calling thread, which must be the one that decodes."""
        return cls(model.load(settings.model, tell, settings.max_context), settings)

    def decode(self, request: GenerationRequest) -> Generator[TokenBatch]:
        """Serve one request: empty batches while its prompt is fed, then its tokens. Close it to cancel."""
        tokens = list(request.prompt)
        cache, cached = self._prefixes.take(tokens)
        sequence = Sequence(
            self._model, cache or make_prompt_cache(self._model), Chooser(request.sampling), tokens, cached
        )
        self.usage = Usage(prompt_tokens=len(tokens), cached_tokens=cached)
        self.tally.count_request(len(tokens), cached)
        try:
            self.phase = "prefill"
            for fed, seconds in self._prefill.feed(sequence):
                self.tally.count_prefill(fed, seconds)
                self._spend(prefill_s=self.usage.prefill_s + seconds)
                yield TokenBatch(())
            self.phase = "decode"
            yield from self._generate(sequence, request)
        except Exception:
            sequence.fed = 0  # what the cache holds is not known any more
            raise
        finally:
            self.phase = None
            self._prefixes.keep(sequence.tokens, sequence.fed, sequence.cache)

    def _generate(self, sequence: Sequence, request: GenerationRequest) -> Generator[TokenBatch]:
        pipeline = Pipeline(sequence)
        room = min(request.max_tokens, self.info.context_length - len(sequence.tokens))
        before = time.monotonic()
        for count in range(1, room + 1):
            token = pipeline.advance(launch_next=count < room)
            now = time.monotonic()
            self.tally.count_step(len(sequence.tokens), 1, now - before)
            self._spend(decode_s=self.usage.decode_s + now - before, completion_tokens=count)
            before = now
            finish: Finish | None = "stop" if token in request.stop_tokens else "length" if count == room else None
            yield TokenBatch((token,), finish)
            if count % CLEAR_EVERY == 0:
                mx.clear_cache()
            if finish:
                return

    def work_idly(self) -> bool:
        """Do a little of what is worth doing while nobody waits; False when there is nothing left."""
        return False

    def remedy(self, name: str) -> None:
        """Perform one of decode_thread.REMEDIES."""
        match name:
            case "drop_prefix_cache":
                self._prefixes.clear()
            case "clear_cache":
                pass
        mx.synchronize()
        mx.clear_cache()

    def stats(self) -> dict[str, Any]:
        """The tally, and memory in bytes."""
        memory = {"active": mx.get_active_memory(), "cache": mx.get_cache_memory(), "peak": mx.get_peak_memory()}
        return {**self.tally.snapshot(), "memory_bytes": memory}

    def _spend(self, **changed: Any) -> None:
        self.usage = dataclasses.replace(self.usage, **changed)
