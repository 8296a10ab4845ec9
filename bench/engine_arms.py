"""The arms of the engine's bench on one loaded model: mlx-lm, ours without drafts, ours as it decides."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

from mlx_lm.generate import stream_generate
from mlx_lm.sample_utils import make_sampler

from bench.paired import Arm, Run
from engine import model
from engine.request import NO_SPECULATION, EngineSettings, GenerationRequest, Sampling, Speculation
from engine.scheduler import Scheduler


class Bench:
    """One model, calibrated as the engine does while idle. Prompts are prefilled anew for every run."""

    def __init__(self, name: str) -> None:
        self._loaded = model.load(name, lambda *_: None)
        self._scheduler = Scheduler(self._loaded, EngineSettings(name, prefix_bytes=0))
        while self._scheduler.work_idly():
            pass

    def costs(self) -> Any:
        return self._scheduler.controller.costs.table()

    def mlx_lm(self, text: str, tokens: int) -> Arm:
        prompt = self._tokenize(text)

        def run() -> Run:
            answers = stream_generate(
                self._loaded.model,
                self._loaded.info.tokenizer,
                list(prompt),
                max_tokens=tokens,
                sampler=make_sampler(0.0),
            )
            return timed((answer.token,) for answer in answers)

        return run

    def plain(self, text: str, tokens: int) -> Arm:
        return self._ours(text, tokens, NO_SPECULATION)

    def auto(self, text: str, tokens: int) -> Arm:
        return self._ours(text, tokens, Speculation())

    def _ours(self, text: str, tokens: int, speculation: Speculation) -> Arm:
        prompt = self._tokenize(text)
        request = GenerationRequest(
            "bench", prompt, tokens, Sampling(temperature=0), self._loaded.info.eos_ids, speculation
        )

        def run() -> Run:
            batches = (batch.tokens for batch in self._scheduler.decode(request) if batch.tokens)
            measured = timed(batches)
            usage = self._scheduler.usage
            notes = {"cycles": usage.cycles, "drafted": usage.drafted, "accepted": usage.accepted}
            return Run(measured.tokens, measured.seconds, measured.timed_tokens, notes)

        return run

    def _tokenize(self, text: str) -> tuple[int, ...]:
        messages = [{"role": "user", "content": text}]
        return tuple(self._loaded.info.tokenizer.apply_chat_template(messages, add_generation_prompt=True))


def timed(batches: Iterable[tuple[int, ...]]) -> Run:
    """From the first token to the last: the prompt's time is not part of it."""
    stream: Iterator[tuple[int, ...]] = iter(batches)
    first = next(stream)
    started = ended = time.monotonic()
    tokens = list(first)
    for batch in stream:
        ended = time.monotonic()
        tokens += batch
    return Run(tuple(tokens), max(ended - started, 1e-9), max(len(tokens) - len(first), 1))
