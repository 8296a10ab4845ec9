"""What a canary of the active worker brings back."""

from __future__ import annotations

from supervisor.core.lane.events import RemedyApplied, SampleTaken
from supervisor.core.lane.measurer import Finding
from supervisor.core.lane.organs import Organs
from supervisor.core.states import LaneState

_S = LaneState


def sampled(lane: Organs, event: SampleTaken) -> None:
    """One run is in: act on what it says."""
    sample, body = event.sample, lane.body
    if body.state is _S.WARMING:
        finding = lane.measurer.warmed(sample)
    else:
        is_aside = lane.remedies.trial is not None or lane.last_look.is_under_way
        finding = lane.measurer.observed_aside(sample) if is_aside else lane.measurer.observed(sample, event.at)
        if sample.is_clean and sample.decode_tok_s is not None:
            lane.weigh(sample, event.at)
            lane.recycler.verified_by(sample, event.at)
    match finding:
        case Finding.ENOUGH:
            lane.open_warmed(event.at)
        case Finding.HUNG:
            lane.replace_hung(event.at, f"canaries fail one after the other: {sample.detail or sample.void}")
        case Finding.DEGRADED if not lane.recycler.under_way:
            _degraded(lane, event.at)
        case Finding.SUSPECT if not lane.recycler.under_way:
            body.enter(_S.SUSPECT, event.at, lane.judge.verdict.reason)
        case Finding.HEALTHY | Finding.HOST_SLOW if body.state is _S.SUSPECT and not lane.recycler.under_way:
            body.enter(_S.SERVING, event.at, lane.judge.verdict.reason)
        case _:
            lane.relieve(lane.remedies.measured(sample, event.at), event.at)
            if lane.last_look.looked(sample, event.at):
                lane.reopen(event.at, f"a last look: {lane.judge.verdict.reason}")


def remedied(lane: Organs, event: RemedyApplied) -> None:
    """The worker was asked for a mild remedy."""
    lane.relieve(lane.remedies.applied(event), event.at)


def _degraded(lane: Organs, at: float) -> None:
    verdict = lane.judge.verdict
    lane.body.enter(_S.SUSPECT, at, verdict.reason)
    if not lane.try_remedies(at):
        lane.recycle_degraded(at, verdict)
