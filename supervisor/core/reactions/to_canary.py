"""What a canary of the active worker brings back."""

from __future__ import annotations

from supervisor.core.events import SampleTaken
from supervisor.core.measurer import Finding
from supervisor.core.organs import Organs
from supervisor.core.states import LaneState
from supervisor.core.terms import Trigger

_S = LaneState


def sampled(lane: Organs, event: SampleTaken) -> None:
    """One run is in: act on what it says."""
    sample, body = event.sample, lane.body
    if body.state is _S.WARMING:
        finding = lane.measurer.warmed(sample)
    else:
        finding = lane.measurer.observed(sample, event.at)
        if sample.is_clean and sample.decode_tok_s is not None:
            lane.weigh(event.at)
            lane.recycler.verified_by(sample.prompt_tokens, sample.decode_tok_s, event.at)
    match finding:
        case Finding.ENOUGH:
            lane.open_warmed(event.at)
        case Finding.HUNG:
            lane.replace_hung(event.at, f"canaries fail one after the other: {sample.detail or sample.void}")
        case Finding.DEGRADED if not lane.recycler.under_way:
            _degraded(lane, event.at)
        case Finding.SUSPECT if not lane.recycler.under_way:
            body.enter(_S.SUSPECT, event.at, lane.judge.verdict.reason)
        case Finding.HEALTHY if body.state is _S.SUSPECT and not lane.recycler.under_way:
            body.enter(_S.SERVING, event.at, lane.judge.verdict.reason)
        case _:
            pass


def _degraded(lane: Organs, at: float) -> None:
    body, verdict = lane.body, lane.judge.verdict
    objection = lane.objection(at)
    if objection is None:
        body.enter(_S.SUSPECT, at, verdict.reason)
        lane.recycle(at, Trigger.DEGRADED, verdict.reason, before=verdict)
    else:
        body.enter(_S.SUSPECT, at, f"{verdict.reason}; not recycled: {objection}")
