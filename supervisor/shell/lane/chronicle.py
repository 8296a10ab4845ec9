"""Tells the world what a lane does: each change of state, each sample and each verdict, to log, history and events."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

import structlog

from supervisor.core.lane.lane import Lane
from supervisor.core.samples import Sample, Status
from supervisor.shell.lane.surroundings import Surroundings

log = structlog.get_logger(__name__)


class Chronicle:
    """One lane's; reads after each event, never changes anything."""

    def __init__(self, lane: str, around: Surroundings) -> None:
        self.samples: Counter[str] = Counter()
        """Canary runs since the daemon began, by ``clean`` or the reason of the void."""
        self._lane = lane
        self._around = around
        self._told: tuple[str, str] = ("", "")
        self._status: Status | None = None

    def look(self, lane: Lane) -> None:
        """Say what is new about the lane."""
        state, reason = lane.state.value, lane.body.words
        if (state, reason) != self._told:
            was, self._told = self._told[0], (state, reason)
            document = {"state": state, "was": was, "reason": reason, "next_action": lane.next_action}
            log.info("lane_state", lane=self._lane, **document)
            self._around.history.add_change(self._lane, document)
            self._publish("state", document)
        verdict = lane.organs.judge.verdict
        if verdict.status is not self._status:
            self._status = verdict.status
            self._publish("verdict", {"status": verdict.status.value, "reason": verdict.reason, "ratio": verdict.ratio})

    def sampled(self, sample: Sample) -> None:
        """A canary came back."""
        self.samples[sample.void.value if sample.void else "clean"] += 1
        self._around.history.add_sample(self._lane, sample)
        self._publish("sample", asdict(sample))
        log.debug("canary", lane=self._lane, **asdict(sample))

    def recycled(self, record: dict[str, Any]) -> None:
        """A recycle has its record."""
        log.info(
            "lane_recycled", lane=self._lane, outcome=record["outcome"], trigger=record["trigger"], id=record["id"]
        )
        self._publish("recycle", record)

    def _publish(self, kind: str, document: dict[str, Any]) -> None:
        self._around.events.publish(kind, {"lane": self._lane, **document})
