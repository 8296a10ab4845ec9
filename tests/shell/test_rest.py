"""Whether a worker rests: it is waited for while it ends what it was at, and not for ever."""

from __future__ import annotations

from collections.abc import Callable

from supervisor.shell.machine.rest import rests

CORES = 0.5


def worker(busy_looks: int) -> Callable[[], float]:
    """Processor time of one that is busy for so many looks, by turns asked for at their beginning and end."""
    asked = iter(range(10_000))
    return lambda: float(min(next(asked), 2 * busy_looks))


async def test_one_that_has_nothing_to_do_rests() -> None:
    assert await rests(worker(busy_looks=0), CORES)


async def test_one_that_ends_what_it_was_at_is_waited_for() -> None:
    assert await rests(worker(busy_looks=1), CORES)


async def test_one_that_is_always_busy_has_no_rest() -> None:
    assert not await rests(worker(busy_looks=1000), CORES)
