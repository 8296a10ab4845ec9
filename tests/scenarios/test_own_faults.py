"""What goes wrong on our own side fails its lane with a reason, and never leaves it waiting for nothing."""

from __future__ import annotations

from pathlib import Path

from tests.scenarios.daemon_process import running_daemon
from tests.scenarios.quick_lanes import ask, chat, config, quick_lane


async def test_a_folder_that_cannot_be_made_fails_its_lane_at_once_and_no_other(tmp_path: Path) -> None:
    folders = tmp_path / "state" / "lanes"
    folders.mkdir(parents=True)
    (folders / "worker").write_text("a file where the lane's folder belongs")
    async with running_daemon(tmp_path, config(worker=quick_lane(), other=quick_lane())) as daemon:
        failed = await daemon.lane_is("worker", "failed", 20)
        assert str(folders / "worker") in failed["reason"]
        await daemon.serving("other")
        assert (await ask(daemon, chat(model="worker")))[0] == 503
        (folders / "worker").unlink()
        assert (await daemon.post("/api/lanes/worker/start?wait=true"))[0] == 200
        assert (await ask(daemon, chat(model="worker")))[0] == 200


async def test_a_reason_that_is_no_text_anywhere_else_harms_nothing(tmp_path: Path) -> None:
    async with running_daemon(tmp_path, config(worker=quick_lane())) as daemon:
        await daemon.serving("worker")
        status, answer = await daemon.post("/api/lanes/worker/recycle?wait=true", {"reason": "half \ud800 of one"})
        assert (status, answer["recycle"]["outcome"]) == (200, "replaced")
        assert (await daemon.recycles("worker"))[0]["reason"] == "half \ud800 of one"
        assert daemon.records_on_disk()[0]["reason"] == "half \ud800 of one"
        assert (await daemon.post("/api/lanes/worker/drain?wait=true", {"reason": "\ud800"}))[0] == 200
        assert (await ask(daemon, chat()))[0] == 503
        assert "Traceback" not in daemon.log()
