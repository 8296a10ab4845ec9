"""Whether a probe may be believed: not if this program was late, time jumped, or the machine was swapping meanwhile."""

from __future__ import annotations

from dataclasses import dataclass

from supervisor.core.samples import Void
from supervisor.shell.machine.host import Host

WORST_LOOP_LAG_S = 0.25
"""A loop that was late by more than this did not see tokens arrive when they did."""

WORST_SHARE_OF_MISS = 0.25
"""A probe that brought nothing was waited for; to have been late by less than this share of the wait is no excuse."""

SWAPPED_BYTES = 256 * 2**20
"""More than this moved to or from swap during one probe, and it measured the disk."""


@dataclass(frozen=True, slots=True)
class Moment:
    """How things stood when a probe began."""

    at: float
    swapped_bytes: int


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a probe is void."""

    void: Void
    detail: str


def moment(host: Host, now: float) -> Moment:
    """Take it when a probe begins."""
    return Moment(now, host.swap().moved_bytes)


def doubt(host: Host, since: Moment, *, waited_s: float = 0.0) -> Doubt | None:
    """What speaks against everything that was seen since; None if nothing does.

    ``waited_s``: for how long a probe that brought nothing was waited for.
    """
    lag_s = host.loop_lag.worst_since(since.at)
    if lag_s > max(WORST_LOOP_LAG_S, WORST_SHARE_OF_MISS * waited_s):
        return Doubt(Void.LOOP_LAG, f"this daemon was late by {lag_s:.2f} s")
    if host.clock_gaps.gap_since(since.at) > 0:
        return Doubt(Void.CLOCK_GAP, "the host slept or its clock jumped")
    swapped = host.swap().moved_bytes - since.swapped_bytes
    if swapped > SWAPPED_BYTES:
        return Doubt(Void.HOST_SLOW, f"the host moved {swapped / 1e9:.1f} GB to or from swap meanwhile")
    return None
