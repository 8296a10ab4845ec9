"""A fault of this program inside one lane: its workers end, its papers are closed, and a person is waited for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from supervisor.config import lane_terms
from supervisor.core.lane import events as ev
from supervisor.core.states import LaneState
from supervisor.shell.front.ticket import Ticket
from supervisor.shell.lane.runner import Runner
from supervisor.shell.lane.surroundings import Surroundings
from tests.config.loading import loaded
from tests.fakes import fake_command
from tests.shell.lane_surroundings import surroundings
from tests.waiting import wait_until


@asynccontextmanager
async def amid_a_recycle(folder: Path) -> AsyncIterator[tuple[Surroundings, Runner, Ticket]]:
    """A lane that a person has told to recycle, and that a request in flight keeps from it."""
    text = f"lanes: {{chat: {{command: {fake_command()}, canary: {{max_tokens: 12}}, recycle: {{wait_idle: 60s}}}}}}"
    settings = loaded(text, folder=folder).settings
    lane = settings.lanes["chat"]
    async with surroundings(folder, settings) as around:
        runner = Runner(lane, lane_terms(settings, lane, memory_total_bytes=10**12, is_macos=True), around)
        await runner.open()
        runner.tell(ev.StartAsked(around.clock.now()))
        await runner.until(lambda: runner.lane.state is LaneState.SERVING or None, 30)
        ticket = runner.gate.enter("in flight")
        runner.tell(ev.RecycleAsked(around.clock.now()))
        await runner.until(lambda: runner.lane.organs.recycler.under_way, 10)
        yield around, runner, ticket


async def started_and_stopped(around: Surroundings, runner: Runner) -> None:
    """A person starts the lane anew, and it serves; then it ends."""
    runner.tell(ev.StartAsked(around.clock.now()))
    await runner.until(lambda: runner.lane.state is LaneState.SERVING or None, 30)
    runner.tell(ev.StopAsked(around.clock.now(), is_now=True))
    await runner.until(lambda: runner.is_without_worker or None, 30)
    await runner.close()


async def test_a_recycle_under_way_gets_its_record_and_what_the_lane_has_learned_is_kept(tmp_path: Path) -> None:
    async with amid_a_recycle(tmp_path) as (around, runner, ticket):
        await wait_until(lambda: runner.lane.body.workers.peak_memory_bytes, 10)
        peak = runner.lane.body.workers.peak_memory_bytes
        runner.tell(ev.WorkerReady(around.clock.now(), runner.lane.body.active.generation))
        await runner.until(lambda: runner.lane.state is LaneState.FAILED or None, 30)
        runner.gate.leave(ticket)
        assert runner.is_without_worker
        assert around.recycles.holders == ()
        [record] = await around.journal.records("chat")
        assert (record["trigger"], record["outcome"]) == ("operator", "failed")
        assert runner.last_record
        assert runner.last_record["id"] == record["id"]
        assert runner.lane.body.workers.peak_memory_bytes >= peak
        await started_and_stopped(around, runner)


async def test_a_fault_within_a_fault_is_a_failed_lane_that_a_person_can_start_again(tmp_path: Path) -> None:
    async with amid_a_recycle(tmp_path) as (around, runner, ticket):
        await around.journal.close()
        runner.tell(ev.WorkerReady(around.clock.now(), runner.lane.body.active.generation))
        await runner.until(lambda: runner.lane.state is LaneState.FAILED or None, 30)
        assert "a fault of freshlane" in runner.snapshot()["reason"]
        assert runner.is_without_worker
        runner.gate.leave(ticket)
        await started_and_stopped(around, runner)
