"""``freshlane run``: the daemon, in the foreground."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from supervisor.cli.options import ConfigOption
from supervisor.cli.target import require_config


class Under(StrEnum):
    """What started the daemon."""

    SYSTEMD = "systemd"
    LAUNCHD = "launchd"


def run(
    config: ConfigOption = None,
    under: Annotated[
        Under | None,
        typer.Option("--under", help="What starts it, so that it ends as that expects.", show_default=False),
    ] = None,
) -> None:
    """Run the daemon in the foreground. TERM drains and stops, HUP reloads."""
    from supervisor.daemon import run as run_daemon  # noqa: PLC0415 - the help must not load the whole daemon

    # A service's file that has gone is for the daemon to tell of, in the terms of the service manager.
    path = config if config and under else require_config(config)
    raise typer.Exit(run_daemon(path, under=under.value if under else None))
