"""What decoding has done so far, in the numbers that /stats shows. Written by the decode thread, read by any."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict, deque
from typing import Any

from engine.costs import bucket_of
from engine.request import Fed

WINDOW_STEPS = 512
"""Steps a context bucket's decode window spans: long enough for a steady rate, short enough to show ageing."""
MAX_POSITIONS = 16


class Tally:
    """Counters, decode windows by context, phase times and acceptance of one engine."""

    def __init__(self) -> None:
        self.generated_tokens = 0
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._windows: dict[int, deque[tuple[int, float]]] = {}
        self._reached: Counter[int] = Counter()
        self._accepted: Counter[int] = Counter()

    def count_request(self, prompt_tokens: int, cached_tokens: int) -> None:
        with self._lock:
            self._counts.update(requests=1, prompt_tokens=prompt_tokens, cached_tokens=cached_tokens)

    def count_fed(self, fed: Fed) -> dict[str, float]:
        """A chunk of a prompt; returns what it adds to the request's usage."""
        with self._lock:
            if fed.is_restored:
                self._counts.update(cached_tokens=fed.tokens, restored_tokens=fed.tokens)
            else:
                self._counts.update(prefilled_tokens=fed.tokens)
            self._seconds["prefill"] += fed.seconds
        return {"prefill_s": fed.seconds, "cached_tokens": fed.tokens if fed.is_restored else 0}

    def count_step(self, context: int, tokens: int, seconds: float) -> None:
        """One decode step or cycle at `context` tokens gave `tokens` in `seconds`."""
        with self._lock:
            self.generated_tokens += tokens
            self._counts.update(steps=1)
            window = self._windows.setdefault(bucket_of(context), deque(maxlen=WINDOW_STEPS))
            window.append((tokens, seconds))

    def count_batch(self, rows: int, seconds: float) -> None:
        """One step of several sequences together; it is no measure of one sequence's speed."""
        with self._lock:
            self.generated_tokens += rows
            self._counts.update(steps=rows, batch_steps=1, batch_tokens=rows)
            self._seconds["batch"] += seconds

    def count_cycle(self, drafted: int, accepted: int) -> None:
        with self._lock:
            self._counts.update(cycles=1, drafted=drafted, accepted=accepted)
            for position in range(min(drafted, accepted + 1, MAX_POSITIONS)):
                self._reached[position] += 1
                self._accepted[position] += position < accepted

    def spend(self, phase: str, seconds: float) -> None:
        """Time of the decode thread by phase: backbone, draft, sample, cache."""
        with self._lock:
            self._seconds[phase] += seconds

    def snapshot(self) -> dict[str, Any]:
        """Plain JSON: requests, tokens, `decode_windows` by context bucket, `phase_seconds`, acceptance."""
        with self._lock:
            counts, steps = self._counts, self._counts["steps"]
            windows = {
                str(bucket): {"tokens": tokens, "seconds": round(seconds, 4), "tok_s": round(tokens / seconds, 2)}
                for bucket, window in sorted(self._windows.items())
                if (tokens := sum(n for n, _ in window)) and (seconds := sum(s for _, s in window)) > 0
            }
            return {
                "requests": counts["requests"],
                "generated_tokens": self.generated_tokens,
                "prompt_tokens": counts["prompt_tokens"],
                "cached_tokens": counts["cached_tokens"],
                "restored_tokens": counts["restored_tokens"],
                "prefilled_tokens": counts["prefilled_tokens"],
                "prefill_seconds": round(self._seconds["prefill"], 4),
                "decode_windows": windows,
                "phase_seconds": {
                    phase: round(self._seconds[phase], 4) for phase in ("backbone", "draft", "sample", "cache")
                },
                "acceptance": {
                    "cycles": counts["cycles"],
                    "drafted": counts["drafted"],
                    "accepted": counts["accepted"],
                    "rate": round(counts["accepted"] / counts["drafted"], 4) if counts["drafted"] else None,
                    "by_position": [
                        round(self._accepted[position] / reached, 4)
                        for position, reached in sorted(self._reached.items())
                    ],
                },
                "batch": {
                    "steps": counts["batch_steps"],
                    "tokens": counts["batch_tokens"],
                    "seconds": round(self._seconds["batch"], 4),
                },
                "tokens_per_step": round(self.generated_tokens / steps, 3) if steps else None,
            }
