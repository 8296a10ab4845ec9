"""What passes of one streamed answer, counted read by read: enough to tell its rate once it has ended."""

from __future__ import annotations

import time


class StreamCount:
    """Chunks that carry tokens, and when they came; times are monotonic seconds."""

    def __init__(self) -> None:
        self.chunks = 0
        self.first_chunks = 0
        """How many came with the first read that had any."""
        self.told: int | None = None
        """Tokens of the whole answer, by the worker's own word."""
        self.is_complete = False
        self._first_at = 0.0
        self._last_at = 0.0

    def read(self, chunks: int) -> None:
        """One read brought so many."""
        if not chunks:
            return
        self._last_at = time.monotonic()
        if not self.chunks:
            self._first_at, self.first_chunks = self._last_at, chunks
        self.chunks += chunks

    @property
    def lasted_s(self) -> float:
        """From the first token to the last."""
        return self._last_at - self._first_at
