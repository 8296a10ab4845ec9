"""One device that lanes share: who uses it now, so that no canary measures another lane's work.

Every lane of a daemon is taken to run on the same device: on a Mac and on a one-GPU box that is so, and where it is
not, a canary is only more careful than it needs to be.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from supervisor.core.samples import Void


class Device:
    """Counts loads and requests of every lane, and lets one canary run at a time."""

    def __init__(self) -> None:
        self._inflight_of: dict[str, Callable[[], int]] = {}
        self._pause_of: dict[str, Callable[[str | None], None]] = {}
        self._held_by: dict[str, str] = {}
        self._loading: set[tuple[str, int]] = set()
        self._canary_of: str | None = None
        self._void_canary: Callable[[Void], None] | None = None
        self._rests: tuple[float, str] | None = None

    def rest(self, until: float, why: str) -> None:
        """No canary before the monotonic moment ``until``."""
        self._rests = (until, why)

    def join(self, lane: str, inflight: Callable[[], int], pause: Callable[[str | None], None]) -> None:
        """A lane is there; ``inflight`` tells how many of its requests are in flight, ``pause`` lets others wait."""
        self._inflight_of[lane] = inflight
        self._pause_of[lane] = pause
        self._pause_others()

    def leave(self, lane: str) -> None:
        """A lane is gone."""
        self._inflight_of.pop(lane, None)
        self._pause_of.pop(lane, None)
        self.let_go(lane)
        self._loading = {load for load in self._loading if load[0] != lane}

    def inflight(self) -> int:
        """Requests in flight of all lanes."""
        return sum(count() for count in self._inflight_of.values())

    def hold(self, lane: str) -> None:
        """A canary of ``lane`` needs a quiet moment: requests of all other lanes wait until it lets go."""
        self._held_by[lane] = f"a canary of {lane} needs a quiet moment"
        self._pause_others()

    def let_go(self, lane: str) -> None:
        """The moment is over, or is not wanted any more."""
        if self._held_by.pop(lane, None):
            self._pause_others()

    def _pause_others(self) -> None:
        for lane, pause in self._pause_of.items():
            pause(next((why for holder, why in self._held_by.items() if holder != lane), None))

    def busy_with(self, lane: str, generation: int) -> str | None:
        """What keeps this worker of ``lane`` from being measured now, in words; None if nothing does."""
        if self._rests and time.monotonic() < self._rests[0]:
            return self._rests[1]
        if self._canary_of is not None:
            return f"a canary of {self._canary_of} runs"
        loading = sorted({loader for loader, _ in self._loading - {(lane, generation)}})
        if loading:
            return f"{', '.join(loading)} loads a model"
        serving = sorted(other for other, count in self._inflight_of.items() if other != lane and count() > 0)
        return f"{', '.join(serving)} answers requests" if serving else None

    @contextmanager
    def canary(self, lane: str, void: Callable[[Void], None]) -> Iterator[None]:
        """Hold the device for a canary of ``lane``; ``void`` is called once if somebody disturbs it."""
        self._canary_of, self._void_canary = lane, void
        try:
            yield
        finally:
            self._canary_of = self._void_canary = None

    def request_arrived(self, lane: str) -> None:
        """A client's request is about to be sent: a canary that runs is void, at once."""
        self._disturb(Void.CLIENT_ARRIVED if lane == self._canary_of else Void.DEVICE_BUSY)

    def load_began(self, lane: str, generation: int) -> None:
        """A worker of ``lane`` starts to load."""
        self._loading.add((lane, generation))
        self._disturb(Void.DEVICE_BUSY)

    def load_ended(self, lane: str, generation: int) -> None:
        """The worker is ready, or gone."""
        self._loading.discard((lane, generation))

    def _disturb(self, reason: Void) -> None:
        void, self._void_canary = self._void_canary, None
        if void:
            void(reason)
