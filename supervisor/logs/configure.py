"""Sends all logging of this process, our own and the libraries', one way."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import IO

import structlog

from supervisor.logs.lines import LinesOut, PrivateFile
from supervisor.logs.logs import Logs
from supervisor.logs.redactor import Redactor
from supervisor.logs.rendering import (
    LogFormat,
    is_colour_wanted,
    is_console_wanted,
    is_journal,
    line_formatter,
    shared_processors,
)
from supervisor.settings import LogSettings

LOUD_LIBRARIES = ("aiohttp.access", "asyncio")


def configure(settings: LogSettings, *, path: Path | None = None, secrets: Iterable[str] = ()) -> Logs:
    """Log as lanes.yaml says, to stdout or to ``path``; see ``configure_logs``."""
    return configure_logs(
        settings.format,
        settings.level,
        path=path,
        max_bytes=settings.max_size,
        keep=settings.keep,
        secrets=secrets,
    )


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
    is_console = path is None and is_console_wanted(log_format, out)
    to_journald = path is None and is_journal(out)
    lines = LinesOut(line_formatter(is_console, redactor, colors=is_colour_wanted(out), to_journald=to_journald))
    _give_root(lines, level)
    _give_structlog()
    return Logs(_handler(out, path, max_bytes, keep), lines, redactor)


def _give_root(lines: LinesOut, level: str) -> None:
    root = logging.getLogger()
    for old in tuple(root.handlers):
        root.removeHandler(old)
    root.addHandler(lines)
    root.setLevel(level.upper())
    for name in LOUD_LIBRARIES:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.captureWarnings(capture=True)


def _give_structlog() -> None:
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared_processors(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


def _handler(out: IO[str], path: Path | None, max_bytes: int, keep: int) -> logging.Handler:
    # A line that cannot be written (the reader is gone, the disk is full) is lost; a trace on stderr helps nobody.
    logging.raiseExceptions = False
    if path is None:
        return logging.StreamHandler(out)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return PrivateFile(path, maxBytes=max_bytes, backupCount=keep, encoding="utf-8")
