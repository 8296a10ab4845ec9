"""The gate: who goes, who waits, who is refused, and what is counted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from supervisor.shell.front import gate as gate_module
from supervisor.shell.front import turned_away
from supervisor.shell.front.gate import Gate, GateTerms, Mode
from supervisor.shell.front.held_bytes import LARGEST_BODIES, HeldBytes
from supervisor.shell.front.refusal import RefusedError
from supervisor.shell.front.ticket import InterruptedAnswerError, Ticket
from supervisor.shell.front.upstream import Upstream

FIRST = Upstream(1, "http://127.0.0.1:1")
SECOND = Upstream(2, "http://127.0.0.1:2")


class Ears:
    """What a gate told its runner."""

    def __init__(self, gate: Gate) -> None:
        self.heard: list[str] = []
        self.poison: list[tuple[str, tuple[int, ...]]] = []
        gate.on_emptied = lambda generation: self.heard.append(f"emptied {generation}")
        gate.on_idled = lambda: self.heard.append("idled")
        gate.on_held = lambda: self.heard.append("held")
        gate.on_admitted = lambda: self.heard.append("admitted")
        gate.on_poison = lambda request_id, generations: self.poison.append((request_id, generations))


def is_sent(ticket: Ticket) -> bool:
    return ticket.upstream is not None


async def refusal_of(ticket: Ticket) -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        await ticket.admitted(5.0)
    return caught.value


async def test_an_open_gate_admits_at_once_and_counts_at_once() -> None:
    gate = Gate()
    ears = Ears(gate)
    gate.open(FIRST)
    ticket = gate.enter("a")
    assert is_sent(ticket)
    assert (gate.inflight(), gate.inflight(1), gate.queued) == (1, 1, 0)
    assert ears.heard == ["admitted"]
    gate.leave(ticket)
    gate.leave(ticket)
    assert (gate.inflight(), gate.requests(1), gate.totals.requests) == (0, 1, 1)


async def test_held_requests_go_first_and_in_their_order() -> None:
    gate = Gate(max_inflight=2)
    ears = Ears(gate)
    tickets = [gate.enter(str(number)) for number in range(4)]
    assert ears.heard == ["held"] * 4
    gate.open(FIRST)
    late = gate.enter("late")
    assert [is_sent(ticket) for ticket in (*tickets, late)] == [True, True, False, False, False]
    gate.leave(tickets[0])
    gate.leave(tickets[1])
    assert [is_sent(ticket) for ticket in (*tickets, late)] == [True, True, True, True, False]
    assert gate.totals.held == 4


async def test_a_gate_that_holds_says_emptied_when_the_last_answer_ends() -> None:
    gate = Gate()
    ears = Ears(gate)
    gate.open(FIRST)
    one, other = gate.enter("a"), gate.enter("b")
    gate.hold("recycling")
    gate.leave(one)
    assert "emptied 1" not in ears.heard
    gate.leave(other)
    assert ears.heard.count("emptied 1") == 1
    gate.hold("asked again")
    assert ears.heard.count("emptied 1") == 2


async def test_a_gate_whose_last_answer_broke_waits_whether_its_worker_died(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turned_away, "LOSS_GRACE_S", 0.1)
    for is_dead in (True, False):
        gate = Gate()
        ears = Ears(gate)
        gate.open(FIRST)
        ticket = gate.enter("a")
        gate.hold("draining")
        gate.leave(ticket, is_failed=True)
        assert "emptied 1" not in ears.heard
        if is_dead:
            gate.worker_died(1)
        await asyncio.sleep(0.2)
        assert ("emptied 1" in ears.heard) is not is_dead


async def test_a_gate_that_opens_again_in_time_never_says_emptied() -> None:
    gate = Gate()
    ears = Ears(gate)
    gate.open(FIRST)
    ticket = gate.enter("a")
    gate.hold("a canary needs a quiet moment")
    gate.open(FIRST)
    gate.leave(ticket)
    assert "emptied 1" not in ears.heard


async def test_the_gate_turns_to_another_worker_in_one_step_and_tells_when_the_old_one_is_empty() -> None:
    gate = Gate(max_inflight=1)
    ears = Ears(gate)
    gate.open(FIRST)
    old, waiting = gate.enter("old"), gate.enter("waiting")
    gate.open(SECOND)
    assert waiting.upstream is SECOND
    assert "emptied 1" not in ears.heard
    gate.leave(old)
    assert ears.heard[-1] == "emptied 1"


async def test_holding_with_people_in_the_queue_says_held_again() -> None:
    gate = Gate()
    gate.enter("a")
    ears = Ears(gate)
    gate.hold("unloaded")
    assert ears.heard == ["held"]
    assert gate.totals.held == 1


async def test_a_refusing_gate_refuses_those_who_wait_too() -> None:
    gate = Gate()
    waiting = gate.enter("a")
    gate.refuse("drained by a person", 30.0)
    refused = await refusal_of(waiting)
    assert (refused.status, refused.headers) == (503, {"Retry-After": "30"})
    assert "drained by a person" in refused.message
    gate.refuse("stopped by a person")
    with pytest.raises(RefusedError) as caught:
        gate.enter("b")
    assert (caught.value.status, caught.value.headers) == (503, {})


async def test_a_full_queue_refuses_with_a_time_to_come_again() -> None:
    gate = Gate(max_queue=1)
    gate.enter("a")
    with pytest.raises(RefusedError) as caught:
        gate.enter("b")
    assert caught.value.status == 503
    assert "Retry-After" in caught.value.headers


async def test_the_bodies_of_those_who_wait_are_bounded_over_all_lanes() -> None:
    held = HeldBytes(max_body=10)
    one, other = Gate(held=held), Gate(held=held)
    waiting = [one.enter(str(number), body_bytes=10) for number in range(LARGEST_BODIES)]
    with pytest.raises(RefusedError) as caught:
        other.enter("too much", body_bytes=1)
    assert (caught.value.status, caught.value.code) == (503, "too_much_held")
    assert "max_body" in caught.value.message
    assert caught.value.headers["Retry-After"]
    one.leave(waiting[0])
    other.enter("has room now", body_bytes=10)
    one.open(FIRST)
    assert held.held == 10, "who is sent waits no more"


async def test_a_request_that_is_sent_again_waits_whatever_the_limit() -> None:
    held = HeldBytes(max_body=1)
    gate = Gate(held=held)
    gate.open(FIRST)
    ticket = gate.enter("a", body_bytes=100)
    gate.worker_died(1)
    gate.send_again(ticket)
    assert (gate.queued, held.held) == (1, 100)
    gate.refuse("stopped")
    assert held.held == 0


async def test_nobody_waits_longer_than_the_hold_timeout() -> None:
    gate = Gate(hold_timeout_s=0.02)
    gate.hold("the worker is starting")
    refused = await refusal_of(gate.enter("a"))
    assert refused.status == 503
    assert "the worker is starting" in refused.message
    assert "Retry-After" in refused.headers
    assert gate.queued == 0


async def test_new_terms_hold_from_the_next_decision() -> None:
    gate = Gate(max_inflight=1)
    gate.open(FIRST)
    gate.enter("a")
    gate.terms = GateTerms(max_inflight=2)
    assert is_sent(gate.enter("b"))


async def test_idleness_is_told_once_and_only_when_asked_for() -> None:
    gate = Gate()
    ears = Ears(gate)
    gate.open(FIRST)
    ticket = gate.enter("a")
    gate.watch_idle()
    assert "idled" not in ears.heard
    assert gate.idle_since is None
    gate.leave(ticket)
    gate.leave(gate.enter("b"))
    assert ears.heard.count("idled") == 1
    assert gate.idle_since is not None
    assert gate.idle_for(gate.idle_since + 7.0) == 7.0
    gate.hold("closed")
    assert gate.idle_for(1e12) == 0.0


async def test_a_client_that_leaves_while_it_waits_takes_no_slot() -> None:
    gate = Gate(max_inflight=1)
    first, second = gate.enter("a"), gate.enter("b")
    gate.leave(first)
    gate.open(FIRST)
    assert not is_sent(first)
    assert is_sent(second)


async def test_a_cut_interrupts_what_is_in_flight_on_that_worker_alone() -> None:
    gate = Gate()
    gate.open(FIRST)
    old = gate.enter("old")
    gate.open(SECOND)
    new = gate.enter("new")
    gate.cut(1, "shutdown")
    with pytest.raises(InterruptedAnswerError, match="shutdown"):
        async with old.answering():
            await asyncio.Event().wait()
    async with new.answering():
        pass


async def test_a_cut_of_the_stalled_spares_those_who_read() -> None:
    gate = Gate()
    gate.open(FIRST)
    reading, stalled = gate.enter("reading"), gate.enter("stalled")
    stalled.writing_since = 0.0
    gate.cut(1, "the drain's time is over", only_stalled=True)
    async with reading.answering():
        pass
    with pytest.raises(InterruptedAnswerError):
        async with stalled.answering():
            await asyncio.Event().wait()


async def test_a_request_whose_worker_died_goes_to_the_next_one() -> None:
    gate = Gate()
    gate.open(FIRST)
    ticket = gate.enter("a")
    gate.worker_died(1)
    gate.send_again(ticket)
    assert (gate.inflight(1), gate.queued) == (0, 1)
    gate.open(SECOND)
    assert ticket.upstream is SECOND
    assert (gate.totals.replayed, gate.totals.held, gate.totals.requests) == (1, 1, 1)


async def test_a_broken_connection_waits_until_the_death_is_known() -> None:
    gate = Gate()
    gate.open(FIRST)
    ticket = gate.enter("a")
    gate.send_again(ticket)
    assert not is_sent(ticket)
    assert is_sent(gate.enter("another may well be sent"))
    gate.worker_died(1)
    gate.open(SECOND)
    assert ticket.upstream is SECOND


async def test_a_connection_that_a_living_worker_broke_is_tried_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_module, "LOSS_GRACE_S", 0.01)
    gate = Gate()
    gate.open(FIRST)
    ticket = gate.enter("a")
    gate.send_again(ticket)
    assert await ticket.admitted(5.0)
    assert ticket.upstream is FIRST
    gate.send_again(ticket)
    assert (await refusal_of(ticket)).status == 502
    assert (gate.inflight(), gate.queued) == (0, 0)


@pytest.mark.parametrize("is_known_late", [False, True])
async def test_a_request_at_two_deaths_is_refused_as_poison(is_known_late: bool) -> None:
    gate = Gate()
    ears = Ears(gate)
    ticket: Ticket | None = None
    for upstream in (FIRST, SECOND):
        gate.open(upstream)
        ticket = ticket or gate.enter("poisonous")
        steps: list[Callable[[], None]] = [
            lambda upstream=upstream: gate.worker_died(upstream.generation),  # type: ignore[misc]
            lambda ticket=ticket: gate.send_again(ticket),  # type: ignore[misc]
        ]
        for step in reversed(steps) if is_known_late else steps:
            step()
    assert ticket
    refused = await refusal_of(ticket)
    assert refused.status == 500
    assert "poisonous" in refused.message
    assert refused.headers == {"x-should-retry": "false"}
    assert ears.poison == [("poisonous", (1, 2))]
    assert (gate.inflight(), gate.queued) == (0, 0)


async def test_a_dead_worker_whose_socket_lives_on_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate_module, "DEATH_GRACE_S", 0.01)
    gate = Gate()
    gate.open(FIRST)
    ticket = gate.enter("a")
    gate.worker_died(1)
    with pytest.raises(InterruptedAnswerError):
        async with ticket.answering():
            await asyncio.Event().wait()


async def test_a_gate_is_not_opened_to_a_worker_that_has_died_meanwhile() -> None:
    gate = Gate()
    gate.open(FIRST)
    gate.worker_died(1)
    gate.open(FIRST)
    ticket = gate.enter("a")
    assert not is_sent(ticket)
    gate.open(SECOND)
    assert ticket.upstream is SECOND


async def test_a_request_that_never_reached_the_worker_is_no_part_of_its_death() -> None:
    gate = Gate()
    ears = Ears(gate)
    ticket = None
    for generation in range(1, 5):
        gate.open(Upstream(generation, ""))
        ticket = ticket or gate.enter("unlucky")
        gate.send_again(ticket, was_reached=False)
        gate.worker_died(generation)
    gate.open(Upstream(9, ""))
    assert ticket
    assert is_sent(ticket)
    assert ears.poison == []
    assert (gate.totals.requests, gate.totals.replayed) == (1, 0)


async def test_a_callback_may_call_the_gate() -> None:
    gate = Gate()
    heard: list[int] = []

    def turn(generation: int) -> None:
        heard.append(generation)
        gate.open(SECOND)

    gate.on_emptied = turn
    gate.open(FIRST)
    ticket = gate.enter("a")
    gate.hold("recycling")
    waiting = gate.enter("b")
    gate.leave(ticket)
    assert heard == [1, 1], "turning to another worker tells again: who waits for it may have asked since"
    assert waiting.upstream is SECOND


async def test_ten_thousand_clients_that_leave_as_the_gate_opens_leave_nothing_behind() -> None:
    gate = Gate(max_inflight=2, max_queue=10)

    async def client(number: int) -> None:
        ticket = gate.enter(str(number))
        try:
            await ticket.admitted(None)
        finally:
            gate.leave(ticket)

    loop = asyncio.get_running_loop()
    for number in range(10_000):
        gate.hold("unloaded")
        task = loop.create_task(client(number))
        await asyncio.sleep(0)
        gate.open(FIRST)
        if number % 2:
            task.cancel()
        await asyncio.wait((task,))
    assert (gate.inflight(), gate.queued) == (0, 0)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["enter", "leave", "open", "turn", "hold", "refuse", "break", "die", "cut", "watch"]),
        st.integers(0, 7),
    ),
    max_size=60,
)


@settings(max_examples=300, deadline=None)
@given(steps=STEPS)
def test_no_order_of_events_breaks_the_gates_laws(steps: list[tuple[str, int]]) -> None:
    asyncio.run(_play(steps))


async def _play(steps: list[tuple[str, int]]) -> None:
    stage = _Stage()
    for name, number in steps:
        stage.step(name, number)
        stage.check()
    stage.finish()
    stage.check()


class _Stage:
    """A gate, its clients, and what must always be true of them."""

    def __init__(self) -> None:
        self.gate = Gate(max_inflight=2, max_queue=4)
        self.tickets: list[Ticket] = []
        self.generation = 1
        self.owed = 0
        self.emptied: list[int] = []
        self.gate.on_emptied = self._hear_emptied

    def _hear_emptied(self, generation: int) -> None:
        assert self.gate.inflight(generation) == 0
        assert self.gate.mode is not Mode.OPEN or generation != self.generation
        self.emptied.append(generation)

    def step(self, name: str, number: int) -> None:
        gate = self.gate
        flying = [ticket for ticket in self.tickets if is_sent(ticket)]
        if name == "enter":
            try:
                self.tickets.append(gate.enter(str(number)))
            except RefusedError:
                assert gate.mode is Mode.REFUSING or gate.queued == 4
        elif name == "leave" and self.tickets:
            gate.leave(self.tickets.pop(number % len(self.tickets)))
        elif name == "break" and flying:
            gate.send_again(flying[number % len(flying)])
        else:
            self._turn(name)

    def _turn(self, name: str) -> None:
        gate = self.gate
        match name:
            case "open":
                gate.open(Upstream(self.generation, ""))
            case "turn" | "die":
                self.generation += 1
                if name == "die":
                    gate.worker_died(self.generation - 1)
                else:
                    gate.open(Upstream(self.generation, ""))
            case "hold":
                gate.hold("held")
            case "refuse":
                gate.refuse("shut")
            case "cut":
                gate.cut(self.generation, "cut")
            case "watch":
                gate.watch_idle()
            case _:
                pass

    def check(self) -> None:
        gate = self.gate
        flying = [ticket for ticket in self.tickets if is_sent(ticket)]
        assert gate.inflight() == len(flying)
        assert gate.inflight() == sum(gate.inflight(generation) for generation in range(self.generation + 1))
        for generation in range(self.generation + 1):
            assert 0 <= gate.inflight(generation) <= 2
        assert (gate.idle_since is not None) == (gate.mode is Mode.OPEN and not flying and not gate.queued)
        if gate.mode is Mode.OPEN and gate.inflight(self.generation) < 2:
            assert all(self._may_wait(ticket) for ticket in self.tickets)

    @staticmethod
    def _may_wait(ticket: Ticket) -> bool:
        is_waiting = not is_sent(ticket) and not ticket._waiter.done()
        return not is_waiting or ticket.avoids is not None

    def finish(self) -> None:
        """Whatever happened, a worker that stays lets everyone go."""
        self.generation += 1
        self.gate.open(Upstream(self.generation, ""))
        for _ in range(len(self.tickets) + 1):
            for ticket in tuple(self.tickets):
                if is_sent(ticket) or ticket._waiter.done():
                    self.gate.leave(ticket)
                    self.tickets.remove(ticket)
        for ticket in self.tickets:
            assert ticket.sends == 2, "only one that was broken off twice may still be in doubt"
            self.gate.leave(ticket)
        self.tickets.clear()
        before = len(self.emptied)
        self.gate.hold("the end")
        assert self.emptied[before:] == [self.generation]
