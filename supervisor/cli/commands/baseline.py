"""``freshlane baseline``: what fresh means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import quote

import typer

from supervisor.cli.client import Daemon
from supervisor.cli.conversation import talk
from supervisor.cli.exits import UsageError
from supervisor.cli.options import AnyLaneArgument, ConfigOption, JsonOption, UrlOption
from supervisor.cli.render.baselines import baseline_lines
from supervisor.cli.terminal import out, print_json, say, width


def baseline(
    lane: AnyLaneArgument = None,
    *,
    reset: Annotated[
        bool, typer.Option("--reset", help="Forget it: the next fresh workers measure it anew.", show_default=False)
    ] = False,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    url: UrlOption = None,
) -> None:
    """Show how fast a fresh worker is, and from which spawns that is known."""
    if reset and lane is None:
        raise UsageError("reset which lane's baseline? `freshlane baseline LANE --reset`")

    async def ask(daemon: Daemon) -> dict[str, Any]:
        if lane is None:
            names = [str(each["name"]) for each in (await daemon.get("/api/lanes"))["lanes"]]
            return {name: await daemon.get(_path(name)) for name in names}
        return await (daemon.delete(_path(lane)) if reset else daemon.get(_path(lane)))

    document = talk(config, url, ask)
    if as_json:
        print_json(document)
    elif reset:
        say(f"{lane}: forgotten; the next fresh workers measure it anew")
    else:
        known: Mapping[str, Any] = document if lane is None else {lane: document}
        say(*baseline_lines(known, width(), out()))


def _path(lane: str) -> str:
    return f"/api/lanes/{quote(lane, safe='')}/baseline"
