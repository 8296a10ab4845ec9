"""``freshlane logs``: what a worker printed."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

import typer

from supervisor.cli.client import Daemon
from supervisor.cli.conversation import talk
from supervisor.cli.exits import NotReachableError
from supervisor.cli.options import ConfigOption, LaneArgument, UrlOption
from supervisor.cli.terminal import print_bytes, warn


def logs(
    lane: LaneArgument,
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as it prints.")] = False,
    tail: Annotated[int, typer.Option("--tail", "-n", metavar="N", min=0, help="How many of the last lines.")] = 100,
    config: ConfigOption = None,
    url: UrlOption = None,
) -> None:
    """Show the output of a lane's worker."""

    async def ask(daemon: Daemon) -> None:
        path = f"/api/lanes/{quote(lane, safe='')}/logs"
        is_silent = True
        async for part in daemon.parts(path, following=follow, tail=tail, follow="true" if follow else None):
            print_bytes(part)
            is_silent = is_silent and not part
        if is_silent and not follow:
            warn(f"the worker of {lane} has printed nothing")
        if follow:
            raise NotReachableError(f"the daemon at {daemon.target.url} has ended the stream; is it being stopped?")

    talk(config, url, ask)
