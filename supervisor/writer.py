"""One thread for blocking writes: the fsyncs of journal and history happen here, never on the loop."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from supervisor.errors import FreshlaneError

T = TypeVar("T")

Job = tuple[Callable[[], Any], "Future[Any]"]


class WriterFullError(FreshlaneError):
    """The disk is so slow that the queue of the writer is full; what was offered has not been taken."""

    def __init__(self, name: str, room: int) -> None:
        super().__init__(f"{name}: {room} writes wait for the disk already; look at the disk that holds state_dir")


class Writer:
    """Runs what it is given, in order, on one thread of its own, behind a queue of ``room`` places."""

    def __init__(self, name: str, room: int = 1000) -> None:
        self._name = name
        self._room = room
        self._queue: queue.Queue[Job | None] = queue.Queue(room)
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def offer(self, job: Callable[[], T]) -> Future[T]:
        """Queue ``job`` and return at once; raises WriterFullError when the queue is full."""
        future: Future[T] = Future()
        try:
            self._queue.put_nowait((job, future))
        except queue.Full:
            raise WriterFullError(self._name, self._room) from None
        return future

    async def run(self, job: Callable[[], T], timeout_s: float) -> T:
        """Queue ``job`` and wait for its result; a wait cancelled or timed out leaves the job queued."""
        return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(self.offer(job))), timeout_s)

    async def close(self, timeout_s: float) -> bool:
        """Let the thread finish what is queued, and end it; False when it was not done in time."""
        with contextlib.suppress(queue.Full):
            await asyncio.to_thread(self._queue.put, None, timeout=timeout_s)
        await asyncio.to_thread(self._thread.join, timeout_s)
        return not self._thread.is_alive()

    def _work(self) -> None:
        while (job := self._queue.get()) is not None:
            work, future = job
            try:
                future.set_result(work())
            except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits for the future
                future.set_exception(error)
