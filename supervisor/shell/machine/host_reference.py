"""The machine's reference: a fixed piece of work, done by a small program beside this one whenever it is read."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from pathlib import Path

PROGRAM = Path(__file__).with_name("reference_kernel.py")
READ_WITHIN_S = 2.0
"""A machine on which it takes longer is slow enough for any conclusion."""

START_WITHIN_S = 10.0
END_S = 1.0


class HostReference:
    """Started by the first reading, ended by ``close``. One reading at a time; who comes meanwhile waits."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()
        self._asked = 0
        self._is_owed = False
        """Whether the last question still wants its answer: then that is waited for, and no other is asked."""

    @property
    def pid(self) -> int | None:
        """Of the program; None while it does not run."""
        return self._process.pid if self._process and self._process.returncode is None else None

    async def read(self) -> float | None:
        """Seconds that the work took; ``READ_WITHIN_S`` if it took longer. None where it cannot be done."""
        async with self._turn:
            try:
                if self.pid is None:
                    await self._start()
                return await self._ask(READ_WITHIN_S)
            except TimeoutError:
                self._is_owed = True
                return READ_WITHIN_S
            except (OSError, ValueError):
                await self._end()
                return None

    async def close(self) -> None:
        """End the program."""
        async with self._turn:
            await self._end()

    async def _start(self) -> None:
        """The first answer is not counted: the program has to be read from the disk. Raises OSError, ValueError."""
        self._process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", str(PROGRAM)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,  # a terminal's Ctrl-C is for the daemon, which then ends this one
        )
        try:
            await self._ask(START_WITHIN_S)
        except TimeoutError as error:
            raise OSError(f"{PROGRAM.name} does not start") from error

    async def _ask(self, within_s: float) -> float:
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise OSError(f"{PROGRAM.name} does not run")
        async with asyncio.timeout(within_s):
            if not self._is_owed:
                self._asked += 1
                process.stdin.write(f"{self._asked}\n".encode())
                await process.stdin.drain()
            self._is_owed = False
            while True:
                number, seconds = (await process.stdout.readline()).split()
                if int(number) == self._asked:  # an earlier one's reader has gone
                    return float(seconds)

    async def _end(self) -> None:
        process, self._process = self._process, None
        self._is_owed = False
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), END_S)
