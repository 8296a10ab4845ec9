"""Running a system's own tools, and waiting for what they set going."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from supervisor.cli.exits import CommandError

TOOL_S = 60.0
POLL_S = 0.2


class ServiceManagerError(CommandError):
    """The service manager would not do it; says what it said, and what to do."""


@dataclass(frozen=True, slots=True)
class Answer:
    """How a tool ended, and what it printed."""

    code: int
    text: str


def ask(*command: str, within_s: float = TOOL_S) -> Answer:
    """Run a tool to its end. Raises ServiceManagerError if it is not there or takes longer than ``within_s``."""
    try:
        done = subprocess.run(
            command, capture_output=True, check=False, timeout=within_s, encoding="utf-8", errors="replace"
        )
    except FileNotFoundError:
        raise ServiceManagerError(f"{command[0]} is not on this machine; is this a system that it manages?") from None
    except subprocess.TimeoutExpired:
        raise ServiceManagerError(f"{' '.join(command)} did not end within {within_s:g} s; try it by hand") from None
    return Answer(done.returncode, f"{done.stdout}{done.stderr}".strip())


def pause(seconds: float) -> None:
    """Let something else happen."""
    threading.Event().wait(seconds)


def until(fact: Callable[[], bool], within_s: float) -> bool:
    """Wait until ``fact`` holds; False if it does not within the time."""
    due = time.monotonic() + within_s
    while not fact():
        if time.monotonic() >= due:
            return False
        pause(POLL_S)
    return True
