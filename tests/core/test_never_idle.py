"""A lane whose clients leave no quiet moment: canaries get theirs by short holds."""

from __future__ import annotations

from supervisor.core.account.record import Outcome
from supervisor.core.samples import Status
from supervisor.core.states import GateMode
from supervisor.core.terms import CanaryTerms, LaneTerms, RecycleTerms
from tests.core.stage import Stage, World

HOLD_S = 30
TERMS = LaneTerms(
    canary=CanaryTerms(force_after_s=1800.0, hold_s=HOLD_S), recycle=RecycleTerms(min_uptime_s=0.0, wait_idle_s=60.0)
)


class BusyStage(Stage):
    """Requests of ``request_s``, a new one every ``every_s``."""

    def __init__(self, world: World | None = None, *, request_s: int = 20, every_s: int = 15) -> None:
        super().__init__(TERMS, world)
        self.held_s = self.longest_held_s = self.longest_of_others_s = 0
        self._request_s = request_s
        self._every_s = every_s
        self.start()

    def serve(self, seconds: int) -> None:
        ends: list[tuple[float, int]] = []
        held_s = of_others_s = 0
        for second in range(seconds):
            if second % self._every_s == 0 and self.begin_request() and self.gate_generation is not None:
                ends.append((self.at + self._request_s, self.gate_generation))
            self.run(1.0)
            is_held = self.gate is GateMode.HELD
            self.held_s += is_held
            held_s = held_s + 1 if is_held else 0
            of_others_s = of_others_s + 1 if self.holds_others else 0
            self.longest_held_s = max(self.longest_held_s, held_s)
            self.longest_of_others_s = max(self.longest_of_others_s, of_others_s)
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


def test_other_lanes_wait_for_a_short_hold_at_most_however_many_slow_canaries_are_wanted() -> None:
    stage = BusyStage(World(canary_s=8.0))
    stage.world.tok_s_of = {1: 20.0}
    stage.serve(8 * 3600)
    assert [record.outcome for record in stage.records] == [Outcome.CURED]
    assert 0 < stage.longest_of_others_s <= HOLD_S


def test_a_long_hold_begins_with_the_lane_alone() -> None:
    stage = BusyStage(request_s=100, every_s=50)
    stage.lane.organs.measurer.cadence.is_doubted_by_clients = True
    stage.serve(2 * 3600)
    assert HOLD_S < stage.longest_held_s < 240
    assert 0 < stage.longest_of_others_s <= HOLD_S
