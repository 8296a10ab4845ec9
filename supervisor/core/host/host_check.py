"""Whether it is the machine that is slow, and by how much, so far as its reference and the other lanes can tell.

A run on a machine that is clearly slow says nothing of the worker; on one that is a little slow, so much is taken off.
Only what stands out of the reference's own scatter counts, so a noisy machine is a weak excuse; and only as much of it
as this lane's workers have been found to feel.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from supervisor.core.host.sensitivity import Sensitivity
from supervisor.core.host.usual_time import UsualTime
from supervisor.core.words import share

VOID_FROM = 0.10
"""Slowness of the machine (logarithm) from which a run is void."""

OWN_CORES = 0.5
"""A worker that uses more of the processor than this while it has nothing to do slows the reference itself."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How long the reference took, in seconds; None where it was not read. ``own_cores``: what the lane's own worker
    used of the processor meanwhile.
    """

    seconds: float | None = None
    own_cores: float = 0.0

    @property
    def log_s(self) -> float | None:
        """Its logarithm; None where it says nothing of the machine."""
        if self.seconds is None or not 0.0 < self.seconds < math.inf or self.own_cores > OWN_CORES:
            return None
        return math.log(self.seconds)


@dataclass(frozen=True, slots=True)
class HostFinding:
    """``slowness`` is a logarithm; ``words`` say what shows it, and are empty unless ``is_slow``."""

    slowness: float = 0.0
    words: str = ""

    @property
    def is_slow(self) -> bool:
        """Whether a run meanwhile is void."""
        return bool(self.words)


class HostCheck:
    """One lane's. A run comes with the readings right before and right after it."""

    def __init__(self) -> None:
        self._usual = UsualTime()
        self._sensitivity = Sensitivity()

    def find(self, before: Reading, after: Reading, common_fall: float = 0.0) -> HostFinding:
        """What the readings tell, and by how much all lanes fell together (``CommonFall.depth``)."""
        log_s = _faster(before, after)
        slowness = self._sensitivity.factor * self._shown(log_s)
        if slowness > VOID_FROM and log_s is not None:
            times = math.exp(self._usual.excess(log_s))
            return HostFinding(slowness, f"a fixed piece of work took this machine {times:.2f} times as long as usual")
        if common_fall > VOID_FROM:
            left = math.exp(-common_fall)
            return HostFinding(
                common_fall, f"all lanes fell to {share(left)} of their rates or below in the same minutes"
            )
        return HostFinding(slowness)

    def learn(
        self,
        at: float,
        before: Reading,
        after: Reading,
        *,
        size: int,
        log_rate: float,
        found: HostFinding,
        is_well: bool,
    ) -> None:
        """A run that gave a rate, as it was measured; ``is_well``: nobody suspects its worker."""
        log_s = _faster(before, after)
        if log_s is None:
            return
        shown = self._shown(log_s)
        self._sensitivity.learn(size, log_rate, shown, is_slow=found.is_slow)
        self._usual.found(at, is_slow=shown > VOID_FROM)
        if is_well and not found.is_slow:
            for reading in (before, after):
                if reading.log_s is not None:
                    self._usual.add(reading.log_s)

    def _shown(self, log_s: float | None) -> float:
        return 0.0 if log_s is None else self._usual.slowness(log_s)

    def to_json(self) -> dict[str, Any]:
        """What outlives the daemon."""
        return {"usual": self._usual.to_json(), "sensitivity": self._sensitivity.to_json()}

    def restore(self, document: object) -> None:
        """Take up what ``to_json`` gave; anything that cannot be read is left out."""
        self._usual, self._sensitivity = UsualTime(), Sensitivity()
        if isinstance(document, Mapping):
            self._usual.restore(document.get("usual"))
            self._sensitivity.restore(document.get("sensitivity"))


def _faster(before: Reading, after: Reading) -> float | None:
    """The reading that shows less: a machine that is slow is so before and after, a hiccup is not."""
    return min((each.log_s for each in (before, after) if each.log_s is not None), default=None)
