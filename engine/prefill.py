"""Feed a prompt in chunks of bounded time, so that a long one neither trips a GPU's watchdog nor delays a cancel."""

from __future__ import annotations

import time
from collections.abc import Iterator

import mlx.core as mx

from engine.plain import Sequence

CHUNK_S = 0.4
SMALLEST, FIRST, LARGEST = 16, 64, 2048


class Prefill:
    """Learns, over all requests, how many tokens this device takes in one chunk."""

    def __init__(self) -> None:
        self._chunk = FIRST

    def feed(self, sequence: Sequence) -> Iterator[tuple[int, float]]:
        """Feed all of the sequence but its last token; yields (tokens, seconds) after each chunk."""
        due = len(sequence.tokens) - 1
        while sequence.fed < due:
            started = time.monotonic()
            chunk = sequence.tokens[sequence.fed : min(sequence.fed + self._chunk, due)]
            sequence.forward(mx.array(chunk))
            mx.eval([layer.state for layer in sequence.cache])
            mx.clear_cache()
            seconds = time.monotonic() - started
            if len(chunk) == self._chunk or seconds > CHUNK_S:
                self._adapt(len(chunk), seconds)
            yield len(chunk), seconds

    def _adapt(self, tokens: int, seconds: float) -> None:
        while seconds > CHUNK_S and self._chunk > SMALLEST:
            self._chunk //= 2
            seconds /= 2
        if seconds < CHUNK_S / 3 and tokens >= self._chunk:
            self._chunk = min(self._chunk * 2, LARGEST)
