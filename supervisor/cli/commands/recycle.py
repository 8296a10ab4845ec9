"""``freshlane recycle``"""

from __future__ import annotations

from typing import Annotated

import typer

from supervisor.cli.asking import ask_lane
from supervisor.cli.options import ConfigOption, JsonOption, LaneArgument, ReasonOption, UrlOption


def recycle(
    lane: LaneArgument,
    *,
    wait: Annotated[
        bool, typer.Option("--wait", help="Come back when its record is written.", show_default=False)
    ] = False,
    reason: ReasonOption = None,
    now: Annotated[
        bool, typer.Option("--now", help="Do not wait for requests in flight: they are cut.", show_default=False)
    ] = False,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    url: UrlOption = None,
) -> None:
    """Replace a lane's worker by a fresh one, losing no request (but see --now)."""
    ask_lane("recycle", lane, config, url, wait=wait, reason=reason, now=now, as_json=as_json)
