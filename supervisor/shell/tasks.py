"""Background tasks have an owner: they end with it, and their errors are heard."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import structlog

log = structlog.get_logger(__name__)


class Tasks:
    """The background tasks of one object. ``on_error(name, error)`` is called for each that fails."""

    def __init__(self, on_error: Callable[[str, BaseException], None] | None = None) -> None:
        self._on_error = on_error
        self._running: set[asyncio.Task[Any]] = set()
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._running)

    def start(self, coro: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Run ``coro`` until it ends or the owner closes; RuntimeError after ``close``."""
        if self._is_closed:
            coro.close()
            raise RuntimeError(f"{name} was started on an owner that is closed; this is a bug in freshlane")
        task = asyncio.get_running_loop().create_task(coro, name=name)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    async def close(self, timeout_s: float = 10.0) -> None:
        """Cancel what runs and wait; a task that resists longer than ``timeout_s`` is named in the log and left."""
        self.cancel()
        running = {task for task in self._running if task is not asyncio.current_task()}
        if running:
            _, resisting = await asyncio.wait(running, timeout=timeout_s)
            for task in resisting:
                log.error("task_resists_cancellation", task=task.get_name(), waited_s=timeout_s)

    def cancel(self) -> None:
        """Cancel what runs and take nothing new; ``close`` waits as well."""
        self._is_closed = True
        current = asyncio.current_task()
        for task in self._running:
            if task is not current:
                task.cancel()

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is None:
            return
        log.error("task_failed", task=task.get_name(), error=str(error), exc_info=error)
        if self._on_error:
            self._on_error(task.get_name(), error)
