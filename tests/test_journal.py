"""The recycle log: what is in it after a crash, on a full disk, under rotation, and beside foreign lines."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from supervisor.core.account.record import BeforeSpeed, Outcome, RecycleRecord
from supervisor.core.terms import Trigger
from supervisor.journal import Journal
from supervisor.journal.recycle_log import BLOCK_BYTES, append_line, read_newest
from supervisor.jsontext import decode, encode


def record_of(number: int, lane: str = "qwen", outcome: Outcome | None = Outcome.CURED) -> RecycleRecord:
    return RecycleRecord(
        id=f"{lane}-{number}",
        time="2026-01-05T14:03:00+01:00",
        lane=lane,
        trigger=Trigger.DEGRADED,
        before=BeforeSpeed(decode_tok_s=20.5, baseline_tok_s=66.5, ratio=0.31, samples=(20.1, 20.9)),
        outcome=outcome,
    )


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines()


def ids_of(path: Path) -> list[str]:
    return [json.loads(line)["id"] for line in lines_of(path)]


async def until(is_true: Callable[[], bool], within_s: float = 5.0) -> None:
    async with asyncio.timeout(within_s):
        while not is_true():  # noqa: ASYNC110 - a file of another thread has no event
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def opened_journal(state_dir: Path, retry_s: float = 60.0) -> AsyncIterator[Journal]:
    journal = Journal(state_dir, retry_s=retry_s)
    try:
        yield journal
    finally:
        await journal.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["/bin/mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("only root may mount a file system to fill")
    yield folder
    subprocess.run(["/bin/umount", str(folder)], check=True)


def fill(disk: Path) -> Path:
    ballast = disk / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(512))
    return ballast


async def test_a_record_is_one_private_line_in_the_documented_shape(tmp_path: Path) -> None:
    async with opened_journal(tmp_path) as journal:
        await journal.append(record_of(1))
    [line] = lines_of(journal.path)
    record = json.loads(line)
    assert record == json.loads(json.dumps(record_of(1).to_json()))
    assert record["before"]["ratio"] == 0.31
    assert record["outcome"] == "cured"
    assert journal.path.stat().st_mode & 0o777 == 0o600


async def test_an_intent_is_on_disk_until_its_record_is(tmp_path: Path) -> None:
    intent = tmp_path / "recycling" / "qwen.json"
    async with opened_journal(tmp_path) as journal:
        await journal.write_intent(record_of(1, outcome=None))
        assert json.loads(intent.read_text())["outcome"] is None
        assert intent.stat().st_mode & 0o777 == 0o600
        await journal.append(record_of(1))
        assert not intent.exists()
        assert list(intent.parent.iterdir()) == []


async def test_the_record_of_an_earlier_recycle_leaves_a_later_intent_alone(tmp_path: Path) -> None:
    async with opened_journal(tmp_path) as journal:
        await journal.write_intent(record_of(2, outcome=None))
        await journal.append(record_of(1))
    assert json.loads((tmp_path / "recycling" / "qwen.json").read_text())["id"] == "qwen-2"


async def test_an_intent_found_at_start_becomes_an_aborted_record(tmp_path: Path) -> None:
    async with opened_journal(tmp_path) as journal:
        await journal.write_intent(record_of(1, lane="a/b", outcome=None))
    async with opened_journal(tmp_path) as journal:
        [aborted] = await journal.open()
        assert aborted["id"] == "a/b-1"
        assert aborted["outcome"] == "aborted"
        assert await journal.records() == [aborted]
        assert list((tmp_path / "recycling").iterdir()) == []
        assert await journal.open() == []


async def test_an_intent_whose_record_is_in_the_log_is_only_removed(tmp_path: Path) -> None:
    async with opened_journal(tmp_path) as journal:
        await journal.append(record_of(1))
        await journal.write_intent(record_of(1, outcome=None))
    async with opened_journal(tmp_path) as journal:
        assert await journal.open() == []
        assert [record["outcome"] for record in await journal.records()] == ["cured"]
        assert list((tmp_path / "recycling").iterdir()) == []


async def test_an_unreadable_intent_is_set_aside_and_harms_no_other(tmp_path: Path) -> None:
    folder = tmp_path / "recycling"
    folder.mkdir()
    (folder / "half.json").write_text('{"id": "half-1", "lane"')
    (folder / "list.json").write_text("[1]")
    (folder / "whole.json").write_text('{"id": "whole-1", "lane": "whole", "from_the_future": {"x": 1}}')
    async with opened_journal(tmp_path) as journal:
        [aborted] = await journal.open()
    assert aborted["lane"] == "whole"
    assert aborted["from_the_future"] == {"x": 1}
    assert sorted(path.name for path in folder.iterdir()) == ["half.broken", "list.broken"]


async def test_readers_pass_over_torn_and_foreign_lines_and_keep_unknown_fields(tmp_path: Path) -> None:
    log = tmp_path / "recycle.jsonl"
    log.write_bytes(b'{"id": "1", "lane": "qwen", "colour": "red"}\n\nnoise\n[]\n\xff\xfe\n{"id": "2", "la')
    async with opened_journal(tmp_path) as journal:
        assert await journal.records() == [{"id": "1", "lane": "qwen", "colour": "red"}]
        await journal.append(record_of(3))
        assert [record["id"] for record in await journal.records()] == ["1", "qwen-3"]


async def test_records_are_the_newest_of_a_lane_newest_last(tmp_path: Path) -> None:
    async with opened_journal(tmp_path) as journal:
        for number in range(6):
            await journal.append(record_of(number, lane="even" if number % 2 == 0 else "odd"))
        assert [record["id"] for record in await journal.records("even", 2)] == ["even-2", "even-4"]
        assert [record["id"] for record in await journal.records(None, 3)] == ["odd-3", "even-4", "odd-5"]
        assert await journal.records(None, 0) == []
        assert await journal.records("nobody") == []


async def test_a_rotated_log_goes_on_under_its_name_and_reads_as_one(tmp_path: Path) -> None:
    async with opened_journal(tmp_path) as journal:
        await journal.append(record_of(1))
        journal.path.rename(tmp_path / "recycle.jsonl.1")
        await journal.append(record_of(2))
        assert ids_of(journal.path) == ["qwen-2"]
        assert [record["id"] for record in await journal.records()] == ["qwen-1", "qwen-2"]


async def test_a_deleted_state_folder_is_made_anew(tmp_path: Path) -> None:
    state_dir = tmp_path / "state"
    async with opened_journal(state_dir) as journal:
        await journal.append(record_of(1))
        shutil.rmtree(state_dir)
        await journal.write_intent(record_of(2, outcome=None))
        await journal.append(record_of(2))
        assert ids_of(journal.path) == ["qwen-2"]


async def test_on_a_full_disk_records_wait_in_memory_and_are_written_once_there_is_room(small_disk: Path) -> None:
    async with opened_journal(small_disk, retry_s=0.02) as journal:
        await journal.append(record_of(1))
        ballast = fill(small_disk)
        room_left = 4096 - journal.path.stat().st_size % 4096
        numbers = range(2, 4 + room_left // len(encode(record_of(1).to_json())))
        for number in numbers:
            await journal.write_intent(record_of(number, outcome=None))
            await journal.append(record_of(number))
        assert journal.unsaved > 0
        assert "No space left" in str(journal.trouble)
        assert [record["id"] for record in await journal.records()] == [f"qwen-{n}" for n in (1, *numbers)]
        assert all(decode(line.encode()) for line in lines_of(journal.path))
        ballast.unlink()
        await until(lambda: journal.unsaved == 0)
        assert ids_of(journal.path) == [f"qwen-{n}" for n in (1, *numbers)]
        assert journal.trouble is None


async def test_a_log_that_is_no_file_is_trouble_but_no_error(tmp_path: Path) -> None:
    (tmp_path / "recycle.jsonl").mkdir()
    async with opened_journal(tmp_path) as journal:
        await journal.append(record_of(1))
        assert journal.trouble is not None
        assert [record["id"] for record in await journal.records()] == ["qwen-1"]
        journal.path.rmdir()
        await journal.append(record_of(2))
        assert journal.trouble is None
    assert ids_of(journal.path) == ["qwen-1", "qwen-2"]


def test_what_json_cannot_say_becomes_null() -> None:
    assert encode({"a": float("nan"), "b": (1.5, float("inf")), "c": {"d": "ü"}}) == (
        '{"a":null,"b":[1.5,null],"c":{"d":"ü"}}'
    )


def test_reading_backwards_is_right_where_lines_lie_over_block_borders(tmp_path: Path) -> None:
    path = tmp_path / "log"
    for number in range(7):
        append_line(path, {"n": number, "ballast": "x" * (BLOCK_BYTES // 3 + number)})
    assert [found["n"] for found in read_newest(path, 6, lambda _: True)] == [1, 2, 3, 4, 5, 6]


WRITER_PROGRAM = """
import asyncio, pathlib, sys
from supervisor.core.account.record import Outcome, RecycleRecord
from supervisor.core.terms import Trigger
from supervisor.journal import Journal

async def write():
    journal = Journal(pathlib.Path(sys.argv[1]))
    await journal.open()
    number = int(sys.argv[2])
    while True:
        number += 1
        record = dict(id=str(number), lane="qwen", trigger=Trigger.OPERATOR, reason="x" * (number * 37 % 5000))
        await journal.write_intent(RecycleRecord(**record))
        await journal.append(RecycleRecord(outcome=Outcome.REPLACED, **record))
        print(number, flush=True)

asyncio.run(write())
"""


async def test_a_log_whose_writer_is_killed_at_random_moments_holds_every_record_exactly_once(tmp_path: Path) -> None:
    chance = random.Random(20)
    last = 0
    for _ in range(6):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", WRITER_PROGRAM, str(tmp_path), str(last), stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        for _ in range(chance.randint(1, 6)):
            last = int(await asyncio.wait_for(process.stdout.readline(), 20))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), chance.random() * 0.01)
        process.send_signal(signal.SIGKILL)
        unread, _ = await process.communicate()
        last = int(unread.split()[-1]) if unread.strip() else last
        async with opened_journal(tmp_path) as journal:
            aborted = await journal.open()
            records = await journal.records(limit=1000)
        assert [record["id"] for record in aborted] in ([], [records[-1]["id"]])
        ids = [int(record["id"]) for record in records]
        assert ids == list(range(1, ids[-1] + 1)), "each record once, in order, none lost"
        assert last <= ids[-1] <= last + 1
        last = ids[-1]
