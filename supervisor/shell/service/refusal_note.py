"""Why the daemon would not run, kept for `freshlane service status`.

launchd knows no exit codes after which it should not try again, so the daemon ends there with 0, and the reason would
be lost. The service names the file in the environment; without that name nothing is kept.
"""

from __future__ import annotations

import os
from pathlib import Path

import structlog

from supervisor import jsontext
from supervisor.journal import durable
from supervisor.shell.machine.clock import Clock, rfc3339
from supervisor.units.terms import REFUSAL_VARIABLE

log = structlog.get_logger(__name__)


def keep_refusal(code: int, reason: str) -> None:
    """The daemon will not run; ``code`` is what it would end with."""
    path = os.environ.get(REFUSAL_VARIABLE)
    if not path:
        return
    document = {"time": rfc3339(Clock().wall()), "exit_code": code, "reason": reason}
    try:
        Path(path).parent.mkdir(mode=durable.PRIVATE_FOLDER, parents=True, exist_ok=True)
        durable.replace_file(Path(path), jsontext.encode(document).encode())
    except OSError as error:
        log.warning("refusal_not_kept", path=path, error=str(error))


def forget_refusal() -> None:
    """The daemon runs."""
    path = os.environ.get(REFUSAL_VARIABLE)
    if path:
        try:
            Path(path).unlink(missing_ok=True)
        except OSError as error:
            log.warning("refusal_not_forgotten", path=path, error=str(error))
