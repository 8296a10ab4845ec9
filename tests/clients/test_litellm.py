"""litellm works through the front by its api_base alone, also while the worker is replaced.

It runs as its users run it, in a process of its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from tests.fakes import expected_text
from tests.scenarios.daemon_process import running_daemon
from tests.scenarios.quick_lanes import config, inflight, quick_lane

PROGRAM = """
import json, sys, litellm
litellm.telemetry = False
ask = {
    "model": "openai/worker", "api_base": sys.argv[1], "api_key": "none", "num_retries": 0,
    "messages": [{"role": "user", "content": "tell"}],
}
stream = litellm.completion(**ask, max_tokens=60, stream=True, stream_options={"include_usage": True})
chunks = list(stream)
text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
whole = litellm.completion(**ask, max_tokens=9)
print(json.dumps({
    "streamed": text,
    "tokens": [chunk.usage.completion_tokens for chunk in chunks if hasattr(chunk, "usage")][-1],
    "whole": whole.choices[0].message.content,
}))
"""


@pytest.mark.outside
async def test_litellm_gets_its_whole_answers_through_a_recycle(tmp_path: Path) -> None:
    lane = quick_lane({"tok_s": 20, "start_delay": 0.5}, recycle={"wait_idle": "0s"})
    async with running_daemon(tmp_path, config(worker=lane)) as daemon:
        await daemon.serving("worker")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", PROGRAM, f"{daemon.url}/v1"),
            env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout
        try:
            await inflight(daemon, 1, within_s=60)
            assert (await daemon.post("/api/lanes/worker/recycle?wait=true"))[0] == 200
            told = json.loads(await asyncio.wait_for(process.stdout.read(), 60))
        finally:
            await process.wait()
    assert told == {"streamed": expected_text("tell", 60), "tokens": 60, "whole": expected_text("tell", 9)}
