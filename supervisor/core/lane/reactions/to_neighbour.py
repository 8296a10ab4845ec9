"""What happens to a worker beside the active one: a candidate, or one that retires."""

from __future__ import annotations

from supervisor.core.lane.commands import CutRequests, SpawnWorker
from supervisor.core.lane.events import (
    GateEmptied,
    RoomFound,
    RoomLacked,
    SampleTaken,
    SpawnFailed,
    WorkerEvent,
    WorkerExited,
    WorkerHung,
    WorkerReady,
    WorkerSpawned,
)
from supervisor.core.lane.organs import Organs
from supervisor.core.lane.overlap import Proof
from supervisor.core.lane.reactions import to_worker
from supervisor.core.samples import Sample
from supervisor.core.terms import TimerName
from supervisor.core.workers import Role


def react(lane: Organs, event: WorkerEvent, role: Role) -> None:
    """Any event of a worker that is not the active one."""
    match role:
        case Role.CANDIDATE:
            _of_candidate(lane, event)
        case Role.RETIRING:
            _of_retiring(lane, event)
        case _:
            lane.body.note(f"{type(event).__name__} of generation {event.generation} came after its end: dropped")


def _of_candidate(lane: Organs, event: WorkerEvent) -> None:
    body = lane.body
    match event:
        case RoomFound():
            body.disarm(TimerName.ROOM)
            body.say(SpawnWorker(event.generation))
            body.arm(TimerName.START, body.terms.start_timeout_s)
        case RoomLacked(reason=reason, is_fleet=is_fleet):
            body.note(f"the new worker waits: {reason}")
            if is_fleet:
                body.arm(TimerName.ROOM, body.terms.memory_timeout_s)
        case WorkerSpawned():
            to_worker.spawned(lane, event)
        case WorkerReady():
            body.disarm(TimerName.START)
            if body.workers.candidate:
                body.workers.candidate.ready_at = event.at
            lane.overlap.candidate_ready(event.at)
        case SampleTaken(sample=sample):
            _sampled(lane, sample, event.at)
        case WorkerHung(evidence=evidence):
            lane.overlap.candidate_lost(event.at, evidence)
            lane.measurer.begin_cadence(event.at)
        case SpawnFailed() | WorkerExited():
            why = event.reason if isinstance(event, SpawnFailed) else f"it exited with code {event.code}"
            lost(lane, event.at, why)
        case _:
            pass  # readings of a worker that does not serve yet


def lost(lane: Organs, at: float, reason: str) -> None:
    """The candidate is gone before it could take over."""
    lane.body.workers.candidate = None
    lane.overlap.candidate_lost(at, reason)
    lane.measurer.begin_cadence(at)


def _sampled(lane: Organs, sample: Sample, at: float) -> None:
    match lane.overlap.proved(sample, at):
        case Proof.TOOK_OVER:
            lane.measurer.adopt(lane.overlap.proof)
            lane.measure_on(at)
        case Proof.DISCARDED:
            lane.measurer.begin_cadence(at)
        case _:
            pass


def _of_retiring(lane: Organs, event: WorkerEvent) -> None:
    match event:
        case GateEmptied():
            lane.overlap.retired_emptied(event.generation, event.at)
        case WorkerExited() | SpawnFailed():
            lane.overlap.retired_gone(event.generation, event.at)
        case WorkerSpawned():
            to_worker.spawned(lane, event)
        case WorkerHung(evidence=evidence):
            lane.body.say(CutRequests(event.generation, evidence))
        case _:
            pass  # its speed and health no longer matter
