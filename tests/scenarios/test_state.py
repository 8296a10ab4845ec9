"""What a daemon keeps survives kills, full disks and deletion; a folder has one daemon, and may be read-only."""

from __future__ import annotations

import asyncio
import json
import os
import pwd
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.daemon_process import RunningDaemon, running_daemon
from tests.scenarios.quick_lanes import ask, chat, config, quick_lane
from tests.waiting import wait_until


async def recycled(daemon: RunningDaemon) -> dict[str, Any]:
    status, answer = await daemon.post("/api/lanes/worker/recycle?wait=true")
    assert status == 200, answer
    return dict(answer["recycle"])


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_a_daemon_killed_at_any_moment_of_a_recycle_loses_no_record_and_leaves_no_worker(tmp_path: Path) -> None:
    dice = random.Random(11)
    known: set[str] = set()
    async with running_daemon(tmp_path, config(worker=quick_lane())) as daemon:
        for turn in range(8):
            await daemon.serving("worker")
            baseline = await daemon.get("/api/lanes/worker/baseline")
            known.add((await recycled(daemon))["id"])
            await daemon.serving("worker")
            await daemon.post("/api/lanes/worker/recycle", {"reason": f"turn {turn}"})
            await asyncio.sleep(dice.uniform(0.0, 1.5))
            intents = [json.loads(path.read_text())["id"] for path in (daemon.state_dir / "recycling").glob("*.json")]
            await daemon.kill()
            known |= set(intents)
            await wait_until(lambda: not daemon.workers(), 15, "the workers of a killed daemon to end")
            await daemon.start()
            await daemon.listening()
            records = daemon.records_on_disk()
            ids = [record["id"] for record in records]
            assert len(ids) == len(set(ids))
            assert known <= set(ids), known - set(ids)
            for record in records:
                if record["id"] in intents:
                    assert record["outcome"] in ("aborted", "replaced")
            assert not list((daemon.state_dir / "recycling").glob("*.json"))
            await daemon.serving("worker")  # it listens before its lanes have recalled what they know
            after = await daemon.get("/api/lanes/worker/baseline")
            assert after["fingerprint"] == baseline["fingerprint"]
        generations = [record["worker"]["generation"] for record in daemon.records_on_disk()]
        assert generations == sorted(generations)


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A file system of 2 MiB."""
    folder = Path(tempfile.mkdtemp(prefix="freshlane-small-"))
    command = ["/bin/mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        folder.rmdir()
        pytest.skip("only root may mount a file system to fill")
    yield folder
    subprocess.run(["/bin/umount", "-l", str(folder)], check=True)
    folder.rmdir()


def fill(disk: Path) -> Path:
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            return ballast


async def test_a_full_disk_stops_no_request_and_no_recycle_and_nothing_is_lost(
    tmp_path: Path, small_disk: Path
) -> None:
    whole = {**config(worker=quick_lane({"flood": 20_000})), "log": {"max_size": "200KB", "keep": 1}}
    whole["state_dir"] = str(small_disk / "state")
    async with running_daemon(tmp_path, whole) as daemon:
        daemon.state_dir = small_disk / "state"
        await daemon.serving("worker")
        ballast = fill(small_disk)
        first = await recycled(daemon)
        assert (await ask(daemon, chat()))[0] == 200
        second = await recycled(daemon)
        assert [record["id"] for record in await daemon.recycles("worker")] == [first["id"], second["id"]]
        assert (await daemon.get("/api/lanes"))["journal_trouble"]
        assert (await daemon.post("/api/lanes/worker/drain?wait=true"))[0] == 200
        assert (await daemon.post("/api/lanes/worker/resume?wait=true"))[0] == 200
        ballast.unlink()
        third = await recycled(daemon)
        assert await daemon.end() == 0
        ids = [record["id"] for record in daemon.records_on_disk()]
        assert ids == [first["id"], second["id"], third["id"]]
        assert daemon.log().count("No space left") < 20


async def test_deleted_and_moved_state_is_made_anew_while_the_daemon_runs(tmp_path: Path) -> None:
    async with running_daemon(tmp_path, config(worker=quick_lane())) as daemon:
        await daemon.serving("worker")
        first = await recycled(daemon)
        log = daemon.state_dir / "recycle.jsonl"
        log.rename(log.with_name("recycle.jsonl.1"))
        second = await recycled(daemon)
        assert [record["id"] for record in daemon.records_on_disk()] == [second["id"]]
        assert [record["id"] for record in await daemon.recycles("worker")][-2:] == [first["id"], second["id"]]
        shutil.rmtree(daemon.state_dir)
        third = await recycled(daemon)
        assert [record["id"] for record in daemon.records_on_disk()] == [third["id"]]
        assert (await ask(daemon, chat()))[0] == 200
        assert await daemon.end() == 0
        assert "Traceback" not in daemon.log()
        await daemon.start()
        await daemon.serving("worker")


async def test_the_second_daemon_on_a_state_folder_is_refused_with_the_firsts_pid(tmp_path: Path) -> None:
    async with running_daemon(tmp_path, config(worker=quick_lane())) as daemon:
        worker = (await daemon.serving("worker"))["worker"]["pid"]
        (tmp_path / "second").mkdir()
        second = RunningDaemon(tmp_path / "second", config(worker=quick_lane()))
        second.write_config({**config(worker=quick_lane()), "state_dir": str(daemon.state_dir)})
        try:
            await second.start()
            assert second.process
            assert await asyncio.wait_for(second.process.wait(), 30) == 1
            assert f"the daemon with pid {daemon.pid}" in second.log()
            assert "Traceback" not in second.log()
        finally:
            await second.kill()
            if second.session:
                await second.session.close()
        assert (await daemon.serving("worker"))["worker"]["pid"] == worker


WITHOUT_ROOTS_RIGHTS = ("setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner")
"""For whom the permissions of files hold. (Another uid could not read this interpreter, where root alone may.)"""


@pytest.mark.parametrize("what", ["folder", "parent", "lock", "log"])
async def test_a_state_folder_that_may_not_be_written_is_told_plainly_or_borne(what: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can lay a folder out for somebody else")
    if shutil.which("setpriv") is None:
        pytest.skip("there is no setpriv to give up root's rights with")
    folder = Path(tempfile.mkdtemp(prefix="freshlane-nobody-"))
    daemon = RunningDaemon(folder, config(worker=quick_lane(start="on_demand")))
    state = daemon.state_dir
    nobody = pwd.getpwnam("nobody").pw_uid
    daemon.log_path.touch()
    if what != "parent":
        state.mkdir(mode=0o700)
    if what == "folder":
        state.chmod(0o500)
    elif what == "parent":
        folder.chmod(0o500)
    elif what == "lock":
        (state / "daemon.lock").touch(mode=0o600)
        os.chown(state / "daemon.lock", nobody, -1)
    elif what == "log":
        (state / "recycle.jsonl").touch(mode=0o400)
        (state / "history.sqlite").touch(mode=0o400)
    try:
        with daemon.log_path.open("ab") as log:
            daemon.process = await asyncio.create_subprocess_exec(
                *(
                    *WITHOUT_ROOTS_RIGHTS,
                    sys.executable,
                    "-P",
                    "-m",
                    "supervisor",
                    "run",
                    "-c",
                    str(daemon.config_path),
                ),
                stdout=log,
                stderr=log,
            )
        await daemon.open_session()
        if what == "log":
            await daemon.listening()
            assert (await daemon.get("/api/lanes"))["history_trouble"]
        else:
            assert await asyncio.wait_for(daemon.process.wait(), 30) == 1
            assert str(state) in daemon.log()
            assert "state_dir" in daemon.log()
        assert "Traceback" not in daemon.log(), daemon.log()
    finally:
        await daemon.kill()
        if daemon.session:
            await daemon.session.close()
        shutil.rmtree(folder)


async def test_a_changed_command_drops_the_baseline_and_says_so_also_after_a_restart(tmp_path: Path) -> None:
    async with running_daemon(tmp_path / "daemon", config(worker=quick_lane())) as daemon:
        await daemon.serving("worker")
        before = await daemon.get("/api/lanes/worker/baseline")
        assert before["runs"] == 5
        assert before["changed"] is None
        assert await daemon.end() == 0
        daemon.write_config(config(worker=quick_lane({"tok_s": 300.0})))
        await daemon.start()
        await daemon.listening()
        await daemon.serving("worker")
        after = await daemon.get("/api/lanes/worker/baseline")
    assert after["changed"]["parts"] == ["command"]
    assert after["fingerprint"] != before["fingerprint"]
    assert (after["spawns"], after["runs"]) == (1, 5)
