"""``freshlane top``: the status table, live, with the course of each lane's speed."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer
from rich.live import Live

from supervisor.cli.client import Daemon
from supervisor.cli.conversation import talk
from supervisor.cli.exits import NotReachableError, TryLaterError, UsageError
from supervisor.cli.options import ConfigOption, UrlOption
from supervisor.cli.render.top import TopScreen
from supervisor.cli.terminal import out

HISTORY_EVERY_S = 10.0
REDRAWS_PER_S = 4


def top(
    *,
    every: Annotated[float, typer.Option("--every", metavar="SECONDS", min=0.2, help="Between two looks.")] = 1.0,
    config: ConfigOption = None,
    url: UrlOption = None,
) -> None:
    """Watch the lanes live, with the course of their speed. Ctrl-C leaves."""
    if not out().is_terminal:
        raise UsageError("top needs a terminal; `freshlane status` shows the lanes once")

    async def watch(daemon: Daemon) -> None:
        screen = TopScreen(daemon.target.url)
        await _look(daemon, screen, with_history=True)
        with Live(screen, console=out(), screen=True, refresh_per_second=REDRAWS_PER_S):
            looks_between = max(1, round(HISTORY_EVERY_S / every))
            look = 0
            while True:
                await asyncio.sleep(every)
                look += 1
                try:
                    await _look(daemon, screen, with_history=look % looks_between == 0)
                except (NotReachableError, TryLaterError) as error:
                    screen.trouble = f"{str(error).splitlines()[0]}; trying again"

    try:
        talk(config, url, watch)
    except KeyboardInterrupt:
        return


async def _look(daemon: Daemon, screen: TopScreen, *, with_history: bool) -> None:
    lanes = (await daemon.get("/api/lanes"))["lanes"]
    if with_history:
        screen.samples = (await daemon.get("/api/samples", since=screen.since())).get("samples", [])
        screen.recycles = (await daemon.get("/api/recycles", limit=screen.MOST_STORIES)).get("recycles", [])
    screen.lanes = lanes
    screen.trouble = ""
