"""``freshlane log``: the recycle log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from supervisor.cli.client import Daemon
from supervisor.cli.conversation import talk
from supervisor.cli.following import each_time
from supervisor.cli.options import AnyLaneArgument, ConfigOption, JsonOption, UrlOption
from supervisor.cli.render.recycles import story
from supervisor.cli.terminal import out, print_json_line, say, width

NEWEST = 20
AT_ONCE = 100
"""Most records that can come to light between two looks while following."""


def log(
    lane: AnyLaneArgument = None,
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as recycles happen.")] = False,
    count: Annotated[int, typer.Option("--count", "-n", metavar="N", min=0, help="How many of the newest.")] = NEWEST,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    url: UrlOption = None,
) -> None:
    """Show what was recycled, when, why, and what it brought; newest last.

    With --json, each record on a line of its own.
    """

    async def ask(daemon: Daemon) -> None:
        seen = {record.get("id") for record in await _records(daemon, lane, AT_ONCE)} if follow else set()
        shown = await _records(daemon, lane, count) if count else []
        if not shown and not as_json and not follow:
            say("no recycles yet" + (f" of {lane}" if lane else ""))
        _show(shown, as_json)
        if not follow:
            return
        async for _ in each_time(daemon, "recycle"):
            new = [record for record in await _records(daemon, lane, AT_ONCE) if record.get("id") not in seen]
            seen |= {record.get("id") for record in new}
            _show(new, as_json)

    talk(config, url, ask)


async def _records(daemon: Daemon, lane: str | None, limit: int) -> list[dict[str, Any]]:
    document = await daemon.get("/api/recycles", lane=lane, limit=limit)
    return sorted(document.get("recycles", []), key=lambda record: str(record.get("time", "")))[-limit:]


def _show(records: list[dict[str, Any]], as_json: bool) -> None:
    for record in records:
        if as_json:
            print_json_line(record)
        else:
            _tell(record)


def _tell(record: Mapping[str, Any]) -> None:
    say(*story(record, width(), out()))
