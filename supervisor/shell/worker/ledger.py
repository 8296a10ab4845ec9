"""Which workers this state folder's daemon has started, so that the next daemon knows what an earlier one left."""

from __future__ import annotations

import asyncio
import fcntl
import os
from dataclasses import asdict
from pathlib import Path

import structlog

from supervisor import jsontext
from supervisor.errors import FreshlaneError
from supervisor.journal import durable
from supervisor.shell.worker import family
from supervisor.shell.worker.survivors import Entry, Survivor, boot, end

log = structlog.get_logger(__name__)

LEDGER = "workers.json"
LOCK = "daemon.lock"


class StateDirTakenError(FreshlaneError):
    """Another daemon runs on the same state folder."""

    def __init__(self, state_dir: Path, pid: int | None) -> None:
        who = f"the daemon with pid {pid}" if pid else "another daemon"
        super().__init__(f"{state_dir} is in use by {who}; stop that one, or give this one a state_dir of its own")
        self.pid = pid


class StateDirUnusableError(FreshlaneError):
    """The state folder cannot be written. Without its lock two daemons could end each other's workers."""

    def __init__(self, state_dir: Path, error: OSError) -> None:
        why = error.strerror or str(error)
        super().__init__(
            f"{state_dir} cannot be used ({why}: {error.filename}); "
            "let this user write it, or set `state_dir` in lanes.yaml to another folder"
        )


class Ledger:
    """``workers.json`` in the state folder, and the lock that says whose folder it is."""

    def __init__(self, state_dir: Path) -> None:
        self._state_dir = state_dir
        self._path = state_dir / LEDGER
        self._lock: int | None = None
        self._entries: dict[tuple[str, int], Entry] = {}
        self._inherited: list[Entry] = []
        self._left: dict[tuple[str, int], dict[int, float | None]] = {}
        """Of a worker of this daemon that has ended: the pids and start times of what would not end with it."""
        self._writing = asyncio.Lock()

    def claim(self) -> None:
        """Take the state folder until ``release`` or the end of this process.

        Raises:
            StateDirTakenError: another daemon has it.
            StateDirUnusableError: it cannot be written.
        """
        try:
            self._state_dir.mkdir(mode=durable.PRIVATE_FOLDER, parents=True, exist_ok=True)
            path = self._state_dir / LOCK
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, durable.PRIVATE_FILE)
        except OSError as error:
            raise StateDirUnusableError(self._state_dir, error) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 32, 0).strip()
            os.close(descriptor)
            raise StateDirTakenError(self._state_dir, int(holder) if holder.isdigit() else None) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._lock = descriptor

    def release(self) -> None:
        """Give the folder up. The lock's file stays: to remove it would let two daemons lock two files."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    async def note_worker(self, entry: Entry) -> None:
        """A worker is there; on the medium when this returns, unless the disk refuses: that is logged."""
        self._entries[entry.lane, entry.generation] = entry
        await self._write()

    async def worker_gone(self, lane: str, generation: int, left: set[int]) -> None:
        """The worker has ended, and so has its family but for the pids ``left``: what they hold is not free."""
        if left:
            self._left[lane, generation] = {pid: family.create_time(pid) for pid in left}
        elif self._entries.pop((lane, generation), None):
            await self._write()

    async def reap_survivors(self) -> list[Survivor]:
        """Wait for, or end, what an earlier daemon left: by pid and start time, never by name.

        A worker's own tether has told it to stop when that daemon died. One that has lost its tether as well is told
        here. Who lives on stays in the ledger, and is reported with the pids that are left.
        """
        self._inherited = await asyncio.to_thread(self._read)
        outcomes = await asyncio.gather(*map(end, self._inherited))
        survivors = [outcome for outcome in outcomes if outcome is not None]
        self._inherited = [survivor.entry for survivor in survivors if survivor.left]
        await self._write()
        return survivors

    def left_of(self, lane: str) -> list[int]:
        """Pids of what the lane's earlier workers, of this daemon or the one before, left and would not go."""
        known: list[tuple[int, float | None]] = [
            (entry.pid, entry.create_time) for entry in self._inherited if entry.lane == lane
        ]
        known += [one for (of, _), pids in self._left.items() if of == lane for one in pids.items()]
        return sorted(pid for pid, started in known if started is not None and family.create_time(pid) == started)

    async def _write(self) -> None:
        async with self._writing:
            entries = [*self._inherited, *self._entries.values()]
            document = {"boot": boot(), "workers": [asdict(entry) for entry in entries]}
            try:
                await asyncio.to_thread(durable.replace_file, self._path, jsontext.encode(document).encode())
            except OSError as error:
                # The workers are tethered all the same; only a daemon and a tether killed together would leave one.
                log.warning("ledger_not_written", path=str(self._path), error=str(error))

    def _read(self) -> list[Entry]:
        try:
            document = jsontext.decode(self._path.read_bytes()) or {}
        except OSError:
            return []
        if document.get("boot") != boot():
            return []
        entries = (Entry.read(fields) for fields in document.get("workers", ()))
        return [entry for entry in entries if entry]
