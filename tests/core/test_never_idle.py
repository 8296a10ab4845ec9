"""A lane whose clients leave no quiet moment: canaries get theirs by short holds."""

from __future__ import annotations

from supervisor.core.record import Outcome
from supervisor.core.samples import Status
from supervisor.core.states import GateMode
from supervisor.core.terms import CanaryTerms, LaneTerms, RecycleTerms
from tests.core.stage import Stage

REQUEST_S = 20
EVERY_S = 15
TERMS = LaneTerms(
    canary=CanaryTerms(force_after_s=1800.0, hold_s=30.0), recycle=RecycleTerms(min_uptime_s=0.0, wait_idle_s=60.0)
)


class BusyStage(Stage):
    """Requests of 20 s, a new one every 15 s."""

    def __init__(self) -> None:
        super().__init__(TERMS)
        self.held_s = 0
        self.start()

    def serve(self, seconds: int) -> None:
        ends: list[tuple[float, int]] = []
        for second in range(seconds):
            if second % EVERY_S == 0 and self.begin_request() and self.gate_generation is not None:
                ends.append((self.at + REQUEST_S, self.gate_generation))
            self.run(1.0)
            self.held_s += self.gate is GateMode.HELD
            for end in [end for end in ends if end[0] <= self.at]:
                ends.remove(end)
                if self.inflight.get(end[1], 0):
                    self.end_request(end[1])


def test_it_is_measured_twice_an_hour_and_holds_clients_for_seconds() -> None:
    stage = BusyStage()
    before = stage.lane.organs.judge.verdict.at
    stage.serve(4 * 3600)
    verdict = stage.lane.organs.judge.verdict
    assert verdict.status is Status.HEALTHY
    assert verdict.at > before + 3 * 3600
    assert 10 < stage.held_s < 0.02 * 4 * 3600
    assert stage.cut == 0


def test_an_aged_one_is_found_and_replaced_without_cutting_anyone() -> None:
    stage = BusyStage()
    stage.world.tok_s_of = {1: 20.0}
    stage.serve(4 * 3600)
    assert [record.outcome for record in stage.records] == [Outcome.CURED]
    assert stage.gate_generation == 2
    assert stage.cut == 0
