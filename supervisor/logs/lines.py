"""Lines on their way out: handed over without waiting, written to a stream or a rotated private file."""

from __future__ import annotations

import logging
import os
import queue
from logging.handlers import QueueHandler, RotatingFileHandler
from typing import Any

LINES_WAITING = 10_000
PRIVATE_FILE = 0o600


class LinesOut(QueueHandler):
    """Formats on the caller's thread, and hands over without waiting."""

    def __init__(self, formatter: logging.Formatter) -> None:
        self.queue: queue.Queue[logging.LogRecord | None] = queue.Queue(LINES_WAITING)
        super().__init__(self.queue)
        self.dropped = 0
        self.setFormatter(formatter)

    def enqueue(self, record: logging.LogRecord) -> None:
        try:
            self.queue.put_nowait(record)
        except queue.Full:
            self.dropped += 1


class PrivateFile(RotatingFileHandler):
    """A rotated file that only its owner can read."""

    def _open(self) -> Any:
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, PRIVATE_FILE)
        return os.fdopen(descriptor, "a", encoding="utf-8")
