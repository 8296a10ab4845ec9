"""A worker's output: always drained, always bounded, whatever happens to the file."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from supervisor.shell.worker.output import Output
from supervisor.shell.worker.process import ExitStatus, WorkerProcess
from tests.shell.workers import python, spec_of
from tests.waiting import wait_until

FLOOD = "import os\nfor _ in range(1024): os.write(1, b'x' * 65535 + b'\\n')\nos.write(1, b'the end\\n')"


@pytest.fixture
async def output(tmp_path: Path) -> AsyncIterator[Output]:
    it = Output(tmp_path / "logs" / "worker.log", max_bytes=1_000, keep=2)
    yield it
    it.close()


async def printed(output: Output, text: str) -> None:
    """Print as a worker does, and wait until it was read."""
    os.write(output.write_end(), text.encode())
    await wait_until(lambda: text.strip() in output.tail(5), what=text)


def files_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def test_a_flood_is_drained_and_bounded(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, *python(FLOOD), output_max_bytes=1_000_000, output_keep=2)
    worker = await WorkerProcess.spawn(spec)
    assert await asyncio.wait_for(asyncio.shield(worker.exit), 20) == ExitStatus(0, None)
    await worker.close()
    assert worker.output.tail(1) == "the end\n"
    sizes = {file.name: file.stat().st_size for file in files_in(tmp_path)}
    assert sorted(sizes) == ["worker.log", "worker.log.1", "worker.log.2"]
    assert max(sizes.values()) <= 1_000_000


async def test_older_files_are_kept_in_order_without_a_gap(output: Output) -> None:
    for number in range(45):
        await printed(output, f"{number:099}\n")
    files = [output.path.with_name(f"worker.log{place}") for place in (".2", ".1", "")]
    lines = b"".join(file.read_bytes() for file in files).split()
    assert [int(line) for line in lines] == list(range(45 - len(lines), 45))
    assert len(lines) > 20


async def test_a_deleted_file_is_made_anew(output: Output) -> None:
    await printed(output, "one\n")
    output.path.unlink()
    await printed(output, "two\n")
    assert output.path.read_text() == "two\n"


async def test_a_renamed_file_is_left_and_a_deleted_folder_is_made_anew(output: Output) -> None:
    await printed(output, "one\n")
    moved = output.path.rename(output.path.with_suffix(".old"))
    await printed(output, "two\n")
    assert (moved.read_text(), output.path.read_text()) == ("one\n", "two\n")
    moved.unlink()
    output.path.unlink()
    output.path.parent.rmdir()
    await printed(output, "three\n")
    assert output.path.read_text() == "three\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
async def test_a_full_disk_drops_output_but_never_stalls_the_worker() -> None:
    output = Output(Path("/dev/full"), max_bytes=1 << 40, keep=0)
    wrote = threading.Event()

    def write() -> None:
        for _ in range(100):
            os.write(output.write_end(), b"x" * 65535 + b"\n")
        os.write(output.write_end(), b"the end\n")
        wrote.set()

    thread = threading.Thread(target=write)
    thread.start()
    await wait_until(wrote.is_set, what="an unhindered worker")
    thread.join()
    await wait_until(lambda: output.tail(1) == "the end\n", what="the tail, from memory")
    assert output.dropped_bytes == 100 * 65536 + len("the end\n")
    output.close()


async def test_the_tail_holds_what_an_earlier_worker_printed(tmp_path: Path) -> None:
    for word in ("first", "second"):
        output = Output(tmp_path / "worker.log", max_bytes=10_000, keep=1)
        await printed(output, f"{word}\n")
        output.close()
    assert output.tail(10) == "first\nsecond\n"


async def test_two_workers_may_share_a_file_over_its_rotation(tmp_path: Path) -> None:
    one, two = (Output(tmp_path / "worker.log", max_bytes=500, keep=9) for _ in range(2))
    for number in range(50):
        await printed(one if number % 2 else two, f"{number:049}\n")
    one.close()
    two.close()
    text = b"".join(file.read_bytes() for file in files_in(tmp_path))
    assert sorted(int(line) for line in text.split()) == list(range(50))


async def test_a_follower_sees_what_comes_and_the_end(output: Output) -> None:
    seen: list[bytes] = []

    async def follow() -> None:
        seen.extend([chunk async for chunk in output.follow()])

    async with asyncio.TaskGroup() as group:
        group.create_task(follow())
        await wait_until(lambda: output._followers, what="the follower")
        await printed(output, "one\n")
        await printed(output, "two\n")
        output.close_write_end()
    assert b"".join(seen) == b"one\ntwo\n"
    assert [chunk async for chunk in output.follow()] == []


async def test_a_follower_that_is_too_slow_misses_some_and_is_told(output: Output) -> None:
    follower = aiter(output.follow())
    first = asyncio.ensure_future(anext(follower))
    await wait_until(lambda: output._followers, what="the follower")
    for number in range(100):
        await printed(output, f"{number:09}\n")
    await first
    assert await anext(follower) == b"\n[350 bytes skipped]\n"
    await follower.aclose()
