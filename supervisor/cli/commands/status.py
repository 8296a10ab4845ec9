"""``freshlane status``"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import quote

import typer
from rich.text import Text

from supervisor.cli.client import Daemon
from supervisor.cli.conversation import talk
from supervisor.cli.exits import CommandError, Exit
from supervisor.cli.options import AnyLaneArgument, ConfigOption, JsonOption, UrlOption
from supervisor.cli.render.lanes_table import lanes_table
from supervisor.cli.render.layout import hang
from supervisor.cli.render.one_lane import lane_in_full
from supervisor.cli.render.worth import monday, worth_line
from supervisor.cli.terminal import out, print_json, say, warn, width


def status(
    lane: AnyLaneArgument = None, *, as_json: JsonOption = False, config: ConfigOption = None, url: UrlOption = None
) -> None:
    """Show the lanes once: state, speed against fresh, and what comes next.

    With LANE, everything about that one; exits with 4 if it failed.
    """
    path = f"/api/lanes/{quote(lane, safe='')}" if lane else "/api/lanes"

    async def ask(daemon: Daemon) -> tuple[dict[str, Any], dict[str, Any] | None]:
        document = await daemon.get(path)
        return document, None if as_json or lane or not document["lanes"] else await _worth(daemon)

    document, worth = talk(config, url, ask)
    if as_json:
        print_json(document)
    elif lane:
        say(*lane_in_full(document, width(), out()))
    else:
        say(*lanes_table(document["lanes"], width(), out()))
        if worth:
            say(*hang(Text(worth_line(worth), style="quiet"), width(), out()))
            for change in worth.get("version_changes") or ():
                say(*hang(Text(f"{change['lane']}: {change['text']}", style="warn"), width(), out()))
        for trouble in (document.get("journal_trouble"), document.get("history_trouble")):
            if trouble:
                warn(str(trouble))
    if lane and document.get("state") == "failed":
        raise typer.Exit(Exit.LANE_FAILED)


async def _worth(daemon: Daemon) -> dict[str, Any] | None:
    """None from a daemon that cannot tell: an older one, or one whose disk is in trouble."""
    since = monday(datetime.now().astimezone()).timestamp()
    try:
        return await daemon.get("/api/worth", since=since)
    except CommandError:
        return None
