"""What happened to a lane: the only way anything reaches it.

Past participles. ``at`` is the daemon's monotonic clock in seconds; the lane has no other clock. An event about a
worker carries its generation and is dropped when no worker of that generation is the lane's any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from supervisor.core.account.cause import NO_READING, HostReading
from supervisor.core.samples import Sample
from supervisor.core.speed.own_words import OwnWords
from supervisor.core.speed.passive import StreamRate
from supervisor.core.terms import LaneTerms, RemedyName, TimerName, Trigger


@dataclass(frozen=True, slots=True)
class Event:
    """Anything that happened."""

    at: float


@dataclass(frozen=True, slots=True)
class WorkerEvent(Event):
    """Anything that happened to one worker."""

    generation: int


# ---- asked by a person, the configuration or the daemon ----


@dataclass(frozen=True, slots=True)
class StartAsked(Event):
    """`freshlane start`, or the daemon starts an eager lane."""

    reason: str = "started by a person"
    is_resumed: bool = False
    """The daemon starts a lane that a person had drained in an earlier life: it starts, and stays drained."""
    is_return: bool = False
    """The lane was on its way out, and is in lanes.yaml again."""


@dataclass(frozen=True, slots=True)
class StopAsked(Event):
    reason: str = ""
    is_now: bool = False
    """May cut what is in flight."""
    is_shutdown: bool = False
    """The daemon stops: what a person wished for the lane stays as it is."""
    is_removal: bool = False
    """The lane is no more in lanes.yaml: likewise, but what is in flight gets the drain's time."""


@dataclass(frozen=True, slots=True)
class DrainAsked(Event):
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ResumeAsked(Event):
    pass


@dataclass(frozen=True, slots=True)
class RecycleAsked(Event):
    trigger: Trigger = Trigger.OPERATOR
    reason: str = "asked for by a person"
    is_now: bool = False


@dataclass(frozen=True, slots=True)
class ProbeAsked(Event):
    pass


@dataclass(frozen=True, slots=True)
class BaselineForgotten(Event):
    """A person wants it learned anew what fresh means."""


@dataclass(frozen=True, slots=True)
class BaselineRecalled(Event):
    """Workers have another fingerprint from now on, and a baseline belongs to one. ``baseline``: what was learned of
    this one before, as the judge wrote it; None: nothing.
    """

    fingerprint: str
    baseline: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class RoomWanted(Event):
    """Another lane lacks memory for its worker: one that is on demand and idle makes room."""

    by: str


@dataclass(frozen=True, slots=True)
class TermsChanged(Event):
    """A reload changed this lane's settings. ``needs_worker``: only a new worker can take them up."""

    terms: LaneTerms
    needs_worker: bool


@dataclass(frozen=True, slots=True)
class WindowChanged(Event):
    """The quiet hours of ``recycle.window`` began or ended."""

    is_open: bool


# ---- what the worker did ----


@dataclass(frozen=True, slots=True)
class RoomFound(WorkerEvent):
    """Memory, port and a start slot of the fleet are there: the worker may be spawned."""


@dataclass(frozen=True, slots=True)
class RoomLacked(WorkerEvent):
    """What is missing, in words.

    ``is_fleet``: other lanes are starting, which is no fault and has no deadline of its own.
    """

    reason: str
    is_fleet: bool = False


@dataclass(frozen=True, slots=True)
class WorkerSpawned(WorkerEvent):
    pid: int
    port: int


@dataclass(frozen=True, slots=True)
class SpawnFailed(WorkerEvent):
    """The command could not be executed at all."""

    reason: str


@dataclass(frozen=True, slots=True)
class StopSent(WorkerEvent):
    """It has saved what it had to save, and was sent its stop signal: its patience begins now."""


@dataclass(frozen=True, slots=True)
class WorkerReady(WorkerEvent):
    """Healthy by its body rule, its listener is ours, and a one-token request was answered."""


@dataclass(frozen=True, slots=True)
class WorkerExited(WorkerEvent):
    """``trouble``: of a server that someone else runs, why it was not restarted, in words."""

    code: int | None = None
    signal: str | None = None
    trouble: str = ""
    restart: str = ""
    """Of an attached server: how it shows that its owner restarted it, so that another process serves by now."""


@dataclass(frozen=True, slots=True)
class WorkerHung(WorkerEvent):
    evidence: str


@dataclass(frozen=True, slots=True)
class WorkerMeasured(WorkerEvent):
    """Readings, every few seconds. ``idle_s``: how long the gate has been open with nothing in flight."""

    memory_bytes: int
    requests: int
    generated_tokens: int
    idle_s: float = 0.0
    own_words: OwnWords | None = None
    """What it says of itself; None where it tells nothing, or not yet."""
    host: HostReading = NO_READING
    """The machine at the same moment."""


class RemedyAnswer(StrEnum):
    """What came of asking a worker for a remedy."""

    DONE = "done"
    ABSENT = "absent"
    """It has no such remedy."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class RemedyApplied(WorkerEvent):
    """Answer to ``ApplyRemedy``."""

    name: RemedyName
    answer: RemedyAnswer
    took_s: float = 0.0
    detail: str = ""


@dataclass(frozen=True, slots=True)
class RecordWritten(Event):
    """A recycle's record is complete. ``prefix_lost_tokens``: saved by the old worker and not restored by the new."""

    prefix_lost_tokens: int = 0


@dataclass(frozen=True, slots=True)
class RequestPoisoned(Event):
    """One request was in flight at the deaths of these generations: they do not count towards the crash loop."""

    request_id: str
    generations: tuple[int, ...]


# ---- what the gate saw ----


@dataclass(frozen=True, slots=True)
class GateEmptied(WorkerEvent):
    """The gate is turned away from this worker, and nothing of it is in flight any more."""


@dataclass(frozen=True, slots=True)
class GateIdled(Event):
    """Answer to ``WatchIdle``: nothing is in flight, with the gate open."""


@dataclass(frozen=True, slots=True)
class RequestHeld(Event):
    """A request waits at the gate of an unloaded lane."""


@dataclass(frozen=True, slots=True)
class StreamEnded(WorkerEvent):
    """A client's stream is complete, and long enough to tell its rate."""

    stream: StreamRate


# ---- measuring, time, and the fleet ----


@dataclass(frozen=True, slots=True)
class SampleTaken(WorkerEvent):
    """The canary that the lane sent came back, clean or void."""

    sample: Sample


@dataclass(frozen=True, slots=True)
class TimerFired(Event):
    name: TimerName


@dataclass(frozen=True, slots=True)
class RecycleSlotGranted(Event):
    """Answer to ``AskRecycleSlot``."""
