"""``freshlane demo``: a real worker is slowed from outside, found out and replaced, while a client streams."""

from __future__ import annotations


def run_demo() -> int:
    """Show it; the exit code."""
    import asyncio  # noqa: PLC0415 - the slower is started from this package, and is to load nothing

    from supervisor.cli.demo.play import play  # noqa: PLC0415

    return asyncio.run(play())
