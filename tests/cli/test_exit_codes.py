"""Scripts and service managers go by the exit code; people by what stands on stderr."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run, at_url, start_command
from tests.cli.stand_in import StandIn


async def test_a_daemon_that_does_not_listen_is_not_reachable(freshlane: Run, free_port: int) -> None:
    ended = await freshlane("status", "--url", f"http://127.0.0.1:{free_port}")
    assert ended.code == 3
    assert ended.out == ""
    first, remedy = ended.err.splitlines()
    assert first == f"no freshlane daemon at http://127.0.0.1:{free_port}: connection refused"
    assert "freshlane run" in remedy
    assert "--url" in remedy


async def test_bad_usage_exits_with_2(freshlane: Run) -> None:
    unknown_verb = await freshlane("statsu")
    assert unknown_verb.code == 2
    assert "Did you mean 'status'" in unknown_verb.err
    assert (await freshlane("recycle")).code == 2
    not_a_url = await freshlane("status", "--url", "ftp://x")
    assert not_a_url.code == 2
    assert not_a_url.err == "--url ftp://x: not a URL such as http://127.0.0.1:7411\n"


async def test_an_unknown_lane_exits_with_2_and_the_daemon_names_the_lanes(freshlane: Run, stand_in: StandIn) -> None:
    ended = await freshlane("status", "qwne", url=stand_in.url)
    assert ended.code == 2
    assert ended.err == "no lane named qwne; there are: smollm2, qwen, coder\n"


async def test_a_lane_that_failed_exits_with_4(freshlane: Run, stand_in: StandIn) -> None:
    looked = await freshlane("status", "coder", url=stand_in.url)
    assert looked.code == 4
    assert "ModuleNotFoundError" in looked.out
    started = await freshlane("start", "coder", "--wait", url=stand_in.url)
    assert started.code == 4
    assert started.err.startswith("coder failed: the worker ended with exit code 1")


async def test_a_refusal_exits_with_1_and_a_full_daemon_with_75(freshlane: Run, stand_in: StandIn) -> None:
    stand_in.answers["/api/lanes/qwen/drain"] = 409, {"error": {"message": "qwen: drain would do nothing"}}
    stand_in.answers["/api/lanes/qwen/recycle"] = 503, {"error": {"message": "shutting down"}}
    refused = await freshlane("drain", "qwen", url=stand_in.url)
    assert (refused.code, refused.err) == (1, "qwen: drain would do nothing\n")
    later = await freshlane("recycle", "qwen", url=stand_in.url)
    assert (later.code, later.err) == (75, "shutting down\n")


async def test_a_recycle_that_was_given_up_exits_with_75(freshlane: Run, stand_in: StandIn) -> None:
    stand_in.recycles[-1] = {**stand_in.recycles[-1], "outcome": "aborted", "next": "in 15 min, when it is idle"}
    ended = await freshlane("recycle", "qwen", "--wait", url=stand_in.url)
    assert ended.code == 75
    assert "qwen was not recycled: in 15 min, when it is idle" in ended.err


async def test_a_stranger_on_the_port_is_named_as_such(freshlane: Run, stand_in: StandIn) -> None:
    stand_in.answers["/api/lanes"] = 200, "<html>It works!</html>"
    ended = await freshlane("status", url=stand_in.url)
    assert ended.code == 1
    assert ended.err.startswith(f"what answers at {stand_in.url} is not freshlane")


async def test_an_unexpected_error_is_one_line_and_keeps_its_details(freshlane: Run, stand_in: StandIn) -> None:
    stand_in.answers["/api/lanes"] = 200, {"lanes": [{"name": "x", "worker": 5}]}
    ended = await freshlane("status", url=stand_in.url)
    assert ended.code == 1
    assert len(ended.err.splitlines()) == 1
    assert ended.err.startswith("freshlane has a bug: AttributeError: ")
    assert "details are in " in ended.err


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /dev/full")
async def test_a_disk_that_is_full_is_a_failure_told_in_a_line(environment: dict[str, str], tmp_path: Path) -> None:
    full_disk = os.open("/dev/full", os.O_WRONLY)
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "supervisor", "version"),
            env=environment,
            cwd=tmp_path,
            stdout=full_disk,
            stderr=asyncio.subprocess.PIPE,
        )
        _, err = await asyncio.wait_for(process.communicate(), 20)
    finally:
        os.close(full_disk)
    assert (process.returncode, err) == (1, b"[Errno 28] No space left on device\n")


async def test_a_terminal_without_unicode_gets_question_marks(
    environment: dict[str, str], tmp_path: Path, stand_in: StandIn
) -> None:
    environment |= {**at_url(stand_in.url), "PYTHONIOENCODING": "ascii"}
    process = await start_command("log", "qwen", environment=environment, folder=tmp_path)
    out, err = await asyncio.wait_for(process.communicate(), 20)
    assert (process.returncode, err) == (0, b"")
    assert b"? is measured as usual" in out
