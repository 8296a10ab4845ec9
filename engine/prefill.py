"""Feed a prompt in chunks of bounded time, so that a long one neither trips a GPU's watchdog nor delays a cancel."""

from __future__ import annotations

import time
from collections.abc import Iterator

import mlx.core as mx

from engine.boundaries import boundaries
from engine.plain import Sequence
from engine.prefix_cache import note_mark
from engine.prefixes import Prefixes
from engine.request import Fed
from engine.rollback import can_rewind

CHUNK_S = 0.4
SMALLEST, FIRST, LARGEST = 16, 64, 2048


class Prefill:
    """Learns, over all requests, how many tokens this device takes in one chunk.

    A cache that cannot be rewound is marked where a later prompt may part from its own, which is where messages end,
    with one of `end_tokens`.
    """

    def __init__(self, prefixes: Prefixes, end_tokens: frozenset[int]) -> None:
        self._prefixes = prefixes
        self._end_tokens = end_tokens
        self._chunk = FIRST

    def feed(self, sequence: Sequence) -> Iterator[Fed]:
        """Bring all of the sequence but its last token into its cache, chunk by chunk."""
        started = time.monotonic()
        for tokens in self._prefixes.restore(sequence):
            yield Fed(tokens, time.monotonic() - started, is_restored=True)
            started = time.monotonic()
        yield from self._compute(sequence)

    def _compute(self, sequence: Sequence) -> Iterator[Fed]:
        due = len(sequence.tokens) - 1
        stops = () if can_rewind(sequence.cache) else boundaries(sequence.tokens, self._end_tokens)
        while sequence.fed < due:
            started = time.monotonic()
            stop = next((stop for stop in stops if stop > sequence.fed), due)
            chunk = sequence.tokens[sequence.fed : min(sequence.fed + self._chunk, stop)]
            sequence.forward(mx.array(chunk))
            mx.eval([layer.state for layer in sequence.cache])
            if sequence.fed in stops:
                note_mark(sequence.marks, sequence.fed, sequence.cache)
            mx.clear_cache()
            seconds = time.monotonic() - started
            if len(chunk) == self._chunk or seconds > CHUNK_S:
                self._adapt(len(chunk), seconds)
            yield Fed(len(chunk), seconds)

    def _adapt(self, tokens: int, seconds: float) -> None:
        while seconds > CHUNK_S and self._chunk > SMALLEST:
            self._chunk //= 2
            seconds /= 2
        if seconds < CHUNK_S / 3 and tokens >= self._chunk:
            self._chunk = min(self._chunk * 2, LARGEST)
