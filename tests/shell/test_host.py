"""The host: its memory, and moments at which nothing ran on time."""

from __future__ import annotations

import time

import psutil

from supervisor.shell.machine.host import Host
from supervisor.shell.machine.stalls import ClockGaps, LoopLag, Worst
from tests.waiting import wait_until


def block(seconds: float) -> None:
    """Keep the loop busy."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


def test_memory_is_within_the_machines() -> None:
    host = Host()
    assert 0 < host.memory_available_bytes() <= host.memory_total_bytes() <= psutil.virtual_memory().total
    assert host.swap().used_bytes >= 0


def test_heat_and_power_are_told_or_unknown() -> None:
    host = Host()
    assert host.thermal_pressure() is None or host.thermal_pressure()
    assert host.is_low_power() in (None, True, False)
    assert host.is_on_battery() in (None, True, False)


async def test_a_blocked_loop_is_seen_while_it_is_and_after_it_was() -> None:
    lag = LoopLag(every_s=0.02)
    lag.start()
    began = time.monotonic()
    block(0.2)
    assert lag.worst_since(began) > 0.15
    await wait_until(lambda: lag._worst.since(began) > 0.15, what="the sample")
    after = time.monotonic()
    await wait_until(lambda: lag._worst._falling[-1][0] > after + 0.1, what="later samples")
    assert lag.worst_since(began) > 0.15
    assert lag.worst_since(after) < 0.15
    lag.close()


async def test_clocks_that_run_together_have_no_gap() -> None:
    host = Host()
    host.start()
    began = time.monotonic()
    await wait_until(lambda: host.loop_lag._worst.since(began) >= 0, what="samples")
    assert host.clock_gaps.gap_since(began) == 0
    host.close()


def test_a_jump_of_one_clock_is_a_gap_once() -> None:
    gaps = ClockGaps()
    began = time.monotonic()
    gaps._offset -= 3600.0  # as after an hour of sleep, which the monotonic clock does not count
    assert 3599 < gaps.gap_since(began) < 3601
    assert gaps.gap_since(time.monotonic()) == 0


def test_the_worst_since_a_moment_is_the_largest_of_what_came_after_it() -> None:
    sizes = [3.0, 9.0, 2.0, 7.0, 7.0, 1.0, 4.0]
    worst = Worst()
    for at, size in enumerate(sizes):
        worst.add(float(at), size)
    for at in range(len(sizes)):
        assert worst.since(at - 0.5) == max(sizes[at:])
    assert worst.since(100) == 0


async def test_a_lag_is_told_once_to_who_asks_after_each_look() -> None:
    lag = LoopLag(every_s=0.02)
    lag.start()
    began = time.monotonic()
    block(0.3)
    assert lag.worst_since(began) > 0.25
    looked = time.monotonic()
    await wait_until(lambda: lag._worst.since(looked) > 0.25, what="the sample")
    assert lag.worst_since(looked) < 0.15
    lag.close()
