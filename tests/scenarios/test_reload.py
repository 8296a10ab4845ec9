"""A reload is checked whole and applied whole, and touches only what changed."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

from tests.fakes import expected_text
from tests.scenarios.daemon_process import RunningDaemon, running_daemon
from tests.scenarios.quick_lanes import ask, begin, chat, config, quick_lane
from tests.scenarios.streaming_clients import Answer, read
from tests.waiting import wait_until


async def pid(daemon: RunningDaemon, lane: str) -> int:
    return int((await daemon.serving(lane))["worker"]["pid"])


async def in_flight(daemon: RunningDaemon, lane: str) -> None:
    async def fact() -> bool:
        return bool((await daemon.lane(lane))["inflight"])

    await wait_until(fact, 10, "a request in flight")


async def reload(daemon: RunningDaemon, whole: dict[str, Any]) -> dict[str, Any]:
    daemon.write_config(whole)
    status, answer = await daemon.post("/api/reload")
    assert status == 200, answer
    return dict(answer)


def is_whole(text: str, prompt: str, length: int) -> bool:
    answer = Answer(prompt, status=200, expected=expected_text(prompt, length))
    read(answer, text.encode())
    return answer.is_whole


async def test_a_reload_leaves_untouched_lanes_their_workers_and_their_streams(tmp_path: Path) -> None:
    kept, other = quick_lane({"tok_s": 40}), quick_lane({"tok_s": 41})
    async with running_daemon(tmp_path, config(kept=kept, updated=kept, replaced=other, gone=other)) as daemon:
        pids = {lane: await pid(daemon, lane) for lane in ("kept", "updated", "replaced", "gone")}
        streams = {lane: begin(daemon, chat(f"to {lane}", max_tokens=120, model=lane)) for lane in pids}
        for lane in pids:
            await in_flight(daemon, lane)
        threshold = {**kept, "degraded": {"below": 0.8}, "max_inflight": 3}
        changed = {**other, "env": {"OTHER": "1"}}
        answer = await reload(daemon, config(kept=kept, updated=threshold, replaced=changed, added=kept))
        assert answer["lanes"] == {
            "kept": "kept",
            "updated": "updated",
            "replaced": "recycled",
            "gone": "removed",
            "added": "added",
        }
        assert answer["needs_restart"] == []
        for lane, stream in streams.items():
            status, text = await stream
            assert (lane, status, is_whole(text, f"to {lane}", 120)) == (lane, 200, True)
        assert await pid(daemon, "kept") == pids["kept"]
        assert await pid(daemon, "updated") == pids["updated"]
        await daemon.serving("added")

        async def is_replaced() -> bool:
            return await pid(daemon, "replaced") != pids["replaced"]

        await wait_until(is_replaced, 30, "a new worker of the changed lane")
        assert (await daemon.recycles("replaced"))[0]["trigger"] == "config"
        status, text = await ask(daemon, chat("after", model="replaced"))
        assert (status, is_whole(text, "after", 8)) == (200, True)

        async def is_gone() -> bool:
            return (await ask(daemon, chat(model="gone")))[0] == 404

        await wait_until(is_gone, 20, "the removed lane to be gone")
        assert not Path(f"/proc/{pids['gone']}").exists()


async def test_a_hangup_reloads_and_kills_nothing(tmp_path: Path) -> None:
    async with running_daemon(tmp_path, config(worker=quick_lane())) as daemon:
        before = await pid(daemon, "worker")
        daemon.write_config(config(worker=quick_lane(max_queue=3), second=quick_lane()))
        os.kill(daemon.pid, signal.SIGHUP)
        await wait_until(lambda: '"event": "reloaded"' in daemon.log(), 10, "the reload")
        await daemon.serving("second")
        assert await pid(daemon, "worker") == before
        for _ in range(5):
            os.kill(daemon.pid, signal.SIGHUP)
        await wait_until(lambda: daemon.log().count('"event": "reloaded"') >= 2, 10, "another reload")
        assert await pid(daemon, "worker") == before


async def test_a_bad_file_changes_nothing_and_every_error_is_told(tmp_path: Path) -> None:
    async with running_daemon(tmp_path, config(worker=quick_lane())) as daemon:
        before = await pid(daemon, "worker")
        bad = quick_lane(max_inflght=3, start_timeout="5 parsecs")
        daemon.write_config(config(worker=bad, second=quick_lane()))
        status, answer = await daemon.post("/api/reload")
        assert 400 <= status < 500
        assert "max_inflight" in str(answer)
        assert "start_timeout" in str(answer)
        os.kill(daemon.pid, signal.SIGHUP)
        await wait_until(lambda: "reload_refused" in daemon.log(), 10, "the refusal in the log")
        assert await pid(daemon, "worker") == before
        assert [lane["name"] for lane in (await daemon.get("/api/lanes"))["lanes"]] == ["worker"]
        daemon.config_path.unlink()
        status, answer = await daemon.post("/api/reload")
        assert 400 <= status < 500
        assert str(daemon.config_path) in str(answer)
        assert (await ask(daemon, chat()))[0] == 200
        assert await pid(daemon, "worker") == before


async def test_keys_that_need_a_new_daemon_are_named(tmp_path: Path) -> None:
    async with running_daemon(tmp_path, config(worker=quick_lane())) as daemon:
        before = await pid(daemon, "worker")
        whole = {**config(worker=quick_lane()), "state_dir": str(tmp_path / "elsewhere"), "listen": "127.0.0.1:1"}
        answer = await reload(daemon, whole)
        assert sorted(answer["needs_restart"]) == ["listen", "state_dir"]
        assert answer["lanes"] == {"worker": "kept"}
        assert await pid(daemon, "worker") == before
        assert (await ask(daemon, chat()))[0] == 200
        again = await reload(daemon, whole)
        assert sorted(again["needs_restart"]) == ["listen", "state_dir"]


async def test_an_alias_moves_between_lanes_and_names_the_other_ones_model(tmp_path: Path) -> None:
    one = quick_lane({"model": "one", "strict_model": True}, served_model="one")
    two = quick_lane({"model": "two", "strict_model": True}, served_model="two")
    async with running_daemon(tmp_path, config(a=two, b={**one, "aliases": ["fast"]})) as daemon:
        pids = [await pid(daemon, "a"), await pid(daemon, "b")]
        assert (await ask(daemon, chat(model="fast")))[0] == 200
        answer = await reload(daemon, config(a={**two, "aliases": ["fast"]}, b=one))
        assert answer["lanes"] == {"a": "updated", "b": "updated"}
        status, text = await ask(daemon, chat("moved", model="fast"))
        assert (status, is_whole(text, "moved", 8)) == (200, True), text
        assert pids == [await pid(daemon, "a"), await pid(daemon, "b")]
        assert (await daemon.lane("a"))["totals"]["requests"] == 1
        answer = await reload(daemon, config(a={**two, "aliases": ["fast"]}, c={**one, "aliases": ["b"]}))
        status, text = await ask(daemon, chat("the name of a lane that is going", model="b"))
        assert status == 200, text


async def test_a_removed_lane_gives_its_alias_away_at_once(tmp_path: Path) -> None:
    slow = quick_lane({"tok_s": 20}, aliases=["fast"])
    async with running_daemon(tmp_path, config(kept=quick_lane(), zombie=slow)) as daemon:
        await daemon.serving("kept")
        await daemon.serving("zombie")
        stream = begin(daemon, chat("long", max_tokens=80, model="fast"))
        await in_flight(daemon, "zombie")
        await reload(daemon, config(kept=quick_lane(aliases=["fast"])))
        assert (await ask(daemon, chat(model="fast")))[0] == 200
        status, text = await stream
        assert (status, is_whole(text, "long", 80)) == (200, True)


async def test_a_lane_that_is_removed_and_added_again_while_it_drains_serves(tmp_path: Path) -> None:
    slow = quick_lane({"tok_s": 30})
    async with running_daemon(tmp_path, config(kept=quick_lane(), back=slow)) as daemon:
        await daemon.serving("back")
        stream = begin(daemon, chat("long", max_tokens=90, model="back"))
        await in_flight(daemon, "back")
        assert (await reload(daemon, config(kept=quick_lane())))["lanes"]["back"] == "removed"
        assert (await reload(daemon, config(kept=quick_lane(), back=slow)))["lanes"]["back"] == "added"
        status, text = await ask(daemon, chat("again", model="back"))
        assert (status, is_whole(text, "again", 8)) == (200, True), text
        status, text = await stream
        assert (status, is_whole(text, "long", 90)) == (200, True)


async def test_many_reloads_at_once_leave_what_the_file_says(tmp_path: Path) -> None:
    async with running_daemon(tmp_path, config(worker=quick_lane())) as daemon:
        before = await pid(daemon, "worker")
        daemon.write_config(config(worker=quick_lane(), second=quick_lane(start="on_demand")))
        answers = await asyncio.gather(*(daemon.post("/api/reload") for _ in range(10)))
        assert {status for status, _ in answers} == {200}
        assert [answer["lanes"]["second"] for _, answer in answers].count("added") == 1
        assert await pid(daemon, "worker") == before
        assert (await ask(daemon, chat(model="second")))[0] == 200


async def test_a_recycle_that_a_reload_owes_is_tried_again_when_a_stream_outlasted_it(tmp_path: Path) -> None:
    slow = quick_lane({"tok_s": 20}, recycle={"wait_idle": "0s", "max_hold": "1s"})
    slow["canary"] = {**slow["canary"], "every": "3s", "idle_for": "1h"}
    async with running_daemon(tmp_path, config(worker=slow)) as daemon:
        before = await pid(daemon, "worker")
        stream = begin(daemon, chat("long", max_tokens=120))
        await in_flight(daemon, "worker")
        await reload(daemon, config(worker={**slow, "env": {"NEW": "1"}}))
        records = await wait_until(lambda: daemon.recycles("worker"), 20, "the first try to end")
        assert (records[0]["trigger"], records[0]["outcome"]) == ("config", "aborted")
        status, text = await stream
        assert (status, is_whole(text, "long", 120)) == (200, True)

        async def is_done() -> bool:
            return bool((await daemon.recycles("worker"))[-1]["outcome"] == "replaced")

        await wait_until(is_done, 30, "another try")
        assert await pid(daemon, "worker") != before


async def test_a_reload_while_the_daemon_stops_starts_nothing_and_cuts_nothing(tmp_path: Path) -> None:
    slow = {**config(worker=quick_lane({"tok_s": 30})), "fleet": {"shutdown_timeout": "20s"}}
    async with running_daemon(tmp_path, slow) as daemon:
        await daemon.serving("worker")
        stream = begin(daemon, chat("last", max_tokens=90))
        await in_flight(daemon, "worker")
        os.kill(daemon.pid, signal.SIGTERM)
        await wait_until(lambda: '"event": "stopping"' in daemon.log(), 10, "the stop")
        daemon.write_config(config(worker=quick_lane(env={"NEW": "1"}), second=quick_lane()))
        os.kill(daemon.pid, signal.SIGHUP)
        await wait_until(lambda: "reload_refused" in daemon.log(), 10, "the refusal")
        status, text = await stream
        assert (status, is_whole(text, "last", 90)) == (200, True)
        assert daemon.process
        assert await asyncio.wait_for(daemon.process.wait(), 15) == 0
        assert '"lane": "second"' not in daemon.log()
