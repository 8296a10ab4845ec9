"""The machine's reference, as a real program: it is read, slowed from outside, and goes with whoever started it."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from statistics import median

import psutil

from supervisor.cli.demo.slowing import slowed
from supervisor.shell.machine.host_reference import READ_WITHIN_S, HostReference
from tests.waiting import wait_until


async def readings(reference: HostReference, count: int) -> float:
    """The middle one of so many."""
    seconds = [await reference.read() for _ in range(count)]
    return median(each for each in seconds if each is not None)


async def test_it_takes_tens_of_milliseconds_and_longer_while_the_program_gets_less_of_the_processor() -> None:
    reference = HostReference()
    try:
        usual = await readings(reference, 7)
        assert 0.005 < usual < 0.5
        assert reference.pid
        async with slowed(reference.pid, 0.1):
            assert await readings(reference, 7) > 1.5 * usual
    finally:
        await reference.close()
    assert reference.pid is None


async def test_it_takes_little_memory() -> None:
    reference = HostReference()
    try:
        await reference.read()
        assert reference.pid
        assert psutil.Process(reference.pid).memory_info().rss < 24 * 2**20
    finally:
        await reference.close()


async def test_a_program_that_does_not_answer_reads_as_slow_and_its_answer_is_taken_when_it_comes() -> None:
    reference = HostReference()
    try:
        await reference.read()
        pid = reference.pid
        assert pid
        os.kill(pid, signal.SIGSTOP)
        assert await reference.read() == READ_WITHIN_S
        assert await reference.read() == READ_WITHIN_S
        os.kill(pid, signal.SIGCONT)
        assert await reference.read() is not None
        seconds = await reference.read()
        assert seconds is not None
        assert seconds < READ_WITHIN_S
        assert reference.pid == pid
    finally:
        await reference.close()


async def test_a_reading_that_is_broken_off_leaves_no_answer_for_the_next_one() -> None:
    reference = HostReference()
    try:
        await reference.read()
        pid = reference.pid
        assert pid
        reading = asyncio.ensure_future(reference.read())
        await asyncio.sleep(0)
        os.kill(pid, signal.SIGSTOP)
        reading.cancel()
        await asyncio.wait({reading})
        os.kill(pid, signal.SIGCONT)
        seconds = await reference.read()
        assert seconds is not None
        assert seconds < READ_WITHIN_S
    finally:
        await reference.close()


async def test_a_program_that_was_killed_is_started_again() -> None:
    reference = HostReference()
    try:
        await reference.read()
        pid = reference.pid
        assert pid
        os.kill(pid, signal.SIGKILL)
        await wait_until(lambda: not psutil.pid_exists(pid), 10, "the program to be gone")
        await reference.read()
        assert await reference.read() is not None
        assert reference.pid != pid
    finally:
        await reference.close()


async def test_it_ends_when_whoever_started_it_is_killed() -> None:
    source = (
        "import asyncio\n"
        "from supervisor.shell.machine.host_reference import HostReference\n"
        "async def main():\n"
        "    reference = HostReference()\n"
        "    await reference.read()\n"
        "    print(reference.pid, flush=True)\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    owner = await asyncio.create_subprocess_exec(sys.executable, "-c", source, stdout=asyncio.subprocess.PIPE)
    assert owner.stdout
    pid = int(await asyncio.wait_for(owner.stdout.readline(), 30))
    owner.kill()
    await owner.wait()
    await wait_until(lambda: not psutil.pid_exists(pid), 10, "the reference to end")
