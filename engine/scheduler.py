"""One model and what it needs to serve requests, alone or together; MLX, on the decode thread."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import mlx.core as mx
import psutil
from mlx_lm.models.cache import KVCache, make_prompt_cache

from engine import blas, model
from engine.acceptance import Acceptance
from engine.batch import Batch
from engine.calibrate import calibrate
from engine.controller import Controller
from engine.costs import Costs
from engine.drafters import NoDrafter
from engine.drafters.load import Drafters, drafters_for
from engine.errors import grammar_error
from engine.fingerprint import fingerprint_of
from engine.job import finish_of
from engine.plain import Sequence, sequence_for
from engine.prefill import Prefill
from engine.prefixes import Prefixes
from engine.request import EngineSettings, GenerationRequest, ModelInfo, Phase, TokenBatch, Usage
from engine.speculate import decode
from engine.tally import Tally

PREFIX_SHARE = 8
"""Without a setting, finished prompts may keep one part in so many of the machine's memory."""
PUBLISH_EVERY_S = 0.5


class Scheduler:
    """Serves one request, or several in a batch. `phase`, `tally`, `usage` and `stats` may be read from any thread."""

    def __init__(
        self, loaded: model.LoadedModel, settings: EngineSettings, tell: model.LoadProgress = lambda *_: None
    ) -> None:
        self.tally = Tally()
        self.phase: Phase | None = None
        self.usage = Usage()
        self._model = loaded.model
        self._prefixes = self._make_prefixes(settings)
        self._prefill = Prefill(self._prefixes, loaded.info.eos_ids)
        widest = max(0, settings.max_draft)
        self.controller = Controller(Costs(), Acceptance(widest), widest=widest)
        self._drafters = drafters_for(loaded, settings, tell)
        self.info: ModelInfo = dataclasses.replace(loaded.info, methods=self._drafters.methods)
        self._can_batch = all(type(layer) is KVCache for layer in self._new_cache())
        self._batch: Batch | None = None
        self._idle_work: Iterator[None] = iter(())
        if not self._drafters.why_off:
            self._idle_work = calibrate(self._model, self.controller.costs, widest, self._drafters.paid)
        self._published: dict[str, Any] = {}
        self._publish()

    @classmethod
    def load(cls, settings: EngineSettings, tell: model.LoadProgress) -> Scheduler:
        """Load the model on the calling thread, which must be the one that decodes."""
        return cls(model.load(settings.model, tell, settings.max_context), settings, tell)

    def _make_prefixes(self, settings: EngineSettings) -> Prefixes:
        budget = settings.prefix_bytes
        return Prefixes(
            psutil.virtual_memory().total // PREFIX_SHARE if budget is None else budget,
            self._new_cache,
            fingerprint_of(self._model),
            Path(settings.prefix_folder) if settings.prefix_folder else None,
            settings.prefix_disk_bytes,
        )

    def _new_cache(self) -> list[Any]:
        cache: list[Any] = make_prompt_cache(self._model)
        return cache

    @property
    def can_batch(self) -> bool:
        """Whether this model's requests can be decoded together: their caches are padded, merged and cut."""
        return self._can_batch

    def batch(self) -> Batch:
        """The one batch, made when it is first needed."""
        if self._batch is None:
            self._batch = Batch(self._model, self._prefixes, self._prefill, self.tally, self.info.context_length)
        return self._batch

    def decode(self, request: GenerationRequest, *, is_begun: bool = False) -> Generator[TokenBatch]:
        """Serve one request: empty batches while its prompt is fed, then its tokens. Close it to stop.

        `is_begun`: it is the rest of one that was counted before.
        """
        tokens = list(request.prompt)
        found = self._prefixes.take(tokens, is_shared=request.is_choice)
        cached = found.length
        drafters = self._drafters.only(request.speculation.method)
        taps = drafters.paid.taps if drafters.paid else None
        sequence = sequence_for(
            request, self._model, found.cache or self._new_cache(), cached, taps=taps, marks=found.marks
        )
        if drafters.paid:
            drafters.paid.recall(found.memory)
        self.usage = Usage(prompt_tokens=len(tokens), cached_tokens=cached)
        if not is_begun and not request.is_choice:
            self.tally.count_request(len(tokens), cached)
        try:
            self.phase = "prefill"
            for fed in self._prefill.feed(sequence):
                self._add(**self.tally.count_fed(fed))
                yield TokenBatch(())
            self.phase = "decode"
            yield from self._generate(sequence, request, drafters)
        except Exception:
            sequence.fed = 0  # nobody knows what the cache holds now
            raise
        finally:
            self.phase = None
            memory = drafters.paid.memory(sequence.fed) if drafters.paid else found.memory
            self._prefixes.keep(sequence.tokens, sequence.fed, sequence.cache, sequence.marks, memory)
            self._publish()

    def _generate(self, sequence: Sequence, request: GenerationRequest, drafters: Drafters) -> Iterator[TokenBatch]:
        room = min(request.max_tokens, self.info.context_length - len(sequence.tokens))
        if room <= 0:
            yield TokenBatch((), "length")
        published = time.monotonic()
        steps = decode(
            sequence,
            room,
            request.stop_tokens,
            drafter=drafters.free,
            policy=self.controller,
            spend=self.tally.spend,
            paid=drafters.paid,
            longest=request.speculation.max_tokens,
        )
        for step in steps:
            context, count = len(sequence.tokens), len(step.tokens)
            self.tally.count_step(context, count, step.seconds)
            self._add(decode_s=step.seconds, completion_tokens=count)
            if step.drafted:
                self.tally.count_cycle(step.drafted, step.accepted)
                self._add(cycles=1, drafted=step.drafted, accepted=step.accepted)
            if time.monotonic() - published > PUBLISH_EVERY_S:
                published = time.monotonic()
                self._publish()
            room -= count
            finish = finish_of(step.tokens[-1], room, request.stop_tokens)
            scores = sequence.scores.take() if sequence.scores else ()
            yield TokenBatch(step.tokens, finish, step.accepted, scores)
            if not finish and sequence.chooser.matcher and sequence.chooser.matcher.fault:
                raise grammar_error(sequence.chooser.matcher.fault)

    def work_idly(self) -> bool:
        """Do a little of what is worth doing while nobody waits; False when there is nothing left."""
        is_left = next(self._idle_work, self) is None or self._prefixes.spill()
        if not is_left:
            self._publish()
        return is_left

    def remedy(self, name: str) -> None:
        """Perform one of decode_thread.REMEDIES."""
        if name == "drop_prefix_cache":
            self._prefixes.clear()
        elif name == "speculation_off":
            self._drafters = Drafters(NoDrafter(), why_off="switched off by a remedy")
            self._idle_work = iter(())
        mx.synchronize()  # what is still being computed holds buffers
        mx.clear_cache()
        self._publish()

    def save_prefixes(self, folder: Path, most_bytes: int, seconds: float) -> Generator[None, None, int]:
        """Save finished prompts, in slices; gives how many tokens of them. See engine.prefix_store.save."""
        return self._prefixes.save(folder, most_bytes, seconds)

    def load_prefixes(self, folder: Path) -> Generator[None, None, int]:
        """Take in prompts that were saved for this model, in slices; gives how many tokens of them."""
        restored = yield from self._prefixes.load(folder)
        self._publish()
        return restored

    def stats(self) -> dict[str, Any]:
        """The tally, memory in bytes, what speculation does and why, and the prefix cache."""
        memory = {"active": mx.get_active_memory(), "cache": mx.get_cache_memory(), "peak": mx.get_peak_memory()}
        return {**self.tally.snapshot(), "memory_bytes": memory, "blas": blas.state(), **self._published}

    def _publish(self) -> None:
        """Make a snapshot of what only this thread may read."""
        speculation = {"method": self._drafters.method, **self.controller.snapshot()}
        if self._drafters.why_off:
            speculation |= {"k": 0, "why": self._drafters.why_off}
        self._published = {"speculation": speculation, "prefix_cache": self._prefixes.stats()}

    def _add(self, **amounts: float) -> None:
        self.usage = self.usage.plus(**amounts)
