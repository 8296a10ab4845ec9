"""``freshlane demo``"""

from __future__ import annotations

from typing import Annotated

import typer

Refusals = Annotated[
    bool, typer.Option("--refusals", help="Show instead what it leaves alone: a slow machine, a long context.")
]


def demo(refusals: Refusals = False) -> None:
    """See it work: a worker is slowed from outside, found out, and replaced."""
    from supervisor.cli.demo import run_demo  # noqa: PLC0415 - the help must not load the whole daemon

    raise typer.Exit(run_demo(has_refusals=refusals))
