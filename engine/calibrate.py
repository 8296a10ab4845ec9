"""Measure what steps and cycles cost here, in small pieces, while nobody waits; MLX, on the decode thread."""

from __future__ import annotations

import time
from collections.abc import Iterator

import mlx.core as mx
from mlx.nn.layers.base import Module
from mlx_lm.models.cache import make_prompt_cache

from engine.controller import REFRESH_STEPS, UNSTEADY_STEPS
from engine.costs import Costs
from engine.drafters import PaidDrafter
from engine.plain import Pipeline, Sequence
from engine.request import Sampling
from engine.rollback import can_rewind, rewind
from engine.sampling import Chooser

CONTEXT = 64
DRAFT_LENGTHS = (1, 3, 7, 15)
CYCLES = 3
LONGEST_CYCLE_S = 1.0


def calibrate(model: Module, costs: Costs, widest: int, paid: PaidDrafter | None = None) -> Iterator[None]:
    """Fill `costs`; each piece that is measured ends with a yield, so the caller can put real work between.

    A width that could not pay if every draft were right, or that would hold up a cancel, is left out of `costs`, and so
    never chosen.
    """
    chooser, taps = Chooser(Sampling(temperature=0)), paid.taps if paid else None
    sequence = Sequence(model, make_prompt_cache(model), chooser, [0] * CONTEXT, taps=taps)
    sequence.forward(mx.array(sequence.tokens[:-1]))
    mx.eval([layer.state for layer in sequence.cache])
    yield
    pipeline = Pipeline(sequence)
    for step in range(REFRESH_STEPS + UNSTEADY_STEPS):
        started = time.monotonic()
        pipeline.advance(launch_next=True)
        if step >= UNSTEADY_STEPS:
            costs.observe(0, CONTEXT, time.monotonic() - started)
        yield
    pipeline.advance(launch_next=False)
    plain = costs.plain(CONTEXT)
    if not can_rewind(sequence.cache) or plain is None:
        return
    yield from _measure_cycles(sequence, costs, widest, plain, paid)


def _measure_cycles(
    sequence: Sequence, costs: Costs, widest: int, plain: float, paid: PaidDrafter | None
) -> Iterator[None]:
    if paid is not None:
        paid.begin(sequence.tokens)
    for k in (k for k in DRAFT_LENGTHS if k <= widest):
        _verify(sequence, k + 1, paid)  # the first of a shape compiles kernels
        yield
        for _ in range(CYCLES):
            seconds = _verify(sequence, k + 1, paid)
            if seconds > LONGEST_CYCLE_S:
                return
            if seconds < (k + 1) * plain:
                costs.observe(k, CONTEXT, seconds)
            if paid is not None and k <= paid.longest:
                started = time.monotonic()
                if len(paid.propose(k).tokens) == k:
                    costs.observe_drafting(k, time.monotonic() - started)
            yield


def _verify(sequence: Sequence, width: int, paid: PaidDrafter | None) -> float:
    """Seconds of a cycle over `width` tokens, of which one is kept.

    So each is at another length, as in decoding: where kernels are built for each shape, that is what a cycle costs.
    """
    started = time.monotonic()
    logits = sequence.forward(mx.array([sequence.tokens[-1]] * width, mx.uint32))
    sequence.chooser(logits, len(sequence.tokens), sequence.recent([])).tolist()
    rewind(sequence.cache, sequence.fed, sequence.fed - width + 1)
    sequence.fed -= width - 1
    seconds = time.monotonic() - started
    sequence.tokens.append(0)
    if paid is not None:
        paid.extend([0])
    return seconds
