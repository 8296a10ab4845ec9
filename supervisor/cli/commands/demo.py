"""``freshlane demo``"""

from __future__ import annotations

import typer


def demo() -> None:
    """See it work: a worker is slowed from outside, found out, and replaced."""
    from supervisor.cli.demo import run_demo  # noqa: PLC0415 - the help must not load the whole daemon

    raise typer.Exit(run_demo())
