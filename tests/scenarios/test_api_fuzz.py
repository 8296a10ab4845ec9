"""Whatever the OpenAPI document allows, and much that it does not, gets an answer: no 500, no traceback, no hang."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from tests.scenarios.daemon_process import running_daemon
from tests.scenarios.quick_lanes import ask, chat, config, quick_lane

EXAMPLES = 15
LEFT_OUT = "/api/events|/logs$|/probe$|/stop$|/drain$"
"""Answers that have no end, a wait that is long by design, and what would rightly make the rest answer 503."""


REAL_NAMES = """
[parameters]
"path.lane" = "worker"
"""


@pytest.mark.slow
@pytest.mark.timeout(400)
async def test_schemathesis_finds_no_fault_in_the_front(tmp_path: Path) -> None:
    lanes = config(worker=quick_lane(hold={"timeout": "2s"}, recycle={"wait_idle": "0s", "max_hold": "2s"}))
    async with running_daemon(tmp_path, lanes) as daemon:
        await daemon.serving("worker")
        (tmp_path / "schemathesis.toml").write_text(REAL_NAMES)
        command = [
            *(sys.executable, "-m", "schemathesis.cli", "run", f"{daemon.url}/api/openapi.json"),
            *("--checks", "not_a_server_error", "--mode", "all", "--phases", "examples,coverage,fuzzing"),
            *("--max-examples", str(EXAMPLES), "--request-timeout", "20", "--seed", "7", "--no-color"),
            *("--exclude-path-regex", LEFT_OUT, "--continue-on-failure"),
        ]
        fuzzer = await asyncio.create_subprocess_exec(
            *command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=tmp_path
        )
        output, _ = await asyncio.wait_for(fuzzer.communicate(), 360)
        print(output.decode()[-3000:])
        assert fuzzer.returncode == 0, output.decode()[-6000:]
        assert "Traceback" not in daemon.log()
        assert "request_failed" not in daemon.log()
        assert "lane_fault" not in daemon.log()
        assert (await ask(daemon, chat()))[0] == 200
