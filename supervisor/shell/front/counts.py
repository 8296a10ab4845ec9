"""What a gate counts."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field

KEPT_GENERATIONS = 16
KEPT_FAILURES = 1024
"""Of one worker: more than can be in flight on it at once."""


@dataclass
class GenerationCount:
    """One worker's share.

    ``progress_at``: monotonic seconds of the last byte that only a working worker sends. ``busy_since``: when the
    oldest spell of requests in flight began. To be sent a request is neither: clients that come again and again must
    not hide that none is answered.
    """

    inflight: int = 0
    requests: int = 0
    generated_tokens: int = 0
    progress_at: float | None = None
    busy_since: float | None = None
    failed_at: deque[float] = field(default_factory=lambda: deque(maxlen=KEPT_FAILURES))
    """Monotonic seconds at which requests that were sent to it last failed."""
    broke_at: float | None = None
    """Monotonic seconds at which it last broke off a request, and may have died."""


@dataclass
class Totals:
    """A lane's, since the daemon began.

    ``held``: waited because there was no worker. ``failed``: got an error of ours although the lane takes requests.
    ``cut``: answers that freshlane ended. ``requests``: sent, each once.
    """

    held: int = 0
    failed: int = 0
    replayed: int = 0
    cut: int = 0
    requests: int = 0
    generated_tokens: int = 0


class Counts:
    """The totals, and the counts of the last generations."""

    def __init__(self) -> None:
        self.totals = Totals()
        self._of: dict[int, GenerationCount] = {}

    def of(self, generation: int) -> GenerationCount:
        """The counts of one generation, begun at nothing."""
        count = self._of.get(generation)
        if count is None:
            count = self._of[generation] = GenerationCount()
            self._forget_old()
        return count

    def inflight(self) -> int:
        """Requests in flight on all workers."""
        return sum(count.inflight for count in self._of.values())

    def admitted(self, generation: int, *, is_first: bool) -> None:
        """A request is sent to this worker, for the first time or again."""
        count = self.of(generation)
        if not count.inflight:
            count.busy_since = time.monotonic()
        count.inflight += 1
        count.requests += 1
        self.totals.requests += is_first
        self.totals.replayed += not is_first

    def ended(self, generation: int) -> None:
        """A request is no longer in flight on this worker."""
        count = self.of(generation)
        count.inflight -= 1
        if not count.inflight:
            count.busy_since = None

    def failed(self, generation: int | None) -> None:
        """A request got an error of ours; ``generation``: the worker that it was last sent to, if it was sent."""
        self.totals.failed += 1
        if generation is not None:
            self.of(generation).failed_at.append(time.monotonic())

    def broke_off(self, generation: int) -> None:
        """This worker broke off a request."""
        self.of(generation).broke_at = time.monotonic()

    def broke_within(self, generation: int, seconds: float) -> bool:
        """Whether it did so in the last ``seconds``."""
        broke_at = self.of(generation).broke_at
        return broke_at is not None and time.monotonic() - broke_at < seconds

    def failed_within(self, generation: int, seconds: float) -> int:
        """Requests of this worker that failed in the last ``seconds``."""
        since = time.monotonic() - seconds
        return sum(at >= since for at in self.of(generation).failed_at)

    def taken_back(self, generation: int, *, was_first: bool) -> None:
        """A request did not reach this worker after all."""
        self.of(generation).requests -= 1
        self.totals.requests -= was_first
        self.totals.replayed -= not was_first

    def progressed(self, generation: int, tokens: int) -> None:
        """Bytes came from this worker, and with them so many tokens."""
        count = self.of(generation)
        count.progress_at = time.monotonic()
        count.generated_tokens += tokens
        self.totals.generated_tokens += tokens

    def _forget_old(self) -> None:
        ended = [generation for generation, count in self._of.items() if not count.inflight]
        for generation in sorted(ended)[: max(0, len(self._of) - KEPT_GENERATIONS)]:
            del self._of[generation]
