"""A fault of this program inside one lane: its workers end, its papers are closed, and a person is waited for."""

from __future__ import annotations

from pathlib import Path

from supervisor.config import lane_terms
from supervisor.core.lane import events as ev
from supervisor.core.states import LaneState
from supervisor.shell.lane.runner import Runner
from tests.config.loading import loaded
from tests.fakes import fake_command
from tests.shell.lane_surroundings import surroundings
from tests.waiting import wait_until


async def test_a_recycle_under_way_gets_its_record_and_what_the_lane_has_learned_is_kept(tmp_path: Path) -> None:
    text = f"lanes: {{chat: {{command: {fake_command()}, canary: {{max_tokens: 12}}, recycle: {{wait_idle: 60s}}}}}}"
    settings = loaded(text, folder=tmp_path).settings
    lane = settings.lanes["chat"]
    async with surroundings(tmp_path, settings) as around:
        runner = Runner(lane, lane_terms(settings, lane, memory_total_bytes=10**12, is_macos=True), around)
        await runner.open()
        runner.tell(ev.StartAsked(around.clock.now()))
        await runner.until(lambda: runner.lane.state is LaneState.SERVING or None, 30)
        ticket = runner.gate.enter("in flight")
        runner.tell(ev.RecycleAsked(around.clock.now()))
        await runner.until(lambda: runner.lane.organs.recycler.under_way, 10)
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
        runner.tell(ev.StartAsked(around.clock.now()))
        await runner.until(lambda: runner.lane.state is LaneState.SERVING or None, 30)
        runner.tell(ev.StopAsked(around.clock.now(), is_now=True))
        await runner.until(lambda: runner.is_without_worker or None, 30)
        await runner.close()


async def test_a_fault_within_a_fault_is_a_failed_lane_that_a_person_can_start_again(tmp_path: Path) -> None:
    text = f"lanes: {{chat: {{command: {fake_command()}, canary: {{max_tokens: 12}}, recycle: {{wait_idle: 60s}}}}}}"
    settings = loaded(text, folder=tmp_path).settings
    lane = settings.lanes["chat"]
    async with surroundings(tmp_path, settings) as around:
        runner = Runner(lane, lane_terms(settings, lane, memory_total_bytes=10**12, is_macos=True), around)
        await runner.open()
        runner.tell(ev.StartAsked(around.clock.now()))
        await runner.until(lambda: runner.lane.state is LaneState.SERVING or None, 30)
        ticket = runner.gate.enter("in flight")
        runner.tell(ev.RecycleAsked(around.clock.now()))
        await runner.until(lambda: runner.lane.organs.recycler.under_way, 10)
        await around.journal.close()
        runner.tell(ev.WorkerReady(around.clock.now(), runner.lane.body.active.generation))
        await runner.until(lambda: runner.lane.state is LaneState.FAILED or None, 30)
        assert "a fault of freshlane" in runner.snapshot()["reason"]
        assert runner.is_without_worker
        runner.gate.leave(ticket)
        runner.tell(ev.StartAsked(around.clock.now()))
        await runner.until(lambda: runner.lane.state is LaneState.SERVING or None, 30)
        runner.tell(ev.StopAsked(around.clock.now(), is_now=True))
        await runner.until(lambda: runner.is_without_worker or None, 30)
        await runner.close()
