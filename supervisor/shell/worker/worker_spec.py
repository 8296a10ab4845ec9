"""What a worker is started from, how it ends, and what is said when it cannot start."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from supervisor.errors import FreshlaneError


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """What to start, and how to stop it."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    """The full environment, not what is added to ours."""
    cwd: Path | None
    output_path: Path
    output_max_bytes: int
    output_keep: int
    stop_signal: signal.Signals
    stop_timeout_s: float
    may_kill: bool
    lane: str
    generation: int


@dataclass(frozen=True, slots=True)
class ExitStatus:
    """How a worker ended: by itself with a code, or by a signal. Neither: its tether was killed, so nobody saw.

    ``trouble``: of a server that someone else runs, why it was not restarted.
    """

    code: int | None
    signal: str | None
    trouble: str = ""
    restart: str = ""
    """How it shows that someone else restarted it; another process serves by now."""

    def __str__(self) -> str:
        if self.signal is not None:
            return f"killed by {self.signal}"
        return "ended unseen" if self.code is None else f"exit code {self.code}"


class SpawnFailedError(FreshlaneError):
    """The worker's command could not be started; names it and what to look at."""

    def __init__(self, spec: WorkerSpec, reason: str) -> None:
        command = spec.argv[0] if spec.argv else "an empty command"
        super().__init__(f"lane {spec.lane}: cannot start {command}: {reason}")
