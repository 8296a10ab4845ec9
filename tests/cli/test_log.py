"""freshlane log and logs: what was recycled, and what the worker printed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

from tests.cli.conftest import Run, at_url, start_command
from tests.cli.documents import CURED, RECYCLES
from tests.cli.stand_in import StandIn
from tests.waiting import wait_until


async def test_a_recycle_is_told_in_three_sentences_with_numbers(freshlane: Run, stand_in: StandIn) -> None:
    ended = await freshlane("log", "qwen", url=stand_in.url)
    assert ended.code == 0
    head, told = ended.out.splitlines()
    assert head.endswith("(2 h ago)  qwen  degraded, cured")
    assert told == (
        "    The worker had become slow after 2 d: 5 of 5 runs below 0.89; uptime 2 d; host check steady."
        " The new one does 27.1 tok/s, 99 % of fresh; the old one did 8.42 tok/s, 31 % of fresh."
        " No worker served for 14 s; 2 requests waited, none failed. → is measured as usual"
    )


async def test_a_crash_without_measurements_says_what_was_lost(freshlane: Run, stand_in: StandIn) -> None:
    ended = await freshlane("log", "smollm2", url=stand_in.url)
    head, told = ended.out.splitlines()
    assert head.endswith("(3 d ago)  smollm2  crashed, cured")
    assert told.endswith(": killed by SIGSEGV. No worker served for 6.0 s; no request waited, 1 failed, 2 sent again.")


async def test_json_prints_a_record_a_line_newest_last(freshlane: Run, stand_in: StandIn) -> None:
    ended = await freshlane("log", "--json", url=stand_in.url)
    assert [json.loads(line) for line in ended.out.splitlines()] == RECYCLES
    newest = await freshlane("log", "--json", "-n", "1", url=stand_in.url)
    assert json.loads(newest.out) == CURED


async def test_an_empty_log_says_so(freshlane: Run, stand_in: StandIn) -> None:
    stand_in.recycles.clear()
    assert (await freshlane("log", "qwen", url=stand_in.url)).out == "no recycles yet of qwen\n"


async def test_following_shows_each_new_record_once(
    stand_in: StandIn, environment: dict[str, str], tmp_path: Path
) -> None:
    environment |= at_url(stand_in.url)
    process = await start_command("log", "-f", "-n", "0", "--json", environment=environment, folder=tmp_path)
    assert process.stdout is not None
    try:
        await wait_until(lambda: stand_in.followers, 20, "a follower")
        stand_in.recycles.append({**CURED, "id": "01J9", "lane": "coder", "time": "2099-01-01T00:00:00+00:00"})
        stand_in.tell("sample")
        stand_in.tell("recycle")
        stand_in.tell("recycle")
        line = await asyncio.wait_for(process.stdout.readline(), 20)
        assert json.loads(line)["id"] == "01J9"
    finally:
        process.send_signal(signal.SIGINT)
        rest, err = await asyncio.wait_for(process.communicate(), 20)
    assert (rest, err, process.returncode) == (b"", b"", 130)


async def test_following_outlives_a_restart_of_the_daemon_and_misses_nothing(
    environment: dict[str, str], tmp_path: Path, free_port: int
) -> None:
    first, second = StandIn(), StandIn()
    await first.start(free_port)
    environment |= at_url(first.url)
    process = await start_command("log", "-f", "-n", "0", "--json", environment=environment, folder=tmp_path)
    assert process.stdout is not None
    try:
        await wait_until(lambda: first.followers, 20, "a follower")
        await first.close()
        second.recycles.append({**CURED, "id": "01JA", "time": "2099-01-01T00:00:00+00:00"})
        await second.start(free_port)
        line = await asyncio.wait_for(process.stdout.readline(), 20)
        assert json.loads(line)["id"] == "01JA"
    finally:
        process.send_signal(signal.SIGINT)
        rest, err = await asyncio.wait_for(process.communicate(), 20)
        await first.close()
        await second.close()
    assert rest == b""
    assert b"Traceback" not in err


async def test_a_worker_s_output_is_passed_on_as_it_is(freshlane: Run, stand_in: StandIn) -> None:
    ended = await freshlane("logs", "qwen", "-n", "2", url=stand_in.url)
    assert (ended.code, ended.out) == (0, "line 2 of qwen\nline 3 of qwen\n")


async def test_a_reader_that_leaves_ends_the_command_quietly(
    stand_in: StandIn, environment: dict[str, str], tmp_path: Path
) -> None:
    stand_in.answers["/api/lanes/qwen/logs"] = 200, "x" * 100 + "\n"
    environment |= at_url(stand_in.url)
    read, write = os.pipe()
    command = (sys.executable, "-m", "supervisor", "logs", "qwen")
    process = await asyncio.create_subprocess_exec(
        *command, env=environment, cwd=tmp_path, stdout=write, stderr=asyncio.subprocess.PIPE
    )
    os.close(write)
    os.close(read)
    _, err = await asyncio.wait_for(process.communicate(), 20)
    assert (process.returncode, err) == (1, b"")
