"""freshlane top, on a real terminal."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from supervisor.cli.render.top import TopScreen
from tests.cli.conftest import Run, at_url
from tests.cli.documents import LANES, RECYCLES
from tests.cli.screen import Screen
from tests.cli.stand_in import StandIn
from tests.waiting import wait_until

COLUMNS, LINES = 100, 30


@pytest.fixture
def screen() -> Iterator[Screen]:
    screen = Screen(COLUMNS, LINES)
    yield screen
    screen.close()


async def test_top_draws_lanes_trends_and_stories_and_ctrl_c_leaves_in_peace(
    stand_in: StandIn, environment: dict[str, str], tmp_path: Path, screen: Screen
) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "supervisor", "top", "--every", "0.2"),
        env={**environment, **at_url(stand_in.url), "TERM": "xterm-256color"},
        cwd=tmp_path,
        stdin=screen.slave,
        stdout=screen.slave,
        stderr=screen.slave,
    )
    facts = ("smollm2  serving", "TREND", "████", "NEWEST RECYCLES", "99 % of fresh")
    await wait_until(lambda: all(fact in screen.text() for fact in facts), 20, "a drawn screen")
    stand_in.answers["/api/lanes"] = 503, {"error": {"message": "shutting down"}}
    await wait_until(lambda: "shutting down; trying again" in screen.text(), 20, "trouble, told")
    process.send_signal(signal.SIGINT)
    assert await asyncio.wait_for(process.wait(), 20) == 0
    assert "Traceback" not in screen.text()


async def test_top_without_a_terminal_points_to_status(freshlane: Run) -> None:
    ended = await freshlane("top")
    assert (ended.code, ended.err) == (2, "top needs a terminal; `freshlane status` shows the lanes once\n")


def test_many_lanes_fit_a_small_terminal_whatever_they_have_to_say() -> None:
    screen = TopScreen("http://127.0.0.1:7411")
    screen.lanes = [
        {**LANES["qwen"], "name": f"lane-{number}-{'x' * 40}", "reason": "why " * 60} for number in range(7)
    ]
    screen.recycles = RECYCLES
    lines = drawn(screen, 24)
    assert len(lines) <= 24
    assert all(len(line) <= 80 for line in lines)
    assert [number for number in range(7) if any(line.startswith(f"lane-{number}-") for line in lines)] == [*range(7)]
    assert sum(line.endswith("…") for line in lines) == 7
    assert "TREND" in lines[2]
    assert "NEWEST RECYCLES" not in lines, "a story is told whole or not at all"
    *_, last = drawn(screen, 8)
    assert last == "3 more: `freshlane status`, or a higher window"
    assert "NEWEST RECYCLES" in drawn(screen, 60)


def drawn(screen: TopScreen, height: int) -> list[str]:
    """The lines of a terminal of 80 columns."""
    console = Console(width=80, height=height, color_system=None)
    return "".join(
        segment.text for segment in console.render(screen, console.options.update_height(height))
    ).splitlines()
