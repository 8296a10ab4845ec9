"""How a line looks: for people, as JSON, or as JSON that journald knows the weight of."""

from __future__ import annotations

import contextlib
import os
from collections.abc import MutableMapping
from datetime import UTC, datetime
from typing import IO, Any, Literal

import structlog
from structlog.typing import Processor

from supervisor.logs.redactor import Redactor

LogFormat = Literal["auto", "console", "json"]

SYSLOG_PRIORITY = {"critical": 2, "error": 3, "warning": 4, "info": 6, "debug": 7}


def shared_processors() -> list[Processor]:
    """What every line gets, our own and those of libraries."""
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        _stamp,
        structlog.processors.StackInfoRenderer(),
    ]


def _stamp(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    event["timestamp"] = datetime.now(UTC).astimezone().isoformat(timespec="milliseconds")
    return event


def line_formatter(
    is_console: bool, redactor: Redactor, *, colors: bool, to_journald: bool
) -> structlog.stdlib.ProcessorFormatter:
    """Turns a record of ours or of a library's into the text of a line."""
    renderer: Processor
    if is_console:
        plain = structlog.dev.plain_traceback
        renderer = structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=plain)
    else:
        renderer = structlog.processors.JSONRenderer(ensure_ascii=False, default=str)
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared_processors(),
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            redactor,
            _WithPriority(renderer) if to_journald else renderer,
        ],
    )


class _WithPriority:
    """Puts ``<3>`` before an error and so on: journald takes it off again and knows how bad the line is."""

    def __init__(self, renderer: Processor) -> None:
        self._renderer = renderer

    def __call__(self, logger: Any, method: str, event: MutableMapping[str, Any]) -> str:
        priority = SYSLOG_PRIORITY.get(str(event.get("level")), 6)
        return f"<{priority}>" + str(self._renderer(logger, method, event))


def is_console_wanted(log_format: LogFormat, out: IO[str]) -> bool:
    """Whether a person reads along."""
    return log_format == "console" or (log_format == "auto" and out.isatty())


def is_colour_wanted(out: IO[str]) -> bool:
    """Whether a person reads along and did not say NO_COLOR."""
    return out.isatty() and not os.environ.get("NO_COLOR")


def is_journal(out: IO[str]) -> bool:
    """Whether systemd connected ``out`` to its journal."""
    with contextlib.suppress(OSError, ValueError):
        about = os.fstat(out.fileno())
        return os.environ.get("JOURNAL_STREAM") == f"{about.st_dev}:{about.st_ino}"
    return False
