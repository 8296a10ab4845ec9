"""The history: what it keeps, and that no disk can stop it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from supervisor.core.samples import Purpose, Sample, Void
from supervisor.history import History
from supervisor.history.history import MOST_KEPT_BASELINES

DAY_S = 86_400.0


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def sample_of(wall: float, rate: float | None = 66.5) -> Sample:
    void = None if rate is not None else Void.CLIENT_ARRIVED
    return Sample(
        at=1.0, wall=wall, generation=3, prompt_tokens=256, purpose=Purpose.ROUTINE, decode_tok_s=rate, void=void
    )


@contextlib.asynccontextmanager
async def opened(
    path: Path,
    clock: Clock | None = None,
    keep_s: float = 90 * DAY_S,
    retry_s: float = 60.0,
    now: Callable[[], float] = time.monotonic,
) -> AsyncIterator[History]:
    history = History(path, keep_s=keep_s, wall=clock or Clock(), retry_s=retry_s, now=now)
    await history.open()
    try:
        yield history
    finally:
        await history.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 512 KiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["/bin/mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("only root may mount a file system to fill")
    yield folder
    subprocess.run(["/bin/umount", str(folder)], check=True)


async def test_samples_come_back_oldest_first_from_a_moment_on_and_of_one_lane(tmp_path: Path) -> None:
    async with opened(tmp_path / "history.db") as history:
        for number in range(4):
            history.add_sample("qwen" if number % 2 else "smollm2", sample_of(1_800_000_000.0 + number))
        history.add_sample("qwen", sample_of(1_800_000_009.0, None))
        found = await history.samples("qwen", since=1_800_000_002.0)
        assert [(sample["lane"], sample["wall"]) for sample in found] == [
            ("qwen", 1_800_000_003.0),
            ("qwen", 1_800_000_009.0),
        ]
        assert found[0]["decode_tok_s"] == 66.5
        assert (found[1]["decode_tok_s"], found[1]["void"]) == (None, "client_arrived")
        assert len(await history.samples()) == 5


async def test_everything_is_there_after_a_restart_in_a_private_file(tmp_path: Path) -> None:
    path = tmp_path / "state" / "history.db"
    async with opened(path) as history:
        await history.save("qwen", "wish", {"wish": "drained"})
        await history.save("qwen", "wish", {"wish": "stopped"})
        await history.save_baseline("qwen", "abc", {"decode_tok_s": 66.5})
        history.add_change("qwen", {"state": "serving", "reason": "warm"})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    async with opened(path) as history:
        assert await history.load("qwen", "wish") == {"wish": "stopped"}
        assert await history.load("qwen", "nothing") is None
        assert await history.load_baseline("qwen", "abc") == {"decode_tok_s": 66.5}
        [change] = await history.changes("qwen")
        assert change == {"state": "serving", "reason": "warm", "lane": "qwen", "wall": 1_800_000_000.0}
        await history.forget_baselines("qwen")
        assert await history.load_baseline("qwen", "abc") is None
        assert history.trouble is None


async def test_what_the_daemon_has_outlived_goes_but_documents_stay(tmp_path: Path) -> None:
    ran = Clock()
    async with opened(tmp_path / "history.db", keep_s=10 * DAY_S, now=ran) as history:
        for day in range(13):
            history.add_sample("qwen", sample_of(float(day)))
            await history.save("qwen", "judge", {"day": day})
            ran.now += DAY_S
        history.add_sample("qwen", sample_of(13.0))
        found = {sample["wall"] for sample in await history.samples()}
        assert {float(day) for day in range(4, 14)} <= found
        assert not {0.0, 1.0} & found
        assert await history.load("qwen", "judge") == {"day": 12}


@pytest.mark.parametrize("step_s", [40 * 365 * DAY_S, -40 * 365 * DAY_S])
async def test_a_clock_that_is_set_costs_no_history(tmp_path: Path, step_s: float) -> None:
    wall, ran = Clock(), Clock()
    path = tmp_path / "history.db"
    async with opened(path, wall, now=ran) as history:
        history.add_sample("qwen", sample_of(wall.now))
        history.add_change("qwen", {"state": "serving"})
        await history.save_baseline("qwen", "old", {"decode_tok_s": 66.5})
        await history.save_baseline("qwen", "new", {"decode_tok_s": 66.5})
        wall.now += step_s
        ran.now += 0.1 * DAY_S
        history.add_sample("qwen", sample_of(wall.now))
    async with opened(path, wall, now=ran) as history:
        assert len(await history.samples(since=-1e18)) == 2
        assert len(await history.changes(since=-1e18)) == 1
        assert len(await history.baselines("qwen")) == 2


async def test_time_counts_over_restarts_and_a_shorter_keep_holds_at_once(tmp_path: Path) -> None:
    ran = Clock()
    for life in range(6):
        async with opened(tmp_path / "history.db", now=ran) as history:
            history.add_sample("qwen", sample_of(float(life)))
            ran.now += DAY_S
        ran.now = Clock().now  # the next daemon's clock begins anew
    async with opened(tmp_path / "history.db", now=ran) as history:
        assert len(await history.samples()) == 6
        history.keep(2 * DAY_S)
        history.add_sample("qwen", sample_of(6.0))
        found = {sample["wall"] for sample in await history.samples()}
        assert {4.0, 5.0, 6.0} <= found
        assert not {0.0, 1.0, 2.0} & found


async def test_what_is_new_after_a_long_silence_is_not_taken_for_old(tmp_path: Path) -> None:
    ran = Clock()
    async with opened(tmp_path / "history.db", keep_s=DAY_S, now=ran) as history:
        for wall in (1.0, 2.0):
            history.add_sample("qwen", sample_of(wall))
        for _ in range(5):
            ran.now += DAY_S
            await history.save("qwen", "judge", {})
        history.add_sample("qwen", sample_of(3.0))
        ran.now += 0.5 * DAY_S
        await history.save("qwen", "judge", {})
        assert 3.0 in {sample["wall"] for sample in await history.samples()}


async def test_a_lane_keeps_the_baselines_that_changed_last(tmp_path: Path) -> None:
    async with opened(tmp_path / "history.db") as history:
        for number in range(MOST_KEPT_BASELINES + 5):
            await history.save_baseline("qwen", str(number), {})
        await history.save_baseline("qwen", "0", {})
        await history.save_baseline("other", "0", {})
    async with opened(tmp_path / "history.db") as history:
        kept = {baseline["fingerprint"] for baseline in await history.baselines("qwen")}
        assert kept == {"0", *(str(number) for number in range(6, MOST_KEPT_BASELINES + 5))}
        assert len(await history.baselines("other")) == 1


@pytest.mark.parametrize("rubbish", [b"not a database at all" * 400, b"SQLite format 3\0" + b"\xff" * 8000])
async def test_a_broken_file_is_set_aside_and_a_new_one_made(tmp_path: Path, rubbish: bytes) -> None:
    path = tmp_path / "history.db"
    path.write_bytes(rubbish)
    async with opened(path) as history:
        history.add_sample("qwen", sample_of(1_800_000_000.0))
        assert len(await history.samples()) == 1
        assert history.trouble is None
    assert (tmp_path / "history.db.broken").read_bytes() == rubbish
    async with opened(path) as history:
        assert len(await history.samples()) == 1


async def test_a_file_broken_while_it_is_open_costs_the_past_but_not_the_present(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    async with opened(path) as history:
        history.add_sample("qwen", sample_of(1_800_000_000.0))
        await history.samples()
        with contextlib.closing(sqlite3.connect(path)) as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        with path.open("r+b") as file:
            file.write(b"\xff" * path.stat().st_size)
        for number in range(3):
            await history.save("qwen", "judge", {"number": number})
            await history.samples()
        await history.save("qwen", "judge", {"number": 9})
        assert await history.load("qwen", "judge") == {"number": 9}


async def test_a_deleted_file_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "state" / "history.db"
    async with opened(path) as history:
        await history.save("qwen", "judge", {"number": 1})
        for file in path.parent.iterdir():
            file.unlink()
        path.parent.rmdir()
        await history.save("qwen", "judge", {"number": 2})
        assert path.exists()
        assert history.trouble is None
    async with opened(path) as history:
        assert await history.load("qwen", "judge") == {"number": 2}


async def test_where_no_file_can_be_made_memory_stands_in_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    path.mkdir()
    async with opened(path) as history:
        await history.save("qwen", "judge", {"number": 1})
        assert await history.load("qwen", "judge") == {"number": 1}
        assert history.trouble is not None
        assert str(path) in history.trouble


async def test_a_file_that_can_be_used_again_gets_what_memory_kept(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    async with opened(path) as history:
        await history.save("qwen", "old", {"number": 0})
    path.rename(tmp_path / "elsewhere")
    path.mkdir()
    async with opened(path, retry_s=0.0) as history:
        await history.save("qwen", "judge", {"number": 1})
        history.add_sample("qwen", sample_of(1_800_000_000.0))
        assert len(await history.samples()) == 1
        assert history.trouble is not None
        path.rmdir()
        (tmp_path / "elsewhere").rename(path)
        await history.save("qwen", "judge", {"number": 2})
        assert history.trouble is None
    async with opened(path) as history:
        assert [(await history.load("qwen", key) or {})["number"] for key in ("old", "judge")] == [0, 2]
        assert len(await history.samples()) == 1


async def test_a_disk_that_is_full_from_the_start_is_used_once_there_is_room(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(512))
    path = small_disk / "history.db"
    async with opened(path, retry_s=0.0) as history:
        await history.save("qwen", "judge", {"number": 1})
        assert history.trouble is not None
        assert await history.load("qwen", "judge") == {"number": 1}
        ballast.unlink()
        await history.save("qwen", "other", {"number": 2})
        assert history.trouble is None
    async with opened(path) as history:
        assert await history.load("qwen", "judge") == {"number": 1}


async def test_on_a_full_disk_what_is_new_waits_and_is_written_once_there_is_room(small_disk: Path) -> None:
    path = small_disk / "history.db"
    async with opened(path) as history:
        await history.save("qwen", "judge", {"number": 1})
        ballast = small_disk / "ballast"
        with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(512))
        for number in range(40):
            await history.save("qwen", f"judge-{number}", {"text": "x" * 2000})
        assert history.trouble is not None
        ballast.unlink()
        await history.save("qwen", "judge", {"number": 2})
        assert history.trouble is None
        assert await history.load("qwen", "judge") == {"number": 2}
        assert await history.load("qwen", "judge-39") is not None


READ_ONLY_PROGRAM = r"""
import asyncio, concurrent.futures.thread, os, pathlib, sys  # all before the interpreter gets out of reach
from supervisor.history import History

async def use() -> None:
    history = History(pathlib.Path(sys.argv[1]), keep_s=1e9, wall=lambda: 1.0)
    await history.open()
    before = await history.load("qwen", "judge")
    await history.save("qwen", "judge", {"number": 2})
    after = await history.load("qwen", "judge")
    trouble = history.trouble
    await history.close()
    print(before, after, trouble, sep="\n")

if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
asyncio.run(use())
"""


def run_as_nobody(program: str, path: Path) -> list[str]:
    """The last three lines that ``program`` prints, run under a uid that may not write where ``path`` lies."""
    path.chmod(0o444)
    path.parent.chmod(0o555)
    for folder in path.parents[1:]:
        if folder.stat().st_uid == os.getuid() and folder.is_relative_to(Path(tempfile.gettempdir())):
            folder.chmod(folder.stat().st_mode | 0o011)
    try:
        done = subprocess.run(
            [sys.executable, "-c", program, str(path)], capture_output=True, text=True, timeout=30, check=False
        )
    finally:
        path.parent.chmod(0o755)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-3:]


async def test_a_read_only_file_is_read_and_new_things_live_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    async with opened(path) as history:
        await history.save("qwen", "judge", {"number": 1})
    before, after, trouble = await asyncio.to_thread(run_as_nobody, READ_ONLY_PROGRAM, path)
    assert before == "{'number': 1}"
    assert after == "{'number': 2}"
    assert "history.db" in trouble
