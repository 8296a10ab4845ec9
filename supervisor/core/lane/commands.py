"""What a lane wants done. Commands are values: the runner performs them, in order, and reports back in events."""

from __future__ import annotations

from dataclasses import dataclass

from supervisor.core.account.record import RecycleRecord
from supervisor.core.samples import Purpose
from supervisor.core.terms import RemedyName, TimerName, Wish


@dataclass(frozen=True, slots=True)
class Command:
    """Anything the runner does for its lane."""


@dataclass(frozen=True, slots=True)
class AwaitRoom(Command):
    """Wait until a worker of this generation fits (memory, port, the fleet's start slots); answers RoomFound or
    RoomLacked.
    """

    generation: int
    need_bytes: int


@dataclass(frozen=True, slots=True)
class SpawnWorker(Command):
    generation: int


@dataclass(frozen=True, slots=True)
class StopWorker(Command):
    """Send the lane's stop signal to the worker's group, once.

    ``handoff_s``: before that, let it save its prefix cache for at most so long; said again with 0, the signal is due.
    ``is_last``: no other follows; a server that someone else runs is then let go, and not restarted.
    """

    generation: int
    handoff_s: float = 0.0
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class KillWorker(Command):
    """SIGKILL the worker's group and whatever descended from it."""

    generation: int


@dataclass(frozen=True, slots=True)
class OpenGate(Command):
    """Send requests, those held first, to this worker."""

    generation: int


@dataclass(frozen=True, slots=True)
class HoldGate(Command):
    """Let requests wait; answers GateEmptied once nothing is in flight.

    ``is_for_canary``: those of all lanes on the device, until this lane's gate is told anything else.
    """

    reason: str
    is_for_canary: bool = False


@dataclass(frozen=True, slots=True)
class RefuseGate(Command):
    """Refuse requests, those held too: with Retry-After if ``retry_after_s`` is given."""

    reason: str
    retry_after_s: float | None = None


@dataclass(frozen=True, slots=True)
class WatchIdle(Command):
    """Say GateIdled once, now or when nothing is in flight."""


@dataclass(frozen=True, slots=True)
class CutRequests(Command):
    """End what is in flight on this worker with an error event. ``only_stalled``: only clients that stopped reading."""

    generation: int
    reason: str
    only_stalled: bool = False


@dataclass(frozen=True, slots=True)
class RunCanary(Command):
    """Send one canary; answers SampleTaken. Void at once if the gate has not been idle for ``idle_for_s``."""

    generation: int
    prompt_tokens: int
    purpose: Purpose
    idle_for_s: float = 0.0
    has_warmup: bool = False
    """Precede it by a short request that is not timed: after a load or a long idle the first tokens are slow."""
    has_nonce: bool = False
    """Start the prompt with a random nonce, so that no cache can serve it: this run measures prefill."""
    patience_s: float = 0.0
    """How long it may wait for other lanes' requests to end."""
    model: str = ""
    """A key of `serves`; empty: the lane's own model."""


@dataclass(frozen=True, slots=True)
class CancelCanary(Command):
    pass


@dataclass(frozen=True, slots=True)
class ApplyRemedy(Command):
    """Ask the worker for a mild remedy; answers RemedyApplied, within ``within_s`` seconds."""

    generation: int
    name: RemedyName
    within_s: float


@dataclass(frozen=True, slots=True)
class ArmTimer(Command):
    """Say TimerFired(name) in ``after_s`` seconds; arming again replaces.

    ``jitter``: share by which the runner may stretch it.
    """

    name: TimerName
    after_s: float
    jitter: float = 0.0


@dataclass(frozen=True, slots=True)
class DisarmTimer(Command):
    name: TimerName


@dataclass(frozen=True, slots=True)
class AskRecycleSlot(Command):
    """Ask the fleet for one of ``fleet.max_recycling`` slots; answers RecycleSlotGranted."""


@dataclass(frozen=True, slots=True)
class ReleaseRecycleSlot(Command):
    pass


@dataclass(frozen=True, slots=True)
class WriteIntent(Command):
    """Make it durable, before a worker is stopped, that a recycle is under way."""

    record: RecycleRecord


@dataclass(frozen=True, slots=True)
class WriteRecord(Command):
    """Append the record of a finished recycle, and drop its intent."""

    record: RecycleRecord


@dataclass(frozen=True, slots=True)
class KeepWish(Command):
    """Remember over daemon restarts what a person wants of this lane."""

    wish: Wish


@dataclass(frozen=True, slots=True)
class Note(Command):
    """Write a line into the daemon's log."""

    text: str
