"""The options that verbs share, each defined once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from supervisor.cli.completing import lane_names

SHARED = "Which daemon"


LaneArgument = Annotated[
    str, typer.Argument(metavar="LANE", help="The lane's name.", show_default=False, autocompletion=lane_names)
]
AnyLaneArgument = Annotated[
    str | None,
    typer.Argument(metavar="LANE", help="One lane only. Default: all.", show_default=False, autocompletion=lane_names),
]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        envvar="FRESHLANE_CONFIG",
        show_default=False,
        show_envvar=True,
        help="The lanes.yaml. Default: ./lanes.yaml, ~/.config/freshlane/lanes.yaml, /etc/freshlane/lanes.yaml.",
        rich_help_panel=SHARED,
    ),
]
UrlOption = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        envvar="FRESHLANE_URL",
        show_default=False,
        help="The daemon's address. Default: `listen` of lanes.yaml.",
        rich_help_panel=SHARED,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print what the daemon says, as JSON.", show_default=False)]
ReasonOption = Annotated[
    str | None, typer.Option("--reason", metavar="TEXT", help="Why; kept in the record.", show_default=False)
]
