"""What a worker prints: always read, so that it never stalls on a full pipe, whatever happens to the log file."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import deque
from collections.abc import AsyncIterator
from pathlib import Path

from supervisor.shell.worker.rotated_file import RotatedFile, last_lines, tail_of

CHUNK_BYTES = 64 * 1024
REMEMBERED_BYTES = 256 * 1024
FOLLOWER_CHUNKS = 64
LAST_READS = 32
"""How often `close` reads what a process that still writes has left in the pipe."""


class Output:
    """One worker's standard output and error, through a pipe of our own into a rotated file."""

    def __init__(self, path: Path, max_bytes: int, keep: int) -> None:
        self._file = RotatedFile(path, max_bytes, keep)
        self._recent: deque[bytes] = deque()
        self._recent_bytes = 0
        self.printed_bytes = 0
        """In all."""
        self._followers: set[_Follower] = set()
        self._loop = asyncio.get_running_loop()
        self._read_end, self._write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        self._loop.add_reader(self._read_end, self._read)

    @property
    def path(self) -> Path:
        """Where the newest output lies."""
        return self._file.path

    @property
    def dropped_bytes(self) -> int:
        """How much was read and could not be written."""
        return self._file.dropped_bytes

    @property
    def is_open(self) -> bool:
        """Whether anyone may still write."""
        return self._read_end >= 0

    def write_end(self) -> int:
        """The descriptor that a worker is to inherit."""
        return self._write_end

    def close_write_end(self) -> None:
        """Forget our own copy, or the pipe would never end."""
        if self._write_end >= 0:
            os.close(self._write_end)
            self._write_end = -1

    def tail(self, lines: int) -> str:
        """The last ``lines`` lines: of the file, also from before this worker; of this worker if it cannot be read."""
        if not self._file.is_failing:
            text = last_lines(self.path, lines)
            if text is not None:
                return text
        return tail_of(b"".join(self._recent), lines)

    async def follow(self) -> AsyncIterator[bytes]:
        """What is printed from now on, until the output ends. A reader that is too slow misses some, and is told."""
        if not self.is_open:
            return
        follower = _Follower()
        self._followers.add(follower)
        try:
            while (chunk := await follower.next()) is not None:
                yield chunk
        finally:
            self._followers.discard(follower)

    def close(self) -> None:
        """Take what lies in the pipe now, and stop reading. A process that still writes gets EPIPE."""
        self.close_write_end()
        for _ in range(LAST_READS):
            if not self.is_open or not self._read():
                break
        self._end()

    def _read(self) -> bool:
        """Take one chunk; False if there was none."""
        try:
            chunk = os.read(self._read_end, CHUNK_BYTES)
        except BlockingIOError:
            return False
        except OSError:
            chunk = b""
        if not chunk:
            self._end()
            return False
        self.printed_bytes += len(chunk)
        self._file.write(chunk)
        self._remember(chunk)
        for follower in self._followers:
            follower.put(chunk)
        return True

    def _remember(self, chunk: bytes) -> None:
        self._recent.append(chunk)
        self._recent_bytes += len(chunk)
        while self._recent_bytes > REMEMBERED_BYTES or len(self._recent) > CHUNK_BYTES:
            self._recent_bytes -= len(self._recent.popleft())

    def _end(self) -> None:
        if not self.is_open:
            return
        with contextlib.suppress(RuntimeError):  # the loop may be closed already
            self._loop.remove_reader(self._read_end)
        os.close(self._read_end)
        self._read_end = -1
        self._file.close()
        for follower in self._followers:
            follower.put(None)


class _Follower:
    """A bounded queue that drops the oldest."""

    def __init__(self) -> None:
        self._chunks: deque[bytes | None] = deque()
        self._missed_bytes = 0
        self._has_some = asyncio.Event()

    def put(self, chunk: bytes | None) -> None:
        while len(self._chunks) >= FOLLOWER_CHUNKS:
            self._missed_bytes += len(self._chunks.popleft() or b"")
        self._chunks.append(chunk)
        self._has_some.set()

    async def next(self) -> bytes | None:
        await self._has_some.wait()
        if self._missed_bytes:
            missed, self._missed_bytes = self._missed_bytes, 0
            return f"\n[{missed} bytes skipped]\n".encode()
        chunk = self._chunks.popleft()
        if not self._chunks:
            self._has_some.clear()
        return chunk
