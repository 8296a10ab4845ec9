"""Background tasks have an owner that ends them and hears their errors."""

from __future__ import annotations

import asyncio

import pytest

from supervisor.shell.tasks import Tasks
from tests.waiting import wait_until


async def test_closing_cancels_what_runs_and_waits_for_it() -> None:
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.set()

    tasks = Tasks()
    task = tasks.start(work(), "work")
    await asyncio.sleep(0)
    assert len(tasks) == 1
    await tasks.close()
    assert ended.is_set()
    assert task.cancelled()
    assert len(tasks) == 0


async def test_an_error_is_told_once_and_spares_the_others() -> None:
    errors: list[tuple[str, str]] = []

    async def fail() -> None:
        raise ValueError("broken")

    tasks = Tasks(on_error=lambda name, error: errors.append((name, str(error))))
    other = tasks.start(asyncio.Event().wait(), "other")
    tasks.start(fail(), "bad one")
    await wait_until(lambda: errors, what="the error")
    assert errors == [("bad one", "broken")]
    assert not other.done()
    await tasks.close()


async def test_a_closed_owner_takes_nothing_new() -> None:
    tasks = Tasks()
    await tasks.close()
    with pytest.raises(RuntimeError, match="late was started on an owner that is closed"):
        tasks.start(asyncio.sleep(0), "late")


async def test_a_task_may_close_its_owner() -> None:
    tasks = Tasks()
    task = tasks.start(tasks.close(), "closer")
    await asyncio.wait_for(task, 5)


async def test_a_task_that_resists_is_left_after_the_deadline() -> None:
    release = asyncio.Event()

    async def resist() -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    tasks = Tasks()
    task = tasks.start(resist(), "resists")
    await asyncio.sleep(0)
    await tasks.close(timeout_s=0.05)
    assert not task.done()
    release.set()
    await task
