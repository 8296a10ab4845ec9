"""The verbs that ask something of a lane, or of the daemon."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.cli.conftest import Run, at_url
from tests.cli.screen import Screen
from tests.cli.stand_in import StandIn
from tests.waiting import wait_until


async def test_recycle_sends_reason_and_now_and_does_not_wait_unless_told(freshlane: Run, stand_in: StandIn) -> None:
    ended = await freshlane("recycle", "qwen", "--reason", "driver update", "--now", url=stand_in.url)
    assert (ended.code, ended.out) == (0, "qwen: recycle is under way; see `freshlane status qwen`\n")
    assert stand_in.asked[-1] == (
        "POST",
        "/api/lanes/qwen/recycle",
        {},
        {"reason": "driver update", "now": True},
    )


async def test_recycle_with_wait_tells_the_story(freshlane: Run, stand_in: StandIn) -> None:
    ended = await freshlane("recycle", "qwen", "--wait", url=stand_in.url)
    assert ended.code == 0
    assert stand_in.asked[-1] == ("POST", "/api/lanes/qwen/recycle", {"wait": "true"}, {})
    assert "The new one does 27.1 tok/s, 99 % of fresh; the old one did 8.42 tok/s" in ended.out


async def test_on_a_terminal_who_waits_for_a_recycle_sees_how_far_it_is(
    stand_in: StandIn, environment: dict[str, str], tmp_path: Path
) -> None:
    stand_in.outcome.clear()
    screen = Screen(160, 24)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "supervisor", "recycle", "qwen", "--wait"),
        env={**environment, **at_url(stand_in.url), "TERM": "xterm-256color"},
        cwd=tmp_path,
        stdout=screen.slave,
        stderr=screen.slave,
    )
    await wait_until(lambda: "recycle qwen: suspect, 2 in flight, 5 waiting, " in screen.text(), 30, "its progress")
    stand_in.outcome.set()
    assert await asyncio.wait_for(process.wait(), 30) == 0
    assert "The new one does 27.1 tok/s" in screen.text()
    screen.close()


async def test_probe_waits_and_shows_the_rate(freshlane: Run, stand_in: StandIn) -> None:
    ended = await freshlane("probe", "qwen", url=stand_in.url)
    assert ended.code == 0
    assert ended.out == "qwen  27.0 tok/s over 64 tokens after a prompt of 256, first token after 212 ms\n"


async def test_probe_without_lane_or_server_says_how_it_is_used(freshlane: Run) -> None:
    ended = await freshlane("probe")
    assert ended.code == 2
    assert "freshlane probe --url URL [--model M]" in ended.err


async def test_each_wish_is_asked_by_its_own_name(freshlane: Run, stand_in: StandIn) -> None:
    for verb in ("drain", "start"):
        assert (await freshlane(verb, "smollm2", url=stand_in.url)).code == 0
    assert [path for _, path, _, _ in stand_in.asked] == ["/api/lanes/smollm2/drain", "/api/lanes/smollm2/start"]


async def test_the_baseline_is_shown_and_reset(freshlane: Run, stand_in: StandIn) -> None:
    everyone = await freshlane("baseline", url=stand_in.url)
    assert everyone.out.splitlines() == [
        "smollm2  47.1 tok/s after 256 tokens, 43.9 after 3072; from 3 spawns and 24 runs; good",
        "qwen     27.3 tok/s after 256 tokens; from 5 spawns and 40 runs; good",
        "coder    not known yet",
    ]
    assert (await freshlane("baseline", "qwen", "--reset", url=stand_in.url)).code == 0
    assert stand_in.asked[-1][:2] == ("DELETE", "/api/lanes/qwen/baseline")


async def test_reload_says_what_was_done_to_each_lane(freshlane: Run, stand_in: StandIn) -> None:
    ended = await freshlane("reload", url=stand_in.url)
    assert (ended.code, ended.out) == (0, "smollm2  kept\nqwen     recycled\ncoder    updated\n")
    assert ended.err == "changed only by a restart of the daemon: listen\n"


async def test_a_reload_of_a_bad_file_lists_its_errors_and_exits_with_2(freshlane: Run, stand_in: StandIn) -> None:
    problems = ["lanes.yaml:3: lanes.a.modle: unknown key; did you mean model?", "lanes.yaml:9: listen: no"]
    stand_in.answers["/api/reload"] = 400, {"error": {"message": "\n".join(problems), "problems": problems}}
    ended = await freshlane("reload", url=stand_in.url)
    assert ended.code == 2
    assert ended.err.splitlines() == ["lanes.yaml has errors; nothing was changed", *problems]
