"""``freshlane probe``: measure a lane now, or any server by its URL."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from supervisor.cli.asking import ask_lane
from supervisor.cli.exits import UsageError
from supervisor.cli.options import AnyLaneArgument, ConfigOption, JsonOption, UrlOption


def probe(
    context: typer.Context,
    lane: AnyLaneArgument = None,
    *,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="M",
            help="The model of the server at --url. Default: the only one that it has.",
            show_default=False,
        ),
    ] = None,
    compare: Annotated[
        Path | None,
        typer.Option(
            "--compare",
            metavar="FILE",
            help="Keep the result in FILE, or compare with the one kept there. Default: compare with the last one.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    url: UrlOption = None,
) -> None:
    """Measure a lane now; or any running server, with --url and --model.

    The latter needs no daemon and no lanes.yaml. Run again after a restart of the server, it tells what that brought.
    """
    if lane is not None and model is None and compare is None:
        ask_lane("probe", lane, config, url, wait=True, as_json=as_json)
        return
    # FRESHLANE_URL names the daemon; a server that is measured as one is named on the command line, or by its model.
    source = context.get_parameter_source("url")
    names_a_server = model is not None or (source is not None and source.name == "COMMANDLINE")
    if lane is not None or not url or not names_a_server:
        raise UsageError(
            "probe what? `freshlane probe LANE`, or `freshlane probe --url URL [--model M] [--compare FILE]`"
        )
    from supervisor.cli.probe_url import probe_url  # noqa: PLC0415 - measuring needs more than asking

    raise typer.Exit(probe_url(url=url, model=model, compare=compare, as_json=as_json))
