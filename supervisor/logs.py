"""The daemon's own log: for people on a terminal, one JSON object a line everywhere else.

Lines are written by a thread of their own, so that a stuck terminal or pipe never stops the loop; when its queue is
full, lines are dropped and counted. Secrets do not get in.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import re
import sys
import threading
from collections.abc import Iterable, Mapping, MutableMapping
from logging.handlers import QueueHandler, RotatingFileHandler
from pathlib import Path
from typing import IO, Any, Literal

import structlog
from structlog.typing import Processor

LogFormat = Literal["auto", "console", "json"]

LINES_WAITING = 10_000
PRIVATE_FILE = 0o600
SECRET_NAME = re.compile(r"(?i)(authorization|api[-_]?keys?|admin[-_]?keys?|token|password|secret|cookie)$")
SECRET_TEXT = re.compile(r"(?i)\b(bearer|basic)\s+[a-z0-9._~+/=-]{6,}")
HIDDEN = "***"
SHORTEST_SECRET = 4
SYSLOG_PRIORITY = {"critical": 2, "error": 3, "warning": 4, "info": 6, "debug": 7}
LOUD_LIBRARIES = ("aiohttp.access", "aiohttp.server", "apscheduler", "asyncio")


class Logs:
    """The log of one process from ``configure_logs`` on; ``close`` it last."""

    def __init__(self, handler: logging.Handler, lines: _LinesOut, redactor: Redactor) -> None:
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


def configure_logs(
    log_format: LogFormat = "auto",
    level: str = "info",
    *,
    stream: IO[str] | None = None,
    path: Path | None = None,
    max_bytes: int = 50_000_000,
    keep: int = 5,
    secrets: Iterable[str] = (),
) -> Logs:
    """Send all logging of this process to ``stream`` (default: stdout), or to ``path`` as JSON lines.

    A file is rotated at ``max_bytes``, and ``keep`` older ones stay. Raises OSError if the file cannot be opened.
    """
    out = stream if stream is not None else sys.stdout
    redactor = Redactor(secrets)
    is_console = path is None and _is_console(log_format, out)
    lines = _LinesOut(
        _formatter(is_console, redactor, colors=out.isatty(), to_journald=path is None and _is_journal(out))
    )
    root = logging.getLogger()
    for old in tuple(root.handlers):
        root.removeHandler(old)
    root.addHandler(lines)
    root.setLevel(level.upper())
    for name in LOUD_LIBRARIES:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.captureWarnings(capture=True)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_shared(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    return Logs(_handler(out, path, max_bytes, keep), lines, redactor)


class Redactor:
    """Hides values under telling names, credentials in running text, and known secrets wherever they stand."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: tuple[str, ...] = ()
        self.hide(secrets)

    def hide(self, secrets: Iterable[str]) -> None:
        """Know these secrets too; the longest is looked for first."""
        known = {*self._secrets, *(secret for secret in secrets if len(secret) >= SHORTEST_SECRET)}
        self._secrets = tuple(sorted(known, key=len, reverse=True))

    def __call__(self, _logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        return {name: self._clean(name, value) for name, value in event.items()}

    def _clean(self, name: str, value: Any) -> Any:
        if isinstance(value, str):
            return HIDDEN if SECRET_NAME.search(name) else self._without_secrets(value)
        if isinstance(value, Mapping):
            return {key: self._clean(str(key), item) for key, item in value.items()}
        if isinstance(value, (list, tuple, set, frozenset)):
            return [self._clean(name, item) for item in value]
        return value if isinstance(value, (int, float, type(None))) else self._without_secrets(str(value))

    def _without_secrets(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return SECRET_TEXT.sub(rf"\1 {HIDDEN}", text)


class _LinesOut(QueueHandler):
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


class _PrivateFile(RotatingFileHandler):
    """A rotated file that only its owner can read."""

    def _open(self) -> Any:
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, PRIVATE_FILE)
        return os.fdopen(descriptor, "a", encoding="utf-8")


def _handler(out: IO[str], path: Path | None, max_bytes: int, keep: int) -> logging.Handler:
    # A line that cannot be written (the reader is gone, the disk is full) is lost; a trace on stderr helps nobody.
    logging.raiseExceptions = False
    if path is None:
        return logging.StreamHandler(out)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return _PrivateFile(path, maxBytes=max_bytes, backupCount=keep, encoding="utf-8")


def _shared() -> list[Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=False),
        structlog.processors.StackInfoRenderer(),
    ]


def _formatter(
    is_console: bool, redactor: Redactor, *, colors: bool, to_journald: bool
) -> structlog.stdlib.ProcessorFormatter:
    last: list[Processor]
    if is_console:
        plain = structlog.dev.plain_traceback
        last = [redactor, structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=plain)]
    else:
        last = [redactor, structlog.processors.JSONRenderer(ensure_ascii=False, default=str)]
    last = [structlog.processors.format_exc_info, *last]
    if to_journald:
        last = [*last[:-1], _WithPriority(last[-1])]
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=_shared(),
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
    )


class _WithPriority:
    """Puts ``<3>`` before an error and so on: journald takes it off again and knows how bad the line is."""

    def __init__(self, renderer: Processor) -> None:
        self._renderer = renderer

    def __call__(self, logger: Any, method: str, event: MutableMapping[str, Any]) -> str:
        priority = SYSLOG_PRIORITY.get(str(event.get("level")), 6)
        return f"<{priority}>" + str(self._renderer(logger, method, event))


def _is_console(log_format: LogFormat, out: IO[str]) -> bool:
    return log_format == "console" or (log_format == "auto" and out.isatty())


def _is_journal(out: IO[str]) -> bool:
    """Whether systemd connected ``out`` to its journal."""
    with contextlib.suppress(OSError, ValueError):
        about = os.fstat(out.fileno())
        return os.environ.get("JOURNAL_STREAM") == f"{about.st_dev}:{about.st_ino}"
    return False
