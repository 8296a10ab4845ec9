"""``freshlane demo``: a real worker is slowed from outside, found out and replaced, while a client streams."""

from __future__ import annotations


def run_demo(*, has_refusals: bool) -> int:
    """Show it, or what it refuses to do; the exit code."""
    import asyncio  # noqa: PLC0415 - the slower is started from this package, and is to load nothing
    import signal  # noqa: PLC0415

    from supervisor.cli.demo.play import play  # noqa: PLC0415
    from supervisor.cli.demo.refusals import play_refusals  # noqa: PLC0415

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))  # leave as after Ctrl-C: nothing stays
    return asyncio.run(play_refusals() if has_refusals else play())
