"""The log of a running process, and the thread that writes it."""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
from collections.abc import Iterable

from supervisor.logs.lines import LinesOut
from supervisor.logs.redactor import Redactor


class Logs:
    """The log of one process from ``configure_logs`` on; ``close`` it last."""

    def __init__(self, handler: logging.Handler, lines: LinesOut, redactor: Redactor) -> None:
        self._handler = handler
        self._lines = lines
        self._redactor = redactor
        self._thread = threading.Thread(target=self._write, name="freshlane-log", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """How many lines were lost because the log could not be written fast enough."""
        return self._lines.dropped

    def set_level(self, level: str) -> None:
        """A reload changed ``log.level`` (debug, info, warning, error)."""
        logging.getLogger().setLevel(level.upper())

    def hide(self, secrets: Iterable[str]) -> None:
        """Never write any of these: keys and tokens from the settings."""
        self._redactor.hide(secrets)

    def close(self, timeout_s: float = 2.0) -> None:
        """Write what waits, and end the thread; what a stuck reader has not taken after ``timeout_s`` is lost."""
        logging.getLogger().removeHandler(self._lines)
        with contextlib.suppress(queue.Full):
            self._lines.queue.put(None, timeout=timeout_s)
        self._thread.join(timeout_s)
        self._lines.close()
        if not self._thread.is_alive():
            self._handler.close()

    def _write(self) -> None:
        while (record := self._lines.queue.get()) is not None:
            self._handler.handle(record)
