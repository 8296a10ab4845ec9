"""How fast a request runs: spawn, age, noise, host and context together give its nominal rate."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

from tests.fake_worker.knobs import Knobs, LiveKnobs

DRAFT = 4
"""Tokens drafted in a step, where there is speculation."""


def count_spawn(counter: Path | None) -> int:
    """Which spawn this process is, from 0; it is counted in the file."""
    if counter is None:
        return 0
    with counter.open("a") as marks:
        marks.write(f"{os.getpid()}\n")
    return len(counter.read_text().splitlines()) - 1


class Speed:
    def __init__(self, knobs: LiveKnobs, spawn: int, started: float) -> None:
        self._knobs = knobs
        self._started = started
        start = knobs()
        generation = os.environ.get("FRESHLANE_GENERATION", str(spawn))
        self._random = random.Random(f"{start.seed}:{generation}")
        self._spawn_speed = self._draw(start, spawn)
        self._first_acceptance = start.acceptance
        self._forgiven_requests = 0
        self._forgiven_s = 0.0
        self._is_cured = False
        self._host_seen: tuple[int, float] = (-1, 1.0)

    def _draw(self, knobs: Knobs, spawn: int) -> float | None:
        if not knobs.spawn_speeds:
            return None
        if knobs.spawn_counter is not None:
            return knobs.spawn_speeds[spawn % len(knobs.spawn_speeds)]
        return self._random.choice(knobs.spawn_speeds)

    def age(self, requests: int) -> float:
        """How far the decay has come, 0 to 1."""
        knobs, share = self._knobs(), 0.0
        if self._is_cured and knobs.stays_cured:
            return 0.0
        if knobs.decay_requests:
            share = (requests - self._forgiven_requests) / knobs.decay_requests
        if knobs.decay_seconds:
            share = max(share, (time.monotonic() - self._started - self._forgiven_s) / knobs.decay_seconds)
        share = min(1.0, max(0.0, share))
        return float(share >= 1.0) if knobs.decay_shape == "step" else share

    def cure(self, requests: int) -> None:
        self._is_cured = True
        self._forgiven_requests = requests
        self._forgiven_s = time.monotonic() - self._started

    def base(self, requests: int) -> float:
        """The rate of this process now in tokens a second, without noise, host and context."""
        knobs = self._knobs()
        fresh = self._spawn_speed or knobs.decay_from or knobs.tok_s
        fresh *= self.tokens_per_step(requests) / (1 + DRAFT * self._first_acceptance)
        if not knobs.decay_to:
            return fresh
        return fresh * (1 - self.age(requests) * self._loss(knobs))

    def _loss(self, knobs: Knobs) -> float:
        return 1 - knobs.decay_to / (knobs.decay_from or self._spawn_speed or knobs.tok_s)

    def acceptance(self, requests: int) -> float:
        """The share of drafted tokens accepted now; a step takes the same time at any."""
        knobs = self._knobs()
        if knobs.acceptance_to < 0:
            return knobs.acceptance
        return knobs.acceptance + (knobs.acceptance_to - knobs.acceptance) * self.age(requests)

    def tokens_per_step(self, requests: int) -> float:
        return 1 + DRAFT * self.acceptance(requests)

    def draw_luck(self) -> float:
        """The factor of one request: noise and outliers."""
        knobs = self._knobs()
        luck = max(0.05, self._random.gauss(1.0, knobs.noise)) if knobs.noise else 1.0
        return luck * 0.5 if self._random.random() < knobs.outliers else luck

    def model_factor(self, model: str) -> float:
        knobs = self._knobs()
        return knobs.second_factor if model == knobs.second_model else 1.0

    def host_factor(self) -> float:
        path = self._knobs().host_speed_file
        if path is None:
            return 1.0
        try:
            changed = path.stat().st_mtime_ns
            if changed != self._host_seen[0]:
                self._host_seen = (changed, float(path.read_text()))
        except (OSError, ValueError):
            return self._host_seen[1]  # missing or half written: as before
        return self._host_seen[1]

    def rate(self, requests: int, luck: float, context: int) -> float:
        """Tokens a second of a request at `context` tokens."""
        seconds = 1 / (self.base(requests) * luck * self.host_factor())
        return 1 / (seconds + self._knobs().ms_per_1k * context / 1_000_000)
