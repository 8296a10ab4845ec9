"""What the worker has done, as /stats tells it, in the keys of the real engine."""

from __future__ import annotations

import resource
import sys
import time
from collections import deque
from typing import Any

from tests.fake_worker.knobs import LiveKnobs
from tests.fake_worker.speed import DRAFT, Speed

WINDOW_S = 30.0


class Tally:
    def __init__(self, knobs: LiveKnobs, speed: Speed, started: float) -> None:
        self._knobs = knobs
        self._speed = speed
        self._started = started
        self._windows: dict[int, deque[tuple[float, int, float]]] = {}
        self.requests = 0  # generations begun
        self.served = 0  # generations ended, whichever way
        self.generated_tokens = 0
        self.prompt_tokens = 0
        self.cached_tokens = 0
        self.prefill_seconds = 0.0
        self.decode_seconds = 0.0
        self.steps = 0.0
        self.accepted = 0.0
        self.prefilling = 0
        self.decoding = 0
        self.calls: list[str] = []
        self.rates: deque[float] = deque(maxlen=1000)

    def count_tokens(self, context: int, tokens: int, seconds: float) -> None:
        """One step at `context` tokens gave `tokens` in `seconds`."""
        self.generated_tokens += tokens
        self.decode_seconds += seconds
        steps = tokens / self._speed.tokens_per_step(self.served)
        self.steps += steps
        self.accepted += tokens - steps
        bucket = 1 << max(8, (context - 1).bit_length())
        window = self._windows.setdefault(bucket, deque())
        now = time.monotonic()
        window.append((now, tokens, seconds))
        while window[0][0] < now - WINDOW_S:
            window.popleft()

    @property
    def phase(self) -> str:
        return "decode" if self.decoding else "prefill" if self.prefilling else "idle"

    def snapshot(self) -> dict[str, Any]:
        memory = memory_bytes()
        return {
            "phase": self.phase,
            "requests": self.requests,
            "requests_served": self.served,
            "inflight": self.requests - self.served,
            "generated_tokens": self.generated_tokens,
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": self.cached_tokens,
            "prefilled_tokens": self.prompt_tokens - self.cached_tokens,
            "prefill_seconds": round(self.prefill_seconds, 4),
            "decode_windows": self._decode_windows(),
            "phase_seconds": {"backbone": round(self.decode_seconds, 4), "draft": 0.0, "sample": 0.0, "cache": 0.0},
            "acceptance": self._acceptance(),
            "tokens_per_step": round(self.generated_tokens / self.steps, 3) if self.steps else None,
            "memory_bytes": {"active": memory, "cache": 0, "peak": memory},
            "uptime_s": round(time.monotonic() - self._started, 3),
            "nominal_tok_s": round(self._speed.base(self.served), 3),
            "rates": [round(rate, 3) for rate in self.rates],
            "calls": self.calls,
        }

    def _decode_windows(self) -> dict[str, dict[str, float]]:
        return {
            str(bucket): {"tokens": tokens, "seconds": round(seconds, 4), "tok_s": round(tokens / seconds, 2)}
            for bucket, window in sorted(self._windows.items())
            if (tokens := sum(n for _, n, _ in window)) and (seconds := sum(s for _, _, s in window)) > 0
        }

    def _acceptance(self) -> dict[str, Any]:
        cycles = round(self.steps) if self._knobs().acceptance or self.accepted else 0
        if not cycles:
            return {"cycles": 0, "drafted": 0, "accepted": 0, "rate": None, "by_position": []}
        drafted, accepted = cycles * DRAFT, round(self.accepted)
        rate = round(accepted / drafted, 4)
        return {"cycles": cycles, "drafted": drafted, "accepted": accepted, "rate": rate, "by_position": [rate] * DRAFT}


def memory_bytes() -> int:
    """The highest resident size of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
