"""When a paid drafter is asked, by the controller, on replayed costs."""

from __future__ import annotations

from engine.acceptance import Acceptance
from engine.controller import Controller
from engine.costs import Costs
from engine.drafters import Draft
from engine.shadowing import LONGEST_REST, Shadowing

PLAIN_S = 0.010


def controller(cycle_s: float = 0.013, drafting_s: float = 0.002) -> Controller:
    costs = Costs()
    for _ in range(20):
        costs.observe(0, 64, PLAIN_S)
        costs.observe(7, 64, cycle_s)
        costs.observe_drafting(7, drafting_s)
    return Controller(costs, Acceptance(15), widest=15)


def run(
    made: Controller, tokens: int, right: int, cycle_s: float = 0.013, drafting_s: float = 0.002
) -> tuple[int, float]:
    """(cycles, seconds over plain decoding's) of one sequence whose drafts are right in their first `right` tokens."""
    made.sequence_began()
    given, cycles, seconds = 0, 0, 0.0
    while given < tokens:
        made.choose(64, Draft())
        order = made.order(64, "dflash", 7)
        draft = Draft(tuple(1 if i < right else 0 for i in range(order.k)), "dflash")
        if order.k and not order.is_shadow:
            came = (1,) * (min(right, 7) + 1)
            made.cycle_ended(64, draft, min(right, 7), came, cycle_s + drafting_s, paid_s=drafting_s)
            cycles, given, seconds = cycles + 1, given + len(came), seconds + cycle_s + drafting_s
            continue
        if order.is_shadow and order.k:
            made.shadow_drafted(draft, drafting_s)
        paid_s = drafting_s if order.k else 0.0
        made.step_ended(64, (1,), PLAIN_S + paid_s, paid_s=paid_s)
        given, seconds = given + 1, seconds + PLAIN_S + paid_s
    made.sequence_ended()
    return cycles, seconds - given * PLAIN_S


def test_a_drafter_that_is_right_is_found_out_by_shadows_within_a_few_dozen_tokens():
    cycles, lost = run(controller(), 200, right=7)
    assert cycles >= 15
    assert lost < -0.5


def test_a_drafter_that_is_wrong_costs_less_than_a_hundredth_and_a_cycle():
    made = controller()
    for _ in range(10):
        cycles, lost = run(made, 400, right=0)
        assert cycles == 0
        assert lost <= 0.01 * 400 * PLAIN_S + 0.015


def test_a_drafter_that_costs_more_than_it_gives_is_not_asked():
    assert run(controller(drafting_s=0.1), 200, right=7, drafting_s=0.1)[0] == 0


def test_a_drafter_that_catches_up_in_vain_rests_for_ever_more_sequences():
    shadowing, awake = Shadowing(), 0
    for _ in range(400):
        shadowing.sequence_began()
        if shadowing.is_awake:
            awake += 1
            shadowing.caught_up()
        shadowing.sequence_ended()
    assert awake <= 7 + 400 // LONGEST_REST
    assert awake >= 5
