"""``freshlane drain``, ``resume``, ``start`` and ``stop``: what a person wants of a lane, kept over restarts."""

from __future__ import annotations

from typing import Annotated

import typer

from supervisor.cli.asking import ask_lane
from supervisor.cli.options import ConfigOption, JsonOption, LaneArgument, ReasonOption, UrlOption

WaitOption = Annotated[bool, typer.Option("--wait", help="Come back when it is done.", show_default=False)]


def drain(
    lane: LaneArgument,
    *,
    wait: WaitOption = False,
    reason: ReasonOption = None,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    url: UrlOption = None,
) -> None:
    """Refuse new requests; the worker stays up. Until `resume`."""
    ask_lane("drain", lane, config, url, wait=wait, reason=reason, as_json=as_json)


def resume(
    lane: LaneArgument,
    *,
    wait: WaitOption = False,
    reason: ReasonOption = None,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    url: UrlOption = None,
) -> None:
    """Let a drained lane serve again."""
    ask_lane("resume", lane, config, url, wait=wait, reason=reason, as_json=as_json)


def start(
    lane: LaneArgument,
    *,
    wait: WaitOption = False,
    reason: ReasonOption = None,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    url: UrlOption = None,
) -> None:
    """Start a lane that is stopped, unloaded, failed or backing off.

    With --wait, exits with 4 if it fails.
    """
    ask_lane("start", lane, config, url, wait=wait, reason=reason, as_json=as_json)


def stop(
    lane: LaneArgument,
    *,
    wait: WaitOption = False,
    reason: ReasonOption = None,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    url: UrlOption = None,
) -> None:
    """Let requests in flight finish, then stop the worker. Until `start`."""
    ask_lane("stop", lane, config, url, wait=wait, reason=reason, as_json=as_json)
