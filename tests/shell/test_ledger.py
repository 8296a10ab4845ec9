"""The ledger: one daemon a state folder, and an earlier daemon's workers known by who they are."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from supervisor.shell.worker import family
from supervisor.shell.worker.ledger import Ledger, StateDirTakenError
from supervisor.shell.worker.survivors import Entry
from tests.shell.workers import PARENT_OF_A_SETSID_CHILD, SLEEPER, STUBBORN, python
from tests.waiting import wait_until

HOLD = "import sys; from pathlib import Path; from supervisor.shell.worker.ledger import Ledger\n"
HOLD += "ledger = Ledger(Path(sys.argv[1])); ledger.claim(); print('held', flush=True); sys.stdin.read()"


class Orphan:
    """A worker that has lost daemon and tether: nobody else will end it."""

    def __init__(self, code: str, folder: Path) -> None:
        env = {**os.environ, "FRESHLANE_LANE": "small", "FRESHLANE_GENERATION": "3"}
        self._log = folder / "orphan.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(python(code), stdout=log, env=env, start_new_session=True)
        self.pid = self._process.pid
        created = family.create_time(self.pid)
        assert created
        self.entry = Entry("small", 3, self.pid, created, self.pid, signal.SIGTERM, 0.5, may_kill=True)

    async def printed(self, word: str) -> str:
        await wait_until(lambda: word in self._log.read_text(), what=word)
        return self._log.read_text()

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.fixture
def orphans(tmp_path: Path) -> Iterator[list[Orphan]]:
    started: list[Orphan] = []
    yield started
    for orphan in started:
        orphan.end()


async def noted(state_dir: Path, *entries: Entry) -> None:
    """What an earlier daemon wrote."""
    ledger = Ledger(state_dir)
    for entry in entries:
        await ledger.note_worker(entry)


def entries_in(state_dir: Path) -> list[int]:
    return [worker["pid"] for worker in json.loads((state_dir / "workers.json").read_text())["workers"]]


async def test_a_second_daemon_is_refused_and_told_the_pid_of_the_first(tmp_path: Path) -> None:
    first = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLD, str(tmp_path), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert first.stdout
    assert await asyncio.wait_for(first.stdout.readline(), 10) == b"held\n"
    second = Ledger(tmp_path)
    with pytest.raises(StateDirTakenError, match=rf"is in use by the daemon with pid {first.pid}; stop that one"):
        second.claim()
    first.kill()
    await first.communicate()
    second.claim()
    with pytest.raises(StateDirTakenError, match=str(os.getpid())):
        Ledger(tmp_path).claim()
    second.release()


async def test_what_is_noted_is_on_disk_for_its_owner_alone_until_it_is_forgotten(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    await ledger.note_worker(Entry("small", 3, 12345, 1.5, 12345, signal.SIGINT, 30.0, may_kill=False))
    assert entries_in(tmp_path) == [12345]
    assert stat.S_IMODE((tmp_path / "workers.json").stat().st_mode) == 0o600
    await ledger.worker_gone("small", 3, set())
    assert entries_in(tmp_path) == []


async def test_a_survivor_is_ended_by_its_signal(tmp_path: Path, orphans: list[Orphan]) -> None:
    orphans.append(orphan := Orphan(SLEEPER, tmp_path))
    await noted(tmp_path, orphan.entry)
    (survivor,) = await Ledger(tmp_path).reap_survivors()
    assert (survivor.entry, survivor.killed, survivor.left) == (orphan.entry, False, frozenset())
    assert not orphan.is_alive
    assert entries_in(tmp_path) == []


async def test_a_deaf_survivor_is_killed(tmp_path: Path, orphans: list[Orphan]) -> None:
    orphans.append(orphan := Orphan(STUBBORN, tmp_path))
    await orphan.printed("up")
    await noted(tmp_path, orphan.entry)
    (survivor,) = await Ledger(tmp_path).reap_survivors()
    assert survivor.killed
    assert not survivor.left


async def test_a_deaf_survivor_that_may_not_be_killed_is_reported_and_stays_in_the_ledger(
    tmp_path: Path, orphans: list[Orphan]
) -> None:
    orphans.append(orphan := Orphan(STUBBORN, tmp_path))
    await orphan.printed("up")
    await noted(tmp_path, dataclasses.replace(orphan.entry, may_kill=False))
    (survivor,) = await Ledger(tmp_path).reap_survivors()
    assert survivor.left == {orphan.pid}
    assert orphan.is_alive
    assert entries_in(tmp_path) == [orphan.pid]


async def test_a_stranger_with_the_pid_of_a_worker_is_left_alone(tmp_path: Path, orphans: list[Orphan]) -> None:
    orphans.append(stranger := Orphan(SLEEPER, tmp_path))
    await noted(tmp_path, dataclasses.replace(stranger.entry, create_time=stranger.entry.create_time - 1.0))
    assert await Ledger(tmp_path).reap_survivors() == []
    assert stranger.is_alive


async def test_a_survivors_child_in_a_session_of_its_own_is_ended_too(tmp_path: Path, orphans: list[Orphan]) -> None:
    orphans.append(orphan := Orphan(PARENT_OF_A_SETSID_CHILD, tmp_path))
    child = int((await orphan.printed("child")).split()[-1])
    await noted(tmp_path, orphan.entry)
    await Ledger(tmp_path).reap_survivors()
    assert family.create_time(child) is None


async def test_a_group_whose_first_process_has_gone_is_known_by_the_workers_environment(
    tmp_path: Path, orphans: list[Orphan]
) -> None:
    code = PARENT_OF_A_SETSID_CHILD.replace(", start_new_session=True", "")
    orphans.append(orphan := Orphan(code, tmp_path))
    child = int((await orphan.printed("child")).split()[-1])
    orphan.end()
    await noted(tmp_path, dataclasses.replace(orphan.entry, lane="other"))
    assert await Ledger(tmp_path).reap_survivors() == []
    assert family.create_time(child) is not None
    await noted(tmp_path, orphan.entry)
    (survivor,) = await Ledger(tmp_path).reap_survivors()
    assert not survivor.left
    assert family.create_time(child) is None


async def test_nothing_and_nonsense_are_no_survivors(tmp_path: Path) -> None:
    assert await Ledger(tmp_path).reap_survivors() == []
    (tmp_path / "workers.json").write_text('{"workers": [')
    assert await Ledger(tmp_path).reap_survivors() == []


async def test_a_ledger_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    ledger = Ledger(tmp_path / "file" / "state")
    await ledger.note_worker(Entry("small", 3, 12345, 1.5, 12345, signal.SIGTERM, 30.0, may_kill=True))
