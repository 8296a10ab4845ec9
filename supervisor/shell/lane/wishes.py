"""What a person asks of a lane: whether it means anything now, and, if wanted, how it came out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol, get_args

from supervisor.core.lane import events as ev
from supervisor.core.lane.lane import Lane
from supervisor.core.states import SERVES, LaneState
from supervisor.core.terms import Trigger
from supervisor.shell.front.refusal import RefusedError

What = Literal["probe", "recycle", "drain", "resume", "start", "stop"]
WHATS: tuple[What, ...] = get_args(What)

_S = LaneState
GRACE_S = 30.0
"""Beyond what the lane's own deadlines allow, before a person's wait ends."""

REST = frozenset({_S.STOPPED, _S.FAILED})


class MeaninglessWishError(RefusedError):
    """The lane's state makes the wish meaningless; the text says which state, and why."""

    def __init__(self, message: str) -> None:
        super().__init__(409, "refused", message)


class NotInTimeError(RefusedError):
    """What was asked for is under way; its end was not seen within the deadline."""

    def __init__(self, message: str) -> None:
        super().__init__(504, "not_in_time", message)


class Asked(Protocol):
    """What a wish needs of a lane's runner."""

    lane: Lane
    last_record: dict[str, Any] | None

    def tell(self, event: ev.Event) -> None:
        """Queue an event."""

    async def until(self, fact: Callable[[], dict[str, Any] | None], within_s: float) -> dict[str, Any]:
        """Wait until ``fact`` gives something; raises TimeoutError."""

    def snapshot(self) -> dict[str, Any]:
        """The lane as the API shows it."""


async def ask(runner: Asked, what: What, at: float, reason: str, *, now: bool, wait: bool) -> dict[str, Any]:
    """Tell the lane.

    Raises:
        MeaninglessWishError: it would do nothing in this state.
        NotInTimeError: the outcome was waited for, and did not come.
    """
    name = runner.lane.body.name
    event = _event(what, reason, at, is_now=now)
    objection = runner.lane.objection(event)
    if objection:
        raise MeaninglessWishError(f"{name}: {what} would do nothing; {objection}")
    is_done = _outcome(runner, what)
    runner.tell(event)
    if not wait:
        return {"lane": name, "asked": what}
    try:
        outcome = await runner.until(is_done, _patience_s(runner, what))
    except TimeoutError:
        raise NotInTimeError(f"{name}: {what} is under way; see `freshlane status`") from None
    return {"lane": name, "asked": what, **outcome}


def _event(what: What, reason: str, at: float, *, is_now: bool) -> ev.Event:
    match what:
        case "start":
            return ev.StartAsked(at, reason or "started by a person")
        case "stop":
            return ev.StopAsked(at, reason, is_now=is_now)
        case "drain":
            return ev.DrainAsked(at, reason)
        case "resume":
            return ev.ResumeAsked(at)
        case "probe":
            return ev.ProbeAsked(at)
        case "recycle":
            return ev.RecycleAsked(at, Trigger.OPERATOR, reason or "asked for by a person", is_now=is_now)


def _outcome(runner: Asked, what: What) -> Callable[[], dict[str, Any] | None]:
    """A fact to wait for: None until it is there, then what to answer."""
    if what == "recycle":
        return _new_record(runner)
    if what == "probe":
        return _new_sample(runner)
    wanted = {
        "start": SERVES | {_S.DRAINED, _S.UNLOADED, _S.FAILED, _S.BLOCKED},
        "resume": SERVES | {_S.FAILED, _S.STOPPED},
        "drain": REST | {_S.DRAINED},
        "stop": REST,
    }[what]

    def rests() -> dict[str, Any] | None:
        state = runner.lane.state
        return {"state": state.value, "reason": runner.lane.body.reason} if state in wanted else None

    return rests


def _new_record(runner: Asked) -> Callable[[], dict[str, Any] | None]:
    before = runner.last_record

    def is_there() -> dict[str, Any] | None:
        record = runner.last_record
        return {"recycle": record} if record is not None and record is not before else None

    return is_there


def _new_sample(runner: Asked) -> Callable[[], dict[str, Any] | None]:
    before = runner.lane.organs.measurer.last_sample

    def is_there() -> dict[str, Any] | None:
        sample = runner.lane.organs.measurer.last_sample
        is_answer = sample is not None and sample is not before and sample.is_clean
        return {"sample": runner.snapshot()["last_probe"]} if is_answer else None

    return is_there


def _patience_s(runner: Asked, what: What) -> float:
    terms = runner.lane.body.terms
    start = terms.memory_timeout_s + terms.start_timeout_s + terms.warm_timeout_s
    by_what = {
        "start": start,
        "resume": start,
        "drain": terms.drain_timeout_s,
        "stop": 2 * terms.drain_timeout_s,
        "probe": terms.canary.force_after_s,
        "recycle": terms.recycle.wait_idle_s + terms.drain_timeout_s + start + terms.recycle.verify_timeout_s,
    }
    return by_what[what] + GRACE_S
