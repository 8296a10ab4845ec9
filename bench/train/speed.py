"""Tokens a second of the engine's own loop on held-out prompts: plain, fixed drafts, and the controller's choice.

    python -m bench.train.speed TARGET DATA CHECKPOINT --json PATH [--tokens 160] [--rows 3]

Arms take turns on each prompt; the prompt is fed before the clock starts. Ratios are to the plain arm, paired.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import mlx.core as mx
import numpy as np
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.utils import load_model

from bench.train.prompts import DOMAINS
from engine.acceptance import Acceptance
from engine.calibrate import calibrate
from engine.controller import Controller
from engine.costs import Costs
from engine.drafters import Draft, NoDrafter
from engine.drafters.dflash import DFlashDrafter
from engine.drafters.load import load_dflash
from engine.plain import Sequence
from engine.proposals import Order
from engine.request import Sampling
from engine.sampling import Chooser
from engine.speculate import Policy, decode


@dataclass
class Fixed:
    """Always drafts `widest` tokens."""

    widest: int

    def sequence_began(self) -> None: ...
    def sequence_ended(self) -> None: ...
    def shadow_drafted(self, draft: Draft, seconds: float) -> None: ...
    def step_ended(self, *_: Any, **__: Any) -> None: ...
    def cycle_ended(self, *_: Any, **__: Any) -> None: ...

    def choose(self, context: int, draft: Draft) -> int:  # noqa: ARG002  the protocol's signature
        return 0

    def order(self, context: int, kind: str, limit: int) -> Order:  # noqa: ARG002  the protocol's signature
        return Order(min(self.widest, limit))


def prompts_of(tokens: mx.array, mask: Any, rows: int) -> Iterable[tuple[str, list[int]]]:
    """(domain, tokens up to the first answer)."""
    each = tokens.shape[0] // len(DOMAINS)
    for index, domain in enumerate(DOMAINS):
        for row in range(index * each, index * each + min(rows, each)):
            first = int(np.argmax(mask[row]))
            if mask[row][first]:
                yield domain, tokens[row, :first].tolist()


def timed(
    model: Any, prompt: list[int], count: int, policy: Policy, drafter: DFlashDrafter | None
) -> tuple[float, list[int], int]:
    """(seconds a token, output, cycles)."""
    taps = drafter.taps if drafter else None
    sequence = Sequence(model, make_prompt_cache(model), Chooser(Sampling(temperature=0)), list(prompt), taps=taps)
    sequence.forward(mx.array(prompt[:-1]))
    mx.eval([layer.state for layer in sequence.cache])
    steps, output, began, cycles = (
        decode(sequence, count, frozenset(), drafter=NoDrafter(), policy=policy, spend=lambda *_: None, paid=drafter),
        [],
        0.0,
        0,
    )
    skipped = 0
    for step in steps:
        if not began:
            began, skipped = time.monotonic(), len(step.tokens)
        output += step.tokens
        cycles += bool(step.drafted)
    return (time.monotonic() - began) / (len(output) - skipped), output, cycles


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("target", "data", "checkpoint"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--tokens", type=int, default=160)
    parser.add_argument("--rows", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    model, _ = load_model(options.target)
    drafter = load_dflash(options.checkpoint, model)
    data = mx.load(str(options.data / "held_out.safetensors"))
    costs = Costs()
    for _ in calibrate(model, costs, 15, drafter):
        pass
    print("ms", json.dumps({"verify": costs.table(), "draft": costs.drafting_table()}), flush=True)
    controller = Controller(costs, Acceptance(15), widest=15)
    arms: dict[str, tuple[Policy, DFlashDrafter | None]] = {
        "plain": (Fixed(0), None),
        "taps": (Fixed(0), drafter),
        "fixed 3": (Fixed(3), drafter),
        "fixed 7": (Fixed(7), drafter),
        "auto": (controller, drafter),
    }
    ratios: dict[str, dict[str, list[float]]] = {domain: {arm: [] for arm in arms} for domain in DOMAINS}
    mismatches = 0
    for number, (domain, prompt) in enumerate(prompts_of(data["tokens"], np.array(data["mask"]), options.rows)):
        results = {}
        order = list(arms)[number % len(arms) :] + list(arms)[: number % len(arms)]
        for arm in ["plain", *order] if not number else order:
            policy, paid = arms[arm]
            results[arm] = timed(model, prompt, options.tokens, policy, paid)
        for arm, (seconds, output, _) in results.items():
            ratios[domain][arm].append(results["plain"][0] / seconds)
            mismatches += output != results["plain"][1]
        shown = {arm: [round(1 / seconds, 1), cycles] for arm, (seconds, _, cycles) in results.items()}
        print(domain, len(prompt), json.dumps(shown), flush=True)
    medians = {
        domain: {arm: round(median(values), 3) for arm, values in by_arm.items() if values}
        for domain, by_arm in ratios.items()
    }
    for domain, shown in medians.items():
        print(domain, json.dumps(shown), flush=True)
    print(f"{mismatches} outputs differ from the plain arm's", flush=True)
    if options.json:
        options.json.write_text(json.dumps({"ratios": medians, "mismatches": mismatches}, indent=2))


if __name__ == "__main__":
    main()
